#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Checks the architecture that the tree of include/scalewise shows.

Each folder is one namespace and one target of cmake/folders.cmake. A header includes its own folder
and those that the target needs, which stand above it in that file: nothing upward. No two types of
the library have the same name, so that one word means one thing. The sections of a comment have one
order, and a line each. Nothing outside the laboratory includes it.
"""

import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = ROOT / "include" / "scalewise"
LIMIT = 400  # lines of a header

# Each kind of layer says by this name what it keeps of one input.
ASSOCIATED_TYPES = {"Own"}

SECTIONS = ["Equation", "Source", "Shapes", "Units", "Accuracy", "Requires", "Writes", "Throws", "Differs"]


def folder_needs():
    """folder -> the folders that its headers may include; a folder may need those above it only."""
    needs = {}
    text = (ROOT / "cmake" / "folders.cmake").read_text(encoding="utf-8")
    for match in re.finditer(r"^scalewise_add_folder\((\w+)(?: NEEDS ([^)]*))?\)", text, re.MULTILINE):
        folder, named = match[1], (match[2] or "").split()
        needs[folder] = {folder}
        for name in named:
            if not name.startswith("scalewise_"):
                continue
            below = name.removeprefix("scalewise_")
            if below not in needs:
                complain(f"cmake/folders.cmake: {folder} needs {below}, which does not stand above it")
                continue
            needs[folder] |= needs[below]
    return needs


errors = []


def complain(text):
    errors.append(text)


def check_header(header, folder, needs):
    name = header.relative_to(ROOT)
    text = header.read_text(encoding="utf-8")
    if text.count("\n") > LIMIT:
        complain(f"{name}: more than {LIMIT} lines")
    for namespace in re.findall(r"^namespace (scalewise[\w: ]*) \{", text, re.MULTILINE):
        plain = namespace.replace("inline ", "")
        if plain.removesuffix("::detail") != f"scalewise::{folder}":
            complain(f"{name}: namespace {plain} in the folder {folder}")
    for included in re.findall(r'^#include "scalewise/(\w+)/', text, re.MULTILINE):
        if included not in needs[folder]:
            complain(f"{name}: includes {included}/, which {folder} does not need")


def check_comments(header):
    before = -1  # the last section of this comment
    for number, line in enumerate(header.read_text(encoding="utf-8").split("\n"), start=1):
        comment = re.match(r" *///(.*)", line)
        if not comment:
            before = -1
            continue
        for section in re.findall(rf"\b({'|'.join(SECTIONS)}): ", comment[1]):
            place = f"{header.relative_to(ROOT)}:{number}"
            if not comment[1].startswith(f" {section}: "):
                complain(f"{place}: {section} begins within a line")
            elif SECTIONS.index(section) < before:
                complain(f"{place}: {section} comes before {SECTIONS[before]}")
            before = max(before, SECTIONS.index(section))


def types_of(header):
    """Names of types that a header defines; aliases count where they are not inside a class."""
    text = header.read_text(encoding="utf-8")
    text = re.sub(r"//.*", "", text)
    # A forward declaration ends in ";", a specialization has "<" behind its name.
    for match in re.finditer(r"^( *)(?:struct|class|enum class|enum) (\w+)(?: final)?\s*(?::[^:;{]*)?\{", text,
                             re.MULTILINE):
        yield match[2]
    for match in re.finditer(r"^(?:template <[^>]*>\n)?using (\w+) =|^concept (\w+) =", text, re.MULTILINE):
        yield match[1] or match[2]


needs = folder_needs()
folders = {path.name for path in INCLUDE.iterdir() if path.is_dir()}
for missing in sorted(folders ^ set(needs)):
    complain(f"{missing}: in include/scalewise or in cmake/folders.cmake, not in both")
homes = collections.defaultdict(list)
for header in sorted(INCLUDE.glob("*/*.hpp")):
    folder = header.parent.name
    if folder in needs:
        check_header(header, folder, needs)
    check_comments(header)
    for name in types_of(header):
        homes[name].append(str(header.relative_to(INCLUDE)))
for name, where in sorted(homes.items()):
    if len(where) > 1 and name not in ASSOCIATED_TYPES:
        complain(f"{name} is a type in {', '.join(where)}")
# The laboratory stands above everything else.
for folder in ("include", "tools", "instances", "examples", "playground", "tests"):
    for source in sorted((ROOT / folder).rglob("*.[ch]pp")):
        if re.search(r'^#include "lab/', source.read_text(encoding="utf-8"), re.MULTILINE):
            complain(f"{source.relative_to(ROOT)}: includes the laboratory")
for deeper in INCLUDE.glob("*/*/**/*.hpp"):
    complain(f"{deeper.relative_to(ROOT)}: a folder in a folder")
for error in errors:
    print(error)
print(f"{len(needs)} folders, {sum(map(len, homes.values()))} types, {len(errors)} errors")
sys.exit(1 if errors else 0)
