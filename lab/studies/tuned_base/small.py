#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Constants tuned on width 32 and carried to width 256, against `standard` tuned at width 256.

    small.py FOLDER_OF_TUNE FOLDER_OF_TRAIN [--repetitions 10] [--jobs 2] [--text FILE --named NAME]

Each repetition has other draws, other seeds of training and other seeds of the final runs. A line per repetition and
arm goes to results/small.jsonl; the same command makes those that are missing.
"""

import argparse
import concurrent.futures
import json
import pathlib
import subprocess
import tempfile
import threading
import time

FILE = pathlib.Path(__file__).resolve().parent / "results/small.jsonl"
STEPS = "--batch 8 --steps 200 --threads 1 --quiet --format json"
TUNE = f"--rule maximal-update --set d_model=32 --set heads=2 --set depth=2 --set context=32 --trials 84 {STEPS}"
TRAIN = f"--width 256 --heads 16 --depth 2 --seq 32 --validate-every 200 --rate 1 {STEPS}"
RATE = "rate=0.002:0.06"
SPACES = {"maximal-update, five constants tuned at 32": RATE + ",embedding.rate=1:64,logits=0.5:8,hidden.std=0.5:4,embedding.std=0.5:8",
          "maximal-update, rate tuned at 32": RATE}
# A search at width 32 costs less than one run at width 256. `standard` gets three.
OWN = "standard, rate tuned at 256"
RATES = [0.00122, 0.00245, 0.0049]
FINAL = 2  # seeds


def output(words):
    return json.loads(subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, check=True).stdout)


def loss(a, rule, constants, seed):
    found = output([a.train / "train", *rule.split(), *TRAIN.split(), "--text", a.text, "--constant", constants, "--seed", seed])
    return found["validation_nats"]


def tuned(a, arm, repetition):
    """The constants that a repetition of an arm chooses, and how train takes them."""
    if arm == OWN:
        losses = {rate: loss(a, "--rule standard", f"rate={rate}", 100 * repetition) for rate in RATES}
        return f"rate={min(losses, key=losses.get)}", "--rule standard"
    with tempfile.TemporaryDirectory() as scratch:
        report = output([a.tune / "tune", *TUNE.split(), "--text", a.text, "--space", SPACES[arm], "--seed", repetition,
                         "--results", scratch])
    return report["best"]["constants"], "--rule maximal-update --base 32"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tune", type=pathlib.Path)
    parser.add_argument("train", type=pathlib.Path)
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--only", default="", help="arms whose names contain this text")
    parser.add_argument("--jobs", type=int, default=2, help="runs at once")
    parser.add_argument("--text", type=pathlib.Path, default=FILE.parents[4] / "tools/data/austen_persuasion.txt")
    parser.add_argument("--named", default="novel", help="the text, in the results")
    a = parser.parse_args()
    rows = map(json.loads, FILE.read_text(encoding="utf-8").splitlines()) if FILE.exists() else []
    made = {(row["text"], row["arm"], row["repetition"]) for row in rows}
    lock = threading.Lock()

    def make(job):
        arm, repetition = job
        begin = time.monotonic()
        constants, rule = tuned(a, arm, repetition)
        seconds = time.monotonic() - begin
        losses = [loss(a, rule, constants, 100 * repetition + i) for i in range(1, FINAL + 1)]
        row = {"text": a.named, "arm": arm, "repetition": repetition, "constants": constants, "losses": losses,
               "seconds": round(seconds, 1)}
        with lock, FILE.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    jobs = [(arm, repetition) for arm in (*SPACES, OWN) if a.only in arm for repetition in range(1, a.repetitions + 1)
            if (a.named, arm, repetition) not in made]
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as threads:
        list(threads.map(make, jobs))


if __name__ == "__main__":
    main()
