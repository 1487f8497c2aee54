#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""The examples of the pages on other code bases: how many lines they take, and that C follows its plan.

    integrations_cli.py PLAN_PROGRAM C_COMPILER SOURCE_FOLDER
"""

import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PLAN, COMPILER, SOURCE = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], pathlib.Path(sys.argv[3]).resolve()
SHAPE = {"d_model": (96, 32), "heads": (3, 1), "d_ff": (384, 128), "depth": (2, 1), "vocab": (300, 300),
         "context": (32, 32)}


class Integrations(unittest.TestCase):
    def marked(self, path, pattern):
        text = (SOURCE / "examples" / path).read_text(encoding="utf-8")
        return sum(re.search(pattern, line) is not None for line in text.splitlines())

    def test_lines(self):
        self.assertEqual(self.marked("pytorch/train.py", "# scalewise"), 7)
        self.assertEqual(self.marked("pytorch/train.py", "# records"), 2)
        self.assertEqual(self.marked("c/slots.c", r"scalewise( \*/|:)"), 11)
        for mark, lines in (("scalewise", 13), ("records", 12)):
            self.assertEqual(sum(self.marked(f"torch_gpt/{name}", f"// {mark}(:|$)")
                                 for name in ("gpt.hpp", "torch_gpt.cpp")), lines)

    def test_slots_start_and_step_as_planned(self):
        options = ["--rule", "complete-p", "--preset", "gpt2", "--base-preset", "gpt2", "--fold", "--names", "llm-c"]
        for key, (target, base) in SHAPE.items():
            options += ["--set", f"{key}={target}", "--set", f"base.{key}={base}"]
        named = json.loads(subprocess.run([PLAN, *options, "--format", "json"], capture_output=True, check=True).stdout)
        entries = {e["name"]: e for e in named["plan"]["entries"]}
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([PLAN, *options, "--format", "c-header", "--out", f"{folder}/plan.h"], check=True)
            subprocess.run([COMPILER, "-x", "c", "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{folder}",
                            SOURCE / "examples/c/slots.c", "-o", f"{folder}/slots", "-lm"], check=True)
            lines = subprocess.run([f"{folder}/slots"], capture_output=True, encoding="ascii",
                                   check=True).stdout.splitlines()
        self.assertEqual(len(lines), 16)
        for tensor, line in zip(named["tensors"], lines):
            name, _, rms, _, _, step = line.split()
            self.assertEqual(name, tensor["name"])
            square = numbers = 0
            for part in tensor["parts"]:
                entry = entries[part["entry"]]
                size = entry["rows"] * entry["columns"]
                numbers += size
                variance = entry["init_variance"]["value"] * 0.02 ** 2
                square += size * (variance + entry["init_mean"]["value"] ** 2)
            expected = math.sqrt(square / numbers)
            # Five standard errors of the rms of as many normal numbers, and six digits.
            self.assertLessEqual(abs(float(rms) - expected), expected * (5 / math.sqrt(2 * numbers) + 1e-5), name)
            # Adam's first step is the rate; the decay is 0.1 of a weight of mean 0, or a gain that does not decay.
            rate = 1e-3 * tensor["learning_rate"]
            decay = 0.1 * tensor["weight_decay"] * expected
            self.assertLessEqual(abs(float(step) - rate), rate * (5 * decay / math.sqrt(numbers) + 1e-4), name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
