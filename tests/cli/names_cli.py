#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""What `plan --names` writes, read as the code that it is for would: configurations in Python are
executed, the header for C is compiled and run.

    names_cli.py PLAN_PROGRAM C_COMPILER
"""

import csv
import io
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile
import types
import unittest

import frameworks as fw
import hostile

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
LLAMA = ["--preset", "llama-3.2-3b", "--base-preset", "llama-3.2-1b"]
LR, MIN_LR, WEIGHT_DECAY, EPS = 3e-3, 3e-4, 0.1, 1e-9
CONFIGS = pathlib.Path(__file__).resolve().parents[1] / "data/configs"
TITAN_SIZES = {"d_model": 48, "heads": 4, "kv_heads": 2, "d_ff": 64, "depth": 3, "vocab": 50, "context": 16}
TITAN = ["--preset", "llama-3-8b", "--base-preset", "llama-3-8b",
         *(word for key, value in TITAN_SIZES.items() for word in ("--set", f"{key}={value}")),
         *(word for key, value in {**TITAN_SIZES, "d_model": 24, "d_ff": 32}.items()
           for word in ("--set", f"base.{key}={value}"))]


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

    def test_torch_groups(self):
        for rule in ("maximal-update", "complete-p"):
            expected = self.settings(rule, "nanogpt")
            result = json.loads(plan("--rule", rule, *SMALL, "--names", "nanogpt", "--format", "torch-groups"))
            for model, rename in self.wrapped(fw.Model(dict.fromkeys(expected))):
                found = {}
                for name in model.table:
                    patterns = [(g, p) for g in result["groups"] for p in g["patterns"] if re.match(p, name)]
                    self.assertEqual(len(patterns), 1, name)
                    group = patterns[0][0]
                    found[name] = (LR * group["lr"], WEIGHT_DECAY * group["weight_decay"], EPS * group["eps"])
                self.same(found, {rename(name): values for name, values in expected.items()})
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
        coupled = "coupled, multiplied by the tensor's own learning rate, from the plan's independent"
        self.assertEqual(result["weight_decay"], coupled)
        for output in ("torchtitan", "megatron", "fairseq", "neox", "c-header"):
            text = plan("--rule", "maximal-update", *SMALL, "--names", "nanogpt", "--format", output, *options)
            self.assertIn(f"Weight decay: {coupled}.", text)
            self.assertNotIn("independent weight decay", text)

    def wrapped(self, model):
        for title, rename in fw.WRAPPERS.items():
            with self.subTest(wrapper=title):
                yield model.named(rename), rename

    def counts_are_checked(self, check, model, names=None):
        """A tensor more, one less, one twice and another name each stop it."""
        check(model)
        table = list(model.table.items())
        for change in (table[:-1], table + [("another.weight", fw.Parameter(1))],
                       table + [("x." + name, value) for name, value in table[-1:]],
                       [("net." + name if i < 5 else name + "_", value) for i, (name, value) in enumerate(table)]):
            with self.assertRaisesRegex(ValueError, "patterns match, expected 1|matches . tensors, expected"):
                check(fw.Model(change))

    def test_wrappers_rename_as_those_of_torch(self):
        with tempfile.TemporaryDirectory() as folder:
            found = fw.torch_names(folder)
        if not found:
            self.skipTest("no PyTorch")
        for title, names in found.items():
            self.assertEqual(names, [fw.WRAPPERS[title](name) for name in found["none"]], title)

    def test_torchtitan(self):
        depth, rule = 3, ("--rule", "complete-p", *TITAN)
        expected = {t["name"]: (LR * t["learning_rate"], WEIGHT_DECAY * t["weight_decay"], EPS * t["epsilon"])
                    for t in named(*rule, "--names", "torchtitan")["tensors"]}
        space = {"ParamGroupConfig": fw.ParamGroupConfig, "LR": LR, "WEIGHT_DECAY": WEIGHT_DECAY, "EPS": EPS,
                 "BETAS": (0.9, 0.95)}
        exec(plan(*rule, "--names", "torchtitan", "--format", "torchtitan"), space)  # pylint: disable=exec-used
        llama = fw.titan_llama(48, 24, 64, depth, 50)
        for model, rename in self.wrapped(llama):
            found = fw.titan_groups(model, space["PARAM_GROUPS"])
            self.assertEqual({(optimizer, options["betas"]) for optimizer, options in found.values()},
                             {("AdamW", (0.9, 0.95))})
            self.same({name: (o["lr"], o["weight_decay"], o["eps"]) for name, (_, o) in found.items()},
                      {rename(name): values for name, values in expected.items()})
            space["check_groups"](model)
        self.counts_are_checked(space["check_groups"], llama)
        with self.assertRaisesRegex(ValueError, "matches 2 tensors, expected 3"):
            space["check_groups"](fw.titan_llama(48, 24, 64, depth - 1, 50))
        space["check_groups"](fw.titan_llama(48, 24, 64, depth - 1, 50), whole=False)
        apart = dict(space)
        exec(plan(*rule, "--names", "meta-llama", "--format", "torchtitan"), apart)  # pylint: disable=exec-used
        apart["check_groups"](fw.titan_llama(48, 24, 64, depth, 50, fuse_qkv=False, fuse_w13=False))
        with self.assertRaisesRegex(ValueError, "wq.weight: 0 patterns match"):
            space["check_groups"](fw.titan_llama(48, 24, 64, depth, 50, fuse_qkv=False))
        space["PARAM_GROUPS"].append(fw.ParamGroupConfig(".*", "AdamW", {}))
        with self.assertRaisesRegex(ValueError, "2 patterns match, expected 1"):
            space["check_groups"](llama)

    def test_torchtitan_writes_what_it_has(self):
        def groups(optimizer):
            code = plan("--rule", "maximal-update", *TITAN, "--optimizer", optimizer, "--cut", "none", "--names", "torchtitan",
                        "--format", "torchtitan")
            space = {"ParamGroupConfig": fw.ParamGroupConfig, "LR": 1.0, "MUON_LR": 100.0, "WEIGHT_DECAY": 0.1, "EPS": EPS,
                     "BETAS": (0.9, 0.95)}
            exec(code, space)  # pylint: disable=exec-used
            return fw.titan_groups(fw.titan_llama(48, 24, 64, 3, 50), space["PARAM_GROUPS"])

        # The rule's own rate of a step that is orthogonal, from the optimizer that applies no factor.
        plain = {t["name"]: t["learning_rate"] for t in named("--rule", "maximal-update", *TITAN, "--optimizer", "muon-plain",
                                                             "--cut", "none", "--names", "torchtitan")["tensors"]}
        base = fw.titan_llama(24, 12, 32, 3, 50)
        for optimizer in ("muon-original", "muon-match-adamw", "muon-fan-ratio"):
            found = groups(optimizer)
            for name, parameter in fw.titan_llama(48, 24, 64, 3, 50).named_parameters():
                chosen, options = found[name]
                matrix = name.startswith("layers.") and parameter.dim() == 2
                self.assertEqual(chosen, "DistMuon" if matrix else "AdamW")
                self.assertEqual("eps" in options, not matrix)
                if matrix:  # what moves is the rate times the factor, in both models
                    own = (fw.titan_muon_factor(options["adjust_lr_fn"], *parameter.shape)
                           / fw.titan_muon_factor(options["adjust_lr_fn"], *base.table[name].shape))
                    self.assertTrue(close(options["lr"] / 100 * own, plain[name]), (optimizer, name))
        for decay, adam in (("l2", "Adam"), ("coupled", "AdamW")):
            code = plan("--rule", "gpt2", *GPT[:2], "--decay", decay, "--names", "nanogpt", "--format", "torchtitan")
            self.assertEqual(set(re.findall('optimizer_name="(.*)"', code)), {adam})
        def refused(*options):
            return said("--rule", "maximal-update", *options, "--format", "torchtitan", code=2)

        for optimizer in ("muon-plain", "sign-sgd", "sgd"):
            cut = ("--cut", "none") if optimizer == "muon-plain" else ()
            self.assertIn("torchtitan has no other", refused(*TITAN, "--optimizer", optimizer, "--names", "torchtitan", *cut))
        self.assertIn("takes layers.0.attention.qkv_linear.wqkv.weight whole",
                      refused(*TITAN, "--optimizer", "muon-original", "--names", "torchtitan", "--cut", "qkv"))
        self.assertIn("one rate and decay for all matrices", refused(  # keys of another growth
            *TITAN, "--set", "base.kv_heads=4", "--optimizer", "muon-match-adamw", "--names", "meta-llama"))
        fw.check_dist_muon([])
        for groups in ([{"fused": False}] * 2, [{}]):  # several, and what the container adds
            with self.assertRaisesRegex(ValueError, "DistMuon"):
                fw.check_dist_muon(groups)

    def test_what_the_code_base_computes_besides_is_said(self):
        two = ["--set", "depth=2", "--set", "base.depth=2"]
        gemma = ["--config", str(CONFIGS / "gemma-7b.json"), "--base-config", str(CONFIGS / "gemma-2b.json"), *two]
        for names in (("--names", "gemma"), ("--names", "hf-llama"), ()):
            self.assertEqual(said("--rule", "maximal-update", *gemma, *names, "--format", "json").count(
                "note: the code's norms multiply by 1 + weight: subtract 1 from the means of gains"), 1)
        scaled = "note: the code multiplies embeddings by √m_N times the base's, so that 0.8165 is left to multiply"
        for names in ("gemma", "hf-llama"):
            self.assertIn(scaled, said("--rule", "maximal-update", *gemma, "--names", names, "--format", "json"))
        self.assertNotIn("note:", said("--rule", "maximal-update", *LLAMA, *two, "--names", "hf-llama", "--format", "json"))
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
            base = pathlib.Path(folder) / "base.json"  # a started plan begins with the numbers of the base
            base.write_text(json.dumps({**config, "initializer_range": 0.05}))
            started = ("--rule", "maximal-update", "--start", "gpt2")
            self.assertIn("initializer_range = 0.05", said(*started, "--config", str(own), "--base-config", str(base)))
            self.assertNotIn("initializer_range", said(*started, "--config", str(base), "--base-config", str(own)))
            bart = json.loads((CONFIGS / "bart-large.json").read_text())  # whose class calls it init_std
            own.write_text(json.dumps({**bart, "init_std": 0.05}))
            notes = said("--rule", "gpt2", "--config", str(own))
            self.assertIn("the configuration has init_std = 0.05, the plan has 0.02", notes)
            self.assertNotIn("initializer_range", notes)

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

    def megatron(self, *options):
        code = plan(*options, "--names", "megatron", "--format", "megatron")
        space = {"ParamKey": fw.ParamKey, "LR": LR, "MIN_LR": MIN_LR, "EPS": EPS, "MUON_LR": 0.5, "MUON_MIN_LR": 0.25}
        exec(code, space)  # pylint: disable=exec-used
        return types.SimpleNamespace(**space), types.SimpleNamespace(
            lr=LR, min_lr=MIN_LR, weight_decay=WEIGHT_DECAY, adam_eps=EPS, muon_tp_mode="duplicated", **space["OPTIONS"])

    def test_megatron(self):
        expected = self.settings("complete-p", "megatron")
        code, config = self.megatron("--rule", "complete-p", *SMALL)
        self.assertEqual(config.optimizer, "adam")
        for transformer_engine in (False, True):
            norms = {"input_layernorm.": "self_attention.linear_qkv.layer_norm_",
                     "pre_mlp_layernorm.": "mlp.linear_fc1.layer_norm_"} if transformer_engine else {}
            gpt = fw.megatron_gpt(48, 3, 50, 16, transformer_engine)
            del gpt.table["output_layer.weight"]  # tied
            ddp = [lambda name: "module.module." + name,  # Float16Module in DistributedDataParallel
                   lambda name: "module.module." + fw.WRAPPERS["checkpoint"](name)]
            for model, rename in [*self.wrapped(gpt), *((gpt.named(rename), rename) for rename in ddp)]:
                code.check_overrides(config, [model])
                found = fw.megatron_groups(config, [model], code.CONFIG_OVERRIDES)
                for name, values in expected.items():
                    for own, fused in norms.items():
                        name = name.replace(own, fused)
                    _, rate, low, decay, eps = found.pop(rename(name))
                    self.assertTrue(close(low / MIN_LR, rate / LR))
                    for a, b in zip((rate, decay, eps), values):
                        self.assertTrue(close(a, b), (name, rate, decay, eps, values))
                self.assertEqual(found, {})
            self.counts_are_checked(lambda changed: code.check_overrides(config, [changed]), gpt)
        # The last stage of a pipeline has a copy of the tied table.
        stage = fw.Model([item for item in gpt.table.items() if "layers.2" in item[0] or "final" in item[0]]
                         + [("output_layer.weight", fw.Parameter(50, 48))]).named(lambda name: "module.module." + name)
        code.check_overrides(config, [stage], whole=False)
        with self.assertRaisesRegex(ValueError, "matches 0 tensors, expected 1"):
            code.check_overrides(config, [stage])
        groups = [dict(group) for group in {tuple(sorted(g.items())) for g in code.CONFIG_OVERRIDES.values()}]
        self.assertEqual(fw.megatron_loaded(groups), groups)
        without = [{key: value for key, value in group.items() if key != "lr_mult"} for group in groups]
        self.assertNotEqual(fw.megatron_loaded(without), without)  # block vectors and the final norm differ in epsilon alone
        self.assertTrue(fw.megatron_logged(groups))
        code.CONFIG_OVERRIDES[fw.ParamKey("*.bias")] = {"wd_mult": 0.0}  # Megatron-LM's own
        with self.assertRaisesRegex(ValueError, "bias: 2 patterns match, expected 1"):
            code.check_overrides(config, [gpt])
        config.decoupled_weight_decay = False
        with self.assertRaisesRegex(ValueError, "decoupled_weight_decay = False: expected True"):
            code.check_overrides(config, [gpt])

    def test_megatron_muon(self):
        """Its own matrices and factors: each moves as the rule says, whatever mode has been chosen."""
        own = {"schema": "scalewise.dialect/1", "id": "apart", "extends": "megatron",
               "patterns": [["decoder.layers.{}.self_attention.linear_q.weight", "layer.{}.query"],
                            ["decoder.layers.{}.self_attention.linear_k.weight", "layer.{}.key"],
                            ["decoder.layers.{}.self_attention.linear_v.weight", "layer.{}.value"]]}
        rotary = [*SMALL, "--set", "learned_positions=false", "--set", "base.learned_positions=false"]
        gpt = fw.megatron_gpt(48, 3, 50, 16, True)
        del gpt.table["output_layer.weight"], gpt.table["embedding.position_embeddings.weight"]
        for layer in range(3):
            at = f"decoder.layers.{layer}.self_attention.linear_"
            del gpt.table[f"{at}qkv.weight"]
            gpt.table.update({f"{at}{letter}.weight": fw.Parameter(48, 48) for letter in "qkv"})
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "apart.json"
            path.write_text(json.dumps(own), encoding="utf-8")
            rule = ("--rule", "maximal-update", *rotary)
            plain = {t["name"]: t["learning_rate"] for t in named(*rule, "--optimizer", "muon-plain", "--names",
                                                                 str(path))["tensors"]}
            for optimizer in ("muon-original", "muon-match-adamw", "muon-fan-ratio"):
                space = {"ParamKey": fw.ParamKey, "LR": LR, "MIN_LR": MIN_LR, "EPS": EPS, "MUON_LR": 0.5, "MUON_MIN_LR": 0.25}
                exec(plan(*rule, "--optimizer", optimizer, "--names", str(path), "--format", "megatron"),  # pylint: disable=exec-used
                     space)
                config = types.SimpleNamespace(lr=LR, min_lr=MIN_LR, weight_decay=WEIGHT_DECAY, adam_eps=EPS,
                                               muon_tp_mode="duplicated", **space["OPTIONS"])
                model = gpt.named(lambda name: "module.module." + name)
                space["check_overrides"](config, [model])
                found = fw.megatron_groups(config, [model], space["CONFIG_OVERRIDES"])
                for name, parameter in gpt.named_parameters():
                    chosen, rate, low, _, _ = found["module.module." + name]
                    matrix = name.startswith("decoder.layers") and parameter.dim() == 2
                    self.assertEqual(chosen, "muon" if matrix else "adam")
                    if not matrix:
                        continue
                    self.assertTrue(close(low, rate / 2))
                    factor = [fw.megatron_muon_factor(config.muon_scale_mode, config.muon_extra_scale_factor, *shape)
                              for shape in (parameter.shape, [{48: 24, 96: 40}[size] for size in parameter.shape])]
                    self.assertTrue(close(rate / 0.5 * factor[0] / factor[1], plain[name]), (optimizer, name))
                    scale = 0.2 * math.sqrt(max(parameter.shape)) if optimizer == "muon-match-adamw" else None
                    self.assertTrue(scale is None or close(factor[0], scale))
                for option, value in (("muon_scale_mode", "other"), ("muon_split_qkv", False), ("optimizer", "adam"),
                                      ("muon_extra_scale_factor", 2), ("decoupled_weight_decay", False),
                                      ("muon_scalar_optimizer", "lion"), ("muon_tp_mode", "blockwise")):
                    with self.assertRaisesRegex(ValueError, f"{option} = {value}: expected"):
                        space["check_overrides"](types.SimpleNamespace(**{**vars(config), option: value}), [model])
                # Megatron-LM would give Muon this one.
                model.table["module.module.embedding.word_embeddings.weight"] = fw.Parameter(50, 48)
                with self.assertRaisesRegex(ValueError, "word_embeddings.weight: expected Adam, as in the plan"):
                    space["check_overrides"](config, [model])
                model.table["module.module.embedding.word_embeddings.weight"] = fw.Parameter(50, 48, use_muon=False)
                space["check_overrides"](config, [model])
            for cut in ("none", "qkv"):
                options = self.megatron(*rule, "--optimizer", "muon-spectral", "--cut", cut)[0].OPTIONS
                self.assertEqual(options["muon_split_qkv"], cut == "qkv")
            for optimizer in ("muon-plain", "sign-sgd"):
                self.assertIn("Megatron-LM has no other", said(*rule, "--optimizer", optimizer, "--names", str(path),
                                                               "--format", "megatron", code=2))

    def test_fairseq(self):
        sizes = {"d_model": 48, "heads": 4, "d_ff": 96, "depth": 2, "encoder_depth": 2, "vocab": 50, "context": 16,
                 "learned_positions": "false", "embedding_norm": "false"}
        bart = [word for key, value in sizes.items() for word in ("--set", f"{key}={value}")]
        bart += [word for key, value in {**sizes, "d_model": 24, "d_ff": 48}.items() for word in ("--set", f"base.{key}={value}")]
        rule = ("--rule", "maximal-update", "--preset", "bart-large", "--base-preset", "bart-large", *bart, "--names", "fairseq")
        tensors = named(*rule)["tensors"]
        self.assertNotEqual({t["epsilon"] for t in tensors}, {1})
        space = {}
        exec(plan(*rule, "--format", "fairseq"), space)  # pylint: disable=exec-used
        adam = {"_name": "adam", "adam_betas": [0.9, 0.98], "weight_decay": WEIGHT_DECAY, "adam_eps": EPS}
        cosine = {"_name": "cosine", "warmup_updates": 10, "min_lr": MIN_LR}
        transformer = fw.fairseq_transformer(48, 96, 2, 50)
        for model, rename in self.wrapped(transformer):
            space["set_param_groups"](model)
            found = fw.fairseq_composite(space["composite"](LR, adam, cosine), list(model.table.values()))
            for t in tensors:
                rate, decay, eps, schedule = found[model.table[rename(t["name"])]]
                self.assertTrue(close(rate, LR * t["learning_rate"]) and close(decay, WEIGHT_DECAY * t["weight_decay"])
                                and close(eps, EPS * t["epsilon"]) and close(schedule["min_lr"] / MIN_LR, rate / LR), t)
                self.assertEqual(schedule["warmup_updates"], 10)
        self.counts_are_checked(space["set_param_groups"], transformer)
        triangular = {"_name": "triangular", "max_lr": 10 * LR}  # the peak rate, whatever the group's is
        for group in space["composite"]([LR], adam, triangular)["groups"].values():
            self.assertTrue(close(group["lr_scheduler"]["max_lr"], 10 * group["lr_float"]))
        with self.assertRaisesRegex(ValueError, "lr = .*: expected one rate"):
            space["composite"]([LR, LR], adam, cosine)
        with self.assertRaisesRegex(ValueError, "manual: expected another"):
            space["composite"](LR, adam, {"_name": "manual"})
        with self.assertRaises(KeyError):  # a parameter that nobody named
            fw.fairseq_composite(space["composite"](LR, adam, cosine), [fw.Parameter(1), fw.Parameter(2)])

    def test_neox(self):
        neox = [*SMALL, "--set", "learned_positions=false", "--set", "base.learned_positions=false",
                "--set", "tied_head=false", "--set", "base.tied_head=false"]
        rule = ("--rule", "complete-p", *neox, "--names", "neox")
        tensors = named(*rule)["tensors"]
        space = {}
        exec(plan(*rule, "--format", "neox"), space)  # pylint: disable=exec-used
        arguments = types.SimpleNamespace(use_mup=False, weight_decay=WEIGHT_DECAY, optimizer_type="Adam",
                                          optimizer={"params": {"lr": LR, "eps": EPS}})
        gpt = fw.neox_gpt(48, 96, 3, 50)
        self.assertEqual({t["name"] for t in tensors}, set(gpt.table))
        older = {"linear1": "dense_h_to_4h", "linear2": "dense_4h_to_h"}
        models = [*self.wrapped(gpt),
                  (fw.neox_gpt(48, 96, 3, 50, pipeline=True), lambda name: name.replace("sequential.", "")),
                  (fw.neox_gpt(48, 96, 3, 50, older=True),
                   lambda name: re.sub("linear[12]", lambda found: older[found[0]], name))]
        for model, rename in models:
            optimizer = fw.FusedAdam(space["param_groups"](model, arguments), LR, WEIGHT_DECAY, EPS)
            scheduler = fw.AnnealingLR(optimizer, LR)
            space["scale_rates"](scheduler)
            scheduler.step()
            names = {parameter: name for name, parameter in model.table.items()}
            found = {names[p]: (g["lr"], g["weight_decay"], g["eps"]) for g in optimizer.param_groups for p in g["params"]}
            self.same(found, {rename(t["name"]): (LR * t["learning_rate"], WEIGHT_DECAY * t["weight_decay"],
                                                  EPS * t["epsilon"]) for t in tensors})
        self.counts_are_checked(lambda model: space["param_groups"](model, arguments), gpt)
        with self.assertRaisesRegex(ValueError, "without width_mult"):
            space["scale_rates"](fw.AnnealingLR(fw.FusedAdam([{"params": []}], LR, 0), LR))
        stage = fw.Model([item for item in gpt.table.items() if ".3." in item[0]])  # of a pipeline, with one layer
        space["param_groups"](stage, arguments, whole=False)
        arguments.zero_optimization = {"stage": 1}
        space["param_groups"](gpt, arguments)
        with self.assertRaisesRegex(ValueError, "all stages of a pipeline need as many with ZeRO"):
            space["param_groups"](stage, arguments, whole=False)
        arguments.optimizer_type = "lion"
        with self.assertRaisesRegex(ValueError, "optimizer.type = lion: expected Adam"):
            space["param_groups"](gpt, arguments)
        arguments.use_mup = True
        with self.assertRaisesRegex(ValueError, "use_mup = True: expected False"):
            space["param_groups"](gpt, arguments)

    def test_what_the_model_has_to_multiply_is_said(self):
        rule = ("--rule", "complete-p", *SMALL, "--set", "base.depth=2", "--set", "base.heads=2", "--names", "megatron")
        left = ["logits by 0.5", "branches by 0.6667"]
        note = f"note: the model itself has to multiply: {', '.join(left)} (hint: --fold"
        self.assertEqual(json.loads(plan(*rule, "--format", "torch-groups"))["left_to_multiply"], left)
        self.assertIn(f"# Not in these groups: the model has to multiply {left[1]}.\n", plan(*rule, "--format", "megatron"))
        for written in ("megatron", "tsv", "csv"):
            self.assertIn(note, said(*rule, "--format", written))
        self.assertEqual(json.loads(plan(*rule, "--fold", "--format", "torch-groups"))["left_to_multiply"], [])
        self.assertNotIn("multiply", plan(*rule, "--fold", "--format", "megatron"))
        for options in ((*rule, "--format", "c-header"), (*rule, "--fold", "--format", "megatron")):
            self.assertNotIn("has to multiply", said(*options))

    def test_a_fused_matrix_wants_a_base_of_the_same_ratio_of_heads(self):
        llama = ("--rule", "complete-p", "--preset", "llama-3-70b", "--set", "depth=2", "--names", "megatron")
        self.assertIn("hint: take a base with as many queries to a key, as --base-width makes it, or split the tensor",
                      plan(*llama, "--base-preset", "llama-3-8b", "--set", "base.depth=2", code=2))
        plan(*llama, "--base-width", "1024")

    def test_what_other_code_bases_lack(self):
        small = ("--rule", "maximal-update", *SMALL, "--names", "nanogpt")
        for style in ("fairseq", "neox"):
            l2 = ("--rule", "gpt2", *GPT[:2], "--decay", "l2", "--names", "nanogpt")
            self.assertIn("decays as AdamW does", plan(*l2, "--format", style, code=2))
            self.assertIn("expected adamw", plan(*small, "--optimizer", "sign-sgd", "--format", style, code=2))
        self.assertIn("scales rates itself", plan(*small, "--optimizer", "sgd", "--format", "neox", code=2))
        space = {}
        exec(plan(*small, "--optimizer", "sgd", "--format", "fairseq"), space)  # pylint: disable=exec-used
        groups = space["composite"](1.0, {"_name": "sgd"}, {"_name": "fixed"})["groups"].values()
        self.assertTrue(all("adam_eps" not in group["optimizer"] for group in groups))

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

    def test_csv_has_each_part_of_each_tensor(self):
        arguments = ("--rule", "complete-p", *SMALL, "--names", "nanogpt")
        result = named(*arguments)
        entries = {e["name"]: e for e in result["plan"]["entries"]}
        rows = list(csv.DictReader(io.StringIO(plan(*arguments, "--format", "csv"))))
        self.assertEqual([(row["tensor"], row["name"]) for row in rows],
                         [(t["name"], part["entry"]) for t in result["tensors"] for part in t["parts"]])
        for row in rows:
            for number in ("init_variance", "multiplier", "learning_rate", "weight_decay", "epsilon"):
                self.assertEqual(float(row[number]), entries[row["name"]][number]["value"], row)

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

    def hostile_plan(self, folder):
        """A dialect of hostile names, and the arguments that use it: as many layers as there are names for."""
        rule = ("--rule", "gpt2", *GPT[:2], *sized(), "--set", "depth=4", "--names")
        tensors = named(*rule, "nanogpt")["tensors"]
        self.assertGreater(len(tensors), len(hostile.NAMES))
        own = [*hostile.NAMES, *(f"a{i}" for i in range(len(tensors) - len(hostile.NAMES)))]
        path = pathlib.Path(folder) / "mine.json"
        path.write_text(json.dumps({"schema": "scalewise.dialect/1", "id": own[0], "title": own[1], "patterns": [
            [name, " ".join(part["entry"] for part in t["parts"])] for name, t in zip(own, tensors)]}), encoding="utf-8")
        return own, (*rule, str(path))

    def test_no_name_leaves_its_place(self):
        with tempfile.TemporaryDirectory() as folder:
            own, arguments = self.hostile_plan(folder)
            model = fw.Model({name: fw.Parameter(1) for name in own})
            self.assertEqual([t["name"] for t in named(*arguments)["tensors"]], own)
            groups = json.loads(plan(*arguments, "--format", "torch-groups"))["groups"]
            for name in own:
                self.assertEqual(sum(bool(re.match(p, name)) for g in groups for p in g["patterns"]), 1, name)
            space = {"ParamGroupConfig": fw.ParamGroupConfig, "ParamKey": fw.ParamKey, "LR": LR, "MIN_LR": MIN_LR,
                     "WEIGHT_DECAY": WEIGHT_DECAY, "EPS": EPS, "BETAS": (0.9, 0.95)}
            config = types.SimpleNamespace(optimizer="adam", decoupled_weight_decay=True)
            neox = types.SimpleNamespace(use_mup=False, weight_decay=WEIGHT_DECAY, optimizer={"params": {}},
                                         optimizer_type="adam")
            for style, check in (("torchtitan", lambda: space["check_groups"](model)),
                                 ("megatron", lambda: space["check_overrides"](config, [model])),
                                 ("fairseq", lambda: space["set_param_groups"](model)),
                                 ("neox", lambda: space["param_groups"](model, neox))):
                code = plan(*arguments, "--format", style)
                hostile.python_constants(code)
                exec(code, space)  # pylint: disable=exec-used
                check()
            rows = [line.split("\t") for line in plan(*arguments, "--format", "tsv").split("\n")[:-1]]
            self.assertEqual({len(row) for row in rows}, {14})
            self.assertEqual([*dict.fromkeys(row[0] for row in rows[1:])], own)
            printed = hostile.c_strings(COMPILER, plan(*arguments, "--format", "c-header"), folder)
            self.assertEqual(printed[:len(own)], own)
            for style, read, text in (("csv", hostile.csv_rows, hostile.from_spreadsheet),
                                      ("markdown", hostile.markdown_rows, lambda cell: cell),
                                      ("latex", hostile.latex_rows, hostile.latex_text)):
                cells = [row[0] for row in read(plan(*arguments, "--layers", "--format", style))[1:]]
                shown = [name.strip() if style == "markdown" else name for name in own]
                names = [text(cell) for cell in cells if cell.strip()]  # once for each part in CSV
                self.assertEqual([*dict.fromkeys(names)] if style == "csv" else names, shown, style)

    def test_names_that_cannot_be_shown_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "mine.json"
            rule = ("--rule", "gpt2", *GPT[:2], *sized())
            for text in hostile.REFUSED:
                own = {"schema": "scalewise.dialect/1", "id": "mine", "extends": "nanogpt", "title": "mine", "prefix": "a.",
                       "patterns": [["transformer.wte.weight", "token_embedding"]]}
                for change in ({"id": text}, {"title": text}, {"prefix": text}, {"patterns": [[text, "token_embedding"]]},
                               {"patterns": [["a", text]]}):
                    path.write_text(json.dumps({**own, **change}), encoding="utf-8")
                    error = plan(*rule, "--names", str(path), code=2)
                    self.assertIn("expected a name in UTF-8 without control characters", error, change)
                    self.assertTrue(hostile.is_visible(error), ascii(error))
                if "\0" not in text:
                    error = plan(*rule, "--extra", f"{text}:norm_gain:d_model", code=2)
                    self.assertIn("expected a name in UTF-8 without control characters", error)
                    self.assertTrue(hostile.is_visible(error), ascii(error))
                    error = plan(*rule, "--extra", f"a:norm_gain:{text}", code=2)
                    self.assertTrue(hostile.is_visible(error), ascii(error))

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
        listed = ("--rule", "maximal-update", "--preset", "gemma-2-2b", "--base-width", 576)
        self.assertIn("--format = tsv: expected table, json, csv, latex or markdown",
                      plan(*map(str, listed), "--format", "tsv", code=2))
        lines = plan(*gpt2, "--names", "meta-llama", code=2).splitlines()
        self.assertEqual(lines[0], "plan: cannot name the tensors as meta-llama does:")
        self.assertIn("  position_embedding: meta-llama has no tensor for it", lines)
        self.assertIn("nanoGPT", plan("--list-names"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
