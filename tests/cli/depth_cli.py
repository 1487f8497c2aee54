#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""deep_init from outside: depth_cli.py FOLDER-OF-PROGRAMS"""

import csv
import json
import pathlib
import subprocess
import sys
import tempfile

programs = pathlib.Path(sys.argv[1])


def run(name, *arguments):
    done = subprocess.run([programs / name, *arguments], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def expect(good, what):
    if not good:
        sys.exit(f"failed: {what}")


def deep_init(*arguments, code=0):
    status, out, err = run("deep_init", *arguments, "--format", "json", "--quiet")
    expect(status == code, f"deep_init {arguments}: exit code {status}, {err}")
    return json.loads(out)


def refused(field, *arguments):
    status, out, err = run("deep_init", *arguments)
    expect(status == 2 and not out and field in err, f"{arguments}: {status} {out} {err}")


# The standard deviations that it prints: section 3.5 of the source, at r = 0.25 before dropout.
small = ["--depth", "6", "--width", "64", "--heads", "2", "--batch", "4", "--seq", "32"]
result = deep_init(*small, "--input-correlation", "0.25")
layers = result["variances"]
expect(len(layers) == 6, "a row per layer")
r = 0.25 * 0.9
expect(abs(layers[0]["value"] - (0.9 / r) ** 0.5 / 64) < 1e-12, "value of the first layer")
expect(abs(layers[0]["mlp_up"] - 0.45**0.5 / 64) < 1e-12, "MLP")
expect(abs(layers[0]["query"] - 1 / 64) < 1e-15, "query")
expect(abs(layers[0]["branch"] ** 2 - 2 / 6) < 1e-12, "branch")
expect(abs(result["profile"][0]["correlation"] - r) < 1e-12, "correlation of the input")
expect(abs(result["profile"][0]["variance"] - 1) < 1e-12, "variance of the input")
expect(result["verdict"] == "pass", "DeepScaleLM stays in bounds")

# Without it, of the data: 1/r = (n value)², whatever the dropout; two bytes of the novel are the same with a chance
# of about 0.065, which positions halve. What --set plans otherwise is said once.
for dropout in ("0", "0.3"):
    value = deep_init(*small, "--dropout", dropout)["variances"][0]["value"]
    expect(0.028 < (64 * value) ** -2 < 0.038, f"correlation of the data: {(64 * value) ** -2}")
    expect(abs(deep_init(*small, "--dropout", dropout, "--set", f"dropout={dropout}")["variances"][0]["value"] - value) < 1e-15, "the same")
status, _, err = run("deep_init", *small, "--set", "dropout=0.2", "--set", "input_correlation=0.3", "--quiet")
expect(status == 0 and err.count("\n") == 2 and "planned with dropout=0.2, but the run has 0.1" in err
       and "planned with input_correlation=0.3, but the data has 0.03" in err, err)

# Warnings, and the exit code that comes with them.
for dropout, warning in (("0", "rank collapse"), ("0.1", "vanish")):
    result = deep_init("--rule", "xavier", "--depth", "192", "--width", "64", "--placement", "post",
                       "--bidirectional", "--dropout", dropout, code=1)
    texts = " ".join(row["text"] for row in result["warnings"])
    expect(warning in texts, f"dropout {dropout}: {texts}")
    expect(("rank collapse" in texts) != ("vanish" in texts), f"dropout {dropout}: {texts}")
# Under a causal mask too, where sums over equal keys are rounded.
result = deep_init("--rule", "xavier", "--depth", "96", "--width", "64", "--placement", "post",
                   "--dropout", "0", code=1)
expect("rank collapse" in result["warnings"][0]["text"], "a causal mask without dropout")
# One token is the same model with a mask and without.
one = ["--rule", "xavier", "--seq", "1", "--depth", "4", "--width", "64", "--heads", "2",
       "--dropout", "0.3"]
profiles = [deep_init(*one, *mask)["profile"] for mask in ([], ["--bidirectional"])]
expect(profiles[0] == profiles[1], "one token")
result = deep_init("--rule", "gpt2", "--depth", "4", "--width", "64", "--set", "tied_head=false")
expect(not any("rank collapse" in row["text"] for row in result["warnings"]), "GPT-2, 4 layers")

# Prediction beside measurement. Six layers of width 64, two heads and 32 tokens are not yet large, and
# eight networks scatter by a tenth; what is wrong by a factor, such as a causal mask that is not
# noticed (gradients times 5), goes red.
for arguments in (["--placement", "pre"], ["--placement", "post"],
                  ["--placement", "post", "--bidirectional"],
                  ["--placement", "pre", "--activation", "gelu", "--rule", "xavier"],
                  ["--digits", str(pathlib.Path(__file__).parents[2] / "tools/data/digits.csv")]):
    result = deep_init(*small, "--measure", "--seeds", "8", *arguments)
    for row in result["agreement"]:
        bound = 0.15 if row["variance"] == "forward" else 0.35
        expect(row["relative_error"] < bound, f"{arguments}: {row}")
    expect(len(result["profile"]) == 7 and result["profile"][3]["measured_gradient"] > 0, "columns")

with tempfile.TemporaryDirectory() as folder:
    out = pathlib.Path(folder) / "made" / "for it"
    status, text, _ = run("deep_init", *small, "--out", str(out), "--quiet")
    expect(status == 0 and "Initial variances" in text, text)
    rows = list(csv.DictReader(open(out / "deep_init_variances.csv", encoding="utf-8")))
    expect(len(rows) == 6 and float(rows[0]["value"]) > 0, "CSV of the variances")
    expect(json.loads((out / "deep_init.json").read_text())["settings"]["depth"] == 6, "settings")
    expect((out / "deep_init.csv").exists(), "numbers of the picture")

refused("--placement", "--placement", "middle")
refused("--input-correlation", "--input-correlation", "1.5")
refused("--dropout", "--dropout", "1")
refused("--heads", "--heads", "0")
refused("blocks", "--rule", "ngpt")
refused("rule", "--rule", "no-such-rule")
for rule in ("maximal-update", "complete-p", "nu-gpt"):  # at once, with a base or without
    for base in ([], ["--set", "base.depth=2"]):
        refused(f"deep_init: --rule = {rule}: expected a rule that needs no base model", "--rule", rule, *base)
