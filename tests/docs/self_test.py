#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Tests run_blocks.py with the pages in cases/; it takes the same options.

pass_*.md must pass. fail_*.md must fail, and each comment `<!-- expect: TEXT -->` of such a page
must be in the message; PAGE in TEXT stands for the path of the page.
"""

import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def check(case, options):
    """Returns what is wrong with the verdict on one page, or None."""
    process = subprocess.run(
        [sys.executable, str(HERE / "run_blocks.py"), str(case), *options],
        text=True, capture_output=True, check=False)
    output = process.stdout + process.stderr
    should_pass = case.name.startswith("pass_")
    if process.returncode != (0 if should_pass else 1):
        return f"exit code {process.returncode}\n{output}"
    expected = re.findall(r"<!-- expect: (.*?) -->", case.read_text(encoding="utf-8"))
    if not should_pass and not expected:
        return "the page does not say what to expect"
    for text in expected:
        if text.replace("PAGE", str(case)) not in output:
            return f"missing in the message: {text}\n{output}"
    return None


def main():
    cases = sorted((HERE / "cases").glob("*_*.md"))
    kinds = {case.name.split("_")[0] for case in cases}
    wrong = {case.name: problem for case in cases if (problem := check(case, sys.argv[1:]))}
    for name, problem in wrong.items():
        print(f"FAILED {name}: {problem}")
    print(f"{len(cases)} pages, {len(wrong)} with a wrong verdict")
    sys.exit(1 if wrong or kinds != {"pass", "fail"} else 0)


if __name__ == "__main__":
    main()
