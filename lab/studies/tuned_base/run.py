#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""What constants that were tuned on the base are worth, on one GPU and in the reference transformer.

  python3 lab/studies/tuned_base/run.py build/release/tools

judges the sweeps of the GPU, and writes the tables and the picture of README.md again. small.py makes the runs of
the reference transformer, and gpu.py those of a GPU.
"""

import json
import math
import pathlib
import statistics
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "shared"))
import page  # noqa: E402
import results_page  # noqa: E402
import small  # noqa: E402
from results_page import Experiment, mean_text  # noqa: E402

RESULTS = results_page.ROOT / "lab/studies/tuned_base/results"
SWEEP = "tests/check/data/nanogpt_sweep.jsonl"
WIDTHS = [256, 512, 1024, 2048]
ARMS = {"width_one_rate": ("width", "one rate for all tensors", "sp"),
        "width_maximal_update": ("width", "maximal update", "mup"),
        "depth_maximal_update": ("depth", "maximal update", "mup-depth"), "depth_complete_p": ("depth", "CompleteP", "complete-p")}
EXPERIMENTS = {name: Experiment("learning_rate_transfer", f"--judge {SWEEP} --where arm={arm}", f"--judge {SWEEP} --where arm={arm}",
                                ("verdict", "reason")) for name, (_, _, arm) in ARMS.items()}


def lines_of(path: pathlib.Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def gpu_rows() -> list[dict]:
    return lines_of(results_page.ROOT / SWEEP) + lines_of(RESULTS / "h100_search.jsonl")


def at_best_rate(rows: list[dict]) -> tuple[float, list[float]]:
    """The best rate of seed 0, and the losses of all seeds there."""
    best = min((row for row in rows if row["seed"] == 0), key=lambda row: row["val"])["lr"]
    return best, [row["val"] for row in sorted(rows, key=lambda row: row["seed"]) if row["lr"] == best]


def found(arm: str, width: int) -> list[dict]:
    """The runs of an arm; of the tuned constants those that the search chose."""
    rows = [row for row in gpu_rows() if row["arm"] == arm and row["width"] == width]
    if arm != "mup+":
        return rows
    best = carried_rate()
    return [row for row in rows if any(math.isclose(row["lr"], best * factor) for factor in (0.5, 1, 2))]


def carried_rate() -> float:
    """The middle one of those that were carried."""
    return sorted({row["lr"] for row in gpu_rows() if row["arm"] == "mup+" and row["width"] == 2048})[1]


def losses_text(losses: list[float]) -> str:
    return ", ".join(f"{loss:.3f}" for loss in losses)


def of_rate(rows: list[dict], rate: float) -> list[float]:
    return [row["val"] for row in sorted(rows, key=lambda row: row["seed"]) if math.isclose(row["lr"], rate)]


def width_table() -> str:
    rows = []
    for width in WIDTHS:
        row = [str(width)]
        for arm in ("sp", "mup"):
            rate, losses = at_best_rate(found(arm, width))
            row += [f"2^{math.log2(rate):.0f}", losses_text(losses)]
        carried, rate = found("mup+", width), carried_rate()
        row += [losses_text(of_rate(carried, rate)), " / ".join(losses_text(of_rate(carried, rate * f)) or "-" for f in (0.5, 2))]
        rows.append(row)
    return page.table(["width", "one rate: best", "loss", "maximal update: best", "loss", "five constants of 256", "half / twice the rate"], rows)


def verdict_table(results: dict) -> str:
    return page.table(["grows", "set-up", "verdict", "because"],
                      [[axis, name, f"**{results[key]['verdict']}**", results[key]["reason"]] for key, (axis, name, _) in ARMS.items()])


def cost_table() -> str:
    rows, all_rows = [], gpu_rows()
    search = [row for row in all_rows if row["arm"] == "mup+" and row["stage"] in (1, 2)]
    tuned = [row for row in all_rows if row["arm"] == "sp" and row["width"] == 2048 and row["seed"] == 0]
    for name, some in (("five constants at 256", search), ("one rate at 2048", tuned)):
        width = some[0]["width"]
        seconds = statistics.median(row["seconds"] for row in some)
        rows.append([name, str(len(some)), f"{len(some) * (width / 2048) ** 2:.1f}", f"{seconds:.1f}"])
    return page.table(["tuned", "runs", "runs of the target, by width²", "seconds of a run, median"], rows)


def again() -> str:
    """The table of gpu.py's runs. Its first seed chooses rates; where it is the only one, its loss is in brackets."""
    rows = [row for row in lines_of(RESULTS / "h100_again.jsonl") if row["arm"] != "search"]
    first = min(row["seed"] for row in rows)

    def text(some: list[dict], rate: float) -> str:
        measured = [row["val"] for row in some if row["seed"] > first and math.isclose(row["lr"], rate)]
        return mean_text(measured) if len(measured) > 1 else losses_text(measured)

    table = []
    for width in WIDTHS:
        line = [str(width)]
        for arm in ("one rate", "maximal update"):
            some = [row for row in rows if row["arm"] == arm and row["width"] == width]
            best = min((row for row in some if row["seed"] == first), key=lambda row: row["val"])
            line += [f"2^{math.log2(best['lr']):.0f}", text(some, best["lr"]) or f"({best['val']:.3f})"]
        some = [row for row in rows if row["arm"] == "tuned" and row["width"] == width]
        rate = sorted({row["lr"] for row in some})[1]
        table.append([*line, text(some, rate), f"{text(some, rate / 2)} / {text(some, 2 * rate)}"])
    return page.table(["width", "one rate: best", "loss", "maximal update: best", "loss", "five constants of 256", "half / twice the rate"], table)


def small_table() -> str:
    """Set-ups of small.py: carried constants against `standard`, repetition by repetition."""
    losses: dict[tuple[str, str], dict[int, float]] = {}
    for row in lines_of(RESULTS / "small.jsonl"):
        losses.setdefault((row["setup"], row["arm"]), {})[row["repetition"]] = statistics.mean(row["losses"])
    table = []
    for name, setup in small.SETUPS.items():
        carried, own = losses.get((name, "carried"), {}), losses.get((name, "standard"), {})
        both = sorted(set(carried) & set(own))
        if not both:
            continue
        difference = [carried[r] - own[r] for r in both]
        table.append([name, mean_text([carried[r] for r in both]), mean_text([own[r] for r in both]), mean_text(difference),
                      f"{sum(d < 0 for d in difference)} of {len(both)}", f"{setup.searching:.1f} / {len(setup.rates)}"])
    return page.table(["target", "constants, carried", "`standard`, tuned", "difference", "below", "tuning, in runs of the target"], table)


def tables(results: dict) -> dict[str, str]:
    return {"widths": width_table(), "verdicts": verdict_table(results), "cost": cost_table(), "again": again(),
            "small": small_table()}


def draw_rates(folder: pathlib.Path) -> None:
    """Loss against the rate at each width, of one rate and of maximal update, with the best one of each width."""
    script, panels = "", []
    colours = ["#9ecae1", "#4292c6", "#2171b5", "#08306b"]
    for arm, title in (("sp", "one rate for all tensors: the best rate moves"), ("mup", "μP: it stays")):
        lines = []
        for i, width in enumerate(WIDTHS):
            points = sorted({row["lr"]: row["val"] for row in reversed(found(arm, width)) if row["val"]}.items())
            name = f"{arm}{i}"
            script += results_page.block(name, points) + results_page.block(f"best_{name}", [min(points, key=lambda p: p[1])])
            lines += [f"${name} with linespoints lw 2 pt 7 ps 0.4 lc rgb '{colours[i]}' title 'width {width}'",
                      f"$best_{name} with points pt 7 ps 1.3 lc rgb '#d55e00' notitle"]
        panels.append(f"set title '{title}'\nplot " + ", ".join(lines) + "\n")
    script += """set terminal svg size 760,330 font 'sans,13' background '#ffffff'
set multiplot layout 1,2
set logscale x 2
set format x '2^{%L}'
set xrange [2**-14:2**-6]
set yrange [2.68:3.2]
set xlabel 'learning rate'
set ylabel 'loss, nats per byte'
set grid lc rgb '#eeeeee'
set key top center
""" + "unset ylabel\nset format y ''\nunset key\n".join(panels) + "unset multiplot\n"
    results_page.picture(folder / "rates.svg", script)


def draw(results: dict, folder: pathlib.Path) -> None:
    del results
    draw_rates(folder)
    script = ""
    curves = {"sp": ("one rate, tuned at each width", "#d55e00"), "mup": ("μP, one rate for all widths", "#0072b2"),
              "mup+": ("μP, five constants tuned at 256", "#009e73")}
    for i, arm in enumerate(curves):
        points = []
        for width in WIDTHS:
            losses = of_rate(found(arm, width), carried_rate()) if arm == "mup+" else at_best_rate(found(arm, width))[1]
            points.append((width, statistics.mean(losses), min(losses), max(losses)))
        script += results_page.block(f"a{i}", points)
    script += """set terminal svg size 640,380 font 'sans,13' background '#ffffff'
set logscale x 2
set xrange [220:2400]
set xtics (256, 512, 1024, 2048)
set xlabel 'width'
set ylabel 'loss, nats per byte'
set grid lc rgb '#eeeeee'
set key top right
plot """ + ", ".join(f"$a{i} with yerrorlines lw 2 pt 7 ps 0.6 lc rgb '{colour}' title '{title}'"
                     for i, (title, colour) in enumerate(curves.values())) + "\n"
    results_page.picture(folder / "widths.svg", script)


if __name__ == "__main__":
    results_page.main("tuned_base", EXPERIMENTS, tables, draw)
