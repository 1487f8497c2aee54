#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Runs the program `coordinate_check` as a user would: rules pass, and every mistake fails.

    coordinate_cli.py COORDINATE_CHECK_PROGRAM
"""

import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from quick_start import QUICK

PROGRAM = pathlib.Path(sys.argv[1]).resolve()
COMMON = ["--head-dim", "8", "--seq", "16", "--batch", "4", "--steps", "3", "--quiet"]
SIZES = ["--sizes", "16,32,64,128"]
WIDTHS = [*COMMON, *SIZES]
HEADS = [*WIDTHS, "--head-dim", "0", "--heads", "2"]
DEPTHS = [*COMMON, "--axis", "depth", "--sizes", "4,8,16,32", "--width", "32"]

EXPERTS = [*WIDTHS, "--set", "mssp=true", "--gates", "sigmoid"]
FIXED_EXPERTS = [*EXPERTS, "--set", "experts=4", "--set", "experts_per_token=4", "--set", "expert_ff=width"]
MORE_EXPERTS = [*EXPERTS, "--set", "experts=width/4", "--set", "experts_per_token=width/8"]
EXPERTS_ALONE = [*COMMON, "--axis", "experts", "--sizes", "4,8,16,32", "--width", "32", "--set", "mssp=true", "--gates", "sigmoid",
                 "--set", "experts_per_token=experts/2", "--set", "expert_ff=32"]

# Set-ups that have to pass, each with its own options.
RULES = [["maximal-update"], ["maximal-update", "--set", "table=3"], ["maximal-update", "--optimizer", "sgd"],
         ["maximal-update", "--set", "zero_head=true"], ["complete-p", "--placement", "post"], ["depth-mup"],
         ["neural-tangent"], ["nu-gpt"]]

# A mistake, the options of the runs, and words of the diagnosis or of the optimizer's read-back; tests/check has all of them,
# from made-up records.
MISTAKES = [
    ("missing:output-multiplier", WIDTHS, "output multiplier missing"),
    ("twice:hidden-rate", WIDTHS, "hidden rate applied twice"),
    ("missing:all-rates", WIDTHS, "one global rate"),
    ("missing:backward-scale", WIDTHS, "backward scale missing"),
    ("off:hidden-rate:0.05", WIDTHS, "exponent of the hidden rate off by +0.05"),
    ("off:attention-scale:0.2", WIDTHS, "exponent of the attention scale off by +0.20"),
    ("missing:epsilon", WIDTHS, "epsilon ="),
    ("twice:weight-decay", WIDTHS, "weight_decay ="),
    ("missing:attention-scale", HEADS, "attention scale missing"),
    ("missing:router-row", FIXED_EXPERTS, "router as a hidden matrix"),
    ("off:router-rate:0.5", MORE_EXPERTS, "exponent of the router rate off by +0.50"),
    ("off:router-variance:-0.1", FIXED_EXPERTS, "exponent of the router variance off by -0.10"),
    ("missing:expert-factor", EXPERTS_ALONE, "expert factor missing"),
    ("missing:hidden-variance", EXPERTS_ALONE, "hidden variance missing"),
    ("missing:expert-factor", [*MORE_EXPERTS, "--set", "expert_ff=width"], "expert factor missing"),
    ("twice:expert-factor", [*MORE_EXPERTS, "--set", "expert_ff=32"], "expert factor applied twice"),
    ("missing:branch-multiplier", [*DEPTHS, "--rule", "complete-p"], "branch multiplier missing"),
]

BAD = [
    (["--rule", "maximal-updat"], "did you mean maximal-update?"),
    (["--plans", __file__], "--plans (given): expected it with --judge, the records of these models"),
    (["--judge", __file__, "--plans", __file__, "--optimizer", "sgd"], "--optimizer (given): expected none with --plans"),
    (["--judge", __file__, "--plans", __file__, "--set", "table=3"], "--set (given): expected none with --plans"),
    (["--fault", "output-multiplier"], "missing:INGREDIENT, twice:INGREDIENT or off:INGREDIENT:EXPONENT"),
    (["--fault", "off:hidden-rate:much"], "--fault = much: expected an exponent from -2 to 2"),
    (["--fault", "missing:output"], "did you mean output-multiplier?"),
    (["--fault", "missing:branch-multiplier"], "differs between the sizes"),
    (["--sizes", "64"], "at least two sizes"),
    (["--sizes", "64,32"], "each one larger"),
    (["--sizes", "12,24"], "a multiple of --head-dim = 8"),
    (["--judge", "none.jsonl"], "cannot open none.jsonl: no such file"),
    (["--text", "none.txt"], "cannot open none.txt: no such file"),
    (["--set", "d_model=64"], "--set = d_model=64: expected a field without an option (hint: see --width and --sizes)"),
    (["--axis", "depth", "--sizes", "2,4", "--set", "depth=2"], "expected a field without an option (hint: see --depth and --sizes)"),
    (["--set", "heads=1"], "expected a field without an option (hint: see --heads and --head-dim)"),
    (["--axis", "experts", "--sizes", "4,6", "--set", "experts=4"], "expected a field that does not grow (hint: see --sizes)"),
    (["--set", "experts=width/7"], "expected a whole number; the width is 16"),
    (["--set", "experts=width/x"], "expected width/NUMBER or width*NUMBER"),
    (["--set", "experts=widths"], "expected a whole number"),
    (["--axis", "experts", "--sizes", "4,6", "--set", "experts_per_token=experts/4"],
     "expected a whole number; the experts are 6"),
    (["--seq", "1"], "--seq = 1: expected at least 2"),
    (["--judge", "r.jsonl", "--record", "s.jsonl"], "--record (given): expected it without --judge"),
    (["--judge", "r.jsonl", "--trained-as", "he"], "--trained-as (given): expected it without --judge"),
    (["--judge", "r.jsonl", "--fault", "missing:all-rates"], "--fault (given): expected it without --judge"),
]


def run(*arguments, **options):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False,
                          env=QUICK, **options)


class CoordinateCheck(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def test_rules_pass(self):
        for rule, *options in RULES:
            with self.subTest(rule=rule, options=options):
                result = run(*WIDTHS, "--rule", rule, *options)
                self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
                self.assertEqual(result.stdout.splitlines()[-1], "verdict: pass")

    def test_rules_pass_where_heads_depth_or_experts_grow(self):
        for options in (HEADS, [*DEPTHS, "--rule", "complete-p"], EXPERTS_ALONE):
            result = run(*options)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_every_mistake_fails_with_its_name(self):
        for fault, options, words in MISTAKES:
            with self.subTest(fault=fault):
                result = run(*options, "--fault", fault)
                self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
                self.assertIn(words, "\n".join(result.stdout.splitlines()[-4:]))

    def test_other_parameterizations_fail(self):
        result = run(*WIDTHS, "--trained-as", "standard")
        self.assertEqual(result.returncode, 1, result.stdout)
        for rule in ("standard", "gpt2", "ngpt"):
            with self.subTest(rule=rule):
                result = run(*WIDTHS, "--rule", rule)
                self.assertEqual(result.returncode, 1, result.stdout)
                self.assertIn("the rule itself lets it grow", result.stdout)

    def test_too_few_seeds_are_inconclusive(self):
        self.assertEqual(run(*WIDTHS, "--seeds", 1).returncode, 3)

    def test_runs_are_added_until_the_verdict_is_decided_or_the_budget_is_spent(self):
        # Mistakes of half a power are told from the rule by fewer runs than those of a quarter.
        half = run(*WIDTHS, "--set", "table=9", "--format", "json")
        self.assertEqual(half.returncode, 0, half.stderr)
        # 16, 8, 3 and 1 seeds; twice as many; or also those of a size twice as large.
        report = json.loads(half.stdout)
        self.assertIn(report["runs"], (28, 56, 88))
        seeds = {28: [16, 8, 3, 1], 56: [32, 16, 6, 2], 88: [32, 32, 16, 6, 2]}[report["runs"]]
        sizes = [16 * 2**i for i in range(len(seeds))]
        self.assertEqual(report["sizes"], [{"size": size, "seeds": n} for size, n in zip(sizes, seeds)])
        poor = run(*WIDTHS, "--set", "table=9", "--format", "json", "--budget", "1e-3")
        self.assertEqual(json.loads(poor.stdout)["runs"], 28)
        if poor.returncode == 3:
            self.assertIn("--budget is 0.001 s", json.loads(poor.stdout)["undecided"][-1])

    def test_texts_that_cannot_be_learned_are_named(self):
        random = self.folder / "random.bin"
        random.write_bytes(bytes((i * i * 2654435761 >> 13) % 256 for i in range(20000)))
        repeated = self.folder / "repeated.txt"
        repeated.write_text("a" * 20000, encoding="ascii")
        for text, words in ((random, "bytes do not depend"), (repeated, "one byte is almost all there is")):
            result = run(*WIDTHS, "--text", text)
            self.assertEqual(result.returncode, 3, result.stdout)
            self.assertIn(words, result.stdout)

    def test_records_of_other_sizes_or_depths_are_named(self):
        records = self.folder / "records.jsonl"
        self.assertEqual(run(*WIDTHS, "--seeds", 2, "--record", records).returncode % 3, 0)
        other = run(*COMMON, "--sizes", "16,32,64", "--judge", records)
        self.assertEqual(other.returncode, 2)
        self.assertIn("= 128: expected one that has a plan: 16, 32 or 64", other.stderr)
        deeper = run(*WIDTHS, "--depth", 3, "--judge", records)
        self.assertEqual(deeper.returncode, 0, deeper.stdout)  # two of three layers may be recorded
        shallow = run(*WIDTHS, "--depth", 1, "--judge", records)
        self.assertEqual(shallow.returncode, 3, shallow.stdout)
        self.assertIn("missing: plans of the models that were recorded", shallow.stdout)
        self.assertIn("recorded with --depth 2 (here 1)", shallow.stderr)
        thin = run(*WIDTHS, "--set", "d_ff=99", "--judge", records)  # slopes of other models say nothing
        self.assertEqual(thin.returncode, 3, thin.stdout)
        self.assertIn("missing: plans of the models that were recorded", thin.stdout)
        self.assertEqual(thin.stdout.splitlines()[-1], "verdict: inconclusive")

    def test_models_that_are_not_trained_here_are_judged(self):
        records = self.folder / "records.jsonl"
        self.assertEqual(run(*WIDTHS, "--seeds", 2, "--set", "biases=false", "--record", records).returncode % 3, 0)
        # The trained models had neither; only the plans count.
        for setting, tensor in (("attention_biases=qkv", "query_bias"), ("qk_norm=head", "query_norm_gain")):
            result = run(*WIDTHS, "--set", "biases=false", "--set", setting, "--judge", records, "--format", "json")
            self.assertIn(result.returncode, (0, 3), result.stderr)
            self.assertNotIn(tensor, result.stderr)
            self.assertIsNone(json.loads(result.stdout)["rate"])  # that of the runs is not known

    def test_plans_of_records_are_found_by_their_fingerprints_or_named(self):
        records = self.folder / "records.jsonl"
        self.assertEqual(run(*WIDTHS, "--seeds", 2, "--record", records).returncode % 3, 0)
        line, rest = records.read_text(encoding="utf-8").split("\n", 1)
        body = line[:line.rindex(',"sum"')].replace(',"records":', ',"plan":"00ff00ff00ff00ff","records":')
        checksum = 0xCBF29CE484222325
        for byte in body.encode():
            checksum = (checksum ^ byte) * 0x100000001B3 % (1 << 64)
        records.write_text(f'{body},"sum":"{checksum:016x}"}}\n{rest}', encoding="utf-8")
        judged = run(*WIDTHS, "--judge", records)
        self.assertEqual(judged.returncode % 3, 0, judged.stdout)
        self.assertIn("recorded under other plans than those of the options", judged.stderr)

    def test_options_of_another_model_than_the_recorded_one_are_named(self):
        records = self.folder / "records.jsonl"
        recorded = [*COMMON, "--sizes", "16,32", "--depth", 1, "--seeds", 1]
        run(*recorded, "--record", records)
        same = run(*recorded, "--judge", records, "--format", "json")
        self.assertEqual(same.stderr, "")
        self.assertNotIn("judged_as_another_model", json.loads(same.stdout))
        # Options that do not describe the model, or are not used along the width, do not count.
        unused = ["--steps", 9, "--batch", 2, "--width", 8, "--heads", 3, "--rate", 1]
        self.assertEqual(run(*recorded, *unused, "--judge", records).stderr, "")
        other = run(*recorded, "--depth", 3, "--placement", "post", "--set", "table=3", "--judge", records, "--format",
                    "json")
        differ = ['--set [] (here ["table=3"])', "--depth 1 (here 3)", "--placement pre (here post)"]
        self.assertEqual(other.stderr, f"warning: recorded with {', '.join(differ)}; judged as the model given here\n")
        self.assertEqual(json.loads(other.stdout)["judged_as_another_model"], differ)
        own = self.folder / "own.csv"
        own.write_text("size,seed,step,signal,name,sum_abs,sum_squares,count\n16,1,0,value,logits,1,1,1\n",
                       encoding="utf-8")
        self.assertEqual(run(*recorded, "--depth", 3, "--judge", own).stderr, "")

    def test_files_without_records_are_named(self):
        header = "size,seed,step,signal,name,sum_abs,sum_squares,count\n"
        schema = '{"schema":"scalewise.coordinates/2"'
        for name, text, words in (("own.csv", header, "own.csv (no records): expected records of some runs"),
                                  ("a.jsonl", schema + ',"size":1}\n', "a.jsonl: left out damaged line 1"),
                                  ("b.jsonl", "", "b.jsonl (no records)")):
            (self.folder / name).write_text(text, encoding="utf-8")
            result = run(*WIDTHS, "--judge", name, cwd=self.folder)
            self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
            self.assertIn(words, result.stderr)
            self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)

    def test_json_has_every_quantity(self):
        result = run(*WIDTHS, "--format", "json", "--out", self.folder / "new")
        self.assertEqual(result.returncode, 0, result.stderr)
        report = json.loads(result.stdout)
        self.assertEqual(report, json.loads((self.folder / "new/coordinate_check.json").read_text(encoding="utf-8")))
        self.assertEqual((report["schema"], report["verdict"]), ("scalewise.coordinate_check/2", "pass"))
        logits = [q for q in report["quantities"] if (q["signal"], q["name"], q["step"]) == ("value", "logits", 0)][0]
        self.assertEqual(logits["expected"], [-0.5, -0.5])
        self.assertAlmostEqual(logits["slope"], -0.5, delta=0.2)
        self.assertEqual([(point["size"], point["runs"]) for point in logits["points"]],
                         [(16, 16), (32, 8), (64, 3), (128, 1)])
        self.assertEqual(report["runs"], 28)
        self.assertLess(report["error_rate"], 0.005)
        self.assertEqual((report["cause"], report["fault"], report["missing"], report["undecided"]), ("none", "", [], []))
        self.assertTrue((self.folder / "new/coordinate_check.csv").exists())

    def test_processes_of_their_own_give_the_same_report(self):
        whole = run(*WIDTHS, "--seeds", 4, "--format", "json")
        records = self.folder / "records.jsonl"
        # Two processes, one of them with three of the sizes; then a judge that trains nothing.
        for sizes in ("16,32,64", "16,128"):
            run(*COMMON, "--seeds", 4, "--sizes", sizes, "--base", 16, "--record", records)
        self.assertEqual(len(records.read_text(encoding="utf-8").splitlines()), 4 * 4)  # no run twice
        other = run(*WIDTHS, "--seeds", 4, "--record", records, "--activation", "relu")
        self.assertEqual((other.returncode, other.stdout), (2, ""))
        self.assertIn("--activation = relu: expected gelu, as in", other.stderr)
        judged = run(*WIDTHS, "--judge", records, "--format", "json")
        self.assertEqual(judged.returncode, 0, judged.stderr)
        self.assertEqual(json.loads(judged.stdout)["quantities"], json.loads(whole.stdout)["quantities"])
        # The table's last step is that of the records, whatever --steps would be.
        self.assertIn("change, step 3 ", run(*WIDTHS, "--steps", 10, "--judge", records).stdout)

    def test_a_check_that_was_stopped_goes_on(self):
        command = [*WIDTHS, "--seeds", 8, "--threads", 1, "--format", "json"]
        whole = run(*command)
        records = self.folder / "records.jsonl"
        first = subprocess.Popen([PROGRAM, *map(str, command), "--record", records], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True, env=QUICK)
        self.addCleanup(first.kill)
        while first.poll() is None and not (records.exists() and records.read_bytes()):
            time.sleep(0.001)
        first.send_signal(signal.SIGINT)
        _, message = first.communicate(timeout=120)
        self.assertEqual(first.returncode, 130, message)
        self.assertIn("finishing the current run; press Ctrl-C again to abort", message)
        self.assertRegex(message, r"stopped after \d+ of 32 runs; the same command resumes from those in ")
        done = len(records.read_text(encoding="utf-8").splitlines())
        self.assertTrue(0 < done < 32, done)
        second = run(*[word for word in command if word != "--quiet"], "--record", records)
        self.assertIn(f"resumed with {done} finished runs\n", second.stderr)
        self.assertEqual((second.returncode, second.stdout), (whole.returncode, whole.stdout))

    def test_threads_do_not_change_the_report(self):
        self.assertEqual(run(*WIDTHS, "--threads", 1).stdout, run(*WIDTHS).stdout)

    def test_bad_input_gets_one_message(self):
        for arguments, words in BAD:
            with self.subTest(arguments=arguments):
                sizes = [] if "--sizes" in arguments else SIZES
                result = run(*COMMON, *sizes, *arguments, cwd=self.folder)
                self.assertEqual(result.returncode, 2, result.stdout)
                self.assertEqual(result.stdout, "")
                self.assertIn(words, result.stderr)
                self.assertEqual(len(result.stderr.strip().splitlines()), 1, result.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
