#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Models of one's own, of which make_plan() has the plan: what their modules, batches and optimizers do besides.

    own_models_torch.py PLAN_PROGRAM SOURCE_FOLDER
"""

import os
import sys
import unittest
import warnings

import torch_support
from torch_support import message_of, records_of, scalewise, torch

from torch import nn
from torch.nn.utils import parametrize

os.environ["PATH"] = f"{torch_support.PLAN.parent}{os.pathsep}{os.environ['PATH']}"
X = torch.linspace(-1, 1, 40).reshape(8, 5)


def mlp(width):
    return nn.Sequential(nn.Linear(5, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 3))


def words(width, **options):
    return nn.Sequential(nn.Embedding(50, width, **options), nn.Linear(width, width), nn.Linear(width, 10))


def planned(make, *options, width=64):
    torch.manual_seed(0)
    model = make(width)
    plan = scalewise.make_plan("maximal-update", model, make(16), *options)
    scalewise.apply(model, plan, base_std=0.1)
    return model, plan


def adamw(model, plan, lr=0.01):
    return torch.optim.AdamW(scalewise.param_groups(model, plan, lr=lr))


def step(model, optimizer, *batch, **options):
    optimizer.zero_grad()
    model(*batch, **options).square().mean().backward()
    optimizer.step()


class Start(unittest.TestCase):
    def test_a_row_that_pads_stays_zero(self):
        for make in (lambda width: words(width, padding_idx=3),
                     lambda width: nn.Sequential(nn.EmbeddingBag(50, width, mode="sum", padding_idx=3), nn.Linear(width, 10))):
            model, _ = planned(make)
            zero = (model[0].weight == 0).all(1)
            self.assertEqual(zero.nonzero().tolist(), [[3]])

    def test_batch_norms_have_counted_nothing(self):
        model, plan = planned(lambda width: nn.Sequential(nn.Linear(5, width), nn.BatchNorm1d(width), nn.Linear(width, 3)))
        scalewise.Recorder(model, plan, adamw(model, plan))
        self.assertEqual(model[1].num_batches_tracked.item(), 0)

    def test_a_depthwise_convolution_has_one_input_in_both_directions(self):
        def depthwise(kind):
            return lambda width: nn.Sequential(nn.Conv2d(3, width, 1), kind(width, width, 4, groups=width), nn.Conv2d(width, 3, 1))

        for kind in (nn.Conv2d, nn.ConvTranspose2d):
            _, plan = planned(depthwise(kind))
            self.assertEqual(plan.entries["1.weight"]["fan_in"], 16, kind)


class Tied(unittest.TestCase):
    def test_two_parameters_of_one_memory_are_not_tied(self):
        def make(width):
            model = nn.Sequential(nn.Embedding(50, width), nn.Linear(width, width), nn.Linear(width, 50, bias=False))
            model[2].weight = model[0].weight
            return model

        model, plan = planned(make)
        scalewise.param_groups(model, plan, lr=0.01)
        scalewise.apply(model.state_dict(), plan, base_std=0.1)
        model[2].weight = nn.Parameter(model[0].weight.detach())
        for call in (scalewise.apply, scalewise.param_groups):
            self.assertEqual(message_of(call, model, plan, 0.1),
                             "2.weight: not the same parameter as 0.weight, though the plan ties them")
        model[2].weight.requires_grad_(False)  # no gradient is lost
        scalewise.param_groups(model, plan, lr=0.01)


class Rates(unittest.TestCase):
    def test_a_scheduler_that_scales_groups_leaves_them(self):
        """timm multiplies the initial rate by `lr_scale`, where groups have that (timm/scheduler/scheduler.py)."""
        model, plan = planned(mlp)
        optimizer = adamw(model, plan)
        for group in optimizer.param_groups:
            group["lr"] = group["lr"] * group.get("lr_scale", 1.0)
        scalewise.check_optimizer(optimizer, model, plan, lr=0.01)

    def test_a_rate_in_a_tensor_stays_there(self):
        model, plan = planned(mlp)
        optimizer = adamw(model, plan)
        rates = [group["lr"] for group in optimizer.param_groups]
        for group in optimizer.param_groups:
            group["lr"] = torch.tensor(group["lr"], dtype=torch.float64)
        tensors = [group["lr"] for group in optimizer.param_groups]
        scalewise.set_lr(optimizer, 0.02)
        for group, tensor, rate in zip(optimizer.param_groups, tensors, rates):
            self.assertIs(group["lr"], tensor)
            self.assertAlmostEqual(tensor.item(), 2 * rate)


class AnyBatch(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = mlp(width)

    def forward(self, batch, other=0.0):
        return self.layers((batch["x"] if isinstance(batch, dict) else batch[0] if isinstance(batch, list) else batch) + other)


class Scaled(torch.optim.AdamW):
    """A fused optimizer, to which GradScaler leaves its scale (torch/cuda/amp/grad_scaler.py: step)."""

    def step(self, closure=None):
        if self.found_inf:
            return
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.grad /= self.grad_scale
        super().step(closure)


def two_optimizers():
    model, plan = planned(mlp, "--optimizer", "muon-original")
    return model, plan, [torch.optim.SGD(scalewise.param_groups(model, plan, lr=0.01, optimizer="muon-original"), lr=0.1),
                         torch.optim.AdamW(scalewise.param_groups(model, plan, lr=0.01, optimizer="adamw"))]


class Recorded(unittest.TestCase):
    def test_another_batch_is_seen_wherever_its_tensors_are(self):
        calls = {"dict": lambda x: ({"x": x},), "list": lambda x: ([x],), "second": lambda x: (torch.zeros(8, 5), x)}
        for name, batch in calls.items():
            for other in (X, X.flip(0)):
                with self.subTest(name, same=other is X):
                    model, plan = planned(AnyBatch)
                    recorder = scalewise.Recorder(model, plan, adamw(model, plan))
                    step(model, recorder._optimizers[0], *batch(X))
                    step(model, recorder._optimizers[0], *batch(other))
                    self.assertEqual(any("another batch" in line for line in recorder.unchecked), other is not X)

    def test_gradients_that_are_sparse(self):
        found = []
        for sparse in (False, True):
            model, plan = planned(lambda width: words(width, sparse=sparse), "--optimizer", "sgd")
            optimizer = torch.optim.SGD(scalewise.param_groups(model, plan, lr=0.1), lr=0.1)
            recorder = scalewise.Recorder(model, plan, optimizer)
            step(model, optimizer, torch.tensor([[0, 3], [3, 7]]))
            found.append(records_of(recorder)[0, "gradient", "0.weight"])
        self.assertEqual(*found)

    def test_a_decay_that_is_part_of_updates_is_said(self):
        words = ("4.bias: weight decay is part of their updates, which the check does not expect under sgd: "
                 "record with weight_decay=0")
        for optimizer, decay, expected in (("sgd", 0.1, [words]), ("sgd", 0.0, []), ("adamw", 0.1, [])):
            model, plan = planned(mlp, "--optimizer", optimizer)
            groups = scalewise.param_groups(model, plan, lr=0.01)
            for group in groups:
                group["weight_decay"] = decay * any(one is model[4].bias for one in group["params"])
            kind = torch.optim.SGD(groups, lr=0.1) if optimizer == "sgd" else torch.optim.AdamW(groups)
            with self.subTest(optimizer, decay=decay), warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                recorder = scalewise.Recorder(model, plan, kind)
                self.assertEqual([str(one.message) for one in said], expected)
                step(model, kind, X)
                self.assertEqual(recorder.unchecked, expected)

    def test_a_scale_that_the_optimizer_takes_out(self):
        plain, plan = planned(mlp)
        optimizer = adamw(plain, plan)
        expected = scalewise.Recorder(plain, plan, optimizer)
        step(plain, optimizer, X)
        step(plain, optimizer, X)
        plain(X)
        model, _ = planned(mlp)
        optimizer = Scaled(scalewise.param_groups(model, plan, lr=0.01))
        recorder = scalewise.Recorder(model, plan, optimizer)
        for infinite in (True, False, True, False):  # two overflow, and are no steps
            optimizer.zero_grad()
            (model(X).square().mean() * 1024).backward()
            optimizer.grad_scale, optimizer.found_inf = torch.tensor(1024.0), torch.tensor(float(infinite))
            optimizer.step()
        model(X)
        of_loss = (0, "gradient", "logits"), (1, "gradient", "logits")  # whose scale only the loss has
        found, unscaled = records_of(recorder), records_of(expected)
        self.assertEqual({key: value for key, value in found.items() if key not in of_loss},
                         {key: value for key, value in unscaled.items() if key not in of_loss})
        self.assertEqual(found.keys(), unscaled.keys())

    def test_a_scale_that_is_taken_out_before_each_optimizer(self):
        found = []
        for scale in (1.0, 1024.0):
            model, plan, both = two_optimizers()
            recorder = scalewise.Recorder(model, plan, both)
            (model(X).square().mean() * scale).backward()
            for one in both:  # as GradScaler.unscale_
                for group in one.param_groups:
                    for parameter in group["params"]:
                        parameter.grad /= scale
                one.step()
                one.zero_grad(set_to_none=False)
            model(X)
            found.append({key: value for key, value in records_of(recorder).items() if key != (0, "gradient", "logits")})
        self.assertEqual(*found)
        self.assertTrue(all(sums[0] > 0 for (_, signal, _), sums in found[0].items() if signal == "gradient"))

    def test_an_optimizer_that_steps_before_its_turn_is_listed(self):
        model, plan, both = two_optimizers()
        recorder = scalewise.Recorder(model, plan, both)
        for one in (both[0], both[0], both[1]):
            model(X).square().mean().backward()
            one.step()
        self.assertRegex("\n".join(recorder.unchecked), "^step 1: an optimizer stepped again before the others did, so that .*$")

    def test_optimizers_step_in_any_order(self):
        found = []
        for order in (1, -1):
            model, plan, both = two_optimizers()
            recorder = scalewise.Recorder(model, plan, both)
            for _ in range(2):
                model.zero_grad()
                model(X).square().mean().backward()
                for one in both[::order]:
                    one.step()
            model(X)
            found.append(records_of(recorder))
        self.assertEqual(*found)

    def test_an_optimizer_of_accelerate_that_waits(self):
        class Waiting:  # accelerate/optimizer.py: AcceleratedOptimizer.step
            def __init__(self, optimizer):
                self.optimizer, self.waits = optimizer, False

            def step(self):
                if not self.waits:
                    self.optimizer.step()

        found = []
        for waits in ((False, False), (True, False, True, False)):
            model, plan = planned(mlp)
            outer = Waiting(adamw(model, plan))
            recorder = scalewise.Recorder(model, plan, outer)
            for outer.waits in waits:
                model.zero_grad()
                model(X).square().mean().backward()
                outer.step()
            model(X)
            found.append({key: value for key, value in records_of(recorder).items() if key[1] == "update"})
        self.assertEqual(*found)

    def test_a_matrix_that_is_computed_from_another_is_not_the_output(self):
        class Symmetric(nn.Module):
            def forward(self, weight):
                return (weight + weight.T) / 2

        def make(width):
            model = nn.Sequential(nn.Linear(5, width), nn.Linear(width, width, bias=False), nn.Linear(width, 3))
            parametrize.register_parametrization(model[1], "weight", Symmetric())
            return model

        model = make(64)
        self.assertIn("1.parametrizations.weight.original: the layer has a parametrization",
                      message_of(scalewise.describe, model))
        plan = scalewise.make_plan("maximal-update", model, make(16), kinds={"*.original": "linear:oi"})
        scalewise.apply(model, plan, base_std=0.1)
        optimizer = adamw(model, plan)
        recorder = scalewise.Recorder(model, plan, optimizer)
        step(model, optimizer, X)
        self.assertEqual(records_of(recorder)[0, "value", "1.parametrizations.weight.original"][2], 8 * 64)
        self.assertEqual(message_of(scalewise.apply, model[:2], plan, 0.1),  # not that it has a parametrization
                         "2.weight: missing in the model\n2.bias: missing in the model")

    def test_a_refused_optimizer_leaves_the_model_as_it_was(self):
        model, plan = planned(mlp)
        message_of(scalewise.Recorder, model, plan, "adam")
        self.assertFalse(any(module._forward_hooks or module._forward_pre_hooks for module in model.modules()))

    def test_a_run_that_goes_on_after_a_checkpoint_is_refused(self):
        for make in (torch.optim.AdamW, torch.optim.Adagrad, lambda groups: torch.optim.SGD(groups, lr=0.1, momentum=0.9)):
            model, plan = planned(mlp)
            optimizer = make(scalewise.param_groups(model, plan, lr=0.01))
            recorder = scalewise.Recorder(model, plan, optimizer)
            step(model, optimizer, X)
            records_of(recorder)
            self.assertIn("optimizer: has taken steps", message_of(scalewise.Recorder, model, plan, optimizer))

    def test_what_the_last_pass_does_not_show_is_listed(self):
        class LastAlone(nn.Module):  # as nanoGPT's forward, which has the logits of the last token without targets
            def __init__(self, width):
                super().__init__()
                self.embed, self.head = nn.Embedding(30, width), nn.Linear(width, 30, bias=False)

            def forward(self, x, whole=False):
                return self.head(self.embed(x) if whole else self.embed(x)[:, [-1]])

        model, plan = planned(LastAlone)
        optimizer = adamw(model, plan)
        recorder = scalewise.Recorder(model, plan, optimizer)
        batch = torch.arange(12).reshape(3, 4)
        step(model, optimizer, batch, whole=True)
        model(batch)
        records_of(recorder)
        self.assertEqual(recorder.unchecked, ["step 1: head.weight, logits: not seen as at step 0 (not called, or of another shape)"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
