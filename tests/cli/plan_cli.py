#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Runs the program `plan` as a user would, with good and with bad input.

    plan_cli.py PLAN_PROGRAM CONFIG_FOLDER SOURCE_FOLDER
"""

import csv
import functools
import io
import itertools
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest

PLAN, CONFIGS, SOURCE = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
RUN = ["--set", "activation=relu", "--set", "dropout=0.1", "--set", "input_correlation=0.221"]  # of DeepScaleLM

# Arguments, and what the one line on stderr has to contain: field, value, expectation, hint.
BAD = [
    ([], ["--rule = none", "--list-rules"]),
    (["--rule", "gpt2"], ["--preset = none", "--list-presets"]),
    (["--rule", "maximal-updat", "--preset", "gpt2"], ["rule = maximal-updat", "did you mean maximal-update?"]),
    (["--rule", "gpt2", "--preset", "gpt3"], ["preset = gpt3", "did you mean gpt3-125m?"]),
    (["--rule", "maximal-update", "--preset", "gpt2"], ["base = none", "maximal-update needs a base", "no default"]),
    (["--rule", "complete-p", "--preset", "gpt2", "--base-preset", "gpt2", "--optimizer", "sgd"],
     ["optimizer = sgd", "expected adamw", "complete-p"]),
    (["--rule", "gpt2", "--preset", "gpt2", "--optimizer", "adam"], ["--optimizer = adam", "did you mean adamw?"]),
    (["--rule", "maximal-update", "--preset", "gpt2", "--base-preset", "gpt2", "--set", "base.d_model=384",
      "--decay", "l2"], ["decay = l2", "expected coupled or independent"]),
    (["--rule", "gpt2", "--preset", "gpt2", "--set", "d_model=0"], ["d_model = 0", "expected a positive integer"]),
    (["--rule", "gpt2", "--preset", "gpt2", "--set", "d_ff=0"], ["d_ff = 0", "expected a positive integer"]),
    (["--rule", "gpt2", "--preset", "gpt2", "--set", "kv_heads=0"], ["kv_heads = 0", "expected a positive integer"]),
    (["--rule", "gpt2", "--compare", "he,xavier", "--preset", "gpt2"], ["--compare"]),
    (["--rule", "\x1b[31m", "--preset", "gpt2"], ["rule = "]),
    (["--rule", "gpt2", "--preset", "gpt2", "--set", "d_model=-5"], ["d_model = -5", "expected a positive integer"]),
    (["--rule", "gpt2", "--preset", "gpt2", "--set", "d_model=7e2"], ["d_model = 7e2", "expected a whole number"]),
    (["--rule", "gpt2", "--preset", "gpt2", "--set", "d_model=99999999999999999999"], ["expected a whole number"]),
    (["--rule", "gpt2", "--preset", "gpt2", "--set", "d_ff=4611686018427387904"], ["d_ff = 4611686018427387904", "at most"]),
    (["--rule", "gpt2", "--preset", "gpt2", "--set", "depth=1000000000"], ["depth = 1000000000", "at most"]),
    (["--rule", "gpt2", "--preset", "gpt2", "--set", "heads=7"], ["heads = 7", "divisor of d_model = 768"]),
    (["--rule", "gpt2", "--preset", "gpt2", "--set", "kv_heads=5"], ["kv_heads = 5", "divisor of heads = 12"]),
    (["--rule", "maximal-update", "--preset", "mixtral-8x7b", "--base-width", "1024", "--set", "depth=16"],
     ["--set = depth=16", "expected depth=32, as the tensors have", "of such a model"]),
    (["--rule", "maximal-update", "--preset", "mixtral-8x7b", "--base-width", "1024", "--set", "head_dim=64"],
     ["--set = head_dim=64", "expected head_dim=128, as the tensors have"]),
    (["--rule", "maximal-update", "--preset", "mixtral-8x7b", "--base-width", "1024", "--set", "vocab=5"],
     ["--set = vocab=5", "expected --set base.vocab as well", "sides of tensors grow as it does"]),
    (["--rule", "maximal-update", "--preset", "mixtral-8x7b", "--base-width", "1024", "--set", "base.heads=3"],
     ["--set = base.heads=3", "expected --set heads as well"]),
    (["--rule", "maximal-update", "--preset", "mixtral-8x7b", "--base-width", "1024", "--set", "biases=true"],
     ["--set = biases=true", "a size that a list of tensors can have", "say all else"]),
    (["--rule", "maximal-update", "--preset", "mixtral-8x7b", "--base-width", "1024", "--set", "base.d_model=512"],
     ["--set = base.d_model=512", "expected base.d_model=1024, as the tensors have"]),
    (["--rule", "gpt2", "--preset", "gpt2", "--set", "d_modl=5"], ["--set = d_modl", "did you mean d_model?"]),
    (["--rule", "gpt2", "--preset", "gpt2", "--set", "d_model"], ["--set = d_model", "expected key=value"]),
    (["--rule", "gpt2", "--preset", "gpt2", "--set", "base.d_model=5"], ["--base-preset"]),
    (["--rule", "gpt2", "--preset", "gpt2", "--set", "biases=maybe"], ["biases = maybe", "expected true or false"]),
    (["--rule", "meta-principled", "--preset", "gpt2", "--set", "s=2"], ["s = 2", "between 0 and 1"]),
    (["--rule", "meta-principled", "--preset", "gpt2", "--set", "s=nan"], ["s = nan", "expected"]),
    (["--rule", "maximal-update", "--preset", "gpt2"], ["give --base-width or --base-depth, --base-preset or --base-config"]),
    (["--rule", "maximal-update", "--preset", "llama-3-8b", "--base-width", "256"],
     ["base width = 256", "a multiple of 512", "key and value heads"]),
    (["--rule", "maximal-update", "--preset", "gpt2", "--base-experts", "4"],
     ["base experts = 4", "none: the model has no experts"]),
    (["--rule", "maximal-update", "--preset", "gpt2", "--base-width", "256", "--base-preset", "gpt2"],
     ["--base-width (given)", "without --base-preset"]),
    (["--rule", "maximal-update", "--preset", "gpt2", "--base-depth", "2", "--base-config", "x.json"],
     ["--base-depth (given)", "without --base-config"]),
    (["--rule", "maximal-update", "--preset", "gpt2", "--base-width", "256", "--set", "base.x=1"],
     ["--set = base.x", "a field of a shape"]),
    (["--rule", "maximal-update", "--preset", "gpt2", "--base-width", "256", "--optimizer", "muon"],
     ["--optimizer = muon", "muon-spectral", "name a Muon by its own factor"]),
    (["--rule", "maximal-update", "--preset", "gpt2", "--base-width", "256", "--optimizer", "spectral", "--cut", "qkv"],
     ["--cut = qkv", "--names as well"]),
    (["--rule", "maximal-update", "--preset", "gpt2", "--base-width", "256", "--names", "nanogpt", "--cut", "qkv"],
     ["--cut = qkv", "--optimizer muon-", "adamw takes each number by itself"]),
    (["--rule", "maximal-update", "--preset", "gpt2", "--base-preset", "gpt2", "--set", "table=4"],
     ["table = 4", "3, 8 or 9"]),
    (["--rule", "maximal-update", "--preset", "gpt2", "--base-preset", "vit-b16"], ["base.input = patch"]),
    (["--rule", "maximal-update", "--preset", "gpt2", "--base-preset", "bart-large"], ["base.encoder_depth = 12"]),
    (["--rule", "shallow-ntk", "--preset", "gpt2"], ["input = token", "expected patch"]),
    (["--rule", "nu-gpt", "--preset", "vit-b16", "--base-preset", "vit-b16"], ["input = patch"]),
    (["--rule", "deep-scale-lm", "--preset", "gpt2", "--set", "depth=2"], ["depth = 2"]),
    (["--rule", "deep-scale-lm", "--preset", "gpt2"], ["dropout = none", "0 for none"]),
    (["--rule", "deep-scale-lm", "--preset", "vit-b16", "--set", "activation=relu", "--set", "dropout=0"],
     ["input_correlation = none", "0.221 for the three tables of BERT", "0.46"]),
    (["--rule", "gpt2", "--preset", "gpt2", "--set", "activation=tanh"], ["activation = tanh", "relu, gelu or silu"]),
    (["--rule", "gpt2", "--config", "no_such_file.json"], ["no_such_file.json"]),
    (["--rule", "gpt2", "--preset", "gpt2", "--config", "x.json"], ["--config"]),
    (["--rule", "gpt2", "--preset", "gpt2", "--format", "yaml"], ["yaml"]),
    (["--rule", "gpt2", "--preset", "gpt2", "--no-such-option"], ["--no-such-option"]),
    (["--rule", "gpt2", "--preset", "gpt2", "--save", "no/such/folder/plan.json"], ["--save = no/such/folder/plan.json"]),
]


def run(*arguments, **options):
    return subprocess.run([PLAN, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False, **options)


@functools.cache
def rules():
    return [line.split()[0] for line in run("--list-rules").stdout.splitlines()[1:]]


@functools.cache
def small(rule, form):
    """Few layers of a preset that the rule is for."""
    model = "vit-b16" if rule.startswith("shallow") else "gpt2"
    told = RUN if rule.startswith("deep-scale-lm") else []
    layers = [] if rule.startswith("shallow") else ["--set", "depth=4"]
    return run("--rule", rule, "--preset", model, "--base-preset", model, "--format", form, *layers, *told)


# Every choice of a shape, with each of its values.
YES_OR_NO = ("tied_head", "head_bias", "gated_mlp", "biases", "norm_gain", "norm_bias", "learned_positions", "class_token",
             "embedding_norm", "final_norm", "branch_norm")
CHOICES = {name: ("true", "false") for name in YES_OR_NO} | {
    "attention_biases": ("none", "qkv", "all"), "qk_norm": ("none", "head", "full"), "activation": ("relu", "gelu", "silu"),
    "segments": ("0", "2"), "relative_buckets": ("0", "32")}
# Of what a kind of blocks cannot have, whatever its shape in JSON says: arXiv:2604.27077v2, section 2, has no norms, and
# 2311.01575 has queries, keys, values and a sum.
NEVER = {"normalized": ("norm_gain", "norm_bias", "final_norm"), "shallow_encoder": YES_OR_NO}


def only_warnings(text):
    return all(line.startswith(("plan: warning: ", "plan: note: ")) for line in text.splitlines())


class Plan(unittest.TestCase):
    def test_bad_input_gets_one_message_and_leaves_no_file(self):
        for arguments, fragments in BAD:
            with self.subTest(arguments=arguments), tempfile.TemporaryDirectory() as folder:
                extra = [] if "--save" in arguments else ["--save", "plan.out"]
                result = run(*arguments, *extra, cwd=folder)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertEqual(result.stdout, "")
                self.assertEqual(list(pathlib.Path(folder).iterdir()), [])
                for fragment in fragments:
                    self.assertIn(fragment, result.stderr)
                message = result.stderr.strip().splitlines()
                self.assertLessEqual(len(message), 2, result.stderr)

    def test_every_rule_plans_a_preset_of_its_kind_in_every_format(self):
        self.assertGreater(len(rules()), 20)
        for rule in rules():
            for form in ("table", "json", "csv", "latex", "markdown"):
                with self.subTest(rule=rule, format=form):
                    result = small(rule, form)
                    self.assertEqual(result.returncode, 0, result.stderr)
                    self.assertIn("query", result.stdout)
                    self.assertTrue(only_warnings(result.stderr), result.stderr)

    def test_a_choice_that_a_rule_does_not_follow_is_said(self):
        """Every rule with every choice is planned so, or refuses it, or a line says what it has."""
        kinds = {"vit-b16": [rule for rule in rules() if rule.startswith("shallow")],
                 "bert-base": [rule for rule in rules() if "ngpt" in rule or "nu-gpt" in rule]}
        kinds["gpt2"] = [rule for rule in rules() if rule not in kinds["vit-b16"] + kinds["bert-base"]]
        self.assertEqual([len(of) for of in kinds.values()], [3, 5, len(rules()) - 8])
        more = {"vit-b16": [], "bert-base": ["--set", "depth=1"], "gpt2": ["--set", "depth=4", *RUN[2:]]}
        seen = 0
        for preset, name in itertools.product(kinds, CHOICES):
            for value in CHOICES[name]:
                asked = ["--preset", preset, "--base-preset", preset, *more[preset],
                         "--set", f"{name}={value}", "--format", "json"]
                result = run("--compare", ",".join(kinds[preset]), *asked)
                with self.subTest(preset=preset, name=name, value=value):
                    if result.returncode == 2:
                        self.assertIn(f"{name} = {value}", result.stderr)
                        continue
                    plans = json.loads(result.stdout)["plans"]
                    self.assertEqual(len(plans), len(kinds[preset]))
                    expected = set()
                    for plan in plans:
                        rule, shape = plan["rule"]["id"], plan["shape"]
                        default = "none" if name in ("attention_biases", "qk_norm") else False
                        has = str(False if name in NEVER.get(shape["blocks"], ()) else shape.get(name, default)).lower()
                        if has != value:
                            expected.add(f"plan: warning: {rule} has {name} = {has}: --set {name}={value} changes nothing")
                    self.assertEqual({line for line in result.stderr.splitlines() if f": --set {name}=" in line}, expected)
                    seen += len(expected)
        self.assertGreater(seen, 80)

    def test_every_preset_plans(self):
        presets = [line.split()[0] for line in run("--list-presets").stdout.splitlines()[1:]]
        self.assertGreater(len(presets), 40)
        for preset in presets:
            with self.subTest(preset=preset):
                result = run("--rule", "maximal-update", "--preset", preset, "--base-preset", preset)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertIn("parameters", result.stdout)

    def test_configs_plan_like_their_presets(self):
        for config in sorted(CONFIGS.glob("*.json")):
            with self.subTest(config=config.name):
                result = run("--rule", "pytorch", "--config", config, "--set", "depth=4", "--format", "json")
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual(json.loads(result.stdout)["schema"], "scalewise.plan/1")

    def test_a_config_from_a_pipe_is_read_once(self):
        gpt2 = (CONFIGS / "gpt2.json").read_text(encoding="utf-8")
        listed = (CONFIGS.parent / "family_configs.jsonl").read_text(encoding="utf-8").splitlines()[0]
        for text, width in ((gpt2, 256), (json.dumps(json.loads(listed)["config"]), 1024)):
            with self.subTest(width=width), tempfile.TemporaryDirectory() as folder:
                pathlib.Path(folder, "config.json").write_text(text, encoding="utf-8")
                words = ["--rule", "maximal-update", "--base-width", width, "--format", "json"]
                plans = [run(*words, "--config", path, cwd=folder, input=text) for path in ("config.json", "/dev/stdin")]
                self.assertEqual(plans[0].returncode, 0, plans[0].stderr)
                self.assertEqual(plans[1].stdout, plans[0].stdout, plans[1].stderr)

    def test_a_base_like_the_target_takes_one_option_per_size(self):
        target = ["--preset", "gpt2", "--set", "d_model=1024", "--set", "heads=16", "--set", "depth=24",
                  "--set", "vocab=300", "--set", "tied_head=false"]
        short = ["--base-width", "256", "--base-depth", "6"]
        long = ["--base-preset", "gpt2"]
        for field in ("d_model=256", "heads=4", "depth=6", "vocab=300", "tied_head=false"):
            long += ["--set", "base." + field]
        for more in ([], ["--set", "base.context=512"]):  # of the base that it has made
            plans = [run("--rule", "complete-p", *target, *base, *more, "--format", "json") for base in (short, long)]
            self.assertEqual(plans[0].returncode, 0, plans[0].stderr)
            self.assertEqual(plans[0].stdout, plans[1].stdout)
        table = run("--rule", "complete-p", *target, *short, "--set", "base.context=512").stdout
        self.assertIn("\nbase       d_model=256 depth=6 heads=4 kv_heads=4 d_ff=1024 context=512, "
                      "otherwise as the target\n", table)
        same = ["--preset", "gpt2", "--base-width", "768"]
        self.assertIn("\nbase       as the target\n", run("--rule", "complete-p", *same).stdout)
        self.assertNotIn("\nbase ", run("--rule", "gpt2", "--preset", "gpt2").stdout)
        self.assertIn("\nbase: depth=2, otherwise as the target\n",
                      run("--compare", "complete-p,depth-mup", "--preset", "gpt2", "--base-depth", "2").stdout)
        other = ["--preset", "olmo-2-7b", "--base-preset", "llama-2-7b", "--set", "context=4096"]
        self.assertIn("\nbase       vocab=32000 qk_norm=none, otherwise as the target\n",
                      run("--rule", "complete-p", *other).stdout)

    def test_a_muon_goes_by_the_word_of_its_code_base(self):
        model = ["--rule", "maximal-update", "--preset", "gpt2-xl", "--base-preset", "gpt2", "--set", "depth=4"]
        for word, id_, code, factor, rate in (
                ("spectral", "muon-spectral", "Megatron-LM and Emerging-Optimizers", "√max(fan-in, fan-out)", "1/√m_N"),
                ("spectral_norm", "muon-fan-ratio", "dion", "√(fan-out/fan-in)", "1"),
                ("match_rms_adamw", "muon-match-adamw", "PyTorch and torchtitan", "0.2 √max(fan-in, fan-out)", "1/√m_N")):
            with self.subTest(word):
                by_word, by_id = (run(*model, "--optimizer", name) for name in (word, id_))
                self.assertIn(f"plan: note: {word} ({code}) is {id_}, which multiplies its steps by {factor}\n",
                              by_word.stderr)
                self.assertNotIn("note:", by_id.stderr)
                self.assertEqual(by_word.stdout, by_id.stdout)
                self.assertIn(f"\noptimizer  {id_} (its own factor is {factor}), coupled weight decay\n", by_id.stdout)
                found = run(*model, "--optimizer", word, "--format", "json")
                plan = json.loads(found.stdout)
                query = next(entry for entry in plan["entries"] if entry["name"] == "layer.0.query")
                self.assertEqual((plan["optimizer"], query["learning_rate"]["formula"]), (id_, rate))

    def test_a_fused_matrix_is_planned_for_a_muon_that_cuts_it(self):
        model = ["--rule", "maximal-update", "--preset", "llama-3-8b", "--base-width", "1024", "--optimizer", "spectral",
                 "--names", "megatron", "--format", "json"]
        refused = run(*model)
        self.assertEqual(refused.returncode, 2)
        problems = [line for line in refused.stderr.splitlines() if line.startswith("  ")]
        self.assertEqual(len(problems), 2)  # one for each kind of fused matrix, not one for each layer
        self.assertTrue(problems[0].startswith("  decoder.layers.*.self_attention.linear_qkv.weight (32 tensors): "))
        for cut in ("qkv", "none"):
            named = json.loads(run(*model, "--cut", cut).stdout)
            rates = {t["learning_rate"] for t in named["tensors"] if "linear_" in t["name"] and t["shape"][1:]}
            self.assertEqual(len(rates), 1)
            self.assertAlmostEqual(rates.pop(), 0.5, delta=1e-15)  # 1/√m_N

    def test_csv_has_a_row_per_tensor_and_full_digits(self):
        result = run("--rule", "pytorch", "--preset", "gpt2", "--format", "csv")
        rows = list(csv.DictReader(io.StringIO(result.stdout)))
        self.assertEqual(len(rows), 2 + 12 * 16 + 2)
        query = next(row for row in rows if row["name"] == "layer.0.query")
        self.assertEqual(float(query["init_variance"]), 1 / (3 * 768))
        self.assertEqual(query["init_variance_formula"], "1/(3n)")

    def test_compare_shows_the_rules_side_by_side(self):
        result = run("--compare", "gpt2,pytorch,neural-tangent", "--preset", "gpt2")
        self.assertEqual(result.returncode, 0, result.stderr)
        header = next(line for line in result.stdout.splitlines() if line.startswith("tensor"))
        self.assertEqual(header.split(), ["tensor", "gpt2", "pytorch", "neural-tangent"])
        both = run("--compare", "gpt2,pytorch", "--preset", "gpt2", "--format", "json")
        self.assertEqual(len(json.loads(both.stdout)["plans"]), 2)

    def test_a_setting_reaches_the_rules_that_have_it(self):
        result = run("--compare", "meta-principled,gpt2", "--preset", "gpt2", "--set", "s=1")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("1/n", result.stdout)

    def test_layers_gives_a_row_per_tensor(self):
        result = run("--rule", "ds-init", "--preset", "gpt2", "--layers")
        self.assertIn("layer.11.mlp_down", result.stdout)

    def test_out_writes_the_same_text(self):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder, "plan.json")
            arguments = ["--rule", "gpt2", "--preset", "gpt2", "--format", "json"]
            self.assertEqual(run(*arguments, "--save", out).returncode, 0)
            self.assertEqual(out.read_text(encoding="utf-8"), run(*arguments).stdout)
            self.assertEqual([path.name for path in pathlib.Path(folder).iterdir()], ["plan.json"])

    def test_a_start_makes_a_relative_rule_absolute(self):
        arguments = ["--preset", "gpt2-xl", "--base-preset", "gpt2", "--format", "json"]
        factors = json.loads(run("--rule", "maximal-update", *arguments).stdout)
        base = json.loads(run("--rule", "gpt2", "--preset", "gpt2", "--format", "json").stdout)
        plan = json.loads(run("--rule", "maximal-update", *arguments, "--start", "gpt2").stdout)
        self.assertEqual((plan["rule"]["reference"], plan["rule"]["start"]), ("absolute", "gpt2"))
        start = {e["name"]: e["init_variance"]["value"] for e in base["entries"]}
        for entry, factor in zip(plan["entries"], factors["entries"]):
            layer = entry["name"].replace(f"layer.{entry['layer']}.", "layer.0.")
            expected = factor["init_variance"]["value"] * start[layer]
            self.assertTrue(math.isclose(entry["init_variance"]["value"], expected, rel_tol=1e-14), entry["name"])
        refused = run("--rule", "complete-p", *arguments, "--start", "gpt2")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("scaled twice by the depth", refused.stderr)
        refused = run("--rule", "gpt2", "--preset", "gpt2", "--start", "standard")
        self.assertIn("start = standard: expected a rule with a base", refused.stderr)

    def test_constants_come_in_lists_and_one_by_one(self):
        arguments = ["--rule", "mup", "--preset", "gpt2", "--base-width", "256", "--format", "json"]
        plans = [json.loads(run(*arguments, *more).stdout) for more in (
            ["--constant", "logits=1.8,embedding.rate=2.3"], ["--constant", "logits=1.8", "--constant", "embedding.rate=2.3"])]
        self.assertEqual(plans[0], plans[1])
        self.assertEqual(plans[0]["constants"], [{"name": "logits", "value": 1.8}, {"name": "embedding.rate", "value": 2.3}])
        self.assertEqual(plans[0]["entries"][0]["learning_rate"]["value"], 2.3)
        for text, message in (("logits", "--constant = logits: expected NAME=FACTOR"), ("", "--constant (empty): expected NAME"),
                              ("logits=2,", "--constant (empty): expected NAME"), ("logits=two", "logits = two: expected a number"),
                              ("logits=nan", "logits = nan: expected a number"), ("logits=-1", "logits = -1: expected a factor"),
                              ("logit=2", "did you mean logits?"), ("logits=1,logits=2", "expected each constant once")):
            refused = run(*arguments, "--constant", text)
            self.assertEqual((refused.returncode, refused.stdout), (2, ""), text)
            self.assertIn(message, refused.stderr)

    def test_a_standard_run_is_converted_to_the_units_of_a_rule(self):
        arguments = ["--rule", "neural-tangent", "--preset", "bart-large", "--format", "json"]
        plan = json.loads(run(*arguments, "--from-standard", "rate=0.001,decay=0.01").stdout)
        # Dinan, Yaida, Zhang 2023, II 2 E
        rate, decay = (constant["value"] for constant in plan["constants"])
        self.assertAlmostEqual(rate, 32.768, places=9)
        self.assertAlmostEqual(decay / (0.01 * 1024**-1.5), 1, places=9)
        both = json.loads(run(*arguments, "--from-standard", "rate=0.001", "--constant", "query.rate=2").stdout)
        query = next(entry for entry in both["entries"] if entry["group"] == "query")
        self.assertAlmostEqual(query["learning_rate"]["value"], 0.002, places=9)
        for text, message in (("rate", "--from-standard = rate: expected NAME=FACTOR"), ("decay=1", "rate = 0: expected a"),
                              ("rate=1,hidden=2", "--from-standard = hidden: expected rate or decay")):
            refused = run(*arguments, "--from-standard", text)
            self.assertEqual((refused.returncode, refused.stdout), (2, ""), text)
            self.assertIn(message, refused.stderr)

    def test_latex_holds_no_letter_that_latex_cannot_set(self):
        for rule in rules():
            text = small(rule, "latex").stdout
            self.assertTrue(text.isascii(), rule)
            lines = [line for line in text.splitlines() if not line.startswith("%")]
            outside_math = "".join("\n".join(lines).split("$")[::2])
            self.assertNotRegex(outside_math, r"(?<!\\)[_#%]", rule)

    def test_each_stack_has_its_own_depth(self):
        shape = ["--preset", "bart-large", "--base-preset", "bart-large", "--set", "encoder_depth=13",
                 "--set", "depth=7", "--format", "json"]
        plan = json.loads(run("--rule", "gpt2", *shape).stdout)
        at = {entry["name"]: entry["init_variance"] for entry in plan["entries"]}
        self.assertAlmostEqual(at["encoder.0.mlp_down"]["value"], 0.0004 / 26, delta=1e-18)
        self.assertAlmostEqual(at["decoder.0.mlp_down"]["value"], 0.0004 / 14, delta=1e-18)
        self.assertEqual(at["encoder.0.mlp_down"]["formula"], "0.0002/N_e")
        self.assertEqual(at["decoder.0.mlp_down"]["formula"], "0.0002/N_d")
        plan = json.loads(run("--rule", "complete-p", *shape).stdout)
        branch = {r["stack"]: r["branch"]["value"] for r in plan["model"]["residuals"]}
        self.assertAlmostEqual(branch["encoder"], 12 / 13, delta=1e-15)
        self.assertAlmostEqual(branch["decoder"], 12 / 7, delta=1e-15)
        plan = json.loads(run("--rule", "deep-scale-lm", *shape, *RUN).stdout)
        skip = {r["stack"]: r["skip"]["value"] for r in plan["model"]["residuals"]}
        self.assertAlmostEqual(skip["encoder"], (1 - 2 / 13) ** 0.5, delta=1e-15)
        self.assertAlmostEqual(skip["decoder"], (1 - 2 / 7) ** 0.5, delta=1e-15)

    def test_the_example_of_the_schema_page_is_what_plan_writes(self):
        page = (SOURCE / "docs" / "plan_schema.md").read_text(encoding="utf-8")
        example = json.loads(page.split("```json\n")[1].split("```")[0])
        result = run("--rule", "shallow-ntk", "--preset", "vit-b16", "--set", "d_model=4", "--set", "heads=1",
                     "--set", "patch_dim=3", "--optimizer", "sgd", "--format", "json")
        written = json.loads(result.stdout)
        for shape in (example["shape"], written["shape"]):  # the page need not have every flag
            for field in set(written["shape"]) ^ set(example["shape"]):
                shape.pop(field, None)
        self.assertEqual(example, written)

    def test_a_table_of_tensors_has_the_factors_of_its_code(self):
        """T5 by its shape, mT5 of the same sizes by its tensors."""
        t5 = json.loads((CONFIGS / "t5-1.1-xxl.json").read_text(encoding="utf-8"))
        words = ["--rule", "maximal-update", "--base-width", "2048", "--fold", "--format", "json"]
        with tempfile.TemporaryDirectory() as folder:
            models = []
            for kind in ("t5", "mt5"):
                pathlib.Path(folder, f"{kind}.json").write_text(json.dumps({**t5, "model_type": kind}), encoding="utf-8")
                result = run(*words, "--config", f"{kind}.json", cwd=folder)
                self.assertIn("note: the code multiplies scores by 1, as planned", result.stderr)
                self.assertNotIn("--fold", result.stderr)
                models.append(json.loads(result.stdout)["model"])
            for model in models:
                self.assertEqual(model["attention_scale"]["value"], 1)
                self.assertEqual(model["code"]["attention_scale"]["value"], 1)
            wide = {**t5, "model_type": "mt5", "d_kv": 2 * t5["d_kv"]}
            pathlib.Path(folder, "wide.json").write_text(json.dumps(wide), encoding="utf-8")
            result = run("--rule", "maximal-update", "--config", "wide.json", "--base-config", "mt5.json", "--fold", cwd=folder)
            self.assertIn("the code multiplies scores by 1, so that 0.5 is left to multiply", result.stderr)
            self.assertIn("leaves attention_scale: the list does not say which matrix makes queries", result.stderr)

    def test_a_horizon_on_one_side_only_is_an_error(self):
        both = ["--rule", "nu-gpt", "--preset", "gpt2", "--base-preset", "gpt2"]
        self.assertEqual(run(*both).returncode, 0)
        self.assertEqual(run(*both, "--set", "iterations=10", "--set", "base.iterations=10").returncode, 0)
        for side in ("iterations=10", "base.iterations=10"):
            result = run(*both, "--set", side)
            self.assertEqual(result.returncode, 2, side)
            self.assertIn("iterations = missing", result.stderr)

    def test_doubtful_choices_are_warnings_and_errors_of_a_strict_plan(self):
        usual = {"--rule": "complete-p", "--preset": "gpt2-medium", "--base-preset": "gpt2"}
        cases = [({}, [], []),
                 ({"--preset": "gpt2", "--base-preset": "gpt2-medium"}, [],
                  ["d_model = 768 is less than the base's 1024", "depth = 12 is less than the base's 24"]),
                 ({"--rule": "maximal-update"}, [], ["depth = 24, but the base's is 12", "gains are decayed (layer.0."]),
                 ({"--rule": "maximal-update"}, ["depth=12"], ["gains are decayed (layer.0.attention_norm_gain"]),
                 ({}, ["base.tied_head=false"], ["tied_head differs from the base's"]),
                 ({}, ["biases=false"], ["biases differs from the base's"]),
                 ({}, ["gated_mlp=true"], ["gated_mlp differs from the base's"]),
                 ({}, ["heads=64"], ["head_dim = 16: heads narrower than 32"])]
        for change, settings, expected in cases:
            options = [word for pair in {**usual, **change}.items() for word in pair]
            options += [word for setting in settings for word in ("--set", setting)]
            with self.subTest(options=options):
                result = run(*options)
                self.assertEqual(result.returncode, 0, result.stderr)
                said = [line.removeprefix("plan: warning: ") for line in result.stderr.splitlines()]
                self.assertEqual(len(said), len(expected), said)
                for text, start in zip(said, expected):
                    self.assertTrue(text.startswith(start), text)
                self.assertEqual(json.loads(run(*options, "--format", "json").stdout).get("warnings", []), said)
                strict = run(*options, "--strict")
                self.assertEqual(strict.returncode, 2 if expected else 0, strict.stderr)
                self.assertEqual(strict.stdout == "", bool(expected))
                for text in said:
                    self.assertIn(text, strict.stderr)

if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
