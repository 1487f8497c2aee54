#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Constants tuned on a small model and carried to a larger one, against `standard` tuned at that size.

    small.py FOLDER_OF_TUNE FOLDER_OF_TRAIN [--only SET-UP …] [--jobs 2]

Each repetition has other draws, other seeds of training and other seeds of the final runs. A line per repetition and
arm goes to results/small.jsonl; the same command makes those that are missing. A search of the same text and
repetition is used again, as the two rules have the same numbers at their base.
"""

import argparse
import concurrent.futures
import dataclasses
import hashlib
import io
import json
import pathlib
import random
import subprocess
import tarfile
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
FILE = ROOT / "lab/studies/tuned_base/results/small.jsonl"
NOVEL = ROOT / "tools/data/austen_persuasion.txt"
CODE = "76d48522cd94", "7cd34871229729cd"  # the library's own headers at a commit, and what their text has as SHA-256

STEPS = "--batch 8 --steps 200 --threads 1 --quiet --format json"
TUNE = f"--set d_model=32 --set heads=2 --set context=32 --trials 84 {STEPS} --space " \
       "rate=0.002:0.06,embedding.rate=1:64,logits=0.5:8,hidden.std=0.5:4,embedding.std=0.5:8"
TRAIN = f"--seq 32 --validate-every 200 --rate 1 {STEPS}"


@dataclasses.dataclass
class SetUp:
    """A model that constants of width 32 and depth 2 are carried to, and the rates that `standard` tries there."""
    width: int
    depth: int
    rates: list[float]
    text: str = "novel"
    repetitions: int = 10
    finals: int = 2  # runs of a repetition with what was tuned

    @property
    def rule(self) -> str:
        return "maximal-update" if self.depth == 2 else "complete-p"

    @property
    def size(self) -> list[str]:
        return f"--width {self.width} --heads {self.width // 16} --depth {self.depth}".split()

    @property
    def searching(self) -> float:
        """What a search costs, in runs of the model: as many steps as 46.5 runs of its base, by products."""
        return 46.5 / ((self.width / 32) ** 2 * self.depth / 2)


def octaves(middle: float) -> list[float]:
    return [middle / 2, middle, 2 * middle]


# The best rate of `standard` falls as one over the width: 0.00245 at 256.
SETUPS = {
    "width 256, novel": SetUp(256, 2, octaves(0.00245)),
    "width 128, novel": SetUp(128, 2, octaves(0.0049), finals=1),
    "width 512, novel": SetUp(512, 2, octaves(0.001225), repetitions=5, finals=1),
    "width 128, code": SetUp(128, 2, octaves(0.0049), text="code", finals=1),
    "depth 16, novel": SetUp(32, 16, [0.01 * 2 ** (i / 2) for i in range(6)], finals=1),
}


def code() -> bytes:
    """The headers, in an order that a seed draws, so that the held-out end is of the same kind."""
    commit, digest = CODE
    packed = subprocess.run(["git", "-C", ROOT, "archive", commit, "include"], stdout=subprocess.PIPE, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        files = {member.name: tar.extractfile(member).read() for member in tar if member.isfile()}
    names = sorted(files)
    random.Random(1).shuffle(names)
    text = b"".join(files[name] for name in names)
    assert hashlib.sha256(text).hexdigest().startswith(digest)
    return text


def output(words: list) -> dict:
    return json.loads(subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, check=True).stdout)


class Study:
    def __init__(self, a: argparse.Namespace, scratch: str):
        self.a = a
        self.texts = {"novel": NOVEL, "code": pathlib.Path(scratch) / "code.txt"}
        if any(SETUPS[name].text == "code" for name in a.only):
            self.texts["code"].write_bytes(code())
        lines = FILE.read_text(encoding="utf-8").splitlines() if FILE.exists() else []
        self.rows = [json.loads(line) for line in lines]
        self.lock = threading.Lock()

    def loss(self, setup: SetUp, rule: str, constants: str, seed: int) -> float:
        found = output([self.a.train / "train", *rule.split(), *setup.size, *TRAIN.split(), "--text", self.texts[setup.text],
                        "--constant", constants, "--seed", seed])
        return found["validation_nats"]

    def searched(self, setup: SetUp, repetition: int) -> tuple[str, float]:
        for row in self.rows:
            if (SETUPS[row["setup"]].text, row["arm"], row["repetition"]) == (setup.text, "carried", repetition):
                return row["constants"], row["seconds"]
        begin = time.monotonic()
        with tempfile.TemporaryDirectory() as results:
            report = output([self.a.tune / "tune", "--rule", setup.rule, "--set", "depth=2", *TUNE.split(), "--text",
                             self.texts[setup.text], "--seed", repetition, "--results", results])
        return report["best"]["constants"], time.monotonic() - begin

    def make(self, name: str, arm: str, repetition: int) -> None:
        setup = SETUPS[name]
        if arm == "carried":
            rule = f"--rule {setup.rule} --base 32 --set base.depth=2"
            constants, seconds = self.searched(setup, repetition)
        else:
            rule, begin = "--rule standard", time.monotonic()
            losses = {rate: self.loss(setup, rule, f"rate={rate:.4g}", 100 * repetition) for rate in setup.rates}
            constants, seconds = f"rate={min(losses, key=losses.get):.4g}", time.monotonic() - begin
        losses = [self.loss(setup, rule, constants, 100 * repetition + i) for i in range(1, setup.finals + 1)]
        row = {"setup": name, "arm": arm, "repetition": repetition, "constants": constants, "losses": losses, "seconds": round(seconds, 1)}
        with self.lock, FILE.open("a", encoding="utf-8") as file:
            self.rows.append(row)
            file.write(json.dumps(row) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tune", type=pathlib.Path)
    parser.add_argument("train", type=pathlib.Path)
    parser.add_argument("--only", nargs="+", choices=SETUPS, default=list(SETUPS))
    parser.add_argument("--jobs", type=int, default=2, help="runs at once")
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(a.jobs) as threads:
        study = Study(a, scratch)
        made = {(row["setup"], row["arm"], row["repetition"]) for row in study.rows}
        jobs = [(name, arm, repetition) for repetition in range(1, 11) for name in a.only for arm in ("carried", "standard")
                if repetition <= SETUPS[name].repetitions and (name, arm, repetition) not in made]
        list(threads.map(lambda job: study.make(*job), jobs))


if __name__ == "__main__":
    main()
