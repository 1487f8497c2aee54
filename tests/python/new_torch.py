#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""The adapter under what PyTorch has had since version 2, and models of transformers where it is installed.

    new_torch.py PLAN_PROGRAM SOURCE_FOLDER

Run with PyTorch 1.13.0a0 of Debian 12, which skips all but one of the tests. Not run yet with a newer PyTorch, nor with
transformers: put the versions here when you have. Parts that are missing are skipped with the reason.
"""

import json
import os
import pathlib
import sys
import tempfile
import traceback
import unittest
import warnings

import torch_support
from torch_support import scalewise, settings, torch

from small_gpt import SmallGpt
from torch.nn import functional as F

VERSION = tuple(int("".join(filter(str.isdigit, part)) or 0) for part in torch.__version__.split(".")[:2])
WIDTH, VOCAB, CONTEXT = 32, 64, 16
BATCH = torch.arange(4 * (CONTEXT + 1)).reshape(4, -1).remainder(VOCAB - 3)


def plan_of(*arguments, sizes=None, rule="gpt2", preset="gpt2", names="nanogpt"):
    sizes = sizes or {"d_model": WIDTH, "d_ff": 4 * WIDTH, "heads": 2, "depth": 2, "vocab": VOCAB, "context": CONTEXT,
                      "tied_head": "false"}
    return torch_support.plan_of("--rule", rule, "--preset", preset, *settings(**sizes), *arguments, "--names", names)


def bare_model(plan):
    return SmallGpt(plan.multipliers(), VOCAB, CONTEXT, WIDTH, 2)


def model_of(plan):
    model = bare_model(plan)
    scalewise.apply(model, plan, seed=1)
    return model


def loss_of(model):
    return F.cross_entropy(model(BATCH[:, :-1]).flatten(0, 1), BATCH[:, 1:].flatten())


def recorded(model, plan, steps=3):
    """The records of a few steps, and what was not checked."""
    optimizer = torch.optim.AdamW(scalewise.param_groups(model, plan, lr=0.01))
    scalewise.check_optimizer(optimizer, model, plan, lr=0.01)
    recorder = scalewise.Recorder(model, plan, optimizer)
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(model).backward()
        optimizer.step()
    model(BATCH[:, :-1])
    unchecked = recorder.unchecked
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = pathlib.Path(folder) / "records"
        recorder.save(path)
        lines = json.loads(path.read_text(encoding="utf-8"))["records"]
    return {(r["step"], r["signal"], r["name"]): (r["sum_abs"], r["sum_squares"], r["count"]) for r in lines}, unchecked


def near(records, others):
    """Sums in another order, in float: 1e-4 of themselves after three steps of AdamW, which divides by small roots."""
    if records.keys() != others.keys():
        raise AssertionError(f"other records: {sorted(records.keys() ^ others.keys())[:5]}")
    for key, (a, b, count) in records.items():
        other = others[key]
        if count != other[2] or abs(a - other[0]) > 1e-3 * abs(a) + 1e-6 or abs(b - other[1]) > 2e-3 * abs(b) + 1e-9:
            raise AssertionError(f"{key}: {records[key]} and {other}")


# ---- Several processes ---------------------------------------------------------------------------------------------


def sharded_before(plan, rank):
    """A model on the meta device, sharded, given memory, and then filled: each process has its part of the numbers."""
    from torch.distributed.fsdp import fully_shard
    with torch.device("meta"):
        model = bare_model(plan)
    for block in model.transformer.h:
        fully_shard(block)
    fully_shard(model)
    try:
        scalewise.apply(model, plan, seed=1)
        raise AssertionError("tensors without memory were not refused")
    except ValueError as error:
        assert "has no memory" in str(error), error
    model.to_empty(device="cpu")
    scalewise.apply(model, plan, seed=1)
    whole = dict(model_of(plan).named_parameters())
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter.full_tensor(), whole[name]), name
    near(recorded(model, plan)[0], recorded(model_of(plan), plan)[0])


def sharded_after(plan, rank):
    from torch.distributed.fsdp import fully_shard
    model = model_of(plan)
    for block in model.transformer.h:
        fully_shard(block)
    fully_shard(model)
    records, unchecked = recorded(model, plan)
    near(records, recorded(model_of(plan), plan)[0])
    assert len(unchecked) == 2 and all("query, key, value" in line for line in unchecked), unchecked


def data_parallel(plan, rank):
    model = torch.nn.parallel.DistributedDataParallel(model_of(plan))
    near(recorded(model, plan)[0], recorded(model_of(plan), plan)[0])


def flat_parameters(plan, rank):
    """FSDP of PyTorch 1 after apply: with the original parameters the groups are made, else the message says what to do."""
    from torch.distributed.fsdp import FullyShardedDataParallel
    whole = FullyShardedDataParallel(model_of(plan), use_orig_params=True, device_id=torch.device("cpu"))
    groups = scalewise.param_groups(whole, plan, lr=0.01)
    scalewise.check_optimizer(torch.optim.AdamW(groups), whole, plan, lr=0.01)
    flat = FullyShardedDataParallel(model_of(plan), device_id=torch.device("cpu"))
    for model, words in ((whole, "FSDP has cut it"), (flat, "FSDP has made one flat parameter of many")):
        try:
            scalewise.apply(model, plan)
            raise AssertionError("flat parameters were not refused")
        except ValueError as error:
            assert words in str(error), error


def process(rank, size, function, path, data, failed):
    """One of several processes that a test starts."""
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    try:
        torch.distributed.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=size)
        globals()[function](scalewise.Plan(data), rank)
        torch.distributed.destroy_process_group()
    except BaseException:
        failed.put(f"rank {rank}: {traceback.format_exc()}")
        raise


class Distributed(unittest.TestCase):
    def run_in_processes(self, function, plan, size=2):
        data = {"schema": "scalewise.named_plan/1", "plan": plan.plan, "dialect": "nanogpt", "prefix": plan.prefix,
                "tensors": plan.tensors, "aliases": [], "ignored": []}
        context = torch.multiprocessing.get_context("spawn")
        failed = context.SimpleQueue()
        with tempfile.TemporaryDirectory() as folder:
            ranks = [context.Process(target=process, args=(rank, size, function, f"{folder}/store", data, failed))
                     for rank in range(size)]
            for one in ranks:
                one.start()
            for one in ranks:
                one.join(300)
        self.assertTrue(failed.empty(), "" if failed.empty() else failed.get())
        self.assertEqual([one.exitcode for one in ranks], [0] * size)

    @unittest.skipIf(VERSION < (2, 6), "fully_shard needs PyTorch 2.6")
    def test_fully_shard(self):
        for size in (2, 3):  # 3 leave uneven parts
            self.run_in_processes("sharded_before", plan_of(), size)
        self.run_in_processes("sharded_after", plan_of())

    @unittest.skipIf(VERSION < (2, 0), "needs PyTorch 2")
    def test_distributed_data_parallel(self):
        self.run_in_processes("data_parallel", plan_of())

    @unittest.skipIf(VERSION < (2, 4), "FullyShardedDataParallel on CPUs needs PyTorch 2.4")
    def test_fully_sharded_data_parallel_of_version_1(self):
        self.run_in_processes("flat_parameters", plan_of())


# ---- One process ---------------------------------------------------------------------------------------------------


class Wrapped(unittest.TestCase):
    def test_plain(self):
        """What the others are compared with."""
        plan = plan_of()
        records, unchecked = recorded(model_of(plan), plan)
        self.assertEqual(unchecked, [])
        self.assertEqual({step for step, _, _ in records}, {0, 1, 2, 3})
        near(records, recorded(model_of(plan), plan)[0])

    @unittest.skipIf(VERSION < (2, 1), "torch.compile needs PyTorch 2.1")
    def test_compile(self):
        plan = plan_of()
        model = torch.compile(bare_model(plan), backend="eager")
        scalewise.apply(model, plan, seed=1)
        near(recorded(model, plan)[0], recorded(model_of(plan), plan)[0])

    @unittest.skipIf(VERSION < (2, 0), "needs PyTorch 2")
    def test_checkpoint_wrapper(self):
        from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import CheckpointImpl, checkpoint_wrapper
        plan = plan_of()
        for kind in (CheckpointImpl.REENTRANT, CheckpointImpl.NO_REENTRANT):
            model = model_of(plan)
            for i, block in enumerate(model.transformer.h):
                model.transformer.h[i] = checkpoint_wrapper(block, checkpoint_impl=kind)
            records, unchecked = recorded(model, plan)
            near(records, recorded(model_of(plan), plan)[0])
            self.assertEqual(len(unchecked), 2)
            self.assertTrue(all("query, key, value" in line for line in unchecked))

    @unittest.skipIf(VERSION < (2, 0), "torch.device as a context needs PyTorch 2")
    def test_default_device_and_type_do_not_matter(self):
        plan = plan_of()
        expected = model_of(plan).state_dict()
        model = bare_model(plan)
        with torch.device("meta"):
            torch.set_default_dtype(torch.float64)
            try:
                scalewise.apply(model, plan, seed=1)
            finally:
                torch.set_default_dtype(torch.float32)
        self.assertTrue(all(torch.equal(value, expected[name]) for name, value in model.state_dict().items()))

    @unittest.skipIf(VERSION < (2, 0), "hooks see arguments by name from PyTorch 2 on")
    def test_batches_by_name(self):
        plan = plan_of()
        model = model_of(plan)
        optimizer = torch.optim.AdamW(scalewise.param_groups(model, plan, lr=0.01))
        recorder = scalewise.Recorder(model, plan, optimizer)
        for step in range(2):
            batch = (BATCH + step).remainder(VOCAB)
            F.cross_entropy(model(tokens=batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten()).backward()
            optimizer.step()
        self.assertEqual(recorder.unchecked, ["step 1: another batch than at step 0, so that changes of activations mean "
                                              "nothing"])


class Muon(unittest.TestCase):
    @unittest.skipUnless(hasattr(torch.optim, "Muon"), "torch.optim.Muon needs PyTorch 2.9")
    def test_each_factor_of_torch_optim_muon(self):
        sizes = ["--base-preset", "llama-3.2-1b"]
        for value, name in ((None, "muon-original"), ("original", "muon-original"), ("match_rms_adamw", "muon-match-adamw"),
                            ("spectral_unclamped", "muon-fan-ratio")):
            weight = torch.nn.Parameter(torch.zeros(160, 80))
            try:
                step = scalewise.measure_step(torch.optim.Muon([weight], lr=0.02, adjust_lr_fn=value), weight)
            except ValueError as error:
                self.assertIn("not supported", str(error))  # spectral_unclamped before pull request 187402
                continue
            self.assertIn(name, step.optimizers)
            for planned in ("muon-original", "muon-match-adamw", "muon-fan-ratio"):
                plan = plan_of("--optimizer", planned, *sizes, rule="maximal-update", preset="llama-3.2-3b", names="hf-llama",
                               sizes={"depth": 1, "vocab": 64})
                model = {t["name"]: torch.nn.Parameter(torch.zeros(()).expand(t["shape"])) for t in plan.tensors}
                optimizers = {planned: torch.optim.Muon(
                    scalewise.param_groups(model, plan, lr=0.02, weight_decay=0.1, optimizer=planned), adjust_lr_fn=value),
                    "adamw": torch.optim.AdamW(scalewise.param_groups(model, plan, lr=0.01, weight_decay=0.1, optimizer="adamw"))}
                with self.subTest(value=value, planned=planned):
                    if planned == name:
                        scalewise.check_optimizer(optimizers, model, plan, weight_decay=0.1)
                        continue
                    with self.assertRaisesRegex(ValueError, f"adjust_lr_fn = {value!r} multiplies"):
                        scalewise.check_optimizer(optimizers, model, plan, weight_decay=0.1)


class Transformers(unittest.TestCase):
    """Names and shapes of the models that transformers builds from a small configuration."""

    def setUp(self):
        try:
            import transformers
        except ImportError:
            self.skipTest("transformers is not installed")
        self.library = transformers

    def applied(self, model, *names, **plan):
        """Whether a plan fits the model, under the first of these names that the program knows and that fits."""
        told = []
        for one in names:
            try:
                scalewise.apply(model, plan_of(names=one, rule="standard", **plan), seed=1)
                return True
            except (RuntimeError, ValueError) as error:
                told.append(f"{one}: {error}")
        self.fail("\n".join(told))

    def test_models(self):
        t, small = self.library, {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
        sizes = {"d_model": 32, "d_ff": 64, "heads": 2, "depth": 2}
        self.applied(t.GPT2LMHeadModel(t.GPT2Config(n_embd=32, n_layer=2, n_head=2, vocab_size=64, n_positions=16)), "hf-gpt2",
                     preset="gpt2", sizes={**sizes, "d_ff": 128, "vocab": 64, "context": 16})
        self.applied(t.LlamaForCausalLM(t.LlamaConfig(**small, num_key_value_heads=1, vocab_size=64, tie_word_embeddings=False)),
                     "hf-llama", preset="llama-3-8b", sizes={**sizes, "kv_heads": 1, "head_dim": 16, "vocab": 64})
        self.applied(t.GPTNeoXForCausalLM(t.GPTNeoXConfig(**small, vocab_size=64)), "gpt-neox-5", "gpt-neox",
                     preset="pythia-160m", sizes={**sizes, "vocab": 64})
        self.applied(t.BertForMaskedLM(t.BertConfig(**small, vocab_size=64, max_position_embeddings=16)), "hf-bert",
                     preset="bert-base", sizes={**sizes, "vocab": 64, "context": 16})
        self.applied(t.ViTForImageClassification(t.ViTConfig(**small, image_size=8, patch_size=4, num_labels=3)), "hf-vit-5",
                     "hf-vit", preset="vit-b16", sizes={**sizes, "patch_dim": 48, "context": 5, "classes": 3})


if __name__ == "__main__":
    print("PyTorch", torch.__version__)
    unittest.main(argv=sys.argv[:1])
