#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Every program trains a rule on the model of the rule's text, or says what is otherwise.

    text_cli.py FOLDER_OF_PROGRAMS [FOLDER_OF_PROGRAMS] [TEST...]
"""

import itertools
import json
import re
import subprocess
import sys
import unittest

from quick_start import QUICK, programs

PROGRAMS, TESTS = programs()

# Typed from the texts: arXiv:2604.27077v2, section 2; 2403.09635, section 3; 2203.00555, Figure 2; 1908.11365.
NORMALIZED = {"--activation": "silu", "--rotary": "true"}
TEXTS = {"ngpt": NORMALIZED, "ngpt-depth-mup": NORMALIZED, "ngpt-complete-p": NORMALIZED, "nu-gpt": NORMALIZED,
         "nu-gpt-full-align": NORMALIZED, "deep-scale-lm": {"--activation": "relu"},
         "deep-scale-lm-simple": {"--activation": "relu"}, "deep-norm": {"--placement": "post"},
         "ds-init": {"--placement": "post"}}
USUAL = {"--activation": "gelu", "--rotary": "false", "--placement": "pre"}
NAMES = {"activation": "--activation", "positions": "--rotary", "placement": "--placement"}
FAMILY = ["--sizes", "8,16", "--head-dim", "4", "--depth", "1", "--seq", "4", "--batch", "2", "--seeds", "1"]


def run(name, *arguments):
    return subprocess.run([PROGRAMS[name], *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False,
                          env={**QUICK, "OMP_NUM_THREADS": "1"})  # models so small that threads wait for each other


def rules():
    return json.loads(run("plan", "--list-rules", "--format", "json").stdout)


def of_models():
    """The programs that have a rule and a model of their own."""
    return [name for name in sorted(PROGRAMS) if {"--rule", "--activation"} <= set(re.findall("--[a-z]+", run(name, "--help").stdout))]


class Text(unittest.TestCase):
    maxDiff = None

    def inputs(self, name, rule, *arguments):
        """What a run depends on, and which choices the program says are not as in the text."""
        # The plan is refused after the inputs are shown, before anything is timed.
        result = run(name, "--rule", rule, "--dry-run", "--set", "no_such_field=1", *arguments)
        found = dict(re.findall("^(--[a-z-]+) = (.*)$", result.stdout, re.MULTILINE))
        if not found and name == "deep_init" and "a rule that needs no base model" in result.stderr:
            return {}, set()
        self.assertTrue(found, result.stderr)
        line = re.search(f"^warning: not as in the text of {rule}: (.*)$", result.stderr, re.MULTILINE)
        said = {NAMES[word] for word in re.findall("([a-z]+) = ", line[1])} if line else set()
        return found, said

    def test_no_rule_runs_in_another_set_up_without_a_line(self):
        names = of_models()
        self.assertLessEqual({"coordinate_check", "deep_init", "learning_rate_transfer"}, set(names))
        for name, rule in itertools.product(names, (entry["rule"] for entry in rules())):
            text = TEXTS.get(rule, {})
            changes = [["--activation", "gelu"], ["--activation", "relu"], ["--placement", "pre"], ["--placement", "post"]]
            for change in ([], *(changes if text else changes[:1])):
                with self.subTest(name=name, rule=rule, change=change):
                    found, said = self.inputs(name, rule, *change)
                    other = {option for option, value in text.items() if option in found and found[option] != value}
                    self.assertEqual(said, other)
                    if change or name == "deep_init" or not found:  # which has a ReLU under every rule
                        continue
                    for option, usual in USUAL.items():
                        self.assertEqual(found.get(option, usual), text.get(option, usual), option)

    def result(self, name, *arguments):
        """Numbers of a run in single precision, without its settings and times."""
        done = run(name, "--rule", "nu-gpt", "--format", "json", "--quiet", *arguments)
        self.assertIn(done.returncode, (0, 1, 3), done.stderr)
        return {key: value for key, value in json.loads(done.stdout).items() if key not in ("settings", "machine", "seconds")}

    def test_what_is_trained_is_the_model_of_the_text(self):
        one = ["--base", 8, "--width", 8, "--heads", 2, "--depth", 1, "--seq", 4, "--batch", 2, "--steps", 3, "--rate", 0.1]
        options = {"train": one, "signal_propagation": FAMILY, "alignment": [*FAMILY, "--steps", 2],
                   "coordinate_check": [*FAMILY, "--steps", 2], "learning_rate_transfer": [*FAMILY, "--steps", 20]}
        for name in sorted(options.keys() & PROGRAMS.keys()):
            with self.subTest(name):
                usual = self.result(name, *options[name])
                self.assertEqual(usual, self.result(name, *options[name], "--activation", "silu", "--rotary"))
                self.assertNotEqual(usual, self.result(name, *options[name], "--activation", "gelu"))

    def test_what_a_rule_does_not_follow_is_said_once(self):
        for name in sorted({"coordinate_check", "learning_rate_transfer"} & PROGRAMS.keys()):
            with self.subTest(name):
                done = run(name, "--rule", "ngpt", "--dry-run", *FAMILY, "--steps", 1, "--set", "gated_mlp=false", "--norm", "rms")
                self.assertEqual((done.returncode, done.stderr),
                                 (0, "warning: ngpt has gated_mlp = true: --set gated_mlp=false changes nothing\n"
                                     "warning: ngpt has no norms: --placement and --norm change nothing\n"))

    def test_steps_that_a_rule_ignores_are_said(self):
        steps = ["--set", "iterations=8", "--set", "base.iterations=4"]
        for rule, more, said in (("ngpt-complete-p", [], True), ("ngpt-complete-p", ["--set", "horizon_exponent=0.5"], False),
                                 ("nu-gpt", [], False), ("maximal-update", [], True)):
            with self.subTest(rule=rule, more=more):
                both = "does not scale with the number of steps"
                planned = run("plan", "--rule", rule, "--preset", "gpt2", "--base-preset", "gpt2", *steps, *more)
                self.assertEqual((planned.returncode, both in planned.stderr), (0, said), planned.stderr)
                trained = run("coordinate_check", "--rule", rule, "--dry-run", *FAMILY, "--steps", 1, *steps, *more)
                self.assertEqual((trained.returncode, both in trained.stderr), (0, said), trained.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *TESTS])
