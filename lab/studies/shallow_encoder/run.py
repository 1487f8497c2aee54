#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""The claims of "On the Convergence of Encoder-only Shallow Transformers" (arXiv:2311.01575), at small size.

  python3 lab/studies/shallow_encoder/run.py build/release/tools

makes what is missing of results/, and writes the tables and pictures of README.md again.
"""

import math
import pathlib
import statistics
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "shared"))
import page  # noqa: E402
import results_page  # noqa: E402
from results_page import Experiment, mean_text, slope, slope_text  # noqa: E402

TRAINING = "--sizes 64,128,256,512,1024,2048 --seeds 5"
QUICK_TRAINING = "--sizes 16,32,64 --seeds 2 --steps 16"
SAMPLES = "--inputs 4,8,16,32 --sizes 16,32,64,128,256,512 --seeds 4 --steps 50"
QUICK_SAMPLES = "--inputs 4,8 --sizes 16,32 --seeds 2 --steps 4"
KINDS = {"lecun": ("LeCun, τ₀ = d_m^-1/2", "--rule shallow-lecun --tau0 0.5", "n³"),
         "he": ("He, τ₀ = d_m^-1/2", "--rule shallow-he --tau0 0.5", "n³"),
         "ntk": ("NTK, τ₀ = d_m^-1/2", "--rule shallow-ntk --tau0 0.5", "n²"),
         "ntk_1": ("NTK, τ₀ = d_m^-1", "--rule shallow-ntk --tau0 1", "n")}
SECTIONS = ("start", "training", "slopes")
EXPERIMENTS = {
    "training_lecun": Experiment("shallow_encoder", TRAINING, QUICK_TRAINING, SECTIONS),
    "training_ntk_1": Experiment("shallow_encoder", f"--rule shallow-ntk --tau0 1 {TRAINING}",
                                 f"--rule shallow-ntk --tau0 1 {QUICK_TRAINING}", SECTIONS),
    "separation": Experiment("shallow_separation", "--sizes 16,64,256 --seeds 3 --train 128 --test 500 --steps 200",
                             "--sizes 8,16 --seeds 2 --train 8 --test 20 --steps 4", ("steps", "maps")),
    **{f"samples_{kind}": Experiment("shallow_samples", f"{options} {SAMPLES}", f"{options} {QUICK_SAMPLES}", ("networks",))
       for kind, (_, options, _) in KINDS.items()},
}
SCALES = {0.5: "d_m^-1/2", 1: "d_m^-1"}
SHARE = 0.25  # of the smallest eigenvalue, as in the proof


def slopes_table(results: dict) -> str:
    rows = []
    for quantity, text in (("movement", "movement of the weights"), ("drift", "distance of the kernel from its initial value"),
                           ("distance", "distance of the initial kernel to its limit")):
        cells = [text]
        for name in ("training_lecun", "training_ntk_1"):
            row = next(row for row in results[name]["slopes"] if row["quantity"] == quantity)
            cells.append(slope_text((row["slope"], row["interval"])))
        rows.append(cells)
    return page.table(["slope of the logarithm against that of the width", KINDS["lecun"][0], KINDS["ntk_1"][0]], rows)


def loss_table(results: dict) -> str:
    """The loss over steps, and how much of it is left of each step."""
    training = results["training_lecun"]["training"]
    steps = sorted({row["step"] for row in training})
    shown = [step for step in steps if step in (1, 4, 16, 64) or step == steps[-1]]
    rows = []
    for width in sorted({row["width"] for row in training}):
        at = {row["step"]: row["loss"] for row in training if row["width"] == width}
        late = (at[steps[-1]] / at[steps[-2]]) ** (1 / (steps[-1] - steps[-2])) if len(steps) > 1 else math.nan
        early = (at[steps[-2]] / at[steps[-3]]) ** (1 / (steps[-2] - steps[-3])) if len(steps) > 2 else math.nan
        rows.append([str(width), *(f"{at[step]:.3g}" for step in shown), f"{early:.4f}", f"{late:.4f}"])
    return page.table(["width", *(f"loss after step {step}" for step in shown),
                       f"left by a step, {steps[-3]} to {steps[-2]}", f"{steps[-2]} to {steps[-1]}"], rows)


def separation_table(results: dict) -> str:
    runs = results["separation"]["steps"]
    last = max(row["step"] for row in runs)
    rows = []
    for width in sorted({row["width"] for row in runs}):
        for tau0, text in SCALES.items():
            mine = [row for row in runs if row["width"] == width and row["tau0"] == tau0]
            first, all_ends = ([r for r in mine if r["step"] == step] for step in (0, last))
            end = [r for r in all_ends if r["loss"] is not None]
            if not end:
                rows.append([str(width), text, "all diverged", "-", "-", mean_text([r["entropy"] for r in first], 4), "-"])
                continue
            lost = f" ({len(all_ends) - len(end)} of {len(all_ends)} diverged)" if len(end) < len(all_ends) else ""
            rows.append([str(width), text, mean_text([r["loss"] for r in end]) + lost,
                         mean_text([100 * r["train_accuracy"] for r in end], 1),
                         mean_text([100 * r["test_accuracy"] for r in end], 1),
                         mean_text([r["entropy"] for r in first], 4), mean_text([r["entropy"] for r in end], 4)])
    return page.table(["width", "τ₀", "training loss", "training accuracy, %", "test accuracy, %",
                       "entropy of attention, before", "after"], rows)


def needed(networks: list[dict], samples: int, seed: int, good) -> float:
    """The smallest width from which on the condition holds; nan if it never does."""
    mine = sorted((row for row in networks if row["samples"] == samples and row["seed"] == seed),
                  key=lambda row: -row["width"])
    found = math.nan
    for row in mine:
        if not good(row):
            break
        found = row["width"]
    return found


CONDITIONS = {"initial": lambda row: row["initial"] >= SHARE,
              "kept": lambda row: row["initial"] >= SHARE and row["kept"] >= SHARE}


def widths(networks: list[dict], condition: str) -> dict[int, list[float]]:
    seeds = sorted({row["seed"] for row in networks})
    return {n: [needed(networks, n, seed, CONDITIONS[condition]) for seed in seeds]
            for n in sorted({row["samples"] for row in networks})}


def exponent(of: dict[int, list[float]]) -> tuple[float, float]:
    points = [(math.log(n), math.log(w)) for n, found in of.items() for w in found if not math.isnan(w)]
    return slope([x for x, _ in points], [y for _, y in points])


def width_text(found: list[float], largest: int) -> str:
    known = [math.log2(w) for w in found if not math.isnan(w)]
    if len(known) < len(found):
        return f"above {largest} in {len(found) - len(known)} of {len(found)}"
    return f"{2 ** statistics.mean(known):.0f}"


def samples_table(results: dict) -> str:
    rows = []
    numbers = sorted({row["samples"] for row in results["samples_lecun"]["networks"]})
    for kind, (text, _, claim) in KINDS.items():
        networks = results[f"samples_{kind}"]["networks"]
        largest = max(row["width"] for row in networks)
        for condition, says in (("initial", "at initialization"), ("kept", "in training too")):
            of = widths(networks, condition)
            rows.append([text, says, *(width_text(of[n], largest) for n in numbers), slope_text(exponent(of)),
                         claim if condition == "kept" else "-"])
    return page.table(["", "smallest eigenvalue above a quarter", *(f"{n} samples" for n in numbers), "power of n",
                       "enough by the theorem"], rows)


def bound_table(results: dict) -> str:
    rows = []
    for kind, (text, _, _) in KINDS.items():
        networks = results[f"samples_{kind}"]["networks"]
        wide = [row for row in networks if row["initial"] >= SHARE]
        rows.append([text, str(len(networks)), str(len(wide)), str(sum(row["bound"] <= 1 + 1e-9 and not row["diverged"] for row in wide)),
                     f"{max((row['bound'] for row in wide), default=math.nan):.4f}"])
    return page.table(["", "networks", "with at least a quarter of the eigenvalue", "of these, below the bound at every step",
                       "highest loss over bound"], rows)


def tables(results: dict) -> dict[str, str]:
    return {"slopes": slopes_table(results), "loss": loss_table(results), "separation": separation_table(results),
            "samples": samples_table(results), "bound": bound_table(results)}


# ---- pictures ---------------------------------------------------------------------------------------

COLOURS = ["#fdae6b", "#e6550d", "#9ecae1", "#6baed6", "#3182bd", "#08519c"]


def draw_training(results: dict, folder: pathlib.Path) -> None:
    training = results["training_lecun"]["training"]
    sizes = sorted({row["width"] for row in training})
    script = "".join(results_page.block(f"w{width}", [(r["step"], r["loss"], r["movement"], r["drift"]) for r in training
                                                      if r["width"] == width]) for width in sizes)
    script += """set terminal svg size 1000,330 font 'sans,13' background '#ffffff'
set multiplot layout 1,3
set logscale y
set xlabel 'step' offset 0,0.5
set grid lc rgb '#eeeeee'
set format y '10^{%T}'
"""
    for column, title in ((2, "(a) the loss falls"), (3, "(b) wider: weights move less"), (4, "(c) wider: the kernel stays")):
        script += f"set title '{title}'\n" + ("set key bottom left\n" if column == 2 else "unset key\n")
        script += "plot " + ", ".join(f"$w{width} using 1:{column} with linespoints lw 2 pt 7 ps 0.5 lc rgb "
                                      f"'{COLOURS[i % len(COLOURS)]}' title '{width}'" for i, width in enumerate(sizes)) + "\n"
    results_page.picture(folder / "training.svg", script + "unset multiplot\n")


def draw_separation(results: dict, folder: pathlib.Path) -> None:
    """Training loss over steps at the largest width, and the attention maps of one image."""
    runs, maps = results["separation"]["steps"], results["separation"]["maps"]
    width = max(row["width"] for row in runs)
    script = ""
    for tau0 in SCALES:
        mine = [row for row in runs if row["width"] == width and row["tau0"] == tau0 and row["step"] > 0]
        steps = sorted({row["step"] for row in mine})
        script += results_page.block(f"loss{2 * tau0:.0f}", [
            (step, statistics.mean(row["loss"] for row in mine if row["step"] == step and row["loss"] is not None)) for step in steps])
        tokens = 1 + max(row["to"] for row in maps)
        at = {(row["from"], row["to"]): row["weight"] for row in maps if row["tau0"] == tau0}
        script += results_page.block(f"map{2 * tau0:.0f}", [[at[a, b] for b in range(tokens)] for a in range(tokens)])
    script += f"""set terminal svg size 1000,330 font 'sans,13' background '#ffffff'
set multiplot layout 1,3
set logscale x
set xlabel 'step' offset 0,0.5
set ylabel 'training loss'
set grid lc rgb '#eeeeee'
set key bottom left
set title 'Width {width}: one scale learns more'
plot $loss1 with linespoints lw 2 pt 7 ps 0.5 lc rgb '#0072b2' title 'τ_0 = d_m^{{-1/2}}', \\
  $loss2 with linespoints lw 2 pt 7 ps 0.5 lc rgb '#d55e00' title 'τ_0 = d_m^{{-1}}'
unset logscale
unset grid
unset ylabel
unset key
set xlabel 'attends to token'
set palette defined (0 '#ffffff', 1 '#08306b')
set cbrange [0:{max(row['weight'] for row in maps):.4f}]
set size ratio 1
set xrange [-0.5:{tokens - 0.5}]
set yrange [-0.5:{tokens - 0.5}]
set ylabel 'token'
set title 'τ_0 = d_m^{{-1/2}}: tokens choose'
plot $map1 matrix with image pixels
set title 'τ_0 = d_m^{{-1}}: the mean of all'
plot $map2 matrix with image pixels
unset multiplot
"""
    results_page.picture(folder / "separation.svg", script)


def draw(results: dict, folder: pathlib.Path) -> None:
    draw_training(results, folder)
    draw_separation(results, folder)


if __name__ == "__main__":
    results_page.main("shallow_encoder", EXPERIMENTS, tables, draw)
