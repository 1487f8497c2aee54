#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""The claims of "Infinite attention: NNGP and NTK for deep attention networks" (arXiv:2006.10540), at small size.

  python3 lab/studies/infinite_attention/run.py build/release/tools

makes what is missing of results/, and writes the tables and pictures of README.md again.
"""

import math
import pathlib
import statistics
import sys
from random import Random

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "shared"))
import page  # noqa: E402
import results_page  # noqa: E402
from results_page import Experiment, mean_text  # noqa: E402

SPLITS = list(range(1, 11))
SHIFTED = "build/infinite_attention/shifted_{most}.csv"  # below the root, where programs run
SHIFTS = {"nudged": 2, "rolled": 7}  # rows and columns at most
KERNELS = "flatten,gap,lap,struct,residual"
DIGITS = "--train 50 --validation 50 --test 300"
CHAPTERS = "--data chapters --kernels gap,struct,residual --sigma-qk 0.3 --train 150 --validation 60 --test 150"
CONVOLUTIONS = [1, 2, 4]
DEPTH_SPLITS = SPLITS[:5]
NORMS = {"none": "none", "head": "LayerNorm of each head", "output": "LayerNorm at the output"}
QUICK_TRAINED = "--sizes 12,16 --seeds 2 --steps 4 --train 10 --validation 10 --test 20"
ADAM = "--optimizer adam --train 128 --validation 200 --test 500 --steps 1000"
QUICK_ADAM = f"--optimizer adam --batch 5 {QUICK_TRAINED}"
QUICK_DIGITS = "--train 20 --validation 20 --test 30"
QUICK_CHAPTERS = "--data chapters --kernels gap,struct --sigma-qk 0.3 --train 12 --validation 8 --test 8"


def shift_digits(most: int) -> None:
    """Writes the digits, each shifted by 0 to `most` rows and columns, around the border."""
    random = Random(1)
    lines = []
    for line in (results_page.ROOT / "tools/data/digits.csv").read_text(encoding="utf-8").splitlines():
        *pixels, label = line.split(",")
        side = math.isqrt(len(pixels))
        down, right = random.randrange(most + 1), random.randrange(most + 1)
        rolled = [pixels[(y - down) % side * side + (x - right) % side] for y in range(side) for x in range(side)]
        lines.append(",".join([*rolled, label]))
    path = results_page.ROOT / SHIFTED.format(most=most)
    path.parent.mkdir(parents=True, exist_ok=True)
    page.write(path, "\n".join(lines) + "\n")


class OnShiftedDigits(Experiment):
    def run(self, folder: pathlib.Path, options: str) -> dict:
        for most in SHIFTS.values():
            shift_digits(most)
        return super().run(folder, options)


def regression(options: str, quick: str, split: int, kind: type = Experiment) -> Experiment:
    return kind("kernel_regression", f"{options} --seed {split}", f"{quick} --seed {split}", ("accuracies",))


EXPERIMENTS = {
    "single_head": Experiment("single_head", "--samples 10000", "--samples 500 --sizes 1,4", ("heads",)),
    "convergence": Experiment("kernel_convergence", "--sizes 16,32,64,128 --seeds 16", "--sizes 4,16 --seeds 4 --inputs 2",
                              ("distances", "slopes")),
    "sampled_softmax": Experiment("sampled_kernels", "--attention softmax", "--attention softmax --sizes 4,9 --seeds 4 "
                                  "--train 20 --validation 20 --test 20", ("accuracies", "limit")),
    "sampled_relu": Experiment("sampled_kernels", "--attention relu", "--attention relu --sizes 4,9 --seeds 4 --train 20 "
                               "--validation 20 --test 20", ("accuracies", "limit")),
    "trained": Experiment("trained_attention", "", QUICK_TRAINED, ("networks", "kernels")),
    "centred": Experiment("trained_attention", "--centred", f"--centred {QUICK_TRAINED}", ("networks", "kernels")),
    "trained_head": Experiment("trained_attention", "--norm head", f"--norm head {QUICK_TRAINED}", ("networks",)),
    "centred_head": Experiment("trained_attention", "--norm head --centred", f"--norm head --centred {QUICK_TRAINED}", ("networks",)),
    **{f"adam_{norm}": Experiment("trained_attention", f"--norm {norm} {ADAM}", f"--norm {norm} {QUICK_ADAM}", ("networks", "best"))
       for norm in NORMS},
    **{f"digits_{split}": regression(DIGITS, QUICK_DIGITS, split) for split in SPLITS},
    **{f"{name}_{split}": regression(f"--digits {SHIFTED.format(most=most)} {DIGITS}",
                                     f"--digits {SHIFTED.format(most=most)} {QUICK_DIGITS}", split, OnShiftedDigits)
       for name, most in SHIFTS.items() for split in SPLITS},
    **{f"convolutions{depth}_{split}": regression(
        f"--digits {SHIFTED.format(most=2)} --kernels {KERNELS} --filter 3 --depth {depth} {DIGITS}",
        f"--digits {SHIFTED.format(most=2)} --kernels {KERNELS} --filter 3 --depth {depth} {QUICK_DIGITS}", split, OnShiftedDigits)
       for depth in CONVOLUTIONS for split in DEPTH_SPLITS},
    **{f"vanilla_{split}": regression(f"--kernels struct --alpha 1 {DIGITS}", f"--kernels struct --alpha 1 {QUICK_DIGITS}",
                                      split) for split in SPLITS},
    **{f"chapters_{split}": regression(CHAPTERS, QUICK_CHAPTERS, split) for split in SPLITS[:3]},
}
CIFAR = {"flatten": (65.54, 66.27), "gap": (77.85, 77.39), "struct": (80.55, 79.93), "residual": (80.72, 80.10)}
TABLE_8 = {"none": {"softmax": 64.10, "relu": 69.68, "identity": 70.46},
           "head": {"softmax": 68.96, "relu": 77.40, "identity": 75.28},
           "output": {"softmax": 71.70, "relu": 79.00, "identity": 79.56}}


def accuracies(results: dict, of: str, kernel: str, by: str) -> list[float]:
    """In percent, of all splits."""
    return [100 * row["test"] for name, one in results.items() if name.startswith(of + "_") for row in one["accuracies"]
            if row["kernel"] == kernel and row["by"] == by]


def difference(a: list[float], b: list[float]) -> str:
    return mean_text([x - y for x, y in zip(a, b)], 1)


def heads_table(results: dict) -> str:
    rows = [[str(row["heads"]), f"{row['variance']:.3f} ± {1.96 * row['variance_se']:.3f}", f"{row['limit']:.3f}",
             f"{row['excess_kurtosis']:.3f}", f"{row['p']:.2g}"] for row in results["single_head"]["heads"]]
    return page.table(["heads", "variance", "of the limit", "excess kurtosis", "p of the normal distribution"], rows)


def slopes_table(results: dict) -> str:
    rows = [[row["kernel"], row["against"], f"{row['slope']:+.2f} ± {row['interval']:.2f}"]
            for row in results["convergence"]["slopes"]]
    return page.table(["kernel", "distance against", "slope of the logarithm"], rows)


def sampled_table(results: dict) -> str:
    rows = []
    for weights in ("softmax", "relu"):
        one = results[f"sampled_{weights}"]
        limit = f"{100 * one['limit'][0]['test']:.1f}" if one["limit"] else "no closed form"
        groups = sorted({row["networks"] for row in one["accuracies"]})
        for width in sorted({row["width"] for row in one["accuracies"]}):
            cells = [statistics.mean(100 * row["test"] for row in one["accuracies"]
                                     if row["width"] == width and row["networks"] == group) for group in groups]
            rows.append([weights, str(width), *(f"{cell:.1f}" for cell in cells), limit])
    return page.table(["attention", "width", *(f"{group} network{'s' if group > 1 else ''}" for group in groups), "limit"], rows)


def trained_table(results: dict) -> str:
    sizes = sorted({row["width"] for row in results["trained"]["networks"]})
    rows = []
    for norm, text in NORMS.items():
        for weights in ("softmax", "relu", "identity"):
            cells = []
            for of in ("trained", "centred"):
                for width in sizes:
                    mine = [row for name in (of, f"{of}_head") for row in results[name]["networks"]
                            if (row["weights"], row["norm"], row["width"]) == (weights, norm, width)]
                    kept = [100 * row["test_accuracy"] for row in mine if not row["diverged"]]
                    lost = f" ({len(mine) - len(kept)} of {len(mine)} diverged)" if len(kept) < len(mine) else ""
                    cells.append((mean_text(kept, 1) if kept else "-") + lost)
            limit = next((row for row in results["trained"]["kernels"] if (row["weights"], row["norm"]) == (weights, norm)), None)
            cells += [f"{100 * limit[by]:.1f}" if limit else "no closed form" for by in ("nngp", "ntk")]
            rows.append([text, weights, *cells, f"{TABLE_8[norm][weights]:.1f}"])
    return page.table(["normalization", "attention", *(f"width {width}" for width in sizes),
                       *(f"width {width}, from initial outputs" for width in sizes), "NNGP", "NTK", "CIFAR-10, Table 8"], rows)


def adam_table(results: dict) -> str:
    rows = []
    for norm, text in NORMS.items():
        for best in results[f"adam_{norm}"]["best"]:
            mine = [row for row in results[f"adam_{norm}"]["networks"] if row["weights"] == best["weights"]]
            chosen = [row for row in mine if (row["width"], row["rate"]) == (best["width"], best["rate"])]
            cells = [mean_text([100 * row[f"{part}_accuracy"] for row in chosen], 1) for part in ("validation", "test")]
            every = [100 * row["validation_accuracy"] for row in mine]
            rows.append([text, best["weights"], f"{best['width']}, {best['rate']:g}", *cells, f"{min(every):.1f} to {max(every):.1f}",
                         f"{TABLE_8[norm][best['weights']]:.1f}"])
    return page.table(["normalization", "attention", "best width, rate", "validation, %", "test, %", "validation, all runs",
                       "CIFAR-10, Table 8"], rows)


def digits_table(results: dict, of: str) -> str:
    flatten = accuracies(results, of, "flatten", "nngp")
    rows = []
    for kernel, cifar in CIFAR.items():
        nngp, ntk = (accuracies(results, of, kernel, by) for by in ("nngp", "ntk"))
        rows.append([f"`{kernel}`", mean_text(nngp, 1), mean_text(ntk, 1), "-" if kernel == "flatten" else difference(nngp, flatten),
                     *(f"{x:.2f}" for x in cifar)])
    if of == "digits":
        nngp, ntk = (accuracies(results, "vanilla", "struct", by) for by in ("nngp", "ntk"))
        rows.append(["`struct` without encodings", mean_text(nngp, 1), mean_text(ntk, 1), difference(nngp, flatten), "-", "-"])
    return page.table(["kernel", "NNGP, %", "NTK, %", "NNGP above `flatten`", "CIFAR-10 NNGP, %", "CIFAR-10 NTK, %"], rows)


def depths_table(results: dict) -> str:
    rows = []
    for kernel in KERNELS.split(","):
        cells = []
        for by in ("nngp", "ntk"):
            cells += [mean_text(accuracies(results, f"convolutions{depth}", kernel, by), 1) for depth in CONVOLUTIONS]
        cells += [f"{x:.2f}" for x in {**CIFAR, "lap": (80.36, 79.71)}[kernel]]
        rows.append([f"`{kernel}`", *cells])
    plural = [f"{depth} convolution{'s' if depth > 1 else ''}" for depth in CONVOLUTIONS]
    return page.table(["kernel", *(f"NNGP, {text}" for text in plural), *(f"NTK, {text}" for text in plural),
                       "CIFAR-10 NNGP, %", "CIFAR-10 NTK, %"], rows)


def encodings_table(results: dict) -> str:
    cells = [difference(*(accuracies(results, of, "struct", by) for of in ("digits", "vanilla"))) for by in ("nngp", "ntk")]
    return page.table(["points", "NNGP", "NTK"], [["`struct` above itself without encodings", *cells]])


def gains_table(results: dict) -> str:
    """From one depth to another, paired by split."""
    steps = [(1, 2), (2, 4), (1, 4)]
    rows = [[f"`{kernel}`", *(difference(*(accuracies(results, f"convolutions{depth}", kernel, by) for depth in (more, few)))
                              for by in ("nngp", "ntk") for few, more in steps)] for kernel in KERNELS.split(",")]
    return page.table(["kernel", *(f"{by}, from {few} to {more}" for by in ("NNGP", "NTK") for few, more in steps)], rows)


def local_table(results: dict) -> str:
    rows = []
    for pair in (("struct", "lap"), ("lap", "gap")):
        cells = [difference(*(accuracies(results, f"convolutions{depth}", of, by) for of in pair))
                 for by in ("nngp", "ntk") for depth in CONVOLUTIONS]
        rows.append(["`{}` above `{}`".format(*pair), *cells])
    plural = [f"{depth} convolution{'s' if depth > 1 else ''}" for depth in CONVOLUTIONS]
    return page.table(["points", *(f"{by}, {text}" for by in ("NNGP", "NTK") for text in plural)], rows)


def chapters_table(results: dict) -> str:
    gap = accuracies(results, "chapters", "gap", "nngp")
    rows = []
    for kernel in ("gap", "struct", "residual"):
        nngp, ntk = (accuracies(results, "chapters", kernel, by) for by in ("nngp", "ntk"))
        if nngp:
            rows.append([f"`{kernel}`", mean_text(nngp, 1), mean_text(ntk, 1), "-" if kernel == "gap" else difference(nngp, gap)])
    return page.table(["kernel", "NNGP, %", "NTK, %", "NNGP above `gap`"], rows)


def tables(results: dict) -> dict[str, str]:
    return {"heads": heads_table(results), "slopes": slopes_table(results), "sampled": sampled_table(results),
            "trained": trained_table(results), "adam": adam_table(results), "digits": digits_table(results, "digits"),
            **{name: digits_table(results, name) for name in SHIFTS}, "encodings": encodings_table(results),
            "depths": depths_table(results), "gains": gains_table(results), "local": local_table(results),
            "chapters": chapters_table(results)}


# ---- pictures ---------------------------------------------------------------------------------------

COLOURS = ["#9ecae1", "#3182bd", "#08306b", "#7f7f7f"]


def draw_sampled(results: dict, folder: pathlib.Path) -> None:
    """Accuracy against the number of networks, a curve per width."""
    script = """set terminal svg size 900,340 font 'sans,13' background '#ffffff'
set multiplot layout 1,2
set logscale x 2
set xlabel 'networks averaged' offset 0,0.5
set ylabel 'test accuracy, %'
set grid lc rgb '#eeeeee'
set key bottom right
"""
    for weights in ("softmax", "relu"):
        one = results[f"sampled_{weights}"]
        plots = []
        for i, width in enumerate(sorted({row["width"] for row in one["accuracies"]})):
            mine = [row for row in one["accuracies"] if row["width"] == width]
            points = [(group, statistics.mean(100 * row["test"] for row in mine if row["networks"] == group))
                      for group in sorted({row["networks"] for row in mine})]
            script += results_page.block(f"{weights}{width}", points)
            plots.append(f"${weights}{width} with linespoints lw 2 pt 7 ps 0.7 lc rgb '{COLOURS[i % 4]}' title 'width {width}'")
        if one["limit"]:
            plots.append(f"{100 * one['limit'][0]['test']} lw 2 dt 2 lc rgb '#d55e00' title 'limit'")
        script += f"set title '{weights}: more and wider networks, better kernel'\nplot {', '.join(plots)}\n"
    results_page.picture(folder / "sampled.svg", script + "unset multiplot\n")


def draw_digits(results: dict, folder: pathlib.Path) -> None:
    """Accuracy of every kernel on every split, of centred and of shifted digits."""
    script = """set terminal svg size 1000,330 font 'sans,12' background '#ffffff'
set multiplot layout 1,3
set ylabel 'test accuracy, %'
set grid ytics lc rgb '#eeeeee'
set key outside bottom center horizontal
"""
    tics = ", ".join(f"'{name}' {i}" for i, name in enumerate(CIFAR))
    for of, title in (("digits", "Centred digits"), ("nudged", "Shifted by 0 to 2 pixels"), ("rolled", "Shifted by 0 to 7 pixels")):
        plots = []
        for by, colour, shift in (("nngp", "#0072b2", -0.1), ("ntk", "#d55e00", 0.1)):
            script += results_page.block(f"{of}_{by}", [(i + shift, value) for i, kernel in enumerate(CIFAR)
                                                        for value in accuracies(results, of, kernel, by)])
            plots.append(f"${of}_{by} with points pt 7 ps 0.7 lc rgb '{colour}' title '{by.upper()}'")
        script += f"set title '{title}'\nset xtics ({tics})\nset xrange [-0.5:3.5]\nplot {', '.join(plots)}\n"
    results_page.picture(folder / "digits.svg", script + "unset multiplot\n")


def draw(results: dict, folder: pathlib.Path) -> None:
    draw_sampled(results, folder)
    draw_digits(results, folder)


if __name__ == "__main__":
    results_page.main("infinite_attention", EXPERIMENTS, tables, draw)
