#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""One command line: an option has one name, one meaning and one kind of value in all programs; and what a
terminal shows of it.

    options_cli.py FOLDER_OF_PROGRAMS [FOLDER_OF_PROGRAMS] [TEST...]
"""

import fcntl
import functools
import os
import pathlib
import re
import struct
import subprocess
import sys
import termios
import unittest

from quick_start import QUICK, programs

PROGRAMS, TESTS = programs()
NAMES = sorted(PROGRAMS)

# Words whose choice is a program's own: what it can do.
OWN_WORDS = {"--format", "--axis", "--activation"}


def run(name, *arguments):
    return subprocess.run([PROGRAMS[name], *arguments], capture_output=True, text=True, timeout=120, check=False, env=QUICK)


@functools.cache
def options_of(name):
    """name -> (kind of value, meaning, note, words), from --help."""
    text = re.sub(r"\n {20,}", " ", run(name, "--help").stdout)
    found = {}
    for option, kind, told in re.findall(r"^  (?:-h,)?(--[a-z0-9-]+)(?: (N,\.\.\.|N|TEXT,\.\.\.|TEXT|PATH)(?:=\S*)?(?: \.\.\.)?)?"
                                         r" +(.*)$", text, re.MULTILINE):
        match = re.fullmatch(r"(.*?)(?: \((.*)\))?(?:: ([a-z0-9-]+(?:, [a-z0-9-]+)* or [a-z0-9-]+))?", told)
        found[option] = (kind or "flag", match[1], match[2], match[3] or "")
    return found


def on_terminal(columns, name, *arguments, **variables):
    """What a program prints to a terminal of so many columns."""
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    plain = {key: value for key, value in QUICK.items() if key != "NO_COLOR"}
    with subprocess.Popen([PROGRAMS[name], *arguments], stdout=slave, stderr=subprocess.DEVNULL,
                          env={**plain, "TERM": "xterm", **variables}) as process:
        os.close(slave)
        shown = b""
        while True:
            try:
                block = os.read(master, 65536)
            except OSError:  # Linux says so when the other end is closed
                break
            if not block:
                break
            shown += block
        process.wait(timeout=60)
    os.close(master)
    return shown.decode().replace("\r\n", "\n")


PLAN = ["--rule", "maximal-update", "--preset", "gpt2-xl", "--base-preset", "gpt2"]


class Options(unittest.TestCase):
    maxDiff = None

    def test_one_name_has_one_meaning(self):
        first = {}
        for name in NAMES:
            for option, (kind, meaning, _, words) in options_of(name).items():
                with self.subTest(name=name, option=option):
                    self.assertTrue(meaning)
                    of, *before = first.setdefault(option, (name, kind, meaning, words))
                    self.assertEqual((kind, meaning), tuple(before[:2]), f"as in {of}")
                    if option not in OWN_WORDS and kind == "TEXT" and before[2] and words:
                        self.assertEqual(words, before[2], f"as in {of}")
        self.assertGreater(len(first), 50)

    def test_two_names_do_not_have_the_same_meaning(self):
        names = {}
        for name in NAMES:
            for option, (_, meaning, _, _) in options_of(name).items():
                names.setdefault(meaning, set()).add(option)
        self.assertEqual([all_ for all_ in names.values() if len(all_) > 1], [])

    def test_reports_have_three_formats_and_out_is_a_folder(self):
        for name in NAMES:
            options = options_of(name)
            with self.subTest(name):
                self.assertTrue(options["--format"][3].startswith("table, json"))
                self.assertIn("csv", options["--format"][3])
                if "--out" in options:
                    self.assertTrue(options["--out"][1].startswith("folder"))


@unittest.skipUnless(hasattr(os, "openpty"), "no terminals here")
class Terminal(unittest.TestCase):
    def test_tables_fit_and_lose_nothing(self):
        whole = run("plan", *PLAN).stdout
        for columns in (40, 60, 80, 120):
            with self.subTest(columns=columns):
                shown = on_terminal(columns, "plan", *PLAN)
                table = shown[shown.index("\ntensor"):shown.index("\nwhere")]
                self.assertLessEqual(max(map(len, table.splitlines())), columns)
                self.assertEqual(set(whole.split()) - set(shown.split()), set())
        self.assertEqual(on_terminal(1000, "plan", *PLAN), whole)

    def test_help_fits(self):
        for columns in (60, 80):
            shown = on_terminal(columns, "plan", "--help")
            long = [line for line in shown.splitlines() if len(line) > columns]
            self.assertEqual(long, [])
            self.assertEqual(shown.split(), run("plan", "--help").stdout.split())

    def test_a_file_gets_the_whole_table(self):
        path = pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / f"scalewise-plan-{os.getpid()}.txt"
        try:
            on_terminal(40, "plan", *PLAN, "--save", str(path))
            self.assertEqual(path.read_text(encoding="utf-8"), run("plan", *PLAN).stdout)
        finally:
            path.unlink(missing_ok=True)

    def test_color_only_on_a_terminal_that_wants_it(self):
        small = ["--depth", "4", "--width", "16", "--heads", "2", "--seq", "32", "--quiet"]
        self.assertRegex(on_terminal(200, "deep_init", *small), "\x1b\\[1;3[123]m(pass|fail|inconclusive)\x1b\\[0m: ")
        for variables in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            self.assertNotIn("\x1b", on_terminal(200, "deep_init", *small, **variables))
        self.assertNotIn("\x1b", run("deep_init", *small).stdout)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *TESTS], verbosity=1)
