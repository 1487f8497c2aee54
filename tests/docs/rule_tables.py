#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Compares each number in the tables of docs/rules/ with plans, so that the page of a rule is its table typed again.

    rule_tables.py --source ROOT --plan PROGRAM [RULE...]

The section "Table" of docs/rules/<id>.md has a table that begins with the column "group" and has a column for each number
of a plan, and sentences that begin with "Model:".

- Groups are ids in plain words ("token embedding", "MLP up") or one of SETS; the smallest set that has a group is its row, and
  each group that a plan has needs a row. Notes in parentheses are skipped, but "(start at 1)" is the initial value. A
  row may end with a condition ("up to 18 layers", "with ReLU").
- Columns are "init variance", "init mean", "multiplier", "epsilon", "decay" with its form, and rates with the names of their
  optimizers, or all. What has no column is 1, a mean 0. "as `xavier`" and "as MLP up" take what the row leaves open.
- Cells are formulas, such as 1/(√(m_fo·m_N)·m_L^α); "=" between two says the same twice, and a distribution may follow after a
  comma. Letters are those of `letters()`, "s is the `s`" in the page names a parameter, and others are the plan's own.
- A table that begins with "stack" has letters that differ between stacks. One with columns such as "Table 8" has the groups
  in bold, above their numbers, for each value of the parameter `table`.
- "<!-- checked with s=0.3 -->" says which parameters, and fields of the shape, the numbers are compared with.
"""

import argparse
import functools
import math
import pathlib
import re
import sys

from page_tables import Formula, differs, run, settings, tables_of

# Models in which all sizes, and all ratios to the base, differ: two formulas that agree on them are one.
SIZES = {"d_model": (96, 40), "depth": (6, 4), "heads": (8, 6), "head_dim": (20, 12), "kv_heads": (4, 3), "d_ff": (352, 112)}
MODELS = {
    "decoder": ("gpt2", {"vocab": 500, "context": 33, "tied_head": "true", "head_bias": "true", "embedding_norm": "true"}, {}),
    "untied decoder": ("gpt2", {"vocab": 500, "context": 33, "tied_head": "false", "gated_mlp": "true", "segments": 3,
                                "activation": "silu", "iterations": 900}, {"iterations": 200}),
    "two stacks": ("t5-base", {"vocab": 500, "context": 33, "encoder_depth": 9, "learned_positions": "true", "biases": "true",
                               "norm_bias": "true"}, {"encoder_depth": 2}),
    "patches": ("vit-b16", {"patch_dim": 75, "classes": 7, "context": 26}, {}),
}
BLOCKS = {"query", "key", "value", "attention_output", "mlp_up", "mlp_gate", "mlp_down"}
GAINS = {"norm_gain", "embedding_norm_gain", "final_norm_gain"}
NORM_BIASES = {"norm_bias", "embedding_norm_bias", "final_norm_bias"}
MATRIX_BIASES = {"hidden_bias", "head_bias", "patch_bias", "relative_position"}  # relative positions are biases of scores
TABLES = {"token_embedding", "position_embedding", "segment_embedding", "class_token"}
ADDED = {"token_embedding", "patch_embedding", "position_embedding", "segment_embedding"}
SETS = {"embeddings": TABLES, "input weights": TABLES | {"patch_embedding"}, "matrices of the blocks": BLOCKS,
        "hidden weights": BLOCKS, "output weights": {"head"}, "gains": GAINS, "norm gains": GAINS,
        "biases": NORM_BIASES | MATRIX_BIASES, "norm biases": NORM_BIASES, "biases of matrices": MATRIX_BIASES,
        "gains of the blocks": {"norm_gain"}, "biases of the blocks": {"norm_bias", "hidden_bias", "relative_position"},
        "α_A, α_M": {"attention_step", "mlp_step"}, "s_qk": {"qk_scale"}, "s_u, s_v": {"up_scale", "gate_scale"},
        "s_z": {"logit_scale"}}
NUMBERS = {"init_variance": 1, "init_mean": 0, "multiplier": 1, "learning_rate": 1, "weight_decay": 1, "epsilon": 1}


def depth(shape, stack):
    return shape["encoder_depth"] if stack == "encoder" else shape["depth"]


def letters(page, plan, base, part):
    """The value of each letter for a tensor, or a branch, of a plan."""
    shape, stack = plan["shape"], part["stack"]
    sizes = {"n": "d_model", "F": "d_ff", "C": "head_dim", "H": "heads", "K": "kv_heads", "n_patch": "patch_dim",
             "n_out": "classes" if shape["input"] == "patch" else "vocab", "N_e": "encoder_depth", "N_d": "depth"}
    values = {letter: shape[field] for letter, field in sizes.items()}
    values |= {"M": shape["d_ff"] / shape["d_model"], "L": depth(shape, stack), "l": (part["layer"] or 0) + 1,
               "t": len({entry["group"] for entry in plan["entries"]} & ADDED)}
    if base:
        before = base["shape"]
        ratios = {"m_N": "d_model", "m_F": "d_ff", "m_C": "head_dim", "m_H": "heads", "m_D": "iterations"}
        values |= {letter: shape[field] / (before[field] or 1) or 1 for letter, field in ratios.items()}
        values |= {"m_L": values["L"] / depth(before, stack), "C0": before["head_dim"]}
    if "fan_in" in part:
        values |= {"fi": part["fan_in"], "fo": part["fan_out"]}
        if base:
            old = base["fans"][without_layer(part["name"])]
            values |= {"m_fi": part["fan_in"] / old[0], "m_fo": part["fan_out"] / old[1]}
    own = {item["symbol"]: item["value"] for item in plan["symbols"] + part.get("where", [])}
    parameters = {item["name"]: item["value"] for item in plan["rule"]["parameters"]}

    def value(letter):
        if letter in page.parameters:
            return parameters[page.parameters[letter]]
        if letter in page.of_stack:
            return Formula(page.of_stack[letter][stack if stack in page.stacks else "one stack"], value).value()
        if letter in page.squares:
            return math.sqrt(Formula(page.squares[letter], value).value())
        for known in (values, own, parameters):
            for name in (letter, letter.removesuffix("_l")):
                if name in known:
                    return known[name]
        raise ValueError(f"{letter} is not a known letter")

    return value


def without_layer(name):
    return re.sub(r"\.\d+\.", ".", name)


CONDITIONS = {
    "with ReLU": lambda shape, layers: shape["activation"] == "relu" and not shape["gated_mlp"],
    "with another activation or a gate": lambda shape, layers: shape["activation"] != "relu" or shape["gated_mlp"],
    "up to 18 layers": lambda shape, layers: layers <= 18,
    "with 19 to 24 layers": lambda shape, layers: 19 <= layers <= 24,
    "with more layers": lambda shape, layers: layers > 24,
}


class Row:
    """A row of a table: its groups, what they start at, when it holds, and its cells by the number of a plan."""

    def __init__(self, first, numbers, known):
        self.numbers, self.holds, self.sets, self.starts = numbers, lambda shape, layers: True, [], {}
        for words, holds in CONDITIONS.items():
            if first.endswith(" " + words):
                first, self.holds = first.removesuffix(words).strip().removesuffix(","), holds
        noun = ""  # "token, position, segment embedding": of what follows
        for item in [first] if first in SETS else reversed(re.split(r",\s*(?![^()]*\))", first)):
            name = re.sub(r"\s*\([^)]*\)", "", item).strip()
            groups = set(known) if name == "everything else" else SETS.get(name[:1].lower() + name[1:]) or SETS.get(name) or {
                id for words in (name, f"{name} {noun}") for id in [words.lower().replace(" ", "_")] if id in known}
            if not groups:
                raise ValueError(f"{name} is not a group or set of groups")
            if name.lower().replace(" ", "_") in known:
                noun = name.split(" ")[-1]
            self.sets.append(groups)
            start = re.search(r"\(starts? at ([^)]*)\)", item)
            self.starts |= {group: start[1] for group in groups} if start else {}

    def size(self, group):
        """How many groups the item has that names the group; 0 if none does."""
        return min((len(groups) for groups in self.sets if group in groups), default=0)


def number_of(heading, optimizer):
    """Which number of a plan a column has for an optimizer, if any."""
    heading = re.sub(r"\s*\(.*?\)", "", heading).split(",")[0]
    if heading.endswith("rate"):
        named = set(heading.removesuffix("rate").lower().replace("and", "").split())
        own = optimizer.split("-")[0]
        return "learning_rate" if not named or own in named or (own == "muon" and "adamw" in named) else None
    return {"init variance": "init_variance", "init mean": "init_mean", "multiplier": "multiplier", "epsilon": "epsilon",
            "decay": "weight_decay", "distribution": "distribution"}.get(heading)


class Page:
    """What a page says in its section "Table"."""

    def __init__(self, folder, rule, known):
        text = (folder / f"{rule}.md").read_text(encoding="utf-8")
        self.folder, self.rule, self.known, self.refused = folder, rule, known, []
        self.parameters = dict(re.findall(r"(\S+)\s+is\s+the\s+`(\w+)`", text))
        self.settings = [dict(setting.split("=") for setting in found.split())
                         for found in re.findall(r"<!-- checked with (.*?) -->", text)] or [{}]
        self.text = re.search(r"^## Table\n(.*?)^## ", text, re.MULTILINE | re.DOTALL)[1]
        self.tables = tables_of(self.text)
        model = re.search(r"\bModel: (.*?)\.?(?:\.\s|\n\n)", self.text + "\n\n", re.DOTALL)
        self.model = " ".join(model[1].split()) if model else ""
        self.squares = dict(re.findall(r"([α-ω])² = (.*?)(?=,| and |;|\.|$)", self.model))
        self.of_stack, self.stacks = {}, set()
        for heading, *rows in self.tables:
            if heading[0] == "stack":
                self.stacks = {row[0] for row in rows}
                for i, letter in enumerate(heading[1:], 1):
                    self.of_stack[letter.split(" ")[0]] = {row[0]: row[i] for row in rows}

    def form(self):
        """The form of weight decay that the heading names, or none."""
        return re.search(r"decay, (coupled|independent)", self.text)

    def rows(self, optimizer, parameters):
        rows = []
        for heading, *lines in self.tables:
            if heading[0] == "group":
                columns = [number_of(name, optimizer) for name in heading]
                rows += [Row(line[0], {column: cell for column, cell in zip(columns, line) if column and cell}, self.known)
                         for line in lines]
            elif heading[0] == "":
                rows += self.formulations(lines, heading.index(f"Table {parameters['table']:.0f}"), optimizer)
        return rows

    def formulations(self, lines, column, optimizer):
        """Rows and the sentence of the model from a table that has groups in bold and a formulation in each column."""
        rows, model = [], []
        for line in lines:
            cell = line[column]
            if line[0] == "**Model**" or model:
                model.append(f"{line[0]} {cell}".strip())
            elif line[0].startswith("**"):
                rows.append(Row(line[0].strip("*"), {}, self.known))
            elif line[0] == "initial gain":
                rows[-1].starts |= {group: cell for group in GAINS}
            elif number := number_of(line[0], optimizer):
                rows[-1].numbers[number] = cell
        self.model = "; ".join(model[1:])
        return rows

    def row(self, entry, shape, rows):
        group, layers = entry["group"], depth(shape, entry["stack"])
        fitting = [row for row in rows if row.size(group) and row.holds(shape, layers)]
        smallest = min((row.size(group) for row in fitting), default=0)
        fitting = [row for row in fitting if row.size(group) == smallest]
        if len(fitting) != 1:
            raise ValueError(f"{len(fitting)} rows")
        return fitting[0]

    def number(self, number, entry, plan, rows, value):
        """The value of a number of an entry, and its distribution if the page names one."""
        group, row = entry["group"], self.row(entry, plan["shape"], rows)
        if group in row.starts and number == "init_mean":
            return value(row.starts[group]), None
        cell = row.numbers.get(number, "")
        other = re.match(r"as (?:\[`(.*?)`\]|(.*))", row.numbers.get("init_variance", ""))
        if other and (not cell or cell.startswith("as ")):
            if other[1]:
                page = page_of(self.folder, other[1], self.known)
                return page.number(number, entry, plan, page.rows(plan["optimizer"], {}), value)
            named = min(Row(other[2], {}, self.known).sets[0])
            return self.number(number, {**entry, "group": named}, plan, rows, value)
        if not cell:
            return 0 if group in row.starts and number == "init_variance" else NUMBERS[number], None
        formulas, _, distribution = cell.partition(", ")
        first, *others = [value(formula) for formula in formulas.split(" = ")]
        if any(differs(other, first) for other in others):
            raise ValueError(f"{cell}: {first}, {others}")
        return first, (distribution or row.numbers.get("distribution", "")).split(" ±")[0] or None


page_of = functools.cache(Page)


def entry_problems(page, plan, base, rows):
    last = {depth(plan["shape"], stack) - 1 for stack in ("encoder", "main")}
    for entry in plan["entries"]:
        if entry["layer"] not in {None, 0, 1, *last}:
            continue
        letter = letters(page, plan, base, entry)
        for number in NUMBERS:
            if number == "epsilon" and plan["optimizer"].startswith("muon") and entry["group"] in BLOCKS:
                expected = 1  # Muon has none
            else:
                try:
                    expected, distribution = page.number(number, entry, plan, rows,
                                                         lambda text: Formula(text, letter).value())
                except ValueError as error:
                    yield f"{entry['group']}: {error}"
                    break
            found = entry[number]
            if differs(found["value"], expected):
                yield f"{entry['name']}, {number}: the page has {expected:.15g}, the plan {found['value']:.15g} = {found['formula']}"
            if number == "init_variance":
                expected = distribution or ("normal" if expected else "constant")
                if entry["distribution"].replace("_", " ") != expected:
                    yield f"{entry['name']}: the page has {expected}, the plan {entry['distribution']}"


def model_problems(page, plan, base, rows):
    """The sentence "Model:": numbers with semicolons between them. What it leaves out is 1, or the factor of the tensor."""
    def value(formula, part={"stack": "main", "layer": 0}):
        return Formula(formula.strip() or "1", letters(page, plan, base, part)).value()

    def multiplier(group):
        entry = next(entry for entry in plan["entries"] if entry["group"] == group)
        return page.number("multiplier", entry, plan, rows, lambda formula: value(formula, entry))[0]

    if not page.model:
        yield 'no sentence that begins with "Model:"'
        return
    model, branches = plan["model"], plan["model"]["residuals"]
    untied = 1 if plan["shape"]["tied_head"] else multiplier("head")
    expected = {"attention scale": [(model["attention_scale"], 1)], "logits": [(model["logit_multiplier"], untied)],
                "residual": [pair for branch in branches for pair in ((branch["skip"], 1), (branch["branch"], 1))]}
    for item in re.split(r"; (?![^(]*\))", page.model):
        if found := re.match(r"attention scale (?:τ₀ = )?(.*?)(?: on unit-norm queries and keys|, that is.*)?$", item):
            expected["attention scale"] = [(model["attention_scale"], value(found[1]))]
        elif found := re.match(r"residual (?:norm\()?([^x]*)x \+ ([^f]*)f\([^)]*\)\)?(.*?)(?: with β.*)?$", item):
            skip, before, after = (found[i].replace("g ⊙ ", "").replace("g·", "") for i in (1, 2, 3))
            expected["residual"] = [pair for branch in branches for pair in (
                (branch["skip"], value(skip, branch)), (branch["branch"], value(f"{before or 1}{after}", branch)))]
        elif found := re.match(r"logits (of a tied head )?times (.*?)(?:, tied or not)?$", item):
            if not found[1] or plan["shape"]["tied_head"]:
                expected["logits"] = [(model["logit_multiplier"], value(found[2]))]
        elif not item.startswith(("no logit factor", "token embedding times ", "h ← ", "logits (init/scale)")):
            yield f"{item} is not understood"
    if plan["shape"]["input"] == "token":
        expected["token embedding"] = [(model["embedding_multiplier"], multiplier("token_embedding"))]
    for name, pairs in expected.items():
        for found, number in pairs:
            if differs(found["value"], number):
                yield f"{name}: the page has {number:.15g}, the plan {found['value']:.15g} = {found['formula']}"


def plans(program, page, rule):
    """Yields what is compared, its plan, and the base's with the fans of its tensors, or None for a rule without a base."""
    forms = ["--decay", page.form()[1]] if page.form() else []
    sizes, base_sizes = ({field: pair[i] for field, pair in SIZES.items()} for i in range(2))
    for name, (preset, target, base_only) in MODELS.items():
        base_fields = base_sizes | target | base_only
        based = ["--base-preset", preset, *settings(base_fields, "base.")] if rule["base"] == "needed" else []
        for fields in page.settings:
            for optimizer in rule["optimizer"].split(", "):
                common = [program, "--rule", page.rule, "--optimizer", optimizer, "--format", "json", "--preset", preset, *forms]
                label = ", ".join([name, optimizer, *(f"{field}={value}" for field, value in fields.items())])
                plan = run(*common, *settings(sizes | target | fields), *based)
                base = run(*common, *settings(base_fields | fields), *based) if based else None
                if isinstance(plan, str) or isinstance(base, str):
                    page.refused.append(f"{label}: not compared: {plan if isinstance(plan, str) else base}")
                    continue
                if base:
                    base["fans"] = {without_layer(entry["name"]): (entry["fan_in"], entry["fan_out"])
                                    for entry in base["entries"]}
                yield label, plan, base


def problems(program, page, rule):
    compared = False
    for label, plan, base in plans(program, page, rule):
        compared = True
        rows = page.rows(plan["optimizer"], {item["name"]: item["value"] for item in plan["rule"]["parameters"]})
        for problem in [*entry_problems(page, plan, base, rows), *model_problems(page, plan, base, rows)]:
            yield f"{label}: {problem}"
    if not compared:
        yield "no plan was compared"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=pathlib.Path, required=True, help="the source tree")
    parser.add_argument("--plan", required=True, help="the program plan")
    parser.add_argument("rules", nargs="*", help="rules; all if none is named")
    arguments = parser.parse_args()

    rules = {rule["rule"]: rule for rule in run(arguments.plan, "--list-rules", "--format", "json")}
    groups = set(re.findall(r"Group::(\w+), \"", (arguments.source / "include/scalewise/architecture/group.hpp").read_text()))
    failed = False
    for name in arguments.rules or rules:
        try:
            page = page_of(arguments.source / "docs/rules", name, frozenset(groups))
            found = [*dict.fromkeys(problems(arguments.plan, page, rules[name]))]
            found += page.refused if found else []
        except (ValueError, TypeError) as error:
            found = [str(error)]
        for problem in found[:20]:
            print(f"docs/rules/{name}.md: {problem}")
        failed = failed or bool(found)
    sys.exit(failed)


if __name__ == "__main__":
    main()
