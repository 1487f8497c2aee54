#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Writes a header and all that it includes of the library as one file.

    amalgamate.py OUTPUT [HEADER ...]

Without HEADER: the rules and plans, with presets, fold(), single_rate(), starts and warnings, which need the
standard library alone.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
RULES = ["scalewise/scalewise.hpp"]
INCLUDE = re.compile(r'#include [<"](scalewise/[\w/]+\.hpp)[>"]')


def text_of(header, seen):
    """The header with those that it includes in place, each once."""
    if header in seen:
        return ""
    seen.add(header)
    out = []
    for line in (ROOT / "include" / header).read_text(encoding="utf-8").splitlines():
        included = INCLUDE.fullmatch(line.partition("  //")[0].strip())
        if included:
            out.append(text_of(included[1], seen))
        elif line != "#pragma once" and not line.startswith("// SPDX-"):
            out.append(line + "\n")
    return "".join(out)


def main():
    if len(sys.argv) < 2 or any(word.startswith("-") for word in sys.argv[1:]):
        sys.exit(__doc__)
    for header in sys.argv[2:]:
        if not (ROOT / "include" / header).is_file():
            sys.exit(f"HEADER = {header}: expected one below include, such as {RULES[0]}")
    seen = set()
    version = re.search(r"VERSION (\d+\.\d+\.\d+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))[1]
    text = "".join(text_of(header, seen) for header in sys.argv[2:] or RULES)
    terms = "".join(f"// {line}".rstrip() + "\n" for line in (ROOT / "LICENSE").read_text(encoding="utf-8").splitlines())
    head = ("// SPDX-FileCopyrightText: The scalewise authors\n// SPDX-License-Identifier: MIT\n//\n"
            f"// scalewise {version}, made of {len(seen)} headers by scripts/amalgamate.py\n//\n{terms}#pragma once\n")
    output = pathlib.Path(sys.argv[1])
    temporary = output.with_name(output.name + ".tmp")
    temporary.write_text(head + re.sub(r"\n{3,}", "\n\n", text), encoding="utf-8")
    temporary.replace(output)


if __name__ == "__main__":
    main()
