#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""alignment and empirical_ntk with runs that a shell makes; tasks_cli.py has the engines.

    run_tasks_cli.py FOLDER_OF_PROGRAMS
"""

import json
import pathlib
import subprocess
import sys
import unittest

from task_test import ENVIRONMENT, MISSING, TaskTest, id_of, shell

PROGRAMS = pathlib.Path(sys.argv.pop(1)).resolve()
BAD = [
    (["--results", "r"], "--results = r: expected it with --emit-tasks, --run-one or --collect"),
    (["--collect"], "--collect (given): expected it with --results"),
    (["--run-one", "w8-s1-0123456789abcdef", "--results", "r"], "--run-one = w8-s1-0123456789abcdef: expected an id"),
    # Refused before there are tasks, not by each of them.
    (["--emit-tasks", "--results", "r", "--set", "d_mode=3"], "--set = d_mode: expected"),
    (["--emit-tasks", "--results", "r", "--sizes", "8,10"], "--sizes = 10: expected a multiple of --head-dim = 8"),
]


class RunTasks:
    """The tests of both programs."""

    TINY = ["--text", "a text.txt", "--head-dim", "8", "--depth", "2", "--seq", "16", "--batch", "2", "--steps", "3",
            "--sizes", "8,16", "--seeds", "2", "--quiet", "--threads", "1"]

    def test_the_report_is_that_of_the_program_itself(self):
        self.options = self.options[:-2]  # on all cores; each task on one
        whole = self.itself()
        self.assertEqual(self.in_waves(lambda tasks: self.by_shell(tasks[::-1])), 4)  # one wave, none in vain
        self.assertEqual(self.collected(), whole)
        self.assertEqual(self.emit(), ([], ""))
        self.assertEqual({path.stem[:path.stem.rindex("-")] for path in self.results.iterdir()},
                         {"w8-s1", "w8-s2", "w16-s1", "w16-s2"})

    def test_options_reach_the_runs(self):
        other = ["--axis", "depth", "--width", "16", "--sizes", "1,2", "--rule", "complete-p", "--optimizer", "adamw",
                 "--rotary", "--rate", "0.02", "--set", "d_ff=24", "--format", "json", *self.own]
        whole = self.itself(*other)
        self.assertEqual(self.in_waves(self.by_shell, *other), 4)
        self.assertEqual(self.collected(*other), whole)

    def test_numbers_that_are_not_finite_are_results(self):
        wild = ["--optimizer", "sgd", "--rule", "standard", "--rate", "1e29", "--seeds", "1"]
        whole = self.itself(*wild)
        self.assertEqual(whole[0], 1)
        self.in_waves(self.by_shell, *wild)
        self.assertTrue(any(b"null" in path.read_bytes() for path in self.results.iterdir()))
        self.assertEqual(self.collected(*wild), whole)


class EmpiricalNtk(RunTasks, TaskTest):
    program = PROGRAMS / "empirical_ntk"
    options = ["--inputs", "2", *RunTasks.TINY]
    own = ["--outputs", "3"]
    files = [f"empirical_ntk{end}" for end in (".json", ".csv", "_groups.csv", "_steps.csv")]


class Alignment(RunTasks, TaskTest):
    program = PROGRAMS / "alignment"
    options = RunTasks.TINY
    own = ["--warmup", "2"]  # an option that the other program lacks
    files = [f"alignment{end}" for end in (".json", ".csv", "_averages.csv", "_layers.csv", "_steps.csv", "_losses.csv")]

    def test_sizes_and_seeds_can_be_added(self):
        self.in_waves(self.by_shell)
        more = ["--sizes", "8,16,24", "--seeds", "3"]
        tasks, _ = self.emit(*more)
        self.assertEqual([id_of(task)[:-17] for task in tasks], ["w24-s1", "w24-s2", "w24-s3", "w16-s3", "w8-s3"])
        self.by_shell(tasks)
        self.assertEqual(self.collected(*more), self.itself(*more))

    def test_what_was_killed_or_damaged_is_made_again(self):
        tasks, _ = self.emit()
        process = subprocess.Popen(["sh", "-c", "exec " + tasks[0]], stdout=subprocess.PIPE, env=ENVIRONMENT)
        process.kill()
        self.assertEqual((process.communicate(timeout=60)[0], process.returncode), (b"", -9))
        self.by_shell(tasks[1:])
        path = self.results / f"{id_of(tasks[1])}.json"
        text = path.read_bytes()
        for damage in (text[:-9], text.replace(b'"seed":', b'"seed":1', 1)):
            path.write_bytes(damage)
            done = self.run_program(self.folder, *self.options, "--collect", "--results", "results")
            self.assertEqual((done.returncode, done.stdout.splitlines()), (MISSING, tasks[:2]), done.stderr)
            self.assertIn(f"left out damaged results, whose runs are missing: results/{path.name}\n", done.stderr)
            again = shell(tasks[1], "/")
            self.assertEqual(set(json.loads(again.stdout)), {"id", "size", "seed"})
            self.assertEqual(path.read_bytes(), text)
        self.by_shell(tasks[:1])
        self.assertEqual(self.collected(), self.itself())

    def test_bad_input_gets_one_message(self):
        for arguments, message in BAD:
            with self.subTest(arguments=arguments):
                refused = self.run_program(self.folder, *self.options, *arguments)
                self.assertEqual((refused.returncode, refused.stdout), (2, ""), refused.stderr)
                self.assertTrue(refused.stderr.startswith(f"{self.program.name}: {message}"), refused.stderr)
                self.assertEqual(len(refused.stderr.splitlines()), 1)

    def test_results_of_other_options_are_refused(self):
        tasks, _ = self.emit()
        self.by_shell(tasks[:1])
        for name, value in (("--steps", "4"), *zip(self.own[::2], self.own[1::2])):
            refused = self.run_program(self.folder, *self.options, name, value, "--collect", "--results", "results")
            self.assertEqual((refused.returncode, refused.stdout), (2, ""))
            self.assertIn(f"{name} = {value}: expected ", refused.stderr)


if __name__ == "__main__":
    unittest.main()
