#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Turns a plan (plan --format json) into PyTorch parameter groups.

On the command line it prints the groups of a plan as JSON:

    python3 scripts/plan_to_torch.py plan.json --lr 1e-3 --weight-decay 0.1 --eps 1e-8

In a program, with a mapping from the plan's tensor names to the model's parameters:

    plan = load_plan("plan.json")
    initialize(plan, tensors, base_std={"query": 0.02, ...})   # base_std for relative rules only
    optimizer = torch.optim.AdamW(parameter_groups(plan, tensors, lr=1e-3, weight_decay=0.1))

Every field of every group is set, so that no optimizer default applies. Each group keeps its factor
as "lr_scale": a schedule has to set lr = schedule(t) * group["lr_scale"].
"""

import argparse
import json
import math
import sys

SCHEMA = "scalewise.plan/1"


def load_plan(path):
    """Reads a plan and checks its schema."""
    with open(path, encoding="utf-8") as file:
        plan = json.load(file)
    if not isinstance(plan, dict) or plan.get("schema") != SCHEMA:
        found = plan.get("schema") if isinstance(plan, dict) else type(plan).__name__
        raise ValueError(f"{path}: schema = {found}: expected {SCHEMA}")
    return plan


def factors(entry):
    """Rate, decay and epsilon factors of one entry."""
    return tuple(entry[name]["value"] for name in ("learning_rate", "weight_decay", "epsilon"))


def group_names(plan):
    """Names of the entries that share their three factors, in the order of the plan."""
    groups = {}
    for entry in plan["entries"]:
        groups.setdefault(factors(entry), []).append(entry["name"])
    return groups


def check_names(plan, tensors):
    """Raises KeyError unless plan and model name the same tensors."""
    planned = {entry["name"] for entry in plan["entries"]}
    missing, unplanned = planned - set(tensors), set(tensors) - planned
    if missing or unplanned:
        raise KeyError(f"not in the model: {sorted(missing)}; not in the plan: {sorted(unplanned)}")


def parameter_groups(plan, tensors, lr, weight_decay=0.0, eps=1e-8):
    """Groups for torch.optim, from global values and a mapping of names to parameters."""
    check_names(plan, tensors)
    groups = []
    for (rate, decay, epsilon), names in group_names(plan).items():
        # torch shrinks by lr * weight_decay, so an independent decay is divided by the rate factor.
        coupling = rate if plan["decay"] == "independent" else 1
        group = {"params": [tensors[name] for name in names], "lr": lr * rate, "lr_scale": rate,
                 "weight_decay": weight_decay * decay / coupling}
        if plan["optimizer"] == "adamw":
            group["eps"] = eps * epsilon
        groups.append(group)
    return groups


def initialize(plan, tensors, base_std=None, generator=None):
    """Draws every tensor from its planned distribution, in place.

    Under a relative rule the plan's variances are factors on the base model's, whose standard
    deviations `base_std` gives by group id.
    """
    import torch
    check_names(plan, tensors)
    relative = plan["rule"]["reference"] == "base"
    if relative and base_std is None:
        raise ValueError(f"{plan['rule']['id']} is relative: give base_std, std by group id")
    with torch.no_grad():
        for entry in plan["entries"]:
            tensor, mean = tensors[entry["name"]], entry["init_mean"]["value"]
            std = math.sqrt(entry["init_variance"]["value"])
            if relative and std > 0:
                std *= base_std[entry["group"]]
            if entry["distribution"] == "constant" or std == 0:
                tensor.fill_(mean)
            elif entry["distribution"] == "uniform":
                bound = math.sqrt(3) * std
                tensor.uniform_(mean - bound, mean + bound, generator=generator)
            elif entry["distribution"] == "truncated_normal":
                tensor.normal_(0, 1, generator=generator)
                while bool((tensor.abs() > 2).any()):  # draw again what lies outside
                    again = torch.empty_like(tensor).normal_(0, 1, generator=generator)
                    tensor.copy_(torch.where(tensor.abs() > 2, again, tensor))
                tensor.mul_(std).add_(mean)
            else:
                tensor.normal_(mean, std, generator=generator)


def main():
    parser = argparse.ArgumentParser(description="Prints the PyTorch parameter groups of a plan.")
    parser.add_argument("plan")
    parser.add_argument("--lr", type=float, default=1.0)
    parser.add_argument("--weight-decay", type=float, default=1.0)
    parser.add_argument("--eps", type=float, default=1.0)
    arguments = parser.parse_args()
    try:
        plan = load_plan(arguments.plan)
        names = {entry["name"]: entry["name"] for entry in plan["entries"]}
        groups = parameter_groups(plan, names, arguments.lr, arguments.weight_decay, arguments.eps)
    except RecursionError:
        print(f"plan_to_torch: {arguments.plan}: nested too deeply for a plan", file=sys.stderr)
        return 2
    except KeyError as error:
        print(f"plan_to_torch: {arguments.plan}: {error} is missing", file=sys.stderr)
        return 2
    except (OSError, ValueError, TypeError) as error:
        print(f"plan_to_torch: {error}", file=sys.stderr)
        return 2
    json.dump(groups, sys.stdout, indent=1)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
