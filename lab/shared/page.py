# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Pages whose tables are made from results that are kept next to them."""

import json
import os
import pathlib
import sys


def write(path: pathlib.Path, text: str) -> None:
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)


def keep(path: pathlib.Path, result: dict) -> None:
    """A line per member, and per row of what has many."""
    def value(of: object) -> str:
        if isinstance(of, list) and len(of) > 4:
            return "[\n  " + ",\n  ".join(json.dumps(row) for row in of) + "]"
        return json.dumps(of)
    write(path, "{" + ",\n ".join(f"{json.dumps(key)}: {value(of)}" for key, of in result.items()) + "}\n")


def kept(folder: pathlib.Path) -> dict[str, dict]:
    """In the order of names, so that those with the same number at the end are in the same order, to be paired."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def filled(page: pathlib.Path, tables: dict[str, str]) -> str:
    """The page with its tables, each between <!-- table NAME --> and <!-- end -->."""
    text = page.read_text(encoding="utf-8")
    for name, lines in tables.items():
        begin, end = f"<!-- table {name} -->\n", "<!-- end -->"
        head, found, rest = text.partition(begin)
        if not found:
            sys.exit(f"{page}: no line {begin.strip()}")
        text = head + begin + lines + "\n" + end + rest.partition(end)[2]
    return text


def check(page: pathlib.Path, tables: dict[str, str], hint: str) -> None:
    if filled(page, tables) != page.read_text(encoding="utf-8"):
        sys.exit(f"{page} is not what the results give: run {hint}")
