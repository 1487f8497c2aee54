#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""The numbers that microsoft/mup gives its own examples, an MLP, a ResNet and a transformer (written anew), against plans
from two descriptions; and mistakes in the base.

    mup_torch.py PLAN_PROGRAM SOURCE_FOLDER

The rules are read from microsoft/mup, commit 19814971: sides that differ between base and model are infinite (infshape.py,
zip_infshape); rates and decays (optim.py, MuAdam and MuSGD); the readout's forward factor (layer.py, MuOutput); deviations
of weights that the base draws with a constant one (init.py, constant_std_init_). Attention: examples/Transformer/model.py.
"""

import math
import pathlib
import sys
import tempfile
import unittest

import torch_support
from torch_support import scalewise, torch

from torch import nn


class Mlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc_1 = nn.Linear(3072, width, bias=False)
        self.fc_2 = nn.Linear(width, width, bias=False)
        self.fc_3 = nn.Linear(width, 10, bias=False)


class BasicBlock(nn.Module):
    def __init__(self, planes_in, planes, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(planes_in, planes, 3, stride, 1, bias=False), nn.BatchNorm2d(planes)
        self.conv2, self.bn2 = nn.Conv2d(planes, planes, 3, 1, 1, bias=False), nn.BatchNorm2d(planes)
        self.shortcut = nn.Sequential()
        if stride != 1:
            self.shortcut = nn.Sequential(nn.Conv2d(planes_in, planes, 1, stride, bias=False), nn.BatchNorm2d(planes))


class ResNet18(nn.Module):
    def __init__(self, times):
        super().__init__()
        widths = [int(times * width) for width in (64, 128, 256, 512)]
        self.conv1, self.bn1 = nn.Conv2d(3, widths[0], 3, padding=1, bias=False), nn.BatchNorm2d(widths[0])
        before = widths[0]
        for number, width in enumerate(widths, 1):
            stride = 1 if number == 1 else 2
            setattr(self, f"layer{number}", nn.Sequential(BasicBlock(before, width, stride), BasicBlock(width, width, 1)))
            before = width
        self.linear = nn.Linear(widths[3], 10)


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.in_proj_weight = nn.Parameter(torch.zeros(3 * width, width))
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * width))
        self.out_proj = nn.Linear(width, width)
        self.bias_k, self.bias_v = nn.Parameter(torch.zeros(1, 1, width)), nn.Parameter(torch.zeros(1, 1, width))


class EncoderLayer(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.self_attn = Attention(width)
        self.linear1, self.linear2 = nn.Linear(width, inner), nn.Linear(inner, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)


class Transformer(nn.Module):
    def __init__(self, width, inner, layers=2, words=1000):
        super().__init__()
        self.transformer_encoder = nn.Module()
        self.transformer_encoder.layers = nn.ModuleList(EncoderLayer(width, inner) for _ in range(layers))
        self.encoder = nn.Embedding(words, width)
        self.decoder = nn.Linear(width, words)


KINDS = {"*.in_proj_weight": "linear:oi", "*.bias_k": "bias:kko", "*.bias_v": "bias:kko"}
# Of each: model, base, the readout, what describe() is told, options of plan
EXAMPLES = {
    "MLP": (Mlp(256), Mlp(64), "fc_3", {}, ()),
    "ResNet": (ResNet18(2), ResNet18(0.5), "linear", {}, ()),
    "transformer": (Transformer(128, 512), Transformer(32, 128), "decoder", KINDS, ()),
    "transformer, d_ff for itself": (Transformer(128, 512), Transformer(32, 256), "decoder", KINDS,
                                     ("--set", "d_ff=512", "--set", "base.d_ff=256")),
}


def mup_numbers(sizes, base_sizes, optimizer, is_readout):
    """Rate, decay, variance over the base's, and forward factor of a parameter."""
    ratios = [size / base for size, base in zip(sizes, base_sizes)]
    infinite = [ratio for ratio in ratios if ratio != 1]
    last = infinite[-1] if infinite else 1
    matrix = len(infinite) == 2
    if optimizer == "adamw":
        rate = 1 / last if matrix else 1
    else:
        rate = ratios[0] / ratios[1] if matrix else last
    return {"learning_rate": rate, "weight_decay": 1 / rate, "init_variance": 1 / last if matrix else 1,
            "multiplier": 1 / last if is_readout else 1}


class AgainstMup(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def options(self, model, base, kinds=None):
        for name, one in (("target", model), ("base", base)):
            scalewise.describe(one, self.folder / f"{name}.json", kinds)
        return "--rule", "maximal-update", "--model", self.folder / "target.json", "--base-model", self.folder / "base.json"

    def test_no_number_differs(self):
        compared = 0
        for name, (model, base, readout, kinds, more) in EXAMPLES.items():
            bases = dict(base.named_parameters())
            for optimizer in ("adamw", "sgd"):
                plan = torch_support.plan_of(*self.options(model, base, kinds), "--optimizer", optimizer, *more)
                self.assertEqual(set(plan.entries), set(bases))
                for tensor, parameter in model.named_parameters():
                    wanted = mup_numbers(parameter.shape, bases[tensor].shape, optimizer, tensor == readout + ".weight")
                    entry = plan.entries[tensor]
                    for field, value in wanted.items():
                        if field == "init_variance" and parameter.numel() == max(parameter.shape):
                            continue  # vectors start as constants in both
                        compared += 1
                        self.assertTrue(math.isclose(entry[field]["value"], value, rel_tol=1e-12),
                                        (name, optimizer, tensor, field, entry[field]["value"], value))
        self.assertGreater(compared, 800)

    def test_attention_is_scaled_by_the_size_of_heads(self):
        model, base = Transformer(128, 512), Transformer(32, 128)  # four heads
        plan = torch_support.plan_of(*self.options(model, base, KINDS), "--set", "head_dim=32", "--set", "base.head_dim=8")
        # 1/d in place of 1/√d, times a constant (attn_mult) that makes them equal at the base: √8/d
        self.assertAlmostEqual(plan.multipliers()["attention_scale"], math.sqrt(8) / 32, places=12)

    def test_mistakes_in_the_base_are_errors(self):
        def refusal(model, base):
            return torch_support.plan_output(*self.options(model, base), code=2)

        no_base = torch_support.plan_output(*self.options(Mlp(256), Mlp(64))[:4], code=2)
        self.assertIn("--base-model", no_base)
        self.assertIn("base = the target itself: expected the same model at another width", refusal(Mlp(256), Mlp(256)))
        renamed, transposed = Mlp(256), Mlp(256)
        renamed.fc_two = renamed.fc_2
        del renamed.fc_2
        self.assertIn("fc_two.weight", refusal(renamed, Mlp(64)))
        transposed.fc_3 = nn.Linear(10, 256, bias=False)
        self.assertIn("tensor fc_3.weight", refusal(transposed, Mlp(64)))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
