# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""A scaling strategy, tuned on seeds of its own and then run on others."""

import csv
import dataclasses
import itertools
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

import results_page
import tasks

DIVERGED = 1  # exit code of train
Losses = dict[tuple[float, float], list[float]]


@dataclasses.dataclass(frozen=True)
class Variant:
    """Options that replace some of a search, and the factor of the rate of a hidden matrix that they lead to."""
    name: str
    options: str
    hidden: float


@dataclasses.dataclass(frozen=True)
class Search:
    """The best rate and decay among their multiples, found as a walk from neighbour to neighbour, and runs with it.

    Rates and decays are those of a hidden matrix: `hidden` is the factor that the rule has for its rate, so that the
    options are rate / hidden and decay * hidden.
    """
    options: str
    hidden: float
    rate: float
    decay: float
    tuned: tuple[int, ...]     # seeds of the search
    reported: tuple[int, ...]  # seeds of what is reported
    variants: tuple["Variant", ...] = ()    # more runs with the best rate and decay
    factors: tuple[float, float] = (2, 4)   # from one rate, and one decay, to the next
    reach: int = 1                          # neighbours on either side that are tried

    def command(self, variant: Variant, rate: float, decay: float, seed: int | str) -> str:
        return (f"train {self.options} {variant.options} --rate {rate / variant.hidden:.6g} "
                f"--weight-decay {decay * variant.hidden:.6g} --seed {seed} --threads 1")

    def log(self, tools: pathlib.Path, variant: Variant, rate: float, decay: float, seed: int) -> tuple[bool, list[list[str]]]:
        """Whether a run diverged, and its rows."""
        name, *rest = self.command(variant, rate, decay, seed).split()
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "log.csv"
            done = subprocess.run([tasks.program(tools, name), *rest, "--log", log, "--quiet"], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, encoding="utf-8", check=False, cwd=results_page.ROOT)
            if done.returncode not in (0, DIVERGED):
                sys.exit(f"{name} {' '.join(rest)}: {done.stderr}")
            with log.open(encoding="utf-8") as file:
                return done.returncode == DIVERGED, [row for row in csv.reader(file)][1:]

    def train(self, tools: pathlib.Path, variant: Variant, rate: float, decay: float, seed: int) -> list:
        """[loss, score, curve] of validation, with the curve as [step, loss, score]; loss and score are None if it diverged."""
        diverged, rows = self.log(tools, variant, rate, decay, seed)
        curve = [[int(row[0]), round(float(row[2]), 5), round(float(row[3]), 5)] for row in rows if row[2]]
        return [None, None, curve] if diverged else [*curve[-1][1:], curve]

    def measure(self, tools: pathlib.Path) -> dict:
        tuning: list[list] = []
        losses: Losses = {}
        own = Variant("", "", self.hidden)

        def at(rate: float, decay: float) -> float:
            if (rate, decay) not in losses:
                losses[rate, decay] = []
                for seed in self.tuned:
                    loss, score, _ = self.train(tools, own, rate, decay, seed)
                    tuning.append([rate, decay, seed, loss, score])
                    losses[rate, decay].append(math.inf if loss is None else loss)
            return statistics.mean(losses[rate, decay])

        best = (self.rate, self.decay)
        while True:
            rates, decays = ({best[i] * self.factors[i] ** j for j in range(-self.reach, self.reach + 1)} for i in (0, 1))
            lowest = min(itertools.product(sorted(rates), sorted(decays)), key=lambda setting: at(*setting))
            if lowest == best or at(*lowest) == at(*best):
                break
            best = lowest
        runs = []
        for variant, seed in itertools.product((own, *self.variants), self.reported):
            runs.append([variant.name, seed, *self.train(tools, variant, *best, seed)])
        return {"command": self.command(own, *best, "SEED").replace("  ", " "),
                "variants": {variant.name: self.command(variant, *best, "SEED") for variant in self.variants},
                "rate": best[0], "decay": best[1], "tuning": tuning, "runs": runs}


@dataclasses.dataclass
class Tuned(results_page.Runs):
    """An experiment for results_page: a search, and its small form."""
    options: Search
    quick: Search

    def run(self, folder: pathlib.Path, search: Search) -> dict:
        return search.measure(folder)


def spikes(losses: list[float], over: int = 10, rise: float = 0.5) -> int:
    """How often the mean of so many losses of a run rises so far above the lowest before, after falling back near to it."""
    means = [statistics.mean(losses[i:i + over]) for i in range(len(losses) - over + 1)]
    lowest, up, count = math.inf, False, 0
    for mean in means:
        up = up and mean > lowest + rise / 5
        if not up and mean > lowest + rise:
            up, count = True, count + 1
        lowest = min(lowest, mean)
    return count


@dataclasses.dataclass
class Spikes(results_page.Runs):
    """An experiment for results_page: the spikes of the training loss at some rates, of seeds each, and its small form."""
    options: tuple[Search, tuple[float, ...], tuple[int, ...]]
    quick: tuple[Search, tuple[float, ...], tuple[int, ...]]
    one_core = True

    def run(self, folder: pathlib.Path, options: tuple[Search, tuple[float, ...], tuple[int, ...]]) -> dict:
        search, rates, seeds = options
        own = Variant("", "", search.hidden)
        runs = []
        for rate, seed in itertools.product(rates, seeds):
            diverged, rows = search.log(folder, own, rate, 0, seed)
            losses = [float(row[1]) for row in rows if row[1]]
            runs.append([rate, seed, spikes(losses), None if diverged else round(statistics.mean(losses[-10:]), 5)])
        return {"command": search.command(own, rates[0], 0, "SEED").replace("  ", " "), "runs": runs}


# ---- what is said of results ------------------------------------------------------------------------


def reported(result: dict, name: str = "") -> list[list]:
    """[seed, loss, score, curve] of the reported runs of a variant."""
    return [run[1:] for run in result["runs"] if run[0] == name]


def ends(runs: list[list], column: int, scale: float = 1) -> list[float]:
    """Losses (1) or scores (2) at the end, of the runs that did not diverge."""
    return [scale * run[column] for run in runs if run[column] is not None]


def mean_curve(runs: list[list], column: int) -> list[tuple[int, float]]:
    """(step, mean) of validation losses (1) or scores (2), of the runs that did not diverge."""
    curves = [run[3] for run in runs if run[1] is not None]
    return [(at[0][0], statistics.mean(point[column] for point in at)) for at in zip(*curves)]


def text(runs: list[list], column: int, scale: float = 1, digits: int = 3) -> str:
    values = ends(runs, column, scale)
    lost = f", {len(runs) - len(values)} of {len(runs)} diverged" if len(values) < len(runs) else ""
    return (results_page.mean_text(values, digits) if values else "-") + lost


def difference(runs: list[list], others: list[list], column: int, scale: float = 1, digits: int = 3) -> str:
    """Mean of runs minus others, seed by seed, with half its 95 % interval."""
    other = {run[0]: run[column] for run in others}
    pairs = [scale * (run[column] - other[run[0]]) for run in runs if run[column] is not None and other[run[0]] is not None]
    if not pairs:
        return "-"
    said = results_page.mean_text(pairs, digits)
    return said if said.startswith("-") else "+" + said


def tuning(result: dict) -> Losses:
    found: Losses = {}
    for rate, decay, _, loss, _ in result["tuning"]:
        found.setdefault((rate, decay), []).append(math.inf if loss is None else loss)
    return found
