#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""How often learning_rate_transfer is wrong or undecided, on set-ups drawn at random.

    transfer_errors.py build/release/tools/learning_rate_transfer --number 20 --out sweeps

Half of the set-ups have a rule that claims transfer over the width, half one that keeps one rate. A
set-up is drawn by its number, so the same number is the same set-up everywhere. With --out the reports
are kept, and the same command resumes where it was stopped.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import subprocess
import sys

HOLDS = ["maximal-update", "maximal-update --set table=3", "complete-p", "depth-mup",
         "meta-principled --set s=1"]
FAILS = ["standard", "gpt2", "he", "xavier", "bert"]


def draw(number: int, holds: bool) -> str:
    """The options of one set-up."""
    stream = random.Random(f"{number} {holds}")
    head_dim = stream.choice([8, 16])
    options = [
        "--rule " + stream.choice(HOLDS if holds else FAILS),
        f"--head-dim {head_dim}",
        "--sizes " + stream.choice(["32,64,128", "32,64,128,256", "64,128,256"]),
        f"--depth {stream.choice([1, 2])}",
        f"--seq {stream.choice([16, 32])}",
        f"--batch {stream.choice([4, 8])}",
        f"--steps {stream.choice([200, 300, 400])}",
        "--norm " + stream.choice(["layer", "rms"]),
        "--activation " + stream.choice(["gelu", "relu", "silu"]),
        "--placement " + stream.choice(["pre", "pre", "pre", "post"]),
    ]
    options += stream.choice([[], ["--rotary"]])
    options += stream.choice([[], [], ["--set gated_mlp=true"]])
    options += stream.choice([[], [], ["--set biases=false"]])
    return " ".join(options + ["--set tied_head=false"])


def run(program: str, options: str, extra: list[str], kept: pathlib.Path | None) -> dict:
    """The report of one sweep, made or kept."""
    arguments = [*options.split(), *extra, "--quiet", "--format", "json"]
    if kept and kept.exists():
        sweep = json.loads(kept.read_text(encoding="utf-8"))
        if sweep["arguments"] != arguments:
            sys.exit(f"{kept} = {' '.join(sweep['arguments'])}: expected {' '.join(arguments)} "
                     "(hint: use another --out)")
        return sweep["report"]
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 3):
        sys.exit(f"{program} {options}: {done.stderr}")
    report = json.loads(done.stdout)
    if kept:
        part = kept.with_suffix(".part")
        part.write_text(json.dumps({"arguments": arguments, "report": report}), encoding="utf-8")
        os.replace(part, kept)
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--number", type=int, default=20, help="set-ups of each kind")
    parser.add_argument("--first", type=int, default=0, help="number of the first")
    parser.add_argument("--budget", default="600", help="seconds for a sweep")
    parser.add_argument("--seeds", default="3", help="at the largest size, to begin with")
    parser.add_argument("--out", type=pathlib.Path, help="folder for the reports")
    parser.add_argument("--list", action="store_true", help="print the set-ups, run nothing")
    a = parser.parse_args()
    if a.out:
        a.out.mkdir(parents=True, exist_ok=True)
    counts: dict[bool, collections.Counter] = {True: collections.Counter(), False: collections.Counter()}
    seconds = {True: 0.0, False: 0.0}
    for number in range(a.first, a.first + a.number):
        for holds in (True, False):
            options = draw(number, holds)
            if a.list:
                print(options)
                continue
            name = f"{number}_{'transfer' if holds else 'one_rate'}.json"
            report = run(a.program, options, ["--budget", a.budget, "--seeds", a.seeds],
                         a.out and a.out / name)
            counts[holds][report["verdict"]] += 1
            seconds[holds] += report["used"]["seconds"]
            print(f"{number} {options}: {report['reason']} ({report['used']['seconds']:.0f} s)", flush=True)
    if a.list:
        return
    print("\n| rules that | sweeps | pass | inconclusive | fail | seconds, mean |\n|---|---|---|---|---|---|")
    for holds, text in ((True, "claim transfer"), (False, "keep one rate")):
        c = counts[holds]
        print(f"| {text} | {c.total()} | {c['pass']} | {c['inconclusive']} | {c['fail']} | "
              f"{seconds[holds] / a.number:.0f} |")


main()
