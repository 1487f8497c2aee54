#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Checks the architecture that the tree of include/scalewise shows.

A name that users write is in scalewise::, which has at most MOST_NAMES besides rules and optimizers; every other one is
in the namespace of its folder, or in detail; no namespace is inline. A header includes its own folder, folders before it in its library
(cmake/folders.cmake), and libraries that its library needs: nothing upward. Doors, the headers beside the folders,
have includes only, and users' code includes doors only. No two types of the library have the same name, so that
one word means one thing. The sections of a comment have one order, and a line each. Nothing outside the laboratory
includes it.
"""

import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = ROOT / "include" / "scalewise"
LIMIT = 400  # lines of a header
MOST_NAMES = 116  # directly in scalewise::, besides the rules of policy/all.hpp and the known optimizers

# Each kind of layer says by this name what it keeps of one input.
ASSOCIATED_TYPES = {"Own"}

SECTIONS = ["Equation", "Source", "Shapes", "Units", "Accuracy", "Requires", "Writes", "Throws", "Differs"]


def libraries():
    """What cmake/folders.cmake lists: folder -> folders that its headers may include; and the doors."""
    needs, doors, of_library = {}, set(), {}
    text = (ROOT / "cmake" / "folders.cmake").read_text(encoding="utf-8")
    for name, folders, own_doors, wanted in re.findall(
            r"^scalewise_add_library\((\w+)\s+FOLDERS ([\w ]+)\s+DOORS ([\w ]+?)(?:\s+NEEDS ([^)]*))?\)", text,
            re.MULTILINE):
        below = {folder for library in re.findall(r"scalewise(?:_(\w+))?", wanted or "")
                 for folder in of_library[library or "scalewise"]}
        for folder in folders.split():
            below = below | {folder}
            needs[folder] = below
        of_library[name] = below
        doors |= set(own_doors.split())
    return needs, doors


errors = []


def complain(text):
    errors.append(text)


def check_header(header, folder, needs):
    name = header.relative_to(ROOT)
    text = header.read_text(encoding="utf-8")
    if text.count("\n") > LIMIT:
        complain(f"{name}: more than {LIMIT} lines")
    for namespace in re.findall(r"^((?:inline )?namespace [\w: ]+) \{", text, re.MULTILINE):
        plain = namespace.removeprefix("namespace ").removeprefix("scalewise::").removesuffix("::detail")
        if plain not in {"scalewise", "detail", "symbols", folder}:
            complain(f"{name}: {namespace} in the folder {folder}")
    for macro in re.findall(r"std::(?:min|max)\(|[.>:](?:min|max)\(\)", text):
        complain(f"{name}: {macro}: expected (std::max)(, as windows.h has macros of these names")
    for included in re.findall(r'^#include "scalewise/(\w+)/', text, re.MULTILINE):
        if included not in needs[folder]:
            complain(f"{name}: includes {included}/, which does not stand below {folder}")


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


def public_names(header):
    """Names that a header declares directly in scalewise::, as clang-format sets them: at the start of a line."""
    text = re.sub(r'R"(\w*)\(.*?\)\1"', '""', header.read_text(encoding="utf-8"), flags=re.DOTALL)
    space = []
    for line in re.sub(r"\n +", " ", text).split("\n"):
        if opened := re.match(r"(?:inline )?namespace ([\w: ]+) \{", line):
            space.append(opened[1])
        elif line.startswith("}  // namespace "):
            del space[-1:]
        elif space == ["scalewise"] and re.match(r"(?!template|requires|static_assert|extern|using namespace)\w", line):
            head = re.split(r"[{=;]", line)[0]
            while "<" in head and head != (head := re.sub(r"<[^<>]*>", "", head)):
                pass
            name = (re.match(r"(?:struct|class|enum class|using|concept) (\w+)", head)
                    or re.search(r"(\w+)(?=\(|\[| *$)", head))
            if name and "operator" not in head:
                yield name[name.lastindex]


def check_door(header):
    text = re.sub(r"//.*", "", header.read_text(encoding="utf-8"))
    for line in text.split("\n"):
        if line.strip() and not re.match(r'#(include "scalewise/|pragma once|ifdef |endif)', line):
            complain(f"{header.relative_to(ROOT)}: a door has includes only: {line.strip()}")


def check_user(path):
    for name in re.findall(r'#include [<"]scalewise/([\w/.]+)[>"]', path.read_text(encoding="utf-8")):
        if name.removesuffix(".hpp") not in doors:
            complain(f"{path.relative_to(ROOT)}: includes scalewise/{name}, which is not a door")


needs, doors = libraries()
for missing in sorted(doors ^ {path.stem for path in INCLUDE.glob("*.hpp")}):
    complain(f"{missing}.hpp: in include/scalewise or a door in cmake/folders.cmake, not both")
for header in INCLUDE.glob("*.hpp"):
    check_door(header)
USERS = ["README.md", "docs/**/*.md", "lab/**/*.md", "examples/**/*.?pp", "tests/consumer/project/*.?pp",
         "tests/testing/*.cpp", "tests/libtorch/*.cpp", "tests/format/*.cpp"]
users = [path for pattern in USERS for path in ROOT.glob(pattern)]
for path in users:
    check_user(path)
folders = {path.name for path in INCLUDE.iterdir() if path.is_dir()}
for missing in sorted(folders ^ set(needs)):
    complain(f"{missing}: in include/scalewise or in cmake/folders.cmake, not in both")
policies, optimizers = ((INCLUDE / "policy" / name).read_text(encoding="utf-8") for name in ("all.hpp", "optimizer.hpp"))
listed = policies.split("operator()<")[-1].split(">()")[0] + optimizers.split("known_optimizers{")[1].split("}")[0]
public = {name for header in INCLUDE.glob("*/*.hpp") for name in public_names(header)} - set(re.findall(r"\w+", re.sub("//.*", "", listed)))
if len(public) > MOST_NAMES:
    complain(f"{len(public)} names in scalewise::, and at most {MOST_NAMES} may be: {' '.join(sorted(public))}")
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
print(f"{len(needs)} folders, {len(doors)} doors, {len(users)} files of users, {len(public)} names in scalewise::, "
      f"{sum(map(len, homes.values()))} types, "
      f"{len(errors)} errors")
sys.exit(1 if errors else 0)
