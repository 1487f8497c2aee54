#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Kills programs at random moments and resumes them: results equal those of an undisturbed run.

    kill_runs.py FOLDER_OF_PROGRAMS [--kills 40] [--pairs 5] [--seed 1] [PROGRAM...]

A run that is killed (SIGKILL) is started again with the same command until it ends. Then its output,
its exit code and its files have to be those of a run that nobody disturbed, bit by bit but for times,
and for the order of lines that threads write. The same for two processes that write the same files
at once: either both end well, or one is refused with one message; one of them may be killed as well.
"""

import argparse
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

TEXT = ("It is a truth universally acknowledged, that a tested program may be trusted. " * 40).encode()
MODEL = ["--text", "text.txt", "--seq", "8", "--depth", "1"]
SWEEP = [*MODEL, "--sizes", "8,16", "--head-dim", "4", "--batch", "2", "--threads", "2"]

# Threads that wait sleep: other tests and a second process want the cores as well.
QUICK = {**os.environ, "OMP_WAIT_POLICY": "passive", "OMP_NUM_THREADS": "2"}

# The words of a refusal because of another process.
IN_USE = re.compile(r"expected a (file|folder) that no other (run|process) writes")


def as_it_is(content):
    return content


def without_seconds(content):
    """A log without its last column."""
    return [line.rpartition(b",")[0] for line in content.splitlines()]


def in_any_order(content):
    """Lines, none of them twice."""
    return sorted(content.splitlines())


def as_a_set(content):
    """Lines, where two processes may both write one."""
    return set(content.splitlines())


class Case:
    def __init__(self, name, arguments, files):
        self.name = name
        self.arguments = arguments
        self.files = files  # (pattern, how it is read): all that a run leaves, in this order


CASES = [
    Case("train",
         [*MODEL, "--width", "16", "--heads", "2", "--batch", "4", "--threads", "1", "--rate", "0.01", "--steps", "600",
          "--checkpoint-every", "10", "--validate-every", "50", "--log", "run.csv", "--checkpoint", "run.ckpt",
          "--quiet"],
         [("run.csv", without_seconds), ("*", as_it_is)]),
    Case("learning_rate_transfer",
         [*SWEEP, "--seeds", "2", "--steps", "40", "--out", "out", "--quiet"],
         [("out/runs.jsonl", in_any_order), ("**/*", as_it_is)]),
    Case("tune",
         ["--text", "text.txt", "--set", "d_model=8", "--set", "heads=2", "--set", "depth=1", "--set", "context=8", "--batch", "2",
          "--steps", "40", "--trials", "24", "--space", "rate=0.001:0.1,logits=0.5:4", "--threads", "2", "--results", "out",
          "--carry-to", "width=16", "--quiet"],
         [("**/*", as_it_is)]),
    Case("coordinate_check",
         [*SWEEP, "--seeds", "8", "--steps", "10", "--record", "records.jsonl", "--quiet"],
         [("records.jsonl", as_a_set), ("**/*", as_it_is)]),
    Case("kernel_regression",
         ["--train", "250", "--validation", "50", "--test", "100", "--kernels", "flatten,gap", "--store", "grams",
          "--quiet"],
         [("**/*", as_it_is)]),
]


class Failure(Exception):
    pass


class Runs:
    """Runs of one program, each in a new folder."""

    def __init__(self, case, program, scratch, draw):
        self.case = case
        self.command = [program, *case.arguments]
        self.scratch = scratch
        self.draw = draw
        self.kills = self.completed = self.refused = 0
        begin = time.monotonic()
        folder = self.new_folder()
        self.wanted = self.outcome(folder, *self.finish(self.start(folder)))
        self.seconds = time.monotonic() - begin

    def new_folder(self):
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.scratch))
        (folder / "text.txt").write_bytes(TEXT)
        return folder

    def start(self, folder):
        return subprocess.Popen(self.command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=QUICK)

    def finish(self, process):
        output, message = process.communicate(timeout=600)
        return process.returncode, output, message.decode(errors="replace")

    def outcome(self, folder, code, output, message):
        """All that a finished run is judged by."""
        if code not in (0, 1, 3):
            raise Failure(f"exit code {code}: {message}")
        found = {"exit code": code, "output": output}
        for pattern, read in self.case.files:
            for path in folder.glob(pattern):
                if path.is_file():
                    found.setdefault(str(path.relative_to(folder)), read(path.read_bytes()))
        return found

    def compare(self, folder, code, output, message):
        found = self.outcome(folder, code, output, message)
        differs = [name for name in {**found, **self.wanted} if found.get(name) != self.wanted.get(name)]
        if differs:
            raise Failure(f"not as in an undisturbed run: {', '.join(sorted(differs))} (see {folder})\n{message}")
        self.completed += 1

    def kill_at(self, process, moment):
        """Whether the process was still there to be killed."""
        try:
            process.wait(max(0, moment - time.monotonic()))
            return False
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            self.kills += 1
            return True

    def random_moment(self):
        return time.monotonic() + self.draw.uniform(0, self.seconds)

    def kill_and_resume(self, kills):
        folder = self.new_folder()
        while self.kills < kills:
            process = self.start(folder)
            if not self.kill_at(process, self.random_moment()):
                self.compare(folder, *self.finish(process))
                folder = self.new_folder()
        self.compare(folder, *self.finish(self.start(folder)))

    def two_at_once(self, kill):
        folder = self.new_folder()
        both = [self.start(folder), self.start(folder)]
        if kill:
            self.kill_at(both[self.draw.randrange(2)], self.random_moment())
        for process in both:
            if process.stdout.closed:  # killed
                continue
            code, output, message = self.finish(process)
            if code == 2 and IN_USE.search(message) and message.count("\n") == 1:
                self.refused += 1
            elif code == 2 or code < 0:
                raise Failure(f"exit code {code} beside another process: {message}")
            elif output != self.wanted["output"]:
                raise Failure(f"another output beside another process (see {folder}): {output.decode()}")
        self.compare(folder, *self.finish(self.start(folder)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("programs", nargs="*", help="default: all of the folder")
    parser.add_argument("--kills", type=int, default=40, help="of one process at a time")
    parser.add_argument("--pairs", type=int, default=5, help="pairs of processes, every other with a kill")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    failed = not any((arguments.folder / case.name).exists() for case in CASES)
    for case in CASES:
        program = arguments.folder.resolve() / case.name
        if case.name not in (arguments.programs or [case.name]) or not program.exists():
            continue
        begin = time.monotonic()
        scratch = tempfile.mkdtemp()
        try:
            runs = Runs(case, program, scratch, random.Random(f"{case.name} {arguments.seed}"))
            runs.kill_and_resume(arguments.kills)
            for pair in range(arguments.pairs):
                runs.two_at_once(kill=pair % 2 == 1)
            print(f"{case.name}: {runs.completed} runs with {runs.kills} kills and {arguments.pairs} pairs, "
                  f"{runs.refused} refused, equal the undisturbed one of {runs.seconds:.1f} s "
                  f"({time.monotonic() - begin:.0f} s)", flush=True)
            subprocess.run(["rm", "-r", scratch], check=True)
        except Failure as failure:
            failed = True
            print(f"{case.name}: {failure}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
