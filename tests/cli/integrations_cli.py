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
        self.assertEqual(self.marked("c/graph.c", r"scalewise( \*/|:)"), 20)
        self.assertEqual(self.marked("marian/params.cpp", "// scalewise(:|$)"), 13)
        for mark, lines in (("scalewise", 13), ("records", 12)):
            self.assertEqual(sum(self.marked(f"05_libtorch/{name}", f"// {mark}(:|$)")
                                 for name in ("gpt.hpp", "torch_gpt.cpp")), lines)

    def test_slots_start_and_step_as_planned(self):
        options = ["--rule", "complete-p", "--preset", "gpt2", "--base-preset", "gpt2", "--fold", "--names", "llm-c"]
        for key, (target, base) in SHAPE.items():
            options += ["--set", f"{key}={target}", "--set", f"base.{key}={base}"]
        named = json.loads(subprocess.run([PLAN, *options, "--format", "json"], capture_output=True, check=True).stdout)
        entries = {e["name"]: e for e in named["plan"]["entries"]}
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([PLAN, *options, "--format", "c-header", "--save", f"{folder}/plan.h"], check=True)
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

    def test_graph_steps_as_planned(self):
        shape = {"d_model": 64, "heads": 4, "kv_heads": 4, "d_ff": 256, "depth": 1, "vocab": 32, "context": 8}
        base = {"d_model": 16, "heads": 1, "kv_heads": 1, "d_ff": 64, "depth": 1, "vocab": 32, "context": 8}
        with tempfile.TemporaryDirectory() as folder:
            self.header(folder, "llama-2-7b", shape, base, "--fold", "--names", "gguf-llama")
            subprocess.run([COMPILER, "-x", "c", "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1",
                            f"-I{folder}", SOURCE / "examples/c/graph.c", "-o", f"{folder}/graph", "-lm"], check=True)
            printed = subprocess.run([f"{folder}/graph", "64"], capture_output=True, encoding="ascii", check=True)
            other = subprocess.run([f"{folder}/graph", "32"], capture_output=True, encoding="ascii", check=False)
        self.assertEqual((other.returncode, other.stdout), (2, ""))
        self.assertEqual(other.stderr, "token_embd.weight: not in the plan, or of another size\n")
        names = ("size", "seed", "step", "signal", "name", "sum_abs", "sum_squares", "count")
        records = [dict(zip(names, line.split(","))) for line in printed.stdout.splitlines()]
        steps = [r for r in records if (r["signal"], r["step"]) == ("update", "1")]
        self.assertEqual(len(steps), 3)
        for r in steps:  # a matrix of fan-in 4 times the base's has a quarter of the rate, and decays by little
            self.assertEqual(int(r["count"]), 64 * 256)
            self.assertAlmostEqual(float(r["sum_abs"]) / int(r["count"]), 0.01 / 4, delta=2e-6)
        # The head of deviation 0.25/4 reads 64 numbers of size 1.
        for r in records:
            if (r["signal"], r["name"], r["step"]) == ("value", "logits", "0"):
                self.assertAlmostEqual(float(r["sum_squares"]) / int(r["count"]), 0.0625 * 64 / 16, delta=0.05)

    def test_marian_starts_and_steps_as_planned(self):
        shape = {"d_model": 96, "heads": 3, "d_ff": 384, "encoder_depth": 2, "depth": 1, "vocab": 300,
                 "tied_head": "false", "head_bias": "true", "learned_positions": "false", "embedding_norm": "false"}
        base = {**shape, "d_model": 32, "heads": 1, "d_ff": 128}
        with tempfile.TemporaryDirectory() as folder:
            self.header(folder, "bart-large", shape, base, "--single-rate", "--names", "marian")
            subprocess.run([COMPILER, "-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{folder}",
                            SOURCE / "examples/marian/params.cpp", "-o", f"{folder}/params"], check=True)
            lines = subprocess.run([f"{folder}/params", "96", "384", "300"], capture_output=True, encoding="ascii",
                                   check=True).stdout.splitlines()
        # The plan as the rule has it, with a rate for each tensor.
        options = self.options("bart-large", shape, base)
        plain = json.loads(subprocess.run([PLAN, *options, "--names", "marian", "--format", "json"],
                                          capture_output=True, check=True).stdout)
        entries = {e["name"]: e for e in plain["plan"]["entries"]}
        tensors = {t["name"]: t for t in plain["tensors"]}
        self.assertEqual({line.split()[0] for line in lines}, set(tensors))
        for line in lines:
            name, _, rms, _, _, step = line.split()
            entry = entries[tensors[name]["parts"][0]["entry"]]
            factor = entry["multiplier"]["value"]
            numbers = entry["rows"] * entry["columns"]
            expected = factor * math.hypot(0.05 * math.sqrt(entry["init_variance"]["value"]),
                                           entry["init_mean"]["value"])
            self.assertLessEqual(abs(float(rms) - expected), expected * (5 / math.sqrt(2 * numbers) + 1e-5), name)
            # Numbers near 1 are rounded to 6e-8.
            rate = 3e-4 * entry["learning_rate"]["value"] * factor
            self.assertAlmostEqual(float(step), rate, delta=6e-8, msg=name)

    def options(self, preset, shape, base):
        options = ["--rule", "maximal-update", "--preset", preset, "--base-preset", preset]
        for key in shape:
            options += ["--set", f"{key}={shape[key]}", "--set", f"base.{key}={base[key]}"]
        return options

    def header(self, folder, preset, shape, base, *form):
        subprocess.run([PLAN, *self.options(preset, shape, base), *form, "--format", "c-header", "--save",
                        f"{folder}/plan.h"], check=True, capture_output=True)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
