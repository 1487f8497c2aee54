#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""A training loop in PyTorch that follows a plan. Lines that do so are marked, and those that record.

    train.py PLAN TEXT [--steps N] [--lr LR] [--seed N] [--record FILE] [--one-rate]

With --record all steps see the same batch, as a coordinate check needs it.
"""

import argparse
import math
import pathlib

import torch
from small_gpt import SmallGpt
from torch.nn import functional as F

import scalewise  # scalewise


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plan")
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--lr", type=float, default=0.005)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record")
    parser.add_argument("--one-rate", action="store_true", help="a mistake, to see the check fail")
    a = parser.parse_args(arguments)
    torch.manual_seed(a.seed)
    torch.set_num_threads(1)

    plan = scalewise.load(a.plan)  # scalewise
    shape = plan.plan["shape"]
    model = SmallGpt(plan.multipliers(), shape["vocab"], shape["context"], shape["d_model"], shape["heads"])  # scalewise
    scalewise.apply(model, plan, base_std=0.1, seed=a.seed)  # scalewise
    groups = scalewise.param_groups(model, plan, lr=a.lr, weight_decay=0.1)  # scalewise
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.95))
    recorder = scalewise.Recorder(model, plan, optimizer, seed=a.seed) if a.record else None  # records

    text = torch.frombuffer(bytearray(a.text.read_bytes()), dtype=torch.uint8).long()
    starts = torch.randint(0, len(text) - shape["context"] - 1, (a.steps, 8))
    for step in range(a.steps):
        batch = torch.stack([text[i:i + shape["context"] + 1] for i in starts[0 if a.record else step]])
        loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        lr = a.lr * 0.5 * (1 + math.cos(math.pi * step / a.steps))
        scalewise.set_lr(optimizer, lr)  # scalewise: instead of group["lr"] = lr
        if a.one_rate:
            for group in optimizer.param_groups:
                group["lr"] = lr
        else:
            scalewise.check_optimizer(optimizer, model, plan, lr=lr, weight_decay=0.1)  # scalewise
        optimizer.step()
        print(f"step {step + 1}  loss {loss.item():.3f}")
    if recorder:
        model(batch[:, :-1])  # after the last step
        recorder.save(a.record)  # records


if __name__ == "__main__":
    main()
