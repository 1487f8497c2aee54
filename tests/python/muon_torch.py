#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Plans for Muon, whose tensors are split between two optimizers.

    muon_torch.py PLAN_PROGRAM SOURCE_FOLDER

Exit code 77, with a message, where PyTorch is not installed.
"""

import json
import pathlib
import subprocess
import sys
import unittest

PLAN, SOURCE = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])

try:
    import torch
except ImportError:
    print("skipped: PyTorch is not installed for", sys.executable)
    sys.exit(77)

sys.path[:0] = [str(SOURCE / "python"), str(SOURCE / "examples" / "pytorch")]
import scalewise  # noqa: E402
from small_gpt import SmallGpt  # noqa: E402
from torch.nn import functional as F  # noqa: E402

SMALL = [f"{prefix}{key}={value}" for prefix, width in (("", 64), ("base.", 32))
         for key, value in {"d_model": width, "d_ff": 4 * width, "heads": width // 16, "depth": 2, "vocab": 256,
                            "context": 32, "tied_head": "false"}.items()]


LLAMA = ["--preset", "llama-3.2-3b", "--base-preset", "llama-3.2-1b", "--names", "hf-llama"]


def plan_json(optimizer, *arguments):
    options = ["--rule", "maximal-update", "--optimizer", optimizer]
    if "--preset" not in arguments:
        options += ["--preset", "gpt2", "--base-preset", "gpt2"]
        options += [word for option in SMALL for word in ("--set", option)]
    done = subprocess.run([PLAN, *options, *arguments], capture_output=True, encoding="utf-8", check=False)
    return done.stdout or done.stderr


class Muon(torch.optim.Optimizer):
    """A stand-in: what matters here is which tensors it holds."""

    def __init__(self, params):
        super().__init__(params, {"lr": 1.0, "weight_decay": 0.0})


class TwoOptimizers(unittest.TestCase):
    def setUp(self):
        self.plan = scalewise.Plan(json.loads(plan_json("muon-original", "--format", "json")))
        self.model = {name: torch.nn.Parameter(torch.zeros(e["rows"], e["columns"]))
                      for name, e in self.plan.entries.items()}

    def split(self, lr=0.02, others_lr=0.001):
        model, plan = self.model, self.plan
        matrices = scalewise.param_groups(model, plan, lr=0.02, weight_decay=0.1, optimizer="muon-original")
        others = scalewise.param_groups(model, plan, lr=0.001, weight_decay=0.1, optimizer="adamw")
        optimizers = {"muon-original": Muon(matrices), "adamw": torch.optim.AdamW(others)}
        scalewise.check_optimizer(optimizers, model, plan, weight_decay=0.1)
        return optimizers

    def names_in(self, optimizer):
        held = {id(p) for group in optimizer.param_groups for p in group["params"]}
        return {name for name, parameter in self.model.items() if id(parameter) in held}

    def test_each_holds_its_own(self):
        optimizers = self.split()
        matrices = self.names_in(optimizers["muon-original"])
        self.assertEqual({name.rpartition(".")[2] for name in matrices},
                         {"query", "key", "value", "attention_output", "mlp_up", "mlp_down"})
        self.assertEqual(len(matrices), 12)
        self.assertEqual(self.names_in(optimizers["adamw"]), set(self.model) - matrices)
        for group in optimizers["muon-original"].param_groups:
            self.assertEqual(set(group), {"params", "lr", "weight_decay", "lr_scale"})  # no epsilon
        # Width 32 to 64 under √max(1, fo/fi): mlp_down, with its 4 to 1, keeps √(m_fo/m_fi) = 1.
        self.assertEqual({group["lr"] for group in optimizers["muon-original"].param_groups}, {0.02})

    def test_which_optimizer_has_to_be_said(self):
        for wrong in (None, "muon", "sgd"):
            with self.assertRaises(ValueError) as caught:
                scalewise.param_groups(self.model, self.plan, lr=0.02, optimizer=wrong)
            self.assertIn(f"optimizer = {wrong}: expected adamw or muon-original", str(caught.exception))

    def test_a_tensor_of_the_other_optimizer_is_named(self):
        optimizers = self.split()
        swapped = {"adamw": optimizers["muon-original"], "muon-original": optimizers["adamw"]}
        with self.assertRaises(ValueError) as caught:
            scalewise.check_optimizer(swapped, self.model, self.plan)
        self.assertIn("layer.0.query: in adamw: expected muon-original", str(caught.exception))
        self.assertIn("token_embedding: in muon-original: expected adamw", str(caught.exception))
        optimizers["adamw"].param_groups[0]["eps"] *= 1.5
        with self.assertRaises(ValueError) as caught:
            scalewise.check_optimizer(optimizers, self.model, self.plan, weight_decay=0.1)
        self.assertIn("token_embedding: eps = 7.5e-09: expected 5e-09", str(caught.exception))

    def test_another_optimizer_of_pytorch_is_refused(self):
        groups = {name: scalewise.param_groups(self.model, self.plan, lr=0.02, weight_decay=0.1, optimizer=name)
                  for name in ("muon-original", "adamw")}
        optimizers = {"muon-original": torch.optim.AdamW(groups["muon-original"]),
                      "adamw": torch.optim.Adam(groups["adamw"])}
        with self.assertRaises(ValueError) as caught:
            scalewise.check_optimizer(optimizers, self.model, self.plan, weight_decay=0.1)
        self.assertEqual(str(caught.exception).splitlines(), [
            "optimizer['adamw'] = Adam: expected AdamW (hint: the plan is for adamw with coupled decay)",
            "optimizer['muon-original'] = AdamW: expected Muon (hint: the plan is for muon-original with coupled decay)"])
        both = torch.optim.AdamW([*groups["muon-original"], *groups["adamw"]])
        with self.assertRaisesRegex(ValueError, r"\Aoptimizer = AdamW: expected Muon \(hint: .*\)\Z"):
            scalewise.check_optimizer(both, self.model, self.plan, weight_decay=0.1)
        scalewise.check_optimizer(Muon([*groups["muon-original"], *groups["adamw"]]), self.model, self.plan,
                                  weight_decay=0.1)

    def test_a_matrix_of_three_is_refused(self):
        told = plan_json("muon-original", "--names", "nanogpt", "--format", "torch-groups")
        self.assertIn("transformer.h.*.attn.c_attn.weight (2 tensors)", told)
        self.assertIn("normalizes whole matrices (hint: --cut qkv", told)

    def test_a_matrix_of_three_that_the_optimizer_cuts_has_groups(self):
        plan = scalewise.Plan(json.loads(plan_json("muon-spectral", "--names", "nanogpt", "--format", "json", "--cut", "qkv")))
        model = SmallGpt(plan.multipliers(), 256, 32, 64, 4, torch.nn.Linear)
        groups = scalewise.param_groups(model, plan, lr=0.02, optimizer="muon-spectral")
        held = {id(p): group["lr"] for group in groups for p in group["params"]}
        for layer in model.transformer.h:  # √max(64, 64) of each of the three, √2 times the base's
            self.assertAlmostEqual(held[id(layer.attn.c_attn.weight)], 0.02 / 2**0.5, delta=1e-15)

    def test_groups_say_which_optimizer(self):
        told = plan_json("muon-match-adamw", *LLAMA, "--format", "torch-groups")
        groups = json.loads(told)
        self.assertEqual(groups["optimizer"], "muon-match-adamw")
        for group in groups["groups"]:
            with self.subTest(group["patterns"]):
                hidden = any("_proj" in pattern for pattern in group["patterns"])
                self.assertEqual(group.get("optimizer", groups["optimizer"]), "muon-match-adamw" if hidden else "adamw")
                self.assertEqual(hidden, all("_proj" in pattern for pattern in group["patterns"]))

    def test_formats_with_one_optimizer_refuse(self):
        for form in ("megatron", "fairseq", "neox", "tsv", "c-header"):
            with self.subTest(form):
                self.assertIn("one optimizer for all tensors",
                              plan_json("muon-plain", *LLAMA, "--format", form))


class Records(unittest.TestCase):
    def test_two_optimizers_record_what_one_does(self):
        plan = scalewise.Plan(json.loads(plan_json("adamw", "--names", "nanogpt", "--format", "json")))
        batch = torch.arange(4 * 33).reshape(4, 33) % 251
        records = []
        for split in (False, True):
            model = SmallGpt(plan.multipliers(), 256, 32, 64, 4, torch.nn.Linear)
            scalewise.apply(model, plan, base_std=0.1, seed=1)
            groups = scalewise.param_groups(model, plan, lr=0.01)
            optimizers = [torch.optim.AdamW(part) for part in ((groups[:1], groups[1:]) if split else (groups,))]
            recorder = scalewise.Recorder(model, plan, optimizers if split else optimizers[0])
            for _ in range(3):
                loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
                loss.backward()
                for optimizer in optimizers:
                    optimizer.step()
                    optimizer.zero_grad()
            model(batch[:, :-1])
            records.append(recorder._records)
        self.assertEqual(records[0], records[1])
        self.assertEqual({step for step, _, _ in records[0]}, {0, 1, 2, 3})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
