#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Tests every fenced code block of one Markdown page.

The word after the fence says what a block is; any other word is an error.

cpp               A full program: it is compiled with -std=c++20 -Wall -Werror and run.
cpp fragment=NAME A part of a program: its lines stand, in this order and without a gap, in some
                  source file below examples/, lab/, tests/ or tools/ (indentation aside). The same of
                  python fragment=NAME and c fragment=NAME.
sh                Run with `bash -euo pipefail`. The built programs are in PATH and below
                  build/release, the README's build; sources that a block names by path
                  (tests/..., tools/..., lab/..., scripts/...) are there too, and SCALEWISE_SOURCE_DIR
                  names their folder.
sh norun          Not run. Only for lines that call scripts/demo.sh, scripts/playground.sh, scripts/test.sh, git clone,
                  cd, apt-get, or cmake with a preset or to build targets in build/release; the
                  scripts must exist and be executable, and the preset and the targets must exist.
                  When a text block follows, the block must be scripts/demo.sh alone, which then
                  does run, with the programs that are already built.
cmake             Configured as part of a user's project. find_package finds an installed copy,
                  FetchContent and add_subdirectory(.../scalewise) find the sources. What the
                  block leaves out (cmake_minimum_required, project, the executable that it
                  links) is added.
sh needs=PROGRAM  Skipped where there is no such program.
sh slurm          Run next to a Slurm of this machine alone; skipped where that does not start.
python            Run with the first of python3 and /usr/bin/python3 that has PyTorch, if the block
                  imports torch, and else with python3. Skipped when no interpreter has PyTorch.
                  stand_ins/ has the few functions that pages call of modules that are not here.
json              Must parse.
text              The expected output of the cpp, sh or python block before it, if no heading stands
                  between the two. Trailing white space does not count. A line `…` stands for any
                  number of lines. After anything else it is an illustration, like the next two.
console-output, latex  Not tested.

`exit=N` after cpp, sh or python states the expected exit code. `lines=N` after cpp or python is a promise of the page:
at most N lines besides imports, closing braces, empty ones, and those that end with `your own`. All blocks of a page run in one
folder, in the order of the page, so that a block can use the files of an earlier one.

Exit code: 0 when all blocks passed, 1 when one failed, 77 when none failed and one was skipped.
"""

import argparse
import difflib
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field

TIMEOUT_SECONDS = 600  # so that what hangs ends, on slow machines too
SKIPPED = 77  # what CTest counts as skipped
RUNNABLE = ("cpp", "sh", "python")
UNTESTED = ("text", "latex", "console-output")
ELLIPSIS = "…"


class BlockError(Exception):
    """A block that does not do what the page says."""


class BlockSkipped(Exception):
    """A block that this machine cannot run."""


@dataclass
class Block:
    line: int
    language: str
    options: dict
    lines: list = field(default_factory=list)
    after_heading: bool = False

    @property
    def text(self):
        return "\n".join(self.lines) + "\n"


# ---- reading a page ------------------------------------------------------------------------------


def parse_info(line, info):
    words = info.split()
    if not words:
        raise BlockError(f"{line}: the block says not what it is; write for example ```text")
    options = {}
    for word in words[1:]:
        name, _, value = word.partition("=")
        options[name] = value
    language = words[0]
    code = {"exit", "fragment", "lines"}
    allowed = {"cpp": code, "sh": {"norun", "exit", "needs", "slurm"}, "python": code, "c": {"fragment"}}
    if language not in ("cmake", "json", "c", *RUNNABLE, *UNTESTED):
        raise BlockError(f"{line}: unknown kind of block: {language}")
    unknown = set(options) - allowed.get(language, set())
    if unknown:
        raise BlockError(f"{line}: unknown word after {language}: {', '.join(sorted(unknown))}")
    for number in ("exit", "lines"):
        if not re.fullmatch(r"\d+", options.get(number, "0")):
            raise BlockError(f"{line}: {number}= needs a number")
    return Block(line, language, options)


def read_blocks(page):
    blocks = []
    block = None
    heading = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        fence = re.match(r"^([ >]*)(`{3,}|~{3,})(.*)$", line)
        if block is None:
            heading = heading or re.match(r"^#{1,6} ", line) is not None
            if fence and "`" not in fence[3]:
                block = parse_info(number, fence[3])
                block.after_heading, heading = heading, False
                indent, mark = len(fence[1]), fence[2]
        elif fence and fence[2].startswith(mark) and not fence[3].strip():
            blocks.append(block)
            block = None
        else:
            block.lines.append(line[min(indent, len(line) - len(line.lstrip(" >"))):])
    if block is not None:
        raise BlockError(f"{block.line}: the block does not end")
    return blocks


# ---- comparing output ----------------------------------------------------------------------------


def clean(text):
    lines = [line.rstrip() for line in text.splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def matches(expected, actual):
    """Whether the lines agree, with a line `…` in `expected` for any number of lines."""
    reachable = {0}  # how many lines of `actual` the lines of `expected` so far can stand for
    for line in expected:
        if line.strip() == ELLIPSIS:
            reachable = set(range(min(reachable), len(actual) + 1)) if reachable else set()
        else:
            reachable = {i + 1 for i in reachable if i < len(actual) and actual[i] == line}
    return len(actual) in reachable


def compare(expected_block, output, where):
    expected, actual = clean(expected_block.text), clean(output)
    if not matches(expected, actual):
        diff = difflib.unified_diff(expected, actual, "expected, as on the page", "printed",
                                    lineterm="")
        raise BlockError(f"the output differs from {where}:\n" + "\n".join(diff))


def check_promise(block):
    """Counts the lines that a reader has to write."""
    written = [line for line in block.lines if not re.fullmatch(r"\s*}?|\s*(import|from|#include)\b.*|.*your own", line)]
    if len(written) > int(block.options.get("lines", len(written))):
        raise BlockError(f"{len(written)} lines, the page promises {block.options['lines']}")


# ---- running -------------------------------------------------------------------------------------


class Page:
    def __init__(self, path, arguments):
        self.path = path
        self.arguments = arguments
        self.scratch = arguments.scratch
        self.environment = dict(os.environ)
        self.environment["PATH"] = os.pathsep.join(
            [*(str(path) for path in arguments.bin), str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])
        self.environment["SCALEWISE_SOURCE_DIR"] = str(arguments.source)
        self.environment["PYTHONPATH"] = os.pathsep.join(
            [str(arguments.source / "python"), str(arguments.source / "examples" / "pytorch"), str(pathlib.Path(__file__).resolve().parent / "stand_ins")])

    def lay_out_clone(self):
        """Makes the scratch folder look like a clone with the README's build."""
        for folder in ("examples", "lab", "scripts", "tests", "tools"):
            (self.scratch / folder).symlink_to(self.arguments.source / folder)
        built = self.scratch / "build" / "release"
        built.mkdir(parents=True)
        if self.arguments.bin:
            for folder in self.arguments.bin:
                (built / pathlib.Path(folder).name).symlink_to(pathlib.Path(folder).resolve())

    def run(self, command, exit_code=0, cwd=None, skipped=None, **environment):
        """Runs a command, checks its exit code, and returns its standard output.

        An exit code of SKIPPED means what `skipped` says.
        """
        try:
            process = subprocess.run(
                [str(word) for word in command], cwd=cwd or self.scratch, text=True,
                stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_SECONDS,
                env={**self.environment, **environment}, encoding="utf-8", errors="replace")
        except subprocess.TimeoutExpired as error:
            raise BlockError(f"no end after {TIMEOUT_SECONDS} s") from error
        if skipped and process.returncode == SKIPPED:
            raise BlockSkipped(skipped)
        if process.returncode != exit_code:
            raise BlockError(f"exit code {process.returncode}, expected {exit_code}\n"
                             f"{process.stdout}{process.stderr}")
        return process.stdout

    def run_block(self, block, expected):
        """Tests one block and returns its output, or None when it has none to compare."""
        return getattr(self, f"run_{block.language}")(block, expected)

    def run_cpp(self, block, _expected):
        if "fragment" in block.options:
            return self.find_fragment(block)
        if not re.search(r"\bint\s+main\b", block.text):
            raise BlockError("not a full program; write ```cpp fragment=NAME for a part of one")
        source = self.scratch / f"block_{block.line}.cpp"
        source.write_text(block.text, encoding="utf-8")
        program = source.with_suffix(".out")
        includes = [f"-I{path}" for path in self.arguments.include]
        self.run([self.arguments.compiler, "-std=c++20", "-Wall", "-Werror", *includes, source, *self.arguments.library,
                  "-o", program])
        return self.run([program], int(block.options.get("exit", 0)))

    def find_fragment(self, block):
        sources = {"python": "*.py", "c": "*.c"}.get(block.language, "*.[ch]pp")
        wanted = [line.strip() for line in clean(block.text)]
        for folder in ("examples", "lab", "tests", "tools"):
            for path in sorted((self.arguments.source / folder).rglob(sources)):
                lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
                for start in range(len(lines) - len(wanted) + 1):
                    if lines[start:start + len(wanted)] == wanted:
                        return None
        raise BlockError(f"the fragment {block.options['fragment']!r} is in no source file below "
                         "examples/, lab/, tests/ or tools/")

    def run_sh(self, block, expected):
        if "norun" in block.options:
            return self.check_norun(block, expected)
        needed = block.options.get("needs", "bash")
        if shutil.which(needed, path=self.environment["PATH"]) is None:
            raise BlockSkipped(f"there is no {needed} here")
        script = self.scratch / f"block_{block.line}.sh"
        script.write_text(block.text, encoding="utf-8")
        command = ["bash", "-euo", "pipefail", script]
        if "slurm" not in block.options:
            return self.run(command, int(block.options.get("exit", 0)))
        slurm = pathlib.Path(__file__).resolve().parent / "one_node_slurm.py"
        return self.run([sys.executable, slurm, *command], int(block.options.get("exit", 0)),
                        skipped="Slurm does not start here")

    def check_norun(self, block, expected):
        commands = []
        for line in block.lines:
            commands += [part.strip() for part in line.partition("#")[0].split("&&")]
        commands = [command for command in commands if command]
        for command in commands:
            allowed = re.match(
                r"((\w+=\S+ )*(bash )?(\./)?(?P<script>scripts/(demo|playground|test)\.sh)|git clone"
                r"|cmake --preset (?P<preset>\w+)$|cmake --build build/release --target (?P<targets>[\w ]+)$"
                r"|(sudo )?apt-get|cd)(?![^ ])", command)
            if not allowed:
                raise BlockError(f"norun is not allowed for: {command}")
            script = allowed["script"]
            if script and not os.access(self.arguments.source / script, os.X_OK):
                raise BlockError(f"not there, or not executable: {script}")
            self.check_cmake(allowed["preset"], (allowed["targets"] or "").split())
        if expected is None:
            return None
        if [re.sub(r"^(bash )?(\./)?", "", command) for command in commands] != ["scripts/demo.sh"]:
            raise BlockError("the output of this norun block is not tested; "
                             "write ```console-output for it")
        plan = shutil.which("plan", path=self.environment["PATH"])
        if plan is None:
            raise BlockError("the program plan is not built")
        return self.run([self.arguments.source / "scripts/demo.sh"], cwd=self.arguments.source,
                        SCALEWISE_TOOLS=pathlib.Path(plan).parent)

    def check_cmake(self, preset, targets):
        source = self.arguments.source
        presets = json.loads((source / "CMakePresets.json").read_text(encoding="utf-8"))["configurePresets"]
        if preset and preset not in {one["name"] for one in presets}:
            raise BlockError(f"no such preset: {preset}")
        lists = [source / folder / "CMakeLists.txt" for folder in ("examples", "lab", "tests", "tools")]
        text = "\n".join(path.read_text(encoding="utf-8") for path in lists)
        for target in targets:
            if not re.search(rf"(?m)^[^#\n]*\b{target}\b", text):
                raise BlockError(f"no such target: {target}")

    def run_python(self, block, _expected):
        if "fragment" in block.options:
            return self.find_fragment(block)
        interpreter = "python3"
        if re.search(r"^\s*(import|from) torch\b", block.text, re.MULTILINE):
            interpreter = python_with_torch()
            if interpreter is None:
                raise BlockSkipped("no Python interpreter here has PyTorch")
        script = self.scratch / f"block_{block.line}.py"
        script.write_text(block.text, encoding="utf-8")
        return self.run([interpreter, script], int(block.options.get("exit", 0)))

    def run_c(self, block, _expected):
        if "fragment" not in block.options:
            raise BlockError("write ```c fragment=NAME for a part of a program in examples/")
        return self.find_fragment(block)

    def run_json(self, block, _expected):
        try:
            json.loads(block.text)
        except json.JSONDecodeError as error:
            raise BlockError(f"not JSON: {error}") from error

    def run_cmake(self, block, _expected):
        project = self.scratch / f"block_{block.line}_cmake"
        shutil.rmtree(project, ignore_errors=True)
        project.mkdir()
        text = block.text
        linked = set(re.findall(r"target_link_libraries\s*\(\s*([\w.-]+)", text))
        defined = set(re.findall(r"add_(?:executable|library)\s*\(\s*([\w.-]+)", text))
        head = ""
        if not re.search(r"\bcmake_minimum_required\b", text):
            head += "cmake_minimum_required(VERSION 3.25)\n"
        if not re.search(r"\bproject\s*\(", text):
            head += "project(page LANGUAGES CXX)\n"
        for target in sorted(linked - defined):
            head += f"add_executable({target} {target}.cpp)\n"
        for source in set(re.findall(r"[\w./-]+\.cpp\b", head + text)):
            (project / source).parent.mkdir(parents=True, exist_ok=True)
            (project / source).write_text("#include <scalewise/scalewise.hpp>\nint main() {}\n")
        for folder in re.findall(r"add_subdirectory\s*\(\s*([\w./-]*scalewise)\b", text):
            (project / folder).parent.mkdir(parents=True, exist_ok=True)
            (project / folder).symlink_to(self.arguments.source, target_is_directory=True)
        (project / "CMakeLists.txt").write_text(head + text, encoding="utf-8")
        self.run([self.arguments.cmake, "-S", project, "-B", project / "build",
                  "-G", self.arguments.generator,
                  f"-DCMAKE_CXX_COMPILER={self.arguments.compiler}",
                  f"-DCMAKE_PREFIX_PATH={self.arguments.prefix}",
                  f"-DFETCHCONTENT_SOURCE_DIR_SCALEWISE={self.arguments.source}"])


@functools.cache
def python_with_torch():
    for interpreter in ("python3", "/usr/bin/python3"):
        found = shutil.which(interpreter)
        if found and subprocess.run([found, "-c", "import torch"], check=False,
                                    capture_output=True).returncode == 0:
            return found
    return None


def expected_output(blocks, index):
    """The text block that states the output of blocks[index], or None."""
    if blocks[index].language not in RUNNABLE or "fragment" in blocks[index].options:
        return None
    following = blocks[index + 1] if index + 1 < len(blocks) else None
    if following and following.language == "text" and not following.after_heading:
        return following
    return None


def check_page(path, arguments):
    """Prints what fails or is skipped, and returns the exit code."""
    try:
        blocks = read_blocks(path)
    except BlockError as error:
        print(f"FAILED {path}:{error}")
        return 1
    page = Page(path, arguments)
    page.lay_out_clone()
    failures = tested = skipped = 0
    for index, block in enumerate(blocks):
        if block.language in UNTESTED:
            continue
        tested += 1
        expected = expected_output(blocks, index)
        try:
            check_promise(block)
            output = page.run_block(block, expected)
            if expected is not None:
                compare(expected, output, f"line {expected.line}")
        except BlockSkipped as reason:
            skipped += 1
            tested -= 1
            print(f"skipped {path}:{block.line} ({block.language}): {reason}")
        except BlockError as error:
            failures += 1
            print(f"FAILED {path}:{block.line} ({block.language}): {error}")
    print(f"{path}: {tested} blocks tested, {failures} failed, {skipped} skipped")
    if failures:
        return 1
    return SKIPPED if skipped else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page", type=pathlib.Path)
    parser.add_argument("--source", type=pathlib.Path, required=True, help="the source tree")
    parser.add_argument("--scratch", type=pathlib.Path, required=True,
                        help="folder to work in; it is emptied first")
    parser.add_argument("--prefix", type=pathlib.Path, required=True, help="an installed copy")
    parser.add_argument("--compiler", default="c++")
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("--generator", default="Ninja")
    parser.add_argument("--include", action="append", default=[], help="include folder")
    parser.add_argument("--library", action="append", default=[], help="library to link")
    parser.add_argument("--bin", action="append", default=[], help="folder to add to PATH")
    arguments = parser.parse_args()
    for name in ("source", "scratch", "prefix"):
        setattr(arguments, name, getattr(arguments, name).resolve())
    shutil.rmtree(arguments.scratch, ignore_errors=True)
    arguments.scratch.mkdir(parents=True)
    sys.exit(check_page(arguments.page, arguments))


if __name__ == "__main__":
    main()
