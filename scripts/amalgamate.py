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
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    seen = set()
    version = re.search(r"VERSION (\d+\.\d+\.\d+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))[1]
    text = "".join(text_of(header, seen) for header in sys.argv[2:] or RULES)
    head = ("// SPDX-FileCopyrightText: The scalewise authors\n// SPDX-License-Identifier: MIT\n//\n"
            f"// scalewise {version}, made of {len(seen)} headers by scripts/amalgamate.py\n#pragma once\n")
    output = pathlib.Path(sys.argv[1])
    temporary = output.with_name(output.name + ".tmp")
    temporary.write_text(head + re.sub(r"\n{3,}", "\n\n", text), encoding="utf-8")
    temporary.replace(output)


if __name__ == "__main__":
    main()
