#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""How often the coordinate check is wrong about models that are known by their tensors alone.

  /usr/bin/python3 lab/studies/any_model/verdicts.py build/release/tools --correct 34 --wrong 3

Each group trains a model of docs/any_model.md at widths 32, 64 and 128 from three seeds of its own for four steps, with
2 or 3 layers, records it and asks `coordinate_check --judge --plans`: so many groups of each model as planned, and of each
model with each mistake. Prints a table in Markdown.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
from typing import Any, Dict, List

import torch

sys.path.append(str(pathlib.Path(__file__).resolve().parent))
from models import MODELS, base_std, loss_of, plan_of, scalewise  # noqa: E402

WIDTHS, SEEDS, STEPS, RATE = (32, 64, 128), 3, 4, 0.005
# Roles that plan is told wrongly, of a hidden matrix of each model or of the head.
HIDDEN = {"state_space": "*.mix.weight", "convolution": "*.conv1.weight", "experts": "*.up"}
ROLES = {"a hidden matrix taken for an input": lambda model: HIDDEN[model] + "=input",
         "a hidden matrix taken for an output": lambda model: HIDDEN[model] + "=output",
         "the head taken for an input": lambda model: "head.weight=input"}
RIGHT = "as planned"
TRAINING = ("one learning rate", "factors of rates applied twice", "initial values of PyTorch")


def record(path: pathlib.Path, model: str, plan: scalewise.Plan, case: str, width: int, depth: int, seed: int) -> None:
    """Trains a few steps on one batch."""
    torch.manual_seed(seed)
    one = MODELS[model]
    net = one.make(width, depth)
    if case != "initial values of PyTorch":
        scalewise.apply(net, plan, base_std=base_std, seed=seed, keep=one.vectors)
    groups: List[Dict[str, Any]] = scalewise.param_groups(net, plan, lr=RATE)
    for group in groups:
        group["lr"] *= {"one learning rate": 1 / group["lr_scale"],
                        "factors of rates applied twice": group["lr_scale"]}.get(case, 1)
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.95))
    recorder = scalewise.Recorder(net, plan, optimizer, seed=seed, keep=one.vectors)
    batch = one.data()[0](torch.Generator().manual_seed(seed))
    batch = (batch[0][:4], batch[1][:4]) if one.kinds or one.vectors else batch
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss_of(net, batch).backward()
        optimizer.step()
    loss_of(net, batch)
    recorder.save(path)


def verdict(tools: pathlib.Path, model: str, case: str, group: int, keep: Any = None) -> Dict[str, Any]:
    depth = 2 + group % 2
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(keep or scratch)
        files = []
        for width in WIDTHS:
            roles = [ROLES[case](model)] if case in ROLES else []
            plan = plan_of(tools / "plan", model, width, depth, folder, *roles)
            files.append((folder / "plan.json").rename(folder / f"plan-{width}.json"))
            for seed in range(SEEDS * group, SEEDS * (group + 1)):
                record(folder / "records.jsonl", model, plan, case, width, depth, seed)
        done = subprocess.run([tools / "coordinate_check", "--judge", folder / "records.jsonl", "--format", "json",
                               *(word for file in files for word in ("--plans", file))],
                              stdout=subprocess.PIPE, encoding="utf-8", check=False)
        return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tools", type=pathlib.Path, help="the folder of the built programs")
    parser.add_argument("--correct", type=int, default=34, help="groups of each model as planned")
    parser.add_argument("--wrong", type=int, default=3, help="groups of each model with each mistake")
    parser.add_argument("--model", choices=MODELS, action="append", help="this model alone")
    parser.add_argument("--first", type=int, default=1, help="the first group; seeds follow from its number")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    print("| | model | groups | pass | inconclusive | fail |\n|---|---|---|---|---|---|")
    for case in (RIGHT, *ROLES, *TRAINING):
        groups = asked.correct if case == RIGHT else asked.wrong
        for model in (asked.model or MODELS) if groups else ():
            found = [verdict(asked.tools, model, case, group)["verdict"] for group in range(asked.first, asked.first + groups)]
            counts = " | ".join(str(found.count(word)) for word in ("pass", "inconclusive", "fail"))
            print(f"| {case} | {model} | {groups} | {counts} |", flush=True)


if __name__ == "__main__":
    main()
