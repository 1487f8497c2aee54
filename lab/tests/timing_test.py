#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Whether timings see a machine that is not quiet, and say which goals are not reached.

    timing_test.py
"""

import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "timing"))
import all as benchmarks  # noqa: E402
import page  # noqa: E402
import tables  # noqa: E402

BUSY = [sys.executable, "-c", "import time\nend = time.time() + 1\nwhile time.time() < end: pass"]


def quartiles(median):
    return {"median": median, "lower_quartile": median * 0.9, "upper_quartile": median * 1.1}


def step_result(ratio, part, memory):
    side = {"ms_per_step": quartiles(10.0), "gflop_per_s": 100.0, "start_memory_mib": 50.0}
    return {"command": "lab/timing/step", "cmake": "", "results": [
        {"width": 256, "scalewise": {**side, "peak_memory_mib": 50.0 + memory, "share_of_best_product": part},
         "pytorch": {**side, "peak_memory_mib": 150.0}, "times_as_fast_as_pytorch": quartiles(ratio)}]}


class Quiet(unittest.TestCase):
    def test_a_process_of_others_is_seen_and_one_of_ours_is_not(self):
        other = subprocess.Popen(BUSY)  # not waited for until the end, so that its time is no child's
        shares = benchmarks.Shares()
        time.sleep(0.5)
        seen = shares.others()
        other.wait()
        self.assertGreater(seen, 0.3 / benchmarks.CORES)
        before = benchmarks.Shares()
        subprocess.run(BUSY, check=True)
        self.assertGreater(before.used() - before.own, 0.3)  # what is taken off


class Tables(unittest.TestCase):
    def test_goals_that_are_not_reached_are_named(self):
        met = tables.of({"step": step_result(1.7, 0.8, 60.0)})["step"]
        self.assertNotIn("goal", met)
        self.assertIn("| 256 | 10.0 | 100 | 80 | 10.0 | 1.70 (1.53 to 1.87) | 60 | 100 | 0.60 |", met)
        for result, text in ((step_result(1.5, 0.8, 60.0), "1.50 (1.35 to 1.65), goal 1.6"),
                             (step_result(1.7, 0.7, 60.0), "70 (goal 75)"), (step_result(1.7, 0.8, 80.0), "0.80 (goal 0.7)")):
            self.assertIn(text, tables.of({"step": result})["step"])

    def test_a_page_that_is_not_what_the_results_give_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "page.md")
            path.write_text("<!-- table step -->\n<!-- end -->\n", encoding="utf-8")
            found = {"step": tables.of({"step": step_result(1.7, 0.8, 60.0)})["step"]}
            with self.assertRaises(SystemExit):
                page.check(path, found, "a command")
            page.write(path, page.filled(path, found))
            page.check(path, found, "a command")

    def test_the_page_has_a_place_for_every_table(self):
        text = benchmarks.PAGE.read_text(encoding="utf-8")
        for name in tables.TABLES:
            self.assertIn(f"<!-- table {name} -->\n", text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
