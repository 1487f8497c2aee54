# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Reads a plan and checks that it is one, without PyTorch. `import scalewise` has Plan and load, too.

    plan = scalewise_plan.load("plan.json")
    plan.entries["layer.0.query"]["init_variance"]["value"]
"""

import collections
import contextlib
import json
import math
import operator
import os
import re
import struct
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple, Union

__all__ = ["Plan", "load"]

# As docs/plan_schema.md and docs/dialects.md say. The library's reader and this one are held together by
# tests/data/hostile_plans.json.


class _Range(NamedTuple):
    """Numbers; both bounds included."""

    kind: type
    least: float
    most: float


class _OrNull(NamedTuple):
    form: Any


_REAL = _Range(float, -1e308, 1e308)
_NOT_NEGATIVE = _Range(float, 0, 1e308)
_LAYER, _SIZE = _Range(int, 0, 5000), _Range(int, 1, 1 << 30)
_NUMBER = {"value": _REAL, "formula": str, "latex": str}
_FACTOR = {"value": _NOT_NEGATIVE, "formula": str, "latex": str}
_SYMBOLS = [{"symbol": str, "latex": str, "meaning": str, "value": _REAL}]
_STACKS = ("none", "main", "encoder", "decoder")
_REFERENCES, _DECAYS = ("absolute", "base"), ("coupled", "independent", "l2")
_DISTRIBUTIONS = ("normal", "truncated_normal", "uniform", "constant", "own")
# Muon, by the factor by which it multiplies the step of a matrix itself.
MUON = {"muon-plain": "1", "muon-fan-ratio": "√(fan-out/fan-in)", "muon-original": "√max(1, fan-out/fan-in)",
        "muon-spectral": "√max(fan-in, fan-out)", "muon-match-adamw": "0.2 √max(fan-in, fan-out)"}
_SHAPE = {"d_model": _SIZE, "heads": _SIZE, "*": "scalar"}  # sizes, flags and words, which are not read here
FACTORS = ("learning_rate", "weight_decay", "epsilon")
_ENDS = dict.fromkeys(("attention_scale", "embedding_multiplier", "logit_multiplier"), _NUMBER)
_PLAN_FORM = {
    "schema": ("scalewise.plan/1",),
    "rule": {**dict.fromkeys(("id", "title", "authors", "year", "paper", "where", "start?"), str),
             "reference": _REFERENCES, "parameters": [{"name": str, "value": _REAL}]},
    "optimizer": "id", "decay": _DECAYS, "shape": _SHAPE, "base": _OrNull(_SHAPE),
    "model": {**_ENDS, "source": str, "code?": {**_ENDS, "branch": _NUMBER},
              "residuals": [{"stack": _STACKS, "layer": _LAYER, "skip": _NUMBER, "branch": _NUMBER, "where": _SYMBOLS}]},
    "symbols": _SYMBOLS, "constants?": [{"name": str, "value": _NOT_NEGATIVE}],
    "entries": [{"name": "printable", "group": "id", "stack": _STACKS, "layer": _OrNull(_LAYER), "rows": _SIZE,
                 "columns": _SIZE, "fan_in": _REAL, "fan_out": _REAL, "optimizer?": "id",
                 "distribution": _DISTRIBUTIONS, "init_variance": _FACTOR, "init_mean": _NUMBER, "multiplier": _NUMBER,
                 **dict.fromkeys(FACTORS, _FACTOR), "source": str, "where": _SYMBOLS}],
    "extra?": [{"name": str, "group": "id", "rows": str, "columns": str, "fan_in?": str, "own_values?": bool, "in_layers?": bool}], "warnings?": [str]}
# A listed model need not say how wide its heads are.
_LISTED_SHAPE = {"d_model": _SIZE, "*": "scalar"}
_LISTED_FORM = {**_PLAN_FORM, "shape": _LISTED_SHAPE, "base": _OrNull(_LISTED_SHAPE),
                "model": {"attention_scale?" if key == "attention_scale" else key: form for key, form in _PLAN_FORM["model"].items()}}
_AXES = [{"axis": _Range(int, 0, 7), "runs": [[_Range(int, 0, 1 << 30)]]}]
_NAMED_PLAN_FORM = {
    "schema": ("scalewise.named_plan/1",), "plan": _PLAN_FORM, "dialect": str, "prefix": str, "ignored": [str], "unplanned?": [str],
    "aliases": [{"name": "printable", "of": "printable"}], "alternatives?": [{"name": "printable", "of": "printable"}],
    "tensors": [{"name": "printable", "shape": [_SIZE], "transposed": bool, "parts": [{"entry": str, "select": _AXES}],
                 **dict.fromkeys(FACTORS, _NOT_NEGATIVE), "padding?": _AXES}]}


def _require(data: Any, form: Any, where: str) -> None:
    """Refuses data of another form, naming the first key that is missing, unknown or wrong.

    A form is an object with these keys ("key?" may be absent, and "*" stands for all others), a list of one form, a tuple of
    words, a range of numbers, a type, "printable" text, the "id" of a group or an optimizer, or a "scalar".
    """
    def refuse(expected: str) -> None:
        raise ValueError(f"{where} = {shown(data)}: expected {expected}")

    if isinstance(form, _OrNull):
        return None if data is None else _require(data, form.form, where)
    if isinstance(form, _Range):
        if type(data) is not int and (form.kind is int or type(data) is not float):
            refuse("a whole number" if form.kind is int else "a number")
        if not (form.least <= data <= form.most and abs(data) < 1e308):  # no NaN is
            refuse(f"a whole number from {form.least} to {form.most}" if form.kind is int else
                   "a finite number" + (", 0 or greater" if form.least == 0 else ", greater than 0" if form.least > 0 else ""))
    elif isinstance(form, tuple):
        if data not in form:
            refuse(" or ".join(form) if len(form) < 8 else "one of " + ", ".join(form))
    elif form == "scalar":
        if not isinstance(data, (int, str, type(None))):
            refuse("a whole number, true, false or a word")
    elif form == "id":
        if not (isinstance(data, str) and re.fullmatch("[a-z][a-z0-9_-]*", data)):
            refuse("an id, such as adamw or mlp_up")
    elif form == "printable":
        if not (isinstance(data, str) and data.isprintable() and data):
            refuse("a name without control characters")
    elif isinstance(form, list):
        if not isinstance(data, list):
            refuse("a list")
        for i, item in enumerate(data):
            _require(item, form[0], f"{where}[{i}]")
    elif isinstance(form, dict):
        if not isinstance(data, dict):
            refuse("an object")
        known = {key.rstrip("?"): inner for key, inner in form.items()}
        for key in form:
            if key not in data and key[-1] not in "?*":
                raise ValueError(f"{where}.{key} (missing): expected a value")
        for key, value in data.items():
            if key not in known and "*" not in known:
                raise ValueError(f"{where}.{shown(key)[1:-1]} = {shown(value)}: expected a known key")
            _require(value, known[key if key in known else "*"], f"{where}.{key}")
    elif not isinstance(data, form) or form is str and any(0xD800 <= ord(letter) < 0xE000 for letter in data):
        refuse({str: "a string", bool: "true or false"}[form])


def _only_once(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        key = next(key for key, count in collections.Counter(key for key, _ in pairs).items() if count > 1)
        raise ValueError(f"{shown(key)[1:-1]} (given twice): expected one value for each key")
    return found


def _no_constant(text: str) -> None:
    raise ValueError(f"{text}: expected a finite number")


def _runs(axes: List[Dict[str, Any]], shape: List[int]) -> List[List[List[int]]]:
    """The runs of every axis of a tensor, all of an axis that is not selected.

    Raises: ValueError where they leave the tensor or overlap.
    """
    runs = [[[0, size]] for size in shape]
    for axis in axes:
        at, given = axis["axis"], axis["runs"]
        if at >= len(shape) or runs[at] != [[0, shape[at]]]:
            raise ValueError(f"axis = {at}: expected each of its {len(shape)} axes once at most")
        if not given or any(len(run) not in (2, 3) or 0 in run[1:] or rows_of(run)[-1] >= shape[at] for run in given):
            raise ValueError(f"runs = {shown(given)}: expected [begin, count] or [begin, count, step] within its {shape[at]} rows")
        if _overlap(given, given[:0]):
            raise ValueError(f"runs = {shown(given)}: overlap")
        runs[at] = given
    return runs


def rows_of(run: List[int]) -> range:
    """The rows of [begin, count] or [begin, count, step]."""
    step = run[2] if len(run) == 3 else 1
    return range(run[0], run[0] + (run[1] - 1) * step + 1, step)


def _overlap(some: List[List[int]], others: List[List[int]]) -> bool:
    """Whether two of these runs have a row in common; of different steps, whether one begins before another ends."""
    rows = [rows_of(run) for run in some + others]
    step = rows[0].step if len({one.step for one in rows}) == 1 else 1
    every = sorted((one[0] % step, one[0], one[-1]) for one in rows)
    return any(a[0] == b[0] and a[2] >= b[1] for a, b in zip(every, every[1:]))


def _layout_problem(tensor: Dict[str, Any], entries: Dict[str, Dict[str, Any]]) -> Optional[str]:
    """Why the parts of a tensor and its padding are not each of its numbers once."""
    shape, covered = tensor["shape"], 0
    boxes = []
    try:
        padding = [_runs([axis], shape) for axis in tensor.get("padding", [])]
        for part in tensor["parts"]:
            box, entry = _runs(part["select"], shape), entries[part["entry"]]
            size = [sum(run[1] for run in runs) for runs in box]
            wanted = (entry["columns"], entry["rows"]) if tensor["transposed"] else (entry["rows"], entry["columns"])
            if not any((math.prod(size[:i]), math.prod(size[i:])) == wanted for i in range(len(size) + 1)):
                return f"{part['entry']} has {size} of {shape}: expected {list(wanted)}"
            if sum(len(runs) > 1 for runs in box) > 1:
                return f"{part['entry']}: expected several runs along one axis at most"
            boxes.append(box)
            covered += math.prod(size)
    except ValueError as error:
        return str(error)
    for i, box in enumerate(boxes):
        if any(all(_overlap(a, b) for a, b in zip(box, other)) for other in (*boxes[:i], *padding)):
            return f"{tensor['parts'][i]['entry']} overlaps another part or the padding"
    free = math.prod(size - sum(run[1] for axis in tensor.get("padding", []) if axis["axis"] == at for run in axis["runs"])
                     for at, size in enumerate(shape))
    if covered != free:
        return f"its parts have {covered} numbers: expected {free}, as part of it would stay as it is"
    return None


class Fnv:
    """FNV-1a of 64 bits."""

    def __init__(self, body: bytes = b"") -> None:
        self.sum = 0xCBF29CE484222325
        self.add(body)

    def add(self, body: bytes) -> None:
        checksum = self.sum
        for byte in body:
            checksum = (checksum ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
        self.sum = checksum

    def text(self, text: str) -> None:
        self.add(struct.pack("<Q", len(text.encode())) + text.encode())

    def pack(self, form: str, *numbers: Any) -> None:
        for number in numbers:
            self.add(struct.pack(form, number))


class Plan:
    """A plan, and the tensors of a code base that it is for.

    `data` is what `plan --names DIALECT --format json` writes, or, without --names, a plan whose tensors
    have the names that it gives them and any layout.
    Raises: ValueError naming the first key whose value no plan has, or every tensor whose parts do not fit.
    """

    def __init__(self, data: Dict[str, Any], path: str = "plan"):
        schema = data.get("schema") if isinstance(data, dict) else type(data).__name__
        if schema == "scalewise.named_plan/1":
            _require(data, _NAMED_PLAN_FORM, path)
            self.plan: Dict[str, Any] = data["plan"]
            self.tensors: List[Dict[str, Any]] = data["tensors"]
            self.aliases = {alias["name"]: alias["of"] for alias in data["aliases"]}
            self.alternatives = {other["name"]: other["of"] for other in data.get("alternatives", [])}
            self.prefix: str = data["prefix"]
            self._ignored = [_pattern(text) for text in data["ignored"]]
            self._unplanned = [_pattern(text) for text in data.get("unplanned", [])]
        elif schema == "scalewise.plan/1":
            shape = data.get("shape")
            _require(data, _LISTED_FORM if isinstance(shape, dict) and shape.get("blocks") == "listed" else _PLAN_FORM, path)
            self.plan = data
            self.tensors = [{"name": e["name"], "shape": None, "transposed": False,
                             "parts": [{"entry": e["name"], "select": []}],
                             **{k: e[k]["value"] for k in FACTORS}}
                            for e in data["entries"]]
            self.aliases, self.alternatives, self.prefix, self._ignored, self._unplanned = {}, {}, "", [], []
        else:
            raise ValueError(f"{path}: schema = {schema}: expected scalewise.named_plan/1 or scalewise.plan/1")
        self.entries: Dict[str, Dict[str, Any]] = {e["name"]: e for e in self.plan["entries"]}
        fail(f"{path}: {problem}" for problem in self._problems())

    def _problems(self) -> List[str]:
        """A line for each thing that does not fit: every entry must be one part of one tensor."""
        every = [e["name"] for e in self.plan["entries"]]
        parts = [(tensor["name"], part["entry"]) for tensor in self.tensors for part in tensor["parts"]]
        uses = collections.Counter(entry for _, entry in parts)
        names = collections.Counter([t["name"] for t in self.tensors] + [*self.aliases, *self.alternatives])
        problems = [f"{name}: {count} entries of this name" for name, count in collections.Counter(every).items() if count > 1]
        for where in (self.plan["symbols"], *(o["where"] for o in (*self.plan["entries"], *self.plan["model"]["residuals"]))):
            symbols = collections.Counter(symbol["symbol"] for symbol in where)
            problems += [f"symbol {symbol}: given {count} times" for symbol, count in symbols.items() if count > 1]
        problems += [f"constant {one['name']} = 0: expected a positive number" for one in self.plan.get("constants", [])
                     if one["value"] == 0 and not ("." + one["name"]).endswith(".decay")]
        problems += [f"{name}: {entry} is not an entry of the plan" for name, entry in parts if entry not in self.entries]
        problems += [f"{entry}: in {uses[entry]} tensors: expected one" for entry in self.entries if uses[entry] != 1]
        problems += [f"{name}: given {count} times" for name, count in names.items() if count > 1]
        problems += [f"{name}: {of} is not a tensor of the plan" for name, of in
                     (*self.aliases.items(), *self.alternatives.items()) if of not in names]
        if not problems:
            named = [(t["name"], _layout_problem(t, self.entries)) for t in self.tensors if t["shape"] is not None]
            problems = [f"{name}: {problem}" for name, problem in named if problem]
            problems += [f"{t['name']}: {key} = {t[key]:.6g}: expected {self.entries[part['entry']][key]['value']:.6g}, as "
                         f"entry {part['entry']} has it (hint: numbers are in both; plan --constant changes them)"
                         for t in self.tensors for part in t["parts"] for key in FACTORS
                         if not math.isclose(t[key], self.entries[part["entry"]][key]["value"], rel_tol=1e-9)]
        return problems

    def ignores(self, name: str) -> bool:
        """Whether the code base has a buffer of this name."""
        return self._knows(self._ignored, name)

    def leaves_out(self, name: str) -> bool:
        """Whether the code base has a tensor of this name for which there is no plan."""
        return self._knows(self._unplanned, name)

    def _knows(self, patterns: List["re.Pattern[str]"], name: str) -> bool:
        return any(pattern.fullmatch(full) for pattern in patterns for full in (name, self.prefix + name))

    def fingerprint(self) -> str:
        """16 digits that differ between plans that train differently; records carry them."""
        plan, digest = self.plan, Fnv()
        digest.text(plan["rule"]["id"])
        digest.pack("<I", _REFERENCES.index(plan["rule"]["reference"]), _DECAYS.index(plan["decay"]))
        model = plan["model"]
        numbers = [model.get(key, {"value": 0.0}) for key in _ENDS]
        numbers += [residual[key] for residual in model["residuals"] for key in ("skip", "branch")]
        digest.pack("<d", *(number["value"] for number in numbers))
        for e in plan["entries"]:
            digest.text(e["name"])
            digest.pack("<q", e["rows"], e["columns"])
            digest.pack("<I", _DISTRIBUTIONS.index(e["distribution"]))
            digest.pack("<d", *(e[key]["value"] for key in ("init_variance", "init_mean", "multiplier", *FACTORS)))
        return f"{digest.sum:016x}"

    def multipliers(self) -> Dict[str, Any]:
        """The factors of the forward pass: attention_scale, embedding_multiplier, logit_multiplier, and a list
        of (skip, branch) by layer: x = skip * x + branch * f(x). 
        A listed model has those of its tensors by name, and no attention_scale where it does not say how wide heads are."""
        model = self.plan["model"]
        listed = self.plan["shape"].get("blocks") == "listed"
        tensors = {name: e["multiplier"]["value"] for name, e in self.entries.items() if e["multiplier"]["value"] != 1}
        return {**{key: model[key]["value"] for key in _ENDS if key in model}, **({"tensors": tensors} if listed else {}),
                "residuals": [(r["skip"]["value"], r["branch"]["value"]) for r in model["residuals"]]}

    def left_to_do(self) -> Optional[Dict[str, Any]]:
        """The same over what the code base multiplies by itself, where the plan says that; None where it does not."""
        if "code" not in self.plan["model"]:
            return None
        code = {key: number["value"] for key, number in self.plan["model"]["code"].items()}
        whole = self.multipliers()
        return {**{key: whole[key] / code[key] for key in _ENDS if key in whole},
                "residuals": [(skip, branch / code["branch"]) for skip, branch in whole["residuals"]]}


# Segments that wrappers put into names: DistributedDataParallel and others, torch.compile, checkpoint_wrapper, FSDP,
# and FSDP of PyTorch 1.
_WRAPPERS = {"module", "_orig_mod", "_checkpoint_wrapped_module", "_fsdp_wrapped_module", "_fpw_module"}

PARAMETRIZED = r"(^|\.)parametrizations\.[^.]+\.original\d*$"  # of torch.nn.utils.parametrize

# Names that show why a model's tensors are not those of its plan.
SITUATIONS = {
    r"(^|\.)_?flat_param(_\d+)?$": "FSDP has made one flat parameter of many: apply the plan before FullyShardedDataParallel, "
                                   "pass it use_orig_params=True for groups, or use fully_shard",
    r"(^|\.)lora_[A-Za-z_]+|(^|\.)base_layer\.": "the model has adapters (LoRA): a plan is for the model without them",
    r"(^|\.)weight_[gv]$": "the layer has weight_norm: a plan is for weights that are trained themselves",
    PARAMETRIZED: "the layer has a parametrization: a plan is for weights that are trained themselves",
    r"(^|\.)weight_orig$": "the layer has spectral_norm or is pruned: a plan is for weights that are trained themselves",
    r"(^|\.)(qweight|qzeros|g_idx|weight_scale_inv|weight_scale|SCB|absmax|quant_state\S*)$":
        "the model is quantized: a plan is for weights that are trained"}


def bare_name(name: str) -> str:
    """A name without the segments of wrappers."""
    return ".".join(segment for segment in name.split(".") if segment not in _WRAPPERS)


def _pattern(text: str) -> "re.Pattern[str]":
    """Names in which {} is the layer from 0, or {1} the layer from 1. Numbers are taken whole (a lookahead is never tried
    again), so that matching takes time in proportion to the name."""
    parts = re.split(r"(\{1?\})", text)
    number = {"{}": "0|[1-9][0-9]*", "{1}": "[1-9][0-9]*"}
    return re.compile("".join(f"(?=(?P<n{i}>{number[part]}))(?P=n{i})" if part in number else re.escape(part)
                              for i, part in enumerate(parts)))


def load(path: Union[str, "os.PathLike[str]"]) -> Plan:
    """Reads a plan from a file.

    Raises: ValueError naming the file where it has no plan.
    """
    try:
        with open(path, encoding="utf-8-sig") as file:  # editors may begin a file with a byte-order mark
            text = file.read()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} (no JSON): expected a plan (hint: {error})") from None
    if not text.strip():
        raise ValueError(f"{path} (empty): expected a plan")
    try:
        data = json.loads(text, object_pairs_hook=_only_once, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} (no JSON): expected a plan (hint: {error})") from None
    return Plan(data, str(path))


_LAYER_NUMBER = re.compile(r"(?<=[A-Za-z_]\.)[0-9]+(?=\.[A-Za-z_])")


def _folded(lines: Sequence[str]) -> List[str]:
    """Lines that differ in numbers of layers alone as one, "h.*.ln_1.weight (12 tensors): missing in the model"."""
    groups: Dict[str, List[str]] = {}
    for line in lines:
        groups.setdefault(_LAYER_NUMBER.sub("*", line), []).append(line)
    result = []
    for pattern, alike in groups.items():
        layers = [_LAYER_NUMBER.findall(line.partition(": ")[0]) for line in alike]
        if len(alike) == 1 or not layers[0]:
            result += alike
            continue
        numbers = [one[0] for one in layers]
        which = "" if numbers == [str(i) for i in range(len(alike))] else f", * = {', '.join(dict.fromkeys(numbers))}"
        name, colon, text = pattern.partition(": ")
        result.append(f"{name} ({len(alike)} tensors{which}){colon}{text}")
    return result


def fail(problems: Iterable[str]) -> None:
    lines = _folded(list(problems))
    if lines:
        raise ValueError("\n".join(lines))


def shown(value: Any) -> str:
    """A value in a message: one line of at most 60 characters."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."


def whole_number(name: str, value: Any, least: int, end: int, range_text: str) -> int:
    """An int of what stands for one, such as a NumPy integer; ValueError for other values."""
    with contextlib.suppress(TypeError):
        number = operator.index(value)
        if least <= number < end:
            return number
    raise ValueError(f"{name} = {shown(value)}: expected a whole number {range_text}")
