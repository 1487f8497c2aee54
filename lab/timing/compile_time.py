#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Measures what `#include <scalewise/scalewise.hpp>` costs at compile time.

For each compiler it compiles an empty file and a file with the one include, in turn, and prints
the median and the spread (quartiles, smallest, largest) of the wall time in seconds as JSON.
"""

import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

SOURCES = {"empty": "", "scalewise": "#include <scalewise/scalewise.hpp>\n"}


def compile_seconds(compiler, include, source):
    command = [compiler, "-std=c++20", f"-I{include}", "-c", str(source), "-o", f"{source}.o"]
    start = time.perf_counter()
    subprocess.run(command, check=True)
    return time.perf_counter() - start


def summary(seconds):
    lower, median, upper = statistics.quantiles(seconds, n=4, method="inclusive")
    values = {"median": median, "lower_quartile": lower, "upper_quartile": upper,
              "smallest": min(seconds), "largest": max(seconds)}
    return {name: round(value, 4) for name, value in values.items()}


def measure(compiler, include, repetitions, scratch):
    paths = {}
    for name, text in SOURCES.items():
        paths[name] = scratch / f"{name}.cpp"
        paths[name].write_text(text)
        compile_seconds(compiler, include, paths[name])  # not counted: fills the file cache
    seconds = {name: [] for name in SOURCES}
    for _ in range(repetitions):
        for name, path in paths.items():
            seconds[name].append(compile_seconds(compiler, include, path))
    result = {name: summary(values) for name, values in seconds.items()}
    version = subprocess.run([compiler, "--version"], check=True, text=True, capture_output=True)
    result["version"] = version.stdout.splitlines()[0]
    result["difference_of_medians"] = round(
        result["scalewise"]["median"] - result["empty"]["median"], 4)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = pathlib.Path(__file__).resolve().parents[2] / "include"
    parser.add_argument("--include", type=pathlib.Path, default=default)
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--compilers", nargs="+", default=["g++", "clang++"])
    arguments = parser.parse_args()
    if arguments.repetitions < 7:
        parser.error("--repetitions must be at least 7")
    report = {"repetitions": arguments.repetitions, "unit": "s", "compilers": {}}
    with tempfile.TemporaryDirectory() as scratch:
        for compiler in arguments.compilers:
            if shutil.which(compiler) is None:
                print(f"{compiler}: not found, left out", file=sys.stderr)
                continue
            report["compilers"][compiler] = measure(
                compiler, arguments.include, arguments.repetitions, pathlib.Path(scratch))
    json.dump(report, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
