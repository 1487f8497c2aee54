#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""How often the verdict on a PyTorch model is wrong.

  /usr/bin/python3 lab/studies/error_rates/torch_verdicts.py build/release/tools --groups 40

Each group trains examples/pytorch/small_gpt.py at three widths or four depths from three seeds of its own for four steps,
records it and asks `coordinate_check --judge`: as planned, and with mistakes. Under CompleteP along the width the models
have twice the layers of their base. Prints a table in Markdown; each row takes minutes.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import torch
from torch.nn import functional as F

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "examples" / "pytorch")]
import scalewise  # noqa: E402
from small_gpt import SmallGpt  # noqa: E402

SEEDS, CONTEXT, HEAD = 3, 32, 16
MISTAKES = {"one learning rate": "one global rate", "no multiplier of the logits": "output multiplier missing",
            "no multiplier of the branches": "branch multiplier missing"}  # and how a report names them
ALONG_WIDTH, ALONG_DEPTH = ("one learning rate", "no multiplier of the logits"), ("no multiplier of the branches",)
# The rule, widths and depths of the models, those of the base, and the mistakes.
SET_UPS = {"maximal-update": ("maximal-update", [(32, 2), (64, 2), (128, 2)], (32, 2), ALONG_WIDTH),
           "complete-p": ("complete-p", [(32, 4), (64, 4), (128, 4)], (32, 2), ALONG_WIDTH),
           "complete-p along the depth": ("complete-p", [(32, 2), (32, 4), (32, 8), (32, 16)], (32, 2), ALONG_DEPTH)}


def plan_of(tools: pathlib.Path, rule: str, size: tuple, base: tuple) -> scalewise.Plan:
    sets = [f"{prefix}{key}={value}" for prefix, (n, depth) in (("", size), ("base.", base))
            for key, value in {"d_model": n, "d_ff": 4 * n, "heads": n // HEAD, "depth": depth, "vocab": 256,
                               "context": CONTEXT, "tied_head": "false"}.items()]
    done = subprocess.run([tools / "plan", "--rule", rule, "--preset", "gpt2", "--base-preset", "gpt2", "--names",
                           "nanogpt", "--format", "json", *(word for one in sets for word in ("--set", one))],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8", check=True)
    return scalewise.Plan(json.loads(done.stdout))


def record(path: pathlib.Path, plan: scalewise.Plan, size: int, seed: int, case: str, text: bytes) -> None:
    multipliers, width = plan.multipliers(), plan.plan["shape"]["d_model"]
    if case == "no multiplier of the logits":
        multipliers["logit_multiplier"] = 1.0
    if case == "no multiplier of the branches":
        multipliers["residuals"] = [(skip, 1.0) for skip, _ in multipliers["residuals"]]
    model = SmallGpt(multipliers, 256, CONTEXT, width, width // HEAD)
    scalewise.apply(model, plan, base_std=0.1, seed=seed)
    groups = scalewise.param_groups(model, plan, lr=0.005)
    if case == "one learning rate":
        groups = [{**group, "lr": 0.005} for group in groups]
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.95))
    recorder = scalewise.Recorder(model, plan, optimizer, size=size, seed=seed)
    starts = torch.randint(0, len(text) - CONTEXT - 1, (8,), generator=torch.Generator().manual_seed(seed)).tolist()
    batch = torch.tensor([list(text[i:i + CONTEXT + 1]) for i in starts])
    for _ in range(4):
        loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model(batch[:, :-1])
    recorder.save(path)


def verdict_of(tools: pathlib.Path, plans: dict, group: int, case: str, text: bytes) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "records.jsonl")
        files = []
        for size, plan in plans.items():
            files += ["--plans", str(pathlib.Path(folder, f"{size}.json"))]
            pathlib.Path(files[-1]).write_text(json.dumps(plan.plan), encoding="utf-8")
            for seed in range(SEEDS * group, SEEDS * (group + 1)):
                record(path, plan, size, seed, case, text)
        done = subprocess.run([tools / "coordinate_check", "--judge", path, *files, "--format", "json"],
                              stdout=subprocess.PIPE, encoding="utf-8", check=False)
        return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tools", type=pathlib.Path, help="the folder of the built programs")
    parser.add_argument("--groups", type=int, default=40)
    parser.add_argument("--only", choices=tuple(SET_UPS), action="append", help="this set-up alone")
    parser.add_argument("--first", type=int, default=1, help="the first group; seeds follow from its number")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    text = (ROOT / "tools/data/austen_persuasion.txt").read_bytes()
    print("| rule | | groups | pass | inconclusive | fail | named |\n|---|---|---|---|---|---|---|")
    for name in asked.only or SET_UPS:
        rule, sizes, base, mistakes = SET_UPS[name]
        along_depth = sizes[0][0] == sizes[-1][0]
        plans = {depth if along_depth else width: plan_of(asked.tools, rule, (width, depth), base) for width, depth in sizes}
        for case in ("as planned", *mistakes):
            found, named = {"pass": 0, "inconclusive": 0, "fail": 0}, 0
            for group in range(asked.first, asked.first + asked.groups):
                report = verdict_of(asked.tools, plans, group, case, text)
                found[report["verdict"]] += 1
                named += case in MISTAKES and MISTAKES[case] in report["diagnosis"]
            counts = " | ".join(map(str, found.values()))
            print(f"| {name} | {case} | {asked.groups} | {counts} | {named if case in MISTAKES else '-'} |", flush=True)


if __name__ == "__main__":
    main()
