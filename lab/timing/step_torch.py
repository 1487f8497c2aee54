#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""The PyTorch side of the training step benchmark; the program `step` starts it.

It writes one line of JSON about itself, and then answers the lines of its standard input:

run K    one step that is not timed, then K steps; answers the seconds that the K took.
status   answers JSON: peak memory and what BLAS library is loaded.
"""

import argparse
import ctypes
import json
import os
import sys
import time

import openblas

openblas.choose_kernels()
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402


class Block(nn.Module):
    """Pre-norm attention and MLP. Shapes: x (B, T, C) -> (B, T, C)"""

    def __init__(self, width, heads, init_std, depth):
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        self.mlp_norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        for layer in (self.qkv, self.output, self.up, self.down):
            nn.init.normal_(layer.weight, std=init_std)
            nn.init.zeros_(layer.bias)
        for layer in (self.output, self.down):
            nn.init.normal_(layer.weight, std=init_std / (2 * depth) ** 0.5)

    def forward(self, x, future):
        batch, tokens, width = x.shape
        qkv = self.qkv(self.attention_norm(x)).view(batch, tokens, 3, self.heads, -1)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        scores = torch.matmul(q * (width // self.heads) ** -0.5, k.transpose(2, 3))
        weights = F.softmax(scores.masked_fill_(future, float("-inf")), dim=-1)
        values = torch.matmul(weights, v).transpose(1, 2).reshape(batch, tokens, width)
        x = x + self.output(values)
        return x + self.down(F.gelu(self.up(self.mlp_norm(x))))


class GPT(nn.Module):
    """Shapes: ids (B, T) -> logits (B, T, V)"""

    def __init__(self, arguments):
        super().__init__()
        width, depth, std = arguments.width, arguments.depth, arguments.init_std
        self.tokens = nn.Embedding(arguments.vocab, width)
        self.positions = nn.Parameter(torch.empty(arguments.seq, width))
        self.blocks = nn.ModuleList(
            Block(width, arguments.heads, std, depth) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, arguments.vocab, bias=False)
        for tensor in (self.tokens.weight, self.positions, self.head.weight):
            nn.init.normal_(tensor, std=std)
        future = torch.ones(arguments.seq, arguments.seq, dtype=torch.bool).triu(1)
        self.register_buffer("future", future, persistent=False)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions
        for block in self.blocks:
            x = block(x, self.future)
        return self.head(self.norm(x))


class Trainer:
    """One step: forward, backward, AdamW; on random tokens."""

    def __init__(self, arguments):
        torch.manual_seed(1)
        self.model = GPT(arguments)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, betas=(0.9, 0.95),
                                           weight_decay=0.1, foreach=arguments.foreach)
        size = (4, 2, arguments.batch, arguments.seq)
        self.batches = torch.randint(arguments.vocab, size)
        self.steps = 0

    def step(self):
        ids, targets = self.batches[self.steps % len(self.batches)]
        self.steps += 1
        logits = self.model(ids)
        loss = F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def seconds(self, steps):
        self.step()
        start = time.perf_counter()
        for _ in range(steps):
            self.step()
        return time.perf_counter() - start


def peak_memory():
    """The most memory that this process has held so far, in MiB."""
    with open("/proc/self/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1024
    return 0


def blas():
    """The BLAS libraries that are loaded, and what OpenBLAS says about itself."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        paths = {line[line.index("/"):].strip() for line in maps if "/" in line}
    found = sorted(path for path in paths
                   if ".so" in path and ("blas" in path or "mkl" in path))
    report = {"libraries": found}
    for path in found:
        if os.path.basename(path).startswith("libopenblas"):
            library = ctypes.CDLL(path)
            library.openblas_get_config.restype = ctypes.c_char_p
            report["openblas"] = library.openblas_get_config().decode().strip()
            report["openblas_threads"] = library.openblas_get_num_threads()
            report["openblas_parallel"] = {0: "no", 1: "pthread", 2: "OpenMP"}.get(
                library.openblas_get_parallel())
    return report


def cpu_capability():
    """The instructions that PyTorch's own loops use."""
    label = "CPU capability usage: "
    for line in torch.__config__.show().splitlines():
        if label in line:
            return line.partition(label)[2].strip()
    return "unknown"


def answer(line, trainer):
    words = line.split()
    if words[:1] == ["run"] and len(words) == 2:
        return trainer.seconds(int(words[1]))
    if words == ["status"]:
        return {"peak_memory_mib": peak_memory(), "blas": blas()}
    raise SystemExit(f"step_torch.py: not a command: {line.strip()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("width", "depth", "heads", "seq", "batch", "vocab", "threads"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--init-std", type=float, required=True)
    parser.add_argument("--foreach", action="store_true", help="AdamW by lists of tensors")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    start_memory = peak_memory()
    trainer = Trainer(arguments)
    about = {
        "version": torch.__version__,
        "threads": torch.get_num_threads(),
        "cpu_capability": cpu_capability(),
        "foreach": arguments.foreach,
        "parameters": sum(p.numel() for p in trainer.model.parameters()),
        "start_memory_mib": start_memory,
        "first_loss": trainer.step(),
    }
    print(json.dumps(about), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(line, trainer)), flush=True)


if __name__ == "__main__":
    main()
