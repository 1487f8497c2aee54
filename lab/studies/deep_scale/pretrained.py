#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""What can be done with deep models once they are trained: fine-tuning, low-rank adapters, fewer layers, 8 bits.

  /usr/bin/python3 lab/studies/deep_scale/pretrained.py build/release/tools

needs PyTorch, makes the models that are missing in results/pretrained.json, a line each, and prints them.
"""

import argparse
import copy
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import torch
from torch import nn
from torch.nn import functional as F

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / part) for part in ("python", "examples/pytorch", "lab/shared")]
import page  # noqa: E402
import scalewise  # noqa: E402
from small_gpt import Attention  # noqa: E402

KEPT = pathlib.Path(__file__).parent / "results/pretrained.json"
DEPTH, WIDTH, HEADS, CONTEXT, BATCH = 12, 32, 2, 32, 4
RANK = 4  # of adapters; their factor is half, as in the paper (16/32)
# Rule, place of the norms, and the rate that run.py has tuned for 16 layers of the same width.
ARMS = {"vanilla pre": ("xavier", "pre", 0.01), "DeepScaleLM pre": ("deep-scale-lm-simple", "pre", 0.005),
        "DeepScaleLM post": ("deep-scale-lm-simple", "post", 0.0025)}
FULL, ADAPTERS = 0.25, 0.02  # rate of fine-tuning: a share of that rate, and one for all
FORMATS = {"E4M3": (3, -6, 448.0), "E5M2": (2, -14, 57344.0)}  # digits, lowest exponent, largest number
REMOVED = (1, 2, 3, 4, 6)


def cast(x, digits, lowest, largest):
    """The nearest number of 8 bits."""
    x = x.clamp(-largest, largest)
    exponent = torch.frexp(x)[1].sub(1).clamp(min=lowest)
    unit = torch.ldexp(torch.ones_like(x), exponent - digits)
    return (x / unit).round() * unit


class Linear(nn.Linear):
    """With an adapter or numbers of 8 bits, where they are set."""

    def __init__(self, inputs, outputs, bias=True):
        super().__init__(inputs, outputs, bias)
        self.down = self.up = self.form = None
        self.inputs = False  # of 8 bits, too

    def forward(self, x):
        weight = self.weight
        if self.form:
            weight = cast(weight, *FORMATS[self.form])
            x = cast(x, *FORMATS[self.form]) if self.inputs else x
        y = F.linear(x, weight, self.bias)
        return y if self.down is None else y + 0.5 * F.linear(F.linear(x, self.down), self.up)


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_fc, self.c_proj = Linear(WIDTH, 4 * WIDTH), Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return self.c_proj(F.relu(self.c_fc(x)))


class Block(nn.Module):
    def __init__(self, scale, residual, place):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(WIDTH), Attention(Linear, WIDTH, HEADS, HEADS, scale)
        self.ln_2, self.mlp = nn.LayerNorm(WIDTH), Mlp()
        (self.skip, self.branch), self.place = residual, place

    def forward(self, x):
        for norm, part in ((self.ln_1, self.attn), (self.ln_2, self.mlp)):
            if self.place == "pre":
                x = self.skip * x + self.branch * part(norm(x))
            else:
                x = norm(self.skip * x + self.branch * part(x))
        return x


class Model(nn.Module):
    """With nanoGPT's names. Post-norm, ln_f is not used."""

    def __init__(self, plan, place):
        super().__init__()
        given = plan.multipliers()
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(256, WIDTH), "wpe": nn.Embedding(CONTEXT, WIDTH), "ln_f": nn.LayerNorm(WIDTH),
            "h": nn.ModuleList(Block(given["attention_scale"], one, place) for one in given["residuals"])})
        self.lm_head, self.factor, self.place = Linear(WIDTH, 256, bias=False), given["logit_multiplier"], place

    def forward(self, tokens):
        t = self.transformer
        x = t.wte(tokens) + t.wpe(torch.arange(tokens.shape[1]))
        for block in t.h:
            x = block(x)
        return self.factor * self.lm_head(t.ln_f(x) if self.place == "pre" else x)


def plan_of(tools, rule):
    """A plan of scalewise for these sizes."""
    sizes = {"d_model": WIDTH, "d_ff": 4 * WIDTH, "heads": HEADS, "depth": DEPTH, "vocab": 256, "context": CONTEXT,
             "tied_head": "false", "activation": "relu", **({} if rule == "xavier" else {"dropout": 0})}
    words = [word for key, value in sizes.items() for word in ("--set", f"{key}={value}")]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([tools / "plan", "--rule", rule, "--preset", "gpt2", *words, "--names", "nanogpt", "--format", "json", "--save",
                        f"{folder}/plan.json"], check=True, stdout=subprocess.DEVNULL)
        return scalewise.load(f"{folder}/plan.json")


NOVEL = (ROOT / "tools/data/austen_persuasion.txt").read_bytes()
TEXTS = {"novel": NOVEL, "capitals": NOVEL.upper()}


def batch(text, numbers, count=BATCH, held_out=False):
    """Windows of a text, whose last 40,000 bytes are held out."""
    first, last = (len(text) - 40000, len(text)) if held_out else (0, len(text) - 40000)
    starts = torch.randint(first, last - CONTEXT - 1, (count,), generator=numbers).tolist()
    windows = torch.tensor([list(text[s:s + CONTEXT + 1]) for s in starts])
    return windows[:, :-1], windows[:, 1:].flatten()


@torch.no_grad()
def loss(model, text="novel"):
    """In nats per byte, of 256 held-out sequences."""
    x, y = batch(TEXTS[text], torch.Generator().manual_seed(0), 256, held_out=True)
    return F.cross_entropy(model(x).flatten(0, 1), y).item()


def train(model, groups, text, steps, seed):
    """AdamW with a warm-up and a cosine to zero, from the groups' rates, gradients clipped at 1."""
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.95), weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1, (step + 1) / (steps / 20)) * 0.5 * (1 + math.cos(math.pi * step / steps)))
    numbers = torch.Generator().manual_seed(seed)
    learned = [p for group in optimizer.param_groups for p in group["params"]]
    for _ in range(steps):
        x, y = batch(TEXTS[text], numbers)
        optimizer.zero_grad()
        F.cross_entropy(model(x).flatten(0, 1), y).backward()
        nn.utils.clip_grad_norm_(learned, 1.0)
        optimizer.step()
        schedule.step()
    return model


def pretrained(plan, place, rate, steps, seed):
    model = Model(plan, place)
    scalewise.apply(model, plan, seed=seed)
    return train(model, scalewise.param_groups(model, plan, lr=rate), "novel", steps, seed)


def fine_tuned(model, plan, kind, rate, steps, seed):
    """A copy that has learned the same novel in capitals, with all its weights or with adapters alone."""
    model = copy.deepcopy(model)
    if kind == "full":
        return train(model, scalewise.param_groups(model, plan, lr=rate), "capitals", steps, seed)
    torch.manual_seed(seed)
    added = []
    for one in [m for m in model.modules() if isinstance(m, Linear)]:
        one.down = nn.Parameter(torch.randn(RANK, one.in_features) / math.sqrt(one.in_features))
        one.up = nn.Parameter(torch.zeros(one.out_features, RANK))
        added += [one.down, one.up]
    return train(model, [{"params": added, "lr": rate}], "capitals", steps, seed)


def without(model, removed, first):
    """The loss without some of the first or of the last layers."""
    blocks = model.transformer["h"]
    model.transformer["h"] = blocks[removed:] if first else blocks[:len(blocks) - removed]
    found = loss(model)
    model.transformer["h"] = blocks
    return found


def of_8_bits(model, form, inputs):
    model = copy.deepcopy(model)
    for one in model.modules():
        if isinstance(one, Linear):
            one.form, one.inputs = form, inputs
    return loss(model)


def measured(model, plan, rate, steps, seed):
    rates = {"full": FULL * rate, "adapters": ADAPTERS}
    return {"loss": loss(model), "capitals": loss(model, "capitals"),
            **{kind: loss(fine_tuned(model, plan, kind, of, steps, seed), "capitals") for kind, of in rates.items()},
            **{f"without {end} {m}": without(model, m, end == "first") for end in ("first", "last") for m in REMOVED},
            **{f"{form} {of}": of_8_bits(model, form, of == "all") for form in FORMATS for of in ("weights", "all")}}


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("tools", type=pathlib.Path, help="the folder of the built programs")
    options.add_argument("--steps", type=int, default=150)
    options.add_argument("--fine-steps", type=int, default=30)
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS)[:2])
    options.add_argument("--results", type=pathlib.Path, default=KEPT)
    a = options.parse_args()
    torch.set_num_threads(1)
    kept = json.loads(a.results.read_text()) if a.results.exists() else {
        "command": f"pretrained.py --steps {a.steps} --fine-steps {a.fine_steps}", "runs": []}
    made = {(run["arm"], run["seed"]) for run in kept["runs"]}
    plans = {arm: plan_of(a.tools, ARMS[arm][0]) for arm in a.arms}
    for seed in range(1, a.seeds + 1):
        for arm, plan in plans.items():
            if (arm, seed) in made:
                continue
            _, place, rate = ARMS[arm]
            model = pretrained(plan, place, rate, a.steps, seed)
            kept["runs"].append({"arm": arm, "seed": seed, **measured(model, plan, rate, a.fine_steps, seed)})
            page.keep(a.results, kept)
            print(json.dumps(kept["runs"][-1]), flush=True)


if __name__ == "__main__":
    main()
