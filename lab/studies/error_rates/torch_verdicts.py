#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""How often the verdict on a PyTorch model is wrong.

  /usr/bin/python3 lab/studies/error_rates/torch_verdicts.py build/release/tools --groups 40

Each group trains examples/pytorch/small_gpt.py at widths 32, 64 and 128 from three seeds of its own for four steps,
records it and asks `coordinate_check --judge`: under maximal update and CompleteP, as planned, with one learning rate,
and without the multiplier of the logits. Under CompleteP the models have twice the layers of their base. Prints a table
in Markdown; each case takes minutes.
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

WIDTHS, SEEDS, CONTEXT, HEAD = (32, 64, 128), 3, 32, 16
CASES = ("as planned", "one learning rate", "no multiplier of the logits")
DEPTHS = {"maximal-update": (2, 2), "complete-p": (4, 2)}  # of the models and of their base


def plan_of(tools: pathlib.Path, rule: str, width: int) -> scalewise.Plan:
    sets = [f"{prefix}{key}={value}" for prefix, n, depth in zip(("", "base."), (width, 32), DEPTHS[rule])
            for key, value in {"d_model": n, "d_ff": 4 * n, "heads": n // HEAD, "depth": depth, "vocab": 256,
                               "context": CONTEXT, "tied_head": "false"}.items()]
    done = subprocess.run([tools / "plan", "--rule", rule, "--preset", "gpt2", "--base-preset", "gpt2", "--names",
                           "nanogpt", "--format", "json", *(word for one in sets for word in ("--set", one))],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8", check=True)
    return scalewise.Plan(json.loads(done.stdout))


def record(path: pathlib.Path, plan: scalewise.Plan, width: int, seed: int, case: str, text: bytes) -> None:
    model = SmallGpt(plan.multipliers(), 256, CONTEXT, width, width // HEAD)
    scalewise.apply(model, plan, base_std=0.1, seed=seed)
    groups = scalewise.param_groups(model, plan, lr=0.005)
    if case == CASES[1]:
        groups = [{**group, "lr": 0.005} for group in groups]
    if case == CASES[2]:
        model.logit = 1.0
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.95))
    recorder = scalewise.Recorder(model, plan, optimizer, seed=seed)
    starts = torch.randint(0, len(text) - CONTEXT - 1, (8,), generator=torch.Generator().manual_seed(seed)).tolist()
    batch = torch.tensor([list(text[i:i + CONTEXT + 1]) for i in starts])
    for _ in range(4):
        loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model(batch[:, :-1])
    recorder.save(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tools", type=pathlib.Path, help="the folder of the built programs")
    parser.add_argument("--groups", type=int, default=40)
    parser.add_argument("--rule", choices=tuple(DEPTHS), action="append", help="this rule alone")
    parser.add_argument("--first", type=int, default=1, help="the first group; seeds follow from its number")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    text = (ROOT / "tools/data/austen_persuasion.txt").read_bytes()
    print("| rule | | groups | pass | inconclusive | fail | named |\n|---|---|---|---|---|---|---|")
    for rule in asked.rule or DEPTHS:
        depth, base_depth = DEPTHS[rule]
        plans = {width: plan_of(asked.tools, rule, width) for width in WIDTHS}
        for case in CASES:
            found = {"pass": 0, "inconclusive": 0, "fail": 0}
            named = 0
            for group in range(asked.first, asked.first + asked.groups):
                with tempfile.TemporaryDirectory() as folder:
                    path = pathlib.Path(folder, "records.jsonl")
                    for width, plan in plans.items():
                        for seed in range(SEEDS * group, SEEDS * (group + 1)):
                            record(path, plan, width, seed, case, text)
                    done = subprocess.run([asked.tools / "coordinate_check", "--rule", rule, "--sizes", "32,64,128",
                                           "--head-dim", str(HEAD), "--depth", str(depth), "--set",
                                           f"base.depth={base_depth}", "--seq", str(CONTEXT), "--judge", path,
                                           "--format", "json"], stdout=subprocess.PIPE, encoding="utf-8", check=False)
                    report = json.loads(done.stdout)
                found[report["verdict"]] += 1
                words = {CASES[1]: "one global rate", CASES[2]: "output multiplier missing"}.get(case)
                named += words is not None and words in report["diagnosis"]
            counts = " | ".join(map(str, found.values()))
            print(f"| {rule} | {case} | {asked.groups} | {counts} | {named if case != CASES[0] else '-'} |", flush=True)


if __name__ == "__main__":
    main()
