# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""The models of docs/any_model.md, their data and their plans, for the two scripts of this study."""

import math
import pathlib
import subprocess
import sys
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

import torch

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "examples/pytorch")]
import convolution  # noqa: E402
import experts  # noqa: E402
import scalewise  # noqa: E402
import state_space  # noqa: E402

BASE = 16
Batch = Tuple[torch.Tensor, torch.Tensor]
Data = Tuple[Callable[[torch.Generator], Batch], Batch]


def text_batches() -> Data:
    """Batches of a novel, and a held-out one."""
    data = torch.tensor(list((ROOT / "tools/data/austen_persuasion.txt").read_bytes()))
    train, held_out = data[:-40000], data[-40000:]

    def batch(numbers: torch.Generator, part: torch.Tensor = train, count: int = 8) -> Batch:
        starts = torch.randint(len(part) - 65, (count,), generator=numbers)
        windows = torch.stack([part[s:s + 65] for s in starts])
        return windows[:, :-1], windows[:, 1:]

    return batch, batch(torch.Generator().manual_seed(0), held_out, 64)


def digit_batches() -> Data:
    """Batches of written digits, and 500 held-out ones."""
    rows = torch.tensor([[int(n) for n in line.split(",")]
                         for line in (ROOT / "tools/data/digits.csv").read_text().split()])
    rows = rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))]
    images, labels = rows[:, :64].float().reshape(-1, 1, 8, 8) / 8 - 1, rows[:, 64]

    def batch(numbers: torch.Generator) -> Batch:
        chosen = torch.randint(len(rows) - 500, (32,), generator=numbers)
        return images[chosen], labels[chosen]

    return batch, (images[-500:], labels[-500:])


class Described(NamedTuple):
    """How a model is made, its data, and what describe(), plan and apply() have to be told."""

    make: Callable[[int, int], torch.nn.Module]  # of a width and a depth
    data: Callable[[], Data]
    kinds: Dict[str, str] = {}
    vectors: List[str] = []  # tensors of this role, which keep their own initial values


MODELS = {
    "state_space": Described(lambda width, depth: state_space.StateSpace(width, depth, 256), text_batches,
                             vectors=["*.log_step", "*.log_decay", "*.read", "*.skip"]),
    "convolution": Described(convolution.Convolution, digit_batches),
    "experts": Described(lambda width, depth: experts.Experts(width, depth, 256), text_batches,
                         kinds={"*.up": "linear:eoi", "*.down": "linear:eoi"})}


def base_std(name: str) -> float:
    """1/√fan-in of the base; embeddings 1."""
    fans = {"head.weight": BASE, "stem.weight": 9, "embed.weight": 1}
    per_input = 9 if "conv" in name else 2 if name.endswith(".down") else 1
    return 1 / math.sqrt(fans.get(name, per_input * BASE))


def plan_of(program: Any, model: str, width: int, depth: int, folder: pathlib.Path, *roles: str) -> scalewise.Plan:
    """A plan by maximal update; `roles` are further ones, "PATTERN=ROLE"."""
    one = MODELS[model]
    for file, of in (("target", width), ("base", BASE)):
        scalewise.describe(one.make(of, depth), folder / f"{file}.json", one.kinds)
    given = [word for role in (*(f"{pattern}=vector" for pattern in one.vectors), *roles) for word in ("--role", role)]
    subprocess.run([program, "--rule", "maximal-update", "--model", folder / "target.json", "--base-model",
                    folder / "base.json", "--fold", "--format", "json", "--save", folder / "plan.json", *given],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return scalewise.load(folder / "plan.json")


def loss_of(net: torch.nn.Module, batch: Batch) -> torch.Tensor:
    """Cross-entropy, of each token or of the image."""
    return torch.nn.functional.cross_entropy(net(batch[0]).flatten(0, -2), batch[1].flatten())
