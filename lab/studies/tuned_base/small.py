#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Constants tuned on width 32 and carried to width 256, against `standard` tuned at width 256.

    small.py FOLDER_OF_TUNE FOLDER_OF_TRAIN [--repetitions 10]

Each repetition has other draws, other seeds of training and other seeds of the final runs. A line per repetition and
arm goes to results/small.jsonl; the same command makes those that are missing.
"""

import argparse
import json
import pathlib
import subprocess
import tempfile
import time

FOLDER = pathlib.Path(__file__).resolve().parent
FILE = FOLDER / "results/small.jsonl"
MODEL = "--set depth=2 --set context=32 --batch 8 --steps 200 --threads 1 --quiet --format json"
TRAIN = ("--width 256 --heads 16 --depth 2 --seq 32 --batch 8 --steps 200 --validate-every 200 --rate 1 --threads 1 "
         "--quiet --format json")
RATE = "rate=0.001:0.06"
FIVE = RATE + ",embedding.rate=0.125:8,logits=0.5:8,hidden.std=0.5:4,embedding.std=0.5:8"
# The search; and what train makes of its constants. The last search costs ten times what those at width 32 do.
STARTED = RATE + ",embedding.rate=0.125:8,logits=0.5:8,hidden.std=0.5:2,embedding.std=0.25:2"
ARMS = {
    "maximal-update from `standard`, five constants tuned at 32": (
        f"--rule maximal-update --start standard --set d_model=32 --set heads=2 --space {STARTED} --trials 84",
        "--rule maximal-update --start standard --base 32"),
    "maximal-update, five constants tuned at 32": (
        f"--rule maximal-update --set d_model=32 --set heads=2 --space {FIVE} --trials 84", "--rule maximal-update --base 32"),
    "maximal-update, rate tuned at 32": (
        f"--rule maximal-update --set d_model=32 --set heads=2 --space {RATE} --trials 84", "--rule maximal-update --base 32"),
    "standard, middle of the range": ("", "--rule standard"),  # a search at width 32 costs less than a run at width 256
    "standard, rate tuned at 256": (
        "--rule standard --set d_model=256 --set heads=16 --space rate=0.0003:0.02 --trials 16", "--rule standard"),
}


def output(words):
    return json.loads(subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tune", type=pathlib.Path)
    parser.add_argument("train", type=pathlib.Path)
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--only", default="", help="arms whose names contain this text")
    a = parser.parse_args()
    made = {(row["arm"], row["repetition"]) for row in map(json.loads, FILE.read_text().splitlines())} if FILE.exists() else set()
    for repetition in range(1, a.repetitions + 1):
        for arm, (search, train) in ARMS.items():
            if (arm, repetition) in made or a.only not in arm:
                continue
            begin = time.monotonic()
            report = {"best": {"constants": "rate=0.00245"}, "cost": {"runs": 0}}
            if search:
                with tempfile.TemporaryDirectory() as scratch:
                    report = output([a.tune / "tune", *search.split(), *MODEL.split(), "--seed", str(repetition), "--results", scratch])
            seconds = time.monotonic() - begin
            constants = report["best"]["constants"]
            losses = [output([a.train / "train", *train.split(), *TRAIN.split(), "--constant", constants, "--seed",
                              str(100 * repetition + i)])["validation_nats"] for i in (1, 2)]
            row = {"arm": arm, "repetition": repetition, "constants": constants, "losses": losses, "runs": report["cost"]["runs"],
                   "seconds": round(seconds, 1)}
            with FILE.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
