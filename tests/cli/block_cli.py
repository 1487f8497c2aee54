#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""block_cli.py PLAN SOURCE: the pictures of `plan --format svg`, for every rule and several kinds of models.

The numbers in a picture, and those of the map that `--layers` asks for, are compared with those of
`plan --format json`, read and written here.
"""

import collections
import csv
import functools
import io
import itertools
import json
import pathlib
import re
import subprocess
import sys
import unittest
import xml.etree.ElementTree as xml

PLAN, SOURCE = sys.argv.pop(1), pathlib.Path(sys.argv.pop(1))
SVG = "{http://www.w3.org/2000/svg}"

# A kind of model: options of the model and its base. Few layers say the same as many.
MODELS = {
    "gpt": "--preset gpt2-xl --base-preset gpt2 --set depth=6",
    "llama": "--preset llama-3-8b --base-preset llama-3.2-1b --set depth=3",
    "bert": "--preset bert-large --base-preset bert-base --set depth=3",
    "t5": "--preset t5-large --base-preset t5-base --set depth=4 --set encoder_depth=3",
    "vit": "--preset vit-l16 --base-preset vit-b16 --set depth=3",
}
# For rules that are made for two matrices and ReLU.
RELU = " --set activation=relu --set gated_mlp=false"
TOLD = " --set dropout=0.1 --set input_correlation=0.221"
NUMBERS = ("multiplier", "init_variance", "learning_rate", "weight_decay")


def run(options, code=0):
    done = subprocess.run([PLAN, *options.split()], capture_output=True, encoding="utf-8", check=False)
    if done.returncode != code:
        raise AssertionError(f"plan {options}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout if code == 0 else done.stderr


@functools.cache
def pictures():
    """The rules, and (rule, kind of model) -> (plan as JSON, picture, options) for all that they allow."""
    rules = [row["rule"] for row in csv.DictReader(io.StringIO(run("--list-rules --format csv")))]
    drawn = {}
    for rule in rules:
        for kind, model in MODELS.items():
            told = TOLD if rule.startswith("deep-scale-lm") else ""
            for options in (f"--rule {rule} {model}", f"--rule {rule} {model}{RELU}{told}"):
                done = subprocess.run([PLAN, *options.split(), "--format", "json"], capture_output=True,
                                      encoding="utf-8", check=False)
                if done.returncode == 0:
                    drawn[rule, kind] = json.loads(done.stdout), run(options + " --format svg"), options
                    break
    return rules, drawn


def four_digits(numbers):
    low, high = min(numbers, key=lambda n: n["value"]), max(numbers, key=lambda n: n["value"])
    text = f"{low['value']:.4g}"
    if low["value"] != high["value"]:
        text += f"…{high['value']:.4g}"
    alone = low["value"] == high["value"] and is_number(low["formula"])
    return text if alone else f"{text} = {low['formula']}"


def is_number(text):
    return re.fullmatch(r"-?\d+(\.\d+)?(e-?\d+)?", text) is not None


def label_of(entry):
    """layer.3.query -> query, encoder.3.query -> encoder.query."""
    if entry["layer"] is None:
        return entry["name"]
    name = entry["name"].rpartition(".")[2]
    return name if entry["stack"] == "main" else f"{entry['stack']}.{name}"


def expected(plan):
    """What the plan says: the text of each number by its name, "query learning_rate"."""
    tensors = collections.defaultdict(list)
    for entry in plan["entries"]:
        tensors[label_of(entry)].append(entry)
    texts = {}
    for label, entries in tensors.items():
        for quantity in NUMBERS:
            texts[f"{label} {quantity}"] = four_digits([e[quantity] for e in entries])
        mean = four_digits([e["init_mean"] for e in entries])
        if mean != "0":
            texts[f"{label} init_variance"] += f" mean {mean}"
    model = plan["model"]
    shallow = plan["shape"]["blocks"] == "shallow_encoder"
    names = ["attention_scale", "logit_multiplier"] + ([] if shallow else ["embedding_multiplier"])
    for name in names:
        texts[name] = four_digits([model[name]])
    if plan["shape"]["blocks"] == "residual":  # the others have no such connection
        for stack in {r["stack"] for r in model["residuals"]}:
            prefix = "" if stack == "main" else f"{stack}."
            for name in ("skip", "branch"):
                texts[f"{prefix}residual_{name}"] = four_digits(
                    [r[name] for r in model["residuals"] if r["stack"] == stack])
    return {name: text.replace(" ", "") for name, text in texts.items()}


def shown(svg):
    """The text of each number of a picture; its lines follow each other. Both blocks of a layer have the model's."""
    texts = {}
    for name, lines in itertools.groupby(xml.fromstring(svg).iter(f"{SVG}text"), lambda text: text.get("data-number")):
        text = "".join(line.text for line in lines).replace(" ", "").replace(",mean", "mean")
        if name and texts.setdefault(name, text) != text:
            raise AssertionError(f"{name}: {texts[name]} and {text}")
    return texts


# Titles of maps of layers.
TITLES = {
    ("ds-init", "gpt"): "ds-init: initial variance falls 6-fold from the first layer to the last",
    ("complete-p", "gpt"): "complete-p: all 6 layers alike; residual_branch and epsilon depend on the depth",
    ("maximal-update", "gpt"): "maximal-update: all 6 layers alike",
}
QUANTITIES = {"init_variance": "initial variance", "init_mean": "initial mean", "multiplier": "multiplier",
              "learning_rate": "learning rate", "weight_decay": "weight decay", "epsilon": "epsilon"}


def cells(svg):
    """Of the cells of a map, the text that pointing at one shows: what is in front of the colon, and the number."""
    for rect in xml.fromstring(svg).iter(f"{SVG}rect"):
        found = re.fullmatch(r"((?:layer|encoder|decoder)\.\d+) ([\w, ]+: (?:%s)) (.*)" % "|".join(QUANTITIES.values()),
                             rect.findtext(f"{SVG}title") or "")
        if found:
            yield found.groups()


class Layers(unittest.TestCase):
    """The map that `--layers` asks for."""

    def test_titles_and_numbers_are_those_of_the_plan(self):
        for (rule, kind), (plan, _, options) in pictures()[1].items():
            if kind not in ("gpt", "t5"):
                continue
            with self.subTest((rule, kind)):
                svg = run(options + " --layers --format svg")
                if (rule, kind) in TITLES:
                    self.assertEqual(xml.fromstring(svg).findtext(f"{SVG}title"), TITLES[rule, kind])
                numbers = {(*entry["name"].rpartition(".")[::2], quantity): four_digits([entry[key]])
                           for entry in plan["entries"] for key, quantity in QUANTITIES.items()}
                checked = 0
                for layer, row, number in cells(svg):
                    tensors, _, quantity = row.partition(": ")
                    for tensor in tensors.split(", "):
                        if (layer, tensor, quantity) in numbers:  # not "gains and biases", nor residual connections
                            self.assertEqual(number, numbers[layer, tensor, quantity], (layer, tensor, quantity))
                            checked += 1
                self.assertGreater(checked, 10)


class Block(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.rules, drawn = pictures()
        cls.drawn = {key: of[:2] for key, of in drawn.items()}

    def test_every_rule_and_kind_of_model_is_drawn(self):
        self.assertEqual({rule for rule, _ in self.drawn}, set(self.rules))
        kinds = collections.Counter(kind for _, kind in self.drawn)
        for kind in ("gpt", "llama", "bert", "t5", "vit"):
            self.assertGreater(kinds[kind], 5, kind)
        self.assertTrue(any(plan["shape"]["blocks"] == "normalized" for plan, _ in self.drawn.values()))
        self.assertTrue(any(plan["shape"]["blocks"] == "shallow_encoder" for plan, _ in self.drawn.values()))

    def test_the_numbers_are_those_of_the_plan(self):
        for key, (plan, svg) in self.drawn.items():
            with self.subTest(key):
                got, want = shown(svg), expected(plan)
                differ = {name: (got.get(name), want.get(name)) for name in {*got, *want}
                          if got.get(name) != want.get(name)}
                self.assertEqual(differ, {})

    def test_kinds_differ_where_they_should(self):
        self.assertIn("pre-norm", self.drawn["maximal-update", "gpt"][1])
        self.assertIn("post-norm", self.drawn["bert", "bert"][1])
        self.assertIn("post-norm", self.drawn["deep-norm", "gpt"][1])
        self.assertIn("SiLU(gate)", self.drawn["maximal-update", "llama"][1])
        self.assertNotIn("SiLU(gate)", self.drawn["maximal-update", "gpt"][1])
        self.assertIn("Decoder layer, 4 times", self.drawn["maximal-update", "t5"][1])

    def test_a_tensor_of_your_own_is_in_it(self):
        svg = run("--rule maximal-update --preset gpt2-xl --base-preset gpt2 --extra layer.*.mine:query:1600,7 "
                  "--extra a&b<c:norm_gain:8 --format svg")
        self.assertIn("mine learning_rate", shown(svg))
        self.assertIn("a&b<c multiplier", shown(svg))

    def test_what_a_picture_cannot_show_is_refused(self):
        model = "--preset gpt2 --base-preset gpt2 --format svg"
        self.assertIn("format = svg: expected --rule (hint: a picture shows one plan)",
                      run(f"--compare gpt2,he {model}", 2))
        self.assertIn("format = svg: expected --rule (hint: a picture shows one plan)",
                      run(f"--compare gpt2,he --layers {model}", 2))
        self.assertIn("format = svg: expected no --names", run(f"--rule he --names nanogpt {model}", 2))

    def test_the_pictures_of_the_documentation_are_made_by_their_commands(self):
        pages = 0
        for page in sorted((SOURCE / "docs").rglob("*.md")):
            for command in re.findall(r"^plan (.*--format svg --save .*\.svg)$", page.read_text(encoding="utf-8"), re.M):
                options, _, name = command.rpartition(" --save ")
                with self.subTest(page.name):
                    self.assertEqual((SOURCE / "docs/pictures" / name).read_text(encoding="utf-8"), run(options))
                    pages += 1
        self.assertGreater(pages, 0)


if __name__ == "__main__":
    unittest.main()
