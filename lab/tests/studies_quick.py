#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Makes the page of a study at small size, from nothing, and looks whether every table is filled.

    studies_quick.py NAME TOOLS
"""

import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
QUICK = ROOT / "build/results_quick"

name, tools = sys.argv[1:]
for folder in (name, f"{name}_runs"):
    shutil.rmtree(QUICK / folder, ignore_errors=True)
committed = {path: path.read_bytes() for path in (ROOT / "lab/studies").glob("*/**/*.*") if path.suffix != ".pyc"}
subprocess.run([sys.executable, ROOT / f"lab/studies/{name}/run.py", tools, "--quick"], check=True)
page = (QUICK / f"{name}.md").read_text(encoding="utf-8")
for table, lines in re.findall(r"<!-- table (\w+) -->\n(.*?)<!-- end -->", page, re.DOTALL):
    if table != "again" and lines.count("\n") < 3:  # that one compares with an earlier run, which there is none of
        sys.exit(f"the table {table} of {name} is empty")
if any(path.read_bytes() != text for path, text in committed.items()):
    sys.exit("lab/studies was changed")
