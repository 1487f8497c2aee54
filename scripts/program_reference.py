#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Writes docs/reference/programs.md: the options of every program, as its --help has them.

    scripts/program_reference.py FOLDER_OF_PROGRAMS... [--check]

--check compares instead, and says how to write the page where it differs. It leaves out programs that are in none of
the folders, and names them.
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

The output of `--help` for each program: first those that are installed, then those of the
[laboratory](../../lab/README.md). [What all programs have in common](../programs.md) says how options are read. Data
without a folder ship with the programs.
"""


def help_of(program):
    text = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    text = text.replace(f"{ROOT / 'tools' / 'data'}/", "")
    text = re.sub(r"( optimizer: \w+, \w+), .*", r"\1, …", text)  # so that the page stays as it is when there is another
    return re.sub(r"\n\n\n+", "\n\n", text).strip()


def section_of(program):
    """The section of a program; of one that is not built, the one that the page has."""
    for folder in folders:
        if os.access(folder / program, os.X_OK):
            return f"\n## `{program}`\n\n```console-output\n{help_of(folder / program)}\n```\n"
    left_out.append(program)
    kept = re.search(rf"\n## `{program}`\n\n```console-output\n.*?\n```\n", old, re.DOTALL)
    return kept[0] if kept else ""


folders = [pathlib.Path(folder).resolve() for folder in sys.argv[1:] if folder != "--check"]
old = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
left_out = []
programs = [path.stem for folder in ("tools", "lab/programs") for path in sorted((ROOT / folder).glob("*.cpp"))]
text = HEAD + "".join(map(section_of, programs))
if sys.argv[-1] != "--check":
    if left_out:
        sys.exit(f"not built: {', '.join(left_out)}")
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(text, encoding="utf-8")
elif old != text:
    sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), text.splitlines(True), "the page", "--help", n=1))
    sys.exit(f"{PAGE.relative_to(ROOT)} is not what --help says; write it again by\n"
             f"    scripts/program_reference.py {' '.join(os.path.relpath(folder, ROOT) for folder in folders)}")
elif left_out:
    print(f"not checked, as not built: {', '.join(left_out)}")
