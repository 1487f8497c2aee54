# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Applies a plan to a PyTorch model, and records its training for the coordinate check.

    plan --rule maximal-update --config target.json --base-config base.json \\
      --names nanogpt --format json --save plan.json

    plan = scalewise.load("plan.json")
    scalewise.apply(model, plan, base_std=0.02)
    optimizer = torch.optim.AdamW(scalewise.param_groups(model, plan, lr=1e-3, weight_decay=0.1))
    ...
    scalewise.check_optimizer(optimizer, model, plan, lr=1e-3, weight_decay=0.1)

All numbers come from the plan. Every function names all tensors that are wrong at once, in a ValueError.
"""

import collections
import contextlib
import functools
import hashlib
import json
import math
import operator
import os
import re
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

import torch

try:
    import fcntl
except ImportError:  # Windows: only one process at a time may append to a file
    fcntl = None  # type: ignore[assignment]

__version__ = "0.1.0"
__all__ = ["Plan", "Recorder", "apply", "check_optimizer", "load", "param_groups", "set_lr"]

Model = Union[torch.nn.Module, Mapping[str, torch.Tensor]]
_WRAPPERS = ("module.", "_orig_mod.")  # DistributedDataParallel, torch.compile


# The parts of a plan that are read here: types, or objects of keys, or lists of one form.
_REAL = (int, float)
_NUMBER = {"value": _REAL}
_AXES = [{"axis": int, "runs": [[int]]}]
_FACTORS = ("learning_rate", "weight_decay", "epsilon")
_PLAN_FORM = {
    "rule": {"id": str, "reference": str}, "optimizer": str, "decay": str, "shape": {"d_model": int, "heads": int},
    "model": {**dict.fromkeys(("attention_scale", "embedding_multiplier", "logit_multiplier"), _NUMBER),
              "residuals": [{"skip": _NUMBER, "branch": _NUMBER}]},
    "entries": [{"name": str, "group": str, "stack": str, "layer": object, "rows": int, "columns": int,
                 "distribution": str, **dict.fromkeys(("init_variance", "init_mean", *_FACTORS), _NUMBER)}]}
_NAMED_PLAN_FORM = {
    "plan": _PLAN_FORM, "prefix": str, "aliases": [{"name": str, "of": str}], "ignored": [str],
    "tensors": [{"name": str, "shape": [int], "transposed": bool, "parts": [{"entry": str, "select": _AXES}],
                 **dict.fromkeys(_FACTORS, _REAL)}]}


def _require(data: Any, form: Any, where: str) -> None:
    """Refuses data of another form, naming the first key that is missing or wrong."""
    kind = type(form) if isinstance(form, (dict, list)) else form
    if not isinstance(data, kind):
        words = {dict: "an object", list: "a list", str: "a string", int: "a whole number", bool: "true or false"}
        raise ValueError(f"{where} = {_text(data)}: expected {words.get(kind, 'a number')}")
    for key, inner in form.items() if kind is dict else ():
        if key not in data:
            raise ValueError(f"{where}.{key} (missing): expected a value")
        _require(data[key], inner, f"{where}.{key}")
    for i, item in enumerate(data) if kind is list else ():
        _require(item, form[0], f"{where}[{i}]")


class Plan:
    """A plan, and the tensors of a code base that it is for.

    `data` is what `plan --names DIALECT --format json` writes, or, without --names, a plan whose tensors
    have the names that it gives them and any layout.
    """

    def __init__(self, data: Dict[str, Any], path: str = "plan"):
        schema = data.get("schema") if isinstance(data, dict) else type(data).__name__
        if schema == "scalewise.named_plan/1":
            _require(data, _NAMED_PLAN_FORM, path)
            self.plan: Dict[str, Any] = data["plan"]
            self.tensors: List[Dict[str, Any]] = data["tensors"]
            self.aliases = {alias["name"]: alias["of"] for alias in data["aliases"]}
            self.prefix: str = data["prefix"]
            self._ignored = [_pattern(text) for text in data["ignored"]]
        elif schema == "scalewise.plan/1":
            _require(data, _PLAN_FORM, path)
            self.plan = data
            self.tensors = [{"name": e["name"], "shape": None, "transposed": False,
                             "parts": [{"entry": e["name"], "select": []}],
                             **{k: e[k]["value"] for k in _FACTORS}}
                            for e in data["entries"]]
            self.aliases, self.prefix, self._ignored = {}, "", []
        else:
            raise ValueError(f"{path}: schema = {schema}: expected scalewise.named_plan/1 or scalewise.plan/1")
        self.entries: Dict[str, Dict[str, Any]] = {e["name"]: e for e in self.plan["entries"]}
        _fail(f"{path}: {tensor['name']}: has {part['entry']}, which is no entry of the plan"
              for tensor in self.tensors for part in tensor["parts"] if part["entry"] not in self.entries)

    def _ignores(self, name: str) -> bool:
        """Whether the code base has a buffer of this name."""
        return any(pattern.fullmatch(full) for pattern in self._ignored for full in (name, self.prefix + name))

    def multipliers(self) -> Dict[str, Any]:
        """The factors of the forward pass: attention_scale, embedding_multiplier, logit_multiplier, and a list
        of (skip, branch) by layer: x = skip * x + branch * f(x)."""
        model = self.plan["model"]
        numbers = {k: model[k]["value"] for k in ("attention_scale", "embedding_multiplier", "logit_multiplier")}
        return {**numbers, "residuals": [(r["skip"]["value"], r["branch"]["value"]) for r in model["residuals"]]}


def _pattern(text: str) -> "re.Pattern[str]":
    """Names in which {} is the layer from 0, or {1} the layer from 1."""
    number = {"{}": "(0|[1-9][0-9]*)", "{1}": "[1-9][0-9]*"}
    return re.compile("".join(number.get(part) or re.escape(part) for part in re.split(r"(\{1?\})", text)))


def load(path: Union[str, "os.PathLike[str]"]) -> Plan:
    """Reads a plan from a file.

    Raises: ValueError naming the file where it has no plan.
    """
    try:
        with open(path, encoding="utf-8-sig") as file:  # editors may begin a file with a byte-order mark
            text = file.read()
        if not text.strip():
            raise ValueError(f"{path} (empty): expected a plan")
        data = json.loads(text)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{path} (no JSON): expected a plan (hint: {error})") from None
    return Plan(data, str(path))


def _fail(problems: Iterable[str]) -> None:
    lines = list(problems)
    if lines:
        raise ValueError("\n".join(lines))


def _settings_problems(**settings: Any) -> List[str]:
    """A line for each setting that is no finite number, or is negative."""
    problems = []
    for name, value in settings.items():
        number, text = math.nan, _text(value)
        with contextlib.suppress(TypeError, ValueError, RuntimeError):  # of many numbers
            if hasattr(value, "__float__"):  # which a string does not have
                number = float(value)
                text = f"{number:.6g}"
        if not (math.isfinite(number) and number >= 0):
            problems.append(f"{name} = {text}: expected a finite number, 0 or greater")
    return problems


def _text(value: Any) -> str:
    """A value in a message: one line of at most 60 characters."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."


def _named(model: Model) -> Dict[str, torch.Tensor]:
    """Every name of every parameter, tied ones as often as they have names, without wrappers."""
    if isinstance(model, torch.nn.Module):
        named = {f"{prefix}.{name}" if prefix else name: parameter
                 for prefix, module in model.named_modules(remove_duplicate=False)
                 for name, parameter in module._parameters.items() if parameter is not None}
    else:
        named = dict(model)
    while True:
        wrapper = next((w for w in _WRAPPERS if named and all(name.startswith(w) for name in named)), None)
        if wrapper is None:
            return named
        named = {name[len(wrapper):]: parameter for name, parameter in named.items()}


def _memory(tensor: torch.Tensor) -> Any:
    """The same for two tensors that share their numbers, as tied ones in state_dict(), which are two objects."""
    try:
        pointer = tensor.data_ptr()
    except (RuntimeError, NotImplementedError):  # without memory
        pointer = 0
    return (str(tensor.device), pointer, tuple(tensor.shape)) if pointer else id(tensor)


def _match(model: Model, plan: Plan) -> List[Tuple[Dict[str, Any], torch.Tensor]]:
    """The plan's tensors with the model's, in the order of the plan."""
    named, problems = _named(model), []
    _fail(f"{name} = {_text(value)}: expected a tensor" for name, value in named.items() if not torch.is_tensor(value))
    known = {t["name"] for t in plan.tensors} | set(plan.aliases)

    def full(name: str) -> str:
        return plan.prefix + name if name not in known and plan.prefix + name in known else name

    given: Dict[str, str] = {}
    for name in named:
        if given.setdefault(full(name), name) != name:
            problems.append(f"{name}: the same tensor of the plan as {given[full(name)]}")
    found = {name: named[own] for name, own in given.items()}
    owner: Dict[Any, Tuple[str, torch.Tensor]] = {}
    pairs = []
    for tensor in plan.tensors:
        name, shape = tensor["name"], tensor["shape"]
        parameter = found.pop(name, None)
        if parameter is None:
            problems.append(f"{name}: missing in the model")
            continue
        size = sum(plan.entries[p["entry"]]["rows"] * plan.entries[p["entry"]]["columns"] for p in tensor["parts"])
        got = list(parameter.shape)
        if shape is None and parameter.numel() != size:
            problems.append(f"{name}: {parameter.numel()} numbers: expected {size}")
        elif shape is not None and got != shape:
            turned = shape[:-2] + shape[:-3:-1]
            problems.append(f"{name}: {got}: expected {shape}" + (" (hint: it is transposed)" if got == turned else ""))
        first = owner.setdefault(_memory(parameter), (name, parameter))[0]
        if first != name:
            problems.append(f"{name}: the same parameter as {first}")
        pairs.append((tensor, parameter))
    for alias, of in plan.aliases.items():
        parameter = found.pop(alias, None)
        if parameter is None:
            continue
        first, tied = owner.get(_memory(parameter), ("", parameter))
        # Two parameters that share memory are not tied, as each has its own gradient.
        parameters = all(isinstance(one, torch.nn.Parameter) for one in (parameter, tied))
        if first != of or parameters and parameter is not tied:
            problems.append(f"{alias}: not the same parameter as {of}, though the plan ties them")
    problems += [f"{name}: not in the plan" for name, parameter in found.items()
                 if parameter.requires_grad or not plan._ignores(name)]
    _fail(problems)
    return pairs


def _part(tensor: torch.Tensor, part: Dict[str, Any]) -> Tuple[List[torch.Tensor], int]:
    """The views that belong to an entry, and the axis along which they follow each other."""
    views, cut = [tensor], 0
    for axis in part["select"]:
        if len(axis["runs"]) > 1:
            cut = axis["axis"]
        views = [view.narrow(axis["axis"], begin, count) for view in views for begin, count in axis["runs"]]
    return views, cut


def _gather(tensor: torch.Tensor, part: Dict[str, Any]) -> torch.Tensor:
    views, cut = _part(tensor, part)
    return views[0] if len(views) == 1 else torch.cat(views, cut)


def _draw(entry: Dict[str, Any], std: float, seed: int) -> torch.Tensor:
    """An entry's numbers as float, (rows, columns), from a stream of its own."""
    shape, mean = (entry["rows"], entry["columns"]), entry["init_mean"]["value"]
    if entry["distribution"] == "constant" or std == 0:
        return torch.full(shape, mean, dtype=torch.float32)
    stream = hashlib.sha256(f"{seed} {entry['name']}".encode()).digest()
    generator = torch.Generator().manual_seed(int.from_bytes(stream[:8], "little") >> 1)
    if entry["distribution"] == "uniform":
        return torch.rand(shape, generator=generator).mul_(2).sub_(1).mul_(math.sqrt(3) * std).add_(mean)
    values = torch.randn(shape, generator=generator)
    while entry["distribution"] == "truncated_normal" and bool((outside := values.abs() > 2).any()):
        values[outside] = torch.randn(int(outside.sum()), generator=generator)
    return values.mul_(std).add_(mean)


def apply(model: Model, plan: Plan, base_std: Union[None, float, Mapping[str, float]] = None, seed: int = 0) -> None:
    """Draws every tensor from its planned distribution, in place; rows of padding become zero.

    Under a relative rule, variances are factors on those of the base model: `base_std` is its standard
    deviation, one for all or by group. An entry's numbers depend on the seed and its name alone, whatever
    the layout. They are drawn as float on the CPU and then converted.
    """
    pairs = _match(model, plan)
    relative = plan.plan["rule"]["reference"] == "base"
    if relative and base_std is None:
        raise ValueError(f"base_std = none: {plan.plan['rule']['id']} is relative: expected the base model's "
                         "standard deviation, one or by group")
    drawn = [e for e in plan.entries.values() if relative and e["init_variance"]["value"] > 0]
    groups = dict.fromkeys(e["group"] for e in drawn)
    if isinstance(base_std, Mapping):
        problems = _settings_problems(**{f"base_std[{group!r}]": std for group, std in base_std.items()})
        problems += [f"base_std[{group!r}] (missing): expected the base model's standard deviation"
                     for group in groups if group not in base_std]
    else:
        problems = [] if base_std is None else _settings_problems(base_std=base_std)
    _fail(problems)
    base = {group: float(base_std[group] if isinstance(base_std, Mapping) else base_std) for group in groups}
    with torch.no_grad():
        for tensor, parameter in pairs:
            for axis in tensor.get("padding", []):
                for begin, count in axis["runs"]:
                    parameter.narrow(axis["axis"], begin, count).zero_()
            for part in tensor["parts"]:
                entry = plan.entries[part["entry"]]
                std = math.sqrt(entry["init_variance"]["value"])
                std *= base.get(entry["group"], 1.0)
                values = _draw(entry, std, seed)
                values = values.t() if tensor["transposed"] else values
                views, cut = _part(parameter, part)
                shape = list(views[0].shape)
                shape[cut] = sum(view.shape[cut] for view in views) if len(views) > 1 else shape[cut]
                values = values.reshape(shape)
                for view, piece in zip(views, values.split([v.shape[cut] for v in views], cut) if shape else [values]):
                    view.copy_(piece)


def _optimizer_of(plan: Plan, tensor: Dict[str, Any]) -> str:
    return plan.entries[tensor["parts"][0]["entry"]].get("optimizer", plan.plan["optimizer"])


def _settings(plan: Plan, tensor: Dict[str, Any], lr: float, weight_decay: float, eps: float) -> Dict[str, float]:
    rate = tensor["learning_rate"]
    # PyTorch shrinks by lr * weight_decay, so an independent decay is divided by the factor of the rate.
    coupling = rate if plan.plan["decay"] == "independent" and rate > 0 else 1
    settings = {"lr": lr * rate, "weight_decay": weight_decay * tensor["weight_decay"] / coupling}
    if _optimizer_of(plan, tensor) == "adamw":
        settings["eps"] = eps * tensor["epsilon"]
    return settings


def param_groups(model: Model, plan: Plan, lr: float, weight_decay: float = 0.0, eps: float = 1e-8,
                 optimizer: Optional[str] = None) -> List[Dict[str, Any]]:
    """Groups for torch.optim, one for all tensors of the same rate, decay and epsilon.

    Under Muon the plan has two optimizers, and `optimizer` names the one whose tensors are wanted: the plan's
    own ("muon-original") or "adamw".

    Every field of every group is set, so that no default of the optimizer applies. Schedulers such as
    LambdaLR keep the ratios; a loop that sets `lr` itself calls set_lr().
    """
    _fail(_settings_problems(lr=lr, weight_decay=weight_decay, eps=eps))
    groups: Dict[Tuple[str, ...], Dict[str, Any]] = {}
    problems, pairs = [], _match(model, plan)
    known = sorted({_optimizer_of(plan, tensor) for tensor, _ in pairs})
    if optimizer not in known and (optimizer is not None or len(known) > 1):
        raise ValueError(f"optimizer = {optimizer}: expected {' or '.join(known)}: the plan says which tensor has which")
    for tensor, parameter in pairs:
        if optimizer not in (None, _optimizer_of(plan, tensor)):
            continue
        if not parameter.requires_grad:
            problems.append(f"{tensor['name']}: frozen (requires_grad is False), but the plan trains it")
        settings = _settings(plan, tensor, lr, weight_decay, eps)
        # Formulas that mean the same differ in the last digit.
        key = tuple(f"{tensor[name]:.12g}" for name in _FACTORS)
        group = groups.setdefault(key, {"params": [], **settings, "lr_scale": tensor["learning_rate"]})
        group["params"].append(parameter)
    _fail(problems)
    return list(groups.values())


def set_lr(optimizer: torch.optim.Optimizer, lr: float) -> None:
    """Sets the global learning rate: that of each group is its factor times it.

    Raises: ValueError, and changes nothing, where a group is not one of param_groups().
    """
    _fail([*_settings_problems(lr=lr),
           *(f"group {g}: lr_scale (missing): expected the groups of param_groups()"
             for g, group in enumerate(optimizer.param_groups) if "lr_scale" not in group)])
    for group in optimizer.param_groups:
        group["lr"] = lr * group["lr_scale"]


Optimizers = Union[torch.optim.Optimizer, Mapping[str, torch.optim.Optimizer]]


def _class_problem(plan: Plan, field: str, optimizer: torch.optim.Optimizer, name: str) -> Optional[str]:
    """Why an optimizer is not the plan's of this name. Subclasses and your own classes may do anything, so this is
    about PyTorch's own alone. Its Adam adds the decay to the gradient, its AdamW does not."""
    own, decay = type(optimizer), plan.plan["decay"]
    adam = "Adam" if decay == "l2" else "AdamW"
    wanted = {"sgd": "SGD", "adamw": adam, "sign-sgd": adam}.get(name, "Muon" if name.startswith("muon-") else None)
    if wanted is None or getattr(torch.optim, own.__name__, None) is not own:
        return None
    given, groups = own.__name__, optimizer.param_groups
    if given == "Adam" and all(group.get("decoupled_weight_decay") for group in groups):
        given = "AdamW"
    alike = {given, wanted} == {"Adam", "AdamW"} and not any(group["weight_decay"] for group in groups)
    if given == wanted or alike:
        return None
    return f"{field} = {own.__name__}: expected {wanted} (hint: the plan is for {name} with {decay} decay)"


def check_optimizer(optimizer: Optimizers, model: Model, plan: Plan, lr: Optional[float] = None,
                    weight_decay: float = 0.0, eps: float = 1e-8) -> None:
    """Compares what the optimizer uses with the plan; call it once more after the scheduler's first step.

    Under Muon give both: {"muon-original": muon, "adamw": adamw}.
    Without `lr` the global rate is that of a tensor whose factor is 1, or nearest to it, of each optimizer: ratios
    alone count.
    Numbers agree within 1e-5, as optimizers may keep floats.
    Raises: ValueError naming each tensor with another rate, decay or epsilon, each that is frozen, in no
    group or in two, each parameter of the optimizer that is not in the plan, and an optimizer of PyTorch that is
    another than the plan's, such as Adam for AdamW.
    """
    _fail(_settings_problems(weight_decay=weight_decay, eps=eps, **({} if lr is None else {"lr": lr})))
    problems, held, holder = [], {}, {}
    optimizers = optimizer if isinstance(optimizer, Mapping) else {"": optimizer}
    every_group = [(name, group) for name, one in optimizers.items() for group in one.param_groups]
    for of, group in every_group:
        for parameter in group["params"]:
            held.setdefault(id(parameter), []).append(group)
            holder[id(parameter)] = of
    pairs = _match(model, plan)
    lrs: Dict[str, float] = collections.defaultdict(lambda: lr or 0.0)
    for name in {_optimizer_of(plan, t) for t, _ in pairs} if lr is None else ():
        trained = [(abs(math.log(t["learning_rate"])), held[id(p)][0]["lr"] / t["learning_rate"]) for t, p in pairs
                   if "lr" in held.get(id(p), [{}])[0] and t["learning_rate"] > 0 and _optimizer_of(plan, t) == name]
        lrs[name] = min(trained)[1] if trained else 0.0
    other_classes = set()
    for of, name in sorted({(holder[id(p)], _optimizer_of(plan, t)) for t, p in pairs if id(p) in held}):
        problem = _class_problem(plan, f"optimizer[{of!r}]" if of else "optimizer", optimizers[of], name)
        if problem and of in ("", name):
            other_classes.add(of)
            problems.append(problem)
    for tensor, parameter in pairs:
        name, groups = tensor["name"], held.pop(id(parameter), [])
        if not parameter.requires_grad:
            problems.append(f"{name}: frozen (requires_grad is False)")
        if len(groups) != 1:
            problems.append(f"{name}: in {len(groups)} places of the optimizer: expected one")
            continue
        if holder[id(parameter)] not in ("", _optimizer_of(plan, tensor)):
            problems.append(f"{name}: in {holder[id(parameter)]}: expected {_optimizer_of(plan, tensor)}")
            continue
        for key, expected in _settings(plan, tensor, lrs[_optimizer_of(plan, tensor)], weight_decay, eps).items():
            if key not in groups[0]:
                if holder[id(parameter)] not in other_classes:  # SGD has no epsilon
                    problems.append(f"{name}: {key} (missing): expected {expected:.6g}")
            elif not math.isclose(groups[0][key], expected, rel_tol=1e-5, abs_tol=0):
                problems.append(f"{name}: {key} = {groups[0][key]:.6g}: expected {expected:.6g}")
    problems += [f"a parameter of shape {list(p.shape)}: in the optimizer, but not in the plan"
                 for _, group in every_group for p in group["params"] if id(p) in held]
    _fail(problems)


_SCHEMA = "scalewise.coordinates/2"


def _sum_of(body: bytes) -> bytes:
    """The last member of a line: FNV-1a of what is before it."""
    checksum = 0xCBF29CE484222325
    for byte in body:
        checksum = (checksum ^ byte) * 0x100000001B3 % (1 << 64)
    return f',"sum":"{checksum:016x}"}}'.encode()


def _require_records(path: str, content: bytes) -> None:
    """Refuses a file that coordinate_check could not judge together with a line of ours."""
    size = len(_sum_of(b""))
    good = ((number, line[:-size]) for number, line in enumerate(content.split(b"\n")[:-1])
            if line[-size:].startswith(b',"sum":"') and line[-size:] == _sum_of(line[:-size]))
    number, body = next(good, (0, b""))
    begin = f'{{"schema":"{_SCHEMA}"'.encode()
    if content[:len(begin)] != begin[:len(content)] and number == 0:
        version = begin.index(b"/") + 1
        if content[:version] == begin[:version]:
            other = content[11:71].split(b'"')[0].decode("ascii", "replace")
            raise ValueError(f"{path} = {other}: expected {_SCHEMA} (hint: another version wrote it; give another name "
                             "and run again)")
        raise ValueError(f"{path} (another kind of file): expected a file of {_SCHEMA}")
    inputs = json.loads(body + b"}").get("inputs") if body else None
    if inputs:
        raise ValueError(f"{path} (records of other inputs): expected records of a Recorder, which have none "
                         "(hint: use another file for another experiment)")


def _append_line(path: str, line: bytes) -> None:
    """Appends a line in one piece, as the library does: under a lock, after cutting a last line without its end, which
    an interrupted process left. The line is on disk when this returns; if it raises, nothing was appended."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise ValueError(f"{path} (no regular file): expected a file that can be written")
    with open(path, "a+b", buffering=0) as file:
        if fcntl is not None:
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        content = file.read()
        _require_records(path, content)
        size = content.rfind(b"\n") + 1
        file.truncate(size)
        try:
            rest = memoryview(line)
            while rest:
                rest = rest[file.write(rest):]
            os.fsync(file.fileno())
        except BaseException:
            file.truncate(size)
            raise
    if size == 0:
        with contextlib.suppress(OSError):  # a system whose folders cannot be opened
            folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)


def _whole_number(name: str, value: Any, least: int, end: int, range_text: str) -> int:
    """An int of what stands for one, such as a NumPy integer; ValueError for other values."""
    with contextlib.suppress(TypeError):
        number = operator.index(value)
        if least <= number < end:
            return number
    raise ValueError(f"{name} = {_text(value)}: expected a whole number {range_text}")


class Recorder:
    """Records a training run for `coordinate_check --judge`.

    Make it before the first step; `optimizer` is one, or a list of those that step in turn. Then train a few steps on the same batch, and save(). It watches the
    modules that own the plan's tensors, the model's output, and optimizer.step(): step k is what the first
    forward pass after k updates gives. Sizes of the record: `size` is the width, or what the check compares.
    The first forward pass raises ValueError where attention whose output is (batch, tokens, width) uses query,
    key and value otherwise than the plan says; `unchecked` lists what could not be found out.
    """

    def __init__(self, model: torch.nn.Module, plan: Plan, optimizer: Union[torch.optim.Optimizer, Sequence[torch.optim.Optimizer]],
                 size: Optional[int] = None,
                 seed: int = 0):
        self._size = _whole_number("size", plan.plan["shape"]["d_model"] if size is None else size, 1, 1 << 62,
                                   "from 1 to 2^62 - 1")
        self._seed = _whole_number("seed", seed, 0, 1 << 64, "from 0 to 2^64 - 1")
        self._plan, self._pairs = plan, _match(model, plan)
        self._step, self._forward = 0, False
        self.unchecked: List[str] = []
        self._first: Dict[str, torch.Tensor] = {}
        self._records: Dict[Tuple[int, str, str], List[Any]] = {}
        self._entered = False
        for tensor, parameter in self._pairs:
            for part in tensor["parts"]:
                self._add("parameter", part["entry"], _gather(parameter, part))
        modules = {id(p): module for module in model.modules() for p in module._parameters.values() if p is not None}
        self._hooks = [model.register_forward_pre_hook(self._begin), model.register_forward_hook(self._end)]
        for tensor, parameter in self._pairs:
            self._watch(modules[id(parameter)], plan.entries[tensor["parts"][0]["entry"]])
        self._optimizers = [optimizer] if isinstance(optimizer, torch.optim.Optimizer) else list(optimizer)
        self._before: List[torch.Tensor] = []
        for one in self._optimizers:
            one.step = functools.partial(self._record_step, one, one.step)  # type: ignore[method-assign]

    def _watch(self, module: torch.nn.Module, entry: Dict[str, Any]) -> None:
        block = entry["name"].rpartition(".")[0]
        if block and entry["group"] == "attention_output" and not entry["name"].endswith("cross_attention_output"):
            self._hooks.append(module.register_forward_hook(
                lambda _, inputs, output: None if self._step or self._forward else self._check_layout(block, output)))
        observed = {"attention_output": ("attention.heads", "attention.output"),
                    "mlp_down": ("mlp.hidden", "mlp.output")}.get(entry["name"].rpartition(".")[2])
        if observed and block:
            self._hooks.append(module.register_forward_hook(
                lambda _, inputs, output, names=observed: self._seen(
                    (f"{block}.{names[0]}", inputs[0]), (f"{block}.{names[1]}", output))))
        elif entry["layer"] == 0 and entry["stack"] != "decoder":  # the first of them to run sees the embedding
            self._hooks.append(module.register_forward_pre_hook(
                lambda _, inputs: None if self._entered else self._enter(inputs[0])))
        elif entry["group"] == "final_norm_gain" and entry["stack"] != "encoder":
            self._hooks.append(module.register_forward_hook(
                lambda _, inputs, output: self._seen(("final_hidden", output))))

    def _check_layout(self, block: str, output: torch.Tensor) -> None:
        """Whether query, key and value are used as such. With r any vector, the gradient of r·y by the query's
        matrix, y being the attention's output at the last token, is an outer product with that token's input:
        it has rank one, and those of key and value have not. At the first token of a causal model it is zero by
        query and key. A single head's query and key cannot be distinguished, nor can matrices that begin at zero.
        """
        if not torch.is_tensor(output) or output.dim() != 3 or output.shape[1] < 3:
            return self._skip_layout(block, "the attention's output is not (batch, three or more tokens, width)")
        if self._plan.plan["shape"]["heads"] < 2:
            return self._skip_layout(block, "query and key of a single head cannot be distinguished")
        if not output.requires_grad:
            return self._skip_layout(block, "the forward pass keeps no gradients")
        found = self._attention_gradients(block, output)
        if len(found) < 3:
            return self._skip_layout(block, "the attention's output does not depend on all of them")
        sizes = {role: float(part[2].abs().max()) for role, part in found.items()}
        least = 1e-3 * max(sizes.values())
        if not least > 0:
            return self._skip_layout(block, "their gradients are zero")
        problems = []

        def blame(role: str, text: str) -> None:
            problems.append(f"{found[role][0]}: its rows of {found[role][1]} {text}")

        if min(sizes.values()) > least:
            self._skip_layout(block, "not causal, so that key and value cannot be distinguished")
        else:
            for role in ("query", "key"):
                if sizes[role] > least:
                    blame(role, "are used as values")
            if sizes["value"] <= least:
                blame("value", "are not used as values")
        rows = found["query"][3]
        largest = rows[rows.square().sum(1).argmax()]
        total = float(rows.square().sum())
        beyond = 1 - float((rows @ largest / largest.norm()).square().sum()) / total if total > 0 else 0.0
        # Rounding leaves 2e-15 of floats, another order at least 1e-4.
        if beyond > (1e-10 if output.element_size() >= 4 else 0.01):
            blame("query", "are not used as queries alone")
        _fail(problems)

    def _attention_gradients(self, block: str, output: torch.Tensor) -> Dict[str, Tuple[Any, ...]]:
        """By role: tensor, entry, and its gradients at the first and the last token, a row per direction."""
        direction = torch.linspace(1, 2, output.shape[2], dtype=output.dtype, device=output.device)
        roles = {f"{block}.{role}": role for role in ("query", "key", "value")}
        found = {}
        for tensor, parameter in self._pairs:
            wanted = [part for part in tensor["parts"] if part["entry"] in roles]
            if not wanted or not parameter.requires_grad:
                continue
            gradients = [torch.autograd.grad((output[0, t] * direction).sum(), parameter, retain_graph=True,
                                             allow_unused=True)[0] for t in (0, -1)]
            for part in wanted if all(gradient is not None for gradient in gradients) else ():
                parts = [_gather(gradient, part).double() for gradient in gradients]
                found[roles[part["entry"]]] = (tensor["name"], part["entry"],
                                               *(p if tensor["transposed"] else p.t() for p in parts))
        return found

    def _skip_layout(self, block: str, why: str) -> None:
        self.unchecked.append(f"{block}.query, key, value: {why}")

    def _begin(self, *_: Any) -> None:
        self._entered = False

    def _enter(self, stream: torch.Tensor) -> None:
        self._entered = True
        self._seen(("embedding", stream))

    def _end(self, _: Any, inputs: Any, output: Any) -> None:
        logits = getattr(output, "logits", output)
        while isinstance(logits, (tuple, list)):
            logits = logits[0]
        if not torch.is_tensor(logits):
            raise ValueError("the model's output has no logits: expected a tensor, a tuple that begins with it, or "
                             ".logits")
        if not self._forward and logits.requires_grad:
            step = self._step
            logits.register_hook(lambda gradient: self._add("gradient", "logits", gradient, step))
        self._seen(("logits", logits))
        self._forward = True

    def _seen(self, *named: Tuple[str, torch.Tensor]) -> None:
        for name, value in named if not self._forward else ():
            value = value.detach().float()
            self._add("value", name, value)
            if self._step == 0:
                self._first[name] = value.clone()
            elif name in self._first and self._first[name].shape == value.shape:
                self._add("change", name, value - self._first[name])

    def _add(self, signal: str, name: str, value: torch.Tensor, step: Optional[int] = None) -> None:
        value = value.detach().double()
        sums = [float(value.abs().sum()), float(value.square().sum())]
        self._records[(self._step if step is None else step, signal, name)] = [
            *(x if math.isfinite(x) else None for x in sums), value.numel()]

    def _record_step(self, optimizer: torch.optim.Optimizer, take_step: Any, *arguments: Any, **options: Any) -> Any:
        if optimizer is self._optimizers[0]:
            self._before = [parameter.detach().clone() for _, parameter in self._pairs]
            for tensor, parameter in self._pairs:
                for part in tensor["parts"] if parameter.grad is not None else ():
                    self._add("gradient", part["entry"], _gather(parameter.grad, part))
        result = take_step(*arguments, **options)
        if optimizer is not self._optimizers[-1]:
            return result
        self._step, self._forward = self._step + 1, False
        for (tensor, parameter), old in zip(self._pairs, self._before):
            for part in tensor["parts"]:
                self._add("update", part["entry"], _gather(parameter.detach() - old, part))
        return result

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Appends the run to a file, as one line, and stops recording.

        Any process may append to the file at any time. A last line without its end, which an interrupted process
        left, is cut.
        Raises: OSError where not everything can be written, and ValueError for another kind of file; then the file has
        no part of the run, and save() can be called again.
        """
        for hook in self._hooks:
            hook.remove()
        for optimizer in self._optimizers:
            with contextlib.suppress(AttributeError):
                del optimizer.step  # type: ignore[method-assign]
        records = [{"step": step, "signal": signal, "name": name, "sum_abs": a, "sum_squares": b, "count": count}
                   for (step, signal, name), (a, b, count) in sorted(self._records.items())]
        body = json.dumps({"schema": _SCHEMA, "inputs": [], "size": self._size, "seed": self._seed, "records": records},
                          separators=(",", ":"))[:-1].encode()
        _append_line(os.fspath(path), body + _sum_of(body) + b"\n")
