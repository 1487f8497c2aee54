#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Sweeps whose runs are made by a shell, and by workers that are killed.

    tasks_cli.py LEARNING_RATE_TRANSFER_PROGRAM

Whatever made the runs, their results have the same bytes, and the report has those of the program that
makes them itself.
"""

import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import time

from quick_start import QUICK
from task_test import MISSING, TEXT, TaskTest, id_of, main, shell

PROGRAM = pathlib.Path(sys.argv[1]).resolve()
TINY = ["--text", "a text.txt", "--head-dim", "4", "--depth", "1", "--seq", "8", "--batch", "2", "--steps", "20",
        "--seeds", "2", "--sizes", "8,16"]
BAD = [
    (["--results", "r"], "--results = r: expected it with --emit-tasks, --run-one or --collect"),
    (["--emit-tasks"], "--emit-tasks (given): expected it with --results"),
    (["--collect"], "--collect (given): expected it with --results"),
    (["--run-one", "x"], "--run-one (given): expected it with --results"),
    (["--run-one", "", "--results", "r"], "--run-one (empty): expected an id"),
    (["--run-one", "x", "--results", "r"], "--run-one = x: expected an id that --emit-tasks prints"),
    (["--run-one", "w8-o0-s1-0123456789abcdef", "--results", "r"], "--run-one = w8-o0-s1-0123456789abcdef: expected an id"),
    (["--run-one", "../r/w8-o0-s1-0123456789abcdef", "--results", "r"], "--run-one = ../r/w8"),
    (["--emit-tasks", "--collect", "--results", "r"], "--collect (given): expected it without --emit-tasks"),
    (["--run-one", "x", "--collect", "--results", "r"], "--collect (given): expected it without --run-one"),
    (["--collect", "--results", "r", "--budget", "3"], "--budget (given): expected none with --results"),
    (["--collect", "--results", "a text.txt"], "--results = a text.txt: expected a folder"),
    (["--emit-tasks", "--results", "a\nb"], "--emit-tasks (a line break in an option)"),
]


class Tasks(TaskTest):
    program = PROGRAM
    options = TINY
    files = ("learning_rate_transfer.json", "sizes.csv", "learning_rate_transfer.csv",
             "learning_rate_transfer.html")

    def test_a_shell_in_any_order(self):
        self.put_all_results()
        whole = self.itself()
        self.assertEqual(self.collected(), whole)
        self.assertEqual(len(self.all_results()), len(json.loads(whole[2]["learning_rate_transfer.json"])["runs"]))
        self.assertEqual(self.emit(), ([], ""))
        self.assertFalse((self.folder / "out" / "runs.jsonl").exists())
        shutil.rmtree(self.results)
        tasks, _ = self.emit()
        self.by_shell(tasks[::-1])
        self.check_results(tasks)

    def test_options_reach_the_runs(self):
        other = ["--rule", "maximal-update", "--set", "d_ff=24", "--set", "base.d_ff=12", "--rotary", "--rate", "0.02",
                 "--seeds", "1", "--threads", "1", "--format", "json", "--quiet"]
        whole = self.itself(*other)
        self.in_waves(self.by_shell, *other)
        self.assertEqual(self.collected(*other), whole)

    def test_sizes_can_be_added(self):
        self.put_all_results()
        before = {path.name: path.read_bytes() for path in self.results.iterdir()}
        more = ["--sizes", "8,16,24"]
        self.in_waves(self.by_shell, *more)
        self.assertEqual({name: (self.results / name).read_bytes() for name in before}, before)
        self.assertEqual(self.collected(*more), self.itself(*more))

    def test_divergence_is_a_result(self):
        tasks, _ = self.emit("--optimizer", "sgd", "--rate", "1e6", "--seeds", "1")
        self.by_shell(tasks[:2])
        self.assertTrue(any(b'"loss":null' in path.read_bytes() for path in self.results.iterdir()))

    def test_what_differs_from_a_rule_is_said_by_each_command_once(self):
        """And not by each of its runs, whether they are made here or as tasks."""
        said = {"warning: not as in the text of deep-scale-lm: activation = gelu (relu there)",
                "note: planned with dropout=0.1, but the run has 0",
                "note: planned with input_correlation=0.9, but the data has 0.0"}
        options = ["--rule", "deep-scale-lm", "--depth", "4", "--steps", "2", "--activation", "gelu", "--set", "dropout=0.1",
                   "--set", "input_correlation=0.9"]

        def check(message):
            lines = [line for line in message.splitlines() if line.startswith(("note: ", "warning: "))]
            self.assertEqual(len(lines), 3, message)
            self.assertTrue(all(any(line.startswith(text) for line in lines) for text in said), message)

        check(self.run_program(self.folder, *TINY, *options).stderr)
        tasks, message = self.emit(*options)
        check(message)
        self.assertEqual(shell("\n".join(tasks[:3]), self.folder).stderr, "")
        check(self.run_program(self.folder, *TINY, *options, "--collect", "--results", "results").stderr)

    # ---- killed, torn, repeated ------------------------------------------------------------------

    def test_a_killed_worker_loses_its_task_only(self):
        longer = ["--steps", "200", "--seeds", "1"]
        tasks, _ = self.emit(*longer)
        draw = random.Random(20261124)
        lost = set()
        for task in tasks:
            process = subprocess.Popen(["sh", "-c", "exec " + task], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       env=QUICK)
            if draw.random() < 0.5:
                time.sleep(draw.uniform(0, 0.05))
                process.kill()  # kill -9
            out, _ = process.communicate(timeout=60)
            if process.returncode != 0:
                self.assertEqual(process.returncode, -9)
                written = (self.results / f"{id_of(task)}.json").exists()
                self.assertTrue(written or out == b"")  # the line comes after the file, and the kill may come after both
                if not written:
                    lost.add(id_of(task))
        self.assertTrue(lost)
        self.assertLess(len(lost), len(tasks))
        self.assertEqual({path.stem for path in self.results.glob("*.json")}, {id_of(task) for task in tasks} - lost)
        again, message = self.emit(*longer)
        # A size that lost none may want more rates already.
        self.assertEqual([task for task in again if task in tasks], [task for task in tasks if id_of(task) in lost])
        self.assertEqual(message, "")
        self.in_waves(self.by_shell, *longer)
        self.assertEqual(self.collected(*longer), self.itself(*longer))

    def test_a_stopped_worker_writes_nothing(self):
        tasks, _ = self.emit("--steps", 10**8)  # too long to end by itself
        process = subprocess.Popen(["sh", "-c", "exec " + tasks[0]], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, env=QUICK)
        self.addCleanup(process.kill)
        time.sleep(1)
        process.terminate()
        out, message = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out), (143, ""))
        self.assertEqual([line.partition(": ")[2] for line in message.splitlines()],
                         ["stopping the run, which is lost; press Ctrl-C again to stop at once",
                          "stopped before the run was finished; nothing is written"])
        self.assertEqual(list(self.results.iterdir()), [])

    def test_damaged_results_are_named_and_repeated(self):
        self.put_all_results()
        whole = self.itself()
        files = sorted(self.results.iterdir())
        bytes_of = {path: path.read_bytes() for path in files}
        text = bytes_of[files[0]]
        damages = [b"", text[:1], text[:-1], text[:-20], text[:len(text) // 2], b"{}\n", text + text, b"\0" * len(text),
                   text.replace(b'"loss":', b'"loss":1', 1), bytes_of[files[1]]]  # the last is of another run
        for damage in damages:
            with self.subTest(damage=damage):
                files[0].write_bytes(damage)
                tasks, message = self.emit()
                self.assertEqual([id_of(task) for task in tasks], [files[0].stem])
                self.assertIn(f"left out damaged results, whose runs are missing: results/{files[0].name}\n", message)
                done = self.run_program(self.folder, *TINY, "--collect", "--results", "results")
                self.assertEqual((done.returncode, done.stdout.splitlines()), (MISSING, tasks))
                self.by_shell(tasks)
                self.assertEqual(files[0].read_bytes(), text)
        self.assertEqual(self.collected(), whole)

    def test_a_result_takes_the_place_of_a_damaged_one(self):
        """By renaming: what stood under the name is not written into."""
        tasks, _ = self.emit()
        path = self.results / f"{id_of(tasks[0])}.json"
        (self.folder / "torn").write_bytes(b"{")
        path.symlink_to(self.folder / "torn")
        self.by_shell(tasks[:1])
        self.assertEqual((self.folder / "torn").read_bytes(), b"{")
        self.assertFalse(path.is_symlink())

    def test_what_is_there_is_not_run_again(self):
        tasks, _ = self.emit()
        first = shell(tasks[0], "/")
        path = self.results / f"{id_of(tasks[0])}.json"
        before = path.stat().st_mtime_ns
        again = shell(tasks[0], "/")
        self.assertEqual((again.returncode, again.stdout), (0, first.stdout))
        self.assertEqual(again.stderr, f"learning_rate_transfer: {path} is there; nothing is run\n")
        self.assertEqual(path.stat().st_mtime_ns, before)
        result = json.loads(first.stdout.splitlines()[-1])
        self.assertEqual(list(result), ["id", "size", "octave", "rate", "seed", "loss"])
        self.assertEqual(result["rate"], 0.005 * 2**result["octave"])

    def test_two_workers_may_make_one_run(self):
        self.all_results()
        tasks, _ = self.emit("--quiet")
        done = shell("\n".join(f"{task} &" for task in tasks * 2) + "\nwait", "/")
        self.assertEqual((done.returncode, done.stderr.count("cannot")), (0, 0), done.stderr)
        self.check_results(tasks)

    def test_files_of_others_are_left_alone(self):
        self.put_all_results()
        whole = self.itself()
        one = next(self.results.iterdir())
        for name in ("notes.txt", "other.json", f"{one.stem} copy.json", f".{one.stem}.0123456789abcdef.tmp"):
            (self.results / name).write_bytes(one.read_bytes()[:50])
        self.assertEqual(self.collected(), whole)
        self.assertEqual(self.emit(), ([], ""))

    def test_what_is_no_file_is_a_damaged_result(self):
        """A folder, a pipe that nobody writes to, a link to nothing: none is waited for, and none stops the rest."""
        self.put_all_results()
        whole = self.itself()
        files = sorted(self.results.iterdir())[:3]
        for path, make in zip(files, (pathlib.Path.mkdir, os.mkfifo, lambda path: path.symlink_to("nowhere"))):
            path.unlink()
            make(path)
        tasks, message = self.emit()
        self.assertEqual({id_of(task) for task in tasks}, {path.stem for path in files})
        self.assertIn("left out damaged results, whose runs are missing: results/" + files[0].name, message)
        done = self.run_program(self.folder, *TINY, "--collect", "--results", "results")
        self.assertEqual((done.returncode, done.stdout.splitlines()), (MISSING, tasks))
        files[0].rmdir()
        self.by_shell(tasks)
        self.assertEqual(self.collected(), whole)

    def test_a_folder_that_cannot_be_written_is_collected(self):
        self.put_all_results()
        whole = self.itself()
        self.results.chmod(0o500)
        self.addCleanup(self.results.chmod, 0o700)
        if os.access(self.results, os.W_OK):  # root may write it: a folder in /proc takes no file of anybody
            done = self.run_program(self.folder, *TINY, "--collect", "--results", "/proc/self/fd")
            self.assertEqual(done.returncode, MISSING, done.stderr)
        self.assertEqual(self.collected(), whole)
        done = self.run_program(self.folder, *TINY, "--collect", "--results", "none")
        self.assertEqual(done.returncode, MISSING, done.stderr)
        self.assertFalse((self.folder / "none").exists())
        done = self.run_program(self.folder, *TINY, "--collect", "--results", "a text.txt")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--results = a text.txt: expected a folder that can be read", done.stderr)

    def test_what_killed_workers_left_goes_once_there_is_a_result(self):
        self.put_all_results()
        one = next(self.results.iterdir())
        left = self.results / f".{one.stem}.0123456789abcdef.tmp"
        others = [f".{one.stem}.tmp", f".{one.stem}.0123456789abcdeg.tmp", f".{one.stem}x0123456789abcdef.tmp",
                  ".other-0123456789abcdef.0123456789abcdef.tmp", ".0123456789abcdef.tmp"]
        for name in [left.name, *others]:
            (self.results / name).write_bytes(b"{")
        text = one.read_bytes()
        one.unlink()
        self.emit()
        self.assertTrue(left.exists())  # its worker may be at work
        one.write_bytes(text)
        self.emit()
        self.assertFalse(left.exists())
        self.assertTrue(all((self.results / name).exists() for name in others))

    # ---- refusals --------------------------------------------------------------------------------

    def test_bad_input_gets_one_message(self):
        self.check_refusals(BAD)

    def test_results_of_other_inputs_are_refused_by_name(self):
        tasks, _ = self.emit()
        self.by_shell(tasks[:1])
        name = f"results/{id_of(tasks[0])}.json"
        for change in (["--rule", "he"], ["--steps", 21], ["--rate", 0.1], ["--base", 16]):
            for verb in ("--collect", "--emit-tasks"):
                with self.subTest(change=change, verb=verb):
                    refused = self.run_program(self.folder, *TINY, *change, verb, "--results", "results")
                    self.assertEqual((refused.returncode, refused.stdout), (2, ""))
                    self.assertIn(f"{change[0]} = {change[1]}: expected ", refused.stderr)
                    self.assertIn(f"as in {name}", refused.stderr)
        (self.folder / "a text.txt").write_bytes(TEXT[::-1])  # other data: the id is no longer one of them
        refused = shell(tasks[0], "/")
        self.assertEqual(refused.returncode, 2)
        self.assertIn(f"--run-one = {id_of(tasks[0])}: expected an id", refused.stderr)


if __name__ == "__main__":
    main()
