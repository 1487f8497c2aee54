# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Stand-ins for what reads the formats of `plan`: names, shapes and marks of the tensors that the code bases have, and how
they match and group them. The first line of each names the files that it was typed from, and their revision.
"""

import collections
import fnmatch
import json
import math
import re
import subprocess
import sys


class Parameter:
    def __init__(self, *shape, **marks):
        self.shape, self.requires_grad = shape, True
        for mark, value in marks.items():
            setattr(self, mark, value)

    def dim(self):
        return len(self.shape)


class Model:
    def __init__(self, parameters):
        self.table = dict(parameters)

    def named_parameters(self):
        return list(self.table.items())

    def named(self, rename):
        return Model({rename(name): parameter for name, parameter in self.table.items()})


def in_blocks(segment):
    """A wrapper around every block: after the number of each layer."""
    return lambda name: re.sub(r"((?:layers|h|sequential)\.\d+\.)", rf"\g<1>{segment}.", name, count=1)


# torchtitan b5bcd76c, distributed/{activation_checkpoint,compile}.py, and PyTorch itself, see TORCH_NAMES: what wrappers do to
# names. FSDP2 and model.compile() leave them as they are.
WRAPPERS = {
    "none": lambda name: name,
    "DDP": lambda name: f"module.{name}",
    "compile": lambda name: f"_orig_mod.{name}",
    "compile by block": in_blocks("_orig_mod"),
    "checkpoint": in_blocks("_checkpoint_wrapped_module"),
    "FSDP1": lambda name: "_fsdp_wrapped_module." + in_blocks("_fsdp_wrapped_module")(name),
    "FSDP1 of checkpoints": lambda name: "_fsdp_wrapped_module." + in_blocks(
        "_fsdp_wrapped_module._checkpoint_wrapped_module")(name),
    "DDP of a compiled model": lambda name: f"module._orig_mod.{name}",
    "Lightning": lambda name: f"model.{name}",
}

TORCH_NAMES = """
import json, sys, torch
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper

def net():
    block = lambda: torch.nn.Sequential(torch.nn.Linear(2, 2))
    return torch.nn.ModuleDict({"wte": torch.nn.Embedding(3, 2), "layers": torch.nn.ModuleList([block(), block()])})

def by_block(wrap):
    model = net()
    model["layers"] = torch.nn.ModuleList(map(wrap, model["layers"]))
    return model

models = {"none": net(), "checkpoint": by_block(checkpoint_wrapper)}
torch.distributed.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=0, world_size=1)
models["DDP"] = torch.nn.parallel.DistributedDataParallel(net())
if hasattr(torch, "compile"):
    models.update({"compile": torch.compile(net()), "compile by block": by_block(torch.compile)})
print(json.dumps({title: [name for name, _ in model.named_parameters()] for title, model in models.items()}))
"""


def torch_names(folder):
    """wrapper -> names of a small model, from PyTorch itself; nothing where there is none."""
    for python in (sys.executable, "/usr/bin/python3"):
        done = subprocess.run([python, "-c", TORCH_NAMES, f"{folder}/store"], capture_output=True, encoding="utf-8", check=False)
        if done.returncode == 0:
            return json.loads(done.stdout)
        assert "No module named" in done.stderr, done.stderr
    return {}


# ---- Megatron-LM ---------------------------------------------------------------------------------


class ParamKey:
    """Megatron-LM d98e8a64, core/optimizer/optimizer_config.py."""

    def __init__(self, name):
        self.name = name

    def matches(self, _, name):
        names = [self.name] if isinstance(self.name, str) else list(self.name)
        return any(fnmatch.fnmatch(name, pattern) for pattern in names)


def megatron_gpt(width, depth, vocab, context, transformer_engine):
    """Megatron-LM d98e8a64, core/models/gpt/gpt_layer_specs.py, core/models/common/language_module/language_module.py.

    GPTModel with learned positions, biases and an output of its own.
    """
    mark = {"is_embedding_or_output_parameter": True}
    table = {"embedding.word_embeddings.weight": Parameter(vocab, width, **mark),
             "embedding.position_embeddings.weight": Parameter(context, width),
             "decoder.final_layernorm.weight": Parameter(width), "decoder.final_layernorm.bias": Parameter(width),
             "output_layer.weight": Parameter(vocab, width, **mark)}
    norms = (("self_attention.linear_qkv.layer_norm_", "mlp.linear_fc1.layer_norm_") if transformer_engine
             else ("input_layernorm.", "pre_mlp_layernorm."))
    for layer in range(depth):
        at = f"decoder.layers.{layer}."
        for norm in norms:
            table.update({f"{at}{norm}weight": Parameter(width), f"{at}{norm}bias": Parameter(width)})
        for name, out, into in (("self_attention.linear_qkv", 3 * width, width), ("self_attention.linear_proj", width, width),
                                ("mlp.linear_fc1", 2 * width, width), ("mlp.linear_fc2", width, 2 * width)):
            table.update({f"{at}{name}.weight": Parameter(out, into), f"{at}{name}.bias": Parameter(out)})
    return Model(table)


def megatron_groups(config, chunks, overrides):
    """Megatron-LM d98e8a64, core/optimizer/{__init__,emerging_optimizers}.py, core/optimizer_param_scheduler.py.

    name -> (optimizer, rate, smallest rate, decay, epsilon); what no override matches has the configuration's.
    """
    found = {}
    for chunk in chunks:
        for name, parameter in chunk.named_parameters():
            merged = {}
            for key, override in overrides.items():
                if key.matches(parameter, name):
                    for field, value in override.items():
                        if merged.setdefault(field, value) != value:
                            raise ValueError(f"Conflicting overrides for {field}")
            excluded = (not getattr(parameter, "use_muon", True) or parameter.dim() != 2
                        or getattr(parameter, "is_embedding_or_output_parameter", False))
            optimizer = "adam" if config.optimizer == "muon" and excluded else config.optimizer
            found[name] = (optimizer, merged.get("max_lr", config.lr), merged.get("min_lr", config.min_lr),
                           config.weight_decay * merged.get("wd_mult", 1.0), merged.get("eps", config.adam_eps))
    return found


def megatron_loaded(groups):
    """Megatron-LM d98e8a64, core/optimizer/__init__.py, _get_param_groups; core/optimizer/optimizer.py, param_group_identifier_keys
    and _filter_and_reorder_param_groups: what each group of overrides is after a checkpoint of the same run is loaded."""
    def identifier(group):
        keys = ("max_lr", "min_lr", "start_wd", "end_wd", "wd_mult", "optimizer", "lr_mult", "is_expert_parallel", "is_decoupled_lr")
        return tuple({"lr_mult": 1.0, **group}.get(key) for key in keys)
    saved = {identifier(group): group for group in groups}
    return [saved[identifier(group)] for group in groups]


def megatron_logged(groups):
    """Megatron-LM d98e8a64, core/optimizer/__init__.py and core/optimizer_param_scheduler.py, get_canonical_lr_for_logging: the
    groups whose rate is logged, those without a field with "lr" in its name."""
    return [group for group in groups if not any("lr" in key for key in group)]


def megatron_muon_factor(mode, extra, rows, columns):
    """Megatron-LM d98e8a64, core/optimizer/emerging_optimizers.py."""
    return extra * {"shape_scaling": math.sqrt(max(1, rows / columns)), "spectral": math.sqrt(max(rows, columns)),
                    "unit_rms_norm": math.sqrt(rows / columns)}[mode]


# ---- torchtitan ----------------------------------------------------------------------------------

# torchtitan b5bcd76c, components/optimizer/optimizer.py
ParamGroupConfig = collections.namedtuple("ParamGroupConfig", "pattern optimizer_name optimizer_kwargs")


def titan_llama(width, keys, ffn, depth, vocab, fuse_qkv=True, fuse_w13=True):
    """torchtitan b5bcd76c, models/llama3/{__init__,model}.py, models/common/{decoder,attention}.py; since 07521c58,
    models/common/feed_forward.py, w1 and w3 are one tensor."""
    table = {"tok_embeddings.weight": Parameter(vocab, width)}
    for layer in range(depth):
        at = f"layers.{layer}."
        rows = {"wqkv": width + 2 * keys} if fuse_qkv else {"wq": width, "wk": keys, "wv": keys}
        table.update({f"{at}attention.qkv_linear.{name}.weight": Parameter(out, width) for name, out in rows.items()})
        table.update({f"{at}attention.wo.weight": Parameter(width, width),
                      f"{at}feed_forward.w2.weight": Parameter(width, ffn),
                      **({f"{at}feed_forward.w13.weight": Parameter(2 * ffn, width)} if fuse_w13 else
                         {f"{at}feed_forward.{name}.weight": Parameter(ffn, width) for name in ("w1", "w3")}),
                      f"{at}attention_norm.weight": Parameter(width), f"{at}ffn_norm.weight": Parameter(width)})
    return Model({**table, "norm.weight": Parameter(width), "lm_head.weight": Parameter(vocab, width)})


def titan_groups(model, configs):
    """torchtitan b5bcd76c, components/optimizer/optimizer.py: name -> (optimizer, arguments)."""
    found = {}
    for config in configs:
        if config.optimizer_name not in ("Adam", "AdamW", "DistMuon"):
            raise NotImplementedError(f"Optimizer {config.optimizer_name} not added.")
        pattern, matched = re.compile(config.pattern), False
        for name, parameter in model.named_parameters():
            if parameter.requires_grad and name not in found and pattern.search(name):
                found[name], matched = (config.optimizer_name, config.optimizer_kwargs), True
        if not matched:
            raise ValueError(f"Optimizer param_groups pattern '{config.pattern}' matched no parameters")
    assert set(found) == set(model.table), "Parameter mismatch"
    check_dist_muon([config.optimizer_kwargs for config in configs if config.optimizer_name == "DistMuon"])
    return found


def check_dist_muon(groups):
    """torchtitan b5bcd76c, components/optimizer/optimizer.py: fused unless a group says otherwise;
    distributed/flex_shard/dist_muon.py, _validate_groups."""
    if not groups:
        return
    if len(groups) != 1:
        raise ValueError("DistMuon requires exactly one parameter group")
    group = {"fused": True, "foreach": False, **groups[0]}
    if group["fused"] or group["foreach"]:
        raise ValueError("unsupported DistMuon group 0")


def titan_muon_factor(name, rows, columns):
    """torchtitan b5bcd76c, distributed/flex_shard/dist_muon.py."""
    return {"original": math.sqrt(max(1, rows / columns)), "match_rms_adamw": 0.2 * math.sqrt(max(rows, columns)),
            "spectral_unclamped": math.sqrt(rows / columns)}[name]


# ---- fairseq -------------------------------------------------------------------------------------


def fairseq_transformer(width, ffn, depth, vocab):
    """fairseq 3d262bb2, models/transformer/*.py: a translation model with sinusoidal positions and one table of tokens."""
    table = {"encoder.embed_tokens.weight": Parameter(vocab, width)}
    for stack in ("encoder", "decoder"):
        for layer in range(depth):
            at = f"{stack}.layers.{layer}."
            for attention in ("self_attn",) + (("encoder_attn",) if stack == "decoder" else ()):
                for matrix in ("k_proj", "v_proj", "q_proj", "out_proj"):
                    table.update({f"{at}{attention}.{matrix}.weight": Parameter(width, width),
                                  f"{at}{attention}.{matrix}.bias": Parameter(width)})
                table.update({f"{at}{attention}_layer_norm.weight": Parameter(width),
                              f"{at}{attention}_layer_norm.bias": Parameter(width)})
            for name, out, into in (("fc1", ffn, width), ("fc2", width, ffn)):
                table.update({f"{at}{name}.weight": Parameter(out, into), f"{at}{name}.bias": Parameter(out)})
            table.update({f"{at}final_layer_norm.weight": Parameter(width), f"{at}final_layer_norm.bias": Parameter(width)})
    return Model(table)


def fairseq_composite(config, parameters):
    """fairseq 3d262bb2, optim/composite.py, optim/adam.py, optim/fp16_optimizer.py.

    parameter -> (rate, decay, epsilon), as FairseqCompositeOptimizer makes one Adam for each group.
    """
    assert config["_name"] == "composite" and not config.get("dynamic_groups", False) and len(parameters) > 1
    known = {"_name", "adam_betas", "adam_eps", "weight_decay", "use_old_adam", "fp16_adam_stats", "tpu", "lr"}
    found = {}
    for parameter in parameters:
        group = config["groups"][getattr(parameter, "param_group", "default")]
        assert getattr(parameter, "optim_overrides", None) is None  # its weight_decay_scale is never applied
        assert set(group["optimizer"]) <= known and group["optimizer"]["_name"] == "adam"
        found[parameter] = (group["lr_float"], group["optimizer"].get("weight_decay", 0.0),
                            group["optimizer"].get("adam_eps", 1e-8), group["lr_scheduler"])
    return found


# ---- gpt-neox ------------------------------------------------------------------------------------


def neox_gpt(width, ffn, depth, vocab, pipeline=False, older=False):
    """gpt-neox ea7aefd8, megatron/model/{gpt2_model,transformer,word_embeddings}.py.

    GPT2ModelPipe with rotary positions and an output of its own: an embedding, a step without tensors, the layers, another
    such step, the norm, the output.
    """
    up, down = ("dense_h_to_4h", "dense_4h_to_h") if older else ("linear1", "linear2")
    head = "" if pipeline else "sequential."
    table = {f"{head}0.word_embeddings.weight": Parameter(vocab, width)}
    for layer in range(depth):
        at = f"{head}{layer + 2}."
        for norm in ("input_layernorm", "post_attention_layernorm"):
            table.update({f"{at}{norm}.weight": Parameter(width), f"{at}{norm}.bias": Parameter(width)})
        for name, out, into in (("attention.query_key_value", 3 * width, width), ("attention.dense", width, width),
                                (f"mlp.{up}", ffn, width), (f"mlp.{down}", width, ffn)):
            table.update({f"{at}{name}.weight": Parameter(out, into), f"{at}{name}.bias": Parameter(out)})
    at = f"{head}{depth + 3}.norm."
    return Model({**table, f"{at}weight": Parameter(width), f"{at}bias": Parameter(width),
                  f"{head}{depth + 4}.final_linear.weight": Parameter(vocab, width)})


class AnnealingLR:
    """gpt-neox ea7aefd8, megatron/learning_rates.py, of a constant rate."""

    def __init__(self, optimizer, start_lr, use_mup=False):
        self.optimizer, self.start_lr, self.use_mup, self.num_iters = optimizer, start_lr, use_mup, 0
        self.step(self.num_iters)

    def step(self, step_num=None):
        self.num_iters = self.num_iters + 1 if step_num is None else step_num
        for group in self.optimizer.param_groups:
            if self.use_mup and "width_mult" in group:
                group["lr"] = self.start_lr / group["width_mult"]
            else:
                group["lr"] = self.start_lr


class FusedAdam:
    """gpt-neox ea7aefd8, megatron/training.py: groups of PyTorch's, apex' or DeepSpeed's; what they lack has the default."""

    def __init__(self, groups, lr, weight_decay, eps=1e-8):
        self.param_groups = [{"lr": lr, "weight_decay": weight_decay, "eps": eps, **group} for group in groups]
