# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""A small state-space model, for docs/any_model.md: each channel has a diagonal linear recurrence (S4D)."""

import math

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width, state=16):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.log_step = nn.Parameter(torch.linspace(math.log(0.01), math.log(0.3), width))
        self.log_decay = nn.Parameter(torch.log(torch.arange(1.0, state + 1)).repeat(width, 1))
        self.read = nn.Parameter(torch.randn(width, state) / math.sqrt(state))
        self.skip = nn.Parameter(torch.ones(width))
        self.mix = nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, width)

    def kernel(self, length):
        """The response of each channel to an impulse: sum over states of read · exp(-decay · step · time)."""
        step = self.log_step.exp()[:, None]
        rate = self.log_decay.exp() * step
        times = torch.arange(length, dtype=rate.dtype, device=rate.device)
        return torch.einsum("cs,cst->ct", self.read * step, torch.exp(-rate[..., None] * times))

    def forward(self, x):
        length = x.shape[1]
        signal = self.norm(x).transpose(1, 2)
        spectrum = torch.fft.rfft(self.kernel(length), 2 * length) * torch.fft.rfft(signal, 2 * length)
        y = torch.fft.irfft(spectrum, 2 * length)[..., :length] + self.skip[:, None] * signal
        gate, value = self.mix(nn.functional.gelu(y.transpose(1, 2))).chunk(2, -1)
        return x + self.out(torch.sigmoid(gate) * value)


class StateSpace(nn.Module):
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
