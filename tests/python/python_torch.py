#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Plans applied to PyTorch models, optimizers read back, and runs judged by the coordinate check.

    python_torch.py PLAN_PROGRAM COORDINATE_CHECK_PROGRAM SOURCE_FOLDER
"""

import fcntl
import itertools
import json
import math
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import torch_support
from torch_support import SOURCE, message_of, scalewise, torch

import scalewise_record
from small_gpt import InOut, SmallGpt
from torch import nn
from torch.nn import functional as F

CHECK = pathlib.Path(sys.argv[2]).resolve()
VOCAB, CONTEXT, HEAD = 256, 32, 16
LINEAR = {"nanogpt": nn.Linear, "hf-gpt2": InOut}
DEPTHS = {"maximal-update": (2, 2), "complete-p": (4, 2)}  # of the models and of their base
SET_UPS = list(itertools.product(DEPTHS, LINEAR))


def plan_of(rule, *arguments, names="nanogpt"):
    return torch_support.plan_of("--rule", rule, "--preset", "gpt2", *arguments, *(["--names", names] if names else []))


def small(width, prefix="", **more):
    return torch_support.settings(prefix, **{"d_model": width, "d_ff": 4 * width, "heads": width // HEAD, "depth": 2,
                                             "vocab": VOCAB, "context": CONTEXT, "tied_head": "false", **more})


def relative(rule, width, names="nanogpt", base=32, **more):
    """The plan of a model that is wider than its base and, under CompleteP, twice as deep."""
    depth, base_depth = DEPTHS[rule]
    return plan_of(rule, "--base-preset", "gpt2", *small(width, depth=depth, **more),
                   *small(base, "base.", depth=base_depth, **more), names=names)


def model_of(plan, width, names="nanogpt", tied=False):
    return SmallGpt(plan.multipliers(), VOCAB, CONTEXT, width, width // HEAD, LINEAR[names], tied)


def tokens(seed):
    """Sequences of the shipped text."""
    text = (SOURCE / "tools" / "data" / "austen_persuasion.txt").read_bytes()
    generator = torch.Generator().manual_seed(seed)
    starts = torch.randint(0, len(text) - CONTEXT - 1, (8,), generator=generator).tolist()
    return torch.tensor([list(text[i:i + CONTEXT + 1]) for i in starts])


def train(model, optimizer, batch, steps=4):
    losses = []
    for _ in range(steps):
        loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model(batch[:, :-1])  # after the last step
    return losses


class Norm(nn.Module):
    """transformers 5 (d903f32): modeling_gemma.py, GemmaRMSNorm; modeling_nemotron.py, NemotronLayerNorm1P;
    modeling_llama.py, LlamaRMSNorm."""

    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def normalized(self, x):
        return x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)


class Gemma(Norm):
    def forward(self, x):
        return (self.normalized(x) * (1.0 + self.weight.float())).type_as(x)


class Llama(Norm):
    def forward(self, x):
        return self.weight * self.normalized(x).to(x.dtype)


class Nemotron(nn.LayerNorm):
    def forward(self, x):
        return F.layer_norm(x, self.normalized_shape, self.weight + 1, self.bias, self.eps)


class Sharded(Gemma):
    """PyTorch 2.11, torch/distributed/fsdp/_fully_shard/_fully_shard.py, FSDPModule.__new__: a copy is made anew."""

    def __new__(cls, *arguments):
        made = object.__new__(Gemma)
        made.__init__(*arguments)
        return made


class OnADevice(Norm):
    def forward(self, x):
        raise RuntimeError("a kernel for another device")


class WithStream(Gemma):
    def forward(self, x, residual=None):
        return super().forward(x if residual is None else x + residual), x


class OfBoth(Gemma):
    def forward(self, x, residual):
        return super().forward(x.add_(residual))


class OfHalves(Gemma):
    def forward(self, x):
        assert x.dtype == torch.bfloat16
        return super().forward(x)


class Counting(nn.Module):
    def forward(self, x):
        if hasattr(self, "calls"):
            self.calls += 1
        return F.dropout(x, 0.5, self.training)


class Watched(Gemma):
    def __init__(self, size):
        super().__init__(size)
        self.inner = Counting()

    def forward(self, x):
        return self.inner(super().forward(x))


class ToStream(Norm):
    def forward(self, x):
        return x + self.weight * self.normalized(x)


class Exponential(Norm):
    def forward(self, x):
        return torch.exp(self.weight) * self.normalized(x)


NORMED = torch_support.plan_of(
    "--rule", "complete-p", "--preset", "llama-2-7b", "--names", "hf-llama", "--fold", "--base-preset", "llama-2-7b",
    *torch_support.settings(d_model=32, heads=2, kv_heads=2, depth=2, vocab=50, d_ff=64, tied_head="true"),
    *torch_support.settings("base.", d_model=16, heads=1, kv_heads=1, depth=2, vocab=50, d_ff=32, tied_head="true"))


def normed_model(kind, gain=7.0):
    """A model with NORMED's names, and norms of a kind."""
    model = nn.Module()
    for tensor in NORMED.tensors:
        at, *path = [model, *tensor["name"].split(".")[:-1]]
        for name in path:
            if not hasattr(at, name):
                setattr(at, name, nn.Module())
            parent, at = at, getattr(at, name)
        shape = tensor["shape"]
        module = kind(shape[0]) if len(shape) == 1 else nn.Linear(*shape[::-1], bias=False)
        module.bias = None
        if len(shape) == 1:
            nn.init.constant_(module.weight, gain)
            if kind is Sharded:
                module.__class__ = Sharded
        setattr(parent, path[-1], module)
    return model


class Constants(unittest.TestCase):
    def test_a_tuned_base_is_carried_to_a_wider_model(self):
        tuned = "rate=0.003,embedding.rate=2.31,logits=1.79,hidden.std=1.275"
        plan = plan_of("maximal-update", "--base-width", "32", *small(128, tied_head="true"), "--start", "gpt2", "--fold",
                       "--constant", tuned)
        model = model_of(plan, 128, tied=True)
        scalewise.apply(model, plan, seed=1)
        groups = scalewise.param_groups(model, plan, lr=1.0, weight_decay=0.1)
        rates = {id(p): group["lr"] for group in groups for p in group["params"]}
        tensors = dict(model.named_parameters())
        expected = {"transformer.wte.weight": 0.003 * 2.31, "transformer.h.0.mlp.c_fc.weight": 0.003 / 4,
                    "transformer.ln_f.weight": 0.003 * 1.79 / 4, "transformer.h.0.ln_1.weight": 0.003}
        for name, rate in expected.items():
            self.assertAlmostEqual(rates[id(tensors[name])] / rate, 1, places=12, msg=name)
        self.assertTrue(torch.allclose(tensors["transformer.ln_f.weight"], torch.tensor(1.79 / 4)))
        std = tensors["transformer.h.0.mlp.c_fc.weight"].std().item()
        self.assertLess(abs(std / (0.02 * 1.275 / 2) - 1), 0.02)  # 65536 numbers
        scalewise.check_optimizer(torch.optim.AdamW(groups), model, plan, lr=1.0, weight_decay=0.1)


class Start(unittest.TestCase):
    def test_draws_have_the_planned_mean_and_variance(self):
        for rule in ("gpt2", "pytorch", "bert", "layer-scale", "neural-tangent"):
            plan = plan_of(rule, *small(256, heads=4), names=None)
            tensors = {name: nn.Parameter(torch.full((e["rows"], e["columns"]), math.nan))
                       for name, e in plan.entries.items()}
            scalewise.apply(tensors, plan, seed=1)
            for name, entry in plan.entries.items():
                with self.subTest(rule=rule, name=name):
                    values = tensors[name].detach().double().flatten()
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

    def test_norms_that_multiply_by_one_more_are_stored_one_lower(self):
        one_more = (Gemma, Nemotron, Sharded, WithStream, OfBoth, OfHalves, Watched)
        for kind in (*one_more, Llama, nn.LayerNorm, OnADevice, ToStream, Exponential):
            less = kind in one_more
            model = normed_model(kind)
            if kind is Watched:
                model.model.norm.inner.register_buffer("calls", torch.zeros(()))
            random = torch.get_rng_state()
            scalewise.apply(model, NORMED, base_std=0.02)
            with self.subTest(kind=kind.__name__):
                self.assertTrue(torch.equal(torch.get_rng_state(), random))
                # The logits of a tied head are times 1/m_N = 1/2, which --fold puts into the final norm.
                self.assertEqual(set(model.model.norm.weight.tolist()), {0.5 - less})
                for layer in model.model.layers.children():
                    self.assertEqual(set(layer.input_layernorm.weight.tolist()), {1.0 - less})
                # A record has the gain, whatever is stored.
                recorder = scalewise.Recorder(model, NORMED, torch.optim.SGD(model.parameters(), 0.1))
                records = torch_support.records_of(recorder)
                means = {name: sums[0] / sums[2] for (_, signal, name), sums in records.items() if signal == "parameter"}
                self.assertEqual(means["final_norm_gain"], 0.5)
                self.assertEqual(means["layer.0.attention_norm_gain"], 1)
                if kind is Watched:
                    self.assertEqual(model.model.norm.inner.calls, 0)

    def test_zeros_whose_norm_cannot_be_asked_are_refused(self):
        gains = [t["name"] for t in NORMED.tensors if len(t["shape"]) == 1]
        for kind in (OnADevice, Exponential, ToStream):
            model = normed_model(kind, 0.0)
            before = {name: value.clone() for name, value in model.state_dict().items()}
            descent = torch.optim.SGD(model.parameters(), 0.1)
            for call, last in ((scalewise.apply, 0.02), (scalewise.Recorder, descent)):
                lines = message_of(call, model, NORMED, last).splitlines()
                self.assertEqual(lines[-1], "model.norm.weight: all 0, and its module does not show whether it multiplies "
                                 "by weight or by 1 + weight (hint: keep=['model.norm.weight'] leaves it as you set it; "
                                 "if it multiplies by weight, fill it with 1 first)")
                self.assertTrue(all(torch.equal(value, before[name]) for name, value in model.state_dict().items()))
            scalewise.apply(model, NORMED, base_std=0.02, keep=gains)
            self.assertEqual(set(model.model.norm.weight.tolist()), {0.0})
            scalewise.Recorder(model, NORMED, descent, keep=gains)
        for kind in (Llama, nn.BatchNorm2d):  # which are known to multiply by them
            model = normed_model(kind, 0.0)
            scalewise.apply(model, NORMED, base_std=0.02)
            self.assertEqual(set(model.model.norm.weight.tolist()), {0.5})

    def test_the_same_plan_starts_the_same_model_in_every_layout(self):
        outputs, batch = [], tokens(1)[:, :-1]
        for names in LINEAR:
            plan = relative("complete-p", 64, names)
            model = model_of(plan, 64, names)
            parameters = dict(model.named_parameters())
            scalewise.apply(model, plan, base_std=0.1, seed=3)
            self.assertTrue(all(parameters[name] is p for name, p in model.named_parameters()))
            self.assertTrue(all(p.is_leaf and p.requires_grad for p in model.parameters()))
            outputs.append(model(batch))
        # Sums of 64 floats in another order.
        self.assertLess((outputs[0] - outputs[1]).abs().max().item(), 1e-5 * outputs[0].abs().max().item())
        fused = model.transformer.h[0].attn.c_attn.weight.detach()
        self.assertFalse(torch.equal(fused[:, :64], fused[:, 64:128]))

    def test_a_relative_rule_scales_the_base(self):
        plan = relative("maximal-update", 128)
        model = model_of(plan, 128)
        with self.assertRaisesRegex(ValueError, "base_std = none: maximal-update is relative"):
            scalewise.apply(model, plan)
        scalewise.apply(model, plan, base_std={e["group"]: 0.02 for e in plan.entries.values()})
        query = model.transformer.h[0].attn.c_attn.weight[:128].detach()
        self.assertLess(abs(query.pow(2).mean().item() / (0.0004 / 4) - 1), 5 * math.sqrt(2 / query.numel()))

    def test_a_base_whose_layers_differ_is_a_function_of_names(self):
        """torchtitan's Llama 3: 0.02/sqrt(2(l + 1)) for wo, w2 and w3 of layer l, 0.02 for wq, wk, wv and w1, 1 for tokens,
        1/sqrt(width) for the output (torchtitan b5bcd76c, models/llama3/__init__.py, _build_llama3_layers). w1 and w3 have
        the rows of w13 in turn (07521c58, models/common/feed_forward.py, _split_w13_on_save)."""
        def base_std(name):
            layer = re.match(r"layers\.(\d+)\.(.*)\.weight", name)
            if not layer:
                return {"tok_embeddings.weight": 1, "lm_head.weight": 1 / math.sqrt(base_width)}[name]
            lower = 0.02 / math.sqrt(2 * (int(layer[1]) + 1))
            return {"attention.qkv_linear.wqkv": 0.02, "attention.wo": lower, "feed_forward.w2": lower,
                    "feed_forward.w13": {"mlp_gate": 0.02, "mlp_up": lower}}[layer[2]]

        base_width = 64
        sizes = {"d_model": 128, "heads": 4, "kv_heads": 2, "head_dim": 32, "d_ff": 256, "depth": 2, "vocab": 256}
        plan = plan_of("maximal-update", "--preset", "llama-3-8b", "--base-width", str(base_width),
                       *torch_support.settings(**sizes), names="torchtitan")
        model = {tensor["name"]: torch.zeros(tensor["shape"]) for tensor in plan.tensors}
        scalewise.apply(model, plan, base_std=base_std)
        for layer in (0, 1):
            # Maximal update: a matrix whose inputs double has half the base's variance, the table the base's.
            every, gate, up = (slice(None), slice(0, None, 2), slice(1, None, 2))
            lower = 0.0004 / (2 * (layer + 1))
            for name, rows, base in (("attention.wo", every, lower), ("feed_forward.w13", gate, 0.0004),
                                     ("feed_forward.w13", up, lower), ("feed_forward.w2", every, lower)):
                values, variance = model[f"layers.{layer}.{name}.weight"][rows], base / 2
                with self.subTest(layer=layer, name=name, rows=rows):
                    self.assertLess(abs(values.pow(2).mean().item() / variance - 1), 5 * math.sqrt(2 / values.numel()))
        table = model["tok_embeddings.weight"]
        self.assertLess(abs(table.pow(2).mean().item() - 1), 5 * math.sqrt(2 / table.numel()))
        before = {name: values.clone() for name, values in model.items()}
        wrong = {"lm_head.weight": -0.1, "layers.1.attention.wo.weight": None, "layers.0.feed_forward.w13.weight": {"mlp_up": 1}}
        message = message_of(scalewise.apply, model, plan, base_std=lambda name: wrong.get(name, 1))
        self.assertEqual(sorted(message.splitlines()), [
            "base_std('layers.0.feed_forward.w13.weight')['mlp_gate'] = None: expected a finite number, 0 or greater",
            "base_std('layers.1.attention.wo.weight') = None: expected a finite number, 0 or greater",
            "base_std('lm_head.weight') = -0.1: expected a finite number, 0 or greater"])
        groups = dict.fromkeys((e["group"] for e in plan.entries.values()), 0.02)
        with self.assertRaisesRegex(ValueError, r"base_std\['layers.0.attention.wo.weight'\]: no group of the plan: expected a function"):
            scalewise.apply(model, plan, base_std={**groups, "layers.0.attention.wo.weight": 0.1})
        self.assertTrue(all(torch.equal(model[name], old) for name, old in before.items()))

    def test_a_base_that_is_no_deviation_is_refused_before_anything_is_written(self):
        plan = relative("maximal-update", 64)
        model = model_of(plan, 64)
        before = [p.detach().clone() for p in model.parameters()]
        expected = ": expected a finite number, 0 or greater"
        for value, text in ((math.nan, "nan"), (math.inf, "inf"), (-0.1, "-0.1"), ("0.1", "'0.1'"),
                            (torch.tensor(-0.5), "-0.5"),
                            (torch.ones(2), "tensor([1., 1.])"), ([0.1], "[0.1]")):
            with self.subTest(value=value):
                message = message_of(scalewise.apply, model, plan, base_std=value)
                self.assertEqual(message, f"base_std = {text}{expected}")
        groups = dict.fromkeys(e["group"] for e in plan.entries.values() if e["init_variance"]["value"] > 0)
        message = message_of(scalewise.apply, model, plan, base_std={"token_embedding": 0.1, "query": -0.1})
        self.assertEqual(message.splitlines(), [
            f"base_std['query'] = -0.1{expected}",
            *(f"base_std['{group}'] (missing): expected the base model's standard deviation"
              for group in groups if group not in ("token_embedding", "query"))])
        absolute = plan_of("gpt2", *small(64))
        with self.assertRaisesRegex(ValueError, "base_std = nan"):
            scalewise.apply(model_of(absolute, 64), absolute, base_std=math.nan)
        self.assertTrue(all(torch.equal(p, old) for p, old in zip(model.parameters(), before, strict=True)))
        # Gains do not vary, and need no deviation.
        scalewise.apply(model, plan, base_std=dict.fromkeys(groups, 0.1), seed=2)
        numbers = [p.detach().clone() for p in model.parameters()]
        for same in (0.1, torch.tensor(0.1, dtype=torch.float64)):
            scalewise.apply(model, plan, base_std=same, seed=2)
            self.assertTrue(all(torch.equal(p, old) for p, old in zip(model.parameters(), numbers, strict=True)))

    def test_padding_is_zero_and_one_tensor_does_not_shift_another(self):
        plan = plan_of("gpt2", *small(32, vocab=250))
        padded = dict(model_of(plan, 32).named_parameters())  # 256 rows: the plan has to know
        with self.assertRaisesRegex(ValueError, r"wte.weight: \[256, 32\]: expected \[250, 32\]"):
            scalewise.apply(padded, plan)
        for tensor in plan.tensors:
            if tensor["shape"][0] == 250:
                tensor.update(shape=[256, 32], padding=[{"axis": 0, "runs": [[250, 6]]}])
                tensor["parts"][0]["select"] = [{"axis": 0, "runs": [[0, 250]]}]
        scalewise.apply(padded, plan)
        self.assertTrue(torch.all(padded["transformer.wte.weight"][250:] == 0))
        other = plan_of("gpt2", *small(32))
        model = model_of(other, 32)
        scalewise.apply(model, other)
        self.assertTrue(torch.equal(model.transformer.wpe.weight, padded["transformer.wpe.weight"]))
        self.assertFalse(torch.equal(model.transformer.wpe.weight[:, 0], model.transformer.wpe.weight[:, 1]))

    def test_key_groups_go_to_their_rows(self):
        """Rows q0 q1 k0 v0 | q2 q3 k1 v1 of Megatron-LM, and its names by hand."""
        plan = plan_of("gpt2", *small(64, kv_heads=2), names="megatron")
        tensors = {t["name"]: torch.full(t["shape"], math.nan) for t in plan.tensors}
        scalewise.apply(tensors, plan, seed=5)
        other = plan_of("gpt2", *small(64, kv_heads=2), names=None)
        single = {n: torch.zeros(e["rows"], e["columns"]) for n, e in other.entries.items()}
        scalewise.apply(single, other, seed=5)
        q, k, v = (single[f"layer.0.{name}"].t() for name in ("query", "key", "value"))
        expected = torch.cat([q[:32], k[:16], v[:16], q[32:], k[16:], v[16:]])
        self.assertTrue(torch.equal(tensors["decoder.layers.0.self_attention.linear_qkv.weight"], expected))


class Optimizers(unittest.TestCase):
    def setUp(self):
        self.numbers = {"lr": 0.01, "weight_decay": 0.1, "eps": 1e-9}
        self.make("maximal-update", "nanogpt")

    def make(self, rule, names):
        self.rule, self.names = rule, names
        self.plan = relative(rule, 64, names)
        self.model = model_of(self.plan, 64, names)
        self.groups = scalewise.param_groups(self.model, self.plan, **self.numbers)

    def every_set_up(self):
        for rule, names in SET_UPS:
            with self.subTest(rule=rule, names=names):
                self.make(rule, names)
                yield

    def check(self, optimizer, **numbers):
        scalewise.check_optimizer(optimizer, self.model, self.plan, **{**self.numbers, **numbers})

    def test_every_factor_of_both_rules_and_layouts(self):
        for rule, names in SET_UPS:
            plan = relative(rule, 64, names)
            model = model_of(plan, 64, names)
            optimizer = torch.optim.AdamW(scalewise.param_groups(model, plan, **self.numbers))
            held = {id(p): g for g in optimizer.param_groups for p in g["params"]}
            named = dict(model.named_parameters())
            self.assertEqual(len(held), len(named))
            for tensor in plan.tensors:
                group = held[id(named[tensor["name"]])]
                for part in tensor["parts"]:
                    entry = plan.entries[part["entry"]]
                    for key, field in (("lr", "learning_rate"), ("weight_decay", "weight_decay"), ("eps", "epsilon")):
                        expected = self.numbers[key] * entry[field]["value"]
                        self.assertTrue(math.isclose(group[key], expected, rel_tol=1e-11), (part, key))
            scalewise.check_optimizer(optimizer, model, plan, **self.numbers)

    def test_an_independent_decay_does_not_scale_with_the_rate(self):
        plan = relative("maximal-update", 64)
        plan.plan["decay"] = "independent"
        for group in scalewise.param_groups(self.model, plan, **self.numbers):
            for tensor in plan.tensors:
                parameter = dict(self.model.named_parameters())[tensor["name"]]
                if any(p is parameter for p in group["params"]):
                    self.assertAlmostEqual(group["lr"] * group["weight_decay"], 0.01 * 0.1 * tensor["weight_decay"],
                                           delta=1e-12)

    def test_schedules(self):
        for _ in self.every_set_up():
            optimizer = torch.optim.AdamW(self.groups)
            schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
            optimizer.step()
            schedule.step()
            self.check(optimizer, lr=0.005)
            self.check(optimizer, lr=None)
            scalewise.set_lr(optimizer, 0.002)
            self.check(optimizer, lr=0.002)
            for group in optimizer.param_groups:  # as many loops do
                group["lr"] = 0.002
            for lr in (0.002, None):
                with self.assertRaisesRegex(ValueError, r"transformer\.h\.\*\.\S+ \(\d+ tensors\): lr = 0.002: expected 0.001"):
                    self.check(optimizer, lr=lr)

    def test_each_mistake_is_named(self):
        for _ in self.every_set_up():
            self.each_mistake_is_named()

    def each_mistake_is_named(self):
        one_rate = torch.optim.AdamW(self.model.parameters(), lr=0.01, weight_decay=0.1, eps=1e-9)
        with self.assertRaisesRegex(ValueError, r"transformer.h.\*.attn.c_attn.weight \(\d+ tensors\): lr = 0.01: expected 0.005"):
            self.check(one_rate)
        fused = self.model.transformer.h[1].attn.c_attn.weight
        name = "transformer.h.1.attn.c_attn.weight"
        optimizer = torch.optim.AdamW(self.groups)
        fused.requires_grad_(False)
        with self.assertRaisesRegex(ValueError, name + ": frozen"):
            scalewise.param_groups(self.model, self.plan, **self.numbers)
        with self.assertRaisesRegex(ValueError, name + ": frozen"):
            self.check(optimizer)
        fused.requires_grad_(True)
        self.check(optimizer)
        optimizer.param_groups[0]["params"].append(fused)
        with self.assertRaisesRegex(ValueError, name + ": in 2 places"):
            self.check(optimizer)
        for group in optimizer.param_groups:
            group["params"] = [p for p in group["params"] if p is not fused]
        with self.assertRaisesRegex(ValueError, name + ": in 0 places"):
            self.check(optimizer)
        stray = torch.optim.AdamW(self.groups + [{"params": [nn.Parameter(torch.zeros(3))], "lr": 1.0}])
        with self.assertRaisesRegex(ValueError, r"shape \[3\]: in the optimizer, but not in the plan"):
            self.check(stray)

    def test_settings_are_numbers_from_zero(self):
        for numbers, text in (({"lr": -1e-3}, "lr = -0.001"), ({"weight_decay": -5}, "weight_decay = -5"),
                              ({"weight_decay": math.nan}, "weight_decay = nan"), ({"eps": math.inf}, "eps = inf"),
                              ({"lr": "0.1"}, "lr = '0.1'"), ({"lr": None}, "lr = None")):
            with self.subTest(numbers=numbers):
                message = message_of(scalewise.param_groups, self.model, self.plan, **{**self.numbers, **numbers})
                self.assertEqual(message, f"{text}: expected a finite number, 0 or greater")
                if numbers != {"lr": None}:
                    with self.assertRaisesRegex(ValueError, "^" + text + ": expected a finite number"):
                        self.check(torch.optim.AdamW(self.groups), **numbers)
        optimizer = torch.optim.AdamW(self.groups)
        with self.assertRaisesRegex(ValueError, "lr = nan: expected a finite number"):
            scalewise.set_lr(optimizer, math.nan)
        scalewise.param_groups(self.model, self.plan, lr=0, weight_decay=0, eps=0)

    def test_groups_of_others_have_no_factor(self):
        optimizer = torch.optim.AdamW([*self.groups, {"params": [nn.Parameter(torch.zeros(3))]}], lr=1.0)
        rates = [group["lr"] for group in optimizer.param_groups]
        message = message_of(scalewise.set_lr, optimizer, 0.5)
        self.assertEqual(message, f"group {len(self.groups)}: lr_factor (missing): expected the groups of "
                         "param_groups()")
        self.assertEqual([group["lr"] for group in optimizer.param_groups], rates)

    def test_an_optimizer_of_another_kind_is_refused(self):
        optim = torch.optim
        coupled = self.plan
        l2 = plan_of("standard", *small(64), "--decay", "l2")
        descent = plan_of("standard", *small(64), "--optimizer", "sgd")
        for plan, right, wrong in ((coupled, optim.AdamW, (optim.Adam, optim.SGD, optim.Adagrad, optim.RMSprop)),
                                   (l2, optim.Adam, (optim.AdamW, optim.SGD, optim.Adagrad)),
                                   (descent, optim.SGD, (optim.AdamW, optim.Adam, optim.Adagrad))):
            groups = scalewise.param_groups(self.model, plan, **self.numbers)
            scalewise.check_optimizer(right(groups, lr=1.0), self.model, plan, **self.numbers)  # SGD has no default rate
            for one in wrong:
                with self.subTest(plan=plan.plan["optimizer"], one=one):
                    message = message_of(scalewise.check_optimizer, one(groups, lr=1.0), self.model, plan, **self.numbers)
                    self.assertEqual(message, f"optimizer = {one.__name__}: expected {right.__name__} "
                                     f"(hint: the plan is for {plan.plan['optimizer']} with {plan.plan['decay']} decay)")

    def test_an_optimizer_that_may_do_what_the_plan_says_is_accepted(self):
        class Own(torch.optim.Adam):
            """It may apply the decay itself."""

        class Bare(torch.optim.Optimizer):
            def __init__(self, groups):
                super().__init__(groups, {"lr": 1.0, "weight_decay": 0.0})

        for one in (Own, Bare):
            self.check(one(self.groups))
        message = message_of(self.check, Bare(self.without("eps")))
        self.assertEqual(message.splitlines()[0], "transformer.wte.weight: eps (missing): expected 5e-10")
        with self.assertRaisesRegex(ValueError, r"\Aoptimizer = SGD: expected AdamW \(hint: .*\)\Z"):
            self.check(torch.optim.SGD(self.without("eps"), lr=1.0))
        # Without decay they do the same, and PyTorch 2.6 gives Adam a flag for AdamW's decay.
        none = scalewise.param_groups(self.model, self.plan, lr=0.01)
        scalewise.check_optimizer(torch.optim.Adam(none), self.model, self.plan, lr=0.01)
        self.check(torch.optim.Adam([{**group, "decoupled_weight_decay": True} for group in self.groups]))

    def test_several_optimizers_of_one_kind(self):
        both = [torch.optim.AdamW(self.groups[::2]), torch.optim.AdamW(self.groups[1::2])]
        message = message_of(self.check, dict(zip("ab", both)))
        self.assertEqual(message, "optimizer['a', 'b']: expected the plan's optimizers as keys, which are adamw (hint: a "
                         "list may have several of one kind)")
        self.check(both)
        self.check({"adamw": torch.optim.AdamW(self.groups)})
        wrong = [both[0], torch.optim.SGD(self.groups[1::2], lr=1.0)]
        self.assertRegex(message_of(self.check, wrong), r"\Aoptimizer\[1\] = SGD: expected AdamW \(hint: .*\)\Z")
        both[1].param_groups[0]["lr"] *= 2
        self.assertRegex(message_of(self.check, both), ": lr = .*: expected ")
        self.assertRegex(message_of(self.check, both[:1]), ": in 0 places of the optimizer: expected one")
        self.assertRegex(message_of(self.check, []), ": in 0 places of the optimizer: expected one")
        self.assertEqual(message_of(self.check, [1]), "optimizer = 1: expected an optimizer, a list of them, or a dict by name")

    def without(self, key):
        return [{name: value for name, value in group.items() if name != key} for group in self.groups]

    def test_a_parameter_registered_twice_is_named(self):
        for _ in self.every_set_up():
            blocks = self.model.transformer.h
            blocks[1].mlp.c_fc.weight = blocks[0].mlp.c_fc.weight
            with self.assertRaisesRegex(ValueError, r"h\.1\.mlp\.c_fc\.weight: the same parameter as transformer\.h\.0\."):
                scalewise.param_groups(self.model, self.plan, **self.numbers)
            with self.assertRaisesRegex(ValueError, r"h\.1\.mlp\.c_fc\.weight: the same parameter as transformer\.h\.0\."):
                scalewise.apply(self.model, self.plan, base_std=0.1)
            self.make(self.rule, self.names)
            self.model.transformer.extra = self.model.lm_head  # under a name that no dialect has
            with self.assertRaisesRegex(ValueError, r"transformer\.extra\.weight: not in the plan"):
                scalewise.param_groups(self.model, self.plan, **self.numbers)

    def test_names_and_shapes_all_at_once(self):
        named = dict(self.model.named_parameters())
        good = dict(named)
        named["transformer.wpe.weights"] = named.pop("transformer.wpe.weight")
        up = named["transformer.h.0.mlp.c_fc.weight"]
        named["transformer.h.0.mlp.c_fc.weight"] = nn.Parameter(up.detach().t().clone())
        named["transformer.h.1.ln_1.weight"] = named["transformer.h.1.ln_2.weight"]
        message = message_of(scalewise.param_groups, named, self.plan, lr=1.0)
        self.assertEqual(set(message.splitlines()), {
            "transformer.wpe.weight: missing in the model",
            "transformer.wpe.weights: not in the plan",
            "transformer.h.0.mlp.c_fc.weight: [64, 256]: expected [256, 64] (hint: it is transposed)",
            "transformer.h.1.ln_2.weight: the same parameter as transformer.h.1.ln_1.weight"})
        wrapped = {f"_orig_mod.module.{name}": p for name, p in good.items()}
        self.assertEqual(len(scalewise.param_groups(wrapped, self.plan, lr=1.0)), len(self.groups))
        bare = {name.replace("transformer.", ""): p for name, p in good.items()}
        self.assertEqual(len(scalewise.param_groups(bare, self.plan, lr=1.0)), len(self.groups))

    def test_tied_heads(self):
        tied = relative("maximal-update", 64, tied_head="true")
        scalewise.param_groups(model_of(tied, 64, tied=True), tied, lr=1.0)
        with self.assertRaisesRegex(ValueError, "lm_head.weight: not the same parameter as transformer.wte.weight"):
            scalewise.param_groups(self.model, tied, lr=1.0)
        with self.assertRaisesRegex(ValueError, "lm_head.weight: the same parameter as transformer.wte.weight"):
            scalewise.param_groups(model_of(self.plan, 64, tied=True), self.plan, lr=1.0)

    def test_the_memory_of_tensors_shows_which_are_tied(self):
        """In state_dict() a tied head is another object of the same memory."""
        tied = relative("maximal-update", 64, tied_head="true")
        state = model_of(tied, 64, tied=True).state_dict()
        self.assertIsNot(state["lm_head.weight"], state["transformer.wte.weight"])
        scalewise.apply(state, tied, base_std=0.1)
        message = message_of(scalewise.apply, state, self.plan, base_std=0.1)
        self.assertEqual(message, "lm_head.weight: the same parameter as transformer.wte.weight")
        apart = self.model.state_dict()
        message = message_of(scalewise.apply, apart, tied, base_std=0.1)
        self.assertEqual(message, "lm_head.weight: not the same parameter as transformer.wte.weight, "
                         "though the plan ties them")
        # Two parameters of one memory have two gradients, and are neither tied nor apart.
        self.model.lm_head.weight.data = self.model.transformer.wte.weight.data
        for plan, words in ((tied, "lm_head.weight: not the same parameter"),
                            (self.plan, "lm_head.weight: the same parameter as transformer.wte.weight")):
            with self.assertRaisesRegex(ValueError, words):
                scalewise.param_groups(self.model, plan, lr=1.0)
        meta = {t["name"]: torch.empty(t["shape"], device="meta", requires_grad=True) for t in self.plan.tensors}
        scalewise.param_groups(meta, self.plan, lr=1.0)  # tensors without memory share none

    def test_buffers_of_the_code_base_are_ignored(self):
        for names, prefix in itertools.product(LINEAR, ("", "module.")):
            self.make("maximal-update", names)
            state = {prefix + name: p for name, p in self.model.state_dict().items()}
            for layer in range(2):
                state[f"{prefix}transformer.h.{layer}.attn.bias"] = torch.ones(1, 1, CONTEXT, CONTEXT)
            scalewise.apply(state, self.plan, base_std=0.1)
            self.assertTrue(torch.all(state[f"{prefix}transformer.h.0.attn.bias"] == 1))
            bare = {name.replace("transformer.", ""): p for name, p in state.items()}
            scalewise.apply(bare, self.plan, base_std=0.1)
            for name in ("transformer.h.x.attn.bias", "transformer.h.01.attn.bias", "transformer.h.0.attn.biases"):
                message = message_of(scalewise.apply, {**state, prefix + name: torch.ones(1)}, self.plan, base_std=0.1)
                self.assertEqual(message, f"{name}: not in the plan")
        self.model.transformer.h[0].attn.bias = nn.Parameter(torch.ones(1))  # is trained
        with self.assertRaisesRegex(ValueError, r"\Atransformer\.h\.0\.attn\.bias: not in the plan\Z"):
            scalewise.param_groups(self.model, self.plan, lr=1.0)
        plan = plan_of("gpt2", *small(64), names="nanogpt")
        counted = scalewise.Plan({"schema": "scalewise.named_plan/1", "plan": plan.plan, "dialect": "own", "prefix": "", "aliases": [],
                                  "tensors": plan.tensors, "ignored": ["mask_{1}.x"]})
        self.assertEqual([counted.ignores(name) for name in ("mask_1.x", "mask_12.x", "mask_0.x", "mask_1ax")],
                         [True, True, False, False])

    def test_a_path_is_no_plan(self):
        for function, arguments in [(scalewise.apply, {}), (scalewise.param_groups, {"lr": 1.0}), (scalewise.Recorder, {"optimizer": None})]:
            self.assertEqual(message_of(function, self.model, "plan.json", **arguments),
                             "plan = 'plan.json': expected a Plan (hint: scalewise.load(path) reads one)")

    def test_one_tensor_under_two_names_is_named(self):
        state = dict(self.model.named_parameters())
        state["wte.weight"] = torch.zeros(VOCAB, 64)
        message = message_of(scalewise.apply, state, self.plan, base_std=0.1)
        self.assertEqual(message, "wte.weight: the same tensor of the plan as transformer.wte.weight")
        state["wte.weight"] = [0.0]
        with self.assertRaisesRegex(ValueError, r"\Awte\.weight = \[0\.0\]: expected a tensor\Z"):
            scalewise.apply(state, self.plan, base_std=0.1)

class Verdicts(unittest.TestCase):
    """Three widths, three seeds. docs/python.md says how often such verdicts are wrong."""

    def verdict(self, rule, names, change=lambda model, groups: None):
        depth, base_depth = DEPTHS[rule]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "records.jsonl"
            for width in (32, 64, 128):
                plan = relative(rule, width, names)
                for seed in (1, 2, 3):
                    model = model_of(plan, width, names)
                    scalewise.apply(model, plan, base_std=0.1, seed=seed)
                    groups = scalewise.param_groups(model, plan, lr=0.005)
                    change(model, groups)
                    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.95))
                    recorder = scalewise.Recorder(model, plan, optimizer, seed=seed)
                    train(model, optimizer, tokens(seed))
                    recorder.save(path)
                    self.assertFalse(any(m._forward_hooks or m._forward_pre_hooks for m in model.modules()))
            done = subprocess.run([CHECK, "--rule", rule, "--sizes", "32,64,128", "--head-dim", str(HEAD), "--depth",
                                   str(depth), "--set", f"base.depth={base_depth}", "--seq", str(CONTEXT), "--judge",
                                   path, "--format", "json"],
                                  capture_output=True, encoding="utf-8", check=False)
            self.assertIn(done.returncode, (0, 1, 3), done.stderr)
            report = json.loads(done.stdout)
            return report["verdict"], report["diagnosis"]

    def test_right_set_ups_pass(self):
        """Each rule in one layout: models of both layouts have the same numbers, as a test above says."""
        for rule, names in zip(DEPTHS, LINEAR):
            with self.subTest(rule=rule, names=names):
                self.assertEqual(self.verdict(rule, names)[0], "pass")

    def fails_with(self, words, *set_up):
        verdict, diagnosis = self.verdict(*set_up)
        self.assertEqual(verdict, "fail")
        self.assertIn(words, diagnosis)

    def test_one_rate_for_all_is_named(self):
        def one_rate(_, groups):
            for group in groups:
                group["lr"] = 0.005
        self.fails_with("one global rate", "maximal-update", "nanogpt", one_rate)

    def test_a_missing_logit_multiplier_is_named(self):
        def no_multiplier(model, _):
            model.logit = 1.0
        self.fails_with("output multiplier missing", "complete-p", "hf-gpt2", no_multiplier)

    def test_another_order_of_query_key_and_value_is_named(self):
        """The model cuts [query, key, value], whatever the plan says. The second projects (tokens, batch, width)."""
        name, width = "transformer.h.0.attn.c_attn.weight", 64
        for tokens_first, (rule, names) in enumerate(zip(DEPTHS, LINEAR)):
            linear, (depth, base_depth) = LINEAR[names], DEPTHS[rule]
            for order in itertools.permutations(("query", "key", "value")):
                with tempfile.TemporaryDirectory() as folder:
                    entries = " ".join("layer.{}." + part for part in order)
                    dialect = pathlib.Path(folder) / "own.json"
                    dialect.write_text(json.dumps({"schema": "scalewise.dialect/1", "id": "own", "extends": names,
                                                   "patterns": [[name.replace("0", "{}"), entries]]}), encoding="utf-8")
                    shape = small(width, kv_heads=2, depth=depth) + small(32, "base.", kv_heads=1, depth=base_depth)
                    plan = plan_of(rule, "--base-preset", "gpt2", *shape, names=str(dialect))
                model = SmallGpt(plan.multipliers(), VOCAB, CONTEXT, width, width // HEAD, linear, kv_heads=2)
                scalewise.apply(model, plan, base_std=0.1, seed=1)
                for block in model.transformer.h if tokens_first else ():
                    block.attn.__dict__["c_proj"] = lambda y, of=block.attn.c_proj: of(y.transpose(0, 1)).transpose(0, 1)
                recorder = scalewise.Recorder(model, plan, torch.optim.AdamW(scalewise.param_groups(model, plan, lr=0.005)))
                with self.subTest(rule=rule, names=names, order=order):
                    if order == ("query", "key", "value"):
                        model(tokens(1)[:, :-1])
                        self.assertEqual(recorder.unchecked, [])
                        continue
                    message = message_of(model, tokens(1)[:, :-1])
                    self.assertIn(f"{name}: its rows of layer.0.", message)
                    if order == ("query", "value", "key"):
                        self.assertIn("layer.0.key are used as values", message)
                        self.assertIn("layer.0.value are not used as values", message)
                    if order == ("key", "query", "value"):
                        self.assertIn("layer.0.query are not used as queries alone", message)

    def test_what_cannot_be_found_out_about_the_order_is_listed(self):
        plan = relative("maximal-update", 64)
        model = model_of(plan, 64)
        scalewise.apply(model, plan, base_std=0.1)
        with torch.no_grad():
            model.transformer.h[1].attn.c_proj.weight.zero_()
        recorder = scalewise.Recorder(model, plan, torch.optim.AdamW(model.parameters()))
        model(tokens(1)[:, :-1])
        self.assertEqual(recorder.unchecked, ["layer.1.query, key, value: their gradients are zero"])
        recorder = scalewise.Recorder(model, plan, torch.optim.AdamW(model.parameters()))
        model(tokens(1)[:, :2])
        self.assertEqual(len(recorder.unchecked), 2)
        self.assertIn("three or more tokens", recorder.unchecked[0])


class Saved(unittest.TestCase):
    """Files of records; tests/check/record_file_test.cpp has the same of the library."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "records.jsonl"
        self.plan = relative("maximal-update", 32)
        self.model = model_of(self.plan, 32)

    def recorder(self, **options):
        return scalewise.Recorder(self.model, self.plan, torch.optim.AdamW(self.model.parameters()), **options)

    def save(self, **options):
        self.recorder(**options).save(self.path)

    def seeds(self):
        return [json.loads(line)["seed"] for line in self.path.read_text(encoding="utf-8").splitlines()]

    def judged(self):
        """What the check says about the file; records of one width, untrained, are too few."""
        done = subprocess.run([CHECK, "--rule", "maximal-update", "--sizes", "32", "--head-dim", str(HEAD), "--depth", "2",
                               "--seq", str(CONTEXT), "--judge", self.path], capture_output=True, encoding="utf-8",
                              check=False)
        return done.stdout + done.stderr

    def test_a_last_line_without_its_end_is_cut(self):
        self.save(seed=1)
        whole = self.path.read_bytes()
        for seed, rest in enumerate((whole[:30], whole[:-1], b"{"), 2):
            with open(self.path, "ab") as file:
                file.write(rest)
            self.assertIn("left out damaged line", self.judged())
            self.save(seed=seed)
        self.assertTrue(self.path.read_bytes().startswith(whole))
        self.assertEqual(self.seeds(), [1, 2, 3, 4])
        self.assertNotIn("damaged", self.judged())
        for first in (whole[:5], whole[:-1], b""):
            self.path.write_bytes(first)
            self.save(seed=1)
            self.assertEqual(self.path.read_bytes(), whole)

    def test_a_full_disk_leaves_no_part_of_a_line(self):
        self.save(seed=1)
        whole = self.path.read_bytes()
        recorder = self.recorder(seed=2)
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 1000, before[1]))
        try:
            with self.assertRaises(OSError):
                recorder.save(self.path)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        self.assertEqual(self.path.read_bytes(), whole)
        recorder.save(self.path)
        self.assertEqual(self.seeds(), [1, 2])

    def test_the_file_is_read_when_it_is_locked(self):
        """Another process appends a line while this one waits for the lock."""
        self.save(seed=1)
        line = self.path.read_bytes()
        self.path.write_bytes(line[:30])

        def lock(file, how):
            self.assertEqual(how, fcntl.LOCK_EX)
            self.path.write_bytes(line + line[:40])
            fcntl.flock(file, how)
            with open(self.path, "rb") as other, self.assertRaises(BlockingIOError):
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)

        with unittest.mock.patch("scalewise_record.fcntl", LOCK_EX=fcntl.LOCK_EX, flock=lock):
            self.save(seed=2)
        self.assertEqual(self.seeds(), [1, 2])

    def test_other_files_are_refused_and_left_alone(self):
        self.save(seed=1)
        line = self.path.read_bytes()
        body = line[:-len(',"sum":"0123456789abcdef"}\n')].replace(b'"inputs":[]', b'"inputs":[["--rule","he"]]')
        for content, words in ((b"no json", "(another kind of file): expected a file of scalewise.coordinates/2"),
                               (b'{"schema":"scalewise.sweep/2"}\n', "(another kind of file): expected"),
                               (b'{"schema":"scalewise.coordinates/1","x":1}\n', "= scalewise.coordinates/1: expected "
                                "scalewise.coordinates/2 (hint: another version wrote it"),
                               (body + scalewise_record._sum_of(body) + b"\n", "(records of other inputs): expected")):
            self.path.write_bytes(content)
            with self.subTest(words=words):
                message = message_of(self.save, seed=2)
                self.assertIn(f"{self.path} {words}", message)
                self.assertEqual(self.path.read_bytes(), content)
        with self.assertRaisesRegex(ValueError, "no regular file"):
            self.recorder().save(self.path.parent)
        self.path.write_bytes(b"damaged" + line + line)  # as the library: the second line shows whose file it is
        self.save(seed=2)
        self.assertIn("left out damaged line 1", self.judged())

    def test_sizes_and_seeds_are_whole_numbers(self):
        for options, text in (({"seed": -1}, "seed = -1: expected a whole number from 0 to 2^64 - 1"),
                              ({"seed": 1 << 64}, "seed = 18446744073709551616: expected"),
                              ({"seed": 1.5}, "seed = 1.5: expected"), ({"seed": "1"}, "seed = '1': expected"),
                              ({"size": 64.0}, "size = 64.0: expected a whole number from 1 to 2^62 - 1"),
                              ({"size": 0}, "size = 0: expected"), ({"size": 1 << 62}, "size = 4611686018427387904: ")):
            with self.subTest(options=options):
                message = message_of(self.recorder, **options)
                self.assertIn(text, message)
                self.assertFalse(any(m._forward_hooks or m._forward_pre_hooks for m in self.model.modules()))
        for options in ({"seed": (1 << 64) - 1}, {"seed": torch.tensor(3)}, {"size": torch.tensor(64)},
                        {"size": (1 << 62) - 1}):
            self.path.unlink(missing_ok=True)
            self.save(**options)
            self.assertIn("at least two sizes", self.judged())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
