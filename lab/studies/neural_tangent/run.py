#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""The claims of "Effective Theory of Transformers at Initialization" (arXiv:2304.02034), at small size.

  python3 lab/studies/neural_tangent/run.py build/release/tools

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
from strategies import Search, Spikes, Tuned, Variant, difference, ends, mean_curve, reported, text, tuning  # noqa: E402

# ---- image classification ---------------------------------------------------------------------------

WIDTH, PATCH, CLASSES = 64, 4, 10  # PATCH: pixels of a patch
PAPER = ("--set biases=false --set norm_gain=false --set norm_bias=false --set mlp_ratio_in_rates=false "
         "--set C_query=0.5 --set C_key=0.5 --set C_value=0.5 --set C_attention_output=0.3333333333333333 "
         "--set C_mlp_up=0.4 --set C_mlp_down=1.6 --set C_position_embedding=0.0004")
HIDDEN = ("query", "key", "value", "attention_output", "mlp_up", "mlp_down")


def uniform(width: int) -> str:
    """Neural-tangent scaling with constants that make all rates 1: the standard strategy, from the same initial values."""
    constants = {"patch_embedding": PATCH * math.sqrt(width), "position_embedding": math.sqrt(width),
                 "head": width * math.sqrt(CLASSES), "head_bias": math.sqrt(CLASSES),
                 **{group: width ** 1.5 for group in HIDDEN}}
    return "--rule neural-tangent " + " ".join(f"--set Lambda_{group}={x:.10g}" for group, x in constants.items())


def vision(width: int) -> dict[str, tuple[str, float]]:
    """Rule of each strategy, and its factor on the rate of hidden matrices."""
    return {"standard": (uniform(width), 1),
            "neural_tangent": ("--rule neural-tangent", width ** -1.5),
            "hybrid": ("--rule meta-principled --set s=0.5", width ** -1.25),
            "maximal_update": ("--rule meta-principled --set s=1", width ** -1)}


def vision_search(name: str, width: int, model: str, longer: str, tuned: tuple, seeds: tuple) -> Search:
    rule, hidden = vision(width)[name]
    faster = math.sqrt(width) * width  # the position embedding's rate n times that of all others
    variants = [Variant("longer", longer, hidden), Variant("start", "--set C_position_embedding=1", hidden)]
    if name == "standard":
        variants.append(Variant("positions", f"--set Lambda_position_embedding={faster:.10g}", hidden))
    return Search(f"--digits tools/data/digits.csv {rule} {PAPER} --width {width} {model}", hidden, 0.001, 0.5, tuned, seeds,
                  tuple(variants))


VISION = "--depth 3 --heads 4 --patch 2 --batch 32 --steps 150 --warmup 10 --validate-every 30"
LONGER = "--steps 600 --warmup 40 --validate-every 120"
QUICK_VISION = "--depth 1 --heads 2 --patch 2 --batch 8 --steps 10 --warmup 1 --validate-every 5"
EXPERIMENTS: dict = {
    f"vision_{name}": Tuned(vision_search(name, WIDTH, VISION, LONGER, (101, 102), tuple(range(1, 9))),
                            vision_search(name, 16, QUICK_VISION, "--steps 20", (101,), (1, 2)))
    for name in vision(WIDTH)}

# At a half, 2, 8 and 32 times what is the best rate of most strategies; the highest are where the loss may rise again.
HIGH = tuple(0.004 * factor for factor in (0.5, 2, 8, 32))
for key in vision(WIDTH):
    EXPERIMENTS[f"spikes_{key}"] = Spikes(
        (vision_search(key, WIDTH, f"{VISION} {LONGER}", "", (), ()), HIGH, (1, 2, 3)),
        (vision_search(key, 16, QUICK_VISION, "", (), ()), HIGH[:2], (1,)))

# ---- kernel shares ----------------------------------------------------------------------------------

SHARES = ("--optimizer sgd --steps 1 --depth 2 --set biases=false --set norm_gain=false --set norm_bias=false "
          "--set tied_head=true --threads 1")
SIZES = "--sizes 32,64,128,256,512 --seeds 5 --inputs 8 --outputs 4 --seq 32 --batch 8"
QUICK_SIZES = "--sizes 16,32,64 --seeds 2 --inputs 2 --outputs 2 --seq 8 --batch 2"
RULES = {"neural_tangent": "neural-tangent", "standard": "standard"}
for key, rule in RULES.items():
    EXPERIMENTS[f"shares_{key}"] = Experiment("empirical_ntk", f"--rule {rule} {SHARES} {SIZES}",
                                              f"--rule {rule} {SHARES} {QUICK_SIZES}", ("groups",))

# ---- denoising --------------------------------------------------------------------------------------

DENOISING = ("--task denoising --set biases=false --set norm_gain=false --set norm_bias=false --set embedding_norm=true "
             "--schedule linear --clip 0.1")
SIZE = "--depth 2 --heads 4 --seq 32 --batch 16 --steps 250 --warmup 6 --validate-every 125"
LARGER = "--depth 3 --heads 8 --steps 126 --warmup 3 --validate-every 42"
LONGER_TEXT = "--steps 1000 --warmup 25 --validate-every 500"
QUICK_LARGER = "--depth 2 --steps 4"
QUICK_SIZE = "--depth 1 --heads 2 --seq 16 --batch 4 --steps 6 --warmup 1 --validate-every 6"
DECAY = 0.01


def language(width: int) -> dict[str, tuple[str, float]]:
    """All deviations 0.02, except that neural-tangent scaling has embeddings of deviation 1, and logits times 1/√n."""
    constants = {**{group: 0.0004 * width for group in HIDDEN}, "mlp_down": 0.0016 * width, "position_embedding": 0.0004}
    return {"standard": ("--rule bert --set head_bias=false", 1),
            "neural_tangent": ("--rule neural-tangent --set mlp_ratio_in_rates=false "
                               + " ".join(f"--set C_{group}={x:.10g}" for group, x in constants.items()), width ** -1.5)}


def language_search(name: str, width: int, model: str, larger: str, longer: str, tuned: tuple, seeds: tuple,
                    reach: int = 2) -> Search:
    """With runs that are longer, and runs at twice the width, both untuned: the hidden matrices keep their rate."""
    rule, hidden = language(width)[name]
    wide_rule, wide_hidden = language(2 * width)[name]
    _, *constants = wide_rule.split(" ", 1)[1].split(" ", 1)  # without --rule NAME
    variants = [Variant("larger", f"{' '.join(constants)} --width {2 * width} {larger}", wide_hidden),
                Variant("longer", longer, hidden)]
    if name == "neural_tangent":
        variants.append(Variant("slow", f"{longer} --set Lambda_position_embedding={1 / width:.10g}", hidden))
    return Search(f"{DENOISING} {rule} --width {width} {model}", hidden, 0.004, DECAY, tuned, seeds,
                  tuple(variants), (2, 1), reach)


for key in language(WIDTH):
    EXPERIMENTS[f"denoising_{key}"] = Tuned(
        language_search(key, WIDTH, SIZE, LARGER, LONGER_TEXT, (101, 102, 103), (1, 2, 3, 4, 5, 6)),
        language_search(key, 16, QUICK_SIZE, QUICK_LARGER, "--steps 8", (101,), (1, 2), 1))

# ---- tables -----------------------------------------------------------------------------------------

GROUPS = ("token_embedding", "position_embedding", *HIDDEN)
TITLES = {"standard": "standard", "positions": "standard, positions n times as fast", "neural_tangent": "neural tangent",
          "slow": "neural tangent, positions as slow as matrices",
          "hybrid": "hybrid, s = 1/2", "maximal_update": "maximal update, s = 1"}
IMAGES = ("standard", "positions", "neural_tangent", "hybrid", "maximal_update")


def spikes_table(results: dict) -> str:
    rows = []
    for key in vision(WIDTH):
        runs = results[f"spikes_{key}"]["runs"]
        cells = []
        for rate in HIGH:
            mine = [run for run in runs if run[0] == rate]
            if not mine:
                continue
            kept = [run[3] for run in mine if run[3] is not None]
            lost = f", {len(mine) - len(kept)} of {len(mine)} diverged" if len(kept) < len(mine) else ""
            loss = f" ({mean_text(kept, 2)})" if kept else ""
            cells.append(f"{sum(run[2] for run in mine)}{loss}{lost}")
        rows.append([TITLES[key], *cells])
    rates = sorted({run[0] for run in results["spikes_standard"]["runs"]})
    return page.table(["strategy", *(f"rate {rate:g}" for rate in rates)], rows)


def shares(results: dict, rule: str) -> dict[str, list[tuple[int, float, float]]]:
    """By group: (width, share, half its 95 % interval)."""
    found: dict[str, list[tuple[int, float, float]]] = {group: [] for group in GROUPS}
    half = results_page.student(int(option(results[f"shares_{rule}"]["command"], "--seeds")) - 1)
    for row in results[f"shares_{rule}"]["groups"]:
        found[row["group"]].append((row["width"], row["share"], half * row["share_se"]))
    return found


def option(command: str, name: str) -> str:
    """Its last value."""
    words = command.split()
    return words[len(words) - words[::-1].index(name)]


def shares_table(results: dict) -> str:
    by_rule = {rule: shares(results, rule) for rule in RULES}
    widths = [width for width, *_ in by_rule["standard"]["query"]]
    rows = []
    for group in GROUPS:
        cells = [group.replace("_", " ").replace("mlp", "MLP")]
        for of in by_rule.values():
            points = of[group]
            cells += [f"{100 * share:.1f} ± {100 * half:.1f}" for _, share, half in (points[0], points[-1])]
            cells.append(f"{100 * min(s for _, s, _ in points):.1f} to {100 * max(s for _, s, _ in points):.1f}")
            cells.append(slope_text(slope([math.log(w) for w, *_ in points], [math.log(s) for _, s, _ in points])))
        rows.append(cells)
    return page.table(["group", *(f"{RULES[rule]}: {what}" for rule in by_rule for what in (
        f"share at width {widths[0]}, %", f"at {widths[-1]}, %", "at all widths, %", "power of the width"))], rows)


def strategies(results: dict, kind: str) -> dict[str, dict]:
    return {name: results[f"{kind}_{name}"] for name in TITLES if f"{kind}_{name}" in results}


def tuned_table(results: dict, kind: str) -> str:
    rows = []
    for name, of in strategies(results, kind).items():
        settings = tuning(of)
        lost = sum(loss == math.inf for losses in settings.values() for loss in losses)
        rate, decay = of["rate"], of["decay"]
        rows.append([TITLES[name], f"{float(option(of['command'], '--rate')):.4g}", f"{rate:.3g}", f"{rate * decay:.2g}",
                     f"{statistics.mean(settings[rate, decay]):.3f}", str(len(settings)), f"{lost} of {len(of['tuning'])}"])
    return page.table(["strategy", "best learning rate", "that of hidden matrices", "times the decay", "loss",
                       "settings tried", "runs that diverged"], rows)


def vision_table(results: dict) -> str:
    base = results["vision_standard"]
    rows = []
    for name in IMAGES:
        if name == "positions":
            columns = {"": reported(base, name)}
        else:
            columns = {variant: reported(results[f"vision_{name}"], variant) for variant in ("", "longer", "start")}
        cells = [TITLES[name]]
        for variant in ("", "longer", "start"):
            runs = columns.get(variant, [])
            than = difference(runs, reported(base, variant), 2, 100, 1) if name != "standard" else "-"
            cells += [text(runs, 2, 100, 1), than]
        rows.append([*cells, text(columns[""], 1)])
    steps, longer = (option(command, "--steps") for command in (base["command"], base["variants"]["longer"]))
    header = [f"accuracy after {steps} steps, %", f"after {longer} steps, %", f"after {steps}, positions of deviation 1, %"]
    return page.table(["strategy", *(cell for title in header for cell in (title, "minus standard")),
                       f"loss after {steps} steps"], rows)


def denoising_table(results: dict, variant: str) -> str:
    runs = {name: reported(of, variant) for name, of in strategies(results, "denoising").items()}
    if variant == "longer":
        runs["slow"] = reported(results["denoising_neural_tangent"], "slow")
    rows = []
    for name, of in runs.items():
        than = difference(of, runs["standard"], 1) if name != "standard" else "-"
        rows.append([TITLES[name], *(f"{loss:.3f}" for _, loss in mean_curve(of, 1)[1:-1]), text(of, 1), than])
    steps = [step for step, _ in mean_curve(runs["standard"], 1)]
    return page.table(["strategy", *(f"loss after {step} steps" for step in steps[1:-1]), f"loss after {steps[-1]} steps",
                       "minus standard"], rows)


def sensitivity_table(results: dict) -> str:
    """The cost of rates that are too low or too high, on the seeds of the search."""
    rows = []
    octaves = (-2, -1, 1, 2)
    for name, of in strategies(results, "denoising").items():
        losses = tuning(of)
        best = losses[of["rate"], of["decay"]]
        cells = [TITLES[name]]
        for octave in octaves:
            at = losses.get((of["rate"] * 2.0 ** octave, of["decay"]))
            pairs = [a - b for a, b in zip(at, best) if math.isfinite(a)] if at else []
            lost = f", {len(at) - len(pairs)} of {len(at)} diverged" if at and len(pairs) < len(at) else ""
            cells.append(("+" + mean_text(pairs) if pairs else "-") + lost)
        rows.append(cells)
    return page.table(["strategy", *(f"{2.0 ** octave:g} times the best rate" for octave in octaves)], rows)


def tables(results: dict) -> dict[str, str]:
    return {"shares": shares_table(results), "tuned": tuned_table(results, "vision"), "vision": vision_table(results),
            "spikes": spikes_table(results), "rates": tuned_table(results, "denoising"),
            "denoising": denoising_table(results, ""), "longer": denoising_table(results, "longer"),
            "sensitivity": sensitivity_table(results), "larger": denoising_table(results, "larger")}


# ---- pictures ---------------------------------------------------------------------------------------

COLOURS = {"standard": "#333333", "positions": "#e69f00", "neural_tangent": "#0072b2", "hybrid": "#8e44ad",
           "maximal_update": "#d55e00"}
HEAD = """set terminal svg size 1000,360 font 'sans,13' background '#ffffff'
set encoding utf8
set multiplot layout 1,2
set grid lc rgb '#eeeeee'
set border 3
set tics nomirror
"""


def draw_shares(results: dict, folder: pathlib.Path) -> None:
    widths = [width for width, *_ in shares(results, "standard")["query"]]
    script = HEAD + ("set logscale xy\nset xlabel 'width'\nset yrange [0.03:120]\nset format y '%g'\nset rmargin 20\n"
                     f"set xrange [{0.85 * widths[0]}:{1.15 * widths[-1]}]\nunset mxtics\n"
                     "set xtics (" + ", ".join(str(width) for width in widths) + ")\n")
    titles = {"neural_tangent": "Neural tangent: every group keeps its share", "standard": "One rate: the embeddings fade"}
    for rule in RULES:
        of = shares(results, rule)
        pooled = {"token embedding": ("token_embedding",), "position embedding": ("position_embedding",),
                  "query, key": ("query", "key"), "value, output": ("value", "attention_output"),
                  "MLP": ("mlp_up", "mlp_down")}
        script += "unset label\n" + f"set title '{titles[rule]}'\nset ylabel 'share of the kernel, %'\nunset key\n"
        plots, labels = [], []
        for i, (title, groups) in enumerate(pooled.items()):
            points = [(at[0][0], 100 * sum(share for _, share, _ in at)) for at in zip(*(of[group] for group in groups))]
            script += results_page.block(f"{rule}{i}", points)
            colour = list(COLOURS.values())[i]
            plots.append(f"${rule}{i} using 1:2 with linespoints lw 2.5 pt 7 ps 0.6 lc rgb '{colour}'")
            labels.append([points[-1][1], title, colour])
        previous = 0.0
        for i, (y, title, colour) in enumerate(sorted(labels)):
            previous = max(y, previous * 1.5)
            script += f"set label {i + 1} '{title}' at {1.2 * widths[-1]},{previous} left textcolor rgb '{colour}'\n"
        script += "plot " + ", ".join(plots) + "\n"
    results_page.picture(folder / "shares.svg", script + "unset multiplot\n")


def draw_vision(results: dict, folder: pathlib.Path) -> None:
    """Accuracy of each run by strategy, and the mean over steps."""
    base = results["vision_standard"]
    of = {name: reported(base, name) if name == "positions" else reported(results[f"vision_{name}"]) for name in IMAGES}
    script = HEAD
    labels = {"standard": "standard", "positions": "standard,\\npositions ×n", "neural_tangent": "neural\\ntangent",
              "hybrid": "hybrid", "maximal_update": "maximal\\nupdate"}
    for i, (name, runs) in enumerate(of.items()):
        values = ends(runs, 2, 100)
        half = results_page.student(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
        script += results_page.block(f"s{i}", [(i + 0.12 * (j / len(values) - 0.5), v) for j, v in enumerate(values)])
        script += results_page.block(f"m{i}", [(i, statistics.mean(values), half)])
        script += results_page.block(f"c{i}", [(step, 100 * mean) for step, mean in mean_curve(runs, 2)])
    script += ("set xrange [-0.5:4.5]\nset xtics (" + ", ".join(f'"{labels[name]}" {i}' for i, name in enumerate(of)) + ")\n"
               "set ylabel 'accuracy, %'\nunset key\nset title 'Faster positions make the difference'\nset bmargin 4\n")
    script += "plot " + ", ".join(f"$s{i} using 1:2 with points pt 7 ps 0.4 lc rgb '#bbbbbb', "
                                  f"$m{i} using 1:2:3 with yerrorbars lw 2.5 pt 7 ps 0.8 lc rgb '{COLOURS[name]}'"
                                  for i, name in enumerate(of)) + "\n"
    script += "set xrange [*:*]\nset xtics auto\nset xlabel 'step'\nset key bottom right\nset title 'Mean over the runs'\n"
    script += "plot " + ", ".join(f"$c{i} using 1:2 with linespoints lw 2.5 pt 7 ps 0.5 lc rgb '{COLOURS[name]}' "
                                  f"title '{TITLES[name]}'" for i, name in enumerate(of)) + "\n"
    results_page.picture(folder / "vision.svg", script + "unset multiplot\n")


def draw_denoising(results: dict, folder: pathlib.Path) -> None:
    """The loss of the search against the rate of hidden matrices, and of the larger models over steps."""
    script = HEAD
    searches = strategies(results, "denoising")
    for name, of in searches.items():
        means = sorted((rate, statistics.mean(losses)) for (rate, _), losses in tuning(of).items())
        script += results_page.block(f"rate_{name}", [point for point in means if math.isfinite(point[1])])
        script += results_page.block(f"steps_{name}", mean_curve(reported(of, "larger"), 1)[1:])
    rates = sorted({rate for of in searches.values() for rate, _ in tuning(of)})
    left = ("set logscale x\nset xlabel 'learning rate of the hidden matrices'\nset key at graph 0.68,0.98\n"
            f"set xrange [{rates[0] / 1.3}:{rates[-1] * 1.3}]\nunset mxtics\n"
            "set xtics (" + ", ".join(f"{rate:g}" for rate in rates) + ")\n")
    right = "unset logscale\nset xlabel 'step'\nset key top right\nset xrange [*:*]\nset xtics auto\n"
    for kind, more, title in (("rate", left, "The same best rate under both"),
                              ("steps", right, "Twice the width, untuned: undecided")):
        script += more + f"set ylabel 'loss, nats per byte'\nset title '{title}'\n"
        script += "plot " + ", ".join(f"${kind}_{name} using 1:2 with linespoints lw 2.5 pt 7 ps 0.6 lc rgb '{COLOURS[name]}' "
                                      f"title '{TITLES[name]}'" for name in searches) + "\n"
    results_page.picture(folder / "denoising.svg", script + "unset multiplot\n")


def draw(results: dict, folder: pathlib.Path) -> None:
    draw_shares(results, folder)
    draw_vision(results, folder)
    draw_denoising(results, folder)


if __name__ == "__main__":
    results_page.main("neural_tangent", EXPERIMENTS, tables, draw)
