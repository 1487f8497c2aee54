#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""tune: searches of the reference transformer and of commands, as tasks, stopped and resumed.

    tune_cli.py TUNE_PROGRAM SOURCES
"""

import json
import math
import os
import pathlib
import random
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from quick_start import QUICK
from task_test import MISSING, TEXT, main, shell

PROGRAM, ROOT = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
MODEL = ["--preset", "gpt2", "--set", "d_model=128", "--set", "heads=4", "--set", "depth=2"]
TINY = ["--text", "a text.txt", "--set", "d_model=8", "--set", "heads=2", "--set", "depth=1", "--set", "context=8", "--batch", "2",
        "--steps", "20", "--space", "rate=0.001:0.1,logits=0.5:4", "--trials", "20", "--quiet"]
SPACE = "rate=0.0005:0.04,logits=0.25:16"
PYTHON = f"{shlex.quote(sys.executable)} -IS"  # which starts in half the time
TRAIN = PYTHON + " train.py {plan} {seed} {steps}"

# A loss whose optimum is known: rate 0.004, logits 2. Large rates crash or print nothing, and small ones diverge.
SURFACE = """
import json, math, os, signal, sys
plan, seed, steps = json.load(open(sys.argv[1])), sys.argv[2], int(sys.argv[3])
c = {one["name"]: one["value"] for one in plan["constants"]}
x, y = math.log2(c["rate"] / 0.004), math.log2(c["logits"] / 2)
if x > 2.8: os.kill(os.getpid(), signal.SIGSEGV)
if x > 2.4: sys.exit("CUDA error: out of luck")
if x > 2: sys.exit()
if x < -2: print(json.dumps({"loss": math.nan})); sys.exit()
noise = 0.005 * math.sin(1e4 * x + 1e5 * y + 1e3 * int(seed) + steps)
print("a line"), print(json.dumps({"loss": 2.5 + 0.05 * x * x + 0.02 * y * y + 0.01 * x * y + 10 / steps + noise}))
"""


class Tune(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name) / "it's a folder"
        self.folder.mkdir()
        (self.folder / "a text.txt").write_bytes(TEXT)
        (self.folder / "train.py").write_text(SURFACE, encoding="utf-8")

    def tune(self, *arguments, code=0):
        done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, cwd=self.folder, timeout=300,
                              check=False, env=QUICK)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code in (0, MISSING) else done.stderr

    def surface(self, *more, results="surface", space=SPACE):
        return [*MODEL, "--space", space, "--command", TRAIN, "--steps", 1000, "--results", results, "--quiet", *more]

    # ---- commands ------------------------------------------------------------------------------------

    def test_a_known_optimum_is_found_and_failed_runs_are_listed(self):
        report = json.loads(self.tune(*self.surface("--trials", 84, "--threads", 4, "--format", "json", "--carry-to", "width=512")))
        self.assertEqual(report["settings"]["text"], "")  # that of the reference transformer need not be there
        best = {c["name"]: c for c in report["constants"]}
        x, y = math.log2(best["rate"]["value"] / 0.004), math.log2(best["logits"]["value"] / 2)
        self.assertLess(0.05 * x * x + 0.02 * y * y + 0.01 * x * y, 0.02)
        truth = 2.51 + 0.05 * x * x + 0.02 * y * y + 0.01 * x * y
        self.assertLess(abs(report["best"]["loss"] - truth), 0.01)
        for name, value in (("rate", 0.004), ("logits", 2)):  # known to an octave
            self.assertTrue(best[name]["low"] / 2 < value < best[name]["high"] * 2, best)
        self.assertGreater(best["rate"]["effect"], 3 * best["rate"]["error"])
        reasons = {row["reason"].split(": ")[0] for row in report["rows"] if "reason" in row}
        self.assertEqual(reasons, {"killed by signal 11", "exit code 1", "it printed nothing", "diverged"})
        self.assertEqual(len(report["rows"]), sum(stage["runs"] for stage in report["stages"]))
        self.assertEqual(sum(stage["failed"] for stage in report["stages"]), sum("reason" in row for row in report["rows"]))
        self.assertTrue(any(row.get("reason") == "exit code 1: CUDA error: out of luck" for row in report["rows"]))
        plan = json.loads((self.folder / "surface" / "width=512.json").read_text(encoding="utf-8"))
        self.assertEqual(plan["shape"]["d_model"], 512)
        self.assertEqual(plan["base"]["d_model"], 128)
        self.assertEqual({c["name"]: c["value"] for c in plan["constants"]}, {n: c["value"] for n, c in best.items()})
        text = self.tune(*self.surface("--trials", 84))
        self.assertIn("failed: d", text)
        self.assertIn(f"best: --constant {report['best']['constants']}\n", text)

    def test_the_model_is_that_of_the_rules_text(self):
        done = subprocess.run([PROGRAM, "--rule", "nu-gpt", *TINY], capture_output=True, text=True, cwd=self.folder, timeout=300,
                              check=False, env=QUICK)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("best: --constant", done.stdout)

    def test_all_runs_fail(self):
        options = [*self.surface("--trials", 20), "--command", "echo 2.5 {plan} {seed} {steps} >/dev/null; exit 3"]
        self.tune(*options, code=1)
        self.assertIn("no draw trained to the end", subprocess.run(
            [PROGRAM, *map(str, options)], capture_output=True, text=True, cwd=self.folder, check=False, env=QUICK).stdout)

    def test_a_loss_at_the_end_of_the_last_line_and_a_rate_of_its_own(self):
        command = "grep -q c_rate {plan} && exit 1; echo seed {seed} {steps} loss: {rate}"
        report = json.loads(self.tune(*self.surface("--trials", 20, "--loss-from", "number", "--format", "json"), "--command", command))
        self.assertTrue(all(0.0005 <= row["loss"] <= 0.04 for row in report["rows"]))
        report = self.tune(*self.surface("--trials", 20, "--loss-from", "number", space="rate=0.0005:0.04", results="alone"), "--command", command)
        self.assertIn("\nbest: trained with a learning rate of 0.0", report)

    def ended(self, *arguments):
        done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, cwd=self.folder, timeout=300, check=False, env=QUICK)
        return done.returncode, done.stdout

    def test_a_command_that_does_not_read_its_plan(self):
        options = [*self.surface("--trials", 20), "--command", "echo \"{\\\"loss\\\": 2.{seed}}\" # {plan} {steps}"]
        code, report = self.ended(*options)
        self.assertEqual((code, report.splitlines()[-1]), (1, "no draw changed the loss: does the command read {plan}?"))

    def test_a_best_that_fails_on_new_seeds_is_no_result(self):
        options = [*self.surface("--trials", 20, "--carry-to", "width=512"), "--command", f"[ {{seed}} -lt 4 ] || exit 9; {TRAIN}"]
        code, report = self.ended(*options)
        self.assertEqual(code, 1)
        self.assertIn("it failed on all four new seeds", report)
        self.assertFalse((self.folder / "surface" / "width=512.json").exists())

    def test_stopped_by_ctrl_c_and_resumed(self):
        options = [*self.surface("--trials", 12), "--command", f"sleep 0.2; {TRAIN}"]
        with subprocess.Popen([PROGRAM, *map(str, options)], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, env=QUICK) as process:
            time.sleep(1.5)
            process.send_signal(signal.SIGINT)
            _, message = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 128 + signal.SIGINT, message)
        self.assertRegex(message, r"stopped after \d+ finished runs; the same command resumes from them")
        before = {path.name: path.read_bytes() for path in (self.folder / "surface").glob("d*.json")}
        self.assertTrue(before)
        self.assertEqual(list((self.folder / "surface/plans").glob("*.out")), [])
        whole = self.tune(*options, "--format", "json")
        for name, content in before.items():
            self.assertEqual((self.folder / "surface" / name).read_bytes(), content)
        shutil.rmtree(self.folder / "surface")
        self.assertEqual(self.tune(*options, "--format", "json"), whole)

    def test_one_search_at_a_time_has_a_folder(self):
        (self.folder / "wait").touch()
        slow = [*self.surface("--trials", 12), "--command", f"[ -e wait ] && sleep 5; {TRAIN}"]
        with subprocess.Popen([PROGRAM, *map(str, slow)], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, env=QUICK) as process:
            try:
                while not list((self.folder / "surface").glob("plans/*.json")):
                    self.assertIsNone(process.poll())
                    time.sleep(0.01)
                self.assertIn("surface (in use): expected a folder that no other process writes", self.tune(*slow, code=2))
                tasks = self.tune(*slow, "--collect", code=MISSING).splitlines()  # which any number of processes may make
                (self.folder / "wait").unlink()
                self.assertEqual(shell(tasks[-1], self.folder).returncode, 0)
            finally:
                process.kill()
        self.tune(*slow)

    def test_an_exit_code_beyond_all_signals_is_one(self):
        done = subprocess.run([PROGRAM, *MODEL, "--space", SPACE, "--command", "exit 255 # {plan} {seed} {steps}", "--trials", "12",
                               "--results", "r", "--quiet"], capture_output=True, text=True, cwd=self.folder, check=False, env=QUICK)
        self.assertIn("exit code 255", done.stdout + done.stderr)
        self.assertNotIn("signal", done.stdout + done.stderr)

    def test_verified_at_a_second_size(self):
        command = PYTHON + " surface.py {plan} {seed} {steps} {width}"
        moving = SURFACE.replace("0.004)", "0.004 * (float(sys.argv[4]) / 128) ** DRIFT)")
        options = self.surface("--trials", 20, "--threads", 4, "--verify", "width=512", "--format", "json", space="rate=0.001:0.016")
        for drift, code in ((0, 0), (-1, 1)):
            (self.folder / "surface.py").write_text(moving.replace("DRIFT", str(drift)).replace(
                'c["logits"]', "1").replace("x < -2", "x < -9").replace("x > 2.8", "x > 9"), encoding="utf-8")
            results = f"drift{drift}"
            done = subprocess.run([PROGRAM, *map(str, options), "--results", results, "--command", command], capture_output=True,
                                  text=True, cwd=self.folder, check=False, env=QUICK)
            self.assertEqual(done.returncode, code, done.stdout[-2000:] + done.stderr)
            self.assertEqual(json.loads(done.stdout)["verified"]["verdict"], ["pass", "fail"][code])
        below = (self.folder / "surface.py").read_text(encoding="utf-8").replace('"loss": 2.5', '"loss": -2.5')
        (self.folder / "surface.py").write_text(below, encoding="utf-8")
        code, report = self.ended(*options, "--results", "below", "--command", command)
        self.assertEqual((code, json.loads(report)["verified"]["verdict"]), (3, "inconclusive"))

    # ---- tasks ---------------------------------------------------------------------------------------

    def test_tasks_in_any_order_killed_and_repeated(self):
        whole = self.tune(*TINY, "--results", "itself")
        draw = random.Random(1)
        for wave in range(7):
            done = subprocess.run([PROGRAM, *TINY, "--collect", "--results", "tasks"], capture_output=True, text=True,
                                  cwd=self.folder, check=False, env=QUICK)
            if done.returncode != MISSING:
                break
            tasks = done.stdout.splitlines()
            draw.shuffle(tasks)
            for task in tasks[:3]:  # are killed at some moment
                with subprocess.Popen(["sh", "-c", "exec " + task], cwd=self.folder, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL, env=QUICK) as process:
                    time.sleep(draw.uniform(0, 0.05))
                    process.kill()
            self.assertEqual(shell("\n".join(tasks + tasks[:2]), self.folder).returncode, 0)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(wave, 6)
        self.assertEqual(done.stdout, whole)

    @unittest.skipUnless(shutil.which("parallel"), "no GNU parallel")
    def test_runs_that_fail_are_results_whoever_starts_them(self):
        """docs/tune.md starts runs by Slurm, too."""
        whole = self.tune(*self.surface("--trials", 48, "--threads", 2, results="itself"))
        for reason in ("killed by signal 11", "exit code 1: CUDA error: out of luck", "it printed nothing", "diverged"):
            self.assertIn(f": {reason}", whole)
        for wave in range(7):
            done = subprocess.run([PROGRAM, *map(str, self.surface("--trials", 48, "--collect"))], capture_output=True, text=True,
                                  cwd=self.folder, check=False, env=QUICK)
            if done.returncode != MISSING:
                break
            (self.folder / "tasks").write_text(done.stdout, encoding="utf-8")
            made = subprocess.run(["sh", "-c", "parallel --jobs 2 <tasks"], capture_output=True, text=True, cwd=self.folder,
                                  timeout=300, check=False, env=QUICK)
            self.assertEqual(made.returncode, 0, made.stderr)
        self.assertEqual((done.returncode, done.stdout), (0, whole), done.stderr)
        self.assertEqual(wave, 6)

    def test_names_in_a_file_are_found_from_any_folder(self):
        (self.folder / "own.json").write_text(json.dumps({"schema": "scalewise.dialect/1", "id": "own", "extends": "nanogpt",
                                                          "patterns": []}), encoding="utf-8")
        tasks = self.tune(*self.surface("--trials", 12, "--names", "own.json", "--emit-tasks")).splitlines()
        self.assertEqual(shell("cd /; " + tasks[0], self.folder).returncode, 0)

    def test_more_runs_use_those_that_are_there(self):
        self.tune(*TINY, "--results", "r")
        before = {path.name for path in (self.folder / "r").glob("d*")}
        more = [*TINY, "--trials", "30", "--results", "r"]
        tasks = self.tune(*more, "--collect", code=MISSING).splitlines()
        self.assertFalse({task.split("--run-one ")[1].split()[0] + ".json" for task in tasks} & before)
        self.assertEqual(len(tasks), 3)  # of 2 draws there are 5 then

    # ---- refusals ------------------------------------------------------------------------------------

    def test_the_end_of_a_range_is_named(self):
        lines = self.tune(*self.surface("--trials", 40, space="rate=0.0005:0.0035,logits=0.25:16")).splitlines()
        self.assertEqual([line for line in lines if "end of its range" in line],
                         ["rate is close to the end of its range, 0.0035: widen the range"])

    def test_refusals(self):
        for words, expected in (
                (["--space", "logits=1:2"], "--space (no rate): expected rate=LOW:HIGH in it"),
                (["--space", "rate=1:2,logits=1:2,output.multiplier=1:2", "--set", "tied_head=false"],
                 "--space = output.multiplier: expected constants of which none replaces another"),
                (["--space", "rate=1:2,hidden.decay=1:2"], "constant = hidden.decay"),
                (["--space", "rate=1:2,logit=1:2"], "did you mean logits?"),
                (["--preset", "gpt2"], "--preset (given): expected it with --command"),
                (["--command", "x"], "--preset = none: expected a model"),
                (["--command", "x {plan} {steps}", *MODEL], "{seed} in it"),
                (["--command", "x {plan} {seed} {steps}", *MODEL], "--results as well"),
                (["--command", "x '{plan}' {seed} {steps}", *MODEL, "--results", "r"], "expected {plan} without quotes around it"),
                (["--command", "x {plan} {seed} {steps}", *MODEL, "--epsilon", "1e-6"], "--epsilon (given): expected none with --command"),
                (["--command", "x {plan} {seed} {steps}", *MODEL, "--batch", "2"], "--batch (given): expected none with --command"),
                (["--carry-to", "width=64"], "--results as well"),
                (["--carry-to", "size=64", "--results", "r"], "expected width=N, depth=N or both"),
                (["--carry-to", "", "--results", "r"], "--carry-to (empty): expected width=N, depth=N or both"),
                (["--carry-to", "width=1e3", "--results", "r"], "--carry-to = width=1e3: expected width=N, depth=N or both"),
                (["--carry-to", "width=99999999999999999999", "--results", "r"], "expected width=N, depth=N or both"),
                (["--carry-to", "width=17", "--results", "r"], "--carry-to width = 17: expected a multiple of 16"),
                (["--carry-to", "depth=99999", "--results", "r"], "--carry-to depth = 99999: expected"),
                (["--verify", "width=17"], "--verify width = 17: expected a multiple of 16 (hint: it has heads of the same size"),
                (["--verify", "width=32"], "--verify = width=32: expected one size, other than that of the base"),
                (["--emit-tasks"], "expected it with --results")):
            with self.subTest(words=words):
                self.assertIn(expected, self.tune(*words, code=2))

    # ---- an example -----------------------------------------------------------------------------------

    def test_the_example_in_pytorch(self):
        python = next((p for p in ("python3", "/usr/bin/python3") if subprocess.run(
            [p, "-c", "import torch"], capture_output=True, check=False, env=QUICK).returncode == 0), None)
        if python is None:
            self.skipTest("no PyTorch")
        os.environ["PYTHONPATH"] = QUICK["PYTHONPATH"] = str(ROOT / "python")
        tasks = self.tune(
            "--preset", "gpt2", "--set", "d_model=16", "--set", "heads=2", "--set", "depth=2", "--set", "vocab=256", "--set", "context=16",
            "--set", "tied_head=false", "--names", "nanogpt", "--space", "rate=0.001:0.05,logits=0.5:4", "--steps", 8, "--trials", 12,
            "--results", "torch", "--loss-from", "number", "--quiet", "--emit-tasks", "--command",
            f"{python} {ROOT}/examples/pytorch/train.py {{plan}} 'a text.txt' --lr {{rate}} --seed {{seed}} --steps {{steps}}")
        self.assertEqual(shell(tasks, self.folder).returncode, 0)  # one run: to import PyTorch takes a second
        run, = (json.loads(path.read_bytes()) for path in (self.folder / "torch").glob("d*.json"))
        self.assertLess(run["result"]["loss"], 6)


if __name__ == "__main__":
    sys.argv[1:3] = []
    main()
