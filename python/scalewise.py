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
import fnmatch
import functools
import hashlib
import inspect
import json
import math
import operator
import os
import re
import sys
import types
import warnings
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple, Union

import torch
import torch.nn.utils.parametrize
import torch.utils.checkpoint

from scalewise_describe import describe, make_plan
from scalewise_plan import FACTORS, MUON, SITUATIONS, Fnv, Plan, bare_name, fail, load, shown

try:
    import fcntl
except ImportError:  # Windows: only one process at a time may append to a file
    fcntl = None  # type: ignore[assignment]

__version__ = "0.1.0"
__all__ = ["MeasuredStep", "Plan", "Recorder", "apply", "check_optimizer", "describe", "load", "make_plan", "measure_step", "param_groups", "set_lr"]

Model = Union[torch.nn.Module, Mapping[str, torch.Tensor]]
BaseStd = Union[None, float, Mapping[str, float], Callable[[str], float]]


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


# ---- The tensors of a model ----------------------------------------------------------------------------------------

def _named(model: Model) -> Dict[str, torch.Tensor]:
    """Every name of every parameter, tied ones as often as they have names."""
    if not isinstance(model, (torch.nn.Module, Mapping)):
        raise ValueError(f"model = {shown(model)}: expected a torch.nn.Module, or tensors by name")
    if not isinstance(model, torch.nn.Module):
        return dict(model)
    return {f"{prefix}.{name}" if prefix else name: parameter
            for prefix, module in model.named_modules(remove_duplicate=False)
            for name, parameter in module._parameters.items() if parameter is not None}


def _by_plan(named: Dict[str, torch.Tensor], plan: Plan, problems: List[str]) -> Dict[str, torch.Tensor]:
    """The tensors by the plan's names, or, those that it does not have, by their own without wrappers.

    All names may begin with segments that the plan's do not have, as `model.` of a LightningModule does.
    """
    known = {bare_name(name): name for name in (*(t["name"] for t in plan.tensors), *plan.aliases)}
    known.update({bare_name(name): of for name, of in plan.alternatives.items()})
    own = {name: bare_name(name) for name in named}
    heads = [bare.split(".")[:-1] for bare in own.values()] or [[]]
    common = os.path.commonprefix(heads)

    def full(bare: str, cut: int) -> str:
        rest = ".".join(bare.split(".")[cut:])
        return known.get(rest) or known.get(bare_name(plan.prefix + rest)) or rest

    wanted = set(known.values())
    matches = [sum(full(bare, cut) in wanted for bare in own.values()) for cut in range(len(common) + 1)]
    cut = matches.index(max(matches))
    given: Dict[str, str] = {}
    for name, bare in own.items():
        target = full(bare, cut)
        first = given.setdefault(target, name)
        if first != name and not (own[first] == bare and named[first] is named[name]):
            alike = own[first] == bare
            problems.append(f"{name if alike else bare}: the same {'name' if alike else 'tensor of the plan'} as "
                            f"{first if alike else own[first]}{', without wrappers' if alike else ''}")
    return {target: named[name] for target, name in given.items()}


def _memory(tensor: torch.Tensor) -> Any:
    """The same for two tensors that share their numbers, as tied ones in state_dict(), which are two objects."""
    try:
        pointer = tensor.data_ptr()
    except (RuntimeError, NotImplementedError):  # without memory
        pointer = 0
    return (str(tensor.device), pointer, tuple(tensor.shape)) if pointer else id(tensor)


def _same_shape(got: List[int], shape: List[int]) -> bool:
    """Whether they differ in axes of one row alone, or in that a convolution has a matrix of patches in three axes."""
    def flat(sizes: List[int]) -> List[int]:
        sizes = [sizes[0], math.prod(sizes[1:])] if len(sizes) == 4 else sizes
        return [size for size in sizes if size != 1]
    return got == shape or flat(got) == flat(shape)


def _match(model: Model, plan: Plan, whole: bool = True) -> List[Tuple[Dict[str, Any], torch.Tensor]]:
    """The plan's tensors with the model's, in the order of the plan. Optimizers need not see them whole: FSDP with
    use_orig_params=True leaves the names, and of each tensor a run of numbers."""
    if not isinstance(plan, Plan):
        fail([f"plan = {shown(plan)}: expected a Plan (hint: scalewise.load(path) reads one)"])
    named, problems = _named(model), []
    cut = not whole and any("_fsdp_wrapped_module" in name for name in named)
    fail(f"{name} = {shown(value)}: expected a tensor" for name, value in named.items() if not torch.is_tensor(value))
    found = _by_plan(named, plan, problems)
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
        elif shape is not None and not _same_shape(got, shape) and not (cut and len(got) == 1):
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
    if plan.plan["shape"].get("blocks") == "listed":  # whose description says what is tied, and leaves out what is fixed
        found = {name: value for name, value in found.items() if _memory(value) not in owner
                 and (value.requires_grad or not isinstance(value, torch.nn.Parameter))}
    unplanned = [name for name in found if plan.leaves_out(name)]
    problems += [f"{name}: not in the plan" for name, parameter in found.items()
                 if name not in unplanned and (parameter.requires_grad or not plan.ignores(name))]
    fail(problems and [*_situations(named, plan, not pairs), *problems])
    if unplanned:
        warnings.warn(f"in no plan: {', '.join(unplanned)}: apply leaves them as they are, and param_groups out (hint: plan "
                      "--extra)", stacklevel=3)
    return pairs


def _situations(named: Dict[str, torch.Tensor], plan: Plan, nothing: bool) -> List[str]:
    """Lines that say why the names may not fit."""
    lines = [f"{name}: {words}" for pattern, words in SITUATIONS.items()
             for name in [next((name for name in named if re.search(pattern, name)), None)] if name]
    matrices = tuple(t["name"] for t in plan.tensors if len(t["shape"] or ()) > 1)
    cut = next((name for name, p in named.items() if "_fsdp_wrapped_module" in name and p.dim() == 1
                and bare_name(name).endswith(matrices)), None)
    if not lines and cut:
        lines.append(f"{cut}: FSDP has cut it: apply the plan before FullyShardedDataParallel, or use fully_shard")
    inside = {name[:-len(t["name"])] for t in plan.tensors for name in named if name.endswith("." + t["name"])} - {""}
    if nothing and len(inside) == 1:
        lines.append(f"{inside.pop()[:-1]} has tensors of the plan: expected this part of the model alone")
    return lines


def _is_sharded(tensor: torch.Tensor) -> bool:
    """Whether it is a DTensor, as after fully_shard."""
    return hasattr(tensor, "placements") and hasattr(tensor, "device_mesh")


def _whole(tensor: torch.Tensor) -> torch.Tensor:
    tensor = tensor.full_tensor() if _is_sharded(tensor) else tensor  # type: ignore[attr-defined]
    return tensor.to_dense() if tensor.is_sparse else tensor  # gradients of nn.Embedding(sparse=True)


def _own_part(values: torch.Tensor, parameter: Any) -> torch.Tensor:
    """The part of a DTensor that this process keeps: along each dimension of the mesh, the piece that torch.chunk gives it."""
    mesh = parameter.device_mesh
    for dim, placement in enumerate(parameter.placements):
        if placement.is_shard():
            pieces, at = values.chunk(mesh.size(dim), placement.dim), mesh.get_coordinate()[dim]
            values = pieces[at] if at < len(pieces) else values.narrow(placement.dim, 0, 0)
    return values


def _memory_problems(pairs: Sequence[Tuple[Dict[str, Any], torch.Tensor]]) -> List[str]:
    """Why numbers cannot be written into these tensors, or read."""
    meta = [tensor["name"] for tensor, parameter in pairs if parameter.device.type == "meta"]
    if meta:
        return [f"{meta[0]}{f' and {len(meta) - 1} more' if len(meta) > 1 else ''} on the meta device: has no memory: call "
                "model.to_empty(device=...) first, tie again what is tied, then apply"]
    problems = []
    for tensor, parameter in pairs:
        name = tensor["name"]
        if not parameter.dtype.is_floating_point:
            problems.append(f"{name}: {str(parameter.dtype)[6:]}: expected floating-point numbers")
        elif 0 in parameter.stride() and parameter.numel() > 1:
            problems.append(f"{name}: an expanded tensor, whose numbers share memory: expected one that has its own")
        elif _is_sharded(parameter):
            kinds = [type(placement).__name__ for placement in parameter.placements]
            if not {*kinds} <= {"Shard", "Replicate"}:
                problems.append(f"{name}: a DTensor of {', '.join(kinds)}: expected Shard or Replicate (hint: apply the plan "
                                "before the model is sharded)")
            elif parameter.device_mesh.get_coordinate() is not None:
                part = list(_own_part(torch.empty((), device="cpu").expand(parameter.shape), parameter).shape)
                if part != list(parameter.to_local().shape):
                    problems.append(f"{name}: {list(parameter.to_local().shape)} of it are here: expected {part}")
    return problems


def _views(tensor: torch.Tensor, part: Dict[str, Any]) -> Tuple[List[torch.Tensor], int]:
    """The views that belong to an entry, and the axis along which they follow each other."""
    views, cut = [tensor], 0
    for axis in part["select"]:
        if len(axis["runs"]) > 1:
            cut = axis["axis"]
        views = [view.narrow(axis["axis"], begin, count) for view in views for begin, count in axis["runs"]]
    return views, cut


def _gather(values: torch.Tensor, tensor: Dict[str, Any], part: Dict[str, Any]) -> torch.Tensor:
    """The numbers of an entry, of a tensor's values or gradients."""
    views, cut = _views(values if tensor["shape"] is None else values.reshape(tensor["shape"]), part)
    return views[0] if len(views) == 1 else torch.cat(views, cut)


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
        views, cut = _views(whole, part)
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
        tensor_of = {part["entry"]: tensor["name"] for tensor in plan.tensors for part in tensor["parts"]}
        key_of = {name: tensor_of[name] for name in drawn}
        given = {name: base_std(name) for name in dict.fromkeys(key_of.values())}
        problems = _settings_problems(**{f"base_std({name!r})": std for name, std in given.items()})
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


def _planned(plan: Plan, keep: Sequence[str], pairs: List[Tuple[Dict[str, Any], torch.Tensor]]) -> List[Tuple[Dict[str, Any], torch.Tensor]]:
    """Tensors whose initial values are the plan's: those of names that match no pattern, unless the plan leaves them."""
    if isinstance(keep, str):
        raise ValueError(f"keep = {keep}: expected a list of patterns, such as [{keep!r}]")
    unused = [pattern for pattern in keep if not any(fnmatch.fnmatchcase(t["name"], pattern) for t, _ in pairs)]
    fail(f"keep: {shown(pattern)}: expected a pattern of names of the plan's tensors" for pattern in unused)
    return [(t, p) for t, p in pairs if plan.entries[t["parts"][0]["entry"]]["distribution"] != "own"
            and not any(fnmatch.fnmatchcase(t["name"], pattern) for pattern in keep)]


def _adds_one(module: torch.nn.Module) -> bool:
    """Whether a norm multiplies by 1 + weight, as Gemma's do: with weights of 0, its output depends on its input.

    A copy is asked, on the CPU. What cannot be asked, such as a kernel for another device, multiplies by the weight.
    """
    on = {"device": "cpu", "dtype": torch.float32}
    copied = object.__new__(type(module))  # fully_shard gives modules a class that does not copy itself
    copied.__dict__.update(module.__dict__, _parameters={
        name: p if p is None else torch.nn.Parameter(torch.zeros(p.shape, **on), requires_grad=False)
        for name, p in module._parameters.items()}, _buffers={  # which batch norms count up
            name: b if b is None else b.detach().to("cpu", copy=True) for name, b in module._buffers.items()})
    size = next(p.shape[0] for p in module._parameters.values() if p is not None)
    values = torch.linspace(1.0, 2.0, size, **on).reshape(1, 1, size)
    try:
        with torch.no_grad():
            return not torch.equal(*(type(module).forward(copied, x) for x in (values, values.flip(-1))))
    except Exception:  # whatever a module of somebody else's raises  # pylint: disable=broad-except
        return False


def _stored_from_zero(model: Model, plan: Plan, pairs: List[Tuple[Dict[str, Any], torch.Tensor]]) -> Set[int]:
    """The gains of norms that multiply by 1 + weight."""
    if not isinstance(model, torch.nn.Module):
        return set()
    gains = {id(p) for t, p in pairs if p.dim() == 1 and plan.entries[t["parts"][0]["entry"]]["init_mean"]["value"] != 0}
    found: Set[int] = set()
    for module in model.modules():
        own = [p for p in module._parameters.values() if p is not None]
        if not module._modules and gains & set(map(id, own)) and all(p.dim() == 1 for p in own) and _adds_one(module):
            found |= gains & set(map(id, own))
    return found


def _padding_rows(model: Any) -> Dict[int, int]:
    """By the id of an embedding's weight the row that pads: it has no gradient, and is zero as PyTorch draws it."""
    modules = model.modules() if isinstance(model, torch.nn.Module) else ()
    return {id(module.weight): module.padding_idx for module in modules
            if isinstance(module, (torch.nn.Embedding, torch.nn.EmbeddingBag)) and module.padding_idx is not None}


def apply(model: Model, plan: Plan, base_std: BaseStd = None, seed: int = 0, keep: Sequence[str] = ()) -> None:
    """Draws every tensor from its planned distribution, in place; rows of padding become zero. Vectors whose distribution
    is "own" stay as they are, and tensors whose names in the plan match a pattern of `keep`, such as "*.norm.weight". Norms of
    a module that multiply by 1 + weight, as Gemma's, get 1 less.

    Under a relative rule, variances are factors on those of the base model: `base_std` is its standard
    deviation, one for all, by group, or a function of a tensor's name in the plan. An entry's numbers depend on the
    seed and its name alone, whatever the layout, the type and the device. They are drawn as float on the CPU and then
    converted. After fully_shard every process draws the same numbers and keeps its own part of them.
    """
    pairs = _planned(plan, keep, _match(model, plan))
    stds = _deviations(plan, base_std)
    seed = _whole_number("seed", seed, 0, 1 << 64, "from 0 to 2^64 - 1")
    # A normal's numbers are below 9 of its deviations.
    fail(_memory_problems(pairs) or
          [f"{tensor['name']}: mean {mean:.6g}, standard deviation {stds[part['entry']]:.6g}: beyond {str(parameter.dtype)[6:]}"
           for tensor, parameter in pairs for part in tensor["parts"]
           for mean in [plan.entries[part["entry"]]["init_mean"]["value"]]
           if not abs(mean) + 9 * stds[part["entry"]] < min(torch.finfo(parameter.dtype).max, 3e38)])
    from_zero = _stored_from_zero(model, plan, pairs)
    padding = _padding_rows(model)
    with torch.no_grad():
        for tensor, parameter in pairs:
            values = _drawn(tensor, lambda entry: _draw(plan.entries[entry], stds[entry], seed)).reshape(parameter.shape)
            values = values - 1 if id(parameter) in from_zero else values
            if id(parameter) in padding:
                values[padding[id(parameter)]] = 0
            if not _is_sharded(parameter):
                parameter.copy_(values)
            elif parameter.device_mesh.get_coordinate() is not None:  # type: ignore[attr-defined]
                parameter.to_local().copy_(_own_part(values, parameter))  # type: ignore[attr-defined]


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
    problems, pairs = [], _match(model, plan, whole=False)
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


def set_lr(optimizer: torch.optim.Optimizer, lr: float) -> None:
    """Sets the global learning rate: that of each group is its factor times it.

    Raises: ValueError, and changes nothing, where a group is not one of param_groups().
    """
    fail([*_settings_problems(lr=lr),
           *(f"group {g}: lr_factor (missing): expected the groups of param_groups()"
             for g, group in enumerate(optimizer.param_groups) if "lr_factor" not in group)])
    for group in optimizer.param_groups:
        if torch.is_tensor(group["lr"]):  # which a compiled or captured step reads
            group["lr"].fill_(lr * group["lr_factor"])
        else:
            group["lr"] = lr * group["lr_factor"]


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


def check_optimizer(optimizer: Optimizers, model: Model, plan: Plan, lr: Optional[float] = None,
                    weight_decay: float = 0.0, eps: float = 1e-8) -> None:
    """Compares what the optimizer uses with the plan; call it once more after the scheduler's first step.

    Under Muon give both: {"muon-original": muon, "adamw": adamw}.
    Without `lr` the global rate is that of a tensor whose factor is 1, or nearest to it, of each optimizer: ratios
    alone count.
    Numbers agree within 1e-5, as optimizers may keep floats.
    Raises: ValueError naming each tensor with another rate, decay or epsilon, each that is frozen, in no
    group or in two, each parameter of the optimizer that is not in the plan, an optimizer of PyTorch that is
    another than the plan's, such as Adam for AdamW, and a Muon that says that it multiplies steps by another factor.
    """
    fail(_settings_problems(weight_decay=weight_decay, eps=eps, **({} if lr is None else {"lr": lr})))
    problems, held, holder = [], {}, {}
    optimizers = optimizer if isinstance(optimizer, Mapping) else {"": optimizer}
    fail(f"optimizer = {shown(one)}: expected an optimizer, or a dict of them by name"
         for one in optimizers.values() if not hasattr(one, "param_groups"))
    every_group = [(name, group) for name, one in optimizers.items() for group in one.param_groups]
    for of, group in every_group:
        for parameter in group["params"]:
            held.setdefault(id(parameter), []).append(group)
            holder[id(parameter)] = of
    pairs = _match(model, plan, whole=False)
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
    factors = [_factor_problem(f"optimizer[{of!r}]" if of else "optimizer", optimizers[of], held[id(p)][0], plan, t)
               for t, p in pairs if id(p) in held for of in [holder[id(p)]] if of not in other_classes]
    problems += dict.fromkeys(problem for problem in factors if problem)
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
            if key == "eps" and "epsilon" in groups[0]:  # as dion calls it
                key = "epsilon"
            if key not in groups[0]:
                if holder[id(parameter)] not in other_classes:  # SGD has no epsilon
                    problems.append(f"{name}: {key} (missing): expected {expected:.6g}")
            elif not math.isclose(groups[0][key], expected, rel_tol=1e-5, abs_tol=0):
                problems.append(f"{name}: {key} = {groups[0][key]:.6g}: expected {expected:.6g}")
    unplanned = {id(p) for name, p in _by_plan(_named(model), plan, []).items() if plan.leaves_out(name)}
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
    shape = list(parameter.shape)
    if len(shape) < 2 or min(shape[0], math.prod(shape[1:])) < 8 or _is_sharded(parameter):
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


def _inner(optimizer: Any) -> Any:
    """The optimizer that Accelerate's wraps, whose own step() may do nothing."""
    while "param_groups" not in getattr(optimizer, "__dict__", {"param_groups": 0}) and hasattr(optimizer, "optimizer"):
        optimizer = optimizer.optimizer
    return optimizer


def _first_step(optimizer: Any, parameter: torch.Tensor, group: Dict[str, Any], gradient: torch.Tensor) -> torch.Tensor:
    """The step from zeros along a gradient, as doubles; leaves no trace."""
    optimizer = _inner(optimizer)
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


# ---- Records -------------------------------------------------------------------------------------------------------

_SCHEMA = "scalewise.coordinates/2"


def _sum_of(body: bytes) -> bytes:
    """The last member of a line: FNV-1a of what is before it."""
    return f',"sum":"{Fnv(body).sum:016x}"}}'.encode()


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
    raise ValueError(f"{name} = {shown(value)}: expected a whole number {range_text}")


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


class _Pass:
    """One forward pass of the model, as the hooks saw it."""

    def __init__(self, step: int, batch: List[torch.Tensor], same_batch: bool):
        self.step, self.batch, self.same_batch = step, batch, same_batch
        self.grad = False  # whether the logits require a gradient
        self.records: Dict[Tuple[str, str], List[Any]] = {}
        self.values: Dict[str, torch.Tensor] = {}


def _tensors(value: Any) -> List[torch.Tensor]:
    """All tensors of a batch, such as a dict of them."""
    if torch.is_tensor(value):
        return [value]
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, (list, tuple)) else ()
    return [tensor for one in inner for tensor in _tensors(one)]


def _doubles(value: torch.Tensor) -> torch.Tensor:
    """Apple's GPUs have none."""
    return (value.cpu() if value.device.type == "mps" else value).double()


def _sums(value: torch.Tensor) -> List[Any]:
    value = _doubles(value.detach())
    sums = [float(value.abs().sum()), float(value.square().sum())]
    return [*(x if math.isfinite(x) else None for x in sums), value.numel()]


def _in_checkpoint() -> bool:
    """Whether a forward pass runs inside torch.utils.checkpoint, which allows no gradients before its backward pass."""
    frame: Any = sys._getframe()
    while frame is not None and frame.f_code.co_filename != torch.utils.checkpoint.__file__:
        frame = frame.f_back
    return frame is not None


def _owner(model: torch.nn.Module, name: str, module: torch.nn.Module) -> Tuple[str, torch.nn.Module]:
    """The module that computes with a parameter of this one: that of a parametrization returns the weight itself."""
    if not isinstance(module, torch.nn.utils.parametrize.ParametrizationList):
        return name, module
    name = name.rpartition("parametrizations.")[0].rstrip(".")
    return name, model.get_submodule(name)


class Recorder:
    """Records a training run for `coordinate_check --judge`.

    Make it before the first step, before or after schedulers; `optimizer` is one, or a list of those that step in turn. Then
    train a few steps on the same batch, run the model once more, and save(). It watches the modules that own the plan's
    tensors, the model's output, and optimizer.step(): step k is the forward pass after k updates whose loss is
    differentiated, the first if there are several, or the last one before save(). Passes without gradients, as in an
    evaluation, do not count otherwise. Sizes of the record: `size` is the width, or what the check compares. `keep` is that
    of apply(): initial values that are not the plan's.
    The first forward pass raises ValueError where attention whose output is (batch, tokens, width) uses query,
    key and value otherwise than the plan says; `unchecked` lists what was not observed or could not be found out.
    """

    def __init__(self, model: torch.nn.Module, plan: Plan, optimizer: Union[torch.optim.Optimizer, Sequence[torch.optim.Optimizer]],
                 size: Optional[int] = None, seed: int = 0, keep: Sequence[str] = ()):
        self._plan, self._pairs = plan, _match(model, plan)
        self._size = _whole_number("size", plan.plan["shape"]["d_model"] if size is None else size, 1, 1 << 62,
                                   "from 1 to 2^62 - 1")
        self._seed = _whole_number("seed", seed, 0, 1 << 64, "from 0 to 2^64 - 1")
        fail(_memory_problems(self._pairs))
        self._optimizers = [_inner(one) for one in ([optimizer] if hasattr(optimizer, "step") else list(optimizer or ()))]
        if not self._optimizers or not all(hasattr(one, "step") for one in self._optimizers):
            raise ValueError(f"optimizer = {shown(optimizer)}: expected an optimizer, or those that step in turn")
        self._stepped: Set[int] = set()  # optimizers, in the step under way
        self._active, self._step = True, 0
        self._now: Optional[_Pass] = None  # the pass under way
        self._last: Optional[_Pass] = None  # of this step, complete, and not yet recorded
        self._first: Optional[_Pass] = None  # the recorded pass of step 0
        self._recorded = False  # a pass of this step
        self._expected: Dict[str, str] = {}  # activations, and the module that shows them
        self._layouts: Dict[str, Optional[str]] = {}  # by block, why its order could not be checked, or ""
        self._notes: Dict[str, None] = {}
        self._records: Dict[Tuple[int, str, str], List[Any]] = {}
        self._initial = _planned(plan, keep, self._pairs)
        self._from_zero = _stored_from_zero(model, plan, self._initial)
        owners = [(id(p), _owner(model, name, module)) for name, module in model.named_modules()
                  for p in module._parameters.values() if p is not None]
        listed = plan.plan["shape"].get("blocks") == "listed"
        named = dict(reversed(owners) if listed else owners)
        try:  # PyTorch 2 has batches that are passed by name
            first = model.register_forward_pre_hook(self._begin, with_kwargs=True)  # type: ignore[call-arg]
        except TypeError:
            first = model.register_forward_pre_hook(self._begin)
        self._hooks = [first, model.register_forward_hook(self._end)]
        if listed:
            self._watch_outputs({id(p): t["name"] for t, p in self._pairs}, named)
        for tensor, parameter in () if listed else self._pairs:
            name, module = named[id(parameter)]
            self._watch(name, module, plan.entries[tensor["parts"][0]["entry"]])
        self._values: List[torch.Tensor] = []  # before the step under way, or after the last one
        self._changed: Dict[str, None] = {}  # tensors that something changed between two steps
        self._steps = [self._wrap(one) for one in self._optimizers]

    def activation(self, name: str, value: torch.Tensor) -> None:
        """Records an activation that no module of the plan's tensors shows, when the forward pass has it: an observable of
        docs/checks/coordinate_check.md, such as "layer.0.attention.scores"."""
        if not torch.is_tensor(value):
            raise ValueError(f"{name} = {shown(value)}: expected a tensor")
        self._seen(name, value)

    def _wrap(self, optimizer: torch.optim.Optimizer) -> Tuple[torch.optim.Optimizer, Any, Any]:
        """Puts a bound method in place of step(), with the marks that a scheduler may have left on it."""
        old, take_step = vars(optimizer).get("step"), optimizer.step

        @functools.wraps(take_step)
        def step(this: torch.optim.Optimizer, *arguments: Any, **options: Any) -> Any:
            return self._record_step(optimizer, take_step, *arguments, **options)

        optimizer.step = types.MethodType(step, optimizer)  # type: ignore[method-assign]
        return optimizer, old, optimizer.step

    @property
    def unchecked(self) -> List[str]:
        """A line for each thing that was not observed up to now, or could not be found out."""
        lines = [f"{block}.query, key, value: {why}" for block, why in self._layouts.items() if why]
        if self._first:
            lines += [f"{block}.query, key, value: {self._expected[block + '.attention.output']} was not called"
                      for block, why in self._layouts.items() if why is None]
            missing: Dict[str, List[str]] = {}
            for name, module in self._expected.items():
                if ("value", name) not in self._first.records:
                    missing.setdefault(module, []).append(name)
            lines += [f"{', '.join(names)}: not recorded, as {module} was not called with a tensor (torch.nn."
                      "MultiheadAttention uses its out_proj without calling it)" for module, names in missing.items()]
        elif self._step or not self._active:
            lines.append("activations: no forward pass of the model that Recorder was given ran before the first step")
        for names, what in ((self._unmoved(), "no step changed them (frozen, in no optimizer, or with gradients of zero)"),
                            (list(self._changed), "changed between steps, which updates do not show (an average, clamping, "
                                                  "another initialization or optimizer)")):
            if names:
                lines.append(f"{_few(names)}: {what}")
        if not self._active and not self._step:
            lines.append("updates: step() of the optimizer that Recorder was given was not called")
        return [*lines, *self._notes]

    def _watch_outputs(self, names: Dict[int, str], owners: Dict[int, Tuple[str, torch.nn.Module]]) -> None:
        """Modules that have tensors of a list; their outputs have the name of the matrix of the module, or of its first tensor.
        The output of the model itself, within any wrapper, is that of its logits, and lists of parameters have none."""
        tensors: Dict[torch.nn.Module, List[str]] = {}
        for parameter, name in names.items():
            owner, module = owners[parameter]
            whole = names.keys() <= {id(p) for p in module.parameters()}
            if whole and next(module.children(), None) is not None or type(module).forward is torch.nn.Module.forward:
                continue
            tensors.setdefault(module, []).append(name)
            self._expected[name] = owner
        for module, own in tensors.items():
            matrix = next((name for name in own if self._plan.entries[name]["columns"] > 1), own[0])
            for other in own:
                if other != matrix:
                    del self._expected[other]
            self._hooks.append(module.register_forward_hook(
                lambda _, inputs, output, name=matrix: self._seen(name, output)))

    def _watch(self, owner: str, module: torch.nn.Module, entry: Dict[str, Any]) -> None:
        block = entry["name"].rpartition(".")[0]
        if block and entry["group"] == "attention_output" and not entry["name"].endswith("cross_attention_output"):
            self._layouts[block] = None
            self._hooks.append(module.register_forward_hook(
                lambda _, inputs, output: self._now and not self._step and self._check_layout(block, output) or None))
        observed = {"attention_output": ("attention.heads", "attention.output"),
                    "mlp_down": ("mlp.hidden", "mlp.output")}.get(entry["name"].rpartition(".")[2])
        if observed and block:
            heads, output_name = (f"{block}.{name}" for name in observed)
            self._expected.update({heads: owner, output_name: owner})
            self._hooks.append(module.register_forward_hook(
                lambda _, inputs, output: self._seen(heads, inputs) or self._seen(output_name, output)))
        elif entry["layer"] == 0 and entry["stack"] != "decoder":  # the first of them to run sees the embedding
            self._expected.setdefault("embedding", owner)
            self._hooks.append(module.register_forward_pre_hook(
                lambda _, inputs: None if self._now and ("value", "embedding") in self._now.records else
                self._seen("embedding", inputs)))
        elif entry["group"] == "final_norm_gain" and entry["stack"] != "encoder":
            self._expected["final_hidden"] = owner
            self._hooks.append(module.register_forward_hook(lambda _, inputs, output: self._seen("final_hidden", output)))
        if entry["name"].rpartition(".")[2] in ("attention_norm_gain", "final_norm_gain"):
            self._watch_stream(module, entry)

    def _watch_stream(self, module: torch.nn.Module, entry: Dict[str, Any]) -> None:
        """What a norm before the attention reads, and the last norm, is the stream after the layer before it."""
        layers = [e for e in self._plan.entries.values() if e["stack"] == entry["stack"] and e["name"].endswith((".mlp_down", ".expert_down"))]
        before = len(layers) if entry["layer"] is None else entry["layer"]
        if not 0 < before <= len(layers):
            return
        block = layers[before - 1]["name"].rpartition(".")[0]
        before_it, own = (("value", f"{name}.attention.output") for name in (block, entry["name"].rpartition(".")[0]))

        def read(_: Any, inputs: Any) -> None:
            seen = self._now.records if self._now else {}
            pre_norm = before_it in seen and own not in seen  # torch.nn.MultiheadAttention shows neither
            if pre_norm and len(inputs) == 1:  # others add the branch to the stream themselves
                self._seen(f"{block}.mlp.stream", inputs)

        self._hooks.append(module.register_forward_pre_hook(read))

    def _check_layout(self, block: str, output: torch.Tensor) -> None:
        """Whether query, key and value are used as such. With r any vector, the gradient of r·y by the query's
        matrix, y being the attention's output at the last token, is an outer product with that token's input:
        it has rank one, and those of key and value have not. At the first token of a causal model it is zero by
        query and key. A single head's query and key cannot be distinguished, nor can matrices that begin at zero.
        """
        if self._layouts[block] == "":
            return None
        output = output[0] if isinstance(output, tuple) and output else output
        if torch.is_tensor(output) and output.dim() == 3:
            shapes = [tuple(one.shape[:2]) for one in (self._now.batch if self._now else ())]
            if tuple(output.shape[:2]) not in shapes and tuple(output.shape[1::-1]) in shapes:
                output = output.transpose(0, 1)  # (tokens, batch, width), as of fairseq and Megatron-LM
        if not torch.is_tensor(output) or output.dim() != 3 or output.shape[1] < 3:
            return self._skip_layout(block, "the attention's output is not (batch, three or more tokens, width)")
        if self._plan.plan["shape"]["heads"] < 2:
            return self._skip_layout(block, "query and key of a single head cannot be distinguished")
        if not output.requires_grad:
            return self._skip_layout(block, "the forward pass keeps no gradients")
        if _in_checkpoint():
            return self._skip_layout(block, "inside activation checkpointing: switch it off to check")
        if any(_is_sharded(parameter) for _, parameter in self._pairs):
            return self._skip_layout(block, "the parameters are sharded")
        self._layouts[block] = None
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
        fail(problems)
        self._layouts[block] = self._layouts[block] or ""

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
                parts = [_doubles(_gather(gradient, tensor, part)) for gradient in gradients]
                found[roles[part["entry"]]] = (tensor["name"], part["entry"],
                                               *(p if tensor["transposed"] else p.t() for p in parts))
        return found

    def _skip_layout(self, block: str, why: str) -> None:
        self._layouts[block] = why

    def _begin(self, _: Any, arguments: Any, options: Any = None) -> None:
        if self._recorded:
            return
        batch = [value.detach().clone() for value in _tensors([arguments, options or {}])]
        first = self._first.batch if self._first else batch
        # The last pass may be without labels; NaN is itself.
        same = all(a.shape == b.shape and bool(((a == b) | (a != a) & (b != b)).all()) for a, b in zip(batch, first))
        self._now = _Pass(self._step, batch, same)

    def _seen(self, name: str, value: Any) -> None:
        """An activation: a tensor, or a tuple that begins with it, as Megatron-LM's layers return."""
        while isinstance(value, (tuple, list)) and value:
            value = value[0]
        # No pass is under way where one is not recorded, or where checkpointing repeats one in the backward pass.
        if self._now is None or not torch.is_tensor(value):
            return
        if ("value", name) in self._now.records:
            self._notes[f"{name}: its module ran twice in one forward pass, of which the first is recorded"] = None
            return
        value = value.detach().float()
        self._now.records["value", name] = _sums(value)
        if self._step == 0:
            self._now.values[name] = value.clone()
        elif self._first and self._now.same_batch and name in self._first.values:
            if self._first.values[name].shape == value.shape:
                self._now.records["change", name] = _sums(value - self._first.values[name])

    def _end(self, _: Any, inputs: Any, output: Any) -> None:
        logits = getattr(output, "logits", output)
        while isinstance(logits, (tuple, list)):
            logits = next((one for one in logits if not (torch.is_tensor(one) and one.dim() == 0)), None)  # a loss is not logits
        if not torch.is_tensor(logits) or logits.dim() == 0:
            raise ValueError("the model's output has no logits: expected a tensor of them, a tuple that begins with it, or "
                             ".logits")
        if self._now is None:
            return
        self._seen("logits", logits)
        done, self._now = self._now, None
        done.grad = logits.requires_grad
        if done.grad:
            logits.register_hook(lambda gradient: self._record_pass(done, gradient))
        if done.grad or self._last is None or not self._last.grad:
            self._last = done

    def _record_pass(self, done: Optional[_Pass], gradient: Optional[torch.Tensor] = None) -> None:
        """Records a forward pass, unless there is one of this step."""
        if self._recorded or done is None or done.step != self._step:
            return
        self._recorded, self._last = True, None
        self._records.update({(done.step, *key): sums for key, sums in done.records.items()})
        if gradient is not None:
            self._records[done.step, "gradient", "logits"] = _sums(gradient)
        if self._first:
            lost = [name for signal, name in self._first.records if (signal, name) not in done.records
                    or done.same_batch and ("change", name) not in done.records]
            if lost:
                self._notes[f"step {done.step}: {_few(lost)}: not seen as at step 0 (not called, or of another shape)"] = None
        if done.step == 0:
            self._first = done
        elif not done.same_batch:
            self._notes[f"step {done.step}: another batch than at step 0, so that changes of activations mean nothing"] = None

    def _record_initial(self) -> None:
        for tensor, parameter in self._initial:
            gain = _whole(parameter) + 1 if id(parameter) in self._from_zero else _whole(parameter)
            for part in tensor["parts"]:
                self._records[0, "parameter", part["entry"]] = _sums(_gather(gain, tensor, part))
        self._initial = []

    def _unmoved(self) -> List[str]:
        """Tensors that no step has changed."""
        sizes: Dict[str, float] = collections.defaultdict(float)
        for (_, signal, name), (size, *_) in self._records.items():
            if signal == "update":
                sizes[name] += math.inf if size is None else size
        return [t["name"] for t, _ in self._pairs if t["parts"] and all(sizes.get(p["entry"]) == 0 for p in t["parts"])]

    def _record_gradients(self, scale: Optional[torch.Tensor]) -> None:
        self._record_pass(self._last)
        for tensor, parameter in self._pairs:
            if parameter.grad is None:
                continue
            gradient = _whole(parameter.grad) if scale is None else _whole(parameter.grad) / scale.to(parameter.device)
            for part in tensor["parts"]:
                self._records[self._step, "gradient", part["entry"]] = _sums(_gather(gradient, tensor, part))

    def _record_step(self, optimizer: torch.optim.Optimizer, take_step: Any, *arguments: Any, **options: Any) -> Any:
        skipped = getattr(optimizer, "found_inf", None)  # what GradScaler leaves to fused optimizers
        if not self._active or skipped is not None and bool(skipped):
            return take_step(*arguments, **options)
        if not self._stepped:
            if not self._values:
                self._values = [_whole(parameter).detach().clone() for _, parameter in self._pairs]
            for i, (tensor, parameter) in enumerate(self._pairs):
                now = _whole(parameter).detach()
                kept = self._values[i] = self._values[i].to(now)  # a model may move between devices
                if not bool(((kept == now) | (kept != kept) & (now != now)).all()):
                    self._changed[tensor["name"]] = None
                    kept.copy_(now)
            self._record_initial()
            closure, seen = arguments[0] if arguments else options.get("closure"), []

            def evaluate() -> Any:  # the gradients are those after the first evaluation
                loss = closure()
                if not seen:
                    seen.append(self._record_gradients(None))
                return loss

            if closure is None:
                self._record_gradients(getattr(optimizer, "grad_scale", None))
            elif arguments:
                arguments = (evaluate, *arguments[1:])
            else:
                options["closure"] = evaluate
        result = take_step(*arguments, **options)
        self._stepped.add(id(optimizer))
        if len(self._stepped) < len(self._optimizers):
            return result
        self._stepped.clear()
        for (tensor, parameter), kept in zip(self._pairs, self._values):
            now = _whole(parameter).detach()
            added = now - kept
            for part in tensor["parts"]:
                self._records[self._step + 1, "update", part["entry"]] = _sums(_gather(added, tensor, part))
            kept.copy_(now)
        self._step, self._recorded, self._last, self._now = self._step + 1, False, None, None
        return result

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Appends the run to a file, as one line, and stops recording. Warns of what is in `unchecked`.

        Any process may append to the file at any time. A last line without its end, which an interrupted process
        left, is cut.
        Raises: OSError where not everything can be written, and ValueError for another kind of file; then the file has
        no part of the run, and save() can be called again.
        """
        self._record_pass(self._last)
        self._record_initial()
        self._active = False
        for hook in self._hooks:
            hook.remove()
        for optimizer, old, ours in self._steps:
            if vars(optimizer).get("step") is not ours:  # a scheduler has wrapped it: it passes everything on
                continue
            if old is not None:
                optimizer.step = old  # type: ignore[method-assign]
            else:
                del optimizer.step  # type: ignore[method-assign]
        self._steps = []
        records = [{"step": step, "signal": signal, "name": name, "sum_abs": a, "sum_squares": b, "count": count}
                   for (step, signal, name), (a, b, count) in sorted(self._records.items())]
        body = json.dumps({"schema": _SCHEMA, "inputs": [], "size": self._size, "seed": self._seed,
                           "plan": self._plan.fingerprint(), "records": records}, separators=(",", ":"))[:-1].encode()
        _append_line(os.fspath(path), body + _sum_of(body) + b"\n")
        lines = self.unchecked
        if lines:
            more = f" (and {len(lines) - 3} more lines of unchecked)" if len(lines) > 3 else ""
            warnings.warn(f"{os.fspath(path)}: not everything was observed: {'; '.join(lines[:3])}{more}", stacklevel=2)
