# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""The tables of lab/timing/README.md, from the results of all.py."""

import statistics

import page

STEPS = {"step": "default", "step_no_avx512": "without AVX-512", "step_eigen": "Eigen's products",
         "step_portable": "for any machine"}
# width: what the step was to be times as fast as PyTorch
GOALS = {64: 3.2, 128: 2.2, 256: 1.6, 512: 1.4, 1024: 1.4}
PART_GOALS = {128: 60, 256: 75, 512: 75, 1024: 75}
MEMORY_GOAL = 0.7
CHECK_GOALS = {"check": 0.5, "check_one_seed": 0.6}


def spread(of: dict, digits: str = ".2f") -> str:
    return f"{of['median']:{digits}} ({of['lower_quartile']:{digits}} to {of['upper_quartile']:{digits}})"


def own_memory(side: dict) -> float:
    return side["peak_memory_mib"] - side["start_memory_mib"]


def against(value: float, goal: float, digits: str, more_is_better: bool = True) -> str:
    met = value >= goal if more_is_better else value <= goal
    return f"{value:{digits}}" if met else f"{value:{digits}} (goal {goal:g})"


def step_rows(result: dict) -> list[list[str]]:
    rows = []
    for one in result["results"]:
        width, ours, theirs = one["width"], one["scalewise"], one.get("pytorch")
        part = 100 * ours["share_of_best_product"]
        cells = [str(width), f"{ours['ms_per_step']['median']:.1f}", f"{ours['gflop_per_s']:.0f}",
                 against(part, PART_GOALS.get(width, 0), ".0f")]
        if theirs:
            ratio = one["times_as_fast_as_pytorch"]
            speed = spread(ratio) + ("" if ratio["median"] >= GOALS[width] else f", goal {GOALS[width]}")
            mine, other = own_memory(ours), own_memory(theirs)
            cells += [f"{theirs['ms_per_step']['median']:.1f}", speed, f"{mine:.0f}", f"{other:.0f}",
                      against(mine / other, MEMORY_GOAL, ".2f", more_is_better=False)]
        rows.append(cells)
    return rows


STEP_HEADER = ["width", "ours, ms", "GFLOP/s", "% of the best product", "PyTorch, ms", "times as fast (quartiles)",
               "memory, MiB", "PyTorch's", "ratio"]


def command(result: dict) -> str:
    folder = result["command"].partition("/lab/timing/")[0]
    cmake = f"cmake --preset release -B {folder} {result['cmake']}" if result["cmake"] else ""
    return "```console-output\n" + (f"$ {cmake}\n" if cmake else "") + f"$ {result['command']}\n```\n\n"


def machine(results: dict) -> str:
    one = results["step"]
    commits = sorted({result["commit"] for result in results.values()})
    processors = sorted({result["processor"] for result in results.values()})
    noise = 100 * max(result["others"] for result in results.values())
    lines = [f"Commit {', '.join(commits)}; {', '.join(processors)}, {one['settings']['threads']} threads (a virtual machine); "
             f"{one['compiler']}; products by {one['build']['products']}; PyTorch {one['results'][0]['pytorch']['version']}. Others had at most "
             f"{noise:.1f} % of the machine during a part."]
    return "\n".join(lines)


def step(results: dict) -> str:
    return command(results["step"]) + page.table(STEP_HEADER, step_rows(results["step"]))


def no_avx512(results: dict) -> str:
    result = results["step_no_avx512"]
    return command(result) + page.table(STEP_HEADER, step_rows(result))


def other_builds(results: dict) -> str:
    widths = [one["width"] for one in results["step"]["results"]]
    rows = []
    for name, title in STEPS.items():
        times = {one["width"]: one["scalewise"]["ms_per_step"]["median"] for one in results[name]["results"]}
        rows.append([title, *(f"{times[width]:.1f}" for width in widths)])
    return page.table(["build", *(f"width {width}, ms" for width in widths)], rows)


def products(results: dict) -> str:
    libraries = ["oneDNN", "Eigen"]
    rows = []
    for shape in results["products"]["gflop_per_s"]:
        left, right = (" (transposed)" if shape["transposed"] == side else "" for side in ("left", "right"))
        rows.append([f"{shape['rows']}{left}, {shape['k']}, {shape['columns']}{right}",
                     *(f"{shape[name]:.0f}" for name in libraries)])
    return command(results["products"]) + page.table(["rows, k, columns", *libraries], rows)


def runs_row(result: dict, title: str, goal: str) -> list[str]:
    return [title, str(result["runs"]), result["verdict"], f"{statistics.median(result['ours']):.1f}",
            f"{statistics.median(result['pytorch']):.1f}", spread(result["ratio"]), goal]


def checks(results: dict) -> str:
    titles = {"check": "default check, until its verdict", "check_one_seed": "one seed at each of five widths"}
    rows = [runs_row(results[name], title, str(CHECK_GOALS[name])) for name, title in titles.items()]
    rows.append(runs_row(results["sweep"], "sweep over the learning rate, three widths", "-"))
    return "```console-output\n" + "".join(f"$ {results[name]['command']}\n" for name in (*titles, "sweep")) + "```\n\n" + \
        page.table(["runs of", "runs", "verdict", "ours, s", "PyTorch, s", "ours over PyTorch's (quartiles)", "goal"], rows)


def expected(results: dict) -> str:
    rows = [[f"`{one['command']}`", f"{one['expected_runs']}", f"{one['runs']}", f"{one['expected']:.1f}",
             f"{one['seconds']:.1f}", against(one["seconds"] / one["expected"], 1.3, ".2f", more_is_better=False)]
            for one in results["expected"]["rows"]]
    return command(results["expected"]) + \
        page.table(["command", "runs expected", "made", "s expected", "taken", "taken over expected"], rows)


def kernels(results: dict) -> str:
    result = results["kernels"]["results"][0]
    rows = [[f"ours, {results['kernels']['threads']} threads", spread(result["scalewise"]["seconds"]), ""]]
    for one in result["numpy"]:
        rows.append([f"numpy {one['numpy']}, {one['processes']} process{'es' if one['processes'] > 1 else ''}",
                     spread(one["seconds"]), spread(one["times_as_fast"], ".1f")])
    return command(results["kernels"]) + page.table(["", "seconds", "our speed-up"], rows)


def growth(results: dict) -> str:
    found = {(one["depth"], one["tokens"]): one["scalewise"] for one in results["kernels_growth"]["results"]}
    depths, tokens = (sorted({key[i] for key in found}) for i in (0, 1))
    rows = [[f"{depth:g}", *(f"{found[depth, t]['core_microseconds_per_pair']:.3g} "
                             f"({found[depth, t]['gflop_per_s_and_core']:.0f})" for t in tokens)] for depth in depths]
    return command(results["kernels_growth"]) + \
        page.table(["dense layers", *(f"{t:g} tokens: μs (GFLOP/s)" for t in tokens)], rows)


def profile(results: dict) -> str:
    names = {"vanilla": "vanilla", "deep-scale-lm": "DeepScaleLM"}
    rows = []
    for one in results["profile"]["profiles"]:
        ms = one["milliseconds"]
        rows.append([f"{names.get(one['method'], one['method'])}, {one['placement']}-norm", f"{ms['median']:.2f}",
                     f"{ms['lower_quartile']:.2f} to {ms['upper_quartile']:.2f}", f"{ms['smallest']:.2f}"])
    return command(results["profile"]) + page.table(["model", "median, ms", "quartiles", "smallest"], rows)


def include(results: dict) -> str:
    rows = [[name, f"{one['difference_of_medians']:.3f}", spread(one["scalewise"], ".3f"), spread(one["empty"], ".3f")]
            for name, one in results["include"]["compilers"].items()]
    return command(results["include"]) + \
        page.table(["compiler", "difference, s", "with the main header (quartiles)", "an empty file"], rows)


TABLES = {"machine": machine, "step": step, "no_avx512": no_avx512, "other_builds": other_builds, "products": products,
          "runs": checks, "expected": expected, "kernels": kernels, "growth": growth, "profile": profile, "include": include}


def of(results: dict) -> dict[str, str]:
    """The tables whose results are there."""
    tables = {}
    for name, make in TABLES.items():
        try:
            tables[name] = make(results)
        except KeyError as missing:
            if missing.args[0] in results:
                raise
    return tables
