#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Runs the programs that measure the reference transformer as a user would.

    check_programs_cli.py FOLDER_OF_PROGRAMS
"""

import csv
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAMS = pathlib.Path(sys.argv[1]).resolve()
TEXT = "It is a truth universally acknowledged, that a tested program may be trusted. " * 20
TINY = ["--text", "text.txt", "--head-dim", "4", "--depth", "1", "--seq", "8",
        "--batch", "4", "--seeds", "2", "--quiet"]
STEPS = {"signal_propagation": [], "alignment": ["--steps", "3"], "empirical_ntk": ["--steps", "3", "--inputs", "2"]}
SECTIONS = {"signal_propagation": ["places", "growth"], "alignment": ["averages", "layers", "steps", "losses"],
            "empirical_ntk": ["groups", "steps"]}

# Arguments besides TINY, and what stderr has to contain.
BAD = [
    (["--rule", "gpt3"], "did you mean"),
    (["--sizes", "16,8"], "--sizes = 8"),
    (["--sizes", "10"], "--head-dim = 4"),
    (["--text", "none.txt"], "cannot open none.txt: no such file"),
    (["--out", "text.txt"], "--out = text.txt"),
]


class CheckPrograms(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        (self.folder / "text.txt").write_text(TEXT)

    def run_program(self, name, *arguments):
        sizes = [] if "--sizes" in arguments else ["--sizes", "8,16"]
        return subprocess.run([PROGRAMS / name, *TINY, *sizes, *STEPS[name], *map(str, arguments)],
                              capture_output=True, text=True, cwd=self.folder, timeout=120, check=False,
                              env={**os.environ, "OMP_WAIT_POLICY": "passive"})

    def json_of(self, name, *arguments, exit_code=0):
        done = self.run_program(name, "--format", "json", *arguments)
        self.assertEqual(done.returncode, exit_code, done.stderr)
        return json.loads(done.stdout)

    def test_results_as_text_json_csv_and_pictures(self):
        for name, sections in SECTIONS.items():
            with self.subTest(name):
                done = self.run_program(name)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(done.stderr, "")
                self.assertIn("\npass: all ", done.stdout)
                result = self.json_of(name, "--out", f"a folder/{name}")
                self.assertEqual(result["schema"], f"scalewise.{name}/1")
                self.assertEqual(result["settings"]["sizes"], [8, 16])
                self.assertEqual(result["verdict"], "pass")
                folder = self.folder / "a folder" / name
                self.assertEqual(json.loads((folder / f"{name}.json").read_text()), result)
                self.assertIn("panel,curve,x,y", (folder / f"{name}.csv").read_text())
                for section in sections:
                    table = (folder / f"{name}_{section}.csv").read_text()
                    rows = list(csv.DictReader(table.splitlines()))
                    self.assertEqual(len(rows), len(result[section]))
                    for row, expected in zip(rows, result[section]):
                        numbers = {key: "" if value is None else value if isinstance(value, str) else float(value)
                                   for key, value in expected.items()}
                        self.assertEqual({key: text if isinstance(numbers[key], str) else float(text)
                                          for key, text in row.items()}, numbers)

    def test_a_rule_for_dropout_is_told_that_there_is_none(self):
        # (1-p)/2 in each of two tables: 1 without dropout, 0.9 for the source's 0.1.
        more = ["--rule", "deep-scale-lm", "--activation", "relu", "--depth", "3", "--head-dim", "16", "--sizes", "128", "--seeds", "6"]
        places = self.json_of("signal_propagation", *more)["places"]
        self.assertEqual(places[0]["place"], "embedding")
        self.assertLess(abs(places[0]["variance"] - 1), 0.05)

    def test_results_do_not_depend_on_the_number_of_threads(self):
        for name in SECTIONS:
            with self.subTest(name):
                one, two = (self.json_of(name, "--threads", threads) for threads in (1, 2))
                self.assertEqual((one["machine"].pop("threads"), two["machine"].pop("threads")), (1, 2))
                self.assertEqual(one, two)

    def test_bad_input(self):
        for name in SECTIONS:
            for arguments, message in BAD:
                with self.subTest(name=name, arguments=arguments):
                    done = self.run_program(name, *arguments)
                    self.assertEqual(done.returncode, 2, done.stdout)
                    self.assertIn(message, done.stderr)
                    self.assertEqual(done.stdout, "")
        for arguments in (["--inputs", "5"], ["--inputs", "0"], ["--outputs", "257"]):
            done = self.run_program("empirical_ntk", *arguments)
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"{arguments[0]} = {arguments[1]}", done.stderr)

    def test_numbers_that_are_not_finite_fail(self):
        for name in ("alignment", "empirical_ntk"):
            with self.subTest(name):
                result = self.json_of(name, "--optimizer", "sgd", "--rule", "standard", "--rate", "1e29",
                                      exit_code=1)
                self.assertEqual(result["verdict"], "fail")

    def test_depth_is_an_axis_and_base(self):
        for name in SECTIONS:
            adamw = ["--optimizer", "adamw"] if name == "empirical_ntk" else []
            result = self.json_of(name, "--axis", "depth", "--width", 8, "--sizes", "1,2", "--rule", "complete-p", *adamw)
            self.assertEqual({row["depth"] for row in result[SECTIONS[name][0]]}, {1, 2})

    def test_signal_of_known_variance(self):
        """A post-norm stream has variance 1 at every layer, and what is left is the last of it."""
        result = self.json_of("signal_propagation", "--placement", "post", "--depth", 3)
        streams = [row for row in result["places"] if row["place"].endswith(".stream")]
        self.assertEqual(len(streams), 2 * 3 * 2)
        for row in streams:
            self.assertAlmostEqual(row["variance"], 1, delta=2e-3)  # the norm's epsilon
            self.assertAlmostEqual(row["mean"], 0, delta=1e-6)
            self.assertLess(abs(row["correlation"]), 1)
        for row in result["growth"]:
            self.assertGreater(row["backward"], 0)

    def test_variance_behind_an_mlp(self):
        """With fan-in variances an MLP returns the second moment of GELU of a standard normal:
        1/4 + asin(1/2)/(2 pi) + 1/(2 pi sqrt 3) = 0.4252, exactly on average over weights."""
        expected = 1 / 4 + math.asin(1 / 2) / (2 * math.pi) + 1 / (2 * math.pi * math.sqrt(3))
        result = self.json_of("signal_propagation", "--rule", "standard", "--sizes", 32, "--seeds", 12)
        row = next(row for row in result["places"] if row["place"] == "layer.0.mlp.output")
        self.assertLess(row["variance_se"], 0.03)
        self.assertLess(abs(row["variance"] + row["mean"]**2 - expected), 5 * row["variance_se"])

    def test_skip_alone_keeps_variance_and_gradient(self):
        """Branches of gain zero: the stream and its gradient are the same everywhere."""
        result = self.json_of("signal_propagation", "--rule", "rezero", "--norm", "none", "--depth", 3)
        for size in (8, 16):
            streams = [row for row in result["places"] if row["width"] == size
                       and (row["place"].endswith(".stream") or row["place"] == "embedding")]
            for key in ("variance", "correlation", "gradient_variance", "gradient_correlation"):
                self.assertEqual(len({row[key] for row in streams}), 1, key)
        for row in result["growth"]:
            self.assertAlmostEqual(row["forward"], 1, delta=1e-12)
            self.assertAlmostEqual(row["backward"], 1, delta=1e-12)

    def test_first_step_on_one_token_is_fully_aligned(self):
        """A gradient of one token is an outer product with the input, so alpha is exactly 1."""
        (self.folder / "text.txt").write_text("a" * 100)
        result = self.json_of("alignment", "--rule", "standard", "--optimizer", "sgd", "--rate", 1,
                              "--seq", 1, "--batch", 1, "--norm", "rms")
        first = {(row["width"], row["matrix"]): row for row in result["steps"] if row["step"] == 1}
        for width in (8, 16):
            for matrix in ("value", "attention_output", "mlp_up", "mlp_down", "head"):
                self.assertAlmostEqual(first[width, matrix]["alpha"], 1, delta=1e-4, msg=matrix)
            for matrix in ("query", "key"):  # one token to attend to: no gradient
                self.assertIsNone(first[width, matrix]["alpha"])

    def test_kernel_shares_and_drift(self):
        result = self.json_of("empirical_ntk")
        for size in (8, 16):
            shares = [row["share"] for row in result["groups"] if row["width"] == size]
            self.assertAlmostEqual(sum(shares), 1, delta=1e-9)
            self.assertTrue(all(share >= 0 for share in shares))
            steps = [row for row in result["steps"] if row["width"] == size]
            self.assertEqual([row["step"] for row in steps], [1, 2, 3])
            self.assertLess(steps[0]["movement"], steps[-1]["movement"])
        # A rate of almost nothing: neither kernel nor weights move.
        still = self.json_of("empirical_ntk", "--rate", "1e-12")
        for row in still["steps"]:
            self.assertLess(row["drift"], 1e-6)
            self.assertLess(row["movement"], 1e-6)

if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=1)
