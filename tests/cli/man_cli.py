#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Installed man pages.

    man_cli.py BUILD
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv[1]).resolve()


def run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.prefix = pathlib.Path(scratch.name)
        done = run("cmake", "--install", BUILD, "--component", "programs", "--prefix", cls.prefix)
        assert done.returncode == 0, done.stdout + done.stderr
        cls.share = cls.prefix / "share"
        cls.names = sorted(path.name for path in (cls.prefix / "bin").iterdir())

    def pages(self):
        cache = (BUILD / "CMakeCache.txt").read_text(encoding="utf-8")
        if re.search(r"^help2man:.*NOTFOUND$", cache, re.MULTILINE):
            self.skipTest("help2man was not found")
        pages = {path.stem: path for path in (self.share / "man" / "man1").glob("*.1")}
        self.assertEqual(sorted(pages), self.names)
        return pages

    def test_man_pages_have_no_warnings(self):
        pages = self.pages()
        if not shutil.which("groff"):
            self.skipTest("no groff here")
        for name, page in pages.items():
            with self.subTest(name):
                done = run("groff", "-man", "-ww", "-z", page)
                self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))

if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=1)
