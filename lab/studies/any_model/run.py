#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Whether learning rates transfer in models that are not transformers, and how often the check is wrong about them.

  python3 lab/studies/any_model/run.py build/release/tools

judges the sweeps that transfer.py has made, and writes the tables of README.md again, that of verdicts.py too.
"""

import csv
import math
import pathlib
import sys
from collections.abc import Callable

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "shared"))
import page  # noqa: E402
import results_page  # noqa: E402
from results_page import Experiment  # noqa: E402

FOLDER = "lab/studies/any_model/results"
MODELS = {"state_space": "state-space", "experts": "mixture of experts", "convolution": "convolutions"}
OTHERS = {"mlp": "MLP without norms", "residual": "residual MLP", "mixer": "gated mixer of tokens", "recurrent": "GRU",
          "encoder": "`nn.TransformerEncoderLayer`"}
VERDICTS = ("pass", "inconclusive", "fail")
ARMS = {"plan": "maximal update", "one-rate": "one rate for all tensors"}
EXPERIMENTS = {f"{model}_{arm}": Experiment("learning_rate_transfer", options, options, ("verdict", "reason"))
               for model in MODELS for arm in ARMS if (results_page.ROOT / FOLDER / f"{model}.csv").exists()
               for options in [f"--judge {FOLDER}/{model}.csv --where arm={arm}"]}


def at_most(count: int, of: int, share: float) -> float:
    """The probability of so many or fewer."""
    return sum(math.comb(of, n) * share**n * (1 - share)**(of - n) for n in range(count + 1))


def interval(count: int, of: int) -> tuple[float, float]:
    """Of a share, 95 %. Source: Clopper and Pearson 1934, Biometrika 26, p. 404"""
    def where(below: Callable[[float], bool]) -> float:
        low, high = 0.0, 1.0
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if below(middle) else (low, middle)
        return low
    return (0.0 if count == 0 else where(lambda share: 1 - at_most(count - 1, of, share) < 0.025),
            1.0 if count == of else where(lambda share: at_most(count, of, share) > 0.025))


def counts(verdicts: list[str]) -> list[str]:
    """How many, and of each verdict how many, with the interval in percent."""
    cells = [str(len(verdicts))]
    for word in VERDICTS:
        count = verdicts.count(word)
        low, high = (100 * end for end in interval(count, len(verdicts)))
        cells.append(f"{count} ({low:.1f} to {high:.1f})")
    return cells


def verdict_tables() -> dict[str, str]:
    rows = list(csv.DictReader((results_page.ROOT / FOLDER / "verdicts.csv").open(encoding="utf-8")))
    right = [row for row in rows if row["case"] == "as planned"]
    wrong = [row for row in rows if row["case"] != "as planned"]
    by_case = [("as planned", right), *((case, [row for row in wrong if row["case"] == case])
                                        for case in dict.fromkeys(row["case"] for row in wrong)), ("all mistakes", wrong)]
    names = {**MODELS, **OTHERS}
    per_model = [[names[model], *(str(sum(row["model"] == model and row["verdict"] == word for row in some))
                                  for some in (right, wrong) for word in VERDICTS)] for model in names]
    return {"errors": page.table(["", "groups", *VERDICTS], [[case, *counts([row["verdict"] for row in some])] for case, some in by_case]),
            "models": page.table(["", *(f"{kind}: {word}" for kind in ("as planned", "mistakes") for word in VERDICTS)], per_model)}


def tables(results: dict) -> dict[str, str]:
    rows = [[name, set_up, f"**{results[key]['verdict']}**", results[key]["reason"]]
            for model, name in MODELS.items() for arm, set_up in ARMS.items() for key in [f"{model}_{arm}"] if key in results]
    return {"verdicts": page.table(["model", "set-up", "verdict", "because"], rows), **verdict_tables()}


if __name__ == "__main__":
    results_page.main("any_model", EXPERIMENTS, tables, lambda results, folder: None)
