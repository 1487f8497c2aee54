#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""The time that --dry-run predicts for a program, and the time it takes, as JSON.

  python3 lab/timing/expected_times.py build/release/tools
"""

import json
import pathlib
import re
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "shared"))
import tasks  # noqa: E402

COMMANDS = [
    "coordinate_check",
    "coordinate_check --sizes 64,128,256,512,1024 --seeds 1",
    "coordinate_check --axis depth --sizes 2,4,8,16 --rule complete-p --seeds 4",
    "learning_rate_transfer --rule maximal-update --sizes 32,64 --depth 1 --steps 100 --seeds 2",
    "learning_rate_transfer --rule standard --sizes 16,32,64 --depth 1 --seq 32 --steps 150 --seeds 2",
    "alignment --sizes 64,128,256 --steps 40 --batch 16",
    "empirical_ntk --sizes 32,64,128 --steps 64",
    "learning_rate_transfer --rule maximal-update --axis batch --sizes 2,4,8 --width 32 --depth 1 --steps 100 --seeds 2",
]
LINE = re.compile(r"expected (\d+) runs, .*, ([0-9.e+-]+) s on \d+ threads")


def main() -> None:
    tools, rows = pathlib.Path(sys.argv[1]).resolve(), []
    for command in COMMANDS:
        name, *options = command.split()
        program = tasks.program(tools, name)
        dry = subprocess.run([program, *options, "--dry-run"], stdout=subprocess.PIPE, text=True, check=True)
        runs, seconds = LINE.search(dry.stdout).groups()
        start = time.perf_counter()
        done = subprocess.run([program, *options, "--quiet", "--format", "json"], stdout=subprocess.PIPE,
                              text=True, check=False)
        taken = time.perf_counter() - start
        report = json.loads(done.stdout)
        listed = report.get("runs", int(runs))  # one of each size and seed where none are listed
        made = listed if isinstance(listed, int) else len(listed)
        rows.append({"command": command, "expected_runs": int(runs), "runs": made, "expected": float(seconds),
                     "seconds": round(taken, 3), "verdict": report["verdict"]})
    print(json.dumps({"rows": rows}))


if __name__ == "__main__":
    main()
