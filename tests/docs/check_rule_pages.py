#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Checks that the pages in docs/rules/ and the rules of the library are the same list.

Every id that `plan --list-rules` prints has the page docs/rules/<id>.md, and there are no others.
Each page has its id in the title and the sections below, names the policy header that defines the
id and every parameter of the rule, and has no relative link to a file that is not there. What its table
says is compared with plans by rule_tables.py.
"""

import argparse
import pathlib
import re
import subprocess
import sys

SECTIONS = ("Source", "Table", "Differences and derived rows", "When to use it", "Parameters",
            "Example")


def listed_rules(plan):
    """id -> parameter names, as the program prints them."""
    output = subprocess.run([plan, "--list-rules"], check=True, capture_output=True,
                            encoding="utf-8").stdout
    header, *lines = output.splitlines()
    columns = [(match[0], match.start()) for match in re.finditer(r"\S+", header)]
    names = [name for name, _ in columns]
    if names[0] != "rule" or not {"base", "parameters"} <= set(names):
        sys.exit(f"unexpected header of --list-rules: {header}")
    rules = {}
    for line in lines:
        ends = [start for _, start in columns[1:]] + [len(line)]
        cells = {name: line[start:end].strip() for (name, start), end in zip(columns, ends)}
        parameters = [] if cells["parameters"] == "-" else re.findall(r"(\S+)=", cells["parameters"])
        rules[cells["rule"]] = parameters
    return rules


def links(text):
    return [target for target in re.findall(r"\]\(([^)]+)\)", text) if "://" not in target]


def page_errors(source, page, rule, parameters):
    text = page.read_text(encoding="utf-8")
    if not re.search(rf"^# `{re.escape(rule)}`: \S", text, re.MULTILINE):
        yield f"no title '# `{rule}`: …'"
    for section in SECTIONS:
        if not re.search(rf"^## {section}$", text, re.MULTILINE):
            yield f"no section '{section}'"
    headers = re.findall(r"`(include/scalewise/policy/\w+\.hpp)`", text)
    defining = [header for header in headers if (source / header).is_file()
                and f'"{rule}"' in (source / header).read_text(encoding="utf-8")]
    if not defining:
        yield "names no header that defines the rule"
    if f"plan --rule {rule} " not in text:
        yield f"has no example with plan --rule {rule}"
    for parameter in parameters:
        if f"{parameter}=" not in text and f"`{parameter}`" not in text:
            yield f"does not mention the parameter {parameter}"
    for target in links(text):
        path = target.partition("#")[0]
        if path and not (page.parent / path).exists():
            yield f"link to a file that is not there: {target}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=pathlib.Path, required=True, help="the source tree")
    parser.add_argument("--plan", required=True, help="the program plan")
    arguments = parser.parse_args()

    folder = arguments.source / "docs" / "rules"
    rules = listed_rules(arguments.plan)
    errors = []
    if not rules:
        errors.append("plan --list-rules prints no rules")
    for rule, parameters in rules.items():
        page = folder / f"{rule}.md"
        if not page.is_file():
            errors.append(f"{page}: missing")
            continue
        errors += [f"{page}: {error}" for error in page_errors(arguments.source, page, rule,
                                                               parameters)]
    for page in sorted(folder.glob("*.md")):
        if page.stem not in rules:
            errors.append(f"{page}: no rule of that id")
    print("\n".join(errors) if errors else f"{len(rules)} rules, each with its page")
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main()
