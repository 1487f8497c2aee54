#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Predicted against measured moments of deep models: runs deep_init --measure over rules, norm
placements, depths and data, and prints Markdown tables: mean relative errors by model, errors and R2
over all of them. Measured are means over seeds.

  python3 lab/studies/deep_scale/depth_profiles.py build/release/tools/deep_init --out build/depth_profiles

Runs that are in the folder already are not repeated."""

import argparse
import concurrent.futures
import itertools
import json
import math
import os
import pathlib
import statistics
import subprocess

RULES = ["xavier", "deep-scale-lm", "deep-scale-lm-simple"]
SIZES = {12: (256, 96), 48: (256, 48), 192: (256, 16), 768: (128, 12)}  # depth: width, seeds
THEORIES = ["averages", "token by token"]
COLUMNS = {"forward": {"averages": "variance", "token by token": "variance_by_token",
                       "measured": "measured_variance"},
           "gradient": {"averages": "gradient", "token by token": "gradient_by_token",
                        "measured": "measured_gradient"}}


def run(program, out, depth, data, rule, placement):
    width, seeds = SIZES[depth]
    name = f"{rule}_{placement}_{depth}_{data}"
    folder = out / name
    result = folder / "deep_init.json"
    if not result.exists():
        command = [program, "--rule", rule, "--placement", placement, "--depth", str(depth),
                   "--width", str(width), "--heads", str(width // 32), "--seeds", str(seeds),
                   "--measure", "--bidirectional", "--threads", "1", "--quiet", "--out", str(folder)]
        if data == "digits":
            command += ["--digits", "tools/data/digits.csv", "--patch", "1", "--batch", "4"]
            if rule == "deep-scale-lm":
                command += ["--set", "input_correlation=0.46"]
        else:
            command += ["--seq", "128", "--batch", "2"]
        print("running", name, flush=True)
        # Exit code 1 is a warning about the model, which vanilla ones deserve.
        subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
    return json.loads(result.read_text())


def vanishes(depth, data, rule, placement):
    """Whether the gradient is another by orders of magnitude in every network."""
    return (rule, placement) == ("xavier", "post")


def errors_of(pairs):
    return [abs(predicted / measured - 1) for predicted, measured in pairs]


def share_of_range(pairs):
    """Mean error of the logarithm, over the range that the logarithm has."""
    logs = [math.log(measured) for _, measured in pairs]
    errors = [abs(math.log(predicted / measured)) for predicted, measured in pairs]
    return statistics.mean(errors) / (max(logs) - min(logs))


def r_squared(pairs):
    logs = [math.log(measured) for _, measured in pairs]
    off = sum(math.log(predicted / measured) ** 2 for predicted, measured in pairs)
    return 1 - off / sum((log - statistics.mean(logs)) ** 2 for log in logs)


def percent(share):
    return f"{100 * share:.1f} %"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/depth_profiles"))
    parser.add_argument("--depths", type=int, nargs="+", default=sorted(SIZES))
    parser.add_argument("--data", nargs="+", default=["text", "digits"])
    args = parser.parse_args()

    models = list(itertools.product(args.depths, args.data, RULES, ["pre", "post"]))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:  # a process each
        results = list(pool.map(lambda model: run(args.program, args.out, *model), models))

    def pairs_of(theory, quantity, model):
        columns = COLUMNS[quantity]
        rows = results[models.index(model)]["profile"]
        return [(row[columns[theory]], row[columns["measured"]]) for row in rows]

    def cell(theory, model):
        pairs = [pairs_of(theory, quantity, model) for quantity in COLUMNS]
        errors = [percent(statistics.mean(errors_of(p))) for p in pairs]
        if vanishes(*model):
            errors.append(f"log {percent(share_of_range(pairs[-1]))}")
        return ", ".join(errors)

    for theory in THEORIES:
        print(f"\nMean errors of the variance forward, and of the gradient's, {theory}:\n")
        print("| data | rule | norm |", " | ".join(
            "{} layers, width {}, {} seeds".format(depth, *SIZES[depth]) for depth in args.depths), "|")
        print("|" + "---|" * (3 + len(args.depths)))
        for kind in itertools.product(args.data, RULES, ["pre", "post"]):
            print("|", " | ".join([*kind] + [cell(theory, (depth, *kind)) for depth in args.depths]), "|")
    print("\n| all layers | mean error without xavier post | median | R2 of logarithms "
          "| R2 with xavier post |")
    print("|---|---|---|---|---|")
    for theory, quantity in itertools.product(THEORIES, COLUMNS):
        every = [pair for m in models for pair in pairs_of(theory, quantity, m)]
        kept = [pair for m in models if not vanishes(*m) for pair in pairs_of(theory, quantity, m)]
        print(f"| {theory}, {quantity} | {percent(statistics.mean(errors_of(kept)))} "
              f"| {percent(statistics.median(errors_of(kept)))} | {r_squared(kept):.4f} "
              f"| {r_squared(every):.4f} |")


if __name__ == "__main__":
    main()
