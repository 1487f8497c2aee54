# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Tests of programs whose runs are tasks have this in common."""

import json
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from quick_start import QUICK

TEXT = ("It is a truth universally acknowledged, that a tested program may be trusted. " * 40).encode()
VERDICTS = (0, 1, 3)
MISSING = 4


def shell(script, folder, **environment):
    return subprocess.run(["bash", "-euo", "pipefail", "-c", script], capture_output=True, text=True, cwd=folder,
                          timeout=300, check=False, env={**QUICK, **environment})


def id_of(task):
    return task.split(" --run-one ")[1].split()[0]


class FolderTest(unittest.TestCase):
    """A test that has a folder with a text in it."""

    folder_name, text_name = "run", "text.txt"

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)
        self.folder = self.make_folder(self.folder_name)

    def make_folder(self, name):
        folder = self.scratch / name
        folder.mkdir()
        (folder / self.text_name).write_bytes(TEXT)
        return folder


class TaskTest(FolderTest):
    """What tests of a program's tasks need. A test says which program, options and files there are."""

    folder_name, text_name = "it's a folder", "a text.txt"
    program = None
    options = []
    files = []

    def __init_subclass__(cls):
        cls.reports, cls.complete = {}, {}

    def run_program(self, folder, *arguments):
        return subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True, cwd=folder,
                              timeout=300, check=False, env=QUICK)

    def setUp(self):
        super().setUp()
        self.results = self.folder / "results"

    def report(self, folder, out, *arguments):
        """What is printed and written."""
        done = self.run_program(folder, *self.options, "--out", out, *arguments)
        self.assertIn(done.returncode, VERDICTS, done.stderr)
        files = {name: (folder / out / name).read_bytes() for name in self.files}
        return done.returncode, done.stdout, files

    def itself(self, *arguments):
        """The report of the program that makes its runs itself. It is made once for all tests."""
        key = (*self.options, *arguments)
        if key not in self.reports:
            self.reports[key] = self.report(self.make_folder("itself"), "out", *arguments)
        return self.reports[key]

    def all_results(self):
        """The bytes of the result of each run by its id, as a shell makes them, once for all tests."""
        if not self.complete:
            self.assertFalse(self.results.exists())
            count = self.in_waves(self.by_shell)
            self.complete.update((path.stem, path.read_bytes()) for path in self.results.iterdir())
            self.assertEqual(len(self.complete), count)  # no run in vain, and nothing else is left
            shutil.rmtree(self.results)
        return self.complete

    def put_all_results(self):
        results = self.all_results()
        self.results.mkdir()
        for name, text in results.items():
            (self.results / f"{name}.json").write_bytes(text)

    def check_results(self, tasks):
        """That these tasks have written what a shell's write, and nothing else."""
        self.assertEqual({path.name: path.read_bytes() for path in self.results.iterdir()},
                         {f"{id_of(task)}.json": self.all_results()[id_of(task)] for task in tasks})

    def collected(self, *arguments):
        return self.report(self.folder, "out", "--collect", "--results", "results", *arguments)

    def emit(self, *arguments):
        done = self.run_program(self.folder, *self.options, "--emit-tasks", "--results", "results", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines(), done.stderr

    def in_waves(self, make, *arguments):
        """Calls make(tasks) until no run is missing. Returns how many tasks there were."""
        tasks, _ = self.emit(*arguments)
        count = waves = 0
        while tasks:
            count += len(tasks)
            waves += 1
            self.assertLess(waves, 50)
            self.assertEqual(len(set(tasks)), len(tasks))
            make(tasks)
            done = self.run_program(self.folder, *self.options, "--collect", "--results", "results", *arguments)
            self.assertIn(done.returncode, (*VERDICTS, MISSING), done.stderr)
            tasks = done.stdout.splitlines() if done.returncode == MISSING else []
        return count

    def check_refusals(self, bad):
        """That each of these arguments gets its message, and nothing else."""
        for arguments, message in bad:
            with self.subTest(arguments=arguments):
                refused = self.run_program(self.folder, *self.options, *arguments)
                self.assertEqual((refused.returncode, refused.stdout), (2, ""), refused.stderr)
                self.assertTrue(refused.stderr.startswith(f"{self.program.name}: {message}"), refused.stderr)
                self.assertEqual(len(refused.stderr.splitlines()), 1)

    def by_shell(self, tasks):
        done = shell("\n".join(tasks), "/")  # from any folder
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([json.loads(line)["id"] for line in done.stdout.splitlines()], [id_of(task) for task in tasks])

def main():
    unittest.main(argv=["tasks"])
