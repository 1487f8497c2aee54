#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Keys are typed into real shells, and the tab key completes options of the programs.

    completion_cli.py FOLDER_OF_PROGRAMS
"""

import os
import pathlib
import pty
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

PROGRAMS = pathlib.Path(sys.argv[1]).resolve()
NAMES = sorted(path.name for path in PROGRAMS.iterdir() if path.is_file() and os.access(path, os.X_OK)
               and not path.suffix)
# How a shell begins without the user's files, and what it is told first of each program: to complete
# it, and to write its arguments to a file instead of running it.
SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "",
             "source <({program} --completion bash); {name}() {{ printf '%s\\n' \"$@\" >arguments.tmp; mv arguments.tmp arguments; }}"),
    "zsh": (["zsh", "-f", "-i"], "autoload -Uz compinit; compinit -u -D",
            "source <({program} --completion zsh); {name}() {{ printf '%s\\n' \"$@\" >arguments.tmp; mv arguments.tmp arguments }}"),
    "fish": (["fish", "--no-config", "-i"], "",
             "{program} --completion fish | source; function {name}; printf '%s\\n' $argv >arguments.tmp; mv arguments.tmp arguments; end"),
}
# Keys, and the arguments that a program gets. zsh ends names of folders otherwise and puts "=" after an option, the others a space.
TYPED = [
    ("plan --rule max\t", "--rule maximal-update"),
    ("plan --rule=max\t", "--rule maximal-update"),
    ("plan --ru\tmax\t", "--rule maximal-update"),
    ("plan --single\t", "--single-rate"),
    ("plan --compare he,xav\t", "--compare he,xavier"),
    ("plan --set a=1 --se\tb=2", "--set a=1 --set b=2"),
    ("plan --preset gpt2-x\t", "--preset gpt2-xl"),
    ("plan --names nanog\t", "--names nanogpt"),
    ("plan --names own\t", "--names own.json"),
    ("plan --config conf\t", "--config config of mine.json"),
    ("inspect mod\t", "model.gguf"),
    ("deep_init --width conf\t", "--width conf"),  # a number
    ("deep_init --out res\t", "--out results"),
]


class Terminal:
    """A shell in a terminal."""

    def __init__(self, shell, folder):
        command, first, tell = SHELLS[shell]
        self.arguments = folder / "arguments"
        self.screen = b""
        self.child, self.terminal = pty.fork()
        if self.child == 0:
            os.chdir(folder)
            os.environ.update(HOME=str(folder), TERM="xterm", PS1="$ ", COLUMNS="500")
            os.execvp(command[0], command)
        threading.Thread(target=self.read, daemon=True).start()
        self.type(first)
        for name in sorted({keys.split()[0] for keys, _ in TYPED}):
            self.type(tell.format(program=shlex.quote(str(PROGRAMS / name)), name=name))

    def read(self):
        try:
            while True:
                self.screen += os.read(self.terminal, 65536)
        except OSError:  # the shell has ended
            pass

    def type(self, keys):
        os.write(self.terminal, keys.encode() + b"\r")

    def arguments_after(self, keys):
        """What the program got."""
        self.arguments.unlink(missing_ok=True)
        self.type(keys)
        end = time.monotonic() + 20
        while not self.arguments.exists():
            if time.monotonic() > end:
                return "(no program was called)\n" + self.screen[-3000:].decode(errors="replace")
            time.sleep(0.01)
        words = self.arguments.read_text(encoding="utf-8").splitlines()
        return " ".join(word.replace("=", " ", 1) if word.startswith("--") else word for word in words).rstrip("/")

    def close(self):
        os.kill(self.child, signal.SIGKILL)
        os.waitpid(self.child, 0)
        os.close(self.terminal)


def script(name, shell):
    done = subprocess.run([PROGRAMS / name, "--completion", shell], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def options_of(name):
    text = subprocess.run([PROGRAMS / name, "--help"], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"^  (?:-h,)?(--[a-z0-9-]+)", text, re.MULTILINE))


class Completion(unittest.TestCase):
    def typed(self, shell):
        if not shutil.which(shell):
            self.skipTest(f"no {shell} here")
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            for name in ("config of mine.json", "own.json", "model.gguf"):
                (folder / name).write_text("{}", encoding="utf-8")
            (folder / "results").mkdir()
            terminal = Terminal(shell, folder)
            try:
                for keys, arguments in TYPED:
                    with self.subTest(shell=shell, keys=keys):
                        self.assertEqual(terminal.arguments_after(keys), arguments)
            finally:
                terminal.close()

    def test_bash(self):
        self.typed("bash")

    def test_zsh(self):
        self.typed("zsh")

    def test_fish(self):
        self.typed("fish")

    def test_every_option_of_every_program_in_bash(self):
        for name in NAMES:
            with self.subTest(name):
                done = subprocess.run(
                    ["bash", "-c", f"{script(name, 'bash')}\nCOMP_WORDS=({name} --); COMP_CWORD=1; _scalewise_{name}; "
                                   "printf '%s\\n' \"${COMPREPLY[@]}\""], capture_output=True, text=True, check=False)
                self.assertEqual((done.stderr, set(done.stdout.split())), ("", options_of(name)))

    def test_every_option_of_every_program_in_fish(self):
        if not shutil.which("fish"):
            self.skipTest("no fish here")
        for name in NAMES:
            with self.subTest(name):
                done = subprocess.run(["fish", "--no-config", "-c", f"{script(name, 'fish')}\ncomplete -C '{name} --'"],
                                      capture_output=True, text=True, check=False)
                found = {line.split("\t")[0] for line in done.stdout.splitlines()}
                self.assertEqual((done.stderr, found), ("", options_of(name)))

    def test_every_option_of_every_program_in_zsh(self):
        if not shutil.which("zsh"):
            self.skipTest("no zsh here")
        for name in NAMES:
            with self.subTest(name):
                text = script(name, "zsh")
                self.assertEqual(set(re.findall(r"'\*?(--[a-z0-9-]+)", text)), options_of(name))
                done = subprocess.run(["zsh", "-f", "-n"], input=text, capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_zsh_finds_it_in_a_folder(self):
        if not shutil.which("zsh"):
            self.skipTest("no zsh here")
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "_plan").write_text(script("plan", "zsh"), encoding="utf-8")
            done = subprocess.run(["zsh", "-f", "-c", f"fpath=({folder} $fpath); autoload -Uz compinit; compinit -u -D; "
                                   "print $_comps[plan]"], capture_output=True, text=True, check=False)
            self.assertEqual(done.stdout, "_plan\n", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=1)
