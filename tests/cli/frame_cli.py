#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""What all programs have in common: options, messages, lost output, signals and exit codes.

    frame_cli.py FOLDER_OF_PROGRAMS [FOLDER_OF_PROGRAMS] [TEST...]

The folder of plan is one of them; what is said of all programs is then tried with all that the folders have.
"""

import functools
import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from quick_start import QUICK, programs

PROGRAMS, TESTS = programs()
NAMES = sorted(PROGRAMS)
TEXT = "It is a truth universally acknowledged, that a tested program may be trusted. " * 20
DIGITS = pathlib.Path(__file__).resolve().parents[2] / "tools/data/digits.csv"

# Options that are not inputs of a result, each for a reason: how a program runs, what it shows, where
# it writes.
NO_INPUTS = {"--help", "--version", "--dry-run", "--threads", "--quiet", "--format", "--out", "--store", "--record",
             "--layers", "--list-rules", "--list-presets", "--list-names", "--log", "--checkpoint", "--overwrite", "--save",
             "--emit-tasks", "--run-one", "--collect", "--results", "--describe"}
# And which runs there are, where each stored run says that of itself.
RUNS = {"coordinate_check": {"--sizes", "--seeds", "--budget"}, "learning_rate_transfer": {"--sizes", "--seeds", "--budget"},
        "kernel_regression": {"--kernels"}, "tune": {"--trials", "--carry-to", "--verify"},
        **{name: {"--sizes", "--seeds"} for name in ("alignment", "empirical_ntk", "kernel_convergence", "shallow_encoder")}}
# Options of a table of runs, next to which no other is an input.
TABLES = {"--judge", "--against", "--where", "--against-where", "--size-column", "--rate-column", "--seed-column", "--loss-column"}
# Options that take names of rules.
RULES = {"--rule", "--compare", "--start", "--trained-as"}
# Programs that take names of files without an option.
FILES = {"inspect"}
# How often a checkpoint or a row of the log is written, and the steps of a run that can be made longer.
TRAIN_ONLY = {"--checkpoint-every"}
# Other options that an option needs.
CONTEXT = {("kernel_regression", "--text"): ["--data", "chapters"],
           ("learning_rate_transfer", "--start"): ["--rule", "maximal-update"],
           "--tune": ["--weight-decay", "0.1"], "--emit-tasks": ["--results", "new"], "--run-one": ["--results", "new"],
           ("deep_init", "--seeds"): ["--measure"], "--collect": ["--results", "new"], "--results": ["--collect"]}
# Programs whose --dry-run trains for some steps, to say what their runs will cost: small models.
TINY_MODEL = ["--sizes", "16,32", "--width", "16", "--depth", "1", "--seq", "8", "--batch", "4"]
TINY = [*TINY_MODEL, "--steps", "5"]
SMALL = {"coordinate_check": TINY, "learning_rate_transfer": TINY, "alignment": TINY, "empirical_ntk": [*TINY, "--inputs", "2"]}

# Arguments of a run that takes a hundredth of a second and writes a report.
SHALLOW = ["--depth", "4", "--width", "16", "--heads", "2", "--seq", "32", "--quiet"]

# A library that grants MOST_THREADS threads.
FEW_THREADS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
int pthread_create(pthread_t* thread, const pthread_attr_t* how, void* (*run)(void*), void* with) {
  static int made;
  if (__sync_add_and_fetch(&made, 1) > atoi(getenv("MOST_THREADS"))) return EAGAIN;
  int (*real)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*) = dlsym(RTLD_NEXT, "pthread_create");
  return real(thread, how, run, with);
}
"""


def run(name, *arguments, **options):
    return subprocess.run([PROGRAMS[name], *map(str, arguments)], capture_output=True, text=True, timeout=120,
                          check=False, env=QUICK, **options)


def shell(script, name, *arguments, cwd=None):
    """Runs "$@" as a script of a shell says."""
    return subprocess.run(["bash", "-c", script, "bash", PROGRAMS[name], *map(str, arguments)], capture_output=True,
                          text=True, timeout=120, check=False, cwd=cwd, env=QUICK)


@functools.cache
def options_of(name):
    """Of --help: the option, what kind of value it takes, and its words."""
    found = {}
    for match in re.finditer(r"^  (?:-h,)?(--[a-z0-9-]+)(?: (N,\.\.\.|N|TEXT,\.\.\.|TEXT|PATH))?(?:[= ].*)?$",
                             run(name, "--help").stdout, re.MULTILINE):
        found[match[1]] = match[2] or "flag"
    return found


def words_of(name, option):
    """The words that the message of a wrong one lists, or some names of rules."""
    if option in RULES:
        return ["HE", "gpt-2", "shallowHe", "mup"]
    message = run(name, option, "no-such-word").stderr
    match = re.search(r"expected ([a-z0-9-]+(?:, [a-z0-9-]+)* or [a-z0-9-]+)(?: \(|$)", message.strip())
    return re.split(", | or ", match[1]) if match else []


class Frame(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        (self.folder / "text.txt").write_text(TEXT, encoding="utf-8")
        (self.folder / "other.txt").write_text(TEXT[::-1], encoding="utf-8")

    def refused(self, done, name, start):
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertTrue(done.stderr.startswith(f"{name}: {start}"), done.stderr)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)

    # ---- options ---------------------------------------------------------------------------------

    def test_help_and_version(self):
        for name in NAMES:
            with self.subTest(name):
                self.assertEqual(run(name, "--help").returncode, 0)
                self.assertIn("--dry-run", options_of(name))
                version = run(name, "--version")
                self.assertEqual(version.returncode, 0)
                self.assertRegex(version.stdout, rf"^{name} of scalewise \d+\.\d+\.\d+\nproducts .+, vectors .+, threads \d+\n$")

    def test_unknown_options_and_missing_values(self):
        for name in NAMES:
            with self.subTest(name):
                option = next(option for option, kind in options_of(name).items() if kind not in ("flag", "PATH"))
                self.refused(run(name, option + "x", "1"), name, f"{option}x (unknown): expected")
                self.assertIn(f"did you mean {option}?", run(name, option + "x").stderr)
                words = "cannot open word: no such file" if name in FILES else "word (unknown): expected"
                self.refused(run(name, "word"), name, words)
                self.refused(run(name, option), name, f"{option} (missing): expected")

    def test_numbers_that_no_option_takes(self):
        """Each option gets one of them, and each program gets them all: one function reads them."""
        values = itertools.cycle(("nan", "-inf", "x", "1e400", "-7", "0x1", "8,nan"))
        for name in NAMES:
            for option, kind in options_of(name).items():
                if not kind.startswith("N"):
                    continue
                value = next(value for value in values if kind == "N,..." or "," not in value)
                with self.subTest(name=name, option=option, value=value):
                    shown = value.removeprefix("8,")
                    self.refused(run(name, option, value), name, f"{option} = {shown}: expected")

    def test_rules_have_several_names_and_one_id(self):
        found = set()
        for name in NAMES:
            shallow = name == "shallow_encoder"
            typed, rule = ("Shallow NTK", "shallow-ntk") if shallow else ("\u03bcP", "maximal-update")
            for option in RULES & set(options_of(name)):
                found.add(option)
                absolute = option == "--start" or name == "deep_init"  # no rule that is relative to a base
                words = ("GPT-2", "gpt2") if absolute else (typed, rule)
                with self.subTest(name=name, option=option):
                    for word in words:
                        base = ["--base", 64] if name == "train" else []
                        context = CONTEXT.get((name, option), [])
                        done = run(name, "--dry-run", *SMALL.get(name, []), *base, *context, option, word)
                        self.assertEqual(done.returncode, 0, done.stderr)
                        shown = f'["{words[1]}"]' if option == "--compare" else words[1]
                        self.assertIn(f"\n{option} = {shown}\n", "\n" + done.stdout)
                    self.refused(run(name, "--dry-run", option, "gpt99x"), name, f"{option} = gpt99x: expected the id")
        self.assertEqual(found, RULES)

    def test_seeds_of_nothing_are_refused(self):
        self.refused(run("deep_init", *SHALLOW, "--seeds", 3), "deep_init", "--seeds (given): expected it with --measure")

    def test_the_last_of_several_values_counts(self):
        once = run("deep_init", "--dry-run", "--depth", "3").stdout
        self.assertIn("--depth = 3\n", once)
        self.assertEqual(run("deep_init", "--dry-run", "--depth", "1", "--depth", "3").stdout, once)

    def test_every_option_is_an_input_unless_it_says_otherwise(self):
        for name in NAMES:
            kinds = options_of(name)
            common = ["--text", "text.txt"] if "--text" in kinds else []
            small = SMALL.get(name, [])

            @functools.cache
            def fingerprint(*arguments):
                text = [] if "--digits" in arguments else common  # one or the other
                done = run(name, "--dry-run", *text, *small, *arguments, cwd=self.folder)
                return re.search("^fingerprint .*", done.stdout, re.MULTILINE)[0] if done.returncode == 0 else None

            for option, kind in kinds.items():
                if option in ("--help", "--version", "--dry-run", "--plans"):  # the last reads its files
                    continue
                if name == "learning_rate_transfer" and option in TABLES:
                    continue
                context = CONTEXT.get((name, option), CONTEXT.get(option, []))
                plain = fingerprint(*context) or fingerprint()  # some come in pairs alone
                self.assertIsNotNone(plain, name)
                if kind == "flag":
                    tries = [[option]]
                elif kind == "PATH":
                    tries = [[option, "other.txt"], [option, "new"], [option, DIGITS]]
                elif kind == "N,...":
                    tries = [[option, "64,128"], [option, "32,64"], [option, "16,48"]]
                elif kind == "N":
                    tries = [[option, value] for value in ("3", "0.75", "4", "0.625", "8", "40", "64", "200")]
                else:
                    tries = [[option, word] for word in words_of(name, option) or ["a=1", "tied_head=true", "missing:epsilon"]]
                found = []
                for arguments in tries:
                    found.append(fingerprint(*context, *arguments))
                    if found[-1] not in (plain, None) or (option in NO_INPUTS and found.count(plain) == 2):
                        break  # one that differs says what the option is
                with self.subTest(name=name, option=option):
                    self.assertTrue(any(found), tries)
                    other = [one for one in found if one not in (plain, None)]
                    if option in NO_INPUTS | RUNS.get(name, set()) | TRAIN_ONLY:
                        if option != "--sizes":  # the smallest is the base
                            self.assertFalse(other)
                    else:
                        self.assertTrue(other)

    def test_what_runs_will_cost_is_said_before_they_begin(self):
        for name, small in SMALL.items():
            if name not in PROGRAMS:
                continue
            with self.subTest(name):
                done = run(name, "--dry-run", *small, "--seeds", "3", "--threads", "1", "--out", "none", cwd=self.folder)
                self.assertRegex(done.stdout, r"\nexpected \d+ runs, [0-9.e+]+ operations, \d+ MiB, [0-9.e-]+ s on 1 threads\n$")
                self.assertFalse((self.folder / "none").exists())
                counts = [int(re.search(r"expected (\d+) runs", run(name, "--dry-run", *small, "--seeds", n,
                                                                    cwd=self.folder).stdout)[1]) for n in ("2", "4")]
                self.assertGreater(counts[1], counts[0])

    def test_steps_that_are_not_timed_are_expected_too(self):
        def seconds(*options):
            return float(re.search(r", ([0-9.e+-]+|-?nan) s on", run(
                "learning_rate_transfer", "--dry-run", *TINY_MODEL, "--seeds", 1, *options, cwd=self.folder).stdout)[1])

        # A hundred times as many steps; what a run does besides takes far less than ten of them.
        self.assertGreater(seconds("--steps", 100000), 10 * seconds("--steps", 1000))
        self.assertGreater(seconds("--steps", 1000, "--rate", 1e20), 0)  # diverges in the first steps

    def test_data_are_their_bytes(self):
        def fingerprint(path):
            return run("deep_init", "--dry-run", "--text", path, cwd=self.folder).stdout

        plain = fingerprint("text.txt")
        (self.folder / "copy.txt").write_text(TEXT, encoding="utf-8")
        self.assertEqual(fingerprint("copy.txt"), plain)
        (self.folder / "copy.txt").write_text(TEXT.replace("truth", "Truth"), encoding="utf-8")
        self.assertNotEqual(fingerprint("copy.txt"), plain)

    # ---- output ----------------------------------------------------------------------------------

    @unittest.skipUnless(pathlib.Path("/dev/full").exists(), "no /dev/full here")
    def test_lost_output_has_a_message_and_an_exit_code(self):
        for name in NAMES:
            for arguments in (["--help"], ["--version"], ["--dry-run", *SMALL.get(name, [])]):
                for where in (">/dev/full", ">&-"):
                    with self.subTest(name=name, arguments=arguments, where=where):
                        done = shell(f'"$@" {where}', name, *arguments)
                        self.refused(done, name, "cannot write all of the output")
        for where in (">/dev/full", ">&-", "| true; exit ${PIPESTATUS[0]}"):
            done = shell(f'"$@" {where}', "plan", "--rule", "gpt2", "--preset", "gpt2-xl", "--format", "csv")
            self.refused(done, "plan", "cannot write all of the output")

    def test_a_closed_output_is_no_file_of_results(self):
        done = shell('"$@" >&-', "plan", "--rule", "gpt2", "--preset", "gpt2", "--save", "plan.txt", cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue((self.folder / "plan.txt").read_text(encoding="utf-8").startswith("rule "))

    def test_a_limit_of_file_size_is_an_error_and_leaves_nothing(self):
        big = ["--rule", "gpt2", "--preset", "gpt2-xl", "--format", "json"]
        done = shell('ulimit -f 4; "$@"', "plan", *big, "--save", "plan.json", cwd=self.folder)
        self.refused(done, "plan", "output file = plan.json")
        self.assertEqual(len(list(self.folder.iterdir())), 2)
        self.refused(shell('ulimit -f 4; "$@" >out', "plan", *big, cwd=self.folder), "plan", "cannot write all")
        self.refused(shell('ulimit -f 0; "$@"', "deep_init", *SHALLOW, "--out", "new", cwd=self.folder), "deep_init",
                     "--out = new: expected a folder that can be written")
        self.assertEqual(list((self.folder / "new").iterdir()), [])

    def test_places_that_cannot_be_written_are_found_before_the_work(self):
        (self.folder / "loop").symlink_to("loop")
        for name in NAMES:
            for option, kind in options_of(name).items():
                if kind != "PATH" or option not in NO_INPUTS:
                    continue
                for path in ("loop", "text.txt/x", ""):
                    with self.subTest(name=name, option=option, path=path):
                        extra = ["--checkpoint", "c"] if (name, option) == ("train", "--log") else []
                        done = run(name, *extra, option, path, cwd=self.folder)
                        self.refused(done, name, f"{option} {f'= {path}' if path else '(empty)'}: expected")

    def test_another_experiment_is_not_written_over(self):
        file = self.folder / "out" / "deep_init.json"

        def report(*more):
            return run("deep_init", *SHALLOW, "--out", "out", *more, cwd=self.folder)

        self.assertEqual(report().returncode, 0)
        first = file.read_bytes()
        self.refused(report("--heads", 4), "deep_init", "--heads = 4: expected 2")
        self.assertEqual(report().returncode, 0)
        self.assertEqual(file.read_bytes(), first)
        done = run("coordinate_check", *TINY, "--seeds", 1, "--quiet", "--out", "out", cwd=self.folder)
        self.assertEqual(done.returncode, 3, done.stderr)  # a folder for several
        deep = "[" * 100_000
        for text in ("{}", deep, deep + "]" * 100_000, '{"settings": {"depth": ' + deep + "]" * 100_000 + "}}", '{"settings": 1}'):
            file.write_text(text, encoding="utf-8")
            self.refused(report(), "deep_init", "--out = out: expected a folder without another")
        settings = {"settings": dict(reversed(json.loads(first)["settings"].items()))}  # the same object of JSON
        file.write_text(json.dumps(settings), encoding="utf-8")
        self.assertEqual(report().returncode, 0)
        file.unlink()
        os.mkfifo(file)  # nobody writes to it
        self.refused(report(), "deep_init", "--out = out: expected a folder without another")

    def test_no_result_replaces_a_file_that_is_read(self):
        gpt2 = {"model_type": "gpt2", "n_embd": 8, "n_layer": 1, "n_head": 2, "n_positions": 4, "vocab_size": 8}
        header = json.dumps({"wte.weight": {"dtype": "F32", "shape": [8, 8], "data_offsets": [0, 256]}}).encode()
        files = {"config.json": json.dumps(gpt2).encode(), "m.safetensors": len(header).to_bytes(8, "little") + header + bytes(256),
                 "m.safetensors.index.json": b'{"weight_map": {"wte.weight": "m.safetensors"}}',
                 "names.json": b"{}", "sizes.csv": b"width,lr,loss\n8,1,2\n8,2,1\n8,4,2\n16,1,2\n16,2,1\n16,4,2\n",
                 "coordinate_check.csv": b"size,seed,step,signal,name,sum_abs,sum_squares,count\n16,1,0,value,logits,1,1,1\n",
                 "deep_init.csv": TEXT.encode()}
        for name, content in files.items():
            (self.folder / name).write_bytes(content)
        (self.folder / "link.json").symlink_to("config.json")
        (self.folder / "out").mkdir()
        (self.folder / "out/sizes.csv").symlink_to("../sizes.csv")
        (self.folder / "out/width=16.json").symlink_to("../config.json")
        inspect, rule = ["inspect", "m.safetensors"], ["plan", "--rule", "gpt2", "--config", "config.json"]
        index = ["inspect", "m.safetensors.index.json"]
        sweep = ["learning_rate_transfer", "--quiet"]
        tune = ["tune", "--command", "echo {plan} {seed} {steps}", "--config", "config.json"]
        for words, written in (
                ([*inspect, "--describe", "./m.safetensors"], "--describe = ./m.safetensors"),
                ([*inspect, "--save", "m.safetensors", "--format", "json"], "--save = m.safetensors"),
                ([*inspect, "--save", "config.json"], "--save = config.json"),  # which is next to it
                ([*index, "--save", "m.safetensors"], "--save = m.safetensors"),
                ([*index, "--describe", "m.safetensors"], "--describe = m.safetensors"),
                ([*rule, "--save", "link.json"], "--save = link.json"),
                ([*rule, "--names", "names.json", "--save", self.folder / "names.json"], "--save = "),
                ([*rule, "--dry-run", "--save", "config.json"], "--save = config.json"),
                ([*sweep, "--judge", "sizes.csv", "--out", "."], "--out = ./sizes.csv"),
                ([*sweep, "--judge", "sizes.csv", "--out", "out"], "--out = out/sizes.csv"),
                ([*sweep, "--judge", "text.txt", "--against", "sizes.csv", "--out", "."], "--out = ./sizes.csv"),
                (["coordinate_check", "--judge", "coordinate_check.csv", "--out", "."], "--out = ./coordinate_check.csv"),
                (["deep_init", *SHALLOW, "--text", "deep_init.csv", "--out", "."], "--out = ./deep_init.csv"),
                ([*tune, "--results", "out"], "--results = out/width=16.json")):
            with self.subTest(words=words):
                self.refused(run(*words, cwd=self.folder), words[0], written)
                for name, content in files.items():
                    self.assertEqual((self.folder / name).read_bytes(), content, name)
        for words in ([*rule, "--save", "plan.json"], [*sweep, "--judge", "sizes.csv", "--out", "new"],
                      ["deep_init", *SHALLOW, "--text", "text.txt", "--out", "."]):
            self.assertIn(run(*words, cwd=self.folder).returncode, (0, 3), words)  # another place, or another name there

    def test_a_result_is_printed_even_where_it_cannot_be_kept(self):
        folder = self.folder / "out"
        (folder / "deep_init_profile.csv").mkdir(parents=True)  # a folder where a file should be
        done = run("deep_init", *SHALLOW, "--out", folder)
        self.assertEqual(done.returncode, 2)
        self.assertIn("forward_growth", done.stdout)
        self.assertIn("deep_init_profile.csv", done.stderr)

    def test_no_memory_is_one_message(self):
        done = shell('ulimit -v 50000; "$@"', "plan", "--rule", "gpt2", "--preset", "gpt2", "--set", "depth=5000",
                     "--layers")
        self.refused(done, "plan", "not enough memory")

    def test_no_memory_for_a_model_is_one_message(self):
        for size in (150_000, 300_000):
            with self.subTest(f"{size} KiB"):
                done = shell(f'ulimit -v {size}; "$@"', "coordinate_check", "--sizes", "16,2048", "--depth", "1", "--steps", "1",
                             "--seeds", "1", "--threads", "2", "--quiet", cwd=self.folder)
                self.refused(done, "coordinate_check", "not enough memory")

    def test_too_few_threads_are_one_message(self):
        compiler = shutil.which("cc")
        if sys.platform != "linux" or compiler is None:
            self.skipTest("no compiler of C, or no Linux")
        if "threads 1\n" in run("coordinate_check", "--version").stdout:
            self.skipTest("one thread in any case")
        (self.folder / "few.c").write_text(FEW_THREADS, encoding="utf-8")
        subprocess.run([compiler, "-shared", "-fPIC", "few.c", "-o", "few.so", "-ldl"], check=True, cwd=self.folder)
        environment = {**QUICK, "LD_PRELOAD": str(self.folder / "few.so")}
        for most in range(3):
            with self.subTest(most):
                done = subprocess.run([PROGRAMS["coordinate_check"], *TINY_MODEL, "--steps", "1", "--seeds", "1", "--threads",
                                       "3", "--quiet"],
                                      env={**environment, "MOST_THREADS": str(most)}, capture_output=True, text=True, timeout=60,
                                      check=False, cwd=self.folder)
                self.assertEqual(done.returncode, 3 if most == 2 else 2, done.stderr)
                if most < 2:  # OpenMP ends the program
                    self.assertIn("a library ended the program: does it lack memory or threads?", done.stderr)
        for name in ("coordinate_check", "deep_init"):
            done = subprocess.run([PROGRAMS[name]], env={**QUICK, "OMP_NUM_THREADS": "100000"}, capture_output=True,
                                  text=True, timeout=60, check=False, cwd=self.folder)
            self.refused(done, name, "OMP_NUM_THREADS = 100000: expected at most 1024")
        found = [subprocess.run([PROGRAMS["coordinate_check"], *TINY, "--seeds", "1", "--quiet"], capture_output=True, text=True,
                                env={**QUICK, "OMP_NUM_THREADS": count}, timeout=60, check=False, cwd=self.folder)
                 for count in ("2", "2,100000")]  # the second is for loops within loops
        self.assertEqual(*((done.returncode, done.stdout, done.stderr) for done in found))

    @unittest.skipUnless(sys.platform.startswith("linux"), "paths are bytes on Linux")
    def test_paths_need_not_be_text(self):
        out = os.fsencode(self.folder) + b"/\xff\xfe"
        done = subprocess.run([PROGRAMS["deep_init"], *SHALLOW, "--format", "json", "--out", out], capture_output=True,
                              timeout=120, check=False, env=QUICK)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(out + b"/deep_init.json", "rb") as file:
            self.assertEqual(json.load(file), json.loads(done.stdout))
        done = subprocess.run([PROGRAMS["deep_init"], "--set", b"\xff=1"], capture_output=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (2, b""))
        self.assertIn(b"--set = ?=1: expected a text in UTF-8", done.stderr)
        model = os.fsencode(self.folder) + b"/\xff.safetensors"
        header = b'{"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}'
        with open(model, "wb") as file:
            file.write(len(header).to_bytes(8, "little") + header + bytes(4))
        for format, code in (("table", 0), ("json", 0), ("csv", 0)):
            done = subprocess.run([PROGRAMS["inspect"], model, "--format", format], capture_output=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (code, b""))
            self.assertIn(b"a", done.stdout.decode("utf-8").encode())  # which is text
        self.assertIn(b"cannot open", subprocess.run([PROGRAMS["inspect"], model + b"x"], capture_output=True, check=False).stderr)

    # ---- signals ---------------------------------------------------------------------------------

    def start(self, name, *arguments):
        process = subprocess.Popen([PROGRAMS[name], *map(str, arguments)], cwd=self.folder, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=QUICK)
        self.addCleanup(process.kill)
        return process

    def interrupt(self, process, number):
        """As soon as the program handles signals."""
        status = pathlib.Path(f"/proc/{process.pid}/status")
        for _ in range(10000):
            caught = re.search(r"SigCgt:\s*([0-9a-f]+)", status.read_text(encoding="utf-8"))
            if caught and int(caught[1], 16) >> (number - 1) & 1:
                break
            time.sleep(0.001)
        process.send_signal(number)

    @unittest.skipUnless(pathlib.Path("/proc/self/status").exists(), "no /proc here")
    def test_the_first_signal_ends_after_the_current_run(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            with self.subTest(code=code):
                process = self.start("coordinate_check", *TINY_MODEL, "--steps", 2000, "--threads", 1)
                self.interrupt(process, number)
                out, message = process.communicate(timeout=60)
                self.assertEqual(process.returncode, code, message)
                self.assertEqual(out, "")
                self.assertIn("coordinate_check: finishing the current run; press Ctrl-C again to abort\n", message)

    @unittest.skipUnless(pathlib.Path("/proc/self/status").exists(), "no /proc here")
    def test_the_second_signal_ends_at_once(self):
        process = self.start("coordinate_check", *TINY_MODEL, "--steps", 10**8, "--out", "out")
        self.interrupt(process, signal.SIGINT)
        while "press Ctrl-C again" not in process.stderr.readline():
            pass
        self.assertIsNone(process.poll())
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertLess(time.monotonic() - begin, 5)
        self.assertEqual(process.returncode, 130)
        self.assertEqual(list((self.folder / "out").iterdir()), [])

    @unittest.skipUnless(pathlib.Path("/proc/self/status").exists(), "no /proc here")
    def test_finished_runs_are_reported(self):
        process = self.start("deep_init", *SHALLOW[:-1], "--measure", "--seeds", 1000, "--threads", 1)
        time.sleep(0.5)
        self.interrupt(process, signal.SIGINT)
        out, message = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, message)
        self.assertRegex(out, r"inconclusive: stopped after \d+ of 1000 runs")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *TESTS], verbosity=1)
