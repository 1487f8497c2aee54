#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Programs with one run of each size and seed, which a shell makes.

    run_tasks_cli.py FOLDER_OF_PROGRAMS
"""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tests/cli"))
from task_test import TaskTest, id_of, main  # noqa: E402

PROGRAMS = pathlib.Path(sys.argv.pop(1)).resolve()
BAD = [
    (["--collect"], "--collect (given): expected it with --results"),
    # Refused before there are tasks, not by each of them.
    (["--emit-tasks", "--results", "r", "--set", "d_mode=3"], "--set = d_mode: expected"),
    (["--emit-tasks", "--results", "r", "--sizes", "8,10"], "--sizes = 10: expected a multiple of --head-dim = 8"),
]


class RunTasks:
    """The tests of all of these programs."""

    def test_the_report_is_that_of_the_program_itself(self):
        self.options = self.options[:-2]  # on all cores; each task on one
        whole = self.itself()
        self.assertEqual(self.in_waves(lambda tasks: self.by_shell(tasks[::-1])), 4)  # one wave, none in vain
        self.assertEqual(self.collected(), whole)
        self.assertEqual(self.emit(), ([], ""))
        self.assertEqual({path.stem[:path.stem.rindex("-")] for path in self.results.iterdir()},
                         {"w8-s1", "w8-s2", "w16-s1", "w16-s2"})


class TrainingTasks(RunTasks):
    """And of those that train the reference transformer."""

    TINY = ["--text", "a text.txt", "--head-dim", "8", "--depth", "2", "--seq", "16", "--batch", "2", "--steps", "3",
            "--sizes", "8,16", "--seeds", "2", "--quiet", "--threads", "1"]

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


class EmpiricalNtk(TrainingTasks, TaskTest):
    program = PROGRAMS / "empirical_ntk"
    options = ["--inputs", "2", *TrainingTasks.TINY]
    own = ["--outputs", "3"]
    files = [f"empirical_ntk{end}" for end in (".json", ".csv", "_groups.csv", "_steps.csv")]


class Alignment(TrainingTasks, TaskTest):
    program = PROGRAMS / "alignment"
    options = TrainingTasks.TINY
    own = ["--warmup", "2"]  # an option that the other program lacks
    files = [f"alignment{end}" for end in (".json", ".csv", "_averages.csv", "_layers.csv", "_steps.csv", "_losses.csv")]

    def test_sizes_and_seeds_can_be_added(self):
        self.in_waves(self.by_shell)
        more = ["--sizes", "8,16,24", "--seeds", "3"]
        tasks, _ = self.emit(*more)
        self.assertEqual([id_of(task)[:-17] for task in tasks], ["w24-s1", "w24-s2", "w24-s3", "w16-s3", "w8-s3"])
        self.by_shell(tasks)
        self.assertEqual(self.collected(*more), self.itself(*more))

    def test_bad_input_gets_one_message(self):
        self.check_refusals(BAD)


class KernelConvergence(RunTasks, TaskTest):
    program = PROGRAMS / "kernel_convergence"
    options = ["--sizes", "8,16", "--seeds", "2", "--inputs", "3", "--seq", "2", "--quiet", "--threads", "1"]
    files = [f"kernel_convergence{end}" for end in (".json", ".csv", "_distances.csv", "_slopes.csv", "_entries.csv")]

    def test_options_reach_the_runs(self):
        other = ["--attention", "residual", "--features", "5", "--depth", "2", "--seeds", "11", "--format", "json"]
        whole = self.itself(*other)  # eleven, so that the last eight at once are not full
        self.assertEqual(self.in_waves(self.by_shell, *other), 22)
        self.assertEqual(self.collected(*other), whole)


class ShallowEncoder(RunTasks, TaskTest):
    program = PROGRAMS / "shallow_encoder"
    options = ["--sizes", "8,16", "--seeds", "2", "--inputs", "4", "--seq", "3", "--features", "5", "--steps", "3", "--quiet",
               "--threads", "1"]
    files = [f"shallow_encoder{end}" for end in (".json", ".csv", "_start.csv", "_training.csv", "_slopes.csv")]

    def test_options_reach_the_runs(self):
        other = ["--rule", "shallow-ntk", "--tau0", "1", "--rate", "1.5", "--steps", "5", "--format", "json"]
        whole = self.itself(*other)
        self.assertEqual(self.in_waves(self.by_shell, *other), 4)
        self.assertEqual(self.collected(*other), whole)

    def test_a_rule_that_cannot_be_is_refused_before_there_are_tasks(self):
        refused = self.run_program(self.folder, *self.options, "--tau0", "0.7", "--emit-tasks", "--results", "r")
        self.assertEqual((refused.returncode, refused.stdout), (2, ""))
        self.assertIn("tau0 = 0.7", refused.stderr)


if __name__ == "__main__":
    main()
