#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Which rule transfers, and what it costs: sweeps over width, depth, horizon and batch size.

  python3 lab/studies/which_rule/run.py build/release/tools

makes what is missing of results/, a sweep after the other, as tasks, and writes the tables and pictures of README.md and
maximal_update.md again. To resume what was stopped or killed, run the same command. --quick makes it all at
small size in build/results_quick, and leaves the pages alone.
"""

import argparse
import concurrent.futures
import itertools
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "shared"))
import page  # noqa: E402
import results_page  # noqa: E402
import tasks  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[3]
FOLDER = ROOT / "lab/studies/which_rule"
PAGES = {"which_rule": FOLDER / "README.md", "maximal_update": FOLDER / "maximal_update.md"}
WORK = ROOT / "build/which_rule"

COMMON = "--head-dim 16 --seq 16 --batch 4"
AXES = {"width": "--axis width --sizes 32,64,128 --depth 2 --steps 200 --seeds 4",
        "depth": "--axis depth --sizes 2,4,8,16 --width 32 --steps 200 --seeds 4",
        "horizon": "--axis horizon --sizes 100,200,400,800 --width 32 --depth 2 --seeds 4",
        "batch": "--axis batch --sizes 2,4,8,16 --width 32 --depth 2 --steps 200 --seeds 4",
        "shape": "--axis shape --sizes 32,64,128 --depth 2 --steps 200 --seeds 4",
        "joint": "--axis joint --sizes 32,48,64 --depth 2 --steps 200 --seeds 4"}
QUICK_DEEP_SIZES = "--sizes 4,6"
QUICK_AXES = {"width": "--axis width --sizes 16,32 --depth 1 --steps 30 --seeds 2",
              "depth": "--axis depth --sizes 1,2 --width 16 --steps 30 --seeds 2",
              "horizon": "--axis horizon --sizes 20,40 --width 16 --depth 1 --seeds 2",
              "batch": "--axis batch --sizes 2,4 --width 16 --depth 1 --steps 30 --seeds 2",
              "shape": "--axis shape --sizes 16,32 --depth 1 --steps 30 --seeds 2",
              "joint": "--axis joint --sizes 16,32 --depth 1 --steps 20 --seeds 2"}
STANDARD = "--rate 0.01"
STARTED = "--rate 0.01 --start standard"
OF_SOURCE = " --activation relu --set dropout=0.1 --set input_correlation=0.221"
DEEP = STANDARD + " --sizes 4,8,16" + OF_SOURCE  # it needs k < depth and ReLU
DEEPER = STANDARD + " --depth 4" + OF_SOURCE
NORMALIZED = "--rate 0.02 --warmup 0 --min-rate 0.1"
# name: axis, rule, options
SWEEPS = {
    "width_standard": ("width", "standard", STANDARD),
    "width_neural_tangent": ("width", "neural-tangent", "--rate 1"),
    "width_maximal_update_flat": ("width", "maximal-update", STANDARD),
    "width_maximal_update": ("width", "maximal-update", STARTED),
    "width_complete_p": ("width", "complete-p", STARTED),
    "width_nu_gpt": ("width", "nu-gpt", NORMALIZED),
    "depth_standard": ("depth", "standard", STANDARD),
    "depth_maximal_update": ("depth", "maximal-update", STARTED),
    "depth_depth_mup": ("depth", "depth-mup", STARTED),
    "depth_complete_p": ("depth", "complete-p", STARTED),
    "depth_deep_scale_lm": ("depth", "deep-scale-lm", DEEP),
    "depth_nu_gpt": ("depth", "nu-gpt", NORMALIZED),
    "horizon_maximal_update": ("horizon", "maximal-update", STARTED),
    "batch_maximal_update": ("batch", "maximal-update", STARTED),
    "shape_standard": ("shape", "standard", STANDARD),
    "shape_maximal_update": ("shape", "maximal-update", STARTED),
    "shape_complete_p": ("shape", "complete-p", STARTED),
    "shape_depth_mup": ("shape", "depth-mup", STARTED),
    "shape_deep_scale_lm": ("shape", "deep-scale-lm", DEEPER),
    "shape_nu_gpt": ("shape", "nu-gpt", NORMALIZED),
    "joint_standard": ("joint", "standard", STANDARD),
    "joint_maximal_update": ("joint", "maximal-update", STARTED),
    "joint_complete_p": ("joint", "complete-p", STARTED),
    "joint_depth_mup": ("joint", "depth-mup", STARTED),
    "joint_deep_scale_lm": ("joint", "deep-scale-lm", DEEPER),
    "joint_nu_gpt": ("joint", "nu-gpt", NORMALIZED),
}
# How the base model of maximal update is initialized, chosen on seeds that no sweep has.
STARTS = ["", "standard", "gpt2", "pytorch", "he"]
START_SEEDS = [101, 102, 103, 104]
START_OCTAVES = range(-3, 4)
START = ("--rule maximal-update --base 32 --width 32 --heads 2 --depth 2 --seq 16 --batch 4 --steps 200 "
         "--validate-every 200 --threads 1")
QUICK_START = START.replace("--steps 200 --validate-every 200", "--steps 30 --validate-every 30")
# Where width and depth grow together, the rates that the sweeps find are tried again on seeds that no sweep has,
# under rules whose losses can be compared.
TOGETHER = ["shape", "joint"]
REPORTED = [name for name, (axis, _, more) in SWEEPS.items() if axis in TOGETHER and more in (STANDARD, STARTED)]
REPORTED_SEEDS = {"shape": [201, 202, 203, 204, 205, 206, 207, 208], "joint": [201, 202, 203, 204]}
QUICK_REPORTED_SEEDS = {"shape": [201, 202], "joint": [201, 202]}

DIVERGED = 1  # exit code of train


def options_of(name: str, axes: dict) -> str:
    axis, rule, more = SWEEPS[name]
    if axes is QUICK_AXES:
        more = more.replace("--sizes 4,8,16", QUICK_DEEP_SIZES)
    return f"--rule {rule} {axes[axis]} {COMMON if axis != 'batch' else COMMON.replace(' --batch 4', '')} {more}"


def validation_loss(tools: pathlib.Path, options: list[str]) -> float | None:
    """Of train at its end; none for a diverged run."""
    done = subprocess.run([tasks.program(tools, "train"), *options, "--format", "json", "--quiet"], stdout=subprocess.PIPE,
                          encoding="utf-8", check=False)
    if done.returncode not in (0, DIVERGED):
        sys.exit(f"train {' '.join(options)}: exit code {done.returncode}")
    return json.loads(done.stdout)["validation_nats"] if done.returncode == 0 else None


def starts(tools: pathlib.Path, command: str) -> dict:
    runs = []
    for start, octave, seed in itertools.product(STARTS, START_OCTAVES, START_SEEDS):
        options = [*command.split(), *(["--start", start] if start else []), "--rate", str(0.01 * 2 ** octave), "--seed",
                   str(seed)]
        runs.append([start or "1/√n", 0.01 * 2 ** octave, seed, validation_loss(tools, options)])
    return {"command": f"train {command} --start START --rate RATE --seed SEED", "runs": runs}


def option(command: str, name: str) -> str:
    return re.search(rf"{name} (\S+)", command).group(1)


def shape_of(command: str, size: int) -> tuple[int, int]:
    """Depth and steps of the model of a width, in a sweep over width and depth together."""
    base = int(option(command, "--sizes").split(",")[0])
    depth, steps = int(option(command, "--depth")), int(option(command, "--steps"))
    return depth * size // base, round(steps * (size / base) ** 3) if "--axis joint" in command else steps


def train_options(command: str, size: int) -> str:
    """Of train, for the model of a width in a sweep."""
    base = int(option(command, "--sizes").split(",")[0])
    depth, steps = shape_of(command, size)
    same = re.findall(r"--(?:rule|seq|batch|start|warmup|min-rate) \S+", command)
    horizon = f"--set iterations={steps} --set base.iterations={option(command, '--steps')}"
    return " ".join([*same, f"--base {base} --width {size} --heads {size // int(option(command, '--head-dim'))}",
                     f"--depth {depth} --set base.depth={option(command, '--depth')} --steps {steps}",
                     f"--validate-every {steps} --threads 1", *([horizon] if "--axis joint" in command else [])])


def best_rate(one: dict, size: int) -> float:
    """That of the fit of all losses; where there is no such optimum, the rate with the lowest mean loss."""
    fitted = next(s["rate"] for s in one["sizes"] if s["size"] == size)
    return tuned(one, size)[0] if fitted is None else fitted


def reported(tools: pathlib.Path, results: dict, name: str, seeds: list[int]) -> dict:
    """Validation losses with the rate that is best for the smallest, and of `standard` also with that of each size."""
    one = results[name]
    sizes = [s["size"] for s in one["sizes"]]
    rates = [("smallest", size, best_rate(one, sizes[0])) for size in sizes]
    if SWEEPS[name][1] == "standard":
        rates += [("own", size, best_rate(one, size)) for size in sizes]
    wanted = [(which, size, rate, seed) for which, size, rate in rates for seed in seeds]

    def run(of: tuple) -> list:
        _, size, rate, seed = of
        return [*of, validation_loss(tools, [*train_options(one["command"], size).split(), "--rate", str(rate), "--seed",
                                             str(seed)])]

    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as cores:
        runs = [*cores.map(run, sorted(wanted, key=lambda of: -of[1]))]  # the largest first
    return {"command": f"train {train_options(one['command'], sizes[-1])} --rate RATE --seed SEED",
            "runs": sorted(runs, key=lambda of: of[:2])}


# ---- tables -----------------------------------------------------------------------------------------


def title(name: str) -> str:
    _, rule, more = SWEEPS[name]
    notes = {"--start": ", base by `standard`", "--depth": ", twice as deep"}
    flat = ", base 1/√n" if name.endswith("_flat") else ""
    return f"`{rule}`" + next((note for option, note in notes.items() if option in more), flat)


def by_rate(one: dict, size: int) -> dict[float, dict[int, float]]:
    """Losses of a size, by rate and seed; without rates that a seed diverges at."""
    found = {rate: {seed: math.inf if loss is None else loss for seed, loss in enumerate(losses, 1)}
             for run_size, rate, losses in one["runs"] if run_size == size}
    return {rate: losses for rate, losses in found.items() if max(losses.values()) < math.inf}


def tuned(one: dict, size: int) -> tuple[float, dict[int, float]]:
    """The rate with the lowest mean loss of all seeds of a size, and the losses there."""
    at = by_rate(one, size)
    full = max(len(losses) for losses in at.values())
    rate = min((r for r in at if len(at[r]) == full), key=lambda r: statistics.mean(at[r].values()))
    return rate, at[rate]


def transferred(one: dict, size: int) -> dict[int, float]:
    """Losses at the rate of the smallest size, or at that next to it with several seeds, at most half an octave away."""
    wanted = tuned(one, one["sizes"][0]["size"])[0]
    at = by_rate(one, size)
    near = [rate for rate in at if abs(math.log2(rate / wanted)) < 0.51 and len(at[rate]) > 1]
    return at[min(near, key=lambda rate: abs(math.log2(rate / wanted)))] if near else {}


def names_of(axis: str) -> list[str]:
    return [name for name in SWEEPS if SWEEPS[name][0] == axis]


def size_text(one: dict, axis: str, size: int) -> str:
    if axis not in TOGETHER:
        return f"{axis} {size}"
    depth, steps = shape_of(one["command"], size)
    return f"width {size}, depth {depth}" + (f", {steps} steps" if axis == "joint" else "")


def sweep_table(results: dict, axis: str) -> str:
    names = names_of(axis)
    sizes = sorted({size["size"] for name in names for size in results[name]["sizes"]})
    rows = []
    for name in names:
        one = results[name]
        last = one["sizes"][-1]
        regret = last["regret"]
        cost = "diverges" if regret["value"] is None else f"{100 * regret['value'] / last['loss']:.2f}"
        rows.append([title(name), one["verdict"], results_page.interval_text(one["drift"]), cost,
                     *(results_page.mean_text([*tuned(one, size)[1].values()]) if size in {s["size"] for s in one["sizes"]} else "-"
                       for size in sizes), str(results_page.run_count(one))])
    return page.table(["rule", "verdict", "drift, octaves per octave (95 %)", "cost of the smallest's rate, %",
                       *(f"loss at {size_text(results[names[0]], axis, size)}" for size in sizes), "runs"], rows)


def again_table(first: dict, again: dict) -> str:
    """Sweeps that were made twice, where sums have another order."""
    return page.table(["axis", "rule", "verdict", "drift (95 %)", "again", "drift (95 %)"],
                      [[SWEEPS[name][0], title(name), first[name]["verdict"], results_page.interval_text(first[name]["drift"]),
                        again[name]["verdict"], results_page.interval_text(again[name]["drift"])] for name in SWEEPS if name in again])


def losses_of(results: dict, name: str, which: str, size: int) -> dict[int, float]:
    """On the reported seeds; a diverged run's is infinite."""
    return {seed: math.inf if loss is None else loss for of, at, _, seed, loss in results[f"reported_{name}"]["runs"]
            if (of, at) == (which, size)}


def loss_text(losses: list[float]) -> str:
    diverged = sum(math.isinf(loss) for loss in losses)
    return f"{diverged} of {len(losses)} diverge" if diverged else results_page.mean_text(losses)


def reported_table(results: dict, axis: str) -> str:
    """Losses on seeds of their own, and what they are above those of `standard` tuned at each size, seed by seed."""
    reference = results[f"{axis}_standard"]
    sizes = [s["size"] for s in reference["sizes"]]
    rows = []
    for name, which in [(f"{axis}_standard", "own"), *((name, "smallest") for name in REPORTED if SWEEPS[name][0] == axis)]:
        rates = {run[2] for run in results[f"reported_{name}"]["runs"] if run[0] == which}
        cells = [title(name), "each" if which == "own" else "the smallest",
                 f"{min(rates):.3g}" + (f" to {max(rates):.3g}" if len(rates) > 1 else "")]
        for size in sizes:
            losses = losses_of(results, name, which, size)
            standard = losses_of(results, f"{axis}_standard", "own", size)
            pairs = [loss - standard[seed] for seed, loss in losses.items()]
            cells.append(loss_text([*losses.values()]))
            if size != sizes[0]:
                cells.append("-" if which == "own" or not all(map(math.isfinite, pairs)) else results_page.mean_text(pairs))
        rows.append(cells)
    header = ["rule", "tuned at", "rate"]
    for size in sizes:
        header += [size_text(reference, axis, size), *(["minus tuned `standard`"] if size != sizes[0] else [])]
    return page.table(header, rows)


def start_table(results: dict) -> str:
    rows = []
    for start in dict.fromkeys(run[0] for run in results["starts"]["runs"]):
        mine = [run for run in results["starts"]["runs"] if run[0] == start]
        at = {rate: [run[3] for run in mine if run[1] == rate] for rate in {run[1] for run in mine}}
        best = min((rate for rate in at if None not in at[rate]), key=lambda rate: statistics.mean(at[rate]))
        rows.append([start if "/" in start else f"`{start}`", f"{best:.4g}", results_page.mean_text(at[best])])
    return page.table(["base model", "best rate", "validation loss"], rows)


TRANSFERRED = {"width": ["width_maximal_update_flat", "width_maximal_update", "width_complete_p"],
               "depth": ["depth_maximal_update", "depth_depth_mup", "depth_complete_p"]}


def transferred_table(results: dict, axis: str) -> str:
    """Losses at the rate of the smallest size, and their differences from `standard` tuned at each size, seed by seed."""
    reference = results[f"{axis}_standard"]
    rows = []
    for size in (s["size"] for s in reference["sizes"]):
        standard = tuned(reference, size)[1]
        cells = [str(size), results_page.mean_text([*standard.values()])]
        for name in TRANSFERRED[axis]:
            found = transferred(results[name], size)
            pairs = [loss - standard[seed] for seed, loss in found.items() if seed in standard]
            cells.append(f"{statistics.mean(found.values()):.3f}" if found else "-")
            cells.append(results_page.mean_text(pairs) if pairs else "-")
        rows.append(cells)
    header = [cell for name in TRANSFERRED[axis] for cell in (title(name), "minus `standard`")]
    return page.table([axis, "`standard`, tuned at each", *header], rows)


# ---- pictures ---------------------------------------------------------------------------------------


def draw(results: dict, folder: pathlib.Path) -> None:
    """The drift of every sweep, next to what counts as none."""
    shown = [(name, results[name]) for name in SWEEPS if results[name]["drift"]["low"] is not None]
    colours = {"pass": "#0072b2", "fail": "#d55e00", "inconclusive": "#7f7f7f"}
    rows: dict[str, list] = {verdict: [] for verdict in colours}
    for i, (_, one) in enumerate(shown):
        drift = one["drift"]
        rows[one["verdict"]].append((drift["value"], len(shown) - i, drift["low"], drift["high"]))
    verdicts = [verdict for verdict in rows if rows[verdict]]
    data = "".join(results_page.block(verdict, rows[verdict]) for verdict in verdicts)
    tics = ", ".join(f"'{SWEEPS[name][0]}: {title(name).replace('`', '')}' {len(shown) - i}"
                     for i, (name, _) in enumerate(shown))
    plots = ", ".join(f"${verdict} using 1:2:3:4 with xerrorbars lw 3 pt 7 ps 1 lc rgb '{colours[verdict]}' notitle"
                      for verdict in verdicts)
    results_page.picture(folder / "drifts.svg", f"""{data}
set terminal svg size 860,{120 + 30 * len(shown)} font 'sans,14' background '#ffffff'
set title "The best rate: stays (blue), moves (orange), undecided (grey)" font ',15' offset -12
set ytics ({tics}) noenhanced
set yrange [0.3:{len(shown) + 0.7}]
set xlabel 'drift of the best rate, octaves per octave of size (95 % interval)'
set grid xtics lc rgb '#dddddd'
set object 1 rectangle from -0.3,graph 0 to 0.3,graph 1 behind fc rgb '#e8f1f8' fs solid noborder
plot {plots}
""")


CURVES = {
    "width": [("width_standard", "standard, tuned at each", "#7f7f7f"), ("width_maximal_update_flat", "maximal update from 1/√n", "#e69f00"),
              ("width_maximal_update", "maximal update from standard", "#0072b2")],
    "depth": [("depth_standard", "standard, tuned at each", "#7f7f7f"), ("depth_maximal_update", "maximal update", "#0072b2"),
              ("depth_depth_mup", "Depth-μP", "#e69f00"), ("depth_complete_p", "CompleteP", "#009e73")],
}


def draw_transferred(results: dict, folder: pathlib.Path) -> None:
    """Loss against size: standard tuned at each, the others with the rate of the smallest."""
    script = """set terminal svg size 960,420 font 'sans,13' background '#ffffff'
set multiplot layout 1,2 title "One rate from the smallest size, against standard tuned again" font ',16'
set logscale x 2
set ylabel 'loss, nats'
set grid lc rgb '#eeeeee'
set key outside bottom center vertical
"""
    for axis, curves in CURVES.items():
        plots = []
        for name, label, colour in curves:
            one = results[name]
            points = []
            for size in (s["size"] for s in one["sizes"]):
                found = tuned(one, size)[1] if name.endswith("standard") else transferred(one, size)
                if found:
                    points.append((size, statistics.mean(found.values())))
            script += results_page.block(name, points)
            plots.append(f"${name} with linespoints lw 3 pt 7 ps 0.8 lc rgb '{colour}' title '{label}'")
        script += f"set xlabel '{axis}'\nplot {', '.join(plots)}\n"
    results_page.picture(folder / "transferred.svg", script + "unset multiplot\n")


def draw_together(results: dict, folder: pathlib.Path) -> None:
    """Validation loss against width and depth: standard with the best rate of each size, all with that of the smallest."""
    script = """set terminal svg size 960,420 font 'sans,13' background '#ffffff'
set multiplot layout 1,2 title "Wider and deeper with the rate of the smallest: CompleteP matches or beats a re-tuned standard" font ',16'
set logscale x 2
set ylabel 'validation loss, nats'
set grid lc rgb '#eeeeee'
set key outside bottom center vertical
"""
    for axis in TOGETHER:
        reference, plots = results[f"{axis}_standard"], []
        sizes = [s["size"] for s in reference["sizes"]]
        for name, which, label, colour in (("standard", "own", "standard, tuned at each", "#7f7f7f"),
                                           ("standard", "smallest", "standard", "#d55e00"),
                                           ("maximal_update", "smallest", "maximal update", "#0072b2"),
                                           ("depth_mup", "smallest", "Depth-μP", "#e69f00"),
                                           ("complete_p", "smallest", "CompleteP", "#009e73")):
            at = {size: statistics.mean(losses_of(results, f"{axis}_{name}", which, size).values()) for size in sizes}
            script += results_page.block(f"{name}_{which}", [(size, loss) for size, loss in at.items() if loss < math.inf])
            plots.append(f"${name}_{which} with linespoints lw 3 pt 7 ps 0.8 lc rgb '{colour}' title '{label}'")
        depths, steps = zip(*(shape_of(reference["command"], size) for size in sizes))
        label = f"width, with {', '.join(map(str, depths))} layers" + (
            f" and {', '.join(map(str, steps))} steps" if axis == "joint" else "")
        script += f"set xrange [{0.95 * sizes[0]}:{1.05 * sizes[-1]}]\nset xtics ({', '.join(map(str, sizes))})\nset xlabel '{label}'\nplot {', '.join(plots)}\n"
    results_page.picture(folder / "together.svg", script + "unset multiplot\n")


def make_missing(tools: pathlib.Path, kept: pathlib.Path, quick: bool) -> None:
    axes, start, work = (QUICK_AXES, QUICK_START, results_page.QUICK / "which_rule_runs") if quick else (AXES, START, WORK)
    kept.mkdir(parents=True, exist_ok=True)
    makers = {"starts": lambda: starts(tools, start),
              **{name: lambda name=name: results_page.sweep(tools, options_of(name, axes), work / name) for name in SWEEPS}}
    seeds = QUICK_REPORTED_SEEDS if quick else REPORTED_SEEDS
    for name in REPORTED:
        makers[f"reported_{name}"] = lambda name=name: reported(tools, page.kept(kept), name, seeds[SWEEPS[name][0]])
    for name, make in makers.items():
        if not (kept / f"{name}.json").exists():
            print("running", name, flush=True)
            page.keep(kept / f"{name}.json", make())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tools", type=pathlib.Path, nargs="?", help="folder of the programs")
    parser.add_argument("--quick", action="store_true", help="small, in build/results_quick")
    parser.add_argument("--tables", action="store_true", help="write from existing results, run nothing")
    parser.add_argument("--check", action="store_true", help="fail where a page differs from the results")
    a = parser.parse_args()
    kept = results_page.QUICK / "which_rule" if a.quick else FOLDER / "results"
    if not (a.check or a.tables):
        if not a.tools:
            parser.error("the folder of the programs is missing")
        make_missing(a.tools.resolve(), kept, a.quick)
    results = page.kept(kept)
    tables = {"which_rule": {**{axis: sweep_table(results, axis) for axis in AXES},
                             **{f"reported_{axis}": reported_table(results, axis) for axis in TOGETHER},
                             "again": again_table(results, page.kept(kept / "again"))},
              "maximal_update": {"starts": start_table(results),
                                 **{f"transferred_{axis}": transferred_table(results, axis) for axis in TRANSFERRED}}}
    for name, of_page in tables.items():
        text = PAGES[name]
        if a.check:
            page.check(text, of_page, "lab/studies/which_rule/run.py --tables")
            continue
        filled = page.filled(text, of_page)
        page.write(results_page.QUICK / f"{name}.md" if a.quick else text, filled)
    if not a.check:
        draw(results, kept)
        draw_transferred(results, kept)
        draw_together(results, kept)


if __name__ == "__main__":
    main()
