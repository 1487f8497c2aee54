# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Records the training of a PyTorch model for the coordinate check. `import scalewise` has Recorder, too."""

import collections
import contextlib
import functools
import json
import math
import os
import sys
import types
import warnings
from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple, Union

import torch
import torch.nn.utils.parametrize
import torch.utils.checkpoint

from scalewise_plan import Fnv, Plan, fail, shown, whole_number
from scalewise_tensors import gather, is_sharded, match, memory_problems, planned, stored_from_zero, whole_tensor

try:
    import fcntl
except ImportError:  # Windows: only one process at a time may append to a file
    fcntl = None  # type: ignore[assignment]

__all__ = ["Recorder"]

_SCHEMA = "scalewise.coordinates/2"


def inner_optimizer(optimizer: Any) -> Any:
    """The optimizer that Accelerate's wraps, whose own step() may do nothing."""
    while "param_groups" not in getattr(optimizer, "__dict__", {"param_groups": 0}) and hasattr(optimizer, "optimizer"):
        optimizer = optimizer.optimizer
    return optimizer


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


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


class _Pass:
    """One forward pass of the model, as the hooks saw it."""

    def __init__(self, number: int, step: int, batch: List[torch.Tensor], same_batch: bool):
        self.number, self.step, self.batch, self.same_batch = number, step, batch, same_batch
        self.grad = False  # whether the logits require a gradient
        self.gradient: List[Any] = []  # sums of theirs, once it is known
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


def _has_stepped(optimizer: Any) -> bool:
    """Whether its state says so, as after a checkpoint; that of SGD without momentum says nothing."""
    states = [state for state in getattr(optimizer, "state", {}).values() if isinstance(state, Mapping)]
    return any(state["step"] > 0 if "step" in state else state.get("momentum_buffer") is not None for state in states)


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
        self._plan, self._pairs = plan, match(model, plan)
        self._size = whole_number("size", plan.plan["shape"]["d_model"] if size is None else size, 1, 1 << 62,
                                   "from 1 to 2^62 - 1")
        self._seed = whole_number("seed", seed, 0, 1 << 64, "from 0 to 2^64 - 1")
        fail(memory_problems(self._pairs))
        self._optimizers = [inner_optimizer(one) for one in ([optimizer] if hasattr(optimizer, "step") else list(optimizer or ()))]
        if not self._optimizers or not all(hasattr(one, "step") for one in self._optimizers):
            raise ValueError(f"optimizer = {shown(optimizer)}: expected an optimizer, or those that step in turn")
        if any(map(_has_stepped, self._optimizers)):
            raise ValueError("optimizer: has taken steps: expected one before its first step, since initial values are recorded "
                             "(hint: record a run from its start, not after a checkpoint)")
        self._stepped: Set[int] = set()  # optimizers, in the step under way
        self._active, self._step = True, 0
        self._now: Optional[_Pass] = None  # the pass under way
        self._passes = 0
        self._last: Optional[_Pass] = None  # of this step, complete, and not yet recorded
        self._trained: Optional[_Pass] = None  # of this step, the first whose loss was differentiated
        self._first: Optional[_Pass] = None  # the recorded pass of step 0
        self._recorded = False  # a pass of this step
        self._expected: Dict[str, str] = {}  # activations, and the module that shows them
        self._given: Dict[str, None] = {}  # those of activation()
        self._layouts: Dict[str, Optional[str]] = {}  # by block, why its order could not be checked, or ""
        self._notes: Dict[str, None] = {}
        self._records: Dict[Tuple[int, str, str], List[Any]] = {}
        self._initial = planned(plan, keep, self._pairs)
        rounded = {t["name"]: id(p) for t, p in self._pairs if p.dtype in (torch.bfloat16, torch.float16)}
        self._rounded = set(rounded.values())  # a spacing of weights that is no small part of an update
        if rounded:
            self._notes[f"{_few(list(rounded))}: updates are not recorded, as weights of 16 bits round them"] = None
        self._from_zero = stored_from_zero(model, plan, self._initial)
        decayed = self._decayed()
        if decayed:
            line = (f"{_few(decayed)}: weight decay is part of their updates, which the check does not expect under "
                    "sgd: record with weight_decay=0")
            self._notes[line] = None
            warnings.warn(line, stacklevel=2)
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
        self._given[name] = None
        self._seen(name, value)

    def _wrap(self, optimizer: torch.optim.Optimizer) -> Tuple[torch.optim.Optimizer, Any, Any]:
        """Puts a bound method in place of step(), with the marks that a scheduler may have left on it."""
        old, take_step = vars(optimizer).get("step"), optimizer.step

        @functools.wraps(take_step)
        def step(this: torch.optim.Optimizer, *arguments: Any, **options: Any) -> Any:
            return self._record_step(optimizer, take_step, *arguments, **options)

        optimizer.step = types.MethodType(step, optimizer)  # type: ignore[method-assign]
        return optimizer, old, optimizer.step

    def _decayed(self) -> List[str]:
        """Tensors of sgd with decay, whose updates the check takes for gradients times a rate."""
        decayed = {id(p) for one in self._optimizers for group in getattr(one, "param_groups", ())
                   if group.get("weight_decay") for p in group["params"]}
        whole, entries = self._plan.plan["optimizer"], self._plan.entries
        return [t["name"] for t, p in self._pairs if id(p) in decayed
                and any(entries[part["entry"]].get("optimizer", whole) == "sgd" for part in t["parts"])]

    @property
    def unchecked(self) -> List[str]:
        """A line for each thing that was not observed up to now, or could not be found out."""
        lines = [f"{block}.query, key, value: {why}" for block, why in self._layouts.items() if why]
        first = self._first or (None if self._step else self._trained)
        if first:
            lines += [f"{block}.query, key, value: {self._expected[block + '.attention.output']} was not called"
                      for block, why in self._layouts.items() if why is None]
            missing: Dict[str, List[str]] = {}
            for name, module in self._expected.items():
                if ("value", name) not in first.records:
                    missing.setdefault(module, []).append(name)
            late = [name for name in self._given if ("value", name) not in first.records]
            if late:
                lines.append(f"{_few(late)}: not recorded, as activation() was not called within the forward pass of step 0")
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
        if any(is_sharded(parameter) for _, parameter in self._pairs):
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
                parts = [_doubles(gather(gradient, tensor, part)) for gradient in gradients]
                found[roles[part["entry"]]] = (tensor["name"], part["entry"],
                                               *(p if tensor["transposed"] else p.t() for p in parts))
        return found

    def _skip_layout(self, block: str, why: str) -> None:
        self._layouts[block] = why

    def _begin(self, _: Any, arguments: Any, options: Any = None) -> None:
        if self._recorded or self._trained:
            return
        batch = [value.detach().clone() for value in _tensors([arguments, options or {}])]
        first = self._first.batch if self._first else batch
        # The last pass may be without labels; NaN is itself.
        same = all(a.shape == b.shape and bool(((a == b) | (a != a) & (b != b)).all()) for a, b in zip(batch, first))
        self._passes += 1
        self._now = _Pass(self._passes, self._step, batch, same)

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
            logits.register_hook(lambda gradient: self._differentiated(done, gradient))
        if done.grad or self._last is None or not self._last.grad:
            self._last = done

    def _differentiated(self, done: _Pass, gradient: torch.Tensor) -> None:
        """One backward pass of the losses of several forward passes comes to the last of them first."""
        if done.step == self._step and (self._trained is None or done.number < self._trained.number):
            self._trained, done.gradient = done, _sums(gradient)

    def _record_pass(self) -> None:
        """Records a forward pass, unless there is one of this step."""
        done = self._trained or self._last
        if self._recorded or done is None or done.step != self._step:
            return
        self._recorded, self._last = True, None
        self._records.update({(done.step, *key): sums for key, sums in done.records.items()})
        if done.gradient:
            self._records[done.step, "gradient", "logits"] = done.gradient
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
            gain = whole_tensor(parameter) + 1 if id(parameter) in self._from_zero else whole_tensor(parameter)
            for part in tensor["parts"]:
                self._records[0, "parameter", part["entry"]] = _sums(gather(gain, tensor, part))
        self._initial = []

    def _unmoved(self) -> List[str]:
        """Tensors that no step has changed."""
        sizes: Dict[str, float] = collections.defaultdict(float)
        for (_, signal, name), (size, *_) in self._records.items():
            if signal == "update":
                sizes[name] += math.inf if size is None else size
        return [t["name"] for t, _ in self._pairs if t["parts"] and all(sizes.get(p["entry"]) == 0 for p in t["parts"])]

    def _record_gradients(self, optimizer: torch.optim.Optimizer, scale: Optional[torch.Tensor]) -> None:
        """Those of the optimizer's parameters, as its step has them: GradScaler divides those of each in turn."""
        self._record_pass()
        groups = getattr(optimizer, "param_groups", None)
        own = None if groups is None else {id(p) for group in groups for p in group["params"]}
        for tensor, parameter in self._pairs:
            if parameter.grad is None or own is not None and id(parameter) not in own:
                continue
            gradient = whole_tensor(parameter.grad) if scale is None else whole_tensor(parameter.grad) / scale.to(parameter.device)
            for part in tensor["parts"]:
                self._records[self._step, "gradient", part["entry"]] = _sums(gather(gradient, tensor, part))

    def _record_step(self, optimizer: torch.optim.Optimizer, take_step: Any, *arguments: Any, **options: Any) -> Any:
        skipped = getattr(optimizer, "found_inf", None)  # what GradScaler leaves to fused optimizers
        if not self._active or skipped is not None and bool(skipped):
            return take_step(*arguments, **options)
        if not self._stepped:
            if not self._values:
                self._values = [whole_tensor(parameter).detach().clone() for _, parameter in self._pairs]
            for i, (tensor, parameter) in enumerate(self._pairs):
                now = whole_tensor(parameter).detach()
                kept = self._values[i] = self._values[i].to(now)  # a model may move between devices
                if not bool(((kept == now) | (kept != kept) & (now != now)).all()):
                    self._changed[tensor["name"]] = None
                    kept.copy_(now)
            self._record_initial()
        if id(optimizer) not in self._stepped:
            closure, seen = arguments[0] if arguments else options.get("closure"), []

            def evaluate() -> Any:  # the gradients are those after the first evaluation
                loss = closure()
                if not seen:
                    seen.append(self._record_gradients(optimizer, None))
                return loss

            if closure is None:
                self._record_gradients(optimizer, getattr(optimizer, "grad_scale", None))
            elif arguments:
                arguments = (evaluate, *arguments[1:])
            else:
                options["closure"] = evaluate
        else:
            self._notes[f"step {self._step + 1}: an optimizer stepped again before the others did, so that its update is of several "
                        "steps (GradScaler left out a step, or they take turns)"] = None
        result = take_step(*arguments, **options)
        self._stepped.add(id(optimizer))
        if len(self._stepped) < len(self._optimizers):
            return result
        self._stepped.clear()
        for (tensor, parameter), kept in zip(self._pairs, self._values):
            now = whole_tensor(parameter).detach()
            added = now - kept
            kept.copy_(now)
            if id(parameter) in self._rounded:
                continue
            for part in tensor["parts"]:
                self._records[self._step + 1, "update", part["entry"]] = _sums(gather(added, tensor, part))
        self._step, self._recorded, self._last, self._trained, self._now = self._step + 1, False, None, None, None
        return result

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Appends the run to a file, as one line, and stops recording. Warns of what is in `unchecked`.

        Any process may append to the file at any time. A last line without its end, which an interrupted process
        left, is cut.
        Raises: OSError where not everything can be written, and ValueError for another kind of file; then the file has
        no part of the run, and save() can be called again.
        """
        self._record_pass()
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
