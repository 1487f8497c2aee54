#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Checks that every relative link of a Markdown page, and every header, test or script that a page
names in full, is there. The changelog may name what is gone."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMED = r"`((?:include|tests|tools|examples|scripts|lab|cmake)/[\w./-]+\.\w+)`"

pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("lab/**/*.md"), *ROOT.glob("tests/golden/*.md"),
         *ROOT.glob("tools/data/*.md")]
missing = []
for page in sorted(pages):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        path = target.partition("#")[0]
        if path and "://" not in target and not (page.parent / path).exists():
            missing.append(f"{page.relative_to(ROOT)}: {target}")
    if page.name != "CHANGELOG.md":
        missing += [f"{page.relative_to(ROOT)}: {name}" for name in re.findall(NAMED, text)
                    if not (ROOT / name).exists()]
print("\n".join(missing) if missing else f"{len(pages)} pages, every link leads somewhere")
sys.exit(1 if missing else 0)
