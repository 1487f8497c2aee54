# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""The page of a study: experiments, the tables that their results fill, and pictures."""

import argparse
import concurrent.futures
import dataclasses
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
from collections.abc import Callable

import page
import tasks

ROOT = tasks.ROOT
QUICK = ROOT / "build/results_quick"

# Of the 0.975 quantile of Student's t, by degrees of freedom.
STUDENT = {1: 12.71, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228,
           12: 2.179, 15: 2.131, 20: 2.086, 30: 2.042, 60: 2.000}


class Runs:
    """A result is made by run(folder, options), with its own `options` or with `quick`."""
    one_core = False  # several may then run at the same time


@dataclasses.dataclass
class Experiment(Runs):
    """A program of tools or the laboratory, its options, and those of a small run."""
    program: str
    options: str
    quick: str
    sections: tuple[str, ...]  # of its report that are kept

    def run(self, folder: pathlib.Path, options: str) -> dict:
        full = tasks.output(tasks.program(folder, self.program), *options.split())
        return {"command": f"{self.program} {options}".strip(), **{name: full[name] for name in self.sections}}


def sweep(tools: pathlib.Path, options: str, work: pathlib.Path, unit: Callable[[float], float] = float) -> dict:
    """What is kept of a sweep of learning rates: of each size and rate, in some unit, the losses of seeds 1, 2 and so on."""
    full = tasks.report(tools / "learning_rate_transfer", options, work)
    losses: dict[tuple[int, float], list] = {}
    for run in sorted(full["runs"], key=lambda run: (run["size"], run["rate"], run["seed"])):
        of_rate = losses.setdefault((run["size"], unit(run["rate"])), [])
        of_rate.append(run["loss"])
        if run["seed"] != len(of_rate):
            sys.exit(f"learning_rate_transfer {options}: a seed is missing before {run['seed']}")
    return {"command": f"learning_rate_transfer {options}",
            **{key: full[key] for key in ("verdict", "reason", "drift", "sizes")},
            "runs": [[size, rate, of_rate] for (size, rate), of_rate in losses.items()]}


def run_count(sweep_kept: dict) -> int:
    return sum(len(losses) for *_, losses in sweep_kept["runs"])


def interval_text(of: dict) -> str:
    if of["value"] is None:
        return "-"
    return f"{of['value']:+.2f}" + ("" if of["low"] is None else f" ({of['low']:+.2f} to {of['high']:+.2f})")


def student(freedom: int) -> float:
    return STUDENT[max(f for f in STUDENT if f <= max(freedom, 1))]


def mean_text(values: list[float], digits: int = 3) -> str:
    """The mean with half its 95 % interval."""
    mean = statistics.mean(values)
    if len(values) < 2:
        return f"{mean:.{digits}f}"
    half = student(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return f"{mean:.{digits}f} ± {half:.{digits}f}"


def slope(x: list[float], y: list[float]) -> tuple[float, float]:
    """Of a line by least squares, with half its 95 % interval; nan where there are too few points."""
    if len(x) < 3 or len(set(x)) < 2:
        return math.nan, math.nan
    mean_x, mean_y = statistics.mean(x), statistics.mean(y)
    spread = sum((a - mean_x) ** 2 for a in x)
    b = sum((a - mean_x) * (c - mean_y) for a, c in zip(x, y)) / spread
    left = sum((c - mean_y - b * (a - mean_x)) ** 2 for a, c in zip(x, y))
    return b, student(len(x) - 2) * math.sqrt(left / (len(x) - 2) / spread)


def slope_text(of: tuple[float, float]) -> str:
    return "-" if math.isnan(of[0]) else f"{of[0]:+.2f} ± {of[1]:.2f}"


def without_empty_groups(svg: str) -> str:
    shorter = re.sub(r"<g [^>]*>\s*</g>\n?", "", svg)
    return svg if shorter == svg else without_empty_groups(shorter)


def picture(path: pathlib.Path, script: str) -> None:
    """Draws with gnuplot, as SVG, without the groups that it leaves empty."""
    svg = subprocess.run(["gnuplot"], input=script, stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout
    page.write(path, without_empty_groups(svg))


def block(name: str, rows: list) -> str:
    """A table of numbers for gnuplot."""
    return f"${name} << EOD\n" + "".join(" ".join(str(x) for x in row) + "\n" for row in rows) + "EOD\n"


def main(name: str, experiments: dict[str, Experiment], tables: Callable[[dict], dict[str, str]],
         draw: Callable[[dict, pathlib.Path], None]) -> None:
    parser = argparse.ArgumentParser(description=f"Makes lab/studies/{name}/README.md and what is missing of its results.")
    parser.add_argument("tools", type=pathlib.Path, nargs="?", help="folder of the programs")
    parser.add_argument("--quick", action="store_true", help="small, in build/results_quick; the page stays")
    parser.add_argument("--tables", action="store_true", help="write from existing results, run nothing")
    parser.add_argument("--check", action="store_true", help="fail where the page differs from the results")
    a = parser.parse_args()
    odd = [key for key, one in experiments.items() if not isinstance(one, Runs)]
    if odd:
        sys.exit(f"{name}: {', '.join(odd)}: expected experiments that are Runs")
    text = ROOT / f"lab/studies/{name}/README.md"
    folder = text.with_name("results")
    if a.check:
        return page.check(text, tables(page.kept(folder)), f"lab/studies/{name}/run.py --tables")
    if a.quick:
        QUICK.mkdir(parents=True, exist_ok=True)
        template, text, folder = text, QUICK / f"{name}.md", QUICK / name
        page.write(text, template.read_text(encoding="utf-8"))
    folder.mkdir(parents=True, exist_ok=True)

    def make(key: str) -> None:
        print("running", key, flush=True)
        experiment = experiments[key]
        page.keep(folder / f"{key}.json", experiment.run(a.tools.resolve(), experiment.quick if a.quick else experiment.options))

    missing = [key for key in experiments if not a.tables and not (folder / f"{key}.json").exists()]
    if missing and not a.tools:
        parser.error("the folder of the programs is missing")
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as cores:
        # map() starts no other experiment after one that failed, or after Ctrl-C.
        list(cores.map(make, [key for key in missing if experiments[key].one_core]))
    for key in missing:
        if not experiments[key].one_core:
            make(key)
    results = page.kept(folder)
    page.write(text, page.filled(text, tables(results)))
    draw(results, folder)
