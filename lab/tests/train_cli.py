#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Runs the program `train` as a user would: killed, interrupted, resumed, and with bad input.

    train_cli.py TRAIN_PROGRAM
"""

import csv
import json
import math
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tests/cli"))
from task_test import TEXT, FolderTest  # noqa: E402

TRAIN = pathlib.Path(sys.argv[1]).resolve()
TINY = ["--text", "text.txt", "--width", "8", "--depth", "1", "--heads", "2", "--seq", "8", "--batch", "4",
        "--threads", "1", "--warmup", "3", "--rate", "0.01"]
FILES = ["--log", "run.csv", "--checkpoint", "run.ckpt"]

# Arguments besides TINY, and what the one line on stderr has to contain. frame_cli.py tries numbers and words of all options.
BAD = [
    (["--text", "none.txt"], ["cannot open none.txt: no such file"]),
    (["--text", "empty.txt"], ["empty.txt (empty)"]),
    (["--text", "short.txt"], ["--text = short.txt of 9 bytes", "--seq = 8"]),
    (["--rule", "gpt3"], ["rule = gpt3", "did you mean"]),
    (["--rule", "maximal-update"], ["--base = 0", "the width that the rate was tuned at"]),
    (["--rule", "complete-p", "--base", "4", "--optimizer", "sgd"], ["optimizer = sgd", "expected adamw"]),
    (["--rule", "shallow-ntk"], ["input = token"]),
    (["--width", "9"], ["heads = 2", "divisor of d_model = 9"]),
    (["--rotary", "--width", "6"], ["head_dim = 3", "even"]),
    (["--steps", "3", "--warmup", "3"], ["--warmup = 3", "fewer than --steps"]),
    (["--rate", "1e30"], ["--rate = 1e30", "above 0 and below 1e+30"]),
    (["--threads", "1025"], ["--threads = 1025", "1024"]),
    (["--seed", "18446744073709551616"], ["--seed = 18446744073709551616", "18446744073709551615"]),
    (["--set", "vocab=5"], ["--set = vocab=5", "that the data leave open"]),
    (["--set", "base.context=5"], ["--set = base.context=5", "--seq"]),
    (["--base", "1000000000", "--set", "d_ff=9223372036854775807"], ["d_ff = 9223372036854775807", "2^30"]),
    (["--digits", "x.csv"], ["--digits (given): expected it without --text"]),
    (["--task", "denoising", "--seq", "1"], ["--seq = 1", "2 or more tokens"]),
    (["--task", "denoising", "--set", "encoder_depth=2"], ["--set = encoder_depth=2", "as many layers as --depth"]),
    (["--log", "no/such/folder/run.csv"], ["--log = no/such/folder/run.csv"]),
    (["--checkpoint", "no/such/folder/run.ckpt"], ["--checkpoint = no/such/folder/run.ckpt"]),
    (["--log", "text.txt", "--overwrite"], ["--log = text.txt", "a place of its own"]),
    (["--checkpoint", "./text.txt", "--overwrite"], ["--checkpoint = ./text.txt", "a place of its own"]),
    (["--log", "new", "--checkpoint", "new"], ["= new", "a file of its own"]),
    (["--log", "precious"], ["--log = precious", "--overwrite"]),
    (["--checkpoint", "precious"], ["precious (another kind of file)"]),
    (["--log", "precious", "--checkpoint", "none.ckpt"], ["--log = precious", "without a checkpoint", "--overwrite"]),
]


def run(folder, *arguments, **options):
    return subprocess.run([TRAIN, *map(str, arguments)], capture_output=True, text=True, cwd=folder,
                          timeout=120, check=False, **options)


def rows(folder):
    """The log without the column of seconds."""
    lines = (folder / "run.csv").read_text(encoding="utf-8").splitlines()
    return [line.rpartition(",")[0] for line in lines]


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def digits_csv(images=60, side=4):
    """Images whose class is the column of the bright pixels."""
    draw = random.Random(1)
    lines = []
    for _ in range(images):
        label = draw.randrange(side)
        pixels = [16 - draw.randrange(3) if i % side == label else draw.randrange(3) for i in range(side * side)]
        lines.append(",".join(map(str, [*pixels, label])))
    return "\n".join(lines) + "\n"


class Train(FolderTest):
    def good(self, folder, *arguments):
        result = run(folder, *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def assert_same_run(self, folder, other):
        self.assertEqual((folder / "run.ckpt").read_bytes(), (other / "run.ckpt").read_bytes())
        self.assertEqual(rows(folder), rows(other))

    def start(self, folder, *arguments):
        process = subprocess.Popen([TRAIN, *map(str, arguments)], cwd=folder, text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.addCleanup(process.kill)
        return process

    def wait_for_rows(self, folder, count, process):
        for _ in range(6000):
            if (folder / "run.csv").exists() and len(rows(folder)) > count:
                return
            self.assertIsNone(process.poll(), "the run ended too early")
            time.sleep(0.005)
        self.fail("no rows")

    # ---- learning --------------------------------------------------------------------------------

    def test_sizes_of_tensors_at_the_end(self):
        def sizes(*options):
            result = self.good(self.folder, *TINY, "--steps", 1, "--warmup", 0, "--width", 16, "--format", "json",
                               *options)
            return {tensor["name"]: (tensor["rms"], tensor["mean_absolute"])
                    for tensor in json.loads(result.stdout)["tensors"]}

        still = sizes("--rate", 1e-20, "--rule", "standard")
        self.assertEqual(still["layer.0.attention_norm_gain"], (1, 1))
        self.assertLess(max(still["layer.0.mlp_up_bias"]), 1e-19)  # a step of AdamW
        # Normal entries: the mean absolute is sqrt(2/pi) of the root mean square; 256 of them, 4 standard errors.
        rms, mean = still["layer.0.query"]
        self.assertAlmostEqual(mean / rms, math.sqrt(2 / math.pi), delta=4 * 0.6 / 16)
        # The normalized transformer's matrices have rows of unit length.
        self.assertAlmostEqual(sizes("--rule", "ngpt", "--rotary")["layer.0.query"][0], 1 / 4, places=6)

    def test_it_learns_a_repeating_text(self):
        result = self.good(self.folder, *TINY, "--steps", 200, "--seq", 16, "--width", 16, *FILES, "--format", "json",
                           "--validate-every", 70)
        summary = json.loads(result.stdout)
        self.assertEqual(summary["schema"], "scalewise.train/1")
        self.assertEqual(summary["steps"], 200)
        self.assertLess(summary["validation_nats"], 1.5)
        self.assertAlmostEqual(summary["bits_per_byte"], summary["validation_nats"] / math.log(2), places=12)
        with open(self.folder / "run.csv", encoding="utf-8", newline="") as file:
            log = list(csv.DictReader(file))
        self.assertEqual([int(row["step"]) for row in log], list(range(201)))
        self.assertEqual([int(row["step"]) for row in log if row["validation_nats"]], [0, 70, 140, 200])
        self.assertEqual(float(log[-1]["validation_nats"]), summary["validation_nats"])
        self.assertGreater(float(log[0]["validation_nats"]), 4)
        # Warm-up to the peak over three steps, then down to the last step of the cosine.
        self.assertAlmostEqual(float(log[1]["rate"]), 0.01 / 3, places=12)
        self.assertAlmostEqual(float(log[3]["rate"]), 0.01, places=12)
        last = 0.01 * (1 + math.cos(math.pi * 196 / 197)) / 2
        self.assertAlmostEqual(float(log[200]["rate"]), last, places=12)

    def test_it_learns_images(self):
        (self.folder / "digits.csv").write_text(digits_csv(200), encoding="utf-8")
        result = self.good(self.folder, "--digits", "digits.csv", *TINY[2:], "--steps", 150, "--format", "json")
        summary = json.loads(result.stdout)
        self.assertGreater(summary["accuracy"], 0.9)

    def nats_of_two_characters(self, task):
        """The validation loss on a random text of a and b."""
        draw = random.Random(1)
        (self.folder / "text.txt").write_text("".join(draw.choice("ab") for _ in range(40000)), encoding="utf-8")
        result = self.good(self.folder, "--text", "text.txt", "--task", task, "--width", 32, "--depth", 1, "--seq", 8,
                           "--steps", 400, "--rate", 0.01, "--threads", 1, "--validate-every", 1000, "--format", "json")
        return json.loads(result.stdout)["validation_nats"]

    # Each of the 8 characters of a window is a or b, with equal chances. Given the source and the places of its spans, two of them
    # are still open, so a window costs 2 ln 2 or more; without the source, 8 ln 2. The probability of all 499 windows over their
    # true one has a mean of 1 at most: by Markov's inequality the sum is 14 below the bound with a chance of e^-14 = 8e-7.
    def test_it_restores_masked_text_from_what_the_encoder_sees(self):
        nats = 499 * 8 * self.nats_of_two_characters("denoising")
        self.assertGreater(nats, 499 * 2 * math.log(2) - 14)
        self.assertLess(nats, 499 * 8 * math.log(2) - 14)

    # Without the text, a character that is masked or exchanged costs ln 2: these are 0.9 of the chosen ones. Of n = 600 chosen ones
    # it is 0.84 n with a chance of 1 - 3e-7, n is at least 487 with the same chance, and the sum is 14 below the bound with a chance
    # of 8e-7, as above. One that stays tells itself, so that a model which learns this is below ln 2.
    def test_it_predicts_masked_characters_from_what_is_left_of_them(self):
        nats = self.nats_of_two_characters("masked")
        self.assertGreater(nats, 0.84 * math.log(2) - 14 / 487)
        self.assertLess(nats, 0.97 * math.log(2))

    def test_the_last_line_is_the_result(self):
        result = self.good(self.folder, *TINY, "--steps", 5, "--warmup", 1)
        self.assertRegex(result.stdout.splitlines()[-1], r"^validation  \d\.\d{4} nats, \d\.\d{4} bits per byte$")
        self.assertIn("step 0: validation", result.stderr)
        quiet = self.good(self.folder, *TINY, "--steps", 5, "--warmup", 1, "--quiet")
        self.assertEqual("validation  " + quiet.stdout, result.stdout.splitlines()[-1] + "\n")
        self.assertEqual(quiet.stderr, "")

    def test_every_rule_for_a_transformer_trains(self):
        shared = [*TINY, "--steps", 4, "--base", 4, "--quiet"]
        rules = [page.stem for page in (pathlib.Path(__file__).parents[2] / "docs" / "rules").glob("*.md")]
        self.assertGreaterEqual(len(rules), 26)
        for rule in rules:
            with self.subTest(rule=rule):
                # DeepScaleLM's formulas are those of ReLU in some layers.
                needed = ["--activation", "relu", "--depth", 4] if rule.startswith("deep-scale-lm") else []
                trained = run(self.folder, *shared, "--rule", rule, *needed)
                if rule.startswith("shallow-"):  # of one layer that reads vectors
                    self.assertIn("input = token", trained.stderr)
                else:
                    self.assertEqual(trained.returncode, 0, trained.stderr)

    def test_a_relative_rule_at_its_base_is_its_own_base(self):
        # At target = base the factors are 1, however wide the base is said to be elsewhere.
        a = self.good(self.folder, *TINY, "--steps", 4, "--quiet", "--rule", "maximal-update", "--base", 8)
        b = self.good(self.folder, *TINY, "--steps", 4, "--quiet", "--rule", "maximal-update", "--base", 4,
                      "--set", "base.d_model=8", "--set", "base.heads=2", "--set", "base.kv_heads=2", "--base-std",
                      1 / math.sqrt(8))
        self.assertEqual(a.stdout, b.stdout)

    def test_a_base_that_starts_by_a_rule_trains_as_that_rule_does(self):
        shared = [*TINY, "--steps", 4, "--quiet"]
        absolute = self.good(self.folder, *shared, "--rule", "standard")
        relative = self.good(self.folder, *shared, "--rule", "maximal-update", "--base", 8, "--start", "standard")
        self.assertEqual(relative.stdout, absolute.stdout)
        wide = [*shared, "--width", 16, "--rule", "maximal-update", "--base", 8]
        self.assertNotEqual(self.good(self.folder, *wide, "--start", "standard").stdout,
                            self.good(self.folder, *wide, "--start", "gpt2").stdout)
        for options, message in (
            (["--rule", "standard", "--start", "he"], ["start = he", "standard says itself how a model starts"]),
            (["--rule", "maximal-update", "--base", 8, "--start", "ngpt"], ["start = ngpt"]),
            (["--rule", "maximal-update", "--start", "he", "--base-std", 0.1], ["--base-std"])):
            self.assert_refused([*shared, *options], message)

    def test_a_constant_multiplies_the_rule_s_number(self):
        shared = [*TINY, "--steps", 4, "--quiet", "--rule", "mup", "--base", 4]
        tuned, plain, other = (self.good(self.folder, *shared, *more).stdout for more in (
            ["--rate", "0.01", "--constant", "rate=0.5"], ["--rate", "0.005"], ["--rate", "0.005", "--constant", "logits=2"]))
        self.assertEqual(tuned, plain)
        self.assertNotEqual(other, plain)
        self.assert_refused([*shared, "--constant", "logit=2"], ["constant = logit", "did you mean logits?"])

    def test_options_reach_the_model(self):
        plain = self.good(self.folder, *TINY, "--steps", 6, "--quiet").stdout
        for option in (["--seed", 2], ["--norm", "rms"], ["--placement", "post"], ["--activation", "relu"], ["--rotary"],
                       ["--optimizer", "sgd"], ["--optimizer", "sign-sgd"], ["--rate", 0.02], ["--warmup", 2],
                       ["--schedule", "constant"], ["--schedule", "linear"], ["--weight-decay", 1], ["--clip", 0.01],
                       ["--dropout", 0.1],
                       ["--batch", 5], ["--heads", 4], ["--set", "gated_mlp=true"], ["--set", "d_ff=5"]):
            with self.subTest(option=option):
                self.assertNotEqual(self.good(self.folder, *TINY, "--steps", 6, "--quiet", *option).stdout, plain)

    def test_neither_threads_nor_outputs_change_a_run(self):
        other = self.make_folder("other")
        self.good(self.folder, *TINY, "--steps", 12, *FILES)
        self.good(other, *TINY, "--steps", 12, *FILES, "--checkpoint-every", 5, "--quiet")
        self.assert_same_run(self.folder, other)
        threads = run(other, *TINY, "--steps", 12, *FILES, "--threads", 2, "--overwrite")
        if "no OpenMP" not in threads.stderr:
            self.assertEqual(threads.returncode, 0, threads.stderr)
            self.assert_same_run(self.folder, other)

    # ---- killed, interrupted, resumed ------------------------------------------------------------

    def test_interrupted_and_resumed_equals_uninterrupted(self):
        arguments = [*TINY, "--steps", 4000, "--checkpoint-every", 100000, "--validate-every", 1000, *FILES]
        self.good(self.folder, *arguments)
        for number, name, code in ((signal.SIGINT, "ctrl-c", 130), (signal.SIGTERM, "term", 143)):
            with self.subTest(signal=name):
                folder = self.make_folder(name)
                process = self.start(folder, *arguments)
                self.wait_for_rows(folder, 20, process)
                process.send_signal(number)
                _, message = process.communicate(timeout=60)
                self.assertEqual(process.returncode, code, message)
                self.assertIn("stopped after step", message)
                self.assertIn("train: finishing the current run; press Ctrl-C again to abort\n", message)
                self.assertIn("; the same command resumes it\n", message)
                result = self.good(folder, *arguments)
                step = re.search(r"stopped after step (\d+)", message)[1]
                self.assertGreaterEqual(int(step), 20)
                self.assertIn(f"resumed at step {step}\n", result.stderr)
                self.assert_same_run(self.folder, folder)
                self.assertIn("resumed at step 4000\n", self.good(folder, *arguments).stderr)

    def test_without_a_checkpoint_an_interrupt_says_that_nothing_is_saved(self):
        process = self.start(self.folder, *TINY, "--steps", 100000, "--log", "run.csv")
        self.wait_for_rows(self.folder, 5, process)
        process.send_signal(signal.SIGINT)
        _, message = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        self.assertIn("nothing is saved without --checkpoint", message)

    def test_a_finished_run_resumed_gives_its_result_again(self):
        first = self.good(self.folder, *TINY, "--steps", 10, *FILES, "--quiet")
        before = contents(self.folder)
        again = self.good(self.folder, *TINY, "--steps", 10, *FILES, "--quiet")
        self.assertEqual(again.stdout, first.stdout)
        self.assertEqual(contents(self.folder), before)

    def test_with_a_constant_rate_a_run_can_be_made_longer(self):
        """And has the bits of one that was as long from the start; kill_runs.py kills runs and resumes them."""
        for name, options in (("double", ["--precision", "double"]), ("sgd", ["--optimizer", "sgd"]), ("dropout", ["--dropout", "0.2"]),
                              ("normalized", ["--rule", "ngpt", "--rate", "0.1"]), ("denoising", ["--task", "denoising"]), ("adamw", [])):
            with self.subTest(name):
                constant = [*TINY, "--schedule", "constant", *options, *FILES[2:]]
                whole, other = self.make_folder(name), self.make_folder(name + " in two")
                self.good(whole, *constant, "--steps", 20)
                self.good(other, *constant, "--steps", 12)
                self.good(other, *constant, "--steps", 20)
                self.assertEqual((whole / "run.ckpt").read_bytes(), (other / "run.ckpt").read_bytes())
        result = run(other, *constant, "--steps", 19)
        self.assertEqual(result.returncode, 2)
        self.assertIn("--steps = 19: expected at least 20", result.stderr)

    # ---- refusals --------------------------------------------------------------------------------

    def assert_refused(self, arguments, fragments, **options):
        before = contents(self.folder)
        result = run(self.folder, *arguments, **options)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(result.stdout, "")
        for fragment in fragments:
            self.assertIn(fragment, result.stderr)
        self.assertLessEqual(len(result.stderr.strip().splitlines()), 2, result.stderr)
        self.assertEqual(contents(self.folder), before)

    def test_bad_input_gets_one_message_and_leaves_files_as_they_were(self):
        (self.folder / "empty.txt").write_text("", encoding="utf-8")
        (self.folder / "short.txt").write_text("too short", encoding="utf-8")
        (self.folder / "precious").write_text("precious", encoding="utf-8")
        for arguments, fragments in BAD:
            with self.subTest(arguments=arguments):
                self.assert_refused([*TINY, *arguments], fragments)

    def test_bad_images_are_refused_by_line_and_column(self):
        good = digits_csv(20)
        for bad, place in ((good.replace(",", ",nan,", 1), "line 1"), ("nan" + good[good.index(","):], "column 1"),
                           (good.replace("16", "17"), "column"), (good + "1,2\n", "line 21"), ("", "digits.csv")):
            (self.folder / "digits.csv").write_text(bad, encoding="utf-8")
            self.assert_refused(["--digits", "digits.csv", *TINY[2:], *FILES], [place])
        (self.folder / "digits.csv").write_text(good, encoding="utf-8")
        self.assert_refused(["--digits", "digits.csv", *TINY[2:], "--patch", 3], ["--patch = 3", "divisor"])

    def test_another_run_is_not_resumed(self):
        self.good(self.folder, *TINY, "--steps", 5, *FILES)
        same = [*TINY, "--steps", 5, *FILES]
        (self.folder / "other.txt").write_bytes(TEXT[::-1])
        for change in (["--width", 16], ["--heads", 4], ["--seq", 9], ["--batch", 5], ["--warmup", 2], ["--rate", 0.02],
                       ["--depth", 2], ["--seed", 3], ["--rule", "he"], ["--set", "d_ff=7"], ["--steps", 6],
                       ["--optimizer", "sgd"], ["--schedule", "linear"], ["--weight-decay", 0.1], ["--clip", 1],
                       ["--placement", "post"], ["--norm", "rms"], ["--activation", "relu"], ["--rotary"],
                       ["--validate-every", 3], ["--dropout", 0.1], ["--decay", "independent"], ["--base", 4],
                       ["--base-std", 1]):
            with self.subTest(change=change):
                self.assert_refused([*same, *change],
                                    [f"{change[0]} = ", "expected", "as in checkpoint run.ckpt"])
        self.assert_refused([*same, "--precision", "double"], ["scalar type = float: expected double"])
        self.assert_refused(["--text", "other.txt", *same[2:]], ["--text = ", "as in checkpoint run.ckpt"])

    def test_the_log_of_another_run_is_not_cut(self):
        self.good(self.folder, *TINY, "--steps", 30, "--seed", 5, "--log", "other.csv")
        same = [*TINY, "--steps", 6, "--checkpoint", "run.ckpt"]
        self.good(self.folder, *same, "--log", "run.csv")
        self.assert_refused([*same, "--log", "other.csv"], ["--log = other.csv", "up to step 6"])
        lines = (self.folder / "run.csv").read_text(encoding="utf-8").splitlines(keepends=True)
        digit = lines[3].replace(",", ",1", 1)
        for name, bad in (("row", lines[:4] + lines[5:]), ("digit", [*lines[:3], digit, *lines[4:]])):
            with self.subTest(name):
                (self.folder / "bad.csv").write_text("".join(bad), encoding="utf-8")
                self.assert_refused([*same, "--log", "bad.csv"], ["--log = bad.csv", "up to step 6"])

    def test_a_fresh_run_writes_over_an_old_one_only_when_told(self):
        self.good(self.folder, *TINY, "--steps", 5, *FILES)
        self.assert_refused([*TINY, "--steps", 6, *FILES], ["--steps = 6: expected 5, as in checkpoint run.ckpt", "--overwrite"])
        self.good(self.folder, *TINY, "--steps", 6, *FILES, "--overwrite")
        self.assertEqual(len(rows(self.folder)), 1 + 7)

    # ---- divergence ------------------------------------------------------------------------------

    def test_divergence_is_told_with_step_tensor_and_advice(self):
        wild = [*TINY, "--steps", 200, "--optimizer", "sgd", "--rate", 1e25, "--warmup", 0, *FILES,
                "--checkpoint-every", 1]
        result = run(self.folder, *wild)
        self.assertEqual(result.returncode, 1, result.stderr)
        message = result.stderr.splitlines()[-1]
        self.assertRegex(message, r"diverged at step \d+: .*the gradient of \w+ is the first")
        self.assertIn("try a lower --rate than 1e+25", message)
        self.assertIn("run.ckpt is the last good checkpoint", message)
        again = run(self.folder, *wild)
        self.assertEqual(again.returncode, 1, again.stderr)
        self.assertEqual(again.stderr.splitlines()[-1], message)

    def test_only_good_parameters_are_saved(self):
        wild = [*TINY, "--rate", 1e4, "--warmup", 0, "--steps", 1000, *FILES, "--checkpoint-every", 1]
        result = run(self.folder, *wild)
        self.assertEqual(result.returncode, 1, result.stderr)
        losses = [float(row.split(",")[1]) for row in rows(self.folder)[2:]]  # [n]: of the parameters of step n
        again = run(self.folder, *wild)
        self.assertEqual(again.returncode, 1, again.stderr)
        saved = int(re.search(r"resumed at step (\d+)\n", again.stderr)[1])
        self.assertLess(losses[saved], 1.5 * max(losses[0], math.log(256)))
        self.assertGreater(max(losses[:10]), 1.5 * max(losses[0], math.log(256)))
        self.assertIn(f"; run.ckpt is the last good checkpoint, of step {saved}\n", result.stderr)
        self.assertEqual(again.stderr.splitlines()[-1], result.stderr.splitlines()[-1])

    def test_an_end_far_above_the_start_is_divergence(self):
        for warmup in (0, 3):
            with self.subTest(warmup=warmup):
                short = [*TINY, "--rate", 1e6, "--warmup", warmup, "--steps", 6, "--quiet"]
                result = run(self.folder, *short)
                self.assertEqual((result.returncode, result.stdout), (1, ""), result.stderr)
                self.assertRegex(result.stderr, r"^train: training diverged at step 6: the loss at the end is ")
                self.assertNotIn("checkpoint", result.stderr)
                result = run(self.folder, *short, *FILES, "--overwrite")
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertIn("; run.ckpt is the last good checkpoint, of step 0\n", result.stderr)

    def test_learning_by_heart_is_not_divergence(self):
        draw = random.Random(2)
        lines = [",".join(str(draw.randrange(17)) for _ in range(16)) + f",{draw.randrange(10)}" for _ in range(40)]
        (self.folder / "digits.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        images = ["--digits", "digits.csv", *TINY[2:], "--width", 16, "--batch", 32, "--steps", 400, *FILES]
        result = self.good(self.folder, *images, "--format", "json", "--checkpoint-every", 1000)
        self.assertGreater(json.loads(result.stdout)["validation_nats"], 1.5 * math.log(10))
        self.assertIn("resumed at step 400\n", self.good(self.folder, *images).stderr)

    # ---- output ----------------------------------------------------------------------------------

    @unittest.skipUnless(hasattr(os, "openpty"), "no terminals here")
    def test_a_terminal_gets_a_progress_line(self):
        master, slave = os.openpty()
        process = subprocess.Popen([TRAIN, *TINY, "--steps", "10000000"], cwd=self.folder,
                                   stdout=subprocess.DEVNULL, stderr=slave)
        os.close(slave)
        line = r"\r\x1b\[K\d+ of 10000000 steps, loss [\d.]+, \d+ s, \d+:\d\d left"
        shown = b""
        while not re.search(line, shown.decode(errors="replace")):
            try:
                block = os.read(master, 4096)
            except OSError:
                break
            if not block:
                break
            shown += block
        process.kill()
        process.wait(timeout=60)
        os.close(master)
        self.assertRegex(shown.decode(errors="replace"), line)

    def test_a_failed_start_leaves_files_as_they_were(self):
        self.good(self.folder, *TINY, "--steps", 5, "--log", "old.csv")
        too_long = "x" * 252  # for the temporary name
        for place in (too_long, *(["/proc/x"] if pathlib.Path("/proc").is_dir() else [])):
            for log in (["--log", "old.csv", "--overwrite"], ["--log", "new.csv"]):
                with self.subTest(place=place, log=log):
                    self.assert_refused([*TINY, "--steps", 5, *log, "--checkpoint", place, "--quiet"],
                                        [f"--checkpoint = {place}", "can be written"])

    @unittest.skipUnless(pathlib.Path("/dev/full").exists(), "no /dev/full here")
    def test_lost_output_is_an_error(self):
        short = [*TINY, "--steps", "4", "--quiet"]
        self.assertEqual(run(self.folder, *short, "--log", "/dev/full").returncode, 2)
        self.assertEqual(run(self.folder, *short, "--checkpoint", "/dev/full").returncode, 2)
        with open("/dev/full", "w", encoding="utf-8") as full:
            result = subprocess.run([TRAIN, *short], stdout=full, stderr=subprocess.PIPE, check=False, cwd=self.folder)
        self.assertEqual(result.returncode, 2)
        self.assertIn(b"train: cannot write all of the output", result.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
