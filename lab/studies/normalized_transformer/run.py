#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""The claims of "Learning Rate Transfer in Normalized Transformers" (arXiv:2604.27077v2), at small size.

  python3 lab/studies/normalized_transformer/run.py build/release/tools

makes what is missing of results/, a sweep after the other, as tasks, and writes the tables and pictures of README.md
again. To resume what was stopped or killed, run the same command.
"""

import concurrent.futures
import dataclasses
import math
import os
import pathlib
import statistics
import sys
import zlib
from collections.abc import Callable

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "shared"))
import page  # noqa: E402
import results_page  # noqa: E402
import tasks  # noqa: E402

WORK = results_page.ROOT / "build/normalized_transformer"  # of unfinished sweeps

# The paper's training, as far as it fits here: no warm-up, a cosine to a tenth, its epsilon.
SCHEDULE = "--warmup 0 --min-rate 0.1 --seq 32 --batch 8"
TEXT = f"{SCHEDULE} --epsilon 1e-16"
# Of the runs that were made before programs took the activation from the rule's text, and knew no other epsilon.
COMMON = f"{SCHEDULE} --activation gelu"
AXES = {
    "width": "--axis width --sizes 32,64,128 --head-dim 16 --depth 2 --steps 600",
    "depth": "--axis depth --sizes 2,4,8,16 --width 64 --heads 4 --steps 300",
    "horizon": "--axis horizon --sizes 200,400,800,1600 --width 64 --heads 4 --depth 2",
    "joint": "--axis joint --sizes 32,48,64 --head-dim 16 --depth 2 --steps 200",
}
QUICK_AXES = {
    "width": "--axis width --sizes 16,32 --head-dim 8 --depth 1 --steps 60",
    "depth": "--axis depth --sizes 1,2 --width 32 --heads 2 --steps 60",
    "horizon": "--axis horizon --sizes 30,60 --width 32 --heads 2 --depth 1",
    "joint": "--axis joint --sizes 16,24 --head-dim 8 --depth 2 --steps 40",
}
# name: figure, rule, axis, what the paper says of the drift
SWEEPS = {
    "width_ngpt": ("2a", "ngpt", "width", "falls"),
    "width_nu_gpt": ("2b", "nu-gpt", "width", "stays"),
    "width_complete_p": ("7a", "ngpt-complete-p", "width", "rises slightly"),
    "width_full_align": ("-", "nu-gpt-full-align", "width", "-"),
    "depth_ngpt": ("3a", "ngpt", "depth", "stays"),
    "depth_nu_gpt": ("3b", "nu-gpt", "depth", "stays"),
    "depth_depth_mup": ("8", "ngpt-depth-mup", "depth", "rises strongly"),
    "horizon_ngpt": ("-", "ngpt", "horizon", "-"),
    "horizon_nu_gpt": ("9", "nu-gpt", "horizon", "falls as -0.34 + 1/3"),
    "joint_ngpt": ("1a", "ngpt", "joint", "does not stay"),
    "joint_nu_gpt": ("1b", "nu-gpt", "joint", "stays"),
}
ALIGNMENT = "--rule nu-gpt --sizes 64,128 --head-dim 16 --depth 4 --steps 1000 --seeds 3 --rate 0.005"
RATE = 0.02  # where grids begin
# At the largest size. Three leave the last one undecided (drift -0.77, from -2.16 to 0.62).
SEEDS = dict.fromkeys(SWEEPS, 3) | {"joint_nu_gpt": 10}
STEP_DEPTHS = [2, 4, 8, 16]
STEP_SEEDS = [1, 2, 3]
STEPS = "--rule ngpt --base 64 --width 64 --heads 4 --steps 1000 --rate 0.01"
# The same with corrections (Figure 11); the base has two layers.
CORRECTED = "--rule ngpt-complete-p --base 64 --set base.depth=2 --width 64 --heads 4 --steps 1000 --rate 0.005"
# Constants of the rates at the ends (Figure 16), at the optimal rate.
ENDS = "--rule nu-gpt --base 64 --width 64 --heads 4 --depth 2 --steps 400 --rate 0.005"
INPUT_RATES = [0.5, 1, 2]
OUTPUT_RATES = [0.25, 0.5, 1, 2]


def sweep(tools: pathlib.Path, options: str) -> dict:
    return results_page.sweep(tools, options, WORK / f"{zlib.crc32(options.encode()):x}", lambda rate: round(math.log2(rate / RATE), 6))


def alignment(tools: pathlib.Path, options: str) -> dict:
    full = tasks.output(tasks.program(tools, "alignment"), *options.split())
    last = max(row["step"] for row in full["steps"])
    shown = {row["step"] for row in full["steps"] if row["step"] in (1, 3, 10, 30, 100, 300, last)}
    losses = [row for row in full["losses"] if row["step"] == last]
    return {"command": "alignment " + options, "averages": full["averages"], "layers": full["layers"],
            "steps": [row for row in full["steps"] if row["step"] in shown], "losses": losses}


def on_all_cores(run: Callable, *lists: list) -> list:
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as cores:
        return [*cores.map(run, *lists)]


def step_vectors(tools: pathlib.Path, options: str) -> dict:
    """Mean absolute step, as it acts, over layers and entries, at the end of training."""
    # Init over scale: 0.05 √n of nGPT, with corrections 0.05/m_L over 0.03.
    factor = (lambda depth: 0.05 * math.sqrt(64)) if "--rule ngpt " in options else lambda depth: 0.05 / 0.03 * 2 / depth

    def run(depth: int, seed: int) -> dict:
        full = tasks.output(tasks.program(tools, "train"), *options.split(), "--depth", str(depth), "--seed", str(seed))
        found = {"depth": depth, "seed": seed, "validation_nats": full["validation_nats"]}
        for kind in ("attention", "mlp"):
            sizes = [t["mean_absolute"] for t in full["tensors"] if t["name"].endswith(f"{kind}_step")]
            found[kind] = factor(depth) * statistics.mean(sizes)
        return found

    wanted = [(depth, seed) for depth in reversed(STEP_DEPTHS) for seed in STEP_SEEDS]  # the largest first
    runs = on_all_cores(run, *zip(*wanted))
    return {"command": f"train {options} --depth L --seed S",
            "runs": sorted(runs, key=lambda one: (one["depth"], one["seed"]))}


def end_rates(tools: pathlib.Path, options: str) -> dict:
    """The validation loss with other constants on the rates of the embedding and of the head."""
    def run(input_rate: float, output_rate: float, seed: int) -> dict:
        full = tasks.output(tasks.program(tools, "train"), *options.split(), "--set", f"input_rate={input_rate}", "--set",
                      f"output_rate={output_rate}", "--seed", str(seed))
        return {"input": input_rate, "output": output_rate, "seed": seed, "validation_nats": full["validation_nats"]}

    wanted = [(i, o, seed) for i in INPUT_RATES for o in OUTPUT_RATES for seed in STEP_SEEDS]
    return {"command": f"train {options} --set input_rate=I --set output_rate=O --seed S",
            "runs": on_all_cores(run, *zip(*wanted))}


@dataclasses.dataclass
class Made(results_page.Runs):
    """A result that a function makes of the folder of programs and options."""
    run: Callable[[pathlib.Path, str], dict]
    options: str
    quick: str


def sweep_options(name: str, axes: dict[str, str], seeds: int) -> str:
    _, rule, axis, _ = SWEEPS[name]
    return f"--rule {rule} {axes[axis]} --seeds {seeds} {COMMON} --rate {RATE}"


EXPERIMENTS = {
    **{name: Made(sweep, sweep_options(name, AXES, SEEDS[name]), sweep_options(name, QUICK_AXES, 2)) for name in SWEEPS},
    "alignment": Made(alignment, f"{ALIGNMENT} {COMMON} --schedule cosine --threads 1",
                      f"{ALIGNMENT} {COMMON} --schedule cosine --threads 1 --sizes 16,32 --steps 30"),
    "step_vectors": Made(step_vectors, f"{STEPS} {COMMON} --validate-every 1000 --threads 1",
                         f"{STEPS} {COMMON} --validate-every 1000 --threads 1 --steps 10"),
    "corrected_step_vectors": Made(step_vectors, f"{CORRECTED} {TEXT} --validate-every 1000 --threads 1",
                                   f"{CORRECTED} {TEXT} --validate-every 1000 --threads 1 --steps 10"),
    "end_rates": Made(end_rates, f"{ENDS} {TEXT} --validate-every 1000 --threads 1",
                      f"{ENDS} {TEXT} --validate-every 1000 --threads 1 --steps 10"),
}

# ---- tables -----------------------------------------------------------------------------------------


def sweep_table(results: dict[str, dict]) -> str:
    rows = []
    for name, (figure, rule, axis, paper) in SWEEPS.items():
        if name not in results:
            continue
        r = results[name]
        last = r["sizes"][-1]
        regret = last["regret"]
        rows.append([figure, f"`{rule}`", axis, paper, results_page.interval_text(r["drift"]),
                     "-" if regret["value"] is None else f"{100 * regret['value'] / last['loss']:.2f}",
                     f"{last['loss']:.3f}", r["verdict"], str(results_page.run_count(r))])
    return page.table(["figure", "rule", "axis", "the paper: the optimal rate", "drift, 95 % interval",
                  "regret, %", "loss of the largest", "verdict", "runs"], rows)


def optimum_table(results: dict[str, dict]) -> str:
    rows = []
    for name, (_, rule, axis, _) in SWEEPS.items():
        for size in results.get(name, {}).get("sizes", []):
            rows.append([f"`{rule}`", axis, str(size["size"]), str(size["seeds"]),
                         "-" if size["rate"] is None else f"{size['rate']:.4f}",
                         "-" if size["low"] is None else f"{size['low']:.4f} to {size['high']:.4f}",
                         f"{size['loss']:.3f}"])
    return page.table(["rule", "axis", "size", "seeds", "optimal rate", "95 % interval", "loss"], rows)


def exponent(row: dict, name: str) -> str:
    return "-" if row[name] is None else f"{row[name]:.3f} ± {row[name + '_se']:.3f}"


def alignment_table(result: dict) -> str:
    rows = [[str(row["width"]), row["matrix"], row["average"],
             *(exponent(row, name) for name in ("alpha", "omega", "nu"))]
            for row in result["averages"] if row["matrix"] in ("hidden", "head")]
    return page.table(["width", "matrix", "average", "α", "ω", "ν"], rows)


def layer_table(result: dict) -> str:
    widest = max(row["width"] for row in result["layers"])
    rows = [[row["matrix"], str(row["layer"]), *(exponent(row, name) for name in ("alpha", "omega", "nu"))]
            for row in result["layers"] if row["width"] == widest and row["matrix"] != "head"]
    return page.table(["matrix", "layer", "α", "ω", "ν"], rows)


def slope(points: list[tuple[float, float]]) -> tuple[float, float]:
    """Of log y against log x, with its standard error."""
    x = [math.log(a) for a, _ in points]
    y = [math.log(b) for _, b in points]
    spread = sum((a - statistics.mean(x)) ** 2 for a in x)
    b = sum((a - statistics.mean(x)) * c for a, c in zip(x, y)) / spread
    a = statistics.mean(y) - b * statistics.mean(x)
    left = sum((c - a - b * d) ** 2 for d, c in zip(x, y))
    return b, math.sqrt(left / (len(points) - 2) / spread)


def step_table(result: dict) -> str:
    rows = []
    for kind, letter in (("attention", "α_A"), ("mlp", "α_M")):
        power, error = slope([(run["depth"], run[kind]) for run in result["runs"]])
        means = [statistics.mean(run[kind] for run in result["runs"] if run["depth"] == depth)
                 for depth in STEP_DEPTHS]
        rows.append([letter, *(f"{mean:.3f}" for mean in means), f"{power:.2f} ± {error:.2f}"])
    return page.table(["", *(f"{depth} layers" for depth in STEP_DEPTHS), "power of the depth"], rows)


def end_rate_table(result: dict) -> str:
    """Differences are paired by seed."""
    losses = {(run["input"], run["output"], run["seed"]): run["validation_nats"] for run in result["runs"]}
    seeds = sorted({seed for _, _, seed in losses})
    rows = []
    for i in sorted({i for i, _, _ in losses}):
        row = [f"η_input × {i:g}"]
        for o in sorted({o for _, o, _ in losses}):
            row.append(results_page.mean_text([losses[i, o, seed] - losses[1, 1, seed] for seed in seeds])
                       if (i, o) != (1, 1) else f"loss {statistics.mean(losses[1, 1, seed] for seed in seeds):.3f}")
        rows.append(row)
    return page.table(["", *(f"η_output × {o:g}" for o in sorted({o for _, o, _ in losses}))], rows)


# ---- pictures ---------------------------------------------------------------------------------------


COLOURS = {"pass": "#0072b2", "fail": "#d55e00", "inconclusive": "#7f7f7f"}
SIZE_COLOURS = ["#56b4e9", "#0072b2", "#e69f00", "#d55e00", "#7f7f7f"]


def draw_drifts(results: dict[str, dict], folder: pathlib.Path) -> None:
    """The drift of every sweep, and the band that counts as none."""
    names = [name for name in SWEEPS if name in results and results[name]["drift"]["low"] is not None]
    blocks = []
    for i, name in enumerate(names):
        d = results[name]["drift"]
        blocks.append(f"$s{i} << EOD\n{d['value']} {len(names) - i} {d['low']} {d['high']}\nEOD\n")
    tics = ", ".join(f"'{SWEEPS[name][2]}: {SWEEPS[name][1]}' {len(names) - i}" for i, name in enumerate(names))
    plots = ", ".join(f"$s{i} using 1:2:3:4 with xerrorbars lw 3 pt 7 ps 1.1 lc rgb "
                      f"'{COLOURS[results[name]['verdict']]}' notitle" for i, name in enumerate(names))
    results_page.picture(folder / "drifts.svg", f"""{''.join(blocks)}
set terminal svg size 820,{120 + 34 * len(names)} font 'sans,14' background '#ffffff'
set title "Where the optimal rate stays (blue) and where it moves (orange)" font ',16'
set ytics ({tics})
set yrange [0.3:{len(names) + 0.7}]
set xlabel 'drift of the optimal rate, octaves per octave (95 % interval)'
set grid xtics lc rgb '#dddddd'
set object 1 rectangle from -0.3,graph 0 to 0.3,graph 1 behind fc rgb '#e8f1f8' fs solid noborder
plot {plots}
""")


def draw_curves(results: dict[str, dict], folder: pathlib.Path) -> None:
    """Loss against rate, a panel per sweep."""
    names = [name for name in SWEEPS if name in results]
    columns = 3
    lines = -(-len(names) // columns)
    script = [f"set terminal svg size 1000,{300 * lines} font 'sans,13' background '#ffffff'",
              f"set multiplot layout {lines},{columns}", "set logscale x 2", "set key outside top center horizontal samplen 1.5",
              "set xlabel 'rate' offset 0,0.5", "set ylabel 'loss, nats' offset 1,0", "set format x '%.2g'",
              "set xtics 4", "set grid lc rgb '#eeeeee'"]
    for name in names:
        _, rule, axis, _ = SWEEPS[name]
        r = results[name]
        script.append(f"set title \"{axis}: {rule}\\n{r['verdict'].upper()}, drift "
                      f"{r['drift']['value']:+.2f}\"" if r["drift"]["value"] is not None else
                      f"set title \"{axis}: {rule}\\n{r['verdict'].upper()}\"")
        plots = []
        lowest, highest = math.inf, -math.inf
        for i, size in enumerate(s["size"] for s in r["sizes"]):
            at = {octave: [math.inf if loss is None else loss for loss in losses]
                  for run_size, octave, losses in r["runs"] if run_size == size and octave == round(octave)}
            points = [(octave, statistics.mean(losses)) for octave, losses in sorted(at.items())]
            points = [(octave, loss) for octave, loss in points if math.isfinite(loss)]
            lowest = min(lowest, *(loss for _, loss in points))
            highest = max(highest, min(loss for _, loss in points))
            script.append(f"$d{i} << EOD")
            script += [f"{RATE * 2 ** octave} {loss}" for octave, loss in points]
            script.append("EOD")
            plots.append(f"$d{i} with linespoints lw 2 pt 7 ps 0.7 lc rgb '{SIZE_COLOURS[i]}' title '{size}'")
        script.append(f"set yrange [{lowest - 0.05}:{highest + 0.5}]")
        script.append("plot " + ", ".join(plots))
    script.append("unset multiplot")
    results_page.picture(folder / "losses.svg", "\n".join(script) + "\n")


def draw_alignment(result: dict, folder: pathlib.Path) -> None:
    """Exponents over training, of the widest models."""
    widest = max(row["width"] for row in result["steps"])
    script = ["set terminal svg size 820,330 font 'sans,13' background '#ffffff'",
              "set multiplot layout 1,2", "set logscale x",
              "set xlabel 'step' offset 0,0.5", "set yrange [0.4:1]", "set grid lc rgb '#eeeeee'", "set key top right",
              "set xrange [0.8:1300]"]
    for matrix, title in (("hidden", "matrices of the blocks"), ("head", "head")):
        rows = [row for row in result["steps"] if row["matrix"] == matrix and row["width"] == widest]
        plots = []
        for name, letter, colour in (("alpha", "α", "#0072b2"), ("nu", "ν", "#d55e00"), ("omega", "ω", "#7f7f7f")):
            script += [f"${name} << EOD"]
            script += [f"{row['step']} {row[name]} {row[name + '_se']}" for row in rows]
            script += ["EOD"]
            plots.append(f"${name} using 1:2:3 with yerrorlines lw 2 pt 7 ps 0.6 lc rgb '{colour}' title '{letter}'")
        script += [f"set title '{title}: ω stays at 1/2'", "plot 0.75 lw 1 dt 2 lc rgb '#999999' title '3/4', "
                   + ", ".join(plots)]
    results_page.picture(folder / "alignment.svg", "\n".join([*script, "unset multiplot"]) + "\n")


def draw_steps(result: dict, folder: pathlib.Path) -> None:
    """Step vectors over the depth, with the fitted powers."""
    script = ["set terminal svg size 520,330 font 'sans,13' background '#ffffff'",
              "set logscale xy 2", "set xlabel 'layers'",
              "set title 'Trained step vectors of nGPT shrink with the depth'", "set grid lc rgb '#eeeeee'",
              "set xrange [1.7:19]", "set key top right"]
    plots = []
    for kind, letter, colour in (("attention", "α_A", "#0072b2"), ("mlp", "α_M", "#d55e00")):
        points = [(run["depth"], run[kind]) for run in result["runs"]]
        power, _ = slope(points)
        middle = math.exp(statistics.mean(math.log(y) - power * math.log(x) for x, y in points))
        script += [f"${kind} << EOD", *(f"{x} {y}" for x, y in points), "EOD"]
        plots.append(f"${kind} with points pt 7 ps 0.7 lc rgb '{colour}' notitle, {middle} * x ** {power} lw 2 lc rgb "
                     f"'{colour}' title '{letter} ~ L^{power:.2f}' noenhanced")
    results_page.picture(folder / "step_vectors.svg", "\n".join([*script, "plot " + ", ".join(plots)]) + "\n")


# ---- the page ---------------------------------------------------------------------------------------


def tables(results: dict[str, dict]) -> dict[str, str]:
    return {"sweeps": sweep_table(results), "optima": optimum_table(results), "alignment": alignment_table(results["alignment"]),
            "layers": layer_table(results["alignment"]), "steps": step_table(results["step_vectors"]),
            "corrected_steps": step_table(results["corrected_step_vectors"]), "end_rates": end_rate_table(results["end_rates"])}


def draw(results: dict[str, dict], folder: pathlib.Path) -> None:
    draw_drifts(results, folder)
    draw_curves(results, folder)
    draw_alignment(results["alignment"], folder)
    draw_steps(results["step_vectors"], folder)


if __name__ == "__main__":
    results_page.main("normalized_transformer", EXPERIMENTS, tables, draw)
