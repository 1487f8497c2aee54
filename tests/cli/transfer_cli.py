#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Runs the program `learning_rate_transfer` as a user would: killed, stopped, resumed, with bad input.

    transfer_cli.py LEARNING_RATE_TRANSFER_PROGRAM
"""

import csv
import json
import pathlib
import random
import signal
import subprocess
import sys
import time
import unittest

from quick_start import QUICK
from task_test import FolderTest

PROGRAM = pathlib.Path(sys.argv[1]).resolve()
DIGITS = pathlib.Path(__file__).parents[2] / "tools/data/digits.csv"
TINY = ["--text", "text.txt", "--head-dim", "4", "--depth", "1", "--seq", "8", "--batch", "2",
        "--steps", "20", "--seeds", "2", "--threads", "1", "--quiet"]
OUT = ["--out", "out"]

# Arguments beside TINY, and what the one line on stderr has to contain.
BAD = [
    (["--text", "none.txt"], ["cannot open none.txt: no such file"]),
    (["--text", "short.txt"], ["--text = short.txt of 9 bytes", "--seq = 8"]),
    (["--rule", "gpt3"], ["rule = gpt3", "did you mean"]),
    (["--optimizer", "adam"], ["--optimizer = adam", "did you mean adamw?"]),
    (["--axis", "breadth"], ["--axis = breadth", "width, depth, experts, horizon, batch, length, shape or joint"]),
    (["--axis", "joint", "--sizes", "8,12"], ["--sizes = 12", "a number of layers"]),
    (["--axis", "shape", "--sizes", "8,12"], ["--sizes = 12", "a number of layers"]),
    (["--axis", "joint", "--sizes", "8,800000000"], ["--sizes = 800000000", "at most 1e9 steps"]),
    (["--digits", "text.txt"], ["--digits", "without --text"]),
    (["--min-rate", "2"], ["--min-rate = 2"]),
    (["--tune", "weight-decay"], ["--weight-decay = 0", "above 0 with --tune weight-decay"]),
    (["--tune", "decay"], ["--tune = decay", "rate or weight-decay"]),
    (["--warmup", "20"], ["--warmup = 20", "fewer than --steps"]),
    (["--sizes", "16,8"], ["--sizes = 8", "each one larger"]),
    (["--sizes", "0"], ["--sizes = 0"]),
    (["--sizes", "8,10"], ["--sizes = 10", "--head-dim = 4"]),
    (["--seeds", "0"], ["--seeds = 0"]),
    (["--budget", "-1"], ["--budget = -1"]),
    (["--steps", "0"], ["--steps = 0"]),
    (["--format", "xml"], ["--format = xml", "table, json or csv"]),
    (["--set", "d_modl=5"], ["--set = d_modl", "did you mean d_model?"]),
    (["--out", "text.txt"], ["--out = text.txt", "a folder that can be written"]),
    (["--out", "precious"], ["precious/runs.jsonl (another kind of file)"]),
]


def command(arguments):
    sizes = [] if "--sizes" in arguments else ["--sizes", "8,16"]
    return [PROGRAM, *sizes, *map(str, arguments)]


def run(folder, *arguments):
    return subprocess.run(command(arguments), capture_output=True, text=True, cwd=folder, timeout=120,
                          check=False, env=QUICK)


def journal(folder):
    """The complete lines, sorted, since runs finish in any order."""
    path = folder / "out" / "runs.jsonl"
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    return sorted(text[:text.rfind("\n") + 1].splitlines())


def result(folder):
    return (folder / "out" / "learning_rate_transfer.json").read_bytes()


class Transfer(FolderTest):
    finished = {}  # the files of a sweep

    def finish(self, folder):
        """Runs TINY in a folder: makes it once for all tests."""
        if not self.finished:
            made = self.make_folder("finished")
            self.done(made, *TINY, *OUT)
            self.finished.update((path.name, path.read_bytes()) for path in (made / "out").iterdir())
        (folder / "out").mkdir()
        for name, text in self.finished.items():
            (folder / "out" / name).write_bytes(text)

    def done(self, folder, *arguments):
        """A sweep that comes to a verdict."""
        finished = run(folder, *arguments)
        self.assertIn(finished.returncode, (0, 1, 3), finished.stderr)
        return finished

    def start(self, folder, *arguments):
        process = subprocess.Popen(command(arguments), cwd=folder, text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=QUICK)
        self.addCleanup(process.kill)
        return process

    def wait_for_lines(self, folder, count, process):
        for _ in range(60000):
            if len(journal(folder)) >= count or process.poll() is not None:
                return
            time.sleep(0.001)
        self.fail("no lines")

    # ---- results ---------------------------------------------------------------------------------

    def runs_of(self, size, *arguments):
        """The losses of a size by rate and seed."""
        report = json.loads(self.done(self.folder, *TINY, "--format", "json", *arguments).stdout)
        return {(run["rate"], run["seed"]): run["loss"] for run in report["runs"] if run["size"] == size}

    def test_joint_sizes_grow_in_width_depth_and_steps(self):
        rule = ["--rule", "ngpt-complete-p", "--steps"]
        joint = self.runs_of(16, *rule, 4, "--axis", "joint", "--sizes", "8,16")
        alone = self.runs_of(16, *rule, 32, "--sizes", "16,24", "--base", 8, "--depth", 2, "--set", "base.depth=1",
                             "--set", "iterations=32", "--set", "base.iterations=4")
        common = joint.keys() & alone.keys()
        self.assertGreater(len(common), 4)
        self.assertEqual({run: joint[run] for run in common}, {run: alone[run] for run in common})

    def test_shapes_grow_in_width_and_depth(self):
        rule = ["--rule", "ngpt-complete-p", "--steps", 32]
        shape = self.runs_of(16, *rule, "--axis", "shape", "--sizes", "8,16")
        alone = self.runs_of(16, *rule, "--sizes", "16,24", "--base", 8, "--depth", 2, "--set", "base.depth=1")
        common = shape.keys() & alone.keys()
        self.assertGreater(len(common), 4)
        self.assertEqual({run: shape[run] for run in common}, {run: alone[run] for run in common})

    def test_schedules_and_decay_reach_the_runs(self):
        usual = self.runs_of(8)
        for change in (["--warmup", 0], ["--schedule", "linear"], ["--min-rate", 0.5], ["--weight-decay", 0.5]):
            with self.subTest(change=change):
                changed = self.runs_of(8, *change)
                common = usual.keys() & changed.keys()
                self.assertTrue(common)
                self.assertTrue(all(usual[run] != changed[run] for run in common))
        self.assertEqual(usual, self.runs_of(8, "--warmup", 1, "--min-rate", 0))  # a twentieth of 20 steps

    def test_weight_decay_is_tuned_at_a_fixed_rate(self):
        decay = ["--weight-decay", 0.5, "--rate", 0.01]
        report = json.loads(self.done(self.folder, *TINY, *OUT, *decay, "--tune", "weight-decay", "--format",
                                      "json").stdout)
        self.assertEqual(report["tuned"], "weight-decay")
        tuned = {(run["weight_decay"], run["size"], run["seed"]): run["loss"] for run in report["runs"]}
        self.assertTrue({0.25, 0.5, 1} <= {decay for decay, _, _ in tuned})
        self.assertEqual(len(set(tuned.values())), len(tuned))  # each has another loss
        for size in (8, 16):  # a sweep over rates has the same run in its middle
            rates = self.runs_of(size, *decay)
            self.assertEqual(rates[0.01, 1], tuned[0.5, size, 1])
        self.assertIn("transferred_weight_decay", report["sizes"][0])
        self.assertIn("weight decay", report["reason"])
        refused = run(self.folder, *TINY, *OUT, *decay)
        self.assertIn("--tune = rate: expected weight-decay", refused.stderr)

    def test_digits(self):
        digits = pathlib.Path(__file__).resolve().parents[2] / "tools" / "data" / "digits.csv"
        arguments = [*TINY[2:], "--digits", digits, "--patch", 4, "--format", "json"]
        losses = [run["loss"] for run in json.loads(self.done(self.folder, *arguments).stdout)["runs"]]
        self.assertLess(min(losses), 2.31)  # of ten classes: log 10 = 2.303

    def test_the_files_and_the_output_agree(self):
        finished = self.done(self.folder, *TINY, *OUT, "--format", "json")
        report = json.loads(finished.stdout)
        self.assertEqual(report, json.loads(result(self.folder)))
        self.assertEqual(report["schema"], "scalewise.learning_rate_transfer/2")
        self.assertEqual({"pass": 0, "fail": 1, "inconclusive": 3}[report["verdict"]], finished.returncode)
        self.assertEqual([size["size"] for size in report["sizes"]], [8, 16])
        self.assertEqual(len(report["runs"]), len(journal(self.folder)) - 1)
        self.assertEqual(report["used"], {"runs": len(report["runs"])})
        self.assertEqual(report["sizes"][0]["regret"]["value"], 0)
        for size in report["sizes"]:
            runs = [one for one in report["runs"] if one["size"] == size["size"]]
            self.assertEqual(len({one["seed"] for one in runs}), size["seeds"])
            rates = [one["rate"] for one in runs]
            self.assertTrue(min(rates) < size["rate"] < max(rates))
            self.assertTrue(size["low"] < size["rate"] < size["high"])
        with open(self.folder / "out" / "sizes.csv", encoding="utf-8", newline="") as file:
            self.assertEqual([row["width"] for row in csv.DictReader(file)], ["8", "16"])
        table = self.done(self.folder, *TINY, *OUT)
        self.assertEqual(table.returncode, finished.returncode)
        self.assertTrue(table.stdout.splitlines()[-1].startswith(report["verdict"] + ": "))

    def test_one_rate_for_all_widths_fails_where_widths_differ(self):
        text = self.folder / "text.txt"
        draw = random.Random(3)
        words = ["".join(draw.choices("abcdefghij", k=draw.randrange(2, 6))) for _ in range(40)]
        text.write_text(" ".join(draw.choices(words, k=8000)), encoding="utf-8")
        finished = self.done(self.folder, *TINY, "--sizes", "8,64", "--head-dim", 8, "--steps", 50, "--seeds", 3,
                             "--batch", 4, "--seq", 16, "--rate", "0.01", "--format", "json")
        report = json.loads(finished.stdout)
        self.assertEqual((finished.returncode, report["verdict"]), (1, "fail"), report)
        self.assertLess(report["drift"]["value"], -0.5)

    def test_a_budget_adds_seeds_until_it_is_spent_or_the_verdict_clear(self):
        spent = self.done(self.folder, *[word for word in TINY if word != "--quiet"], *OUT, "--budget", 4,
                          "--format", "json")
        self.assertRegex(spent.stderr, r"4 s allow about \d+ runs; the first verdict takes about \d+, [0-9.]+ s(; )?"
                         r"(the chance of a verdict is about \d+ %)?\n")
        report = json.loads(spent.stdout)
        if report["verdict"] == "inconclusive":
            self.assertGreater(report["sizes"][-1]["seeds"], 2)
            self.assertTrue(report["more_seeds"] or "wider range" in report["reason"])
        before = set(journal(self.folder))
        self.done(self.folder, *TINY, *OUT, "--budget", 1)  # it goes on with what there is
        self.assertLessEqual(before, set(journal(self.folder)))

    def test_a_budget_too_small_for_a_verdict_says_what_would_do(self):
        poor = self.done(self.folder, *TINY, "--steps", 2000, "--budget", "0.5", "--format", "json")
        report = json.loads(poor.stdout)
        self.assertEqual((poor.returncode, report["verdict"]), (3, "inconclusive"))
        self.assertRegex(report["reason"], r"the budget is spent after \d+ runs, .* the first verdict takes about")
        self.assertEqual(report["sizes"], [])

    def test_one_seed_says_what_it_cannot_say(self):
        finished = self.done(self.folder, *TINY, "--seeds", 1)
        self.assertIn("not judged: one seed at width 16", finished.stdout)

    def test_three_rates_of_one_seed_have_an_interval(self):
        rows = [f"{width},{2.0 ** o},{2 + (o - 4 / width) ** 2}" for width in (16, 32) for o in (-1, 0, 1)]
        self.table("few.csv", "width,lr,loss", rows)
        finished = self.judged("few.csv", *OUT, "--quiet")
        self.assertEqual(finished.returncode, 3)
        points = (self.folder / "out/learning_rate_transfer.csv").read_text(encoding="utf-8").splitlines()
        points = [line.split(",") for line in points if "interval" in line]
        self.assertEqual([point[-4] for point in points], ["16", "32"])
        for *_, best, low, high in points:
            self.assertTrue(0.5 * float(best) < float(low) < float(best) < float(high) < 2 * float(best))

    def test_divergence_is_data(self):
        self.done(self.folder, *TINY, *OUT, "--optimizer", "sgd", "--rate", 1e6)
        report = json.loads(result(self.folder))
        self.assertIn(None, [one["loss"] for one in report["runs"]])
        self.assertTrue(any('"loss":null' in line for line in journal(self.folder)))

    def test_neither_threads_nor_formats_change_a_sweep(self):
        other = self.make_folder("other")
        self.finish(self.folder)
        self.done(other, *[word for word in TINY if word != "--quiet"], *OUT, "--threads", 2, "--format", "json")
        self.assertEqual(journal(self.folder), journal(other))
        one, two = (json.loads(result(folder)) for folder in (self.folder, other))
        self.assertEqual((one["machine"].pop("threads"), two["machine"].pop("threads")), (1, 2))
        self.assertEqual(one, two)

    def test_other_axes_than_the_width(self):
        for axis, sizes in (("depth", "1,2"), ("horizon", "10,20"), ("batch", "1,4"), ("length", "4,16")):
            with self.subTest(axis):
                finished = self.done(self.folder, *TINY, "--axis", axis, "--sizes", sizes, "--width", 8,
                                     "--format", "json")
                self.assertEqual(json.loads(finished.stdout)["axis"], axis)

    def test_batches_and_sequences_really_grow(self):
        for axis, option in (("batch", "--batch"), ("length", "--seq")):
            with self.subTest(axis):
                grown = self.runs_of(6, "--axis", axis, "--sizes", "2,6", "--width", 8)
                same = self.runs_of(8, option, 6)
                common = grown.keys() & same.keys()
                self.assertGreater(len(common), 5)
                self.assertEqual({key: grown[key] for key in common}, {key: same[key] for key in common})

    def test_images_have_no_length_to_sweep(self):
        finished = run(self.folder, *TINY[2:], "--axis", "length", "--digits", DIGITS)
        self.assertEqual(finished.returncode, 2)
        self.assertIn("--axis = length: expected no --digits", finished.stderr)

    # ---- runs of other programs --------------------------------------------------------------------

    def table(self, name, header, rows):
        (self.folder / name).write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")

    def judged(self, table, *arguments):
        return subprocess.run([PROGRAM, "--judge", table, *map(str, arguments)], capture_output=True, text=True,
                              cwd=self.folder, timeout=60, check=False, env=QUICK)

    def bowls(self, name, drift, seeds=(1, 2), last=-5):
        """A table of parabolas with the optimum at 2^-9 for width 64, which drifts."""
        rows = [f"{arm},{w},{2.0 ** o},{s},{2 + 0.05 * (o + 9 - drift * k) ** 2 + 0.01 * s * (1 + k / 9) - a}"
                for a, arm in ((0, "x"), (0.5, "y")) for k, w in enumerate((64, 128, 256))
                for o in range(-13, last + 1) for s in seeds]
        self.table(name, "arm,width,lr,run,val_loss", rows)

    def test_a_table_is_judged_like_a_sweep(self):
        self.bowls("a.csv", -1)
        finished = self.judged("a.csv", "--where", "arm=x", "--seed-column", "run", *OUT)
        self.assertEqual(finished.returncode, 1, finished.stderr)
        self.assertIn("a.csv, arm=x: 54 of 108 rows; size width, rate lr, seed run, loss val_loss\n", finished.stderr)
        self.assertIn("fail: the optimal rate drifts by -1.00 octaves per octave", finished.stdout)
        report = json.loads(result(self.folder))
        self.assertEqual((report["axis"], len(report["runs"])), ("width", 54))
        self.assertAlmostEqual(report["sizes"][2]["rate"], 2.0 ** -11, delta=1e-9)
        page = (self.folder / "out/learning_rate_transfer.html").read_text(encoding="utf-8")
        self.assertIn("Transfer of the learning rate: a.csv, arm=x", page)

    def test_the_verdict_on_another_table_is_not_written_over(self):
        for name, drift in (("a.csv", -1), ("b.csv", 0)):
            self.bowls(name, drift)
        options = ["--where", "arm=x", "--seed-column", "run", *OUT, "--quiet"]
        self.assertEqual(self.judged("a.csv", *options).returncode, 1)
        (self.folder / "the same.csv").write_bytes((self.folder / "a.csv").read_bytes())
        self.assertEqual(self.judged("the same.csv", *options).returncode, 1)  # the bytes count
        before = {path: path.read_bytes() for path in (self.folder / "out").iterdir()}
        for option, words in (("--judge", ["b.csv", *options]), ("--against", ["a.csv", *options, "--against", "b.csv"]),
                              ("--where", ["a.csv", *options, "--where", "width=64"]),
                              ("--loss-column", ["a.csv", *options, "--loss-column", "val_loss"])):
            with self.subTest(option):
                refused = self.judged(*words)
                self.assertEqual((refused.returncode, refused.stdout), (2, ""), refused.stderr)
                self.assertRegex(refused.stderr, f"^learning_rate_transfer: {option} = .*, as in out/learning_rate_transfer.json")
                shown = self.judged(*words, "--dry-run").stdout
                self.assertNotIn(f"\n{option} = (none)\n", shown)
                self.assertIn(f"\n{option} = ", shown)
        self.assertTrue({path: path.read_bytes() for path in (self.folder / "out").iterdir()} == before)

    def test_two_tables_are_compared(self):
        self.bowls("a.csv", -1)
        self.bowls("b.csv", 0)
        found = self.judged("b.csv", "--where", "arm=y", "--against", "a.csv", "--against-where", "arm=x",
                            "--seed-column", "run", "--format", "json", "--quiet")
        compared = json.loads(found.stdout)["compared"]
        self.assertAlmostEqual(compared["drift"]["value"], -1)
        self.assertAlmostEqual(compared["tuned"]["value"], -0.5)  # the same seeds, so no scatter
        self.assertAlmostEqual(compared["carried"]["value"], -0.5 - 0.05 * 4)
        self.assertIn("b.csv, arm=y transfers better", " ".join(compared["sentences"]))

    def test_what_a_table_does_not_say_is_said(self):
        self.table("few.csv", "width,lr,loss", ["64,0.1,3", "64,0.2,2", "64,0.4,nan", "128,0.1,", "128,0.2,2"])
        finished = self.judged("few.csv")
        self.assertEqual(finished.returncode, 3)
        self.assertIn("no seed: all runs are of one, loss loss; 1 diverged; no loss in 1 line: 5\n", finished.stderr)
        self.assertEqual(finished.stdout.count("not judged: at width"), 2)
        self.assertTrue(finished.stdout.splitlines()[-1].startswith("inconclusive: at width 64 "))
        for size in json.loads(self.judged("few.csv", "--format", "json").stdout)["sizes"]:
            self.assertEqual((size["interior"], size["low"], size["high"], size["transferred_rate"]), (False, None, None, None))

    def test_bad_tables_and_options_are_refused(self):
        self.bowls("a.csv", 0)
        self.table("bad.csv", "width,lr,loss", ["64,0.1,3", "64,fast,3"])
        self.table("small.csv", "width,lr,loss", ["64,6.25e-304,3"])
        self.table("wide.csv", "width,lr,loss", ["1e18,0.1,3"])
        for arguments, message in (
                (["bad.csv"], "bad.csv line 3, lr = fast: expected a number above 1e-300 and below 1e300"),
                (["small.csv"], "small.csv line 2, lr = 6.25e-304: expected a number above 1e-300 and below 1e300"),
                (["wide.csv"], "wide.csv line 2, width = 1e18: expected a whole number from 1 to 1e15"),
                (["none.csv"], "cannot open none.csv"),
                (["a.csv", "--where", "arm=x"], "a.csv line 3 (the run of line 2)"),
                (["a.csv", "--where", "army=x"], "did you mean arm?"),
                (["a.csv", "--rule", "mup"], "--rule (given): expected nothing next to --judge"),
                (["a.csv", "--collect", "--results", "r"], "--results (given): expected nothing next to --judge"),
                (["a.csv", "--against-where", "arm=x"], "--against-where (given): expected --against")):
            refused = self.judged(*arguments)
            self.assertEqual((refused.returncode, refused.stdout), (2, ""), refused.stderr)
            self.assertEqual(refused.stderr.count("\n"), 1)
            self.assertIn(message, refused.stderr)
        self.assertIn("--where (given): expected --judge", run(self.folder, "--where", "a=b").stderr)

    # ---- killed, stopped, resumed ----------------------------------------------------------------

    def test_a_finished_sweep_is_not_run_again(self):
        self.finish(self.folder)
        before = (self.folder / "out" / "runs.jsonl").read_bytes()
        again = self.done(self.folder, *TINY[:-1], *OUT)
        self.assertIn(f"resumed with {len(journal(self.folder)) - 1} finished runs\n", again.stderr)
        self.assertNotIn("left", again.stderr)
        self.assertEqual((self.folder / "out" / "runs.jsonl").read_bytes(), before)

    def test_seeds_and_sizes_can_be_added(self):
        self.finish(self.folder)
        fewer = journal(self.folder)
        self.done(self.folder, *TINY, *OUT, "--seeds", 3, "--sizes", "8,16,24")
        self.assertLess(set(fewer), set(journal(self.folder)))
        other = self.make_folder("other")
        self.done(other, *TINY, *OUT, "--seeds", 3, "--sizes", "8,16,24")
        self.assertEqual(result(other), result(self.folder))

    def test_an_interrupt_stops_and_says_how_to_go_on(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            with self.subTest(code=code):
                folder = self.make_folder(f"stopped{code}")
                process = self.start(folder, *TINY, *OUT, "--steps", 10**8)  # too long to end by itself
                self.wait_for_lines(folder, 1, process)
                process.send_signal(number)
                _, message = process.communicate(timeout=60)
                self.assertEqual(process.returncode, code, message)
                self.assertIn("stopped after 0 finished runs; the same command resumes", message)

    # ---- refusals --------------------------------------------------------------------------------

    def test_bad_input_gets_one_message(self):
        (self.folder / "short.txt").write_text("too short", encoding="utf-8")
        (self.folder / "precious").mkdir()
        (self.folder / "precious" / "runs.jsonl").write_text("precious\n", encoding="utf-8")
        for arguments, fragments in BAD:
            with self.subTest(arguments=arguments):
                refused = run(self.folder, *TINY, *arguments)
                self.assertEqual(refused.returncode, 2, refused.stderr)
                self.assertEqual(refused.stdout, "")
                for fragment in fragments:
                    self.assertIn(fragment, refused.stderr)
                self.assertLessEqual(len(refused.stderr.strip().splitlines()), 2, refused.stderr)
        self.assertEqual((self.folder / "precious" / "runs.jsonl").read_text(encoding="utf-8"), "precious\n")

    def test_another_sweep_is_not_resumed(self):
        """frame_cli.py tries which options are inputs."""
        self.finish(self.folder)
        before = (self.folder / "out" / "runs.jsonl").read_bytes()
        refused = run(self.folder, *TINY, *OUT, "--rule", "he")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("--rule = he: expected ", refused.stderr)
        self.assertIn("as in out/", refused.stderr)
        self.assertEqual((self.folder / "out" / "runs.jsonl").read_bytes(), before)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
