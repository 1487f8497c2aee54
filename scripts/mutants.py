#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Breaks the library on purpose, in one place at a time, and reports which breaks no test notices.

A list of breaks (scripts/mutants.txt says how one is written) is applied break by break to a copy
of the tree in the build folder; each time the tests that it names are built and run. A break is
killed where a test fails, runs for far too long, or does not compile because a static assertion in
it fails. Results are kept in a journal: a break runs again only when it, or a file that its tests
are built from, has changed.

Exit code: 0 when every break was killed or its survival is explained in the list, 1 when not or
when the list is out of date, 130 after Ctrl-C.
"""

import argparse
import fcntl
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

TIME_LIMIT = 600  # seconds that a test may run; those of the list take a few


class ListError(Exception):
    """The run cannot start, because of the list, a test, or another run."""


@dataclass
class Mutant:
    line: int
    path: str
    tests: list
    before: str = ""
    after: str = ""
    result: str = ""
    detail: str = ""

    def title(self):
        old = self.before.split("\n")
        new = [line.strip() for line in self.after.split("\n") if line not in old and line.strip()]
        return f"{self.path}: {new[0] if new else 'without ' + old[0].strip()}"


def read_list(path):
    mutants, header, last = [], None, ""
    for number, text in enumerate(path.read_text().split("\n"), 1):
        if text.startswith("#"):
            continue
        if not text.strip():
            last = ""
            continue
        mark = text[0] if text[:2] in ("- ", "+ ") or text in ("-", "+") else ""
        if not mark:
            name, bar, tests = text.partition("|")
            if not bar:
                raise ListError(f"{path}:{number}: expected 'file | tests', or a line that begins with '- ', '+ ' or '#'")
            header = (name.strip(), [t.strip() for t in tests.split(",")])
        elif header is None or mark == "+" and not last:
            raise ListError(f"{path}:{number}: expected {'a file' if header is None else 'the text before'} first")
        else:
            if mark == "-" and last != "-":
                mutants.append(Mutant(number, *header))
            attribute = {"-": "before", "+": "after"}[mark]
            old = getattr(mutants[-1], attribute)
            setattr(mutants[-1], attribute, old + ("\n" if old else "") + text[2:])
        last = mark
    for mutant in mutants:
        if not mutant.before or mutant.before == mutant.after:
            raise ListError(f"{path}:{mutant.line}: expected a text and another in its place")
    return mutants


def copy_tree(source, target):
    """Makes `target` have the files of `source` that git knows or would add, and only these."""
    listed = subprocess.run(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=source,
                            check=True, capture_output=True).stdout.decode().split("\0")
    wanted = {name for name in listed if name and (source / name).is_file()}
    for path in target.rglob("*"):
        if path.is_file() and str(path.relative_to(target)) not in wanted:
            path.unlink()
    for name in wanted:
        content = (source / name).read_bytes()
        copy = target / name
        # Files that have not changed keep their time, so that they are not built again.
        if copy.is_file() and copy.read_bytes() == content:
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(content)
        copy.chmod((source / name).stat().st_mode)


@dataclass
class Builder:
    """Builds and runs tests in the copy."""
    tree: Path
    build: Path
    jobs: int
    child: subprocess.Popen = None
    sources: dict = field(default_factory=dict)  # test: the files that it is built from

    def run(self, command, limit=None):
        self.child = subprocess.Popen(command, cwd=self.build, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, start_new_session=True)
        try:
            output, _ = self.child.communicate(timeout=limit)
            return self.child.returncode, output.decode(errors="replace")
        except subprocess.TimeoutExpired:
            return None, f"no end after {limit} s"
        finally:
            if self.child.poll() is None:
                os.killpg(self.child.pid, signal.SIGKILL)
                self.child.wait()

    def configure(self):
        options = ["-G", "Ninja", "-D", "CMAKE_BUILD_TYPE=Debug", "-D",
                   "CMAKE_CXX_FLAGS_DEBUG=-O0 -g0", "-D", "SCALEWISE_BUILD_TESTS=ON",
                   "-D", "SCALEWISE_BUILD_EXAMPLES=ON", "-D", "SCALEWISE_TEST_SLOW=ON",
                   "-D", "SCALEWISE_WERROR=OFF"]  # a break may leave a variable unused
        self.build.mkdir(parents=True, exist_ok=True)
        if subprocess.run(["which", "ccache"], capture_output=True).returncode == 0:
            options += ["-D", "CMAKE_CXX_COMPILER_LAUNCHER=ccache"]
            os.environ.setdefault("CCACHE_SLOPPINESS", "pch_defines,time_macros")
        code, output = self.run(["cmake", "-S", str(self.tree), "-B", str(self.build), *options])
        if code != 0:
            raise ListError("cannot configure the copy:\n" + output)

    # A test is "program [cases]", with all that it is linked with; "folder/file.cpp [cases]", one
    # source of a program, linked with the libraries of the unchanged tree; "folder/file_static.cpp", whose
    # compilation is the test; or "program:name", a test of CTest that runs programs (a+b).

    def object_of(self, file):
        """The target that a test source belongs to, and its object."""
        rules = (self.build / "build.ninja").read_text()
        found = re.search(rf"^build (tests/CMakeFiles/(\w+)\.dir/{re.escape(file)}\.o):", rules,
                          re.MULTILINE)
        if not found:
            raise ListError(f"{file} is not a source of a test")
        return found[2], found[1]

    def target(self, test):
        name = re.split("[ :]", test)[0]
        return self.object_of(name)[1] if name.endswith(".cpp") else name.replace("+", " ")

    def make(self, test):
        code, output = self.run(["ninja", f"-j{self.jobs}", "-k0", *self.target(test).split()])
        file = test.split(" ")[0]
        if code != 0 or not file.endswith(".cpp") or file.endswith("_static.cpp"):
            return code, output
        target, own = self.object_of(file)
        rules = (self.build / "build.ninja").read_text()
        beside = re.findall(rf"^build (tests/CMakeFiles/{target}\.dir/__/\S+\.o):", rules, re.MULTILINE)
        code, output = self.run(["ninja", f"-j{self.jobs}", *beside]) if beside else (0, "")
        if code != 0:
            return code, output
        _, commands = self.run(["ninja", "-t", "commands", "-s", "tests/" + target])
        link = commands.removeprefix(": && ").split(" && ")[0].split()
        tests = f"tests/CMakeFiles/{target}.dir/"
        link = [part for part in link
                if part == own or not part.startswith(tests) or part.startswith(tests + "__/")]
        link[link.index("-o") + 1] = "one_source"
        return self.run(link)

    def execute(self, test):
        if test.endswith("_static.cpp"):
            return 0, ""
        _, colon, name = test.partition(":")
        if colon:
            return self.run(["ctest", "--output-on-failure", "-R", f"^{name}$"], TIME_LIMIT)
        name, _, cases = test.partition(" ")
        program = "one_source" if name.endswith(".cpp") else "tests/" + name
        return self.run([str(self.build / program), *([cases] if cases else [])], TIME_LIMIT)

    def check(self, test):
        """Builds and runs a test on the unchanged tree, and learns what it is built from."""
        if test.split(" ")[0].endswith(".cpp") and not test.endswith("_static.cpp"):
            self.run(["ninja", f"-j{self.jobs}", self.object_of(test.split(" ")[0])[0]])
        code, output = self.make(test)
        if code != 0:
            raise ListError(f"cannot build {test}:\n{output[-3000:]}")
        code, output = self.execute(test)
        if code != 0 or re.search("No test(s were| cases match)", output):
            raise ListError(f"{test} does not pass on the unchanged tree:\n{output[-3000:]}")
        target = self.target(test)
        _, inputs = self.run(["ninja", "-t", "inputs", *target.split()])
        objects = [name for name in [*target.split(), *inputs.split("\n")] if name.endswith((".o", ".gch"))]
        _, deps = self.run(["ninja", "-t", "deps", *objects])
        files = {(self.build / line.strip()).resolve() for line in deps.split("\n")
                 if line.startswith("    ")}
        if ":" in test:
            for folder in ("tests/cli", "tests/python", "python"):
                files.update((self.tree / folder).glob("*.py"))
        inside = [f for f in files if self.tree in f.parents and f.is_file()]
        self.sources[test] = sorted(inside)

    def fingerprint(self, mutant):
        digest = hashlib.sha256(f"{mutant.path}\n{mutant.before}\n{mutant.after}".encode())
        for test in mutant.tests:
            digest.update(test.encode())
            for file in self.sources[test]:
                digest.update(file.read_bytes())
        return digest.hexdigest()

    def try_mutant(self, mutant):
        """Applies a break, sets its result, and takes it back."""
        file = self.tree / mutant.path
        good = file.read_text()
        file.write_text(good.replace(mutant.before, mutant.after))
        try:
            for test in mutant.tests:
                code, output = self.make(test)
                if code != 0:
                    mutant.result, mutant.detail = compile_failure(output)
                    return
                code, output = self.execute(test)
                if code != 0:
                    mutant.result = "killed"
                    mutant.detail = test if code is not None else f"{test} did not end"
                    return
            mutant.result = "survived"
            mutant.detail = ", ".join(mutant.tests)
        finally:
            file.write_text(good)


def compile_failure(output):
    """Killed where nothing but static assertions of tests fail."""
    errors = [line for line in output.split("\n") if re.search(r"\berror: ", line)]
    asserted = [e for e in errors if "static assertion" in e and re.search(r"\btests/", e)]
    if errors and len(asserted) == len(errors):
        return "killed", "compile time: " + asserted[0].strip()
    first = errors[0] if errors else output.strip().split("\n")[-1]
    return "does not compile", first.strip()


def stale(tree, mutant):
    file = tree / mutant.path
    if not file.is_file():
        return "no such file"
    count = file.read_text().count(mutant.before)
    return "" if count == 1 else f"its text occurs {count} times: expected once"


def report(mutants):
    """Prints what needs attention and the closing count; returns whether all is well."""
    def listed(what, title):
        found = [m for m in mutants if m.result == what]
        if found:
            print(f"\n{title}:")
        for m in found:
            print(f"  mutants.txt:{m.line}: {m.title()}")
            if m.detail:
                print(f"      {m.detail}")
        return found

    survivors = listed("survived", "Survived")
    broken = listed("does not compile", "Does not compile, so that it says nothing of the tests")
    old = listed("stale", "Out of date")
    left = listed("", "Not run")
    killed = [m for m in mutants if m.result == "killed"]
    at_compile_time = sum(m.detail.startswith("compile time") for m in killed)
    print(f"\n{len(mutants)} breaks: {len(killed)} killed ({at_compile_time} at compile time), "
          f"{len(survivors)} survived, "
          f"{len(broken) + len(old)} in error, {len(left)} not run")
    return not survivors and not broken and not old and not left


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--only", default="", metavar="TEXT",
                        help="breaks whose file, tests or text contain TEXT")
    parser.add_argument("--list", type=Path, default=Path("scripts/mutants.txt"), metavar="FILE")
    parser.add_argument("--build", type=Path, default=Path("build/mutants"), metavar="DIR")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N")
    parser.add_argument("--check", action="store_true",
                        help="only whether each text still occurs once in its file")
    options = parser.parse_args()

    mutants = [m for m in read_list(options.list)
               if options.only in "\n".join([m.path, *m.tests, m.before, m.after])]
    if options.check:
        for mutant in mutants:
            mutant.detail = stale(Path.cwd(), mutant)
            if mutant.detail:
                print(f"{options.list}:{mutant.line}: {mutant.path}: {mutant.detail}")
        return int(any(m.detail for m in mutants))
    root = options.build.resolve()
    builder = Builder(root / "tree", root / "build", options.jobs)
    builder.tree.mkdir(parents=True, exist_ok=True)
    lock = (root / "lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise ListError(f"{root} is in use by another run") from None
    for end in (signal.SIGINT, signal.SIGTERM):  # as Ctrl-C, in the background too
        signal.signal(end, signal.default_int_handler)
    copy_tree(Path.cwd(), builder.tree)
    builder.configure()
    for mutant in mutants:
        mutant.detail = stale(builder.tree, mutant)
        mutant.result = "stale" if mutant.detail else ""

    journal_path = root / "journal.jsonl"
    journal = {}
    if journal_path.is_file():
        for line in journal_path.read_text().split("\n"):
            try:
                record = json.loads(line)
                journal[record["fingerprint"]] = record
            except (ValueError, KeyError):
                pass  # a line that was cut off: its break runs again
    waiting = [m for m in mutants if not m.result]
    interrupted = False
    spent = fresh = 0
    try:
        with journal_path.open("a") as journal_file:
            journal_file.write("\n")  # ends a line that was cut off
            for done, mutant in enumerate(waiting, 1):
                began = time.monotonic()
                for test in mutant.tests:
                    if test not in builder.sources:
                        print(f"on the unchanged tree: {test}", flush=True)
                        builder.check(test)
                fingerprint = builder.fingerprint(mutant)
                known = journal.get(fingerprint)
                if known:
                    mutant.result, mutant.detail = known["result"], known["detail"]
                    continue
                builder.try_mutant(mutant)
                record = {"fingerprint": fingerprint, "result": mutant.result,
                          "detail": mutant.detail}
                journal_file.write(json.dumps(record) + "\n")
                journal_file.flush()
                seconds = time.monotonic() - began
                spent, fresh = spent + seconds, fresh + 1
                left = spent / fresh * (len(waiting) - done) / 60
                print(f"[{done:3}/{len(waiting)}] {mutant.result:8} {seconds:5.1f} s, at most "
                      f"{left:.0f} min left  {mutant.title()}", flush=True)
    except KeyboardInterrupt:
        interrupted = True
        print("\ninterrupted; run it again to resume from here")
    if len(waiting) > fresh and not interrupted:
        print(f"{len(waiting) - fresh} results are known from earlier runs")
    good = report(mutants)
    return 130 if interrupted else 0 if good else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ListError as error:
        sys.exit(f"mutants: {error}")
