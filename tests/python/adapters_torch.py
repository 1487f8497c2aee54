#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Models and optimizers as other programs leave them: wrapped, checkpointed, sharded, on the meta device, with a scheduler.

    adapters_torch.py PLAN_PROGRAM SOURCE_FOLDER

new_torch.py has what PyTorch 1.13 lacks.
"""

import copy
import functools
import itertools
import json
import math
import pathlib
import re
import sys
import tempfile
import unittest
import unittest.mock
import warnings

import torch_support
from torch_support import message_of, records_of, scalewise, settings, torch

from small_gpt import SmallGpt
from torch import nn
from torch.nn import functional as F
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.checkpoint import checkpoint

WIDTH, DEPTH, VOCAB, CONTEXT = 32, 2, 64, 16


def plan_of(*arguments, names="nanogpt"):
    sizes = settings(d_model=WIDTH, d_ff=4 * WIDTH, heads=2, depth=DEPTH, vocab=VOCAB, context=CONTEXT, tied_head="false")
    return torch_support.plan_of("--rule", "gpt2", "--preset", "gpt2", *sizes, *arguments, "--names", names)


PLAIN = plan_of()
BATCH = torch.arange(4 * (CONTEXT + 1)).reshape(4, -1).remainder(VOCAB - 3)


def model_of(plan=PLAIN):
    model = SmallGpt(plan.multipliers(), VOCAB, CONTEXT, WIDTH, 2)
    scalewise.apply(model, plan, seed=1)
    return model


def loss_of(model, batch=BATCH):
    return F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())


def adamw(model, plan=PLAIN):
    return torch.optim.AdamW(scalewise.param_groups(model, plan, lr=0.01))


def train(model, optimizer, steps=3):
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(model).backward()
        optimizer.step()
    model(BATCH[:, :-1])


@functools.cache
def plain_records():
    model = model_of()
    optimizer = adamw(model)
    recorder = scalewise.Recorder(model, PLAIN, optimizer)
    train(model, optimizer)
    return records_of(recorder)


class Wrapped(nn.Module):
    def __init__(self, module, name="module"):
        super().__init__()
        self.add_module(name, module)
        self._name = name

    def forward(self, *arguments):
        return self._modules[self._name](*arguments)


class Names(unittest.TestCase):
    def every_function(self, model):
        scalewise.apply(model, PLAIN, seed=1)
        optimizer = torch.optim.AdamW(scalewise.param_groups(model, PLAIN, lr=0.01))
        scalewise.check_optimizer(optimizer, model, PLAIN, lr=0.01)
        recorder = scalewise.Recorder(model, PLAIN, optimizer)
        train(model, optimizer)
        self.assertEqual(records_of(recorder), plain_records())
        self.assertEqual(recorder.unchecked, [])

    def test_segments_of_wrappers_anywhere(self):
        """As DistributedDataParallel, torch.compile, checkpoint_wrapper and FullyShardedDataParallel put them into names."""
        segments = ("module", "_orig_mod", "_checkpoint_wrapped_module", "_fsdp_wrapped_module")
        for segment in segments:
            model = model_of()
            blocks = model.transformer.h
            blocks[0] = Wrapped(blocks[0], segment)
            blocks[1].mlp = Wrapped(Wrapped(blocks[1].mlp, segment), "module")
            with self.subTest(segment=segment):
                self.assertIn(f"transformer.h.0.{segment}.ln_1.weight", dict(model.named_parameters()))
                self.every_function(model)
                self.every_function(Wrapped(Wrapped(model, segment)))

    def test_names_of_another_release(self):
        """transformers 5 calls GPT-NeoX's head lm_head (conversion_mapping.py, c0ce2e4); files have embed_out."""
        plan = torch_support.plan_of("--rule", "gpt2", "--preset", "pythia-70m", "--names", "gpt-neox",
                                     *settings(d_model=64, d_ff=256, heads=4, depth=2, vocab=256, context=32))
        for head in ("embed_out.weight", "lm_head.weight"):
            tensors = {head if t["name"] == "embed_out.weight" else t["name"]: nn.Parameter(torch.zeros(t["shape"]))
                       for t in plan.tensors}
            with self.subTest(head=head):
                scalewise.apply(tensors, plan)
                self.assertTrue(bool(tensors[head].detach().any()))
        tensors["embed_out.weight"] = nn.Parameter(torch.zeros(tensors["lm_head.weight"].shape))
        with self.assertRaisesRegex(ValueError, "the same tensor of the plan as"):
            scalewise.apply(tensors, plan)

    def test_layers_share_a_line(self):
        deep = plan_of("--set", "depth=12")
        tensors = {t["name"]: torch.zeros(t["shape"]) for t in deep.tensors}
        wrong = {name: tensor[:-1] if name.endswith("mlp.c_fc.weight") else tensor for name, tensor in tensors.items()
                 if not name.endswith("h.7.ln_1.weight") and not name.endswith("h.9.ln_1.weight")}
        message = message_of(scalewise.apply, wrong, deep)
        self.assertEqual(message.splitlines(), [
            "transformer.h.*.ln_1.weight (2 tensors, * = 7, 9): missing in the model",
            "transformer.h.*.mlp.c_fc.weight (12 tensors): [127, 32]: expected [128, 32]"])

    def test_a_prefix_of_all_names(self):
        for prefix in ("model", "net", "model.0.gpt"):
            model = model_of()
            for name in reversed(prefix.split(".")):
                model = Wrapped(model, name)
            with self.subTest(prefix=prefix):
                self.every_function(model)

    def test_one_name_is_not_taken_for_another(self):
        named = dict(model_of().named_parameters())
        named["transformer.module.wte.weight"] = nn.Parameter(torch.zeros(VOCAB, WIDTH))
        message = message_of(scalewise.apply, named, PLAIN)
        self.assertEqual(message, "transformer.module.wte.weight: the same name as transformer.wte.weight, "
                         "without wrappers")
        named["transformer.module.wte.weight"] = named["transformer.wte.weight"]  # the same parameter
        scalewise.apply(named, PLAIN)

    def test_a_part_of_the_model_is_named(self):
        model = nn.ModuleDict({"net": model_of(), "loss": nn.Linear(2, 2)})
        message = message_of(scalewise.apply, model, PLAIN)
        self.assertEqual(message.splitlines()[0], "net has tensors of the plan: expected this part of the "
                         "model alone")

    def test_tensors_without_a_plan_are_left_alone_and_named(self):
        """As the transform of BERT's masked head, where the dialect knows it."""
        data = {"schema": "scalewise.named_plan/1", "plan": PLAIN.plan, "dialect": "own", "prefix": "transformer.", "aliases": [],
                "tensors": PLAIN.tensors, "ignored": [], "unplanned": ["transformer.extra.{}.weight"]}
        plan = scalewise.Plan(data)
        model = model_of()
        model.transformer.extra = nn.ModuleList([nn.Linear(3, 3, bias=False)])
        before = model.transformer.extra[0].weight.detach().clone()
        with self.assertWarnsRegex(UserWarning, r"in no plan: transformer\.extra\.0\.weight: apply leaves them as they are"):
            scalewise.apply(model, plan)
        self.assertTrue(torch.equal(model.transformer.extra[0].weight, before))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            groups = scalewise.param_groups(model, plan, lr=0.1)
            scalewise.check_optimizer(torch.optim.AdamW(groups), model, plan, lr=0.1)
            scalewise.check_optimizer(torch.optim.AdamW([*groups, {"params": [model.transformer.extra[0].weight]}]), model, plan)
        with self.assertRaisesRegex(ValueError, "extra.0.weight: not in the plan"):
            scalewise.apply(model, PLAIN)

    def test_situations_are_named(self):
        state = model_of().state_dict()
        query = "transformer.h.0.attn.c_attn"
        for names, words in (
                # PEFT's names, of huggingface/peft
                ([f"base_model.model.{query}.base_layer.weight", f"base_model.model.{query}.lora_A.default.weight"],
                 "the model has adapters (LoRA)"),
                ([f"{query}.qweight", f"{query}.qzeros", f"{query}.scales"], "the model is quantized"),
                ([f"{query}.weight", f"{query}.weight_scale_inv"], "the model is quantized"),
                ([f"{query}.parametrizations.weight.original0", f"{query}.parametrizations.weight.original1"],
                 "the layer has a parametrization: a plan is for weights that are trained themselves"),
                (["_fsdp_wrapped_module._flat_param"], "FSDP has made one flat parameter of many"),
                (["_fsdp_wrapped_module.flat_param"], "FSDP has made one flat parameter of many")):
            given = {**{name: value for name, value in state.items() if query not in name},
                     **{name: torch.zeros(3) for name in names}}
            with self.subTest(names=names), self.assertRaises(ValueError) as caught:
                scalewise.apply(given, PLAIN)
            self.assertIn(words, str(caught.exception).splitlines()[0])
        cut = {f"_fsdp_wrapped_module.{name}": nn.Parameter(value.flatten()[:7]) for name, value in state.items()}
        with self.assertRaisesRegex(ValueError, r"\A_fsdp_wrapped_module\.transformer\.wte\.weight: FSDP has cut it: apply"):
            scalewise.apply(cut, PLAIN)
        groups = scalewise.param_groups(cut, PLAIN, lr=0.1)  # which need the names alone
        scalewise.check_optimizer(torch.optim.AdamW(groups), cut, PLAIN, lr=0.1)
        bare = {name: nn.Parameter(value.flatten()[:7]) for name, value in state.items()}
        with self.assertRaisesRegex(ValueError, r"\[7\]: expected \[64, 32\]"):
            scalewise.param_groups(bare, PLAIN, lr=0.1)


class Memory(unittest.TestCase):
    def test_the_meta_device_has_none(self):
        model = model_of()
        optimizer = adamw(model)
        model.to("meta")
        meta = dict(model.named_parameters())
        for call in (lambda: scalewise.apply(meta, PLAIN), lambda: scalewise.Recorder(model, PLAIN, optimizer)):
            message = message_of(call)
            self.assertRegex(message, r"\Atransformer\.wte\.weight and 2\d more on the meta device: has no "
                             r"memory: call model\.to_empty\(device=\.\.\.\) first, tie again what is tied, then apply\Z")
        groups = scalewise.param_groups(meta, PLAIN, lr=0.1)  # which need none
        scalewise.check_optimizer(torch.optim.AdamW(groups), meta, PLAIN, lr=0.1)

    def test_draws_do_not_depend_on_the_defaults(self):
        expected = model_of().state_dict()
        rules = plan_of("--rule", "bert"), plan_of("--rule", "pytorch")  # cut normals, and uniform
        before = [scalewise._draw(next(iter(plan.entries.values())), 0.5, 3) for plan in rules]
        torch.set_default_dtype(torch.float64)
        try:
            model = SmallGpt(PLAIN.multipliers(), VOCAB, CONTEXT, WIDTH, 2).float()
            scalewise.apply(model, PLAIN, seed=1)
            after = [scalewise._draw(next(iter(plan.entries.values())), 0.5, 3) for plan in rules]
        finally:
            torch.set_default_dtype(torch.float32)
        for name, value in model.state_dict().items():
            self.assertTrue(torch.equal(value, expected[name]), name)
        for old, new in zip(before, after):
            self.assertTrue(torch.equal(old, new) and new.dtype == torch.float32)

    def test_nothing_is_written_where_something_does_not_fit(self):
        for kind, words in ((torch.int64, "int64: expected floating-point numbers"),
                            (torch.complex64, "complex64: expected floating-point numbers")):
            state = {name: value.clone() for name, value in model_of().state_dict().items()}
            state["lm_head.weight"] = state["lm_head.weight"].to(kind)
            before = {name: value.clone() for name, value in state.items()}
            message = message_of(scalewise.apply, state, PLAIN, seed=2)
            self.assertEqual(message, f"lm_head.weight: {words}")
            self.assertTrue(all(torch.equal(value, before[name]) for name, value in state.items()))
        state["lm_head.weight"] = torch.zeros(1).expand(model_of().state_dict()["lm_head.weight"].shape)
        with self.assertRaisesRegex(ValueError, r"\Alm_head\.weight: an expanded tensor"):
            scalewise.apply(state, PLAIN, seed=2)
        plan = plan_of()
        plan.entries["head"]["init_variance"]["value"] = 1e10
        state = {name: value.half() for name, value in model_of().state_dict().items()}
        with self.assertRaisesRegex(ValueError, r"\Alm_head\.weight: mean 0, standard deviation 100000: beyond float16\Z"):
            scalewise.apply(state, plan)
        plan.entries["final_norm_gain"]["init_mean"]["value"] = 1 << 70  # a whole number in JSON
        model = model_of(plan)
        self.assertEqual(model.transformer.ln_f.weight[0].item(), 2.0 ** 70)
        for seed in (-1, 1.5, "1", None):
            with self.assertRaisesRegex(ValueError, "seed = .*: expected a whole number from 0"):
                scalewise.apply(model_of(), PLAIN, seed=seed)

    def test_real_shapes_of_vision_transformers(self):
        """transformers' ViT has cls_token [1, 1, n], positions [1, t, n] and patches [n, 3, p, p] (modeling_vit.py), timm too;
        a plan may have these shapes or [n], [t, n] and [n, 3pp], as older ones do."""
        sizes = settings(d_model=16, heads=2, d_ff=32, depth=1, patch_dim=48, context=5, classes=3)
        data = json.loads(torch_support.plan_output("--rule", "standard", "--preset", "vit-b16", *sizes, "--names", "timm-vit",
                                                    "--format", "json"))
        shapes = {"cls_token": ([16], [1, 1, 16]), "pos_embed": ([5, 16], [1, 5, 16]),
                  "patch_embed.proj.weight": ([16, 48], [16, 3, 4, 4])}
        drawn = []
        for of_plan, of_model in itertools.product((0, 1), (0, 1)):
            changed = copy.deepcopy(data)
            for tensor in changed["tensors"]:
                tensor["shape"] = shapes.get(tensor["name"], [tensor["shape"]] * 2)[of_plan]
            plan = scalewise.Plan(changed)
            model = {t["name"]: torch.full(shapes.get(t["name"], [t["shape"]] * 2)[of_model], math.nan) for t in plan.tensors}
            scalewise.apply(model, plan, seed=4)
            drawn.append({name: value.flatten() for name, value in model.items()})
            self.assertTrue(all(torch.equal(value, drawn[0][name]) and value.isfinite().all()
                                for name, value in drawn[-1].items()))
        for name, wrong in (("cls_token", [16, 2]), ("patch_embed.proj.weight", [3, 16, 4, 4]), ("pos_embed", [1, 16, 5])):
            with self.assertRaisesRegex(ValueError, f"{name}: \\[{', '.join(map(str, wrong))}\\]: expected"):
                scalewise.apply({**model, name: torch.zeros(wrong)}, plan)


class Shard:
    """torch.distributed.tensor.placement_types.Shard (pytorch 00d032e7), as far as it is used here."""

    def __init__(self, dim):
        self.dim = dim

    def is_shard(self):
        return True


class Replicate:
    def is_shard(self):
        return False


class Partial(Replicate):
    pass


class Mesh:
    """DeviceMesh: the sizes of its dimensions, and where this process is."""

    def __init__(self, sizes, coordinate):
        self.sizes, self.coordinate = sizes, coordinate

    def size(self, dim):
        return self.sizes[dim]

    def get_coordinate(self):
        return self.coordinate


class DTensor(torch.Tensor):
    """A DTensor's public names: its own shape is that of the whole, to_local() has what is here."""

    @staticmethod
    def make(shape, mesh, placements):
        tensor = torch.Tensor._make_subclass(DTensor, torch.full(shape, math.nan))
        tensor.device_mesh, tensor.placements = mesh, placements
        local = torch.full(shape, math.nan)
        for dim, placement in enumerate(placements):
            if placement.is_shard():  # as Shard._split_tensor: torch.chunk, and nothing for those who come too late
                pieces = list(local.chunk(mesh.size(dim), placement.dim))
                pieces += [local.narrow(placement.dim, 0, 0)] * (mesh.size(dim) - len(pieces))
                local = pieces[mesh.coordinate[dim]]
        tensor.local = local.clone()
        return tensor

    def to_local(self):
        return self.local

    def copy_(self, other):
        raise RuntimeError("aten.copy_.default: got mixed torch.Tensor and DTensor")  # what DTensor says


class Sharded(unittest.TestCase):
    def test_each_process_keeps_its_part_of_the_same_numbers(self):
        whole = model_of().state_dict()
        # fully_shard cuts the first axis; with tensor parallelism the second as well; 5 processes leave uneven parts.
        for sizes, placements in (((4,), [Shard(0)]), ((5,), [Shard(0)]), ((2, 2), [Replicate(), Shard(0)]),
                                  ((2, 3), [Shard(0), Shard(0)]), ((40,), [Shard(0)])):
            for coordinate in itertools.product(*map(range, sizes)):
                mesh = Mesh(sizes, list(coordinate))
                state = {name: DTensor.make(value.shape, mesh, placements) for name, value in whole.items()}
                scalewise.apply(state, PLAIN, seed=1)
                for name, tensor in state.items():
                    expected = DTensor.make(tensor.shape, mesh, placements)
                    part = whole[name]
                    for dim, placement in enumerate(placements):
                        if placement.is_shard():
                            pieces = part.chunk(sizes[dim], 0)
                            part = pieces[coordinate[dim]] if coordinate[dim] < len(pieces) else part[:0]
                    self.assertEqual(part.shape, expected.local.shape)
                    self.assertTrue(torch.equal(tensor.local, part), (name, sizes, coordinate))
        outside = {name: DTensor.make(value.shape, Mesh((2,), [0]), [Shard(0)]) for name, value in whole.items()}
        for tensor in outside.values():
            tensor.device_mesh = Mesh((2,), None)  # a process that has no part
        scalewise.apply(outside, PLAIN, seed=1)

    def test_other_placements_are_refused(self):
        class _StridedShard(Shard):
            """Of tensor parallelism under FSDP, whose pieces are in another order."""

        whole = model_of().state_dict()
        for placement, words in ((_StridedShard(0), "a DTensor of _StridedShard"), (Partial(), "a DTensor of Partial")):
            state = {name: DTensor.make(value.shape, Mesh((2,), [0]), [placement]) for name, value in whole.items()}
            message = message_of(scalewise.apply, state, PLAIN)
            rows = {re.sub(r"\.\d+\.", ".*.", name) for name in whole}  # layers share a line
            self.assertEqual(len(message.splitlines()), len(rows))
            self.assertIn(f"lm_head.weight: {words}: expected Shard or Replicate (hint: apply the plan before",
                          message)
        state["lm_head.weight"].placements = [Shard(0)]
        state["lm_head.weight"].local = torch.zeros(5, WIDTH)
        with self.assertRaisesRegex(ValueError, r"lm_head.weight: \[5, 32\] of it are here: expected \[32, 32\]"):
            scalewise.apply(state, PLAIN)


class Steps(unittest.TestCase):
    def test_schedulers_before_and_after_the_recorder(self):
        for order in ("before", "after", "both"):
            model = model_of()
            optimizer = adamw(model)
            schedulers = [LambdaLR(optimizer, lambda step: 1.0)] if order != "after" else []
            recorder = scalewise.Recorder(model, PLAIN, optimizer)
            if order != "before":
                schedulers.append(LambdaLR(optimizer, lambda step: 1.0))
            with self.subTest(order=order), warnings.catch_warnings():
                warnings.simplefilter("error")  # a scheduler warns where it believes that step() is overridden or missing
                for _ in range(3):
                    optimizer.zero_grad()
                    loss_of(model).backward()
                    optimizer.step()
                    for scheduler in schedulers:
                        scheduler.step()
                model(BATCH[:, :-1])
                self.assertEqual(records_of(recorder), plain_records())
                before = dict(recorder._records)
                train(model, optimizer)
                schedulers[-1].step()
                self.assertEqual(recorder._records, before)
            self.assertEqual("step" in vars(optimizer), True)  # the scheduler's
        optimizer = adamw(model)
        recorder = scalewise.Recorder(model, PLAIN, optimizer)
        records_of(recorder)
        self.assertNotIn("step", vars(optimizer))

    def test_closures_record_the_gradients_of_their_step(self):
        for by_name in (False, True):
            model = model_of()
            optimizer = adamw(model)
            recorder = scalewise.Recorder(model, PLAIN, optimizer)

            def closure():
                optimizer.zero_grad()
                loss = loss_of(model)
                loss.backward()
                return loss

            losses = [optimizer.step(closure=closure) if by_name else optimizer.step(closure) for _ in range(3)]
            model(BATCH[:, :-1])
            self.assertEqual(records_of(recorder), plain_records())
            self.assertTrue(all(torch.is_tensor(loss) for loss in losses))

    def test_passes_that_are_not_trained_do_not_count(self):
        """Evaluation before, between and after the steps, gradient accumulation, and a second pass in a step."""
        other = (BATCH + 1).remainder(VOCAB)
        model = model_of()
        optimizer = adamw(model)
        recorder = scalewise.Recorder(model, PLAIN, optimizer)

        def evaluate():
            with torch.no_grad():
                model(other[:2, :-1])
        for _ in range(3):
            evaluate()
            model(other[:, :-1])  # with gradients, but nobody asks for them
            optimizer.zero_grad()
            loss_of(model).backward()
            evaluate()
            optimizer.step()
        evaluate()
        model(BATCH[:, :-1])
        evaluate()
        self.assertEqual(records_of(recorder), plain_records())
        self.assertEqual(recorder.unchecked, [])
        # Accumulated gradients: the first part of the batch shows the activations.
        model = model_of()
        optimizer = adamw(model)
        recorder = scalewise.Recorder(model, PLAIN, optimizer)
        optimizer.zero_grad()
        for part in (BATCH[:2], BATCH[2:]):
            (loss_of(model, part) / 2).backward()
        model.transformer.h[0].register_forward_hook(lambda *_: self.assertIsNone(recorder._now))  # nothing more is seen
        model(BATCH[:, :-1])
        optimizer.step()
        records, plain = records_of(recorder), plain_records()
        self.assertEqual(records[0, "value", "logits"][2], 2 * CONTEXT * VOCAB)
        self.assertAlmostEqual(records[0, "gradient", "layer.1.mlp_up"][0], plain[0, "gradient", "layer.1.mlp_up"][0], 5)

    def test_of_several_passes_that_are_trained_the_first_counts(self):
        other = (BATCH + 1).remainder(VOCAB)

        def one_by_one(losses):  # the last is the first to be differentiated
            for loss in losses[::-1]:
                loss.backward()

        for differentiate in (lambda losses: sum(losses).backward(), one_by_one):
            model = model_of()
            optimizer = adamw(model)
            recorder = scalewise.Recorder(model, PLAIN, optimizer)
            for _ in range(3):
                model(other[:, :-1])  # with gradients, but nobody asks for them
                optimizer.zero_grad()
                differentiate([loss_of(model), loss_of(model, other[:2])])
                self.assertEqual(recorder.unchecked, [])
                optimizer.step()
            model(BATCH[:, :-1])
            records, plain = records_of(recorder), plain_records()
            self.assertEqual(recorder.unchecked, [])
            self.assertEqual(records.keys(), plain.keys())
            for key in plain:
                if key[:2] == (0, "value") or key == (0, "gradient", "logits"):
                    self.assertEqual(records[key], plain[key], key)

    def test_weights_of_16_bits_have_no_updates(self):
        for which in (("transformer.h.0.mlp.c_fc.weight",), None):  # or all
            model = model_of()
            for name, module in model.named_modules():
                for own, parameter in module.named_parameters(recurse=False):
                    if which is None or f"{name}.{own}" in which:
                        parameter.data = parameter.data.bfloat16()
            optimizer = adamw(model)
            recorder = scalewise.Recorder(model, PLAIN, optimizer)
            for _, parameter in model.named_parameters():
                parameter.grad = torch.ones_like(parameter)
            optimizer.step()
            updates = {name for _, signal, name in records_of(recorder) if signal == "update"}
            self.assertEqual("layer.1.mlp_down" in updates, which is not None)
            self.assertNotIn("layer.0.mlp_up", updates)
            note, = (line for line in recorder.unchecked if "16 bits" in line)
            self.assertRegex(note, "^(transformer.h.0.mlp.c_fc.weight|.* and [0-9]+ more): updates are not recorded, as weights of 16 bits "
                                   "round them$")

    def test_another_batch_is_said(self):
        model = model_of()
        optimizer = adamw(model)
        recorder = scalewise.Recorder(model, PLAIN, optimizer)
        for step in range(2):
            optimizer.zero_grad()
            loss_of(model, (BATCH + step).remainder(VOCAB)).backward()
            optimizer.step()
        self.assertEqual(recorder.unchecked, ["step 1: another batch than at step 0, so that changes of activations mean "
                                              "nothing"])
        self.assertFalse(any(signal == "change" for _, signal, _ in records_of(recorder)))

    def test_a_loss_scaler_that_skips_a_step(self):
        """As GradScaler, which on CPUs does nothing: step() is not called where a gradient is not finite."""
        model = model_of()
        optimizer = adamw(model)
        recorder = scalewise.Recorder(model, PLAIN, optimizer)
        for step in range(3):
            for scale in (math.inf, 1.0) if step == 1 else (1.0,):
                optimizer.zero_grad()
                (loss_of(model) * scale).backward()
                if scale == 1:
                    optimizer.step()
        model(BATCH[:, :-1])
        records, plain = records_of(recorder), plain_records()
        for key in plain:
            if key != (1, "gradient", "logits"):
                self.assertEqual(records[key], plain[key], key)

    def test_a_run_without_steps_or_passes_warns(self):
        model = model_of()
        for other_model, other_optimizer, words in (
                (False, True, "updates: step() of the optimizer that Recorder was given was not called"),
                (True, False, "activations: no forward pass of the model that Recorder was given ran before the first step")):
            optimizer = adamw(model)
            recorder = scalewise.Recorder(copy.deepcopy(model) if other_model else model, PLAIN, optimizer)
            train(model, adamw(model) if other_optimizer else optimizer)
            with unittest.mock.patch("scalewise_record._append_line"), self.assertWarns(UserWarning) as caught:
                recorder.save("run.jsonl")
            self.assertIn("run.jsonl: not everything was observed: ", str(caught.warning))
            self.assertIn(words, str(caught.warning))

    def test_the_stream_after_a_layer_is_what_the_next_norm_reads(self):
        def post_norm(block, x):
            x = block.ln_1(x + block.attn(x))
            return block.ln_2(x + block.mlp(x))

        for forward, streams in ((None, {0, 1}), (post_norm, {1})):  # what its last norm reads is the stream too
            model, outputs = model_of(), {}
            for layer, block in enumerate(model.transformer.h):
                if forward:
                    block.forward = functools.partial(forward, block)
                block.register_forward_hook(lambda _, inputs, output, layer=layer: outputs.setdefault(layer, []).append(output.detach()))
            optimizer = adamw(model)
            recorder = scalewise.Recorder(model, PLAIN, optimizer)
            train(model, optimizer)
            records = records_of(recorder)
            self.assertEqual({name for _, signal, name in records if signal == "value" and name.endswith("stream")},
                             {f"layer.{layer}.mlp.stream" for layer in streams})
            for layer in streams:
                self.assertEqual(records[0, "value", f"layer.{layer}.mlp.stream"][2], outputs[layer][0].numel())
                self.assertAlmostEqual(records[0, "value", f"layer.{layer}.mlp.stream"][1],
                                       float(outputs[layer][0].double().square().sum()), places=6)

    def test_an_activation_that_no_module_shows_is_given(self):
        model = model_of()
        optimizer = adamw(model)
        recorder = scalewise.Recorder(model, PLAIN, optimizer)
        attention = model.transformer.h[0].attn
        attention.c_attn.register_forward_hook(
            lambda _, inputs, output: recorder.activation("layer.0.attention.scores", output[..., :2]))
        train(model, optimizer)
        self.assertEqual([records_of(recorder).get((step, "value", "layer.0.attention.scores"), [0, 0, 0])[2] for step in range(4)],
                         4 * [2 * 4 * CONTEXT])
        self.assertEqual(message_of(lambda: recorder.activation("layer.0.attention.scores", None)),
                         "layer.0.attention.scores = None: expected a tensor")
        self.assertEqual(recorder.unchecked, [])
        recorder.activation("layer.1.attention.scores", model(BATCH[:, :-1]))  # too late
        self.assertIn("layer.1.attention.scores: not recorded, as activation() was not called within the forward pass of step 0",
                      recorder.unchecked)

    def test_initial_values_are_those_of_the_first_step(self):
        model = model_of()
        optimizer = adamw(model)
        recorder = scalewise.Recorder(model, PLAIN, optimizer)
        with torch.no_grad():
            model.lm_head.weight.fill_(1.0)
        train(model, optimizer)
        self.assertEqual(records_of(recorder)[0, "parameter", "head"], [VOCAB * WIDTH, VOCAB * WIDTH, VOCAB * WIDTH])

    def test_tensors_that_no_step_changes_are_said(self):
        model = model_of()
        model.transformer.h[0].attn.c_proj.weight.requires_grad_(False)
        optimizer = torch.optim.AdamW([p for name, p in model.named_parameters() if name != "transformer.h.1.mlp.c_fc.weight"])
        recorder = scalewise.Recorder(model, PLAIN, optimizer)
        train(model, optimizer)
        self.assertEqual(recorder.unchecked, [
            "transformer.h.0.attn.c_proj.weight, transformer.h.1.mlp.c_fc.weight: no step changed them (frozen, in no optimizer, "
            "or with gradients of zero)"])
        for wrong, text in ((None, "None"), ([], "[]"), ([None], "[None]")):
            self.assertEqual(message_of(lambda wrong=wrong: scalewise.Recorder(model, PLAIN, wrong)),
                             f"optimizer = {text}: expected an optimizer, or those that step in turn")

    def test_tensors_that_change_between_steps_are_said(self):
        for changed in (None, "transformer.h.1.mlp.c_fc.weight"):
            model = model_of()
            optimizer = adamw(model)
            recorder = scalewise.Recorder(model, PLAIN, optimizer)
            for _ in range(3):
                train(model, optimizer, steps=1)
                if changed:
                    with torch.no_grad():
                        model.get_parameter(changed).clamp_(-0.01, 0.01)
            self.assertEqual(recorder.unchecked, [
                f"{changed}: changed between steps, which updates do not show (an average, clamping, another initialization "
                "or optimizer)"] if changed else [])

    def test_a_loss_is_no_logits(self):
        class WithLoss(nn.Module):
            def __init__(self, one):
                super().__init__()
                self.model, self.one = model_of(), one

            def forward(self, batch):
                logits = self.model(batch[:, :-1])
                loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
                return loss if self.one else (loss, logits)

        for one in (False, True):
            model = WithLoss(one)
            optimizer = adamw(model)
            recorder = scalewise.Recorder(model, PLAIN, optimizer)
            if one:
                self.assertIn("the model's output has no logits", message_of(lambda: model(BATCH)))  # pylint: disable=cell-var-from-loop
                continue
            for _ in range(3):
                optimizer.zero_grad()
                model(BATCH)[0].backward()
                optimizer.step()
            model(BATCH)
            self.assertEqual(records_of(recorder), plain_records())

    def test_records_carry_the_fingerprint_of_the_plan(self):
        model = model_of()
        optimizer = adamw(model)
        recorder = scalewise.Recorder(model, PLAIN, optimizer)
        train(model, optimizer)
        with unittest.mock.patch("scalewise_record._append_line") as append:
            recorder.save("x")
        line = json.loads(append.call_args[0][1])
        self.assertEqual(list(line), ["schema", "inputs", "size", "seed", "plan", "records", "sum"])
        self.assertEqual(line["plan"], PLAIN.fingerprint())


class CheckpointedBlock(nn.Module):
    def __init__(self, block, reentrant):
        super().__init__()
        self._checkpoint_wrapped_module, self.reentrant = block, reentrant

    def forward(self, x):
        return checkpoint(self._checkpoint_wrapped_module, x, use_reentrant=self.reentrant)


class Checkpoints(unittest.TestCase):
    def test_recomputed_passes_count_once(self):
        for reentrant in (True, False):
            model = model_of()
            for i, block in enumerate(model.transformer.h):
                model.transformer.h[i] = CheckpointedBlock(block, reentrant)
            optimizer = adamw(model)
            recorder = scalewise.Recorder(model, PLAIN, optimizer)
            calls = []
            model.transformer.h[0]._checkpoint_wrapped_module.mlp.c_proj.register_forward_hook(
                lambda *_: calls.append(torch.is_grad_enabled()))
            train(model, optimizer)
            with self.subTest(reentrant=reentrant):
                self.assertGreater(len(calls), 4)  # 4 passes, 3 of them twice
                self.assertEqual(records_of(recorder), plain_records())
                why = "the forward pass keeps no gradients" if reentrant else "inside activation checkpointing: switch it off to check"
                self.assertEqual(recorder.unchecked, [f"layer.{i}.query, key, value: {why}" for i in range(DEPTH)])

    def test_a_module_that_runs_twice_is_named(self):
        model = model_of()
        block = model.transformer.h[1]
        mlp = block.mlp

        class Twice(nn.Module):
            def __init__(self):
                super().__init__()
                self.module = mlp

            def forward(self, x):
                return (self.module(x) + self.module(x)) / 2

        block.mlp = Twice()
        optimizer = adamw(model)
        recorder = scalewise.Recorder(model, PLAIN, optimizer)
        train(model, optimizer)
        self.assertEqual(recorder.unchecked, [
            f"layer.1.mlp.{name}: its module ran twice in one forward pass, of which the first is recorded"
            for name in ("hidden", "output")])


class Taken(nn.Module):
    """The first of what a module returns."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        return self.module(x)[0]


class Encoder(nn.Module):
    """torch.nn's own encoder."""

    def __init__(self, norm_first):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCAB, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 2, 4 * WIDTH, dropout=0.0, norm_first=norm_first, batch_first=True)
        self.blocks = nn.TransformerEncoder(layer, DEPTH, nn.LayerNorm(WIDTH))
        self.head = nn.Linear(WIDTH, VOCAB, bias=False)

    def forward(self, tokens):
        return self.head(self.blocks(self.tokens(tokens) + self.positions.weight))


class NotCalled(unittest.TestCase):
    def test_layers_that_return_tuples(self):
        """As Megatron-LM's linear layers, which return a tensor and a bias."""
        class WithBias(nn.Linear):
            def forward(self, x):
                return super().forward(x), None

        model = model_of()
        for block in model.transformer.h:
            for holder in (block.attn, block.mlp):
                linear = holder.c_proj
                holder.c_proj = Taken(WithBias(linear.in_features, linear.out_features))
                holder.c_proj.module.load_state_dict(linear.state_dict())
        optimizer = adamw(model)
        recorder = scalewise.Recorder(model, PLAIN, optimizer)
        train(model, optimizer)
        self.assertEqual(recorder.unchecked, [])
        self.assertEqual(records_of(recorder), plain_records())

    def test_layers_whose_module_never_runs_are_listed(self):
        plan = plan_of("--set", "final_norm=true", names=str(self.dialect()))
        for norm_first in (True, False):
            model = Encoder(norm_first)
            scalewise.apply(model, plan, seed=1)
            optimizer = adamw(model, plan)
            recorder = scalewise.Recorder(model, plan, optimizer)
            loss_of(model).backward()
            before = [line for line in recorder.unchecked if "out_proj" in line]
            train(model, optimizer)
            self.assertEqual(recorder.unchecked, before)
            out = [f"blocks.layers.{i}.self_attn.out_proj" for i in range(DEPTH)]
            self.assertEqual(recorder.unchecked, [
                *(f"layer.{i}.query, key, value: {out[i]} was not called" for i in range(DEPTH)),
                *(f"layer.{i}.attention.heads, layer.{i}.attention.output: not recorded, as {out[i]} was not called with "
                  "a tensor (torch.nn.MultiheadAttention uses its out_proj without calling it)" for i in range(DEPTH))])
            # Which of them reads the stream is not known without the attention's output.
            self.assertFalse([name for _, _, name in records_of(recorder) if name.endswith("stream")])

    def dialect(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name) / "own.json"
        layer = {"norm1.weight": "attention_norm_gain", "norm1.bias": "attention_norm_bias",
                 "self_attn.in_proj_weight": "layer.{}.query layer.{}.key layer.{}.value",
                 "self_attn.in_proj_bias": "layer.{}.query_bias layer.{}.key_bias layer.{}.value_bias",
                 "self_attn.out_proj.weight": "attention_output", "self_attn.out_proj.bias": "attention_output_bias",
                 "norm2.weight": "mlp_norm_gain", "norm2.bias": "mlp_norm_bias", "linear1.weight": "mlp_up",
                 "linear1.bias": "mlp_up_bias", "linear2.weight": "mlp_down", "linear2.bias": "mlp_down_bias"}
        patterns = [[f"blocks.layers.{{}}.{name}", entry if " " in entry else "layer.{}." + entry] for name, entry in layer.items()]
        patterns += [["tokens.weight", "token_embedding"], ["positions.weight", "position_embedding"], ["head.weight", "head"],
                     ["blocks.norm.weight", "final_norm_gain"], ["blocks.norm.bias", "final_norm_bias"]]
        path.write_text(json.dumps({"schema": "scalewise.dialect/1", "id": "own", "layout": "out_in", "patterns": patterns}),
                        encoding="utf-8")
        return path


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
