#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Plans for Muon, whose tensors are split between two optimizers.

    muon_torch.py PLAN_PROGRAM SOURCE_FOLDER
"""

import copy
import json
import math
import sys
import unittest
import unittest.mock

import torch_support
from torch_support import message_of, scalewise, settings, torch

from small_gpt import SmallGpt
from torch.nn import functional as F

SMALL = [word for prefix, width in (("", 64), ("base.", 32)) for word in settings(
    prefix, d_model=width, d_ff=4 * width, heads=width // 16, depth=2, vocab=256, context=32, tied_head="false")]
LLAMA = ["--preset", "llama-3.2-3b", "--base-preset", "llama-3.2-1b", "--set", "depth=2", "--set", "base.depth=2",
         "--names", "hf-llama"]


def options_of(optimizer, *arguments):
    model = [] if "--preset" in arguments else ["--preset", "gpt2", "--base-preset", "gpt2", *SMALL]
    return ["--rule", "maximal-update", "--optimizer", optimizer, *model, *arguments]


def plan_of(optimizer, *arguments):
    return torch_support.plan_of(*options_of(optimizer, *arguments))


class Muon(torch.optim.Optimizer):
    """A stand-in: what matters here is which tensors it holds."""

    def __init__(self, params):
        super().__init__(params, {"lr": 1.0, "weight_decay": 0.0})


class TwoOptimizers(unittest.TestCase):
    def setUp(self):
        self.plan = plan_of("muon-original")
        self.model = {name: torch.nn.Parameter(torch.zeros(e["rows"], e["columns"]))
                      for name, e in self.plan.entries.items()}

    def split(self, lr=0.02, others_lr=0.001):
        model, plan = self.model, self.plan
        matrices = scalewise.param_groups(model, plan, lr=0.02, weight_decay=0.1, optimizer="muon-original")
        others = scalewise.param_groups(model, plan, lr=0.001, weight_decay=0.1, optimizer="adamw")
        optimizers = {"muon-original": Muon(matrices), "adamw": torch.optim.AdamW(others)}
        scalewise.check_optimizer(optimizers, model, plan, weight_decay=0.1)
        return optimizers

    def names_in(self, optimizer):
        held = {id(p) for group in optimizer.param_groups for p in group["params"]}
        return {name for name, parameter in self.model.items() if id(parameter) in held}

    def test_each_holds_its_own(self):
        optimizers = self.split()
        matrices = self.names_in(optimizers["muon-original"])
        self.assertEqual({name.rpartition(".")[2] for name in matrices},
                         {"query", "key", "value", "attention_output", "mlp_up", "mlp_down"})
        self.assertEqual(len(matrices), 12)
        self.assertEqual(self.names_in(optimizers["adamw"]), set(self.model) - matrices)
        for group in optimizers["muon-original"].param_groups:
            self.assertEqual(set(group), {"params", "lr", "weight_decay", "lr_factor"})  # no epsilon
        # Width 32 to 64 under √max(1, fo/fi): mlp_down, with its 4 to 1, keeps √(m_fo/m_fi) = 1.
        self.assertEqual({group["lr"] for group in optimizers["muon-original"].param_groups}, {0.02})

    def test_which_optimizer_has_to_be_said(self):
        for wrong in (None, "muon", "sgd"):
            message = message_of(scalewise.param_groups, self.model, self.plan, lr=0.02, optimizer=wrong)
            self.assertIn(f"optimizer = {wrong}: expected adamw or muon-original", message)

    def test_a_tensor_of_the_other_optimizer_is_named(self):
        optimizers = self.split()
        swapped = {"adamw": optimizers["muon-original"], "muon-original": optimizers["adamw"]}
        message = message_of(scalewise.check_optimizer, swapped, self.model, self.plan)
        self.assertIn("layer.*.query (2 tensors): in adamw: expected muon-original", message)
        self.assertIn("token_embedding: in muon-original: expected adamw", message)
        optimizers["adamw"].param_groups[0]["eps"] *= 1.5
        message = message_of(scalewise.check_optimizer, optimizers, self.model, self.plan, weight_decay=0.1)
        self.assertIn("token_embedding: eps = 7.5e-09: expected 5e-09", message)

    def test_another_optimizer_of_pytorch_is_refused(self):
        groups = {name: scalewise.param_groups(self.model, self.plan, lr=0.02, weight_decay=0.1, optimizer=name)
                  for name in ("muon-original", "adamw")}
        optimizers = {"muon-original": torch.optim.AdamW(groups["muon-original"]),
                      "adamw": torch.optim.Adam(groups["adamw"])}
        message = message_of(scalewise.check_optimizer, optimizers, self.model, self.plan, weight_decay=0.1)
        self.assertEqual(message.splitlines(), [
            "optimizer['adamw'] = Adam: expected AdamW (hint: the plan is for adamw with coupled decay)",
            "optimizer['muon-original'] = AdamW: expected Muon (hint: the plan is for muon-original with coupled decay)"])
        both = torch.optim.AdamW([*groups["muon-original"], *groups["adamw"]])
        with self.assertRaisesRegex(ValueError, r"\Aoptimizer = AdamW: expected Muon \(hint: .*\)\Z"):
            scalewise.check_optimizer(both, self.model, self.plan, weight_decay=0.1)
        scalewise.check_optimizer(Muon([*groups["muon-original"], *groups["adamw"]]), self.model, self.plan,
                                  weight_decay=0.1)

    def test_one_muon_for_all_is_told_whose_epsilon_is_missing(self):
        groups = scalewise.param_groups(self.model, self.plan, lr=0.02, optimizer="muon-original")
        rest = [p for p in self.model.values() if all(p is not q for group in groups for q in group["params"])]
        message = message_of(scalewise.check_optimizer, Muon([*groups, {"params": rest, "lr": 0.02, "weight_decay": 0.0}]), self.model,
                             self.plan)
        self.assertIn("token_embedding: eps (missing): expected 5e-09, as its optimizer is adamw", message)

    def test_a_matrix_of_three_is_refused(self):
        told = torch_support.plan_output(*options_of("muon-original", "--names", "nanogpt", "--format", "torch-groups"), code=2)
        self.assertIn("transformer.h.*.attn.c_attn.weight (2 tensors)", told)
        self.assertIn("normalizes whole matrices (hint: --cut qkv", told)

    def test_a_matrix_of_three_that_the_optimizer_cuts_has_groups(self):
        plan = plan_of("muon-spectral", "--names", "nanogpt", "--cut", "qkv")
        model = SmallGpt(plan.multipliers(), 256, 32, 64, 4, torch.nn.Linear)
        groups = scalewise.param_groups(model, plan, lr=0.02, optimizer="muon-spectral")
        held = {id(p): group["lr"] for group in groups for p in group["params"]}
        for layer in model.transformer.h:  # √max(64, 64) of each of the three, √2 times the base's
            self.assertAlmostEqual(held[id(layer.attn.c_attn.weight)], 0.02 / 2**0.5, delta=1e-15)

    def test_groups_say_which_optimizer(self):
        groups = json.loads(torch_support.plan_output(*options_of("muon-match-adamw", *LLAMA, "--format", "torch-groups")))
        self.assertEqual(groups["optimizer"], "muon-match-adamw")
        for group in groups["groups"]:
            with self.subTest(group["patterns"]):
                hidden = any("_proj" in pattern for pattern in group["patterns"])
                self.assertEqual(group.get("optimizer", groups["optimizer"]), "muon-match-adamw" if hidden else "adamw")
                self.assertEqual(hidden, all("_proj" in pattern for pattern in group["patterns"]))

    def test_formats_with_one_optimizer_refuse(self):
        for form in ("fairseq", "neox", "tsv", "c-header"):
            with self.subTest(form):
                self.assertIn("one optimizer for all tensors", torch_support.plan_output(
                    *options_of("muon-plain", *LLAMA, "--format", form), code=2))


class OrthogonalMuon(torch.optim.Optimizer):
    """torch.optim.Muon (pytorch 098e03f9, torch/optim/_muon.py): its groups, coefficients, momentum and factors; the last
    factor is that of pull request 187402."""

    FACTORS = {"original": lambda rows, columns: math.sqrt(max(1, rows / columns)),
               "match_rms_adamw": lambda rows, columns: 0.2 * math.sqrt(max(rows, columns)),
               "spectral_unclamped": lambda rows, columns: math.sqrt(rows / columns)}

    def __init__(self, params, lr=1e-3, weight_decay=0.1, momentum=0.95, adjust_lr_fn=None, extra=1.0):
        self.extra = extra
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": True,
                                  "ns_coefficients": (3.4445, -4.7750, 2.0315), "eps": 1e-7, "ns_steps": 5,
                                  "adjust_lr_fn": adjust_lr_fn})

    def factor(self, group, rows, columns):
        return self.extra * self.FACTORS[group["adjust_lr_fn"] or "original"](rows, columns)

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state, momentum = self.state[p], group["momentum"]
                buffer = state.setdefault("momentum_buffer", torch.zeros_like(p)).lerp_(p.grad, 1 - momentum)
                x = p.grad.lerp(buffer, momentum)
                tall = x.shape[0] > x.shape[1]
                x = (x.T if tall else x) / x.norm().clamp(min=group["eps"])
                a, b, c = group["ns_coefficients"]
                for _ in range(group["ns_steps"]):
                    gram = x @ x.T
                    x = a * x + (b * gram + c * gram @ gram) @ x
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.add_(x.T if tall else x, alpha=-group["lr"] * self.factor(group, *p.shape))


class Dion(Muon):
    """microsoft/dion's Muon (0c205499, dion/muon.py): the keys of its groups."""

    def __init__(self, params, adjust_lr="spectral_norm", epsilon=1e-8):
        super().__init__([{"algorithm": "muon", "adjust_lr": adjust_lr, "epsilon": epsilon, "step": 0, **group}
                          for group in params])


class Emerging(Muon):
    """NVIDIA-NeMo/Emerging-Optimizers' Muon (033065f9, orthogonalized_optimizers/muon.py): what it keeps."""

    def __init__(self, params, scale_mode="spectral", extra_scale_factor=1.0):
        self.scale_mode, self.extra_scale_factor = scale_mode, extra_scale_factor
        super().__init__(params)


class Factors(unittest.TestCase):
    """What a Muon says of the factor that it applies itself, against the plan's."""

    def told(self, name, make, **more):
        plan = plan_of(name)
        model = {n: torch.nn.Parameter(torch.zeros(e["rows"], e["columns"])) for n, e in plan.entries.items()}
        matrices = scalewise.param_groups(model, plan, lr=0.02, weight_decay=0.1, optimizer=name)
        others = scalewise.param_groups(model, plan, lr=0.001, weight_decay=0.1, optimizer="adamw")
        try:
            scalewise.check_optimizer({name: make(matrices), "adamw": torch.optim.AdamW(others)}, model, plan, weight_decay=0.1)
        except ValueError as error:
            return str(error)
        return "as planned"

    def test_each_name_of_each_library(self):
        """The factors of frontier implementations, in plans' names; constants do not count."""
        names = ("muon-plain", "muon-fan-ratio", "muon-original", "muon-match-adamw")  # Megatron's "spectral" is the last, times 5
        for make, setting, values in (
                (OrthogonalMuon, "adjust_lr_fn", {None: "muon-original", "original": "muon-original",
                                                  "match_rms_adamw": "muon-match-adamw",
                                                  "spectral_unclamped": "muon-fan-ratio"}),
                (Dion, "adjust_lr", {None: "muon-plain", "spectral_norm": "muon-fan-ratio", "rms_norm": "muon-match-adamw"}),
                (Emerging, "scale_mode", {"shape_scaling": "muon-original", "spectral": "muon-match-adamw",
                                          "unit_rms_norm": "muon-fan-ratio"})):
            for value, right in values.items():
                wanted = "muon-spectral" if value == "spectral" else right
                for name in names:
                    with self.subTest(setting=setting, value=value, name=name):
                        told = self.told(name, lambda groups: make(groups, **{setting: value}))
                        if name == right:
                            self.assertEqual(told, "as planned")
                            continue
                        self.assertRegex(told, rf"\Aoptimizer\['{name}'\]: {setting} = {value!r} multiplies steps by .*, but the "
                                         rf"plan is for {name}, which multiplies them by .* \(hint: plan --optimizer {wanted}\)\Z")
        self.assertIn("multiplies steps by 0.2 √max(fan-in, fan-out), but the plan is for muon-original, which multiplies them by "
                      "√max(1, fan-out/fan-in)",
                      self.told("muon-original", lambda groups: OrthogonalMuon(groups, adjust_lr_fn="match_rms_adamw")))
        self.assertEqual(self.told("muon-match-adamw", lambda groups: Emerging(groups, extra_scale_factor=0.2)), "as planned")

    def test_an_unknown_name_warns(self):
        with self.assertWarnsRegex(UserWarning, "adjust_lr_fn = 'new': not known here; measure_step"):
            self.assertEqual(self.told("muon-original", lambda groups: OrthogonalMuon(groups, adjust_lr_fn="new")), "as planned")

    def test_matrices_that_are_stored_the_other_way_are_named(self):
        plan = plan_of("muon-original", *LLAMA)
        for tensor in plan.tensors:
            if tensor["name"].endswith("up_proj.weight"):
                tensor.update(transposed=False, shape=tensor["shape"][::-1])
        model = {t["name"]: torch.nn.Parameter(torch.zeros(()).expand(t["shape"])) for t in plan.tensors}
        optimizers = {name: make(scalewise.param_groups(model, plan, lr=0.02, optimizer=name))
                      for name, make in (("muon-original", OrthogonalMuon), ("adamw", torch.optim.AdamW))}
        message = message_of(scalewise.check_optimizer, optimizers, model, plan)
        self.assertIn("optimizer['muon-original']: takes the rows of a matrix for its outputs, but model.layers.0.mlp.up_proj."
                      "weight has inputs there (hint: store it transposed)", message)

    def test_the_epsilon_that_dion_reads(self):
        """Its AdamW groups have "epsilon", and param_groups() says "eps"."""
        plan = plan_of("adamw")
        model = {n: torch.nn.Parameter(torch.zeros(e["rows"], e["columns"])) for n, e in plan.entries.items()}
        optimizer = Dion([{**group, "algorithm": "adamw"} for group in scalewise.param_groups(model, plan, lr=0.02)])
        with self.assertRaisesRegex(ValueError, "token_embedding: epsilon = 1e-08: expected 5e-09"):
            scalewise.check_optimizer(optimizer, model, plan)


class MeasuredSteps(unittest.TestCase):
    def one(self, make, shape=(48, 32), kind=torch.float32):
        parameter = torch.nn.Parameter(torch.randn(shape, generator=torch.Generator().manual_seed(2)).to(kind))
        return scalewise.measure_step(make([parameter]), parameter)

    def test_the_factor_of_a_muon_is_named(self):
        fit = {(160, 80): {"original": {"muon-original", "muon-fan-ratio"}, "match_rms_adamw": {"muon-match-adamw"},
                          "spectral_unclamped": {"muon-original", "muon-fan-ratio"}},
               (16, 96): {"original": {"muon-original", "muon-plain"}, "match_rms_adamw": {"muon-match-adamw"},
                          "spectral_unclamped": {"muon-fan-ratio"}},
               (64, 64): {"original": {"muon-original", "muon-plain", "muon-fan-ratio"}, "match_rms_adamw": {"muon-match-adamw"}}}
        for shape, values in fit.items():
            for value, names in values.items():
                with self.subTest(shape=shape, value=value):
                    step = self.one(lambda p: OrthogonalMuon(p, lr=0.02, adjust_lr_fn=value), shape)
                    self.assertEqual(set(step.optimizers), names)
                    factor = OrthogonalMuon.FACTORS[value](*shape)
                    self.assertTrue(0.7 < step.spectral / factor < 1.2)
                    self.assertTrue(0.85 < step.rms * math.sqrt(max(shape)) / factor < 0.95)
                    self.assertEqual("cannot distinguish" in step.text, len(names) > 1)
        spectral = self.one(lambda p: OrthogonalMuon(p, adjust_lr_fn="match_rms_adamw", extra=5), (160, 80))
        self.assertEqual(spectral.optimizers, ("muon-spectral",))
        self.assertRegex(spectral.text, r"\Asingular values of 11\.\d each, which is √max\(fan-in, fan-out\)\Z")
        odd = self.one(lambda p: OrthogonalMuon(p, extra=20), (160, 80))
        self.assertEqual(odd.optimizers, ())
        self.assertIn("no factor that a plan knows", odd.text)

    def test_other_optimizers_are_named(self):
        for make, names in ((torch.optim.AdamW, ("adamw", "sign-sgd")), (torch.optim.Adam, ("adamw", "sign-sgd")),
                            (lambda p: torch.optim.SGD(p, lr=0.3, momentum=0.9, weight_decay=0.1), ("sgd",)),
                            (torch.optim.Adagrad, ("adamw", "sign-sgd")), (torch.optim.LBFGS, ("sgd",)),
                            (torch.optim.Adadelta, ())):
            for shape in ((48, 32), (16, 3, 4, 4)):
                with self.subTest(make=make, shape=shape):
                    self.assertEqual(self.one(make, shape).optimizers, names)
        self.assertAlmostEqual(self.one(torch.optim.AdamW).rms, 1, 4)
        self.assertEqual(self.one(torch.optim.AdamW, kind=torch.bfloat16).optimizers, ("adamw", "sign-sgd"))

        class Relative(Muon):
            """As LARS: no step from zero."""

            @torch.no_grad()
            def step(self, closure=None):
                for p in self.param_groups[0]["params"]:
                    p.sub_(p.norm() * p.grad)

        self.assertIn("may depend on that of the weights", self.one(Relative).text)

    def test_it_leaves_no_trace(self):
        model = torch.nn.Sequential(torch.nn.Linear(16, 24), torch.nn.Linear(24, 16))
        weight = model[0].weight
        for make in (torch.optim.AdamW, torch.optim.Adagrad, lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
                     lambda p: OrthogonalMuon([q for q in p if q.dim() == 2], lr=0.1)):
            optimizer = make(list(model.parameters()))
            scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
            for _ in range(2):
                model(torch.ones(2, 16)).square().sum().backward()
                optimizer.step()
                scheduler.step()
            gradient, counted = weight.grad, optimizer._step_count
            before = copy.deepcopy((optimizer.state_dict(), model.state_dict(), weight.grad))
            objects = id(optimizer.state), id(optimizer.param_groups), id(weight.grad)
            first = scalewise.measure_step(optimizer, weight)
            self.assertEqual(scalewise.measure_step(optimizer, weight), first)
            self.assertEqual(objects, (id(optimizer.state), id(optimizer.param_groups), id(gradient)))
            self.assertEqual(optimizer._step_count, counted)
            after = (optimizer.state_dict(), model.state_dict(), weight.grad)
            self.assertTrue(same(before, after))

            def broken(*_):
                raise RuntimeError("broken")

            with unittest.mock.patch.object(type(optimizer), "step", broken), self.assertRaisesRegex(RuntimeError, "broken"):
                scalewise.measure_step(optimizer, weight)
            self.assertTrue(same(before, (optimizer.state_dict(), model.state_dict(), weight.grad)))

    def test_what_cannot_be_measured_is_refused(self):
        parameter = torch.nn.Parameter(torch.zeros(16, 16))
        for given, words in ((torch.optim.SGD([parameter], lr=0.0), "lr = 0: expected a positive rate"),
                             (torch.optim.SGD([torch.zeros(2, requires_grad=True)], lr=1.0), "in 0 groups of the optimizer")):
            with self.assertRaisesRegex(ValueError, words):
                scalewise.measure_step(given, parameter)
        for given, words in (((torch.nn.Linear(2, 2), parameter), r"optimizer = Linear\(.*: expected an optimizer"),
                             ((torch.optim.SGD([parameter], lr=1.0), "weight"), "parameter = 'weight': expected a tensor")):
            with self.assertRaisesRegex(ValueError, words):
                scalewise.measure_step(*given)
        with self.assertRaisesRegex(ValueError, "optimizer = 'adamw': expected an optimizer"):
            scalewise.set_lr("adamw", 1.0)
        for shape in ([16], [4, 16], [16, 1]):
            vector = torch.nn.Parameter(torch.zeros(shape))
            with self.assertRaisesRegex(ValueError, "expected a matrix of 8 or more rows and columns"):
                scalewise.measure_step(torch.optim.SGD([vector], lr=1.0), vector)


def same(one, other):
    """Whether nested lists and objects have equal numbers."""
    if torch.is_tensor(one):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other or callable(one)


class Records(unittest.TestCase):
    def test_two_optimizers_record_what_one_does(self):
        plan = plan_of("adamw", "--names", "nanogpt")
        batch = torch.arange(4 * 33).reshape(4, 33) % 251
        records = []
        for split in (False, True):
            model = SmallGpt(plan.multipliers(), 256, 32, 64, 4, torch.nn.Linear)
            scalewise.apply(model, plan, base_std=0.1, seed=1)
            groups = scalewise.param_groups(model, plan, lr=0.01)
            optimizers = [torch.optim.AdamW(part) for part in ((groups[:1], groups[1:]) if split else (groups,))]
            recorder = scalewise.Recorder(model, plan, optimizers if split else optimizers[0])
            for _ in range(3):
                loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
                loss.backward()
                for optimizer in optimizers:
                    optimizer.step()
                    optimizer.zero_grad()
            model(batch[:, :-1])
            records.append(recorder._records)
        self.assertEqual(records[0], records[1])
        self.assertEqual({step for step, _, _ in records[0]}, {0, 1, 2, 3})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
