#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""api_coverage.py <folder for Doxygen> [--list]: how many public functions say what their users need.

A public function of include/scalewise needs in its comment

    Units: or Shapes:   when it returns a floating number, or takes or returns numbers in a span, a vector
                        or a matrix;
    Throws:             when its body throws, or calls something named check…, fail…, refuse… or require…;
    Source:             when it is in policy, propagation or kernels, returns numbers, moments, kernels or
                        rows by value, and its body has a number or arithmetic.

Any of these may stand in the comment of its class instead. Functions of which none is needed do not
count, nor do operators and what is in a namespace detail.

Prints what is covered, by folder and by what is needed; --list names each function that lacks something.
Exit code: 0 when the coverage is at least REACHED, 1 when it is not, 77 without Doxygen.
"""

import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

REACHED = 99.0  # percent; it only goes up

ROOT = pathlib.Path(__file__).resolve().parents[2]
FLOATING = re.compile(r"^(const |constexpr |inline |static )*(double|float|Scalar)\b *&?$"
                      r"|^std::optional< (double|float|Scalar) >$")
NUMBERS = re.compile(r"(span|vector)< *(const )?(double|float|Scalar|[\w:]*(Matrix|View)[^>]*)\b"
                     r"|\b(Matrix|MatrixXd|VectorXd|ArrayXd|ConstView|View|MatrixView)\b")
THROWING = re.compile(r"\bthrow\b(?! *;)|\b(check|fail|refuse|require)(_\w+)?\(")
FROM_PAPERS = {"policy", "propagation", "kernels"}
OF_PAPERS = re.compile(r"\b(SignalMoments|ScoreMoments|TokenCovariance|Moments|Kernel|PairKernel|Row|ModelRow|"
                       r"Scaling|Profile|Validity|Layers|EffectiveBlock)\b")
COMPUTES = re.compile(r"(?<![\w.])\d|\S [-+*/] \S|[*/+-]=|\bstd::(sqrt|exp|log|pow)\b")
DOXYGEN = """@INCLUDE = scripts/site/Doxyfile
OUTPUT_DIRECTORY = {folder}
INPUT = include
INPUT_FILTER =
GENERATE_HTML = NO
GENERATE_XML = YES
XML_PROGRAMLISTING = NO
WARNINGS = NO
WARN_LOGFILE = /dev/null
WARN_AS_ERROR = NO
"""


def text_of(element):
    return " ".join("".join(element.itertext()).split()) if element is not None else ""


def comment_of(element):
    return text_of(element.find("briefdescription")) + " " + text_of(element.find("detaileddescription"))


def functions(folder):
    """Each public function once: its name, where it stands, its types, its comment, its class's, its body."""
    seen = set()
    for file in sorted(folder.glob("xml/*.xml")):
        if not file.name.startswith(("namespace", "class", "struct", "union")):
            continue
        compound = ElementTree.parse(file).getroot().find("compounddef")
        of_class = comment_of(compound) if compound.get("kind") != "namespace" else ""
        for member in compound.iter("memberdef"):
            if member.get("kind") != "function" or member.get("prot") != "public" or member.get("id") in seen:
                continue
            seen.add(member.get("id"))
            yield Function(member, of_class)


class Function:
    def __init__(self, member, of_class):
        place = member.find("location")
        self.name = text_of(member.find("qualifiedname")) or text_of(member.find("name"))
        self.path = ROOT / "include" / re.sub(r"^.*?(?=scalewise/[^/]+(/|$))", "", place.get("file"))
        self.line = int(place.get("line"))
        self.returned = text_of(member.find("type"))
        self.types = [self.returned, *(text_of(one.find("type")) for one in member.findall("param"))]
        self.comment = comment_of(member)
        self.of_class = of_class
        lines = lines_of(self.path)
        begin, end = int(place.get("bodystart", 0)), int(place.get("bodyend", -1))
        self.body = "\n".join(lines[begin - 1:end]) if begin > 0 and end >= begin else ""
        self.body = re.sub(r"//.*", "", self.body).partition("{")[2]

    def folder(self):
        return self.path.parent.name

    def counts(self):
        plain = self.name.rpartition("::")[2]
        return not plain.startswith(("operator", "~")) and "detail::" not in self.name

    def needed(self):
        """What the comment needs, and whether it has it."""
        if FLOATING.match(self.returned) or any(NUMBERS.search(one) for one in self.types):
            yield "Units or Shapes", self.has("Units", "Shapes")
        if THROWING.search(self.body):
            yield "Throws", self.has("Throws")
        numbers = any(one.search(self.returned) for one in (FLOATING, NUMBERS, OF_PAPERS))
        if self.folder() in FROM_PAPERS and numbers and "&" not in self.returned and COMPUTES.search(self.body):
            yield "Source", self.has("Source")

    def has(self, *sections):
        return any(f"{section}:" in text for section in sections for text in (self.comment, self.of_class))


def lines_of(path, known={}):
    if path not in known:
        known[path] = path.read_text(encoding="utf-8").splitlines()
    return known[path]


def percent(covered, all_of_them):
    return 100 * covered / all_of_them if all_of_them else 100


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    if not shutil.which("doxygen"):
        print("doxygen was not found")
        sys.exit(77)
    folder = pathlib.Path(sys.argv[1]).resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    subprocess.run(["doxygen", "-"], input=DOXYGEN.format(folder=folder), encoding="utf-8", check=True, cwd=ROOT,
                   env={**os.environ, "SCALEWISE_SITE_API": str(folder)})

    of_folder, of_need, total = (collections.defaultdict(lambda: [0, 0]) for _ in range(3))
    without_comment = 0
    for function in functions(folder):
        if not function.counts():
            continue
        needed = dict(function.needed())
        without_comment += not function.comment.strip()
        if not needed:
            continue
        missing = [need for need, met in needed.items() if not met]
        for count in (of_folder[function.folder()], total["all"]):
            count[0] += not missing
            count[1] += 1
        for need, met in needed.items():
            of_need[need][0] += met
            of_need[need][1] += 1
        if missing and "--list" in sys.argv:
            print(f"{function.path.relative_to(ROOT)}:{function.line}: {function.name}: {', '.join(missing)}")
    for counts in (of_need, of_folder, total):
        for name, (covered, among) in sorted(counts.items()):
            print(f"{name:16} {covered:4} of {among:4}  {percent(covered, among):5.1f} %")
    print(f"{without_comment} public functions, all included, have no comment of their own")
    covered, among = total["all"]
    if among < 300:
        sys.exit(f"{among} functions: Doxygen has not read the headers")
    if percent(covered, among) < REACHED:
        sys.exit(f"the coverage is below {REACHED} %: --list names what lacks a section")


main()
