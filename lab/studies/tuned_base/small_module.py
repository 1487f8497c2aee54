# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Our own small GPT as gpu.py takes it, with biases and a tied head: nanoGPT's two classes."""

import dataclasses
import math
import pathlib
import sys

from torch.nn import functional as F

sys.path.append(str(pathlib.Path(__file__).resolve().parents[3] / "examples/pytorch"))
from small_gpt import SmallGpt  # noqa: E402


@dataclasses.dataclass
class GPTConfig:
    block_size: int
    vocab_size: int
    n_layer: int
    n_head: int
    n_embd: int
    dropout: float
    bias: bool


class GPT(SmallGpt):
    def __init__(self, config):
        multipliers = {"attention_scale": 1 / math.sqrt(config.n_embd // config.n_head), "residuals": [(1, 1)] * config.n_layer,
                       "embedding_multiplier": 1, "logit_multiplier": 1}
        super().__init__(multipliers, config.vocab_size, config.block_size, config.n_embd, config.n_head, tied=True)

    def forward(self, tokens, targets):
        logits = super().forward(tokens)
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())
