#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Trains a model of docs/any_model.md at several widths over a grid of rates, by its plan and with one rate for all tensors.

  /usr/bin/python3 lab/studies/any_model/transfer.py experts build/release/tools

Appends to results/<model>.csv, which run.py judges. Runs that are in the file are not made again.
"""

import argparse
import csv
import math
import pathlib
import sys
import tempfile

import torch

sys.path.append(str(pathlib.Path(__file__).resolve().parent))
from models import MODELS, base_stds, loss_of, plan_of, scalewise  # noqa: E402

DEPTH = 2
COLUMNS = ["arm", "width", "rate", "seed", "loss"]


def final_loss(model: str, plan: scalewise.Plan, arm: str, width: int, rate: float, seed: int, steps: int) -> float:
    """On held-out data; infinite where a loss was not finite."""
    one = MODELS[model]
    torch.manual_seed(seed)
    net = one.make(width, DEPTH)
    batch, held_out = one.data()
    scalewise.apply(net, plan, base_std=base_stds(model, DEPTH).__getitem__, seed=seed, keep=one.vectors)
    groups = scalewise.param_groups(net, plan, lr=rate)
    if arm == "one-rate":  # from the plan's initial values
        groups = [{"params": list(net.parameters()), "lr": rate}]
    optimizer = torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.95), weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1, (step + 1) / 10) * 0.5 * (1 + math.cos(math.pi * step / steps)))
    numbers = torch.Generator().manual_seed(1000 + seed)
    for _ in range(steps):
        loss = loss_of(net, batch(numbers))
        if not torch.isfinite(loss):
            return math.inf
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    with torch.no_grad():
        return float(loss_of(net, held_out))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("model", choices=MODELS)
    options.add_argument("tools", type=pathlib.Path, help="the folder of the built programs")
    options.add_argument("--widths", type=int, nargs="+", default=[32, 64, 128])
    options.add_argument("--rates", type=float, nargs="+", default=[2.0**-k for k in range(9, 1, -1)])
    options.add_argument("--seeds", type=int, default=2)
    options.add_argument("--steps", type=int, default=100)
    options.add_argument("--results", type=pathlib.Path, default=pathlib.Path(__file__).parent / "results")
    asked = options.parse_args()
    torch.set_num_threads(1)
    path = asked.results / f"{asked.model}.csv"
    done = {tuple(row[:4]) for row in csv.reader(path.open())} if path.exists() else set()
    with path.open("a", newline="") as file, tempfile.TemporaryDirectory() as scratch:
        rows = csv.writer(file, lineterminator="\n")
        if not done:
            rows.writerow(COLUMNS)
        for width in asked.widths:
            plan = plan_of(asked.tools / "plan", asked.model, width, DEPTH, pathlib.Path(scratch), "--fold")
            for arm in ("plan", "one-rate"):
                for seed in range(1, asked.seeds + 1):
                    for rate in asked.rates:
                        key = (arm, str(width), f"{rate:.6g}", str(seed))
                        if key in done:
                            continue
                        loss = final_loss(asked.model, plan, arm, width, rate, seed, asked.steps)
                        rows.writerow([*key, f"{loss:.6g}"])
                        file.flush()


if __name__ == "__main__":
    main()
