#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Predicted against measured moments of deep models: runs deep_init --measure over rules, norm
placements, depths and data, and prints a Markdown table and the R2 over all of them.

  python3 benchmarks/depth_profiles.py build/native/examples/deep_init --out build/depth_profiles

What is in the folder already is not run again."""

import argparse
import concurrent.futures
import json
import math
import os
import pathlib
import subprocess

RULES = ["xavier", "deep-scale-lm", "deep-scale-lm-simple"]
SIZES = {12: (256, 96), 48: (256, 48), 192: (256, 16), 768: (128, 12)}  # depth: width, seeds
COLUMNS = {"forward": {"averages": "variance", "token by token": "variance_by_token",
                       "measured": "measured_variance"},
           "gradient": {"averages": "gradient", "token by token": "gradient_by_token",
                        "measured": "measured_gradient"}}


def run(program, out, rule, placement, depth, data):
    width, seeds = SIZES[depth]
    name = f"{rule}_{placement}_{depth}_{data}"
    folder = out / name
    result = folder / "deep_init.json"
    if not result.exists():
        command = [program, "--rule", rule, "--placement", placement, "--depth", str(depth),
                   "--width", str(width), "--heads", str(width // 32), "--seeds", str(seeds),
                   "--measure", "--bidirectional", "--threads", "1", "--quiet", "--out", str(folder)]
        if data == "digits":
            command += ["--digits", "examples/data/digits.csv", "--patch", "1", "--batch", "4"]
        else:
            command += ["--seq", "128", "--batch", "2"]
        print("running", name, flush=True)
        # Exit code 1 is a warning about the model, which vanilla ones deserve.
        subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
    return json.loads(result.read_text())


def logs(rows, predicted, measured):
    return [(math.log(r[predicted]), math.log(r[measured])) for r in rows]


def r_squared(pairs):
    mean = sum(y for _, y in pairs) / len(pairs)
    off = sum((x - y) ** 2 for x, y in pairs)
    return 1 - off / sum((y - mean) ** 2 for _, y in pairs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/depth_profiles"))
    parser.add_argument("--depths", type=int, nargs="+", default=sorted(SIZES))
    parser.add_argument("--data", nargs="+", default=["text", "digits"])
    args = parser.parse_args()

    theories = ["averages", "token by token"]
    pairs = {(theory, quantity): [] for theory in theories for quantity in COLUMNS}
    lines = ["| data | rule | norm | depth | width | seeds "
             "| averages: forward | gradient | log | by token: forward | gradient | log |",
             "|" + "---|" * 12]
    models = [(rule, placement, depth, data) for depth in args.depths for data in args.data
              for rule in RULES for placement in ["pre", "post"]]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:  # a process each
        results = pool.map(lambda model: run(args.program, args.out, *model), models)
        for (rule, placement, depth, data), result in zip(models, results):
            width, seeds = SIZES[depth]
            cells = [data, rule, placement, depth, width, seeds]
            for theory in theories:
                errors = {row["variance"]: row for row in result["agreement"]
                          if row["theory"] == theory}
                cells += [f"{100 * errors['forward']['relative_error']:.1f} %",
                          f"{100 * errors['gradient']['relative_error']:.1f} %",
                          f"{errors['gradient']['log_error']:.3f}"]
                for quantity, columns in COLUMNS.items():
                    pairs[theory, quantity] += logs(
                        result["profile"], columns[theory], columns["measured"])
            lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    print("\n".join(lines))
    print("\nR2 of log variances over all layers of all models:")
    for (theory, quantity), both in pairs.items():
        print(f"{theory}, {quantity}: {r_squared(both):.4f}")


if __name__ == "__main__":
    main()
