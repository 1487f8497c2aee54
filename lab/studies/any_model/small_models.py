# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""More kinds of models, whose plans verdicts.py counts right and wrong verdicts on."""

import torch
from torch import nn


class Mlp(nn.Module):
    """Layers without norms."""

    def __init__(self, width, depth, classes=10):
        super().__init__()
        self.first = nn.Linear(64, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.head = nn.Linear(width, classes)

    def forward(self, images):
        x = self.first(images.flatten(1)).relu()
        for layer in self.layers:
            x = layer(x).relu()
        return self.head(x)


class ResidualBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


class Residual(nn.Module):
    """Residual layers with norms before them."""

    def __init__(self, width, depth, classes=10):
        super().__init__()
        self.first = nn.Linear(64, width)
        self.blocks = nn.ModuleList(ResidualBlock(width) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, images):
        x = self.first(images.flatten(1))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class MixerBlock(nn.Module):
    """A gate that mixes tokens (gMLP); its matrix has the number of tokens on both sides."""

    def __init__(self, width, tokens):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.gate_norm = nn.LayerNorm(2 * width)
        self.mix = nn.Linear(tokens, tokens)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        value, gate = nn.functional.gelu(self.up(self.norm(x))).chunk(2, -1)
        gate = self.mix(self.gate_norm(gate).transpose(1, 2)).transpose(1, 2)
        return x + self.down(value * gate)


class Mixer(nn.Module):
    """Each row of an image is a token."""

    def __init__(self, width, depth, classes=10):
        super().__init__()
        self.first = nn.Linear(8, width)
        self.blocks = nn.ModuleList(MixerBlock(width, 8) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, images):
        x = self.first(images.squeeze(1))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(1))


class Recurrent(nn.Module):
    """Gated recurrent units, one above the other."""

    def __init__(self, width, depth, vocab=256):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.layers = nn.ModuleList(nn.GRU(width, width, batch_first=True) for _ in range(depth))
        self.head = nn.Linear(width, vocab, bias=False)

    def forward(self, tokens):
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x)[0]
        return self.head(x)


class Encoder(nn.Module):
    """PyTorch's own layers with heads of 16, which see all tokens up to their own."""

    def __init__(self, width, depth, vocab=256, context=64):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.positions = nn.Embedding(context, width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, width // 16, 2 * width, dropout=0.0, batch_first=True, norm_first=True)
            for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocab, bias=False)

    def forward(self, tokens):
        length = tokens.shape[1]
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        x = self.embed(tokens) + self.positions(torch.arange(length))
        for layer in self.layers:
            x = layer(x, later)
        return self.head(self.norm(x))
