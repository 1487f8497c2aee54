#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""block_cli.py PLAN SOURCE: the pictures of `plan --format svg`, for every rule and several kinds of models.

The numbers in a picture are compared with those of `plan --format json`, read and written here; so are the colours
of the map that `--layers` asks for. In Chromium, where there is one, no two texts overlap, none leaves the picture,
and none is wider than the library takes it to be.
"""

import collections
import csv
import functools
import io
import itertools
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "playground"))
import browser

PLAN, SOURCE = sys.argv.pop(1), pathlib.Path(sys.argv.pop(1))
SVG = "{http://www.w3.org/2000/svg}"

# A kind of model: options of the model and its base. A plan has a row for each tensor of each layer, so that what
# says the same with fewer layers has fewer.
MODELS = {
    "gpt": "--preset gpt2-xl --base-preset gpt2 --set depth=24",
    "llama": "--preset llama-3-8b --base-preset llama-3.2-1b --set depth=10",
    "bert": "--preset bert-large --base-preset bert-base --set depth=10",
    "t5": "--preset t5-large --base-preset t5-base --set depth=11 --set encoder_depth=10",
    "bart": "--preset bart-large --base-preset bart-large --set depth=10 --set encoder_depth=11",
    "vit": "--preset vit-l16 --base-preset vit-b16 --set depth=10",
    "qk-norm": "--preset olmo-2-7b --base-preset olmo-2-1b --set depth=10",
}
# For rules that are made for two matrices and ReLU.
RELU = " --set activation=relu --set gated_mlp=false"
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
            for options in (f"--rule {rule} {model}", f"--rule {rule} {model}{RELU}"):
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


# Rules whose initial variances are factors on those of the base (docs/getting-started.md).
RELATIVE = ("maximal-update", "depth-mup", "complete-p")
# Titles of maps of layers.
TITLES = {
    ("ds-init", "gpt"): "ds-init: initial variance falls 24-fold from the first layer to the last",
    ("complete-p", "gpt"): "complete-p: all 24 layers alike; residual_branch and epsilon depend on the depth",
    ("maximal-update", "gpt"): "maximal-update: all 24 layers alike",
}
QUANTITIES = {"init_variance": "initial variance", "init_mean": "initial mean", "multiplier": "multiplier",
              "learning_rate": "learning rate", "weight_decay": "weight decay", "epsilon": "epsilon"}
VECTOR = re.compile(r"norm_|_norm|gain|bias$|_step$|_scale$|relative_position")


def cells(svg):
    """The cells of a map: the text that pointing at one shows, and its shade (None: grey)."""
    for rect in xml.fromstring(svg).iter(f"{SVG}rect"):
        title = rect.find(f"{SVG}title")
        if title is not None:
            kind = rect.get("class").split()[0]
            shade = None if kind == "n" else float(rect.get("fill-opacity")) * (-1 if kind == "lc" else 1)
            yield title.text, shade


@functools.cache
def cells_of_layers(svg):
    """(tensors, quantity) -> (stack, layer) -> (text, shade), of the cells that are no legend."""
    rows = collections.defaultdict(dict)
    for text, shade in cells(svg):
        found = re.fullmatch(r"(layer|encoder|decoder)\.(\d+) ([\w, ]+): (%s) (.*)" % "|".join(QUANTITIES.values()), text)
        if found:
            stack, layer, tensors, quantity, number = found.groups()
            rows[tensors, quantity]["main" if stack == "layer" else stack, int(layer)] = number, shade
    return rows


def layer_numbers(plan):
    """(stack, layer, tensor, quantity) -> value, ratio to what the colour compares it with, text."""
    numbers = {}
    relative = plan["relative"]
    for entry in plan["entries"]:
        if entry["layer"] is None:
            continue
        for key, quantity in QUANTITIES.items():
            scale = entry["fan_in"] if key == "init_variance" and not relative else 1
            number = entry[key]
            numbers[entry["stack"], entry["layer"], entry["name"].rpartition(".")[2], quantity] = (
                number["value"], number["value"] * scale, four_digits([number]))
    if plan["shape"]["blocks"] == "residual":
        for residual in plan["model"]["residuals"]:
            for name in ("skip", "branch"):
                numbers[residual["stack"], residual["layer"], f"residual_{name}", "multiplier"] = (
                    residual[name]["value"], residual[name]["value"], four_digits([residual[name]]))
    return numbers


class Layers(unittest.TestCase):
    """The map that `--layers` asks for."""

    @classmethod
    def setUpClass(cls):
        cls.drawn = {(rule, kind): (plan | {"relative": rule in RELATIVE}, run(options + " --layers --format svg"))
                     for (rule, kind), (plan, _, options) in pictures()[1].items() if kind in ("gpt", "t5")}

    def test_titles_say_what_differs_between_layers(self):
        for key, title in TITLES.items():
            self.assertEqual(xml.fromstring(self.drawn[key][1]).find(f"{SVG}title").text, title)

    def test_colours_and_texts_are_those_of_the_plan(self):
        for key, (plan, svg) in self.drawn.items():
            with self.subTest(key):
                numbers, shown = layer_numbers(plan), {}
                by_row = collections.defaultdict(dict)
                for place, number in numbers.items():
                    by_row[place[2:]][place[:2]] = number
                vectors = {tensor for tensor, _ in by_row if VECTOR.search(tensor)}
                self.assertTrue(cells_of_layers(svg))
                for (tensors, quantity), of_row in cells_of_layers(svg).items():
                    for tensor in self.tensors_of(tensors, quantity, vectors, cells_of_layers(svg)):
                        shown[tensor, quantity] = True
                        places = of_row.keys() & by_row[tensor, quantity].keys()
                        self.assertEqual(places, by_row[tensor, quantity].keys())
                        for place in places:
                            self.assertEqual(of_row[place][0], by_row[tensor, quantity][place][2])
                logs = [abs(math.log10(abs(ratio))) for row in shown for _, ratio, _ in by_row[row].values() if ratio]
                limit = max([1, *(math.ceil(2 * log - 1e-9) / 2 for log in logs)])
                for (tensors, quantity), of_row in cells_of_layers(svg).items():
                    tensor = next(iter(self.tensors_of(tensors, quantity, vectors, cells_of_layers(svg))))
                    for place, (_, shade) in of_row.items():
                        ratio = by_row[tensor, quantity][place][1]
                        if ratio == 0:
                            self.assertIsNone(shade)
                        else:
                            self.assertAlmostEqual(shade, 0.75 * math.log10(abs(ratio)) / limit, delta=6e-4)
                for (tensor, quantity), of_row in by_row.items():  # what is left out says nothing
                    if (tensor, quantity) not in shown:
                        one = quantity != "initial variance" or plan["relative"] or VECTOR.search(tensor)
                        zero = quantity == "initial mean" or VECTOR.search(tensor)
                        self.assertTrue(all((one and ratio == 1) or (zero and value == 0)
                                            for value, ratio, _ in of_row.values()), (tensor, quantity))

    @staticmethod
    def tensors_of(label, quantity, vectors, rows):
        """The tensors of a row: those that it names, or all gains and biases that no other row names."""
        if not label.endswith("gains and biases"):
            return label.split(", ")
        return vectors - {name for names, of in rows if of == quantity for name in names.split(", ")}


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

    def test_letters_are_readable(self):
        for key, (_, svg) in self.drawn.items():
            root = xml.fromstring(svg)
            with self.subTest(key):
                self.assertLessEqual(float(root.get("width")), 860)  # what a README is wide
                sizes = {float(t.get("font-size")) for t in root.iter(f"{SVG}text")}
                self.assertGreaterEqual(min(sizes), 11)
                self.assertIn("prefers-color-scheme:dark", svg)

    def test_kinds_differ_where_they_should(self):
        self.assertIn("pre-norm", self.drawn["maximal-update", "gpt"][1])
        self.assertIn("post-norm", self.drawn["bert", "bert"][1])
        self.assertIn("post-norm", self.drawn["deep-norm", "gpt"][1])
        self.assertIn("SiLU(gate)", self.drawn["maximal-update", "llama"][1])
        self.assertNotIn("SiLU(gate)", self.drawn["maximal-update", "gpt"][1])
        self.assertIn("Decoder layer, 11 times", self.drawn["maximal-update", "t5"][1])

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

    @unittest.skipUnless(browser.chromium(), "no Chromium")
    def test_no_two_texts_overlap_in_a_browser(self):
        look = """[...document.querySelectorAll("svg")].map(svg => {
            const boxes = [...svg.querySelectorAll("text")].map(t => ({text: t.textContent, box: t.getBBox()}));
            const [width, height] = [svg.width.baseVal.value, svg.height.baseVal.value];
            const bad = [];
            boxes.forEach(({text, box: a}, i) => {
              if (a.x < 0 || a.y < 0 || a.x + a.width > width || a.y + a.height > height) bad.push("outside: " + text);
              boxes.slice(i + 1).forEach(({text: other, box: b}) => {
                const apart = a.x + a.width <= b.x || b.x + b.width <= a.x ||
                              a.y + a.height <= b.y || b.y + b.height <= a.y;
                if (!apart) bad.push(text + " | " + other);
              });
            });
            return bad; })"""
        keys = list(self.drawn)
        page = browser.Browser()
        self.addCleanup(page.close)
        page.resize(900)
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "all.html"
            file.write_text("<!doctype html><meta charset=utf-8>" + "".join(svg for _, svg in self.drawn.values()) +
                            "<script>document.documentElement.dataset.ready = 1</script>", encoding="utf-8")
            page.open(file.as_uri())
            found = page.evaluate(look)
        self.assertEqual(len(found), len(keys))
        self.assertEqual({str(key): bad for key, bad in zip(keys, found) if bad}, {})
        self.assertEqual(page.errors, [])


if __name__ == "__main__":
    unittest.main()
