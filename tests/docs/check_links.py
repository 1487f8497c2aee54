#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Checks that every relative link of a Markdown page leads to a file and a heading, that every header, test or
script that a page names in full is there, and that source which a `name` links to contains the name. The changelog
may name what is gone. Rows of texts.md are counted, and have a state."""

import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMED = r"`((?:include|tests|tools|examples|scripts|lab|cmake)/[\w./-]+\.\w+)`"
LINK = r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)"
STATE = r"(complete|in part|not here)\b"


def text_of(path):
    return path.read_text(encoding="utf-8", errors="replace")


def anchors(page):
    """Of all headings, as GitHub makes them."""
    prose = re.sub(r"^```.*?^```", "", text_of(page), flags=re.M | re.S)
    seen = collections.Counter()
    found = set()
    for heading in re.findall(r"^#+ +(.*?) *$", prose, flags=re.M):
        plain = re.sub(r"[^\w\- ]", "", re.sub(LINK, r"\1", heading).lower()).replace(" ", "-")
        found.add(plain + (f"-{seen[plain]}" if seen[plain] else ""))
        seen[plain] += 1
    return found


def problem_of(page, words, target):
    """What is wrong with a link, or nothing."""
    path, _, anchor = target.partition("#")
    if "://" in target or target.startswith("mailto:"):
        return None
    file = page.parent / path if path else page
    if not file.exists():
        return "no such file"
    if anchor and file.suffix == ".md" and anchor not in anchors(file):
        return "no such heading"
    name = re.fullmatch(r"`(\w+)`", words)
    if name and file.suffix in {".hpp", ".cpp", ".py"} and name[1] != file.stem:
        if not re.search(rf"\b{name[1]}\b", text_of(file)):
            return f"no {name[1]} in it"
    return None


def problems_of(page):
    text = text_of(page)
    links = re.findall(LINK, text)
    found = [f"{target}: {problem}" for words, target in links if (problem := problem_of(page, words, target))]
    if page.name != "CHANGELOG.md":
        found += [f"{name}: no such file" for name in re.findall(NAMED, text) if not (ROOT / name).exists()]
    return [f"{page.relative_to(ROOT)}: {line}" for line in found]


def problems_of_rows(page):
    """Each paper's rows against the table of counts at the top, and their numbers."""
    summary, *papers = text_of(page).split("\n## ")
    found = []
    for paper in papers:
        title = paper.splitlines()[0]
        rows = [line.strip("| ").split(" | ") for line in paper.splitlines() if re.match(r"\| \d", line)]
        states = collections.Counter()
        for number, row in enumerate(rows, 1):
            state = re.match(STATE, row[-1])
            states[state and state[1]] += 1
            if int(row[0]) != number or not state:
                found.append(f"{title}, row {row[0]}: expected row {number} with a state that begins {STATE}")
            elif state[1] == "complete" and "](" not in row[3]:
                found.append(f"{title}, row {number}: complete without code")
        counts = " | ".join(str(states[s]) for s in ("complete", "in part", "not here"))
        if not re.search(rf"^\| \[{re.escape(title)}\]\(#[\w-]+\) \| {re.escape(counts)} \|$", summary, flags=re.M):
            found.append(f"{title}: expected | {counts} | in the table at the top")
    return [f"{page.relative_to(ROOT)}: {line}" for line in found]


pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("lab/**/*.md"), *ROOT.glob("tests/golden/*.md"),
         *ROOT.glob("tools/data/*.md")]
problems = [line for page in sorted(pages) for line in problems_of(page)]
problems += problems_of_rows(ROOT / "docs/texts.md")
print("\n".join(problems) if problems else f"{len(pages)} pages, every link leads somewhere")
sys.exit(1 if problems else 0)
