#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Judges every sweep whose runs a study keeps again, as a table of another program, and compares the verdicts.

    recorded_sweeps.py build/release/tools/learning_rate_transfer

It also prints how much the curves of sizes differ that are fitted alone, where they surely do: the median over sweeps of the standard
deviations of curvature and third order over sizes, as shares of the mean curvature.

Exit code 1 if a sweep passes that failed, or fails that passed.
"""

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

STUDIES = pathlib.Path(__file__).resolve().parents[1]


def table(runs: list, octaves: bool) -> str:
    """The runs as CSV. Some studies keep rates, some octaves."""
    rows = [f"{size},{2.0 ** rate if octaves else rate!r},{seed},{'nan' if loss is None else repr(loss)}"
            for size, rate, seed, loss in runs]
    return "\n".join(["size,rate,seed,loss", *rows]) + "\n"


def main() -> int:
    counts = {"same": 0, "undecided": 0, "wrong": 0}
    scatters: dict[str, list[float]] = {"curvature": [], "third": []}
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted(STUDIES.glob("*/results/**/*.json")):
            sweep = json.loads(path.read_text(encoding="utf-8"))
            if not {"drift", "runs", "verdict"} <= sweep.keys():
                continue
            file = pathlib.Path(folder, "runs.csv")
            file.write_text(table(sweep["runs"], any(rate < 0 for _, rate, _, _ in sweep["runs"])), encoding="utf-8")
            found = subprocess.run([sys.argv[1], "--judge", file, "--format", "json", "--quiet"], capture_output=True,
                                   text=True, check=False)
            judged = json.loads(found.stdout)
            verdict = judged["verdict"]
            alone = [size["alone"] for size in judged["sizes"] if "alone" in size]
            for name, values in scatters.items() if len(alone) > 1 else ():
                mean = statistics.mean(one["curvature"] for one in alone)
                values.append(statistics.stdev(one[name] for one in alone) / mean)
            kind = ("same" if verdict == sweep["verdict"] else
                    "undecided" if "inconclusive" in (verdict, sweep["verdict"]) else "wrong")
            counts[kind] += 1
            if kind != "same":
                print(f"{path.relative_to(STUDIES)}: {verdict}, was {sweep['verdict']}")
    print(", ".join(f"{count} {kind}" for kind, count in counts.items()))
    print(f"curves surely differ in {len(scatters['third'])}; they scatter by",
          ", ".join(f"{statistics.median(values):.2f} ({name})" for name, values in scatters.items()))
    return 1 if counts["wrong"] or not counts["same"] else 0


sys.exit(main())
