# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Describes a PyTorch model of any architecture, tensor by tensor. `import scalewise` has these functions, too."""

import fnmatch
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

import torch

from scalewise_plan import PARAMETRIZED, SITUATIONS, Plan, bare_name, fail, load, shown

__all__ = ["describe", "make_plan"]

_KINDS = ("linear", "embedding", "gain", "bias", "other")


def _of_module(module: torch.nn.Module, name: str, parameter: torch.Tensor) -> Tuple[str, str]:
    """The kind and axes of a parameter, by the module that has it."""
    nn, kernel = torch.nn, "k" * (parameter.dim() - 2)
    vector = parameter.dim() == 1
    if vector and (name == "bias" or name.startswith("bias_") or name.endswith("_bias")):
        return "bias", "o"
    if vector and name != "weight":
        return "other", "o"
    if isinstance(module, (nn.Embedding, nn.EmbeddingBag)):
        return "embedding", "io"
    if isinstance(module, (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)):
        if module.groups == 1:
            return "linear", "io" + kernel
        if module.groups == module.in_channels:  # a single input for each output
            return "linear", "oi" + kernel
    if isinstance(module, (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)):
        return "linear", "oi" + kernel
    if type(module).__name__ == "Conv1D" and hasattr(module, "nf") and parameter.dim() == 2:  # of transformers
        return "linear", "io"
    if isinstance(module, (nn.RNNBase, nn.RNNCellBase, nn.MultiheadAttention)) and parameter.dim() == 2:
        return "linear", "oi"
    if vector and "norm" in type(module).__name__.lower():
        return "gain", "o"
    return "other", "i" * (parameter.dim() - 1) + "o" * min(parameter.dim(), 1)


def describe(model: torch.nn.Module, path: Union[None, str, "os.PathLike[str]"] = None,
             kinds: Optional[Mapping[str, str]] = None) -> Dict[str, Any]:
    """What `plan --model` reads of a model: the name, kind, axes and sizes of every parameter, in the order of the
    model, and which are tied. Works on the meta device, and inside DistributedDataParallel or torch.compile.

    Kinds follow from the types of modules. `kinds` says those of others, by patterns of names: "linear:eoi" for experts,
    outputs and inputs; letters are i inputs, o outputs, k positions of a kernel, e copies. "fixed" leaves out what is never
    trained. What nobody says is "other": a vector with initial values of its own, or it needs a role (`plan --role`).
    Raises: ValueError naming every parameter that is frozen, has been flattened, is quantized or has no shape yet, or
    belongs to a parametrization and has no kind in `kinds`, and patterns without one.
    """
    if not isinstance(model, torch.nn.Module):
        raise ValueError(f"model = {shown(model)}: expected a torch.nn.Module")
    tensors: List[Dict[str, Any]] = []
    first: Dict[int, str] = {}
    said = {name for name, _ in model.named_parameters() if re.search(PARAMETRIZED, name)
            and any(fnmatch.fnmatchcase(bare_name(name), pattern) for pattern in kinds or ())}
    problems = [f"{name}: {words}" for pattern, words in SITUATIONS.items()
                for name, _ in model.named_parameters() if re.search(pattern, name) and name not in said]
    unused = dict(kinds or {})
    for prefix, module in model.named_modules(remove_duplicate=False):
        for own, parameter in module._parameters.items():
            if parameter is None:
                continue
            name = bare_name(f"{prefix}.{own}" if prefix else own)
            if isinstance(parameter, torch.nn.parameter.UninitializedParameter):
                problems.append(f"{name}: no shape yet: expected a tensor (hint: run the model once, or give its layers their sizes)")
                continue
            kind, axes = _of_module(module, own, parameter)
            for pattern, text in (kinds or {}).items():
                if fnmatch.fnmatchcase(name, pattern):
                    unused.pop(pattern, None)
                    kind, _, axes = text.partition(":")
            if (kind == "fixed") == parameter.requires_grad:
                problems.append(f"{name}: trained: expected a frozen tensor, as its kind is fixed" if parameter.requires_grad else
                                f"{name}: frozen: expected a tensor that is trained (hint: describe the model before it is frozen; the "
                                "kind fixed leaves out what is never trained)")
            if kind == "fixed":
                continue
            if kind not in _KINDS or len(axes) != parameter.dim() or set(axes) - set("ioke"):
                problems.append(f"{name}: {shown(kind + ':' + axes)}: expected one of {', '.join(_KINDS)}, a colon, and one of the "
                                f"letters i, o, k, e for each of {list(parameter.shape)}")
            tensor: Dict[str, Any] = {"name": name, "kind": kind, "axes": axes, "sizes": list(parameter.shape)}
            if id(parameter) in first:
                tensor["tied_to"] = first[id(parameter)]
            first.setdefault(id(parameter), name)
            tensors.append(tensor)
    problems += [f"kinds: {shown(pattern)}: expected a pattern of names of the model's tensors" for pattern in unused]
    fail(problems)
    description = {"schema": "scalewise.model/1", "tensors": tensors}
    if path is not None:
        temporary = f"{os.fspath(path)}.{os.getpid()}.tmp"
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(description, file, indent=1)
            file.write("\n")
        os.replace(temporary, path)
    return description


def make_plan(rule: str, model: torch.nn.Module, base: torch.nn.Module, *options: str,
              kinds: Optional[Mapping[str, str]] = None) -> Plan:
    """The plan that `plan --rule` makes of a model and of the same model at the size that was tuned, both as describe() says.
    `options` are others of `plan`, such as "--fold". The program must be in PATH.
    Raises: ValueError as describe(), and with what the program says where it refuses; FileNotFoundError without it.
    """
    with tempfile.TemporaryDirectory() as folder:
        files = [pathlib.Path(folder, name) for name in ("target.json", "base.json", "plan.json")]
        for one, file in zip((model, base), files):
            describe(one, file, kinds)
        done = subprocess.run(["plan", "--rule", rule, "--model", files[0], "--base-model", files[1], "--format", "json",
                               "--save", files[2], *options], stderr=subprocess.PIPE, encoding="utf-8", check=False)
        if done.returncode != 0:
            raise ValueError(done.stderr.strip())
        sys.stderr.write(done.stderr)
        return load(files[2])
