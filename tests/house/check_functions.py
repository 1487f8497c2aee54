#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Checks that functions have 60 lines, and outside namespaces `detail` 6 parameters, at most.

A function is a name or a lambda's "]", a list in parentheses right behind it, what may follow that list, and a block;
clang-format puts a space behind `if` and `for`. Comments, texts and lines of the preprocessor are left out.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINES, PARAMETERS = 60, 6
LEFT_OUT = re.compile(r'R"(\w*)\(.*?\)\1"|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|^ *#(?:\\\n|[^\n])*',
                      re.DOTALL | re.MULTILINE)
INNER = r"(?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*"
FUNCTION = re.compile(rf"(\boperator[^\s\w(]+|\boperator\(\)|\b(?!requires)\w+|\])\(({INNER})\)"
                      r"(?:\s*\b(?:const|noexcept|mutable|override|final)\b|\s*&&?)*(?:\s*->[^;{]*)?"
                      r"(?:\s*:\s(?:\w\{[^{};]*\}|[^;{}])*)?\s\{")
DETAIL = re.compile(r"\bnamespace (?:[\w:]+::)?detail \{")


def end_of(block, text):
    """Where the block ends that begins at the end of a match."""
    depth = 0
    for brace in re.compile("[{}]").finditer(text, block.end() - 1):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.end()


def parameters(text):
    while (less := re.sub(r"->|<[^<>]*>|\([^()]*\)|\{[^{}]*\}|\[[^\[\]]*\]", "", text)) != text:
        text = less
    return text.count(",") + 1 if text.strip() else 0


def problems(text):
    text = LEFT_OUT.sub(lambda match: '""' + "\n" * match[0].count("\n"), text)
    details = [(match.start(), end_of(match, text)) for match in DETAIL.finditer(text)]
    for match in FUNCTION.finditer(text):
        place = f"{text.count(chr(10), 0, match.start()) + 1}: {match[1]}"
        if (lines := text.count("\n", match.start(), end_of(match, text)) + 1) > LINES:
            yield f"{place}: {lines} lines"
        if (count := parameters(match[2])) > PARAMETERS and not any(a < match.start() < b for a, b in details):
            yield f"{place}: {count} parameters"


WIDE = "void wide(int a, std::map<int, int> b, int c = f(1, 2), int d, int e, int f, int g) const {}\n"
LONG = '#define X {\nX::X(int x)\n    : x_(x), y_{"}"} {\n' + "  // {\n" * 59 + "}\n"
assert list(problems(WIDE + LONG)) == ["1: wide: 7 parameters", "3: X: 62 lines"]
assert not list(problems("namespace a::detail {\nint x() {\n}\n" + WIDE + "}\n" + LONG.replace("  // {\n", "", 2)))

errors = [f"{path.relative_to(ROOT)}:{problem}" for folder in ("include", "tools", "lab", "examples")
          for path in sorted((ROOT / folder).rglob("*.[ch]pp")) for problem in problems(path.read_text("utf-8"))]
sys.exit("\n".join(errors) or None)
