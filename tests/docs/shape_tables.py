#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Compares the table of tensors in docs/shape.md with those of plans: names, groups, fans and sizes.

    shape_tables.py --source ROOT --plan PROGRAM

"[cross_]query" is "query", and "cross_query" in a decoder behind an encoder. A tensor is there when all conditions of its row
hold: "`field`" that is not 0, false or none, "no `field`", "`field` = value", "this or that", and "in layer 0". The models are
those below, and for each row one in which all its conditions hold, also of two stacks and with a gate, those in which one of
them does not, and those without one of the flags of any row, if they are possible.
"""

import argparse
import pathlib
import re
import sys

from page_tables import Formula, differs, run, settings, tables_of

SIZES = {"d_model": 96, "depth": 3, "heads": 8, "head_dim": 20, "kv_heads": 4, "d_ff": 352, "vocab": 500, "context": 33,
         "segments": 5}
EXPERTS = {"experts": 6, "experts_per_token": 2, "expert_ff": 72}
SIZED = {"experts": EXPERTS, "segments": {"segments": 5}, "relative_buckets": {"relative_buckets": 9}}
MODELS = {
    "decoder": ("standard", "gpt2", {}),
    "normalized": ("ngpt", "gpt2", {}),
    "patches": ("standard", "vit-b16", {"patch_dim": 75, "classes": 7}),
    "two stacks": ("standard", "t5-base", {"encoder_depth": 2, "relative_buckets": 9, "gated_mlp": "true", "embedding_norm": "true",
                                           "learned_positions": "true", "qk_norm": "full", "branch_norm": "true",
                                           "attention_biases": "all", "norm_bias": "true"}),
    "gains of channels": ("layer-scale", "t5-base", {"encoder_depth": 2, "biases": "true"}),
    "gains of branches": ("rezero", "gpt2", {}),
    "experts": ("standard", "gpt2", {**EXPERTS, "biases": "false"}),
    "gated experts": ("standard", "gpt2", {**EXPERTS, "biases": "false", "gated_mlp": "true"}),
}
LETTERS = {"n": "d_model", "F": "d_ff", "C": "head_dim", "H": "heads", "K": "kv_heads", "E": "experts", "F_e": "expert_ff",
           "n_patch": "patch_dim"}


def holds(condition, shape, layer):
    """Whether one of the conditions of a row holds."""
    for part in condition.split(" or "):
        field, value = re.search(r"`(\w+)`(?: = (\w+))?", part).groups() if part != "in layer 0" else (None, None)
        found = shape.get(field, 0)
        if (layer == 0) if field is None else (found == value if value else (found not in (0, "none")) != part.startswith("no ")):
            return True
    return False


def expected_tensors(table, shape):
    """name -> group, fan-in, fan-out, rows, columns, as the page has them."""
    values = {letter: shape.get(field, 0) for letter, field in LETTERS.items()}
    values["n_out"] = shape["classes"] if shape["input"] == "patch" else shape["vocab"]

    def value(text):
        return Formula(re.sub("`([a-z_]+)`", lambda field: str(shape[field[1]]), text), values.__getitem__).value()

    stacks = {"encoder": shape["encoder_depth"], "decoder": shape["depth"]} if shape["encoder_depth"] else {"": shape["depth"]}
    tensors = {}
    for names, group, fans, size, when, places in table:
        for stack, layer in places(stacks):
            if not all(holds(condition, shape, layer) for condition in when.split(", ") if condition):
                continue
            for name in re.findall(r"`(.+?)`", names):
                own = name.replace("[cross_]", "")
                prefix = f"{stack or 'layer'}.{layer}." if layer is not None else f"{stack}." if stack else ""
                row = (own if group == "the same" else group.strip("`"), *map(value, fans.split(" → ")),
                       *map(value, size.split(" × ")), *([] if "×" in size else [1]))
                for found in [own, f"cross_{own}"] if own != name and stack == "decoder" else [own]:
                    if prefix + found in tensors:
                        raise ValueError(f"{prefix + found} has two rows")
                    tensors[prefix + found] = row
    return tensors


def models_of(when, flags):
    """Models in which all conditions of a row hold, the first of several with "or", all but one, and without each flag."""
    conditions = [re.search(r"(no )?`(\w+)`(?: = (\w+))?", condition).groups() for condition in when.split(", ") if "`" in condition]
    models = {}

    def add(preset, fields):
        models[f"{preset} {fields}"] = ("standard", preset, fields)

    for without in (None, *range(len(conditions))):
        preset, fields = "gpt2", {}
        for i, (no, field, value) in enumerate(conditions):
            if field in ("blocks", "residual_gain"):  # set by rules
                continue
            on = (i != without) != bool(no)
            if field == "input":
                preset = "vit-b16" if (value == "patch") == on else "gpt2"
            elif field in SIZED:
                fields |= SIZED[field] if on else {field: 0}
            elif on or not value:
                fields[field] = value or str(on).lower()
        add(preset, fields)
        if without is None:
            sizes = [{field: "3"} for no, field, value in conditions if not (no or value)]  # if that is not a flag
            for change in [*sizes, *({flag: "false"} for flag in flags), {"gated_mlp": "true"}]:
                add(preset, fields | change)
            for change in ({}, *sizes):
                add("t5-base", {"encoder_depth": 2} | fields | change)
    return models


PLACES = {
    "**In the model**": lambda stacks: [("", None)],
    "**In each stack**": lambda stacks: [(stack, None) for stack in stacks],
    "**In each layer**": lambda stacks: [(stack, layer) for stack, layers in stacks.items() for layer in range(layers)],
}


def problems(plan, table):
    expected = expected_tensors(table, plan["shape"])
    for entry in plan["entries"]:
        row = expected.pop(entry["name"], None)
        found = (entry["group"], entry["fan_in"], entry["fan_out"], entry["rows"], entry["columns"])
        if not row:
            yield f"{entry['name']} has no row"
        elif row[0] != found[0] or any(differs(*pair) for pair in zip(found[1:], row[1:])):
            yield f"{entry['name']}: the page has {row}, the plan {found}"
    yield from (f"{name} is in no plan" for name in expected)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=pathlib.Path, required=True, help="the source tree")
    parser.add_argument("--plan", required=True, help="the program plan")
    arguments = parser.parse_args()

    page = (arguments.source / "docs/shape.md").read_text(encoding="utf-8")
    table, places = [], None
    for row in next(rows for rows in tables_of(page) if rows[0][0] == "tensor")[1:]:
        places = PLACES.get(row[0], places)
        if row[0] not in PLACES:
            table.append((*row, places))
    models = dict(MODELS)
    flags = set(re.findall(r"`(\w+)`(?! =)", " ".join(row[4] for row in table))) - set(SIZED)
    for row in table:
        models |= models_of(row[4], sorted(flags))
    found, seen = [], set()
    for name, (rule, preset, fields) in models.items():
        sizes = {field: value for field, value in SIZES.items() if preset == "gpt2" or field not in ("vocab", "segments")}
        plan = run(arguments.plan, "--rule", rule, "--preset", preset, "--format", "json", *settings(sizes | fields))
        if not isinstance(plan, str):
            found += [f"{name}: {problem}" for problem in problems(plan, table)]
            seen |= {entry["name"].rpartition(".")[2] for entry in plan["entries"]}
        elif name in MODELS:
            found.append(f"{name}: {plan}")
    named = {name.replace("[cross_]", "") for row in table for name in re.findall(r"`(.+?)`", row[0])}
    found += [f"no model here has {name}" for name in named - seen]
    for problem in dict.fromkeys(found):
        print(f"docs/shape.md: {problem}")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
