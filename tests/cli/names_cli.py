#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""What `plan --names` writes, read as the code that it is for would: configurations in Python are
executed, the header for C is compiled and run.

    names_cli.py PLAN_PROGRAM C_COMPILER
"""

import csv
import fnmatch
import io
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PLAN, COMPILER = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]

# A small model on a smaller base: per-layer rates differ under none of these rules.
GPT = ["--preset", "gpt2", "--base-preset", "gpt2"]
SIZES = {"d_model": 24, "heads": 4, "d_ff": 40, "vocab": 50, "context": 16, "depth": 3}


def sized(width=24, **more):
    sizes = {**SIZES, "d_model": width, "d_ff": 2 * width, **more}
    return [word for key, value in sizes.items() for word in ("--set", f"{key}={value}")]


def base(**more):
    return [word for key, value in {**SIZES, **more}.items() for word in ("--set", f"base.{key}={value}")]


SMALL = GPT + sized(48) + base()
LR, MIN_LR, WEIGHT_DECAY, EPS = 3e-3, 3e-4, 0.1, 1e-9
CONFIGS = pathlib.Path(__file__).resolve().parents[1] / "data/configs"
LLAMA = ["--preset", "llama-3.2-3b", "--base-preset", "llama-3.2-1b"]


def plan(*arguments, code=0):
    done = subprocess.run([PLAN, *arguments], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == code, (arguments, done.returncode, done.stderr)
    return done.stdout if code == 0 else done.stderr


def said(*arguments, code=0):
    done = subprocess.run([PLAN, *arguments], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == code, (arguments, done.returncode, done.stderr)
    return done.stderr


def named(*arguments):
    return json.loads(plan(*arguments, "--format", "json"))


def close(a, b):
    return math.isclose(a, b, rel_tol=1e-12)


class Names(unittest.TestCase):
    def settings(self, rule, names, *more):
        """name -> absolute rate, decay and epsilon, from the JSON."""
        plan_json = named("--rule", rule, *SMALL, "--names", names, *more)
        independent = plan_json["plan"]["decay"] == "independent"
        return {t["name"]: (LR * t["learning_rate"],
                            WEIGHT_DECAY * t["weight_decay"] / (t["learning_rate"] if independent else 1),
                            EPS * t["epsilon"]) for t in plan_json["tensors"]}

    def same(self, found, expected):
        self.assertEqual(set(found), set(expected))
        for name, values in expected.items():
            for a, b in zip(found[name], values):
                self.assertTrue(close(a, b), (name, found[name], values))

    def test_every_entry_is_in_one_tensor(self):
        models = {"gpt2": ["hf-gpt2", "nanogpt", "llm-c", "gguf-gpt2", "ggml-gpt2", "megatron", "torch-nn", "opt"],
                  "llama-3-8b": ["hf-llama", "meta-llama", "gguf-llama", "phi3"],
                  "bert-base": ["hf-bert"], "vit-b16": ["hf-vit", "timm-vit"], "t5-base": ["hf-t5"],
                  "bart-large": ["hf-bart", "fairseq"]}
        for preset, dialects in models.items():
            for dialect in dialects:
                with self.subTest(preset=preset, dialect=dialect):
                    result = named("--rule", "standard", "--preset", preset, "--names", dialect)
                    size = {e["name"]: e["rows"] * e["columns"] for e in result["plan"]["entries"]}
                    owned = {}
                    for tensor in result["tensors"]:
                        padding = sum(count for axis in tensor.get("padding", []) for _, count in axis["runs"])
                        numbers = 0
                        for part in tensor["parts"]:
                            self.assertNotIn(part["entry"], owned)
                            taken = math.prod(tensor["shape"])
                            for axis in part["select"]:
                                chosen = sum(count for _, count in axis["runs"])
                                taken = taken // tensor["shape"][axis["axis"]] * chosen
                            owned[part["entry"]] = taken
                            numbers += taken
                        if not padding:
                            self.assertEqual(numbers, math.prod(tensor["shape"]), tensor["name"])
                    self.assertEqual(owned, size)

    def test_torch_groups(self):
        for rule in ("maximal-update", "complete-p"):
            expected = self.settings(rule, "nanogpt")
            result = json.loads(plan("--rule", rule, *SMALL, "--names", "nanogpt", "--format", "torch-groups"))
            found = {}
            for name in expected:
                groups = [g for g in result["groups"] if any(re.match(p, name) for p in g["patterns"])]
                self.assertEqual(len(groups), 1, name)
                group = groups[0]
                found[name] = (LR * group["lr"], WEIGHT_DECAY * group["weight_decay"], EPS * group["eps"])
            self.same(found, expected)
            self.assertEqual(sum(g["tensors"] for g in result["groups"]), len(expected))
            self.assertLessEqual(len(result["groups"]), 6)

    def test_independent_decay_is_divided_by_the_rate(self):
        options = ("--decay", "independent")
        expected = self.settings("maximal-update", "nanogpt", *options)
        result = json.loads(plan("--rule", "maximal-update", *SMALL, "--names", "nanogpt", "--format", "torch-groups",
                                 *options))
        for group in result["groups"]:
            for pattern in group["patterns"]:
                for name in filter(lambda n: re.match(pattern, n), expected):
                    self.assertTrue(close(WEIGHT_DECAY * group["weight_decay"], expected[name][1]), name)

    def test_torchtitan(self):
        expected = self.settings("complete-p", "nanogpt")
        code = plan("--rule", "complete-p", *SMALL, "--names", "nanogpt", "--format", "torchtitan")
        space = {"ParamGroupConfig": lambda **fields: fields, "LR": LR, "WEIGHT_DECAY": WEIGHT_DECAY, "EPS": EPS}
        exec(code, space)  # pylint: disable=exec-used
        found, used = {}, set()
        for name in expected:
            at = next(i for i, g in enumerate(space["PARAM_GROUPS"]) if re.search(g["pattern"], name))
            used.add(at)
            group = space["PARAM_GROUPS"][at]
            self.assertEqual(group["optimizer_name"], "AdamW")
            options = group["optimizer_kwargs"]
            found[name] = (options["lr"], options["weight_decay"], options["eps"])
        self.same(found, expected)
        self.assertEqual(len(used), len(space["PARAM_GROUPS"]))  # one that is never found is an error there

    def test_torchtitan_writes_what_torch_has(self):
        def groups(optimizer):
            # Matrices of their own: Muon takes no fused one.
            code = plan("--rule", "maximal-update", *LLAMA, "--optimizer", optimizer, "--names", "torchtitan", "--format",
                        "torchtitan")
            space = {"ParamGroupConfig": lambda **fields: fields, "LR": 1.0, "MUON_LR": 100.0, "WEIGHT_DECAY": 0.1, "EPS": EPS}
            exec(code, space)  # pylint: disable=exec-used
            return space["PARAM_GROUPS"]

        for optimizer, adjust in (("muon-original", "original"), ("muon-match-adamw", "match_rms_adamw")):
            found = groups(optimizer)
            matrices = [g["optimizer_kwargs"] for g in found if g["optimizer_name"] == "Muon"]
            self.assertTrue(matrices)
            for options in matrices:
                self.assertEqual(options["adjust_lr_fn"], adjust)
                self.assertGreater(options["lr"], 10)  # its own global rate
            for g in found:
                self.assertEqual("eps" in g["optimizer_kwargs"], g["optimizer_name"] == "AdamW")
        for decay, name in (("l2", "Adam"), ("coupled", "AdamW")):
            code = plan("--rule", "gpt2", *GPT[:2], "--decay", decay, "--names", "nanogpt", "--format", "torchtitan")
            self.assertEqual(set(re.findall('optimizer_name="(.*)"', code)), {name})
        for optimizer in ("muon-plain", "muon-fan-ratio", "sign-sgd"):
            self.assertIn("torch.optim has no other", said("--rule", "maximal-update", *LLAMA, "--optimizer", optimizer,
                                                           "--names", "torchtitan", "--format", "torchtitan", code=2))

    def test_what_the_code_base_computes_besides_is_said(self):
        gemma = "--config", str(CONFIGS / "gemma-7b.json"), "--base-config", str(CONFIGS / "gemma-2b.json")
        self.assertIn("note: Gemma's norms multiply by 1 + weight",
                      said("--rule", "maximal-update", *gemma, "--names", "gemma", "--format", "json"))
        scaled = "note: the code multiplies embeddings by √m_N times the base's, so that 0.8165 is left to multiply"
        for names in ("gemma", "hf-llama"):
            self.assertIn(scaled, said("--rule", "maximal-update", *gemma, "--names", names, "--format", "json"))
        self.assertNotIn("note: Gemma", said("--rule", "maximal-update", *gemma, "--names", "hf-llama", "--format", "json"))
        self.assertNotIn("note:", said("--rule", "maximal-update", *LLAMA, "--names", "hf-llama", "--format", "json"))
        # fairseq: embed_scale is the root of embed_dim unless no_scale_embedding is set (transformer_encoder.py).
        bart = ["--rule", "maximal-update", "--preset", "bart-large", "--base-preset", "bart-large",
                "--set", "base.d_model=256", "--set", "base.heads=4"]
        fairseq = "note: the code multiplies embeddings by √m_N times the base's, so that 0.5 is left to multiply"
        self.assertIn(fairseq, said(*bart, "--names", "fairseq", "--format", "json"))
        self.assertNotIn("note:", said(*bart, "--names", "hf-bart", "--format", "json"))
        with tempfile.TemporaryDirectory() as folder:
            own = pathlib.Path(folder) / "own.json"
            own.write_text(json.dumps({"schema": "scalewise.dialect/1", "id": "own", "extends": "fairseq",
                                       "patterns": [], "code": {"embedding_multiplier": "1"}}))
            self.assertNotIn("note:", said(*bart, "--names", str(own), "--format", "json"))
            own.write_text(own.read_text().replace('"1"', '"sqrt(d_ff"'))
            self.assertIn("code.embedding_multiplier = sqrt(d_ff: expected a positive number",
                          said(*bart, "--names", str(own), code=2))

    def test_a_fold_leaves_what_the_code_does(self):
        """T5 does not divide scores: with heads twice as large queries take 1/2, in std and rate."""
        with tempfile.TemporaryDirectory() as folder:
            config = json.loads((CONFIGS / "t5-base.json").read_text())
            wide = pathlib.Path(folder) / "wide.json"
            wide.write_text(json.dumps({**config, "d_kv": 128}))
            t5 = ["--rule", "maximal-update", "--config", str(wide), "--base-config", str(CONFIGS / "t5-base.json")]
            for names in ([], ["--names", "hf-t5"]):
                plain, folded = named(*t5, *names), named(*t5, *names, "--fold")
                if names:
                    plain, folded = plain["plan"], folded["plan"]
                rate = {e["name"]: e["learning_rate"]["value"] for e in plain["entries"]}
                for entry in folded["entries"]:
                    factor = 0.5 if entry["name"].endswith("query") else 1
                    self.assertTrue(close(entry["learning_rate"]["value"], factor * rate[entry["name"]]), entry["name"])
                self.assertTrue(close(plain["model"]["attention_scale"]["value"], 0.5))
                self.assertEqual(plain["model"]["code"]["attention_scale"]["value"], 1)
                self.assertEqual(folded["model"]["attention_scale"]["value"], 1)

    def test_another_initializer_than_the_rule_has_is_said(self):
        with tempfile.TemporaryDirectory() as folder:
            config = json.loads((CONFIGS / "llama-3.2-1b.json").read_text())
            own = pathlib.Path(folder) / "config.json"
            own.write_text(json.dumps({**config, "initializer_range": 1 / 24}))  # as SmolLM2-135M
            self.assertIn("initializer_range = 0.0416666666666666", said("--rule", "gpt2", "--config", str(own)))
            self.assertIn("the plan has 0.02: multiply the variances of "
                          "matrices by 4.34", said("--rule", "gpt2", "--config", str(own)))
            self.assertNotIn("initializer_range", said("--rule", "standard", "--config", str(own)))
            own.write_text(json.dumps({**config, "initializer_range": 0.02}))
            self.assertNotIn("initializer_range", said("--rule", "gpt2", "--config", str(own)))

    def test_tensors_have_the_axes_of_the_code_base(self):
        """transformers, modeling_vit.py, and timm, vision_transformer.py: a class token, positions, a convolution."""
        for names, stem in (("hf-vit", ["vit.embeddings.cls_token", "vit.embeddings.position_embeddings",
                                        "vit.embeddings.patch_embeddings.projection.weight"]),
                            ("hf-vit-5", ["vit.embeddings.cls_token", "vit.embeddings.position_embeddings",
                                          "vit.embeddings.patch_embeddings.projection.weight"]),
                            ("timm-vit", ["cls_token", "pos_embed", "patch_embed.proj.weight"])):
            shape = {t["name"]: t["shape"] for t in named("--rule", "standard", "--preset", "vit-b16", "--names",
                                                          names)["tensors"]}
            self.assertEqual([shape[name] for name in stem], [[1, 1, 768], [1, 197, 768], [768, 3, 16, 16]])
        found = named("--rule", "gpt2", "--preset", "pythia-160m", "--set", "tied_head=false", "--names", "gpt-neox-5")
        self.assertIn("lm_head.weight", [t["name"] for t in found["tensors"]])

    def test_tensors_that_no_plan_has_are_listed_and_planned_as_extras(self):
        bert = ["--rule", "standard", "--preset", "bert-base", "--names", "hf-bert"]
        transform = "cls.predictions.transform.dense.weight"
        self.assertIn(transform, named(*bert)["unplanned"])
        note = said(*bert, "--format", "json")
        extras = re.findall(r"--extra (\S+)", note)
        self.assertEqual(len(extras), 4, note)
        found = named(*bert, *(word for extra in extras for word in ("--extra", extra)))
        self.assertEqual({t["name"]: t["shape"] for t in found["tensors"]}[transform], [768, 768])
        # BertForMaskedLM has 109514298 parameters.
        self.assertEqual(sum(math.prod(t["shape"]) for t in found["tensors"]), 109514298)

    def test_the_header_says_whether_deviations_are_relative(self):
        for options, flag in ((("--rule", "maximal-update", *SMALL), 1), (("--rule", "gpt2", *SMALL), 0)):
            code = plan(*options, "--names", "llm-c", "--format", "c-header")
            self.assertIn(f"scalewise_std_is_relative = {flag}", code)

    def test_megatron(self):
        expected = self.settings("complete-p", "megatron")
        code = plan("--rule", "complete-p", *SMALL, "--names", "megatron", "--format", "megatron")
        space = {"ParamKey": lambda name: name, "LR": LR, "MIN_LR": MIN_LR, "EPS": EPS}
        exec(code, space)  # pylint: disable=exec-used
        found = {}
        for name in expected:
            matching = [o for pattern, o in space["CONFIG_OVERRIDES"].items() if fnmatch.fnmatch(name, pattern)]
            self.assertEqual(len(matching), 1, name)
            override = matching[0]
            self.assertTrue(close(override["min_lr"] / MIN_LR, override["max_lr"] / LR))
            found[name] = (override["max_lr"], WEIGHT_DECAY * override["wd_mult"], override["eps"])
        self.same(found, expected)

    def test_fairseq_and_neox(self):
        class Parameter:
            pass

        class Model:
            def __init__(self, names):
                self.parameters = {name: Parameter() for name in names}

            def named_parameters(self):
                return self.parameters.items()

        # Epsilons that differ have no place there.
        for style in ("fairseq", "neox"):
            error = plan("--rule", "complete-p", *SMALL, "--names", "nanogpt", "--format", style, code=2)
            self.assertIn("epsilon of transformer.", error)
        options = ("--optimizer", "sgd")
        expected = self.settings("maximal-update", "nanogpt", *options)
        rule = ("--rule", "maximal-update", *SMALL, "--names", "nanogpt", *options)
        space = {}
        exec(plan(*rule, "--format", "fairseq"), space)  # pylint: disable=exec-used
        model = Model(expected)
        space["set_param_groups"](model)
        found = {}
        for name, parameter in model.parameters.items():
            scales = parameter.optim_overrides["optimizer"]
            found[name] = (LR * scales["lr_scale"], WEIGHT_DECAY * scales["weight_decay_scale"], EPS)
        self.same(found, {name: (rate, decay, EPS) for name, (rate, decay, _) in expected.items()})
        with self.assertRaises(ValueError):
            space["set_param_groups"](Model(["transformer.h.0.unknown"]))

        space = {}
        exec(plan(*rule, "--format", "neox"), space)  # pylint: disable=exec-used
        model = Model(expected)
        names = {parameter: name for name, parameter in model.parameters.items()}
        found = {}
        for group in space["param_groups"](model, WEIGHT_DECAY):
            for parameter in group["params"]:
                found[names[parameter]] = (LR / group["width_mult"], group["weight_decay"], EPS)
        self.same(found, {name: (rate, decay, EPS) for name, (rate, decay, _) in expected.items()})

    def test_tsv(self):
        result = named("--rule", "gpt2", *GPT[:2], *sized(), "--names", "llm-c")
        lines = plan("--rule", "gpt2", *GPT[:2], *sized(), "--names", "llm-c", "--format", "tsv")
        entries = {e["name"]: e for e in result["plan"]["entries"]}
        numbers = dict.fromkeys(entries, 0)
        for row in csv.DictReader(io.StringIO(lines), delimiter="\t"):
            entry = entries[row["entry"]]
            numbers[row["entry"]] += int(row["count"]) * int(row["repeats"])
            self.assertTrue(close(float(row["std"]) ** 2, entry["init_variance"]["value"]), row)
            self.assertEqual(float(row["learning_rate"]), entry["learning_rate"]["value"])
            self.assertEqual(row["distribution"], entry["distribution"])
        self.assertEqual(numbers, {name: e["rows"] * e["columns"] for name, e in entries.items()})

    def test_c_header(self):
        """C99 fills every tensor with its entry's std, and adds up what it filled."""
        arguments = ("--rule", "complete-p", *SMALL, "--names", "llm-c")
        result = named(*arguments)
        entries = {e["name"]: e for e in result["plan"]["entries"]}
        sizes = ", ".join(str(math.prod(t["shape"])) for t in result["tensors"])
        program = """
#include <stdio.h>
#include <stdlib.h>
#include "plan.h"
int main(void) {
  static const long long sizes[] = {SIZES};
  for (int t = 0; t < scalewise_tensors; ++t) {
    const scalewise_tensor* tensor = &scalewise_tensor_rows[t];
    float* data = calloc((size_t)sizes[t], sizeof(float));
    char* seen = calloc((size_t)sizes[t], 1);
    long long once = 0;
    double sum = 0;
    for (int b = 0; b < scalewise_blocks; ++b) {
      const scalewise_block* block = &scalewise_block_rows[b];
      if (block->tensor != t) continue;
      for (long long r = 0; r < block->repeats; ++r)
        for (long long i = 0; i < block->count; ++i) {
          const long long at = block->offset + r * block->stride + i;
          data[at] = block->mean + block->std;
          seen[at] += 1;
        }
    }
    for (long long i = 0; i < sizes[t]; ++i) { once += seen[i] == 1; sum += data[i]; }
    printf("%s %.9g %.9g %.9g %lld %.17g\\n", tensor->name, tensor->lr, tensor->wd, tensor->eps, once, sum);
    free(data);
    free(seen);
  }
  printf("%.17g %.17g %.17g %d %.17g\\n", scalewise_attention_scale, scalewise_embedding_multiplier,
         scalewise_logit_multiplier, (int)(sizeof(scalewise_branch) / sizeof(double)),
         scalewise_skip[0] + scalewise_branch[0]);
  return 0;
}
""".replace("SIZES", sizes)
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "plan.h").write_text(plan(*arguments, "--format", "c-header"), encoding="utf-8")
            (folder / "main.c").write_text(program, encoding="utf-8")
            subprocess.run([COMPILER, "-x", "c", "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion",
                            "-Werror", "-o", folder / "main",
                            folder / "main.c"], check=True)
            lines = subprocess.run([folder / "main"], capture_output=True, encoding="ascii",
                                   check=True).stdout.splitlines()
        for tensor, line in zip(result["tensors"], lines):
            name, *values = line.split(" ")
            self.assertEqual(name, tensor["name"])
            rate, decay, epsilon, once, total = map(float, values)
            for a, b in ((rate, "learning_rate"), (decay, "weight_decay"), (epsilon, "epsilon")):
                self.assertTrue(math.isclose(a, tensor[b], rel_tol=1e-7), (name, a, tensor[b]))
            self.assertEqual(once, math.prod(tensor["shape"]))
            expected = 0.0
            for part in tensor["parts"]:
                entry = entries[part["entry"]]
                expected += entry["rows"] * entry["columns"] * (
                    entry["init_mean"]["value"] + math.sqrt(entry["init_variance"]["value"]))
            # Sums of floats that were rounded once.
            self.assertTrue(math.isclose(total, expected, rel_tol=1e-7, abs_tol=1e-12), (name, total, expected))
        model = result["plan"]["model"]
        residual = model["residuals"][0]
        scale, embedding, logits, layers, sum_ = map(float, lines[len(result["tensors"])].split(" "))
        self.assertEqual((scale, embedding, logits, layers),
                         (model["attention_scale"]["value"], model["embedding_multiplier"]["value"],
                          model["logit_multiplier"]["value"], len(model["residuals"])))
        self.assertEqual(sum_, residual["skip"]["value"] + residual["branch"]["value"])

    def test_own_dialect(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "mine.json"
            own = {"schema": "scalewise.dialect/1", "id": "mine", "extends": "nanogpt",
                   "patterns": [["model.emb.weight", "token_embedding"], ["transformer.wte.weight", "-"]]}
            path.write_text(json.dumps(own), encoding="utf-8")
            rule = ("--rule", "gpt2", *GPT[:2], *sized())
            names = [t["name"] for t in named(*rule, "--names", str(path))["tensors"]]
            self.assertEqual(names[0], "model.emb.weight")
            self.assertNotIn("transformer.wte.weight", names)
            self.assertIn("transformer.h.2.attn.c_attn.weight", names)
            for change, expected in (({"schema": "x"}, "mine.json.schema = x"),
                                     ({"extends": "nanogtp"}, "did you mean nanogpt?"),
                                     ({"layout": "in"}, "mine.json.layout = in"),
                                     ({"patterns": [["a"]]}, "patterns[0] = 1 items"),
                                     ({"patterns": [["a{}b{}", "query"]]}, "patterns[0][0] = a{}b{}"),
                                     ({"patterns": [["a", "query", "rows"]]}, "patterns[0][2] = rows"),
                                     ({"more": 1}, "mine.json.more = 1"),
                                     ({"patterns": [["a.weight", "token_embeding"]]}, "did you mean token_embedding?"),
                                     ({"patterns": [["token_embedding", "a.weight"]]}, "patterns[0][1] = a.weight"),
                                     ({"patterns": [["a", "token_embedding layer.0.query"]]},
                                      "a: token_embedding and layer.0.query cannot be parts of one tensor")):
                path.write_text(json.dumps({**own, **change}), encoding="utf-8")
                self.assertIn(expected, plan(*rule, "--names", str(path), code=2))

    def test_messages(self):
        gpt2 = ("--rule", "gpt2", "--preset", "gpt2")
        self.assertIn("did you mean nanogpt?", plan(*gpt2, "--names", "nanogtp", code=2))
        self.assertIn("--names as well", plan(*gpt2, "--format", "tsv", code=2))
        lines = plan(*gpt2, "--names", "meta-llama", code=2).splitlines()
        self.assertEqual(lines[0], "plan: cannot name the tensors as meta-llama does:")
        self.assertIn("  position_embedding: meta-llama has no tensor for it", lines)
        self.assertIn("nanoGPT", plan("--list-names"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
