#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Plans for PyTorch models of any architecture, from descriptions of two sizes.

    describe_torch.py PLAN_PROGRAM SOURCE_FOLDER
"""

import json
import math
import os
import pathlib
import re
import sys
import tempfile
import unittest
import unittest.mock

import torch_support
from torch_support import scalewise, settings, torch

import experts
import state_space
from small_gpt import SmallGpt
from torch import nn
from torch.nn.utils import prune


class StateSpace(nn.Module):
    """The tensors of a Mamba block (state-spaces/mamba, mamba_simple.py), with a fixed rank."""

    def __init__(self, width, depth, state=16, rank=4):
        super().__init__()
        inner = 2 * width
        self.embed = nn.Embedding(50, width)
        self.layers = nn.ModuleList()
        for _ in range(depth):
            layer = nn.Module()
            layer.norm = nn.LayerNorm(width)
            layer.in_proj = nn.Linear(width, 2 * inner, bias=False)
            layer.conv1d = nn.Conv1d(inner, inner, 4, groups=inner, padding=3)
            layer.x_proj = nn.Linear(inner, rank + 2 * state, bias=False)
            layer.dt_proj = nn.Linear(rank, inner)
            layer.A_log = nn.Parameter(torch.arange(1., state + 1).log().repeat(inner, 1))
            layer.D = nn.Parameter(torch.ones(inner))
            layer.out_proj = nn.Linear(inner, width, bias=False)
            self.layers.append(layer)
        self.norm_f = nn.LayerNorm(width)
        self.head = nn.Linear(width, 50, bias=False)
        self.head.weight = self.embed.weight


class Convolutions(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, width, 3, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, 2 * width, 3, bias=False), nn.BatchNorm2d(2 * width)
        self.linear = nn.Linear(2 * width, 10)


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))


class Separate(nn.Module):
    """Experts as modules of a list, which transformers 4 has (models/qwen2_moe/modeling_qwen2_moe.py, Qwen2MoeSparseMoeBlock)."""

    def __init__(self, width, depth, experts):
        super().__init__()
        self.embed = nn.Embedding(50, width)
        self.layers = nn.ModuleList()
        for _ in range(depth):
            layer = nn.Module()
            layer.gate = nn.Linear(width, experts, bias=False)
            layer.experts = nn.ModuleList(
                nn.ModuleDict({"up_proj": nn.Linear(width, 32), "down_proj": nn.Linear(32, width, bias=False)}) for _ in range(experts))
            self.layers.append(layer)
        self.head = nn.Linear(width, 50, bias=False)


class EachKind(nn.Module):
    """One layer of each kind; tests/libtorch/describe_test.cpp has the same in C++."""

    def __init__(self, width=8):
        super().__init__()
        self.embed = nn.Embedding(11, width)
        self.bag = nn.EmbeddingBag(5, width)
        self.conv = nn.Conv2d(3, width, 3)
        self.back = nn.ConvTranspose1d(width, 2 * width, 4)
        self.wider = nn.ConvTranspose2d(width, width, 4, groups=width)
        self.grouped = nn.ConvTranspose2d(width, width, 4, groups=2)  # neither axis says that an output has 4 inputs
        self.norm1, self.norm2, self.norm3 = nn.LayerNorm(width), nn.GroupNorm(2, width), RmsNorm(width)
        self.attention = nn.MultiheadAttention(width, 2)
        self.recurrent, self.cell = nn.LSTM(width, 2 * width), nn.GRUCell(width, width)
        self.slope = nn.PReLU()
        self.blocks = nn.Sequential(nn.Linear(width, 4 * width), nn.Linear(4 * width, width))
        self.decay_log = nn.Parameter(torch.zeros(width, 16))
        self.experts = nn.Parameter(torch.zeros(4, 2 * width, width))
        self.out_bias = nn.Parameter(torch.zeros(width))
        self.head = nn.Linear(width, 11, bias=False)
        self.head.weight = self.embed.weight


class Described(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def plan(self, target, base, *options, kinds=None, make=torch_support.plan_of):
        for name, model in (("target", target), ("base", base)):
            scalewise.describe(model, self.folder / f"{name}.json", kinds)
        return make("--model", self.folder / "target.json", "--base-model", self.folder / "base.json", *options)

    def refusal(self, *models, **kinds):
        return self.plan(*models, make=lambda *options: torch_support.plan_output(*options, code=2), **kinds)

    def test_a_gpt_has_the_rates_that_its_dialect_gives_it(self):
        def gpt(width, depth):
            return SmallGpt({"attention_scale": 1, "embedding_multiplier": 1, "logit_multiplier": 1,
                             "residuals": [(1, 1)] * depth}, 256, 32, width, width // 16)

        for rule in ("maximal-update", "complete-p", "depth-mup"):
            options = [word for prefix, width, depth in (("", 64, 4), ("base.", 32, 2)) for word in settings(
                prefix, d_model=width, d_ff=4 * width, heads=width // 16, depth=depth, vocab=256, context=32, tied_head="false")]
            model = gpt(64, 4)
            by_names = torch_support.plan_of("--rule", rule, "--preset", "gpt2", "--base-preset", "gpt2", *options, "--names",
                                             "nanogpt")
            described = self.plan(model, gpt(32, 2), "--rule", rule)
            rates = [{id(p): (group["lr"], group["weight_decay"], group["eps"])
                      for group in scalewise.param_groups(model, plan, lr=1, weight_decay=1) for p in group["params"]}
                     for plan in (by_names, described)]
            names = {id(p): name for name, p in model.named_parameters()}
            self.assertEqual(len(rates[1]), len(names))
            for key, name in names.items():
                for a, b in zip(rates[0][key], rates[1][key]):
                    self.assertTrue(math.isclose(a, b, rel_tol=1e-12), (rule, name, rates[0][key], rates[1][key]))

    def test_a_state_space_model(self):
        roles = "--role", "*.A_log=vector"
        models = StateSpace(64, 4), StateSpace(16, 2)
        self.assertIn("tensor layers.*.A_log = other: expected a role", self.refusal(*models, "--rule", "complete-p"))
        plan = self.plan(*models, "--rule", "complete-p", *roles)
        rates = {name: plan.entries[f"layers.3.{name}"]["learning_rate"]["value"] for name in
                 ("in_proj.weight", "conv1d.weight", "x_proj.weight", "dt_proj.weight", "A_log", "D", "out_proj.weight")}
        self.assertEqual(rates, {"in_proj.weight": 1 / 4, "conv1d.weight": 1, "x_proj.weight": 1, "dt_proj.weight": 1,
                                 "A_log": 1, "D": 1, "out_proj.weight": 1 / 4})
        self.assertEqual(plan.multipliers()["tensors"]["layers.0.x_proj.weight"], 1 / 4)
        self.assertEqual(plan.multipliers()["logit_multiplier"], 1 / 4)
        self.assertNotIn("attention_scale", plan.multipliers())
        model, norm = models[0], models[0].norm_f.weight
        before = {name: model.get_parameter(name).detach().clone() for name in ("layers.0.A_log", "layers.3.D")}
        norm.data.fill_(3)
        with self.assertRaisesRegex(ValueError, "keep: '\\*.B_log'"):
            scalewise.apply(model, plan, base_std=0.02, keep=["*.B_log"])
        scalewise.apply(model, plan, base_std=0.02, keep=["norm_f.*"])
        for name, value in before.items():
            self.assertTrue(torch.equal(model.get_parameter(name), value), name)
        self.assertTrue(torch.equal(norm, torch.full((64,), 3.)))
        self.assertTrue(torch.equal(model.layers[0].norm.weight, torch.ones(64)))
        self.assertAlmostEqual(float(model.layers[0].in_proj.weight.std()), 0.01, delta=0.0003)  # of 16384 numbers
        groups = scalewise.param_groups(model, plan, lr=1e-2)
        self.assertEqual(sum(len(group["params"]) for group in groups), len(list(model.parameters())))

    def test_what_is_never_trained_is_left_out(self):
        """The fixed positions of facebookresearch/DiT, models.py (ed81ce2): pos_embed, with requires_grad=False."""

        class Fixed(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.pos_embed = nn.Parameter(torch.ones(1, 16, width), requires_grad=False)
                self.embed, self.head = nn.Linear(9, width), nn.Linear(width, 4)

        models, kinds = (Fixed(64), Fixed(16)), {"pos_embed": "fixed"}
        with self.assertRaisesRegex(ValueError, "pos_embed: frozen: expected .* the kind fixed leaves out what is never trained"):
            scalewise.describe(models[0])
        with self.assertRaisesRegex(ValueError, "head.weight: trained: expected a frozen tensor, as its kind is fixed"):
            scalewise.describe(models[0], kinds={"pos_embed": "fixed", "head.*": "fixed"})
        plan = self.plan(*models, "--rule", "maximal-update", kinds=kinds)
        self.assertEqual(list(plan.entries), ["embed.weight", "embed.bias", "head.weight", "head.bias"])
        scalewise.apply(models[0], plan, base_std=0.1)
        self.assertTrue(bool((models[0].pos_embed == 1).all()))
        self.assertEqual(sum(len(group["params"]) for group in scalewise.param_groups(models[0], plan, lr=1)), 4)
        with self.assertRaisesRegex(ValueError, "unknown: not in the plan"):
            scalewise.apply({**dict(models[0].named_parameters()), "unknown": torch.ones(3)}, plan, base_std=0.1)
        models[0].pos_embed.requires_grad_(True)
        with self.assertRaisesRegex(ValueError, "pos_embed: not in the plan"):
            scalewise.param_groups(models[0], plan, lr=1)

    def test_computed_weights_are_refused(self):
        for change, message in ((nn.utils.weight_norm, "0.weight_g: the layer has weight_norm"),
                                (nn.utils.spectral_norm, "0.weight_orig: the layer has spectral_norm or is pruned"),
                                (lambda layer: prune.l1_unstructured(layer, "weight", 3), "0.weight_orig: the layer has"),
                                (nn.utils.parametrizations.orthogonal,
                                 "0.parametrizations.weight.original: the layer has a parametrization: a plan is for")):
            with self.assertRaisesRegex(ValueError, message):
                scalewise.describe(nn.Sequential(change(nn.Linear(4, 8)), nn.Linear(8, 2)))

    def test_a_convolutional_network(self):
        plan = self.plan(Convolutions(64), Convolutions(16), "--rule", "maximal-update", "--optimizer", "sgd")
        self.assertEqual({name: (e["learning_rate"]["value"], e["multiplier"]["value"], e["fan_in"])
                          for name, e in plan.entries.items() if e["columns"] > 1},
                         {"conv1.weight": (4, 1, 27), "conv2.weight": (1, 1, 576), "linear.weight": (4, 1 / 4, 128)})
        scalewise.apply(Convolutions(64), plan, base_std=0.05)

    def test_experts_of_a_list_may_be_more_than_in_the_base(self):
        options = "--rule", "maximal-update", "--set", "mssp=true"
        model = Separate(64, 2, 8)
        plan = self.plan(model, Separate(16, 1, 4), *options)
        # MSSP (arXiv:2605.14200), the column of more experts that are as narrow: n is 4 and e is 2.
        self.assertEqual({name: (e["group"], e["init_variance"]["value"], e["learning_rate"]["value"], e["epsilon"]["value"])
                          for name, e in plan.entries.items() if re.match(r"layers.1.(gate|.*\.7\.).*weight", name)},
                         {"layers.1.gate.weight": ("router", 1 / 4, 1 / 4, 1 / 2),
                          "layers.1.experts.7.up_proj.weight": ("expert_up", 1 / 4, 1 / 4, 1 / 2),
                          "layers.1.experts.7.down_proj.weight": ("expert_down", 2, 1, 1 / 8)})
        scalewise.apply(model, plan, base_std=0.02)
        self.assertEqual(sum(len(group["params"]) for group in scalewise.param_groups(model, plan, lr=1)), len(list(model.parameters())))
        self.assertIn("without layers.0.experts.4.up_proj.weight",
                      self.refusal(model, Separate(16, 1, 4), *options, "--role", "*.experts.*=hidden"))

    def test_a_plan_of_two_models_is_that_of_their_descriptions(self):
        models = Convolutions(64), Convolutions(16).to("meta")
        with unittest.mock.patch.dict(os.environ, PATH=f"{torch_support.PLAN.parent}:{os.environ['PATH']}"):
            plan = scalewise.make_plan("maximal-update", *models, "--optimizer", "sgd")
            self.assertEqual(plan.plan, self.plan(*models, "--rule", "maximal-update", "--optimizer", "sgd").plan)
            with self.assertRaisesRegex(ValueError, "base = the target itself: expected the same model at another width"):
                scalewise.make_plan("maximal-update", models[0], models[0])

    def test_outputs_of_modules_are_recorded_under_names_of_tensors(self):
        vectors = ["*.log_decay", "*.read"]
        model, base = (state_space.StateSpace(width, 1, 50) for width in (32, 16))
        roles = [word for pattern in vectors for word in ("--role", f"{pattern}=vector")]
        plan = self.plan(model, base, "--rule", "maximal-update", *roles)
        optimizer = torch.optim.AdamW(scalewise.param_groups(model, plan, lr=0.01))
        with self.assertRaisesRegex(ValueError, "keep: '\\*.A_log'"):
            scalewise.Recorder(model, plan, optimizer, keep=["*.A_log"])
        recorder = scalewise.Recorder(model, plan, optimizer, seed=3)
        tokens = torch.arange(30).reshape(2, 15)
        outputs = {}
        model.blocks[0].mix.register_forward_hook(lambda _, inputs, output: outputs.update(mix=output.detach()))
        model(tokens).square().mean().backward()
        optimizer.step()
        mix_at_start = outputs["mix"]
        model(tokens)
        self.assertEqual(recorder.unchecked, [])
        recorder.save(self.folder / "records.jsonl")
        record = json.loads((self.folder / "records.jsonl").read_text())
        found = {(r["signal"], r["step"], r["name"]): r for r in record["records"]}
        names = {"embed.weight", "blocks.0.log_step", "blocks.0.norm.weight", "blocks.0.mix.weight", "blocks.0.out.weight",
                 "norm.weight", "head.weight", "logits"}
        for signal, step in (("value", 0), ("value", 1), ("change", 1)):
            self.assertEqual({name for s, k, name in found if (s, k) == (signal, step)}, names)
        mix = found["value", 0, "blocks.0.mix.weight"]
        self.assertEqual(mix["count"], 2 * 15 * 64)
        self.assertAlmostEqual(mix["sum_squares"], float(mix_at_start.double().square().sum()), places=9)
        parameters = {name for s, _, name in found if s == "parameter"}
        self.assertEqual(set(plan.entries) - parameters, {f"blocks.0.{name}" for name in ("log_step", "log_decay", "read", "skip")})
        self.assertEqual({name for s, _, name in found if s == "update"}, set(plan.entries))

    def test_an_embedding_that_is_the_head_shows_its_own_output(self):
        def tied(width):
            model = experts.Experts(width, 1, 50)
            model.head.weight = model.embed.weight
            return model

        model, kinds = tied(32), {"*.up": "linear:eoi", "*.down": "linear:eoi"}
        plan = self.plan(model, tied(16), "--rule", "maximal-update", kinds=kinds)
        optimizer = torch.optim.AdamW(scalewise.param_groups(model, plan, lr=0.01))
        recorder = scalewise.Recorder(model, plan, optimizer)
        tokens = torch.arange(30).reshape(2, 15)
        model(tokens).square().mean().backward()
        optimizer.step()
        recorder.save(self.folder / "records.jsonl")
        record = json.loads((self.folder / "records.jsonl").read_text())
        counts = {r["name"]: r["count"] for r in record["records"] if r["signal"] == "value"}
        self.assertEqual((counts["embed.weight"], counts["logits"]), (30 * 32, 30 * 50))

    def test_tensors_of_modules_without_an_output_of_their_own_are_not_missing(self):
        class Positions(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.embed = nn.Embedding(50, width)
                self.position = nn.Parameter(torch.zeros(15, width))
                self.mixers = nn.ParameterList([nn.Parameter(torch.eye(width))])
                self.head = nn.Linear(width, 50, bias=False)

            def forward(self, tokens):
                return self.head((self.embed(tokens) + self.position) @ self.mixers[0])

        class Wrapper(nn.Module):
            def __init__(self, module):
                super().__init__()
                self.module = module

            def forward(self, tokens):
                return self.module(tokens)

        kinds = {"position": "embedding:io", "mixers.0": "linear:io"}
        plan = self.plan(Positions(32), Positions(16), "--rule", "maximal-update", kinds=kinds)
        for wrap in (lambda model: model, Wrapper):
            model = wrap(Positions(32))
            optimizer = torch.optim.AdamW(scalewise.param_groups(model, plan, lr=0.01))
            recorder = scalewise.Recorder(model, plan, optimizer)
            tokens = torch.arange(30).reshape(2, 15)
            model(tokens).square().mean().backward()
            optimizer.step()
            model(tokens)
            self.assertEqual(recorder.unchecked, [])
            path = self.folder / f"{type(model).__name__}.jsonl"
            recorder.save(path)
            values = {r["name"] for r in json.loads(path.read_text())["records"] if r["signal"] == "value"}
            self.assertEqual(values, {"embed.weight", "head.weight", "logits"})

    def test_the_meta_device_and_wrappers_make_no_difference(self):
        self.assertEqual(scalewise.describe(Convolutions(16).to("meta")), scalewise.describe(Convolutions(16)))
        plain = scalewise.describe(StateSpace(16, 2))
        self.assertEqual(scalewise.describe(nn.DataParallel(StateSpace(16, 2))), plain)
        self.assertEqual(plain["tensors"][-1]["tied_to"], "embed.weight")

    def test_libtorch_describes_the_same_model_alike(self):
        path = self.folder / "each_kind.json"
        scalewise.describe(EachKind(), path, {"experts": "linear:eoi"})
        expected = torch_support.SOURCE / "tests/libtorch/each_kind.json"
        self.assertEqual(path.read_text(), expected.read_text())

    def test_what_cannot_be_described_is_named(self):
        model = StateSpace(16, 1)
        model.norm_f.weight.requires_grad_(False)
        with self.assertRaisesRegex(ValueError, "norm_f.weight: frozen"):
            scalewise.describe(model)
        with self.assertRaisesRegex(ValueError, "model = 'gpt': expected a torch.nn.Module"):
            scalewise.describe("gpt")
        with self.assertRaisesRegex(ValueError, "^0.weight: no shape yet: .*\n0.bias: no shape yet: expected a tensor"):
            scalewise.describe(torch.nn.Sequential(torch.nn.LazyLinear(3), torch.nn.Linear(3, 3)))
        for kinds, message in (({"*.E": "gain:o"}, "kinds: '\\*.E': expected a pattern"), ({"*.D": "gain:oo"}, "'gain:oo'"),
                               ({"*.D": "gains:o"}, "'gains:o'"), ({"*.D": "gain:x"}, "'gain:x'")):
            with self.assertRaisesRegex(ValueError, message):
                scalewise.describe(StateSpace(16, 1), kinds=kinds)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
