#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Judges every sweep whose runs a study keeps again, as a table of another program, and compares the verdicts.

    recorded_sweeps.py build/release/tools/learning_rate_transfer           exit code 1 if a pass became a fail, or a fail a pass
    recorded_sweeps.py build/release/tools/learning_rate_transfer --keep    writes what it finds to the studies' results
    recorded_sweeps.py build/release/tools/learning_rate_transfer --mix N   judges N sweeps mixed from seeds of different curves

The first two print what check/curve_shape.hpp knows of curves, from sizes that are judged alone, so that none has the shape of others: how
far curvatures and third orders of a sweep's sizes differ, and the mean third order, as shares of the mean curvature; and how much more
losses scatter between seeds away from the optimum; and what a cubic misses.

The third takes curves of 14 seeds or more from different sweeps, so that their shapes differ more than those of one, and says
how often the drift's interval holds the slope of their optima. These are found from all seeds at the five rates within an octave.
"""

import argparse
import json
import math
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "shared"))
import page  # noqa: E402

STUDIES = pathlib.Path(__file__).resolve().parents[1]
NEAR = (-1, -0.5, 0, 0.5, 1)  # octaves from the rate of the lowest mean loss
GRID = (-2, *NEAR, 2)
MANY = 14  # seeds


class Judge:
    def __init__(self, program: str, folder: str) -> None:
        self.program, self.file = program, pathlib.Path(folder, "runs.csv")

    def __call__(self, runs: list, axis: str = "size") -> dict:
        rows = [f"{size},{rate!r},{seed},{'nan' if loss is None else repr(loss)}" for size, rate, seed, loss in runs]
        self.file.write_text("\n".join([f"{axis},rate,seed,loss", *rows]) + "\n", encoding="utf-8")
        found = subprocess.run([self.program, "--judge", self.file, "--size-column", axis, "--format", "json", "--quiet"],
                               capture_output=True, text=True, check=False)
        return json.loads(found.stdout)


def sweeps() -> dict[pathlib.Path, tuple[dict, list]]:
    """What is kept of each, and its runs. Some studies keep rates, some octaves from the rate of the command."""
    found = {}
    for path in sorted(STUDIES.glob("*/results/**/*.json")):
        sweep = json.loads(path.read_text(encoding="utf-8"))
        if {"drift", "runs", "verdict"} <= sweep.keys():
            octaves = any(rate < 0 for _, rate, _ in sweep["runs"])
            centre = float(re.search(r"--rate (\S+)", sweep["command"])[1])
            found[path] = sweep, [[size, centre * 2.0 ** rate if octaves else rate, seed, loss]
                                  for size, rate, losses in sweep["runs"] for seed, loss in enumerate(losses, 1)]
    return found


def curves(runs: list) -> dict[int, dict[int, dict[float, float]]]:
    """Losses of the sizes' seeds at the rates of the grid, in octaves from the rate of the lowest mean loss."""
    found: dict[int, dict[int, dict[float, float]]] = {}
    for size, rate, seed, loss in runs:
        found.setdefault(size, {}).setdefault(seed, {})[math.log2(rate)] = math.inf if loss is None else loss
    for size, seeds in found.items():
        middle = min(seeds[1], key=lambda rate: statistics.mean(one.get(rate, math.inf) for one in seeds.values()))
        found[size] = {seed: {v: loss for v in GRID for rate, loss in one.items() if abs(rate - middle - v) < 1e-6}
                       for seed, one in seeds.items()}
    return found


def scatter(seeds: dict[int, dict[float, float]]) -> list[float]:
    """How the losses at v and -v minus twice that between scatter over seeds, at v = 1 and 2 octaves, over that at ½."""
    found = []
    for v in (0.5, 1, 2):
        values = [one[v] + one[-v] - 2 * one[0] for one in seeds.values() if {v, -v, 0} <= one.keys()]
        values = [value for value in values if math.isfinite(value)]
        found.append(statistics.stdev(values) if len(values) > 2 else math.nan)
    return [found[1] / found[0], found[2] / found[0]]


def misfit(seeds: dict[int, dict[float, float]], step: float) -> float:
    """The square of what no cubic has, the fourth difference of losses, over its variance between seeds."""
    rates = [step * i for i in range(-2, 3)]
    values = [sum(factor * one[rate] for factor, rate in zip((1, -4, 6, -4, 1), rates)) for one in seeds.values()
              if set(rates) <= one.keys()]
    values = [value for value in values if math.isfinite(value)]
    return statistics.mean(values) ** 2 / statistics.variance(values) - 1 / len(values) if len(values) >= MANY else math.nan


def judge_all(judge: Judge, keep: bool) -> int:
    counts = {"same": 0, "undecided": 0, "wrong": 0}
    of_sweeps: list[list[float]] = []
    of_sizes: set[tuple[float, ...]] = set()
    for path, (sweep, runs) in sweeps().items():
        axis = re.search(r"--axis (\S+)", sweep["command"])[1]
        judged = judge(runs, "width" if axis in ("shape", "joint") else axis)
        verdict = judged["verdict"]
        kind = ("same" if verdict == sweep["verdict"] else
                "undecided" if "inconclusive" in (verdict, sweep["verdict"]) else "wrong")
        counts[kind] += 1
        if kind != "same":
            print(f"{path.relative_to(STUDIES)}: {verdict}, was {sweep['verdict']}")
        if keep:
            page.keep(path, sweep | {key: judged[key] for key in ("verdict", "reason", "drift", "sizes")})
        used = [size["size"] for size in judged["sizes"] if size["interior"]]
        alone = [judge([run for run in runs if run[0] == size])["sizes"][0] for size in used]
        mean = statistics.mean(size["curvature"] for size in alone)
        columns = [[size[key] / mean for size in alone] for key in ("curvature", "third")]
        of_sweeps.append([*map(statistics.stdev, columns), statistics.mean(columns[1])])
        of_sizes.update((*scatter(seeds), misfit(seeds, 0.5), misfit(seeds, 1)) for seeds in curves(runs).values())
    print(", ".join(f"{count} {kind}" for kind, count in counts.items()))
    names = ("curvatures of sizes differ by", "third orders of sizes by", "mean third orders are")
    for name, values in zip(names, zip(*of_sweeps)):
        root = math.sqrt(statistics.mean(value ** 2 for value in values))
        print(f"{name} {root:.2f} (root mean square), {statistics.median(map(abs, values)):.2f} (median)")
    *far, near, missed = [list(filter(math.isfinite, values)) for values in zip(*of_sizes)]
    print(f"losses scatter {statistics.median(far[0]):.1f} and {statistics.median(far[1]):.1f} times as much 1 and 2 octaves away as ½")
    print(f"a cubic misses {statistics.mean(near):.2f} of their variance with rates half an octave apart, {statistics.mean(missed):.2f} one octave",
          f"(means of {len(missed)} curves)")
    return 1 if counts["wrong"] or not counts["same"] else 0


def mix(judge: Judge, number: int) -> int:
    pool: dict[float, dict] = {}  # by optimum: what several sweeps share counts once
    for _, runs in sweeps().values():
        for seeds in curves(runs).values():
            whole = {seed: one for seed, one in seeds.items() if len(one) == len(GRID) and all(map(math.isfinite, one.values()))}
            if len(whole) >= MANY:
                near = judge([[1, 2.0 ** v, seed, one[v]] for seed, one in whole.items() for v in NEAR])["sizes"][0]
                pool[round(math.log2(near["rate"]), 2)] = {"optimum": math.log2(near["rate"]), "seeds": whole}
    random.seed(1)
    print(f"{len(pool)} curves\n| seeds | rates | drift judged | held, % | half the interval, median |\n|---|---|---|---|---|")
    for counts in ((8, 4, 3), (3, 3, 3), (2, 1, 1)):
        for rates in (GRID, (-2, -1, 0, 1, 2), (-0.5, 0, 0.5, 1, 2)):
            held, halves = [], []
            for _ in range(number):
                drawn = random.choices(list(pool.values()), k=len(counts))
                runs = [[2 ** k, 2.0 ** v, seed, curve["seeds"][seed][v]] for k, (curve, n) in enumerate(zip(drawn, counts))
                        for seed in random.sample(list(curve["seeds"]), n) for v in rates]
                drift = judge(runs)["drift"]
                if drift["value"] is None:
                    continue
                truth = (drawn[-1]["optimum"] - drawn[0]["optimum"]) / 2
                held.append(drift["low"] <= truth <= drift["high"])
                halves.append((drift["high"] - drift["low"]) / 2)
            print(f"| {counts} | {rates} | {len(held)} | {100 * sum(held) / len(held):.0f} | {statistics.median(halves):.2f} |", flush=True)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--mix", type=int)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        judge = Judge(options.program, folder)
        return mix(judge, options.mix) if options.mix else judge_all(judge, options.keep)


sys.exit(main())
