#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""depth_methods from outside: depth_methods_cli.py PROGRAM"""

import csv
import pathlib
import re
import subprocess
import sys
import tempfile


def run(*arguments):
    done = subprocess.run([sys.argv[1], *arguments], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def expect(good, what):
    if not good:
        sys.exit(f"failed: {what}")


with tempfile.TemporaryDirectory() as folder:
    status, text, _ = run("--sizes", "48,96", "--out", folder)
    expect(status == 0 and (pathlib.Path(folder) / "depth_methods.csv").exists(), text)

# Orders of Table 3 of Kedia et al. 2024, retyped: forward, backward and sensitivity over N.
status, text, _ = run("--format", "csv")
expect(status == 0, "depth_methods")
table = {(row["method"], row["norm"]): row
         for row in csv.DictReader(text[text.index("method"):].splitlines())}


def order(method, norm, column):
    return float(re.fullmatch(r"N\^(.*)", table[method, norm][column]).group(1))


expected = {("vanilla", "pre", "forward"): 1, ("vanilla", "pre", "gradient"): 1,
            ("ds-init-total", "pre", "forward"): 0, ("ds-init-total", "pre", "gradient"): 0,
            ("ds-init-total", "pre", "mean sensitivity"): -1,
            ("ds-init-total", "post", "mean sensitivity"): -1,
            ("vanilla", "post", "mean sensitivity"): 1,
            ("layer-scale", "pre", "mean sensitivity"): 1,
            ("deep-norm", "post", "gradient"): 0, ("deep-norm", "post", "mean sensitivity"): -0.5,
            ("deep-scale-lm", "pre", "forward"): 0, ("deep-scale-lm", "pre", "gradient"): 0,
            ("deep-scale-lm", "post", "gradient"): 0,
            ("deep-scale-lm", "pre", "mean sensitivity"): 0}
for (method, norm, column), value in expected.items():
    expect(abs(order(method, norm, column) - value) < 0.05, f"{method} {norm} {column}")
rate = float(re.fullmatch(r"e\^\((.*) N\)", table["vanilla", "post"]["gradient"]).group(1))
expect(abs(rate + 0.040) < 0.002, f"vanilla post-norm: {rate} per layer")
status, _, err = run("--sizes", "96,48")
expect(status == 2 and "--sizes" in err, err)
status, _, err = run("--reading", "mine")
expect(status == 2 and "--reading" in err, err)
