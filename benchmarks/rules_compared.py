#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Which rule transfers, and what it costs: sweeps over width and depth under the rules of the README.

  python3 benchmarks/rules_compared.py build/release/tools

makes what is missing of build/rules_compared as tasks, a sweep after the other, in about twenty minutes of two cores, and
writes tables and a picture there (rules.md, drifts.svg). A run that is killed is made again by the same command. --quick
makes a small one in build/results_quick.
"""

import argparse
import pathlib
import subprocess

import page
import tasks

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = ROOT / "build/rules_compared"
QUICK = ROOT / "build/results_quick"

COMMON = "--head-dim 16 --seq 32 --batch 8"
AXES = {"width": "--axis width --sizes 32,64,128 --depth 2 --steps 200 --seeds 2",
        "depth": "--axis depth --sizes 2,4,8 --width 64 --steps 200 --seeds 2"}
QUICK_AXES = {"width": "--axis width --sizes 16,32 --depth 1 --steps 60 --seeds 1",
              "depth": "--axis depth --sizes 1,2 --width 32 --steps 60 --seeds 1"}
# axis: rule, where its grid begins, further options
SWEEPS = {
    "width": [("standard", 0.01, ""), ("gpt2", 0.01, ""), ("neural-tangent", 1, ""), ("maximal-update", 0.01, ""),
              ("complete-p", 0.01, ""), ("deep-scale-lm", 0.01, ""), ("nu-gpt", 0.02, "--warmup 0 --min-rate 0.1")],
    "depth": [("standard", 0.01, ""), ("gpt2", 0.01, ""), ("maximal-update", 0.01, ""), ("depth-mup", 0.01, ""),
              ("complete-p", 0.01, ""), ("deep-scale-lm", 0.01, ""), ("nu-gpt", 0.02, "--warmup 0 --min-rate 0.1")],
}


def names() -> list[tuple[str, str]]:
    return [(axis, rule) for axis, sweeps in SWEEPS.items() for rule, _, _ in sweeps]


def sweep(tools: pathlib.Path, axes: dict, axis: str, rule: str, work: pathlib.Path) -> dict:
    rate, more = next((rate, more) for one, rate, more in SWEEPS[axis] if one == rule)
    options = f"--rule {rule} {axes[axis]} {COMMON} --rate {rate} {more}".strip()
    full = tasks.report(tools / "learning_rate_transfer", options, work / f"{axis}_{rule}")
    return {"command": f"learning_rate_transfer {options}",
            **{key: full[key] for key in ("verdict", "reason", "drift", "sizes")},
            "runs": [[run["size"], run["rate"], run["seed"], run["loss"]] for run in full["runs"]]}


def interval(of: dict, digits: str = "+.2f") -> str:
    if of["value"] is None:
        return "-"
    return f"{of['value']:{digits}}" + ("" if of["low"] is None else f" ({of['low']:{digits}} to {of['high']:{digits}})")


def table(results: dict, axis: str) -> str:
    rows = []
    for rule, _, _ in SWEEPS[axis]:
        one = results[f"{axis}_{rule}"]
        last, regret = one["sizes"][-1], one["sizes"][-1]["regret"]
        at = "diverged" if regret["value"] is None else f"{last['loss'] + regret['value']:.3f}"
        rows.append([f"`{rule}`", one["verdict"], interval(one["drift"]),
                     f"{one['sizes'][0]['loss']:.3f}", f"{last['loss']:.3f}", at, str(len(one["runs"]))])
    smallest, largest = (results[f"{axis}_{SWEEPS[axis][0][0]}"]["sizes"][i]["size"] for i in (0, -1))
    return page.table(["rule", "verdict", "drift, octaves per octave (95 %)", f"loss at {axis} {smallest}, tuned",
                       f"at {largest}, tuned again", "with the rate of the smallest", "runs"], rows)


def draw(results: dict, folder: pathlib.Path) -> None:
    """The drift of every sweep, next to what counts as none."""
    shown = [(axis, rule, results[f"{axis}_{rule}"]) for axis, rule in names()]
    shown = [one for one in shown if one[2]["drift"]["low"] is not None]
    colours = {"pass": "#0072b2", "fail": "#d55e00", "inconclusive": "#7f7f7f"}
    rows = {"pass": [], "fail": [], "inconclusive": []}
    for i, (_, _, one) in enumerate(shown):
        drift = one["drift"]
        rows[one["verdict"]].append(f"{drift['value']} {len(shown) - i} {drift['low']} {drift['high']}")
    data = "".join(f"${verdict} << EOD\n" + "\n".join(lines) + "\nEOD\n" for verdict, lines in rows.items() if lines)
    tics = ", ".join(f"'{rule}, {axis}' {len(shown) - i}" for i, (axis, rule, _) in enumerate(shown))
    plots = ", ".join(f"${verdict} using 1:2:3:4 with xerrorbars lw 3 pt 7 ps 1 lc rgb '{colours[verdict]}' notitle"
                      for verdict, lines in rows.items() if lines)
    script = f"""{data}
set terminal svg size 820,{120 + 30 * len(shown)} font 'sans-serif,14' background '#ffffff'
set title "Where the best rate stays (blue) and where it moves (orange)" font ',17'
set ytics ({tics})
set yrange [0.3:{len(shown) + 0.7}]
set xlabel 'drift of the best rate, octaves per octave of size (95 % interval)'
set grid xtics lc rgb '#dddddd'
set object 1 rectangle from -0.3,graph 0 to 0.3,graph 1 behind fc rgb '#e8f1f8' fs solid noborder
plot {plots}
"""
    done = subprocess.run(["gnuplot"], input=script, stdout=subprocess.PIPE, encoding="utf-8", check=True)
    page.write(folder / "drifts.svg", done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tools", type=pathlib.Path, help="folder of the programs")
    parser.add_argument("--quick", action="store_true", help="small, in build/results_quick")
    a = parser.parse_args()
    folder, axes = (QUICK, QUICK_AXES) if a.quick else (RESULTS, AXES)
    kept = folder / "sweeps"
    kept.mkdir(parents=True, exist_ok=True)
    for axis, rule in names():
        path = kept / f"{axis}_{rule}.json"
        if not path.exists():
            print("running", path.stem, flush=True)
            page.keep(path, sweep(a.tools.resolve(), axes, axis, rule, folder / "runs"))
    results = page.kept(kept)
    text = "".join(f"## Along the {axis}\n\n{table(results, axis)}\n\n" for axis in SWEEPS)
    page.write(folder / "rules.md", text)
    draw(results, folder)


if __name__ == "__main__":
    main()
