#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Checks the reference transformer against PyTorch: logits, loss and the gradient of every tensor.

    torch_agreement.py PROGRAM [CASE...]

PROGRAM is the compiled torch_agreement.cpp. The models here are written from the equations, and
the gradients are autograd's, always in double precision, on the very numbers that PROGRAM used.

The error of a tensor is max|a - b| / max|b|. A gradient that is zero by symmetry, that of
biases of keys and of their norms alone, is measured against the largest gradient of the model.

Exit code 0 when all agree, 1 when not, 77, with a message, where PyTorch is not installed.
"""

import concurrent.futures
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import torch
except ImportError:
    print("skipped: PyTorch is not installed for", sys.executable)
    sys.exit(77)

import torch.nn.functional as F

TOLERANCE = {"float": 1e-5, "double": 1e-10}
ACTIVATIONS = {"relu": torch.relu, "gelu": F.gelu, "silu": F.silu}


def unit(x):
    """Norm(x) = x / |x|, over the features."""
    return x / x.pow(2).sum(-1, keepdim=True).sqrt()


def rotary(x):
    """Turns x (B, heads, T, C): features c and c + C/2 are one complex number."""
    tokens, half = x.shape[-2], x.shape[-1] // 2
    angle = torch.outer(torch.arange(tokens, dtype=x.dtype),
                        10000.0 ** (-torch.arange(half, dtype=x.dtype) / half))
    z = torch.complex(x[..., :half], x[..., half:]) * torch.polar(torch.ones_like(angle), angle)
    return torch.cat((z.real, z.imag), -1)


def capped(x, cap):
    return cap * torch.tanh(x / cap) if cap > 0 else x


class Model:
    """The model that a file of PROGRAM describes; logits() rebuilds it from the equations."""

    def __init__(self, document):
        self.shape, self.config = document["shape"], document["config"]
        model = document["model"]
        self.attention_scale = model["attention_scale"]["value"]
        self.embedding_multiplier = model["embedding_multiplier"]["value"]
        self.logit_multiplier = model["logit_multiplier"]["value"]
        self.residuals = {(r["stack"], r["layer"]): (r["skip"]["value"], r["branch"]["value"])
                          for r in model["residuals"]}
        self.stored, self.multipliers = {}, {}
        for tensor in document["tensors"]:
            value = torch.tensor(tensor["values"], dtype=torch.double)
            value = value.reshape(tensor["rows"], tensor["columns"]).requires_grad_()
            self.stored[tensor["name"]] = value
            self.multipliers[tensor["name"]] = tensor["multiplier"]
        self.normalized = self.shape["blocks"] == "normalized"
        self.activation = ACTIVATIONS[self.config["activation"]]

    def matrix(self, name):
        return self.multipliers[name] * self.stored[name] if name in self.stored else None

    def vector(self, name):
        value = self.matrix(name)
        return None if value is None else value.flatten()

    def linear(self, x, weight, bias):
        y = x @ self.matrix(weight)
        return y if self.vector(bias) is None else y + self.vector(bias)

    def norm(self, x, name):
        gain, bias = self.vector(name + "_gain"), self.vector(name + "_bias")
        epsilon = self.config["norm_epsilon"]
        if self.config["norm"] == "layer":
            return F.layer_norm(x, x.shape[-1:], gain, bias, epsilon)
        y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + epsilon)
        y = y if gain is None else y * gain
        return y if bias is None else y + bias

    def attention(self, x, source, prefix, causal, turned):
        def heads(y, count):
            return y.unflatten(-1, (count, -1)).transpose(1, 2)

        count, kv_count = self.shape["heads"], self.shape["kv_heads"]
        q = self.linear(x, prefix + "query", prefix + "query_bias")
        k = self.linear(source, prefix + "key", prefix + "key_bias")
        if self.shape.get("qk_norm") == "full":
            q, k = self.norm(q, prefix + "query_norm"), self.norm(k, prefix + "key_norm")
        q, k = heads(q, count), heads(k, kv_count)
        v = heads(self.linear(source, prefix + "value", prefix + "value_bias"), kv_count)
        if self.shape.get("qk_norm") == "head":
            q, k = self.norm(q, prefix + "query_norm"), self.norm(k, prefix + "key_norm")
        if turned:
            q, k = rotary(q), rotary(k)
        if self.normalized:
            scale = self.vector(prefix + "qk_scale").unflatten(0, (count, 1, -1))
            q, k = unit(q) * scale, unit(k) * scale
        k, v = (y.repeat_interleave(count // kv_count, dim=1) for y in (k, v))
        scores = self.attention_scale * torch.einsum("bhtc,bhsc->bhts", q, k)
        scores = capped(scores, self.config["score_cap"])
        if causal:
            later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
            scores = scores.masked_fill(later, -math.inf)
        out = torch.einsum("bhts,bhsc->bhtc", scores.softmax(-1), v)
        return self.linear(out.transpose(1, 2).flatten(-2), prefix + "attention_output",
                           prefix + "attention_output_bias")

    def experts(self, x, prefix):
        """Every expert of every token, most of them with the weight 0."""
        count, active = self.shape["experts"], self.shape["experts_per_token"]
        z = self.linear(x, prefix + "router", "")
        best = torch.topk(z, active, -1).indices
        if self.config["gates"] == "sigmoid":
            g = torch.sigmoid(z) / active
        elif self.config["gates"] == "renormalized":
            g = torch.full_like(z, -math.inf).scatter(-1, best, z.gather(-1, best)).softmax(-1)
        else:
            g = z.softmax(-1)
        g = g * torch.zeros_like(z).scatter(-1, best, 1)
        up, down = (self.matrix(prefix + name).unflatten(0, (count, -1))
                    for name in ("expert_up", "expert_down"))
        hidden = torch.einsum("btc,ecf->btef", x, up)
        if self.shape["gated_mlp"]:
            gate = self.matrix(prefix + "expert_gate").unflatten(0, (count, -1))
            hidden = self.activation(torch.einsum("btc,ecf->btef", x, gate)) * hidden
        else:
            hidden = self.activation(hidden)
        return torch.einsum("bte,btef,efc->btc", g, hidden, down)

    def mlp(self, x, prefix):
        if self.shape.get("experts"):
            return self.experts(x, prefix)
        u = self.linear(x, prefix + "mlp_up", prefix + "mlp_up_bias")
        if self.normalized:
            u = u * self.vector(prefix + "up_scale")
        if self.shape["gated_mlp"]:
            g = self.linear(x, prefix + "mlp_gate", prefix + "mlp_gate_bias")
            if self.normalized:
                g = g * self.vector(prefix + "gate_scale") * math.sqrt(self.shape["d_model"])
            hidden = self.activation(g) * u
        else:
            hidden = self.activation(u)
        return self.linear(hidden, prefix + "mlp_down", prefix + "mlp_down_bias")

    def residual(self, x, block, name, weights):
        if self.normalized:
            return unit(x + self.vector(name + "_step").abs() * (unit(block(x)) - x))
        skip, _ = weights
        if self.config["placement"] == "pre":
            return skip * x + self.branch(self.norm(x, name + "_norm"), block, name, weights)
        return self.norm(skip * x + self.branch(x, block, name, weights), name + "_norm")

    def branch(self, x, block, name, weights):
        gain = self.vector(name + "_gain")
        y = block(x)
        if self.shape.get("branch_norm"):
            y = self.norm(y, name + "_branch_norm")
        return weights[1] * (1 if gain is None else gain) * y

    def stack(self, x, which, memory=None):
        """Layers of a stack on embeddings x (B, T, C); memory is the output of the encoder."""
        top = "" if which == "main" else which + "."
        causal = which == "decoder" or (which == "main" and self.config["causal"])
        depth = self.shape["encoder_depth" if which == "encoder" else "depth"]
        positions = self.matrix(top + "position_embedding")
        if positions is not None:
            x = x + positions[:x.shape[1]]
        if self.shape["embedding_norm"]:
            x = self.norm(x, top + "embedding_norm")
        for layer in range(depth):
            prefix = f"{top or 'layer.'}{layer}."
            weights = self.residuals[which, layer]
            if self.config["parallel"]:
                skip, _ = weights
                x = (skip * x
                     + self.branch(self.norm(x, prefix + "attention_norm"),
                                   lambda y: self.attention(y, y, prefix, causal, self.config["rotary"]),
                                   prefix + "attention", weights)
                     + self.branch(self.norm(x, prefix + "mlp_norm"),
                                   lambda y: self.mlp(y, prefix), prefix + "mlp", weights))
                continue
            x = self.residual(
                x, lambda y: self.attention(y, y, prefix, causal, self.config["rotary"]),
                prefix + "attention", weights)
            if memory is not None:
                x = self.residual(
                    x, lambda y: self.attention(y, memory, prefix + "cross_", False, False),
                    prefix + "cross_attention", weights)
            x = self.residual(x, lambda y: self.mlp(y, prefix), prefix + "mlp", weights)
        if self.shape["final_norm"] and not self.normalized:
            x = self.norm(x, top + "final_norm")
        return x

    def embed(self, ids, batch):
        x = self.embedding_multiplier * F.embedding(
            torch.tensor(ids).reshape(batch, -1), self.stored["token_embedding"])
        segments = self.matrix("segment_embedding")
        return x if segments is None else x + segments[0]

    def logits(self, batch):
        size = batch["size"]
        if self.shape["input"] == "patch":
            patches = torch.tensor(batch["patches"], dtype=torch.double)
            x = patches.reshape(size, -1, self.shape["patch_dim"])
            x = self.embedding_multiplier * (x @ self.stored["patch_embedding"])
            if self.vector("patch_bias") is not None:
                x = x + self.vector("patch_bias")
            h = self.stack(x, "main").mean(1)
        elif self.shape["encoder_depth"] > 0:
            memory = self.stack(self.embed(batch["source"], size), "encoder")
            h = self.stack(self.embed(batch["tokens"], size), "decoder", memory).flatten(0, 1)
        else:
            h = self.stack(self.embed(batch["tokens"], size), "main").flatten(0, 1)
        head = self.stored["token_embedding"].T if self.shape["tied_head"] else self.stored["head"]
        logits = self.logit_multiplier * (h @ head)
        if self.normalized:
            logits = self.vector("logit_scale") * logits
        bias = self.vector("head_bias")
        return capped(logits if bias is None else logits + bias, self.config["logit_cap"])


def tensor_of(numbers):
    """A number that is not finite is null in JSON."""
    return torch.tensor([math.nan if n is None else n for n in numbers], dtype=torch.double)


def errors_of(document):
    """The error of the logits, the loss and every gradient, by name; nan where there is none."""
    model, batch = Model(document), document["batch"]
    logits = model.logits(batch)
    loss = F.cross_entropy(logits, torch.tensor(batch["targets"]))
    loss.backward()

    def largest(x):
        return x.detach().abs().max().item()

    errors = {
        "logits": largest(tensor_of(document["logits"]) - logits.flatten()) / largest(logits),
        "loss": largest(tensor_of([document["loss"]]) - loss) / largest(loss),
    }
    gradients = {name: x.grad for name, x in model.stored.items()}
    ceiling = max(largest(g) for g in gradients.values() if g is not None)
    for tensor in document["tensors"]:
        name, expected = tensor["name"], gradients[tensor["name"]]
        if expected is None:  # the equations do not use it
            errors[name] = math.nan
            continue
        size = largest(expected)
        if size < 1e-12 * ceiling:
            size = ceiling if name.endswith(("key_bias", "key_norm_bias")) else math.nan
        errors[name] = largest(tensor_of(tensor["gradient"]) - expected.flatten()) / size
    return errors


def check(program, case, scalar, folder):
    """A line of text, and whether the case agrees."""
    path = pathlib.Path(folder, f"{case}_{scalar}.json")
    label = f"{case:26} {scalar:6}"
    ran = subprocess.run([program, case, scalar, path], stderr=subprocess.PIPE, text=True,
                         check=False)
    if ran.returncode != 0:
        return f"{label} FAILED: exit code {ran.returncode}: {ran.stderr.strip()}", False
    document = json.loads(path.read_text())
    path.unlink()
    errors = errors_of(document)
    worst = max(errors, key=lambda name: math.inf if math.isnan(errors[name]) else errors[name])
    bad = [name for name, error in errors.items() if not error <= TOLERANCE[scalar]]
    line = f"{label} {len(errors) - 2:4} tensors, worst {errors[worst]:.1e} {worst}"
    if bad:
        listed = ", ".join(f"{name} {errors[name]:.1e}" for name in bad[:6])
        line += f"\n  DISAGREE in {len(bad)}: {listed}{', ...' if len(bad) > 6 else ''}"
    return line, not bad


def main():
    if len(sys.argv) < 2:
        print(__doc__)
        return 1
    torch.set_num_threads(1)
    program = pathlib.Path(sys.argv[1]).resolve()
    known = subprocess.run([program, "list"], stdout=subprocess.PIPE, text=True, check=True)
    cases = sys.argv[2:] or known.stdout.split()
    agreed = []
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        jobs = [(case, scalar) for case in cases for scalar in TOLERANCE]
        for line, agrees in pool.map(lambda job: check(program, *job, folder), jobs):
            print(line, flush=True)
            agreed.append(agrees)
    print(f"{sum(agreed)} of {len(agreed)} agree")
    return 0 if agreed and all(agreed) else 1


if __name__ == "__main__":
    sys.exit(main())
