#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Applies plans to PyTorch tensors and reads the optimizer and the draws back.

    plan_torch.py PLAN_PROGRAM SOURCE_FOLDER

Exit code 77, with a message, where PyTorch is not installed.
"""

import math
import pathlib
import subprocess
import sys
import tempfile
import unittest

PLAN, SOURCE = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])

try:
    import torch
except ImportError:
    print("skipped: PyTorch is not installed for", sys.executable)
    sys.exit(77)

sys.path.insert(0, str(SOURCE / "scripts"))
from plan_to_torch import initialize, load_plan, parameter_groups  # noqa: E402

SHAPE = ["--set", "d_model=256", "--set", "heads=4", "--set", "depth=2", "--set", "d_ff=640",
         "--set", "vocab=512", "--set", "context=64"]
BASE = ["--base-preset", "gpt2", "--set", "base.d_model=64", "--set", "base.heads=1", "--set",
        "base.depth=2", "--set", "base.d_ff=160", "--set", "base.vocab=512", "--set", "base.context=64"]


def plan_of(rule, *more):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "plan.json")
        subprocess.run([PLAN, "--rule", rule, "--preset", "gpt2", *SHAPE, *more, "--format", "json",
                        "--out", path], check=True)
        return load_plan(path)


def tensors_of(plan):
    return {e["name"]: torch.nn.Parameter(torch.full((e["rows"], e["columns"]), math.nan))
            for e in plan["entries"]}


class Torch(unittest.TestCase):
    def test_draws_have_the_planned_mean_and_variance(self):
        for rule in ("gpt2", "pytorch", "bert", "layer-scale", "neural-tangent"):
            plan = plan_of(rule)
            tensors = tensors_of(plan)
            initialize(plan, tensors, generator=torch.Generator().manual_seed(1))
            for entry in plan["entries"]:
                with self.subTest(rule=rule, name=entry["name"]):
                    values = tensors[entry["name"]].detach().double().flatten()
                    mean, variance = entry["init_mean"]["value"], entry["init_variance"]["value"]
                    if variance == 0:
                        self.assertTrue(torch.all(values == torch.tensor(mean).float().double()))
                        continue
                    if entry["distribution"] == "truncated_normal":
                        # Var of a normal cut at two: 1 - 4 phi(2) / (2 Phi(2) - 1)
                        variance *= 1 - 4 * 0.05399096651318806 / 0.9544997361036416
                        self.assertLess(values.abs().max().item(), 2.0001 * math.sqrt(entry["init_variance"]["value"]))
                    n = values.numel()
                    # 5 standard errors; a normal's squares have variance 2, and no distribution here has more
                    self.assertLess(abs(values.mean().item() - mean), 5 * math.sqrt(variance / n))
                    self.assertLess(abs(values.pow(2).mean().item() / variance - 1), 5 * math.sqrt(2 / n))

    def test_a_relative_rule_scales_the_base(self):
        plan = plan_of("maximal-update", *BASE)
        tensors = tensors_of(plan)
        with self.assertRaises(ValueError):
            initialize(plan, tensors)
        stds = {e["group"]: 0.02 for e in plan["entries"]}
        initialize(plan, tensors, base_std=stds, generator=torch.Generator().manual_seed(2))
        query = tensors["layer.0.query"]
        expected = 0.0004 / 4
        self.assertLess(abs(query.pow(2).mean().item() / expected - 1), 5 * math.sqrt(2 / query.numel()))

    def test_the_optimizer_holds_every_factor(self):
        plan = plan_of("maximal-update", *BASE)
        tensors = tensors_of(plan)
        optimizer = torch.optim.AdamW(parameter_groups(plan, tensors, lr=0.01, weight_decay=0.1, eps=1e-8))
        held = {id(p): group for group in optimizer.param_groups for p in group["params"]}
        self.assertEqual(len(held), len(plan["entries"]))
        for entry in plan["entries"]:
            group = held[id(tensors[entry["name"]])]
            self.assertAlmostEqual(group["lr"], 0.01 * entry["learning_rate"]["value"], delta=1e-15)
            self.assertAlmostEqual(group["weight_decay"], 0.1 * entry["weight_decay"]["value"], delta=1e-14)
            self.assertAlmostEqual(group["eps"], 1e-8 * entry["epsilon"]["value"], delta=1e-21)
        self.assertAlmostEqual(held[id(tensors["layer.1.mlp_up"])]["lr"], 0.01 / 4, delta=1e-15)

    def test_names_that_do_not_match_are_an_error(self):
        plan = plan_of("gpt2")
        tensors = tensors_of(plan)
        tensors["extra"] = tensors.pop("final_norm_bias")
        with self.assertRaisesRegex(KeyError, "final_norm_bias.*extra"):
            parameter_groups(plan, tensors, lr=1.0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
