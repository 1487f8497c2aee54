# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""A small residual network of convolutions, for docs/any_model.md."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm1 = nn.GroupNorm(1, width)
        self.conv1 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm2 = nn.GroupNorm(1, width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)

    def forward(self, x):
        return x + self.conv2(self.norm2(self.conv1(self.norm1(x).relu())).relu())


class Convolution(nn.Module):
    def __init__(self, width, depth, classes=10):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, padding=1, bias=False)
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.norm = nn.GroupNorm(1, width)
        self.head = nn.Linear(width, classes)

    def forward(self, images):
        x = self.stem(images)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean((2, 3)))
