#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Coordinate checks whose runs a shell makes.

    coordinate_tasks_cli.py COORDINATE_CHECK_PROGRAM
"""

import json
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import unittest

from task_test import VERDICTS, TaskTest, id_of, main

PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()
BAD = [
    (["--collect", "--results", "r", "--budget", "3"], "--budget (given): expected none with --results"),
    (["--collect", "--results", "r", "--record", "f"], "--record (given): expected none with --results"),
    (["--collect", "--results", "r", "--judge", "a text.txt"], "--judge (given): expected none with --results"),
]


def status(process):
    return pathlib.Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")


class CoordinateTasks(TaskTest):
    program = PROGRAM
    options = ["--text", "a text.txt", "--head-dim", "8", "--depth", "1", "--seq", "16", "--batch", "2", "--steps", "3",
               "--sizes", "16,32,64", "--quiet"]
    files = ("coordinate_check.json", "coordinate_check.csv", "coordinate_check.html")

    def test_the_report_is_that_of_the_program_itself(self):
        for arguments in (["--seeds", 3], ["--seeds", 3, "--fault", "missing:all-rates"],
                          ["--seeds", 2, "--trained-as", "standard", "--rate", 0.02]):
            with self.subTest(arguments=arguments):
                self.assertEqual(self.in_waves(lambda tasks: self.by_shell(tasks[::-1]), *arguments),
                                 3 * arguments[1])
                self.assertEqual(self.collected(*arguments), self.itself(*arguments))
                for folder in (self.folder, self.scratch / "itself"):
                    shutil.rmtree(folder)
                self.make_folder(self.folder.name)

    def test_rounds_go_on_until_there_is_a_verdict(self):
        count = self.in_waves(self.by_shell)
        code, text, _ = self.collected()
        self.assertIn(code, VERDICTS)
        if code == 3:
            self.assertIn("4 rounds of tasks are made; --seeds asks for more", text)
        self.assertIn(f"{count} runs (", text)
        self.assertEqual(self.emit(), ([], ""))

    def test_a_mistake_fails_in_the_first_round(self):
        wrong = ["--fault", "missing:all-rates", "--sizes", "16,32,64,128"]
        self.in_waves(self.by_shell, *wrong)
        code, text, _ = self.collected(*wrong)
        self.assertEqual(code, 1, text)
        self.assertIn("one global rate", text)

    @unittest.skipUnless(pathlib.Path("/proc/self/status").exists(), "no /proc here")
    def test_a_stopped_worker_finishes_its_run_and_says_so(self):
        """It trains a few steps, which it does not interrupt."""
        tasks, _ = self.emit("--seeds", 1, "--steps", 2000)
        process = subprocess.Popen(shlex.split(tasks[0]), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        while not re.search(r"SigCgt:\s*\w+[2367abef]$", status(process), re.MULTILINE):  # SIGINT, the second bit
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        out, message = process.communicate(timeout=120)
        self.assertEqual(message, "coordinate_check: finishing the current run; press Ctrl-C again to abort\n")
        self.assertEqual(process.returncode, 130)
        self.assertEqual(json.loads(out), {"id": id_of(tasks[0]), "size": 64, "seed": 1})  # and no records
        self.assertEqual([path.stem for path in self.results.iterdir()], [id_of(tasks[0])])

    def test_bad_input_gets_one_message(self):
        self.check_refusals(BAD)


if __name__ == "__main__":
    main()
