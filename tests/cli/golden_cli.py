#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""What golden refuses, from outside: golden_cli.py PROGRAM RULES.JSON"""

import json
import pathlib
import subprocess
import sys
import tempfile

program, rules = sys.argv[1:]
with open(rules, encoding="utf-8") as file:
    every = json.load(file)["cases"]


def check(cases, code, message, *arguments, name="rules.json"):
    """Runs golden on a folder whose rules.json has these cases; none without a list."""
    with tempfile.TemporaryDirectory() as folder:
        if cases is not None:
            text = json.dumps({"cases": cases})
            (pathlib.Path(folder) / "rules.json").write_text(text, encoding="utf-8")
        done = subprocess.run([program, "--dir", folder, *arguments, name], capture_output=True,
                              text=True, check=False)
    output = done.stdout + done.stderr
    if done.returncode != code or message not in output:
        sys.exit(f"expected {code} and '{message}', got {done.returncode}\n{output}")


def first(change):
    """The first case, changed."""
    case = json.loads(json.dumps(every[0]))
    change(case)
    return [case]


# Files that are missing or unknown; nothing is skipped.
check(None, 1, "rules.json: no such file")
check(None, 1, "signal_propagation.json: no such file", name="signal_propagation.json")
check(None, 2, "did you mean rules.json?", name="rule.json")

# A case as it is, and with one thing changed.
check(every[:1], 0, " 0 failed")
check(first(lambda case: case["tensors"].pop()), 1, "has no row for layer.0.mlp_down")
check(first(lambda case: case["tensors"].append(["no_such", "normal", 1, 0, 1, 1, 1, 1])), 1,
      "the plan has no no_such")
check(first(lambda case: case["tensors"].append(case["tensors"][0])), 1, "token_embedding again")
check(first(lambda case: case["tensors"][0].pop()), 1, "no row of 8 cells")
for column in range(1, 7):
    def change(case, at=column):
        row = case["tensors"][0]
        row[at] = "uniform" if at == 1 else row[at] + 1e-9
    check(first(change), 1, f"tensors[0][{column}]: token_embedding: expected ")
check(first(lambda case: case["model"]["residuals"].update(main=[1, 2])), 1, "expected 2, got 1")
check([], 1, " 0 numbers checked")

# A rule, or an optimizer of a rule, without a case.
for rule, optimizer in (("nu-gpt", "adamw"), ("shallow-he", "sgd")):
    rest = [case for case in every if (case["policy"], case["optimizer"]) != (rule, optimizer)]
    check(rest, 1, f"none for {rule} under {optimizer}", "--every-rule")
