# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""A small mixture of experts, for docs/any_model.md: no shape describes it."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width, experts=4):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.router = nn.Linear(width, experts, bias=False)
        self.up = nn.Parameter(torch.zeros(experts, 2 * width, width))
        self.down = nn.Parameter(torch.zeros(experts, width, 2 * width))

    def forward(self, x):
        hidden = self.norm(x)
        weights = self.router(hidden).softmax(-1)
        inner = torch.einsum("...i,eoi->...eo", hidden, self.up).relu()
        return x + torch.einsum("...eo,eio,...e->...i", inner, self.down, weights)


class Experts(nn.Module):
    def __init__(self, width, depth, vocab=1000):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocab, bias=False)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))
