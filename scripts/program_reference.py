#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Writes docs/reference/programs.md: the options of every program, as its --help has them.

    scripts/program_reference.py FOLDER_OF_PROGRAMS... [--check]

--check compares instead, and says how to write the page where it differs.
"""

import difflib
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "programs.md"
HEAD = """<!-- SPDX-FileCopyrightText: The scalewise authors -->
<!-- SPDX-License-Identifier: MIT -->
<!-- Made by scripts/program_reference.py. -->
# Options of the programs

What `--help` of each program prints: first those that are installed, then those of the
[laboratory](../../lab/README.md). [What all programs have in common](../programs.md) says how options are read. Data
without a folder ship with the programs.
"""


def help_of(program):
    text = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    text = text.replace(f"{ROOT / 'tools' / 'data'}/", "")
    return re.sub(r"\n\n\n+", "\n\n", text).strip()


def page(folders):
    programs = [path for folder in folders for path in sorted(folder.iterdir())
                if path.is_file() and os.access(path, os.X_OK) and not path.suffix]
    return HEAD + "".join(f"\n## `{program.name}`\n\n```console-output\n{help_of(program)}\n```\n" for program in programs)


folders = [pathlib.Path(folder).resolve() for folder in sys.argv[1:] if folder != "--check"]
text = page(folders)
if sys.argv[-1] != "--check":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(text, encoding="utf-8")
elif (old := PAGE.read_text(encoding="utf-8") if PAGE.exists() else "") != text:
    sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), text.splitlines(True), "the page", "--help", n=1))
    sys.exit(f"{PAGE.relative_to(ROOT)} is not what --help says; write it again by\n"
             f"    scripts/program_reference.py {' '.join(os.path.relpath(folder, ROOT) for folder in folders)}")
