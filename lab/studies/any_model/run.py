#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Whether learning rates transfer in models that are no transformers.

  python3 lab/studies/any_model/run.py build/release/tools

judges the sweeps that transfer.py has made, and writes the table of README.md again.
"""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "shared"))
import page  # noqa: E402
import results_page  # noqa: E402
from results_page import Experiment  # noqa: E402

FOLDER = "lab/studies/any_model/results"
MODELS = {"state_space": "state-space", "experts": "mixture of experts", "convolution": "convolutions"}
ARMS = {"plan": "maximal update", "one-rate": "one rate for all tensors"}
EXPERIMENTS = {f"{model}_{arm}": Experiment("learning_rate_transfer", options, options, ("verdict", "reason"))
               for model in MODELS for arm in ARMS if (results_page.ROOT / FOLDER / f"{model}.csv").exists()
               for options in [f"--judge {FOLDER}/{model}.csv --where arm={arm}"]}


def tables(results: dict) -> dict[str, str]:
    rows = [[name, set_up, f"**{results[key]['verdict']}**", results[key]["reason"]]
            for model, name in MODELS.items() for arm, set_up in ARMS.items() for key in [f"{model}_{arm}"] if key in results]
    return {"verdicts": page.table(["model", "set-up", "verdict", "because"], rows)}


if __name__ == "__main__":
    results_page.main("any_model", EXPERIMENTS, tables, lambda results, folder: None)
