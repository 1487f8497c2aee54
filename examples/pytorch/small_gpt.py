# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""A small GPT with the tensor names of nanoGPT, or of Hugging Face's GPT-2 and its Conv1D."""

import math

import torch
from torch import nn
from torch.nn import functional as F


class InOut(nn.Module):
    """A linear layer that stores its inputs first, as Conv1D does."""

    def __init__(self, inputs, outputs, bias=True):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs).normal_(0, 0.02))
        self.bias = nn.Parameter(torch.zeros(outputs)) if bias else None

    def forward(self, x):
        y = x @ self.weight
        return y if self.bias is None else y + self.bias


class Attention(nn.Module):
    def __init__(self, linear, width, heads, kv_heads, scale):
        super().__init__()
        self.heads, self.scale = heads, scale
        self.parts = [width, width // heads * kv_heads, width // heads * kv_heads]
        self.c_attn, self.c_proj = linear(width, sum(self.parts)), linear(width, width)

    def forward(self, x):
        batch, time, width = x.shape
        q, k, v = (part.view(batch, time, -1, width // self.heads).transpose(1, 2)
                   for part in self.c_attn(x).split(self.parts, 2))
        k, v = (part.repeat_interleave(self.heads // part.shape[1], 1) for part in (k, v))
        scores = self.scale * (q @ k.transpose(2, 3))
        mask = torch.ones(time, time, dtype=torch.bool).tril()
        mixed = scores.masked_fill(~mask, -math.inf).softmax(-1) @ v
        return self.c_proj(mixed.transpose(1, 2).reshape(batch, time, width))


class Mlp(nn.Module):
    def __init__(self, linear, width, inner):
        super().__init__()
        self.c_fc, self.c_proj = linear(width, inner), linear(inner, width)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x)))


class Block(nn.Module):
    def __init__(self, linear, width, heads, kv_heads, scale, residual):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(width), Attention(linear, width, heads, kv_heads, scale)
        self.ln_2, self.mlp = nn.LayerNorm(width), Mlp(linear, width, 4 * width)
        self.skip, self.branch = residual

    def forward(self, x):
        x = self.skip * x + self.branch * self.attn(self.ln_1(x))
        return self.skip * x + self.branch * self.mlp(self.ln_2(x))


class SmallGpt(nn.Module):
    """`multipliers` are those of a plan: scalewise.Plan.multipliers()."""

    def __init__(self, multipliers, vocab, context, width, heads, linear=nn.Linear, tied=False, kv_heads=None):
        super().__init__()
        blocks = [Block(linear, width, heads, kv_heads or heads, multipliers["attention_scale"], residual)
                  for residual in multipliers["residuals"]]
        self.transformer = nn.ModuleDict({"wte": nn.Embedding(vocab, width), "wpe": nn.Embedding(context, width),
                                          "h": nn.ModuleList(blocks), "ln_f": nn.LayerNorm(width)})
        self.lm_head = nn.Linear(width, vocab, bias=False)
        if tied:
            self.lm_head.weight = self.transformer.wte.weight
        self.embedding, self.logit = multipliers["embedding_multiplier"], multipliers["logit_multiplier"]

    def forward(self, tokens):
        t = self.transformer
        x = self.embedding * t.wte(tokens) + t.wpe(torch.arange(tokens.shape[1]))
        for block in t.h:
            x = block(x)
        return self.logit * self.lm_head(t.ln_f(x))
