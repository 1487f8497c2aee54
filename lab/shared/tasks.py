# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""The built programs, and sweeps by the task protocol of docs/tasks.md: killed runs are resumed."""

import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUNS_MISSING = 4


def program(tools: pathlib.Path, name: str) -> pathlib.Path:
    """A program of tools or, in the sibling folder, of the laboratory."""
    folders = [tools, tools.parent / "lab", tools.parent / "lab/studies"]
    found = next((folder / name for folder in folders if (folder / name).is_file()), None)
    if found is None:
        sys.exit(f"{name}: neither in {tools} nor in its sibling lab")
    return found


def output(program: pathlib.Path, *options: str) -> dict:
    """What a program writes as JSON."""
    done = subprocess.run([program, *options, "--format", "json", "--quiet"], stdout=subprocess.PIPE, encoding="utf-8", check=False,
                          cwd=ROOT)
    if done.returncode not in (0, 1, 3):
        sys.exit(f"{program.name} {' '.join(options)}: exit code {done.returncode}")
    return json.loads(done.stdout)


def report(program: pathlib.Path, options: str, folder: pathlib.Path) -> dict:
    """Makes the runs of a sweep that are missing, one on each core that it may use, until there is a verdict."""
    collect = [program, *options.split(), "--results", folder, "--collect", "--format", "json", "--quiet"]
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as cores:
        while True:
            done = subprocess.run(collect, stdout=subprocess.PIPE, encoding="utf-8", check=False)
            if done.returncode != RUNS_MISSING:
                break
            tasks = done.stdout.splitlines()
            made = cores.map(lambda task: subprocess.run(task, shell=True, stdout=subprocess.DEVNULL, check=False), tasks)
            failed = [task for task, one in zip(tasks, made) if one.returncode]
            if failed:
                sys.exit(f"{len(failed)} tasks failed, among them {failed[0]}")
    if done.returncode not in (0, 1, 3):
        sys.exit(f"{program.name} {options}: exit code {done.returncode}")
    return json.loads(done.stdout)
