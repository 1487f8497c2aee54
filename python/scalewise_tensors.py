# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""The tensors of a PyTorch model that a plan names, and the part of each that belongs to an entry of the plan."""

import copy
import fnmatch
import itertools
import math
import os
import re
import warnings
from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple, Union

import torch

from scalewise_plan import SITUATIONS, Plan, bare_name, fail, rows_of, shown

Model = Union[torch.nn.Module, Mapping[str, torch.Tensor]]


def named_parameters(model: Model) -> Dict[str, torch.Tensor]:
    """Every name of every parameter, tied ones as often as they have names."""
    if not isinstance(model, (torch.nn.Module, Mapping)):
        raise ValueError(f"model = {shown(model)}: expected a torch.nn.Module, or tensors by name")
    if not isinstance(model, torch.nn.Module):
        return dict(model)
    return {f"{prefix}.{name}" if prefix else name: parameter
            for prefix, module in model.named_modules(remove_duplicate=False)
            for name, parameter in module._parameters.items() if parameter is not None}


def by_plan(named: Dict[str, torch.Tensor], plan: Plan, problems: List[str]) -> Dict[str, torch.Tensor]:
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


def match(model: Model, plan: Plan, in_one_piece: bool = True) -> List[Tuple[Dict[str, Any], torch.Tensor]]:
    """The plan's tensors with the model's, in the order of the plan. Optimizers need not see them whole: FSDP with
    use_orig_params=True leaves the names, and of each tensor a run of numbers."""
    if not isinstance(plan, Plan):
        fail([f"plan = {shown(plan)}: expected a Plan (hint: scalewise.load(path) reads one)"])
    named, problems = named_parameters(model), []
    cut = not in_one_piece and any("_fsdp_wrapped_module" in name for name in named)
    fail(f"{name} = {shown(value)}: expected a tensor" for name, value in named.items() if not torch.is_tensor(value))
    found = by_plan(named, plan, problems)
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
    aliases, listed = dict(plan.aliases), plan.plan["shape"].get("blocks") == "listed"
    if listed:  # whose description says what is tied, and leaves out what is fixed
        aliases.update({name: owner[_memory(value)][0] for name, value in found.items()
                        if _memory(value) in owner and value.requires_grad})
    for alias, of in aliases.items():
        parameter = found.pop(alias, None)
        if parameter is None:
            continue
        first, tied = owner.get(_memory(parameter), ("", parameter))
        # Two parameters that share memory are not tied, as each has its own gradient.
        parameters = all(isinstance(one, torch.nn.Parameter) for one in (parameter, tied))
        if first != of or parameters and parameter is not tied:
            problems.append(f"{alias}: not the same parameter as {of}, though the plan ties them")
    if listed:
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
    others = [name for name in named if bare_name(name) not in {t["name"] for t in plan.tensors}]
    lines = [f"{name}: {words}" for pattern, words in SITUATIONS.items()
             for name in [next((name for name in others if re.search(pattern, name)), None)] if name]
    matrices = tuple(t["name"] for t in plan.tensors if len(t["shape"] or ()) > 1)
    cut = next((name for name, p in named.items() if "_fsdp_wrapped_module" in name and p.dim() == 1
                and bare_name(name).endswith(matrices)), None)
    if not lines and cut:
        lines.append(f"{cut}: FSDP has cut it: apply the plan before FullyShardedDataParallel, or use fully_shard")
    inside = {name[:-len(t["name"])] for t in plan.tensors for name in named if name.endswith("." + t["name"])} - {""}
    if nothing and len(inside) == 1:
        lines.append(f"{inside.pop()[:-1]} has tensors of the plan: expected this part of the model alone")
    return lines


def is_sharded(tensor: torch.Tensor) -> bool:
    """Whether it is a DTensor, as after fully_shard."""
    return hasattr(tensor, "placements") and hasattr(tensor, "device_mesh")


def whole_tensor(tensor: torch.Tensor) -> torch.Tensor:
    tensor = tensor.full_tensor() if is_sharded(tensor) else tensor  # type: ignore[attr-defined]
    return tensor.to_dense() if tensor.is_sparse else tensor  # gradients of nn.Embedding(sparse=True)


def own_part(values: torch.Tensor, parameter: Any) -> torch.Tensor:
    """The part of a DTensor that this process keeps: along each dimension of the mesh, the piece that torch.chunk gives it."""
    mesh = parameter.device_mesh
    for dim, placement in enumerate(parameter.placements):
        if placement.is_shard():
            pieces, at = values.chunk(mesh.size(dim), placement.dim), mesh.get_coordinate()[dim]
            values = pieces[at] if at < len(pieces) else values.narrow(placement.dim, 0, 0)
    return values


def memory_problems(pairs: Sequence[Tuple[Dict[str, Any], torch.Tensor]]) -> List[str]:
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
        elif is_sharded(parameter):
            kinds = [type(placement).__name__ for placement in parameter.placements]
            if not {*kinds} <= {"Shard", "Replicate"}:
                problems.append(f"{name}: a DTensor of {', '.join(kinds)}: expected Shard or Replicate (hint: apply the plan "
                                "before the model is sharded)")
            elif parameter.device_mesh.get_coordinate() is not None:
                part = list(own_part(torch.empty((), device="cpu").expand(parameter.shape), parameter).shape)
                if part != list(parameter.to_local().shape):
                    problems.append(f"{name}: {list(parameter.to_local().shape)} of it are here: expected {part}")
    return problems


def views_of(tensor: torch.Tensor, part: Dict[str, Any]) -> Tuple[List[torch.Tensor], int]:
    """The views that belong to an entry, and the axis along which they follow each other."""
    views, cut = [tensor], 0
    for axis in part["select"]:
        if len(axis["runs"]) > 1:
            cut = axis["axis"]
        before = (slice(None),) * axis["axis"]
        views = [view[(*before, slice(rows.start, rows.stop, rows.step))] for view in views for rows in map(rows_of, axis["runs"])]
    return views, cut


def gather(values: torch.Tensor, tensor: Dict[str, Any], part: Dict[str, Any]) -> torch.Tensor:
    """The numbers of an entry, of a tensor's values or gradients."""
    views, cut = views_of(values if tensor["shape"] is None else values.reshape(tensor["shape"]), part)
    return views[0] if len(views) == 1 else torch.cat(views, cut)


def planned(plan: Plan, keep: Sequence[str], pairs: List[Tuple[Dict[str, Any], torch.Tensor]]) -> List[Tuple[Dict[str, Any], torch.Tensor]]:
    """Tensors whose initial values are the plan's: those of names that match no pattern, unless the plan leaves them."""
    if isinstance(keep, str):
        raise ValueError(f"keep = {keep}: expected a list of patterns, such as [{keep!r}]")
    unused = [pattern for pattern in keep if not any(fnmatch.fnmatchcase(t["name"], pattern) for t, _ in pairs)]
    fail(f"keep: {shown(pattern)}: expected a pattern of names of the plan's tensors" for pattern in unused)
    return [(t, p) for t, p in pairs if plan.entries[t["parts"][0]["entry"]]["distribution"] != "own"
            and not any(fnmatch.fnmatchcase(t["name"], pattern) for pattern in keep)]


def _depends(module: torch.nn.Module, gains: Set[int], gain: float, dtype: torch.dtype, arguments: int) -> bool:
    """Whether a norm's output depends on its input, with a gain of this value. A copy is asked, on the CPU."""
    on: Dict[str, Any] = {"device": "cpu", "dtype": dtype}
    copied = object.__new__(type(module))  # fully_shard gives modules a class that does not copy itself
    copied.__dict__.update(module.__dict__, _parameters={
        name: p if p is None else torch.nn.Parameter(torch.full(p.shape, gain if id(p) in gains else 0.0, **on), False)
        for name, p in module._parameters.items()}, _buffers={  # which batch norms count up
            name: b if b is None else b.detach().to("cpu", copy=True) for name, b in module._buffers.items()},
        _modules={name: m if m is None else copy.deepcopy(m).cpu() for name, m in module._modules.items()})
    torch.nn.Module.train(copied, False)  # dropout would draw numbers
    size = max(2, *(p.shape[0] for p in module._parameters.values() if id(p) in gains))
    values, outputs = torch.linspace(-1.0, 2.0, size, **on).reshape(1, 1, size), []
    for x in (values, values.flip(-1)):
        output = type(module).forward(copied, *(x.clone() for _ in range(arguments)))
        outputs.append(next(filter(torch.is_tensor, output)) if isinstance(output, (tuple, list)) else output)
    return not torch.equal(*outputs)


def _adds_one(module: torch.nn.Module, gains: Set[int]) -> Optional[bool]:
    """Whether a norm multiplies by 1 + weight, as Gemma's do: with weights of 0 its output depends on its input, and
    with weights of -1 it does not. A norm that multiplies by the weight is the other way round. None for others, such
    as one that multiplies by exp(weight), and for what cannot be asked, such as a kernel for another device.
    """
    forward = getattr(type(module), "forward", None)
    of_torch = str(getattr(forward, "__module__", "")).startswith("torch.nn.modules.")
    if of_torch and forward is not torch.nn.Module.forward:
        return False
    for dtype, arguments in itertools.product((torch.float32, torch.bfloat16), (1, 2)):  # the second may be a residual
        try:
            with torch.no_grad():
                found = tuple(_depends(module, gains, gain, dtype, arguments) for gain in (0.0, -1.0))
        except Exception:  # whatever a module of somebody else's raises  # pylint: disable=broad-except
            continue
        return {(True, False): True, (False, True): False}.get(found)
    return None


def stored_from_zero(model: Model, plan: Plan, pairs: List[Tuple[Dict[str, Any], torch.Tensor]]) -> Set[int]:
    """The gains of norms that multiply by 1 + weight. Refuses gains of 0 of which this cannot be found out."""
    if not isinstance(model, torch.nn.Module):
        return set()
    gains = {id(p): (t["name"], p) for t, p in pairs
             if p.dim() == 1 and plan.entries[t["parts"][0]["entry"]]["init_mean"]["value"] != 0}
    adds: Dict[int, bool] = {}
    for module in model.modules():
        own = {id(p): p for p in module._parameters.values() if p is not None}
        of_it = gains.keys() & own.keys()
        inner = (p for child in module.children() for p in child.parameters())
        if of_it and all(p.dim() == 1 for p in own.values()) and next(inner, None) is None:
            found = _adds_one(module, of_it)
            adds.update({} if found is None else dict.fromkeys(of_it, found))
    fail(f"{name}: all 0, and its module does not show whether it multiplies by weight or by 1 + weight (hint: "
         f"keep=[{name!r}] leaves it as you set it; if it multiplies by weight, fill it with 1 first)"
         for key, (name, p) in gains.items() if key not in adds and not bool(whole_tensor(p.detach()).any()))
    return {key for key, found in adds.items() if found}
