#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Makes a small sweep and a few verdicts of the study any_model, from nothing. Without PyTorch it exits with 77.

    any_model_quick.py TOOLS
"""

import csv
import pathlib
import subprocess
import sys
import tempfile

STUDY = pathlib.Path(__file__).resolve().parents[1] / "studies/any_model"
tools = sys.argv[1]

try:
    import torch  # noqa: F401
except ImportError:
    print("skipped: PyTorch is not installed for", sys.executable)
    sys.exit(77)


def run(program: str, *options: str) -> str:
    return subprocess.run([sys.executable, STUDY / program, *options], stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout


with tempfile.TemporaryDirectory() as folder:
    sweep = ("experts", tools, "--widths", "32", "64", "--rates", "0.01", "0.1", "--seeds", "1", "--steps", "3", "--results", folder)
    for _ in range(2):  # the second time nothing is missing
        run("transfer.py", *sweep)
    rows = list(csv.DictReader(pathlib.Path(folder, "experts.csv").open()))
    assert len(rows) == 8 and all(1 < float(row["loss"]) < 8 for row in rows), rows
    run("verdicts.py", tools, "--correct", "1", "--wrong", "0", "--model", "experts", "--model", "mixer", "--results", folder)
    run("verdicts.py", tools, "--correct", "0", "--wrong", "1", "--model", "residual", "--results", folder)
    found = {(row["model"], row["case"]): row["verdict"] for row in csv.DictReader(pathlib.Path(folder, "verdicts.csv").open())}
assert found.pop(("experts", "as planned")) == found.pop(("mixer", "as planned")) == "pass", found
assert len(found) == 7 and list(found.values()).count("fail") >= 6 and "pass" not in found.values(), found
