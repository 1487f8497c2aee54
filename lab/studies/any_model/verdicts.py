#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""How often the coordinate check is wrong about models that are known by their tensors alone.

  /usr/bin/python3 lab/studies/any_model/verdicts.py build/release/tools --correct 13 --wrong 1 --first 1000

Each group trains a model of models.py at widths 32, 64 and 128 from three seeds of its own, records it and asks
`coordinate_check --judge --plans`: so many groups of each model as planned, and of each model with each mistake. The number
of a group draws its set-up. Appends to results/verdicts.csv, of which run.py makes a table; groups that are in the file are not
made again.
"""

import argparse
import csv
import json
import pathlib
import random
import subprocess
import sys
import tempfile
from typing import Any, Dict, List, NamedTuple

import torch

sys.path.append(str(pathlib.Path(__file__).resolve().parent))
from models import MODELS, base_stds, loss_of, plan_of, scalewise  # noqa: E402

WIDTHS, SEEDS = (32, 64, 128), 3
COLUMNS = ["case", "model", "group", "set-up", "verdict", "reason"]
# Roles that plan is told wrongly, of a hidden matrix of each model or of the head.
HIDDEN = {"state_space": "*.mix.weight", "convolution": "*.conv1.weight", "experts": "*.up", "mlp": "layers.*.weight",
          "residual": "*.down.weight", "mixer": "*.up.weight", "recurrent": "*.weight_hh_l0", "encoder": "*.linear1.weight"}
ROLES = {"a hidden matrix taken for an input": lambda model: HIDDEN[model] + "=input",
         "a hidden matrix taken for an output": lambda model: HIDDEN[model] + "=output",
         "the head taken for an input": lambda model: "head.weight=input"}
RIGHT, FORGOTTEN = "as planned", "the head's multiplier forgotten"
TRAINING = ("one learning rate", "factors of rates applied twice", "initial values of PyTorch")
CASES = (RIGHT, *ROLES, *TRAINING, FORGOTTEN)


class SetUp(NamedTuple):
    """What the number of a group draws, by the words of its name."""

    depth: int
    steps: int
    batch: int  # sequences of text, or images
    rate: float

    def __str__(self) -> str:
        return f"depth {self.depth}, {self.steps} steps, batch {self.batch}, rate {self.rate:.5f}"


def set_up(model: str, case: str, group: int) -> SetUp:
    """The same for a group on every machine: 2 to 4 layers, 3 to 5 steps, and a rate within a factor of 2 of 0.005."""
    numbers = random.Random(f"{model} {case} {group}")
    images = MODELS[model].data()[0](torch.Generator())[0].dim() == 4
    return SetUp(numbers.randint(2, 4), numbers.randint(3, 5), numbers.choice((16, 32) if images else (4, 8)),
                 0.005 * 2**numbers.uniform(-1, 1))


def record(path: pathlib.Path, model: str, plan: scalewise.Plan, case: str, width: int, drawn: SetUp, seed: int) -> None:
    """Trains a few steps on one batch."""
    torch.manual_seed(seed)
    one = MODELS[model]
    net = one.make(width, drawn.depth)
    if case != "initial values of PyTorch":
        scalewise.apply(net, plan, base_std=base_stds(model, drawn.depth).__getitem__, seed=seed, keep=one.vectors)
    groups: List[Dict[str, Any]] = scalewise.param_groups(net, plan, lr=drawn.rate)
    for group in groups:
        group["lr"] *= {"one learning rate": 1 / group["lr_factor"],
                        "factors of rates applied twice": group["lr_factor"]}.get(case, 1)
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.95))
    recorder = scalewise.Recorder(net, plan, optimizer, seed=seed, keep=one.vectors)
    batch = [part[:drawn.batch] for part in one.data()[0](torch.Generator().manual_seed(seed))]
    for _ in range(drawn.steps):
        optimizer.zero_grad()
        loss_of(net, batch).backward()
        optimizer.step()
    loss_of(net, batch)
    recorder.save(path)


def verdict(tools: pathlib.Path, model: str, case: str, group: int, folder: pathlib.Path) -> Dict[str, Any]:
    """The report of the check; plans and records stay in the folder."""
    drawn, files = set_up(model, case, group), []
    options = ["--role", ROLES[case](model)] if case in ROLES else []
    for width in WIDTHS:
        plan = plan_of(tools / "plan", model, width, drawn.depth, folder, *options, *(["--fold"] if case != FORGOTTEN else []))
        files.append((folder / "plan.json").rename(folder / f"plan-{width}.json"))
        for seed in range(SEEDS * group, SEEDS * (group + 1)):
            record(folder / "records.jsonl", model, plan, case, width, drawn, seed)
    done = subprocess.run([tools / "coordinate_check", "--judge", folder / "records.jsonl", "--format", "json",
                           *(word for file in files for word in ("--plans", file))],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8", check=False)
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tools", type=pathlib.Path, help="the folder of the built programs")
    parser.add_argument("--correct", type=int, default=13, help="groups of each model as planned")
    parser.add_argument("--wrong", type=int, default=1, help="groups of each model with each mistake")
    parser.add_argument("--model", choices=MODELS, action="append", help="this model alone")
    parser.add_argument("--first", type=int, default=1000, help="the first group; seeds and set-ups follow from its number")
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path(__file__).parent / "results")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    path = asked.results / "verdicts.csv"
    done = {tuple(row[:3]) for row in csv.reader(path.open(encoding="utf-8"))} if path.exists() else set()
    with path.open("a", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        if not done:
            rows.writerow(COLUMNS)
        for number in range(max(asked.correct, asked.wrong)):
            for model in asked.model or MODELS:
                for case in CASES:
                    group = asked.first + number
                    wanted = number < (asked.correct if case == RIGHT else asked.wrong)
                    if not wanted or (case, model, str(group)) in done:
                        continue
                    with tempfile.TemporaryDirectory() as scratch:
                        report = verdict(asked.tools, model, case, group, pathlib.Path(scratch))
                    reasons = [report["diagnosis"], *report["missing"], *report["undecided"], ""]
                    rows.writerow([case, model, group, set_up(model, case, group), report["verdict"],
                                   next(filter(None, reasons), "")])
                    file.flush()


if __name__ == "__main__":
    main()
