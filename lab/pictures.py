#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""The two pictures of the README.

  python3 lab/pictures.py build/release/tools

makes what is missing of docs/pictures/*.json, about ten minutes of two cores, and draws docs/pictures/*.svg with
gnuplot. Without a folder of programs it only draws, from existing results.
"""

import argparse
import json
import math
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent / "shared"))
import page  # noqa: E402
import results_page  # noqa: E402
import tasks  # noqa: E402

PICTURES = tasks.ROOT / "docs/pictures"
RULES = {"standard": "one rate for all widths", "maximal-update": "μP"}
BASES = {"maximal-update": "--start standard "}  # at width 32 both are the same model
SWEEP = "--sizes 32,64,128,256 --head-dim 16 --depth 2 --seq 32 --batch 8 --steps 200 --seeds 4"
CHECK = "--rule maximal-update --sizes 32,64,128,256,512 --seeds 3 --steps 5"
FAULTS = {"μP": "", "μP with one rate for all tensors": "--fault missing:all-rates"}
CURVES = {"attention.output": "attention output", "mlp.hidden": "MLP hidden", "mlp.output": "MLP output",
          "final_hidden": "final hidden"}
COLOURS = ["#6baed6", "#4292c6", "#08519c", "#08203f"]  # light to dark with the width
OWN = ["#0072b2", "#e69f00", "#009e73", "#cc79a7"]  # distinct for the colour-blind


def sweeps(tools: pathlib.Path) -> dict:
    result = {}
    for rule in RULES:
        options = f"--rule {rule} {BASES.get(rule, '')}{SWEEP}"
        full = tasks.output(tools / "learning_rate_transfer", *options.split())
        result[rule] = {"command": "learning_rate_transfer " + options, "verdict": full["verdict"],
                        "drift": full["drift"], "sizes": full["sizes"],
                        "runs": [[run["size"], run["rate"], run["seed"], run["loss"]] for run in full["runs"]]}
    return result


def checks(tools: pathlib.Path) -> dict:
    result = {}
    for title, fault in FAULTS.items():
        options = f"{CHECK} {fault}".strip()
        full = tasks.output(tools / "coordinate_check", *options.split())
        result[title] = {"command": "coordinate_check " + options, "verdict": full["verdict"],
                         "curves": {q["name"]: {"slope": q["slope"], "points": q["points"]} for q in full["quantities"]
                                    if q["signal"] == "change" and q["step"] == 1 and q["name"] in CURVES}}
    return result


# ---- drawing ----------------------------------------------------------------------------------------

HEAD = """set terminal svg size 860,400 font 'sans-serif,14' background 'white'
set encoding utf8
set multiplot
set border 3 linewidth 1 linecolor '#555555'
set tics nomirror textcolor '#333333'
set grid ytics linecolor '#e6e6e6' linetype 1
set logscale x
unset key
set bmargin at screen 0.18
set tmargin at screen 0.84
"""
PANELS = ["set lmargin at screen 0.095\nset rmargin at screen 0.465\n",
          "set lmargin at screen 0.575\nset rmargin at screen 0.945\nunset ylabel\n"]


def panel_title(text: str, good: bool) -> str:
    return f"set title '{text}' font ',17' textcolor '{'#1a7f37' if good else '#b42318'}' offset 0,0.3\n"


def mean_losses(rule: dict, size: int) -> list:
    by_rate: dict = {}
    for of, rate, seed, loss in rule["runs"]:
        if of == size:
            by_rate.setdefault(rate, {})[seed] = loss
    most = max(len(seeds) for seeds in by_rate.values())
    rows = []
    for rate, seeds in sorted(by_rate.items()):
        losses = list(seeds.values())
        if None not in losses and len(losses) >= min(3, most):
            rows.append([rate, sum(losses) / len(losses)])
    return rows


def on_curve(rows: list, rate: float) -> float:
    """The loss at a rate, between those of the rates next to it."""
    (a, low), (b, high) = next(pair for pair in zip(rows, rows[1:]) if pair[0][0] <= rate <= pair[1][0])
    return low + (high - low) * math.log(rate / a) / math.log(b / a)


def draw_transfer(result: dict) -> None:
    low = min(loss for one in result.values() for *_, loss in one["runs"] if loss) - 0.02
    script = HEAD + f"set xrange [0.0006:0.2]\nset yrange [{low}:2.8]\nset xlabel 'learning rate'\nset format x '%g'\n"
    script += "set xtics (0.001, 0.003, 0.01, 0.03, 0.1)\n"
    for (rule, title), place in zip(RULES.items(), PANELS):
        one = result[rule]
        best = [[size["rate"], on_curve(mean_losses(one, size["size"]), size["rate"])] for size in one["sizes"]]
        script += place + panel_title(f"{title}: the best rate {'moves' if one['verdict'] == 'fail' else 'stays'}",
                                      one["verdict"] == "pass")
        if place is PANELS[0]:
            script += "set ylabel 'loss after 200 steps' offset 0.5,0\n"
        plots, ends = [], []
        for i, size in enumerate(one["sizes"]):
            script += results_page.block(f"d{i}", mean_losses(one, size["size"]))
            plots.append(f"$d{i} using 1:2 with lines linewidth 2.5 linecolor '{COLOURS[i]}'")
            x, y = [row for row in mean_losses(one, size["size"]) if row[1] < 2.8][-1]
            ends.append([x, y, i, f"width {size['size']}" if i == 0 else str(size["size"])])
        for x, y, i, name in ends:  # direct labels; the wider model's is the lower one of two at one place
            low_end = any(other[0] == x and other[2] < i and abs(other[1] - y) < 0.03 for other in ends)
            script += (f"set label {i + 1} '{name}' at {x},{y} left offset 0.4,{-0.8 if low_end else 0.2} "
                       f"textcolor '{COLOURS[i]}'\n")
        script += results_page.block("best", best)
        plots.append("$best using 1:2 with linespoints linewidth 1.5 dashtype 2 linecolor '#d55e00' pointtype 7 "
                     "pointsize 0.9")
        script += "plot " + ", ".join(plots) + "\n"
    results_page.picture(PICTURES / "transfer.svg", script + "unset multiplot\n")


def draw_check(result: dict) -> None:
    script = HEAD + "set logscale y\nset xrange [28:2400]\nset xlabel 'width'\nset xtics (32, 64, 128, 256, 512)\n"
    points = [math.exp(p["mean_log_rms"]) for one in result.values() for curve in one["curves"].values() for p in curve["points"]]
    script += f"set yrange [{min(points) / 1.5}:{max(points) * 1.5}]\nset format y '%g'\n"
    for (title, one), place in zip(result.items(), PANELS):
        good = one["verdict"] == "pass"
        script += place + panel_title(f"{title}: {'PASS' if good else 'FAIL'}", good)
        if place is PANELS[0]:
            script += "set ylabel 'change of activations, first step' offset 0.5,0\n"
        plots, ends = [], []
        for i, name in enumerate(CURVES):
            curve = one["curves"][name]
            rows = [[p["size"], math.exp(p["mean_log_rms"])] for p in curve["points"]]
            script += results_page.block(f"d{i}", rows)
            plots.append(f"$d{i} using 1:2 with linespoints linewidth 2.5 linecolor '{OWN[i]}' pointtype 7 pointsize 0.5")
            ends.append([rows[-1][1], i, f"{CURVES[name]} {curve['slope']:+.2f}".replace("-", "−")])
        ends.sort()
        step = 1.17 * (max(points) / min(points)) ** 0.02
        for j, (y, i, text) in enumerate(ends):  # direct labels, kept apart
            if j:
                y = max(y, ends[j - 1][0] * step)
                ends[j][0] = y
            script += f"set label {i + 1} '{text}' at 540,{y} left textcolor '{OWN[i]}' font ',13'\n"
        script += "plot " + ", ".join(plots) + "\n"
    results_page.picture(PICTURES / "check.svg", script + "unset multiplot\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tools", type=pathlib.Path, nargs="?", help="the folder of the built programs")
    tools = parser.parse_args().tools
    for name, make, picture in (("transfer", sweeps, draw_transfer), ("check", checks, draw_check)):
        path = PICTURES / f"{name}.json"
        if tools and not path.exists():
            page.keep(path, make(tools.resolve()))
        picture(json.loads(path.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
