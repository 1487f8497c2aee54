#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""The reader of plans in Python, which needs no PyTorch, and the library's: both refuse and accept the same.

    plans.py PLAN_PROGRAM SOURCE_FOLDER
"""

import copy
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest

PLAN, SOURCE = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
sys.path.insert(0, str(SOURCE / "python"))
import scalewise_plan  # noqa: E402

HOSTILE = json.loads((SOURCE / "tests" / "data" / "hostile_plans.json").read_text(encoding="utf-8"))


def plan_text(*arguments):
    return subprocess.run([PLAN, *arguments, "--format", "json"], capture_output=True, encoding="utf-8", check=True).stdout


def place(data, pointer):
    """The object or list that holds a member, and its key."""
    *path, last = pointer.split("/")[1:]
    for key in path:
        data = data[int(key) if isinstance(data, list) else key]
    return data, int(last) if isinstance(data, list) else last


def changed(pointer, text):
    """The plan of the corpus as text, with one member replaced by a text, which may be no JSON."""
    data = copy.deepcopy(HOSTILE["plan"])
    holder, key = place(data, pointer)
    holder[key] = "@@"
    return json.dumps(data).replace('"@@"', text)


class OneSchema(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "plan.json"

    def refusal(self, text):
        """The message about a file, or None."""
        self.path.write_text(text, encoding="utf-8", errors="surrogatepass")
        try:
            scalewise_plan.load(self.path)
        except ValueError as error:
            return str(error)
        return None

    def test_both_readers_refuse_and_accept_the_same(self):
        self.assertIsNone(self.refusal(json.dumps(HOSTILE["plan"])))
        tried = 0
        for case in HOSTILE["cases"]:
            for pointer in case["at"]:
                for text in case["to"]:
                    tried += 1
                    with self.subTest(at=pointer, to=text):
                        message = self.refusal(changed(pointer, text))
                        self.assertEqual(message is None, case["accepted"], message)
                        self.assertTrue(message is None or message.startswith(str(self.path)), message)
        for pointer in HOSTILE["removed"]:
            data = copy.deepcopy(HOSTILE["plan"])
            holder, key = place(data, pointer)
            del holder[key]
            with self.subTest(removed=pointer):
                self.assertIsNotNone(self.refusal(json.dumps(data)))
        for case in HOSTILE["texts"]:
            with self.subTest(text=case["text"]):
                self.assertEqual(self.refusal(case["text"]) is None, case["accepted"])
        self.assertGreater(tried, 600)

    def test_what_only_the_library_knows_is_not_read(self):
        for case in HOSTILE["by_library"]:
            for pointer in case["at"]:
                for text in case["to"]:
                    with self.subTest(at=pointer, to=text):
                        self.assertIsNone(self.refusal(changed(pointer, text)))

    def test_closed_lists_have_the_same_words(self):
        form = scalewise_plan._PLAN_FORM
        entry = form["entries"][0]
        mine = {"decay": form["decay"], "reference": form["rule"]["reference"], "distribution": entry["distribution"],
                "stack": entry["stack"]}
        for key, words in HOSTILE["words"].items():  # a fingerprint has the places of decay, reference and distribution
            self.assertEqual(list(mine[key]), words, key)


class Multipliers(unittest.TestCase):
    def test_what_the_code_multiplies_itself_is_divided_out(self):
        """T5's scores are q·k, and its tied logits are over √n; a total of 1/4 leaves 1/4 and 1 to do."""
        data = copy.deepcopy(HOSTILE["plan"])
        self.assertIsNone(scalewise_plan.Plan(data).left_to_do())
        number = {"value": 1.0, "formula": "1", "latex": "1"}
        data["model"]["attention_scale"]["value"] = 0.25
        data["model"]["code"] = {"attention_scale": number, "embedding_multiplier": {**number, "value": 4.0},
                                 "logit_multiplier": {**number, "value": 0.5}, "branch": {**number, "value": 0.25}}
        self.assertEqual(scalewise_plan.Plan(data).left_to_do(), {
            "attention_scale": 0.25, "embedding_multiplier": 0.25, "logit_multiplier": 1.0, "residuals": [(1.0, 4.0)]})


class NamedPlans(unittest.TestCase):
    """Plans for the tensors of a code base, which Python alone reads."""

    def setUp(self):
        self.good = json.loads(plan_text("--rule", "gpt2", "--preset", "gpt2", "--set", "depth=1", "--names", "nanogpt"))

    def tensor(self, data, name):
        return next(t for t in data["tensors"] if t["name"] == name)

    def message(self, change):
        data = copy.deepcopy(self.good)
        change(data)
        try:
            scalewise_plan.Plan(data)
        except ValueError as error:
            return str(error)
        return "no error"

    def test_every_entry_is_one_part_of_one_tensor(self):
        fused, up = "transformer.h.0.attn.c_attn.weight", "transformer.h.0.mlp.c_fc.weight"

        def parts(change, name=fused):
            return self.message(lambda data: change(self.tensor(data, name)["parts"]))

        self.assertEqual(self.message(lambda data: None), "no error")
        # A third of c_attn would stay as it was.
        self.assertEqual(parts(lambda p: p.pop()), "plan: layer.0.value: in 0 tensors: expected one")
        self.assertEqual(parts(lambda p: p.append(p[0])), "plan: layer.0.query: in 2 tensors: expected one")
        self.assertIn("plan: layer.0.value: in 2 tensors", parts(lambda p: p[0].update(entry="layer.0.value")))
        self.assertIn(f"plan: {fused}: tokens is not an entry of the plan", parts(lambda p: p[0].update(entry="tokens")))

        def runs(*given):
            return parts(lambda p: p[1].update(select=[{"axis": 0, "runs": list(given)}]))

        self.assertEqual(runs([768, 768]), "no error")
        self.assertEqual(runs([768, 1], [769, 767]), "no error")
        self.assertEqual(runs([0, 768]), f"plan: {fused}: layer.0.key overlaps another part or the padding")
        self.assertEqual(runs([767, 768]), f"plan: {fused}: layer.0.key overlaps another part or the padding")
        self.assertIn("layer.0.key has [767, 768] of [2304, 768]: expected [768, 768]", runs([768, 767]))
        for given in ([1537, 768], [768, 0], [768], [768, 768, 0], [770, 768, 2], [768, 768, 1, 1]):
            self.assertIn(f"{fused}: runs = [{given}]: expected [begin, count] or [begin, count, step] within its 2304 rows",
                          runs(given))

        def thirds(*runs):
            return parts(lambda p: [part.update(select=[{"axis": 0, "runs": [run]}]) for part, run in zip(p, runs)])

        self.assertEqual(thirds([1, 768, 3], [0, 768, 3], [2, 768, 3]), "no error")
        self.assertEqual(thirds([0, 768, 2], [1, 768, 2], [1536, 768]), "no error")
        self.assertEqual(thirds([0, 384, 6], [1, 768, 3], [2, 768, 3]),
                         f"plan: {fused}: layer.0.query has [384, 768] of [2304, 768]: expected [768, 768]")
        for overlapping in (([0, 768, 3], [1, 768, 3], [1, 768, 3]), ([0, 768, 3], [1, 768, 3], [2, 768, 2]),
                            ([0, 768, 2], [1, 768, 2], [1535, 768])):
            self.assertRegex(thirds(*overlapping), "layer.0.(key|query|value) overlaps another part")
        self.assertIn("runs = [[768, 400], [800, 368]]: overlap", runs([768, 400], [800, 368]))
        self.assertIn("plan.tensors[4].parts[1].select[0].runs[0][0] = -1: expected a whole number", runs([-1, 768]))
        self.assertIn("axis = 2: expected", parts(lambda p: p[1].update(select=[{"axis": 2, "runs": [[0, 1]]}])))
        self.assertIn("several runs along one axis", parts(lambda p: p[0].update(select=[
            {"axis": 0, "runs": [[0, 1], [1, 3071]]}, {"axis": 1, "runs": [[0, 1], [1, 767]]}]), up))

    def test_sizes_are_those_of_the_entries(self):
        wte = "transformer.wte.weight"

        def tensor(name=wte, **members):
            return self.message(lambda data: self.tensor(data, name).update(members))

        self.assertEqual(tensor(shape=[768, 50257]), f"plan: {wte}: token_embedding has [768, 50257] of [768, 50257]: "
                         "expected [50257, 768]")
        self.assertIn("its parts have 38597376 numbers: expected 38645760, as part of it would stay",
                      self.message(lambda data: self.tensor(data, wte).update(shape=[50320, 768], parts=[
                          {"entry": "token_embedding", "select": [{"axis": 0, "runs": [[0, 50257]]}]}])))
        padded = {"shape": [50304, 768], "parts": [{"entry": "token_embedding", "select": [{"axis": 0, "runs": [[0, 50257]]}]}]}
        self.assertEqual(tensor(**padded, padding=[{"axis": 0, "runs": [[50257, 47]]}]), "no error")
        self.assertIn("token_embedding overlaps another part or the padding",
                      tensor(**padded, padding=[{"axis": 0, "runs": [[50256, 48]]}]))
        # Axes of one row, and patches of a convolution in three axes: ViT's tensors as they are.
        self.assertEqual(tensor(shape=[1, 50257, 768]), "no error")
        self.assertEqual(tensor("transformer.h.0.mlp.c_fc.weight", shape=[3072, 3, 16, 16]), "no error")
        self.assertIn("mlp_up has", tensor("transformer.h.0.mlp.c_fc.weight", shape=[3, 3072, 16, 16]))

    def test_names_are_given_once(self):
        self.assertIn("plan: transformer.wte.weight: given 2 times", self.message(
            lambda data: data["tensors"][1].update(name="transformer.wte.weight")))
        self.assertIn("plan: lm_head.weight: nothing is not a tensor of the plan", self.message(
            lambda data: data.update(aliases=[{"name": "lm_head.weight", "of": "nothing"}])))
        self.assertIn("plan: final_norm_gain: 2 entries of this name", self.message(
            lambda data: data["plan"]["entries"].append(data["plan"]["entries"][-2])))
        for name in ("", "a\nb", "\x1b[31m", "\u202e"):
            self.assertIn("plan.tensors[0].name = ", self.message(lambda data: data["tensors"][0].update(name=name)))
        for value in (-1.0, math.nan, math.inf, None, "1"):
            for factor in ("learning_rate", "weight_decay", "epsilon"):
                self.assertIn(f"plan.tensors[0].{factor} = ", self.message(
                    lambda data: data["tensors"][0].update({factor: value})))
        self.assertIn("plan.colour = 1: expected a known key", self.message(lambda data: data.update(colour=1)))

    def test_factors_of_a_tensor_are_those_of_its_entries(self):
        name = "transformer.h.0.attn.c_attn.weight"
        for factor in ("learning_rate", "weight_decay", "epsilon"):
            right = next(e for e in self.good["plan"]["entries"] if e["name"] == "layer.0.key")[factor]["value"]
            self.assertEqual(self.message(lambda data: self.tensor(data, name).update({factor: right * (1 + 1e-12)})), "no error")
            self.assertIn(f"plan: {name}: {factor} = 7: expected {right:.6g}, as entry layer.0.key has it",
                          self.message(lambda data: self.tensor(data, name).update({factor: 7})))

    def test_every_dialect_writes_what_is_read(self):
        listed = subprocess.run([PLAN, "--list-names"], capture_output=True, encoding="utf-8", check=True).stdout
        presets = ("gpt2", "llama-3.2-1b", "bert-base", "vit-b16", "t5-base", "bart-large", "pythia-160m")
        read = set()
        for names in [line.split()[0] for line in listed.splitlines()[1:]]:
            for preset in presets:
                done = subprocess.run([PLAN, "--rule", "standard", "--preset", preset, "--set", "depth=2", "--names", names,
                                       "--format", "json"], capture_output=True, encoding="utf-8", check=False)
                if done.returncode == 0:
                    scalewise_plan.Plan(json.loads(done.stdout))
                    read.add(names)
                    break
        self.assertGreater(len(read), 15)


class Fingerprint(unittest.TestCase):
    def test_it_is_that_of_the_library(self):
        """tests/io/hostile_plans_test.cpp has the same fingerprint from the library's function."""
        plan = scalewise_plan.Plan(HOSTILE["plan"])
        self.assertEqual(plan.fingerprint(), HOSTILE["fingerprint"])
        for pointer, text in (("/decay", '"l2"'), ("/entries/1/epsilon/value", "2"), ("/entries/0/distribution", '"uniform"'),
                              ("/model/residuals/0/branch/value", "2"), ("/rule/id", '"he"')):
            other = scalewise_plan.Plan(json.loads(changed(pointer, text)))
            self.assertNotEqual(other.fingerprint(), plan.fingerprint(), pointer)
        for pointer, text in (("/rule/title", '"another"'), ("/entries/0/source", '"another"')):
            self.assertEqual(scalewise_plan.Plan(json.loads(changed(pointer, text))).fingerprint(), plan.fingerprint())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
