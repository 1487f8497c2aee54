# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Tables and pictures of lab/studies/deep_scale/README.md."""

import math
import pathlib
import statistics

import page
import results_page
from results_page import mean_text

SHAPES = ("4/64", "16/32", "64/16")
RULES = {"xavier": "vanilla", "deep_scale_lm": "DeepScaleLM"}
# Methods of Table 11: title, norm, perplexities there at 192/256 and at 96/512; "-" for what it lacks.
METHODS = {"deep_scale_lm_post": ("DeepScaleLM", "post", "12.9", "11.7"),
           "deep_scale_lm_pre": ("DeepScaleLM", "pre", "-", "-"),
           "xavier_post": ("vanilla", "post", "17.2 (Table 4)", "diverges (Table 4)"),
           "xavier_pre": ("vanilla (\"Bamboo\")", "pre", "17.1", "diverges"),
           "ds_init": ("DS-Init", "post", "15.9", "diverges"), "deep_norm": ("DeepNorm", "post", "14.4", "13.4"),
           "skip_init": ("SkipInit", "pre", "15.1", "13.1"), "rezero": ("ReZero", "none", "diverges", "diverges"),
           "layer_scale": ("LayerScale", "pre", "13.2", "14.4"),
           "maximal_update": ("maximal update", "pre", "diverges", "diverges")}
ABLATION = {"shape_16_32_xavier_post": ("Xavier, no weights", "diverges"),
            "ablation_xavier_half": ("Xavier, β² = 0.5", "diverges"),
            "ablation_plain": ("DeepScaleLM's variances, no weights", "diverges"),
            "ablation_half": ("DeepScaleLM's variances, β² = 0.5", "diverges"),
            "ablation_learned": ("DeepScaleLM, β² = 2/N, learned factor", "12.2"),
            "shape_16_32_deep_scale_lm_post": ("DeepScaleLM, β² = 2/N", "11.7")}
STARTS = {"start_xavier": ("Xavier", "38.2 (192/256)"), "start_full": ("DeepScaleLM", "17.0 (192/256), 17.9 (96/512)"),
          "shape_16_32_deep_scale_lm_pre": ("DeepScaleLM simple", "17.9 (192/256)"),
          "start_bert": ("all matrices 0.02", "20.5 (96/512)")}
# Title, results, and which of their profiles: before training or after.
AFTER = [("vanilla, pre-norm (Figures 5, 6)", "long_xavier_pre", "before"),
         ("vanilla, pre-norm (Figures 5, 6)", "shape_64_16_xavier_pre", "after"),
         ("vanilla, pre-norm (Figures 5, 6)", "long_xavier_pre", "after"),
         ("DeepScaleLM, pre-norm", "shape_64_16_deep_scale_lm_pre", "before"),
         ("DeepScaleLM, pre-norm", "shape_64_16_deep_scale_lm_pre", "after"),
         ("DeepScaleLM, post-norm (Figure 10)", "long_deep_scale_lm_post", "before"),
         ("DeepScaleLM, post-norm (Figure 10)", "long_deep_scale_lm_post", "after"),
         ("the same with β² = 0.1 (Figure 9)", "long_tenth", "before"),
         ("the same with β² = 0.1 (Figure 9)", "long_tenth", "after"),
         ("vanilla, post-norm", "long_xavier_post", "before"),
         ("vanilla, post-norm", "long_xavier_post", "after")]


# ---- numbers ----------------------------------------------------------------------------------------


def losses(one: dict) -> list[float]:
    """Of the seeds that did not diverge."""
    return [run["loss"] for run in one["runs"] if run["loss"] is not None]


def loss_text(one: dict) -> str:
    kept = losses(one)
    lost = len(one["runs"]) - len(kept)
    note = f" ({lost} of {len(one['runs'])} diverged)" if lost else ""
    return (mean_text(kept) if kept else "all diverged") + ("" if not kept else note)


def rate_text(one: dict) -> str:
    return f"{one['runs'][0]['rate']:.2g}"


def difference_text(a: dict, b: dict) -> str:
    """Of the losses of two models, seed by seed: they read the same batches."""
    pairs = [(x["loss"], y["loss"]) for x, y in zip(a["runs"], b["runs"]) if x["loss"] is not None and y["loss"] is not None]
    return mean_text([x - y for x, y in pairs]) if len(pairs) > 1 else "-"


def profiles(one: dict, when: str, quantity: str) -> list[list[tuple[int, float]]]:
    """(layer, value) by seed, without the embedding."""
    return [[(layer, value) for layer, value in zip(seed["layer"], seed[quantity]) if value is not None]
            for seed in one["layers"] if seed["when"] == when]


def factor_text(logs: list[float]) -> str:
    """The geometric mean, with the factor that its 95 % interval goes up and down."""
    mean = statistics.mean(logs)
    text = f"{math.exp(mean):.3g}"
    if len(logs) < 2:
        return text
    half = results_page.student(len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    return f"{text} (×/÷ {math.exp(half):.2g})"


def growth(curve: list[tuple[int, float]]) -> float:
    """The logarithm of the last value over the first."""
    return math.log(curve[-1][1] / curve[0][1])


def explained(x: list[float], y: list[float]) -> tuple[float, float]:
    """Slope of the line by least squares, and R²."""
    mean_x, mean_y = statistics.mean(x), statistics.mean(y)
    xx, yy = sum((a - mean_x) ** 2 for a in x), sum((b - mean_y) ** 2 for b in y)
    xy = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y))
    return xy / xx, xy ** 2 / (xx * yy) if yy > 0 else math.nan


def predicted(exact: list[float], fit: list[float]) -> float:
    """R² of numbers that are not fitted to these, so that a bias counts."""
    mean = statistics.mean(exact)
    return 1 - sum((a - b) ** 2 for a, b in zip(exact, fit)) / sum((a - mean) ** 2 for a in exact)


# ---- tables -----------------------------------------------------------------------------------------


def scores_table(results: dict) -> str:
    rows = []
    reference = [-growth(curve) for curve in profiles(results["scores_1"], "before", "gradient")]
    for factor in (1, 2, 4, 8):
        curves = profiles(results[f"scores_{factor}"], "before", "gradient")
        logs = [-growth(curve) for curve in curves]
        rows.append([str(factor), factor_text(logs), "-" if factor == 1 else factor_text([a - b for a, b in zip(logs, reference)])])
    return page.table(["variance of queries and keys, of Xavier's", "gradient after layer 1 over that after the last",
                       "of Xavier's"], rows)


def when_text(one: dict, when: str) -> str:
    if when == "before":
        return "before"
    steps = one["command"].split("--steps ")[1].split()[0] if "--steps" in one["command"] else "400"
    return f"after {steps} steps, rate {rate_text(one)}"


def after_table(results: dict) -> str:
    rows = []
    for title, name, when in AFTER:
        one = results[name]
        forward, backward = (profiles(one, when, quantity) for quantity in ("variance", "gradient"))
        lines = [explained([x for x, _ in c], [y for _, y in c])[1] for c in forward]
        powers = [explained([math.log(x) for x, _ in c], [math.log(y) for _, y in c]) for c in backward]
        rows.append([title, when_text(one, when), "-" if when == "before" else loss_text(one), factor_text([growth(c) for c in forward]),
                     f"{statistics.mean(lines):.2f}" if "pre-norm" in title else "-", factor_text([-growth(c) for c in backward]),
                     mean_text([-p for p, _ in powers], 2), f"{statistics.mean(r for _, r in powers):.2f}"])
    return page.table(["64 layers of width 16", "training", "loss", "variance, last over first layer", "R² of a line",
                       "gradient, first over last layer", "power of 1/layer", "its R²"], rows)


def shape_table(results: dict, kind: str) -> str:
    rows = []
    for place in ("post", "pre"):
        for rule, title in RULES.items():
            rows.append([place, title, *(f"{loss_text(one)}, rate {rate_text(one)}" for one in (
                results[f"{kind}_{shape.replace('/', '_')}_{rule}_{place}"] for shape in SHAPES))])
        if place == "post" and kind == "shape":
            rows.append([place, "vanilla, tuning begins at 0.0003", "-", *(f"{loss_text(one)}, rate {rate_text(one)}" for one in (
                results[f"low_{shape.replace('/', '_')}_xavier_post"] for shape in SHAPES[1:]))])
        rows.append([place, "DeepScaleLM - vanilla", *(difference_text(*(
            results[f"{kind}_{shape.replace('/', '_')}_{rule}_{place}"] for rule in ("deep_scale_lm", "xavier")))
            for shape in SHAPES)])
    return page.table(["norm", "rule", *(f"layers/width {shape}" for shape in SHAPES)], rows)


def method_table(results: dict) -> str:
    rows = []
    for name, (title, norm, at_192, at_96) in METHODS.items():
        one = results.get(f"shape_64_16_{name}") or results[f"method_{name}"]
        deep = results[f"deep_{name}"]
        rows.append([title, norm, loss_text(one), rate_text(one), loss_text(deep), rate_text(deep), difference_text(deep, one),
                     at_96, at_192])
    return page.table(["layers of width 16", "norm", "loss, 64 layers", "rate", "loss, 192 layers", "rate", "192 - 64 layers",
                       "perplexity in Table 11, 96/512", "192/256"], rows)


def list_table(results: dict, of: dict, header: list[str]) -> str:
    return page.table(header, [[title, loss_text(results[name]), rate_text(results[name]), there]
                               for name, (title, there) in of.items()])


def vision_table(results: dict) -> str:
    rows = [[title, *(f"{loss_text(one)}, rate {rate_text(one)}" for one in (results[f"vision_{shape}_{rule}"]
                                                                          for shape in ("4_64", "16_32")))]
            for rule, title in RULES.items()]
    return page.table(["rule", "4 layers of width 64", "16 layers of width 32"], rows)


# Correlation of tokens after a ReLU and after an MLP: closed form, and the polynomials of Tables 1 and 2.


def mlp_product(r: float) -> float:
    return r / 2 + (math.sqrt(1 - r * r) + r * math.asin(r)) / math.pi


def relu(r: float) -> float:
    """Of the covariance, whose mean is taken out."""
    return (r * (math.pi / 2 + math.asin(r)) + math.sqrt(1 - r * r) - 1) / (math.pi - 1)


FITS = {"ReLU (Table 1, Figure 12)": (relu, lambda r: 0.7 * r + 0.3 * r * r),
        "MLP without dropout (Table 2, Figure 13)": (
            mlp_product, lambda r: 1 / math.pi + r / 2 + (0.5 - 1 / math.pi) * r * r)}


def fit_table() -> str:
    rows = []
    grid = [i / 1000 for i in range(1001)]
    for title, (exact, fit) in FITS.items():
        largest, at = max((abs(exact(r) - fit(r)), r) for r in grid)
        rows.append([title, f"{largest:.4f}", f"{at:.2f}", f"{predicted([exact(r) for r in grid], [fit(r) for r in grid]):.5f}"])
    return page.table(["polynomial", "largest error", "at correlation", "R²"], rows)


# Changes to a trained model, its loss with each, and the loss that counts as nothing done.
DONE = [("as it was trained", "loss", None), ("the novel in capitals, before fine-tuning", "capitals", None),
        ("after fine-tuning of all weights", "full", "capitals"), ("after fine-tuning by adapters", "adapters", "capitals"),
        *[(f"without the {end} {f'{m} layers' if m > 1 else 'layer'}", f"without {end} {m}", "loss")
          for end in ("last", "first") for m in (1, 2, 3, 4, 6)],
        *[(f"{form}, {'weights' if of == 'weights' else 'and inputs of matrices'}", f"{form} {of}", "loss")
          for form in ("E4M3", "E5M2") for of in ("weights", "all")]]


def pretrained_table(results: dict) -> str:
    """Losses, or by how much they are above or below those before, and the difference of the arms by pairs of seeds."""
    of = {arm: {run["seed"]: run for run in results["pretrained"]["runs"] if run["arm"] == arm} for arm in ("vanilla pre", "DeepScaleLM pre")}
    rows = []
    for title, key, before in DONE:
        values = [{seed: run[key] - (run[before] if before else 0) for seed, run in runs.items()} for runs in of.values()]
        differences = [values[1][seed] - values[0][seed] for seed in values[0].keys() & values[1].keys()]
        rows.append([title + (", change" if before else ""), *(mean_text([*one.values()]) for one in values), mean_text(differences)])
    return page.table(["nats per byte", "vanilla", "DeepScaleLM", "difference"], rows)


def tables(results: dict) -> dict[str, str]:
    of_torch = {"pretrained": pretrained_table(results)} if "pretrained" in results else {}  # which run.py does not make
    return {**of_torch, "shape": shape_table(results, "shape"), "masked": shape_table(results, "masked"), "method": method_table(results),
            "ablation": list_table(results, ABLATION, ["post-norm, 16 layers of width 32", "loss", "rate",
                                                       "perplexity in Table 13, 96/512"]),
            "start": list_table(results, STARTS, ["pre-norm, 16 layers of width 32, β² = 2/N, variances of", "loss", "rate",
                                                  "perplexity in Table 14"]),
            "vision": vision_table(results), "scores": scores_table(results), "after": after_table(results),
            "fit": fit_table()}


# ---- pictures ---------------------------------------------------------------------------------------

ORANGE, BLUE = "#d55e00", "#0072b2"
COLOURS = ["#9ecae1", "#4292c6", "#e6550d", "#a63603"]
HEAD = "set terminal svg size {0},340 font 'sans,13' background '#ffffff'\nset multiplot layout 1,{1}\nset grid lc rgb '#eeeeee'\n"


def geometric(curves: list[list[tuple[int, float]]]) -> list[tuple[int, float]]:
    return [(points[0][0], math.exp(statistics.mean(math.log(y) for _, y in points))) for points in zip(*curves)]


def draw_shapes(results: dict, folder: pathlib.Path) -> None:
    script = HEAD.format(900, 2)
    script += ("set logscale x 2\nset xrange [3:80]\nset yrange [2.2:3.4]\nset xlabel 'layers, at equal parameters' offset 0,0.5\n"
               "set ylabel 'validation loss'\n")
    script += "set xtics (" + ", ".join(f"'{shape}' {shape.split('/')[0]}" for shape in SHAPES) + ")\n"
    for place, title in (("post", "Post-norm: only DeepScaleLM learns at 16 layers"), ("pre", "Pre-norm: both learn, the shallow best")):
        plots = [f"{LETTERS} lw 1.5 dt 2 lc rgb '#888888' title 'frequencies of letters'"]
        for rule, colour in (("xavier", ORANGE), ("deep_scale_lm", BLUE)):
            of = {int(shape.split("/")[0]): losses(results[f"shape_{shape.replace('/', '_')}_{rule}_{place}"]) for shape in SHAPES}
            script += results_page.block(f"mean_{rule}_{place}", [(x, statistics.mean(y)) for x, y in of.items() if y])
            script += results_page.block(f"seeds_{rule}_{place}", [(x, one) for x, y in of.items() for one in y])
            plots += [f"$mean_{rule}_{place} with lines lw 2.5 lc rgb '{colour}' title '{RULES[rule]}'",
                      f"$seeds_{rule}_{place} with points pt 7 ps 0.6 lc rgb '{colour}' notitle"]
        script += f"set title '{title}'\nset key {'top left' if place == 'pre' else 'bottom right'}\nplot {', '.join(plots)}\n"
    results_page.picture(folder / "shapes.svg", script + "unset multiplot\n")


LETTERS = 3.04  # nats per byte, as in docs/theory/signal_propagation.md


def draw_scores(results: dict, folder: pathlib.Path) -> None:
    script = HEAD.format(700, 1)
    plots = []
    for i, factor in enumerate((1, 2, 4, 8)):
        curves = profiles(results[f"scores_{factor}"], "before", "gradient")
        script += results_page.block(f"s{factor}", [(x, y / geometric(curves)[-1][1]) for x, y in geometric(curves)])
        plots.append(f"$s{factor} with lines lw 2.5 lc rgb '{COLOURS[i]}' title '{'' if factor == 1 else f'{factor} times '}Xavier''s variance'")
    script += ("set logscale y\nset format y '10^{%T}'\nset xlabel 'layer' offset 0,0.5\nset ylabel 'variance of the gradient'\n"
               "set title 'Larger queries and keys: the gradient explodes towards the first layer'\n" + f"plot {', '.join(plots)}\n")
    results_page.picture(folder / "scores.svg", script + "unset multiplot\n")


def draw_after(results: dict, folder: pathlib.Path) -> None:
    """Of the long training: vanilla pre-norm keeps its laws, and with β² = 0.1 the gradient vanishes."""
    script = HEAD.format(1000, 3) + "set xlabel 'layer' offset 0,0.5\n"
    before, after = ("before", "#888888", "before training"), ("after", BLUE, "after training")
    panels = (("Vanilla: variance stays linear", "variance", "set key top left\nset yrange [0:1.3]", [("long_xavier_pre", *before), ("long_xavier_pre", *after)]),
              ("Vanilla: gradient stays near 1/layer", "gradient", "set logscale xy\nset format y '10^{%T}'\nset key top right\nset yrange [*:*]",
               [("long_xavier_pre", *before), ("long_xavier_pre", *after)]),
              ("Post-norm: the gradient by β² = 0.1 and 2/N", "gradient", "unset logscale x\nset yrange [1e-20:1e13]\nset ytics 1e5",
               [("long_deep_scale_lm_post", *before), ("long_deep_scale_lm_post", "after", BLUE, "after, β² = 2/N"),
                ("long_tenth", "after", ORANGE, "after, β² = 0.1")]))
    for panel, (title, quantity, style, curves) in enumerate(panels):
        plots = []
        for i, (name, when, colour, says) in enumerate(curves):
            curve = geometric(profiles(results[name], when, quantity))
            script += results_page.block(f"p{panel}{i}", [(x, y / curve[-1][1]) for x, y in curve])
            plots.append(f"$p{panel}{i} with lines lw 2.5 lc rgb '{colour}' title '{says}'")
        script += f"set title '{title}'\n{style}\nplot {', '.join(plots)}\n"
    results_page.picture(folder / "after.svg", script + "unset multiplot\n")


def draw_fits(folder: pathlib.Path) -> None:
    script = HEAD.format(800, 2) + "set xlabel 'correlation before' offset 0,0.5\nset xrange [0:1]\nset yrange [0:1]\nset key top left\n"
    for i, (title, (exact, fit)) in enumerate(FITS.items()):
        script += results_page.block(f"fit{i}", [(r / 50, exact(r / 50), fit(r / 50)) for r in range(51)])
        script += (f"set title '{title}'\nset ylabel 'correlation after'\nplot $fit{i} using 1:2 with lines lw 5 lc rgb '#9ecae1' "
                   f"title 'exact', $fit{i} using 1:3 with lines lw 1.5 dt 2 lc rgb '{ORANGE}' title 'polynomial'\n")
    results_page.picture(folder / "fits.svg", script + "unset multiplot\n")


def draw(results: dict, folder: pathlib.Path) -> None:
    draw_shapes(results, folder)
    draw_scores(results, folder)
    draw_after(results, folder)
    draw_fits(folder)
