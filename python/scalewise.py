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

All numbers come from the plan. Every function names all tensors that are wrong at once, in a ValueError, and changes
nothing then.
"""

import collections
import contextlib
import copy
import functools
import hashlib
import inspect
import math
import types
import warnings
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import torch

from scalewise_describe import describe, make_plan
from scalewise_plan import FACTORS, MUON, Plan, fail, load, shown, whole_number
from scalewise_record import Recorder, inner_optimizer
from scalewise_tensors import Model, by_plan, is_sharded, match, memory_problems, named_parameters, own_part, planned, stored_from_zero, views_of

__version__ = "0.1.0"
__all__ = ["MeasuredStep", "Plan", "Recorder", "apply", "check_optimizer", "describe", "load", "make_plan", "measure_step", "param_groups", "set_lr"]

BaseStd = Union[None, float, Mapping[str, float], Callable[[str], Union[float, Mapping[str, float]]]]


def _settings_problems(**settings: Any) -> List[str]:
    """A line for each setting that is not a finite number, or is negative."""
    problems = []
    for name, value in settings.items():
        number, text = math.nan, shown(value)
        with contextlib.suppress(TypeError, ValueError, RuntimeError):  # of many numbers
            if hasattr(value, "__float__") and not isinstance(value, bool):  # which a string does not have
                number = float(value)
                text = f"{number:.6g}"
        if not (math.isfinite(number) and number >= 0):
            problems.append(f"{name} = {text}: expected a finite number, 0 or greater")
    return problems


def _draw(entry: Dict[str, Any], std: float, seed: int) -> torch.Tensor:
    """An entry's numbers as float, (rows, columns), from a stream of its own."""
    shape, mean = (entry["rows"], entry["columns"]), float(entry["init_mean"]["value"])
    kind: Dict[str, Any] = {"dtype": torch.float32, "device": "cpu"}  # whatever the defaults are
    if entry["distribution"] == "constant" or std == 0:
        return torch.full(shape, mean, **kind)
    stream = hashlib.sha256(f"{seed} {entry['name']}".encode()).digest()
    generator = torch.Generator("cpu").manual_seed(int.from_bytes(stream[:8], "little") >> 1)
    if entry["distribution"] == "uniform":
        return torch.rand(shape, generator=generator, **kind).mul_(2).sub_(1).mul_(math.sqrt(3) * std).add_(mean)
    values = torch.randn(shape, generator=generator, **kind)
    while entry["distribution"] == "truncated_normal" and bool((outside := values.abs() > 2).any()):
        values[outside] = torch.randn(int(outside.sum()), generator=generator, **kind)
    return values.mul_(std).add_(mean)


def _drawn(tensor: Dict[str, Any], draw: Any) -> torch.Tensor:
    """All numbers of a tensor in the plan's layout; padding is zero. `draw` gives those of an entry."""
    if tensor["shape"] is None:
        return draw(tensor["parts"][0]["entry"])
    whole = torch.zeros(tensor["shape"], dtype=torch.float32, device="cpu")
    for part in tensor["parts"]:
        values = draw(part["entry"])
        values = values.t() if tensor["transposed"] else values
        views, cut = views_of(whole, part)
        sizes, shape = [view.shape[cut] if view.dim() else 1 for view in views], list(views[0].shape)
        shape[cut:cut + 1] = [sum(sizes)] if shape else []
        for view, piece in zip(views, values.reshape(shape).split(sizes, cut) if shape else [values.reshape(())]):
            view.copy_(piece)
    return whole


def _deviations(plan: Plan, base_std: BaseStd) -> Dict[str, float]:
    """The standard deviation of each entry."""
    relative = plan.plan["rule"]["reference"] == "base"
    if relative and base_std is None:
        raise ValueError(f"base_std = none: {plan.plan['rule']['id']} is relative: expected the base model's "
                         "standard deviation, one, by group, or a function of a tensor's name")
    drawn = [e["name"] for e in plan.entries.values() if relative and e["init_variance"]["value"] > 0]
    key_of = {name: plan.entries[name]["group"] for name in drawn}
    if callable(base_std):
        given, keys = {}, {}
        for tensor in plan.tensors:
            parts = [part["entry"] for part in tensor["parts"] if part["entry"] in key_of]
            std = base_std(tensor["name"]) if parts else None
            for name in parts:
                group, by_group = key_of[name], isinstance(std, Mapping)
                keys[name] = f"base_std({tensor['name']!r})" + (f"[{group!r}]" if by_group else "")
                given[keys[name]] = std.get(group) if by_group else std
        key_of, problems = keys, _settings_problems(**given)
    elif isinstance(base_std, Mapping):
        given = dict(base_std)
        problems = _settings_problems(**{f"base_std[{group!r}]": std for group, std in given.items()})
        groups = {e["group"] for e in plan.entries.values()}
        problems += [f"base_std[{group!r}]: no group of the plan: expected a function of the name for single tensors"
                     for group in given if group not in groups]
        problems += [f"base_std[{group!r}] (missing): expected the base model's standard deviation"
                     for group in dict.fromkeys(key_of.values()) if group not in given]
    else:
        given = dict.fromkeys(key_of.values(), base_std)
        problems = [] if base_std is None else _settings_problems(base_std=base_std)
    fail(problems)
    base = {name: float(given[key]) for name, key in key_of.items()}
    return {name: math.sqrt(e["init_variance"]["value"]) * base.get(name, 1.0) for name, e in plan.entries.items()}


def _padding_rows(model: Any) -> Dict[int, int]:
    """By the id of an embedding's weight the row that pads: it has no gradient, and is zero as PyTorch draws it."""
    modules = model.modules() if isinstance(model, torch.nn.Module) else ()
    return {id(module.weight): module.padding_idx for module in modules
            if isinstance(module, (torch.nn.Embedding, torch.nn.EmbeddingBag)) and module.padding_idx is not None}


def apply(model: Model, plan: Plan, base_std: BaseStd = None, seed: int = 0, keep: Sequence[str] = ()) -> None:
    """Draws every tensor from its planned distribution, in place; rows of padding become zero. Vectors whose distribution
    is "own" stay as they are, and tensors whose names in the plan match a pattern of `keep`, such as "*.norm.weight". Norms of
    a module that multiply by 1 + weight, as Gemma's, get 1 less. Gains of 0 are refused where this cannot be found out.

    Under a relative rule, variances are factors on those of the base model: `base_std` is its standard
    deviation, one for all, by group, or a function of a tensor's name in the plan that returns one of these. An entry's
    numbers depend on the seed and its name alone, whatever the layout, the type and the device. They are drawn as float on
    the CPU and then converted. After fully_shard every process draws the same numbers and keeps its own part of them.
    """
    pairs = planned(plan, keep, match(model, plan))
    stds = _deviations(plan, base_std)
    seed = whole_number("seed", seed, 0, 1 << 64, "from 0 to 2^64 - 1")
    # A normal's numbers are below 9 of its deviations.
    fail(memory_problems(pairs) or
          [f"{tensor['name']}: mean {mean:.6g}, standard deviation {stds[part['entry']]:.6g}: beyond {str(parameter.dtype)[6:]}"
           for tensor, parameter in pairs for part in tensor["parts"]
           for mean in [plan.entries[part["entry"]]["init_mean"]["value"]]
           if not abs(mean) + 9 * stds[part["entry"]] < min(torch.finfo(parameter.dtype).max, 3e38)])
    from_zero = stored_from_zero(model, plan, pairs)
    padding = _padding_rows(model)
    with torch.no_grad():
        for tensor, parameter in pairs:
            values = _drawn(tensor, lambda entry: _draw(plan.entries[entry], stds[entry], seed)).reshape(parameter.shape)
            values = values - 1 if id(parameter) in from_zero else values
            if id(parameter) in padding:
                values[padding[id(parameter)]] = 0
            if not is_sharded(parameter):
                parameter.copy_(values)
            elif parameter.device_mesh.get_coordinate() is not None:  # type: ignore[attr-defined]
                parameter.to_local().copy_(own_part(values, parameter))  # type: ignore[attr-defined]


# ---- The optimizer -------------------------------------------------------------------------------------------------

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
    fail(_settings_problems(lr=lr, weight_decay=weight_decay, eps=eps))
    groups: Dict[Tuple[str, ...], Dict[str, Any]] = {}
    problems, pairs = [], match(model, plan, in_one_piece=False)
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
        key = tuple(f"{tensor[name]:.12g}" for name in FACTORS)
        group = groups.setdefault(key, {"params": [], **settings, "lr_factor": tensor["learning_rate"]})
        group["params"].append(parameter)
    fail(problems)
    return list(groups.values())


def _require_optimizer(optimizer: Any) -> None:
    if not hasattr(optimizer, "param_groups"):
        raise ValueError(f"optimizer = {shown(optimizer)}: expected an optimizer")


def set_lr(optimizer: torch.optim.Optimizer, lr: float) -> None:
    """Sets the global learning rate: that of each group is its factor times it.

    Raises: ValueError, and changes nothing, where a group is not one of param_groups().
    """
    _require_optimizer(optimizer)
    fail([*_settings_problems(lr=lr),
           *(f"group {g}: lr_factor (missing): expected the groups of param_groups()"
             for g, group in enumerate(optimizer.param_groups) if "lr_factor" not in group)])
    for group in optimizer.param_groups:
        if torch.is_tensor(group["lr"]):  # which a compiled or captured step reads
            group["lr"].fill_(lr * group["lr_factor"])
        else:
            group["lr"] = lr * group["lr_factor"]


Optimizers = Union[torch.optim.Optimizer, Sequence[torch.optim.Optimizer], Mapping[str, torch.optim.Optimizer]]


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


# The names that optimizers have for the factor that they apply themselves: a setting, its values, and the plan's name.
_SETTINGS_OF_MUON = {
    # torch.optim.Muon (pytorch 098e03f9, the last value in pull request 187402) and torchtitan's DistMuon, in groups
    "adjust_lr_fn": {None: "muon-original", "original": "muon-original", "match_rms_adamw": "muon-match-adamw",
                     "spectral_unclamped": "muon-fan-ratio"},
    # microsoft/dion's Muon (0c205499), in groups
    "adjust_lr": {None: "muon-plain", "spectral_norm": "muon-fan-ratio", "rms_norm": "muon-match-adamw"},
    # NVIDIA-NeMo/Emerging-Optimizers (033065f9), in the optimizer; times extra_scale_factor
    "scale_mode": {"shape_scaling": "muon-original", "spectral": "muon-spectral", "unit_rms_norm": "muon-fan-ratio"}}


def _factor_problem(field: str, optimizer: Any, group: Dict[str, Any], plan: Plan, tensor: Dict[str, Any]) -> Optional[str]:
    """Why the factor that an optimizer applies to a matrix itself is not the one that the plan allows for. A constant
    does not count, as it is part of the tuned rate."""
    name, shape = _optimizer_of(plan, tensor), tensor["shape"]
    if name not in MUON or group.get("algorithm", "muon") != "muon":
        return None
    inner = getattr(optimizer, "optimizer", types.SimpleNamespace())
    found = [(setting, holder[setting]) for setting in _SETTINGS_OF_MUON
             for holder in (group, vars(optimizer), vars(inner)) if setting in holder]
    for setting, value in found[:1]:
        applied = _SETTINGS_OF_MUON[setting].get(value)
        if applied is None:
            warnings.warn(f"{field}: {setting} = {shown(value)}: not known here; measure_step() says what it does", stacklevel=3)
        elif applied != name and not {applied, name} <= {"muon-spectral", "muon-match-adamw"}:
            return (f"{field}: {setting} = {value!r} multiplies steps by {MUON[applied]}, but the plan is for {name}, which "
                    f"multiplies them by {MUON[name]} (hint: plan --optimizer {applied})")
        elif shape and len(shape) == 2 and not tensor["transposed"] and shape[0] != shape[1] and "max(fan" not in MUON[name]:
            return (f"{field}: takes the rows of a matrix for its outputs, but {tensor['name']} has inputs there (hint: store "
                    "it transposed)")
    return None


def _optimizers(given: Optimizers, known: List[str]) -> Dict[Any, torch.optim.Optimizer]:
    """Optimizers by the names that the plan has for them, those of a list by number, or one alone as ""."""
    by_name = isinstance(given, Mapping)
    found = dict(given if by_name else enumerate(given) if isinstance(given, (list, tuple)) else {"": given})
    fail(f"optimizer = {shown(one)}: expected an optimizer, a list of them, or a dict by name"
         for one in found.values() if not hasattr(one, "param_groups"))
    if by_name and not found.keys() <= set(known):
        raise ValueError(f"optimizer[{', '.join(map(repr, found))}]: expected the plan's optimizers as keys, which are "
                         f"{', '.join(known)} (hint: a list may have several of one kind)")
    return found


def _field(key: Any) -> str:
    return "optimizer" if key == "" else f"optimizer[{key!r}]"


def check_optimizer(optimizer: Optimizers, model: Model, plan: Plan, lr: Optional[float] = None,
                    weight_decay: float = 0.0, eps: float = 1e-8) -> None:
    """Compares what the optimizer uses with the plan; call it again at every checkpoint: a scheduler with one lowest
    rate for all groups breaks the ratios little by little.

    Under Muon give both: {"muon-original": muon, "adamw": adamw}. A list may have several of one kind.
    Without `lr` the global rate is that of a tensor whose factor is 1, or nearest to it, of each optimizer: ratios
    alone count.
    Numbers agree within 1e-5, as optimizers may keep floats.
    Raises: ValueError naming each tensor with another rate, decay or epsilon, each that is frozen, in no
    group or in two, each parameter of the optimizer that is not in the plan, an optimizer of PyTorch that is
    another than the plan's, such as Adam for AdamW, and a Muon that says that it multiplies steps by another factor.
    """
    fail(_settings_problems(weight_decay=weight_decay, eps=eps, **({} if lr is None else {"lr": lr})))
    problems, held, holder = [], {}, {}
    pairs, by_name = match(model, plan, in_one_piece=False), isinstance(optimizer, Mapping)
    known = sorted({_optimizer_of(plan, t) for t, _ in pairs})
    optimizers = _optimizers(optimizer, known)
    every_group = [(name, group) for name, one in optimizers.items() for group in one.param_groups]
    for of, group in every_group:
        for parameter in group["params"]:
            held.setdefault(id(parameter), []).append(group)
            holder[id(parameter)] = of
    lrs = {name: lr for name in known}
    for name in known if lr is None else ():
        trained = [(abs(math.log(t["learning_rate"])), held[id(p)][0]["lr"] / t["learning_rate"]) for t, p in pairs
                   if "lr" in held.get(id(p), [{}])[0] and t["learning_rate"] > 0 and _optimizer_of(plan, t) == name]
        lrs[name] = min(trained)[1] if trained else 0.0
    other_classes = set()
    for of, name in sorted({(holder[id(p)], _optimizer_of(plan, t)) for t, p in pairs if id(p) in held}):
        problem = _class_problem(plan, _field(of), optimizers[of], name)
        if problem and (not by_name or of == name):
            other_classes.add(of)
            problems.append(problem)
    factors = [_factor_problem(_field(of), optimizers[of], held[id(p)][0], plan, t)
               for t, p in pairs if id(p) in held for of in [holder[id(p)]] if of not in other_classes]
    problems += dict.fromkeys(problem for problem in factors if problem)
    for tensor, parameter in pairs:
        name, groups = tensor["name"], held.pop(id(parameter), [])
        if not parameter.requires_grad:
            problems.append(f"{name}: frozen (requires_grad is False)")
        if len(groups) != 1:
            problems.append(f"{name}: in {len(groups)} places of the optimizer: expected one")
            continue
        if by_name and holder[id(parameter)] != _optimizer_of(plan, tensor):
            problems.append(f"{name}: in {holder[id(parameter)]}: expected {_optimizer_of(plan, tensor)}")
            continue
        for key, expected in _settings(plan, tensor, lrs[_optimizer_of(plan, tensor)], weight_decay, eps).items():
            if key == "eps" and "epsilon" in groups[0]:  # as dion calls it
                key = "epsilon"
            if key not in groups[0]:
                if holder[id(parameter)] not in other_classes:  # SGD has no epsilon
                    of = f", as its optimizer is {_optimizer_of(plan, tensor)}" if len(known) > 1 else ""
                    problems.append(f"{name}: {key} (missing): expected {expected:.6g}{of}")
            elif not math.isclose(groups[0][key], expected, rel_tol=1e-5, abs_tol=0):
                problems.append(f"{name}: {key} = {groups[0][key]:.6g}: expected {expected:.6g}")
    unplanned = {id(p) for name, p in by_plan(named_parameters(model), plan, []).items() if plan.leaves_out(name)}
    problems += [f"a parameter of shape {list(p.shape)}: in the optimizer, but not in the plan"
                 for _, group in every_group for p in group["params"] if id(p) in held.keys() - unplanned]
    fail(problems)


class MeasuredStep(NamedTuple):
    """One step of an optimizer over its learning rate.

    `rms` is the root mean square of its entries, `spectral` its largest singular value, and `optimizers` are the plan's
    names for what it does: several where the shape cannot distinguish them, none where it does something else.
    """

    rms: float
    spectral: float
    optimizers: Tuple[str, ...]
    text: str


def measure_step(optimizer: torch.optim.Optimizer, parameter: torch.Tensor) -> MeasuredStep:
    """Measures one step of your own optimizer on a matrix, (fan-out, fan-in) as PyTorch's linear layers store it.

    The step is the first one from a matrix of zeros, where decay does nothing, along a random gradient whose singular values
    go from 0.1 to 1. Afterwards the parameter, its gradient, the groups and the state are the objects that they were.
    Accuracy: Newton-Schulz iterations leave singular values between 0.7 and 1.2; with PyTorch's coefficients their root mean
    square was 0.86 to 0.93 for shapes from (8, 40) to (1024, 1024). A factor is one of those that fit within 0.7 to 1.2.
    For square matrices all but the last are 1, so take another shape.
    Raises: ValueError where the parameter is not a matrix of the optimizer, or its rate is zero.
    """
    _require_optimizer(optimizer)
    if not torch.is_tensor(parameter):
        raise ValueError(f"parameter = {shown(parameter)}: expected a tensor")
    shape = list(parameter.shape)
    if len(shape) < 2 or min(shape[0], math.prod(shape[1:])) < 8 or is_sharded(parameter):
        raise ValueError(f"parameter of shape {shape}: expected a matrix of 8 or more rows and columns, in one piece")
    groups = [group for group in optimizer.param_groups if any(one is parameter for one in group["params"])]
    if len(groups) != 1:
        raise ValueError(f"parameter of shape {shape}: in {len(groups)} groups of the optimizer: expected one")
    lr = float(groups[0]["lr"])
    if not (math.isfinite(lr) and lr > 0):
        raise ValueError(f"lr = {lr:.6g}: expected a positive rate, to divide the step by")
    rows, columns = shape[0], math.prod(shape[1:])
    least = min(rows, columns)
    generator = torch.Generator("cpu").manual_seed(1)
    kind: Dict[str, Any] = {"dtype": torch.float64, "device": "cpu"}
    left, right = (torch.linalg.qr(torch.randn(size, least, generator=generator, **kind))[0] for size in (rows, columns))
    gradient = (left * torch.linspace(0.1, 1, least, **kind)) @ right.t()
    update = _first_step(optimizer, parameter, groups[0], gradient) / -lr
    rms, values = float(update.square().mean().sqrt()), torch.linalg.svdvals(update)
    text, names = _what_it_does(rows, columns, update, values, gradient)
    return MeasuredStep(rms, float(values[0]), tuple(names), text)


def _first_step(optimizer: Any, parameter: torch.Tensor, group: Dict[str, Any], gradient: torch.Tensor) -> torch.Tensor:
    """The step from zeros along a gradient, as doubles; leaves no trace."""
    optimizer = inner_optimizer(optimizer)
    before, old_gradient = parameter.detach().clone(), parameter.grad
    old_state = optimizer.state.get(parameter, {})
    kept = {name: vars(optimizer)[name] for name in ("param_groups", "state", "_optimizer_step_pre_hooks",
                                                     "_optimizer_step_post_hooks") if name in vars(optimizer)}
    step = functools.partial(type(optimizer).step, optimizer)  # not that of a scheduler or Recorder, which would count it
    needed = [p for p in inspect.signature(step).parameters.values()
              if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]

    def first(state: Dict[str, Any]) -> None:
        for name in kept:
            setattr(optimizer, name, {})
        optimizer.param_groups = [{**group, "params": [parameter]}]
        optimizer.state = collections.defaultdict(dict, {parameter: state} if state else {})
        with torch.no_grad():
            parameter.zero_()
        parameter.grad = gradient.reshape(parameter.shape).to(parameter)
        step(*([lambda: torch.zeros(())] if needed else []))

    try:
        try:
            first({})
        except KeyError:  # an optimizer that makes its state when it is made, as Adagrad
            first({name: torch.zeros_like(value) if torch.is_tensor(value) else copy.deepcopy(value)
                   for name, value in old_state.items()})
        return parameter.detach().to("cpu", torch.float64, copy=True).reshape(gradient.shape)
    finally:
        with torch.no_grad():
            parameter.copy_(before)
        parameter.grad = old_gradient
        for name, value in kept.items():
            setattr(optimizer, name, value)


def _what_it_does(rows: int, columns: int, update: torch.Tensor, values: torch.Tensor, gradient: torch.Tensor
                  ) -> Tuple[str, List[str]]:
    """A step in words, and the names that plans have for it."""
    if not (bool(update.isfinite().all()) and float(values[0]) > 0):
        return "no finite step from a matrix of zeros: its size may depend on that of the weights", []
    rms = float(update.square().mean().sqrt())
    if float(torch.nn.functional.cosine_similarity(update.flatten(), gradient.flatten(), 0)) > 0.9999:
        return f"follows the gradient, times {rms / float(gradient.square().mean().sqrt()):.3g}", ["sgd"]
    if float((update.abs() - rms).abs().mean()) < 0.02 * rms:
        size = "" if 0.95 < rms < 1.05 else f", times {rms:.3g}"
        return f"entries of equal size, as Adam's first step has them{size}", [] if size else ["adamw", "sign-sgd"]
    middle = values[len(values) // 20:len(values) - len(values) // 20]  # a few small ones stay small
    if float(middle[0] / middle[-1]) > 2.5:
        return "neither SGD, Adam nor Muon: its singular values differ, and so do its entries", []
    size, larger = rms * math.sqrt(max(rows, columns)), math.sqrt(max(rows, columns))
    factors = {"muon-plain": 1.0, "muon-fan-ratio": math.sqrt(rows / columns), "muon-original": math.sqrt(max(1, rows / columns)),
               "muon-spectral": larger, "muon-match-adamw": 0.2 * larger}
    names = [name for name, factor in factors.items() if 0.7 <= size / factor <= 1.2]
    which = ", or ".join(MUON[name] for name in names) or "no factor that a plan knows"
    more = ": this shape cannot distinguish them" if len(names) > 1 else ""
    return f"singular values of {size:.3g} each, which is {which}{more}", names
