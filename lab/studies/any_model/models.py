# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""The models of docs/any_model.md and of small_models.py, their data and their plans, for the scripts of this study."""

import collections
import functools
import math
import pathlib
import subprocess
import sys
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

import torch

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "examples/pytorch"), str(pathlib.Path(__file__).resolve().parent)]
import convolution  # noqa: E402
import experts  # noqa: E402
import scalewise  # noqa: E402
import small_models  # noqa: E402
import state_space  # noqa: E402

BASE = 16
Batch = Tuple[torch.Tensor, torch.Tensor]
Data = Tuple[Callable[[torch.Generator], Batch], Batch]


@functools.lru_cache(maxsize=None)
def text_batches() -> Data:
    """Batches of a novel, and a held-out one."""
    data = torch.tensor(list((ROOT / "tools/data/austen_persuasion.txt").read_bytes()))
    train, held_out = data[:-40000], data[-40000:]

    def batch(numbers: torch.Generator, part: torch.Tensor = train, count: int = 8) -> Batch:
        starts = torch.randint(len(part) - 65, (count,), generator=numbers)
        windows = torch.stack([part[s:s + 65] for s in starts])
        return windows[:, :-1], windows[:, 1:]

    return batch, batch(torch.Generator().manual_seed(0), held_out, 64)


@functools.lru_cache(maxsize=None)
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
                         kinds={"*.up": "linear:eoi", "*.down": "linear:eoi"}),
    "mlp": Described(small_models.Mlp, digit_batches),
    "residual": Described(small_models.Residual, digit_batches),
    "mixer": Described(small_models.Mixer, digit_batches),
    "recurrent": Described(small_models.Recurrent, text_batches),
    "encoder": Described(small_models.Encoder, text_batches)}


def base_stds(model: str, depth: int) -> Dict[str, float]:
    """1/√fan-in of the base by the name of a tensor; embeddings 1, as for them each token reads one row."""
    base = scalewise.describe(MODELS[model].make(BASE, depth), kinds=MODELS[model].kinds)
    fans = {tensor["name"]: math.prod(size for axis, size in zip(tensor["axes"], tensor["sizes"]) if axis in "ik")
            for tensor in base["tensors"] if tensor["kind"] != "embedding"}
    return collections.defaultdict(lambda: 1.0, {name: fan**-0.5 for name, fan in fans.items()})


def plan_of(program: Any, model: str, width: int, depth: int, folder: pathlib.Path, *options: str) -> scalewise.Plan:
    """A plan by maximal update; `options` are further ones of plan."""
    one = MODELS[model]
    for file, of in (("target", width), ("base", BASE)):
        scalewise.describe(one.make(of, depth), folder / f"{file}.json", one.kinds)
    given = [word for pattern in one.vectors for word in ("--role", f"{pattern}=vector")]
    subprocess.run([program, "--rule", "maximal-update", "--model", folder / "target.json", "--base-model",
                    folder / "base.json", "--format", "json", "--save", folder / "plan.json", *given, *options],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return scalewise.load(folder / "plan.json")


def loss_of(net: torch.nn.Module, batch: Batch) -> torch.Tensor:
    """Cross-entropy, of each token or of the image."""
    return torch.nn.functional.cross_entropy(net(batch[0]).flatten(0, -2), batch[1].flatten())
