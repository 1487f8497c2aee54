#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Writes rules.json: the plan of every rule, computed from the papers alone.

    python3 tests/golden/generate_rules.py rules.json

It reads nothing of the library: neither headers nor programs. README.md describes the conventions.
"""

import pathlib
import sys
from collections import namedtuple
from math import asin, pi, sqrt

# ---------------------------------------------------------------------------------------------
# Shapes: the tensors of a model, with their groups and fans.

DEFAULTS = {
    "input": "token", "encoder_depth": 0, "segments": 0, "relative_buckets": 0, "vocab": 0,
    "classes": 0, "patch_dim": 0, "context": 0, "iterations": 0, "gated_mlp": False,
    "biases": True, "norm_gain": True, "norm_bias": True, "learned_positions": True,
    "class_token": False, "embedding_norm": False, "final_norm": True,
    "blocks": "residual", "residual_gain": "none",
}

NORMALIZED = ("ngpt", "ngpt-depth-mup", "ngpt-complete-p", "nu-gpt", "nu-gpt-full-align")
SHALLOW = ("shallow-lecun", "shallow-he", "shallow-ntk")
TIED = ("neural-tangent", "meta-principled", "gpt2", "bert")  # as the papers' language models


class Shape:
    """A shape with everything open filled in, as the rule's paper has it."""

    def __init__(self, given, rule):
        values = dict(DEFAULTS, **given)
        values.setdefault("head_dim", values["d_model"] // values["heads"])
        values.setdefault("kv_heads", values["heads"])
        values.setdefault("d_ff", 4 * values["d_model"])
        values.setdefault("head_bias", values["input"] == "patch")
        values.setdefault("tied_head", rule in TIED and values["input"] == "token")
        if rule in NORMALIZED:
            values.update(blocks="normalized", gated_mlp=True, biases=False, tied_head=False,
                          head_bias=False, learned_positions=False, embedding_norm=False,
                          final_norm=False, segments=0, relative_buckets=0)
        if rule in SHALLOW:
            values.update(blocks="shallow", depth=1)
        if rule == "layer-scale":
            values["residual_gain"] = "channel"
        if rule in ("rezero", "skip-init"):
            values["residual_gain"] = "scalar"
        self.__dict__.update(values)
        self.n = self.d_model
        self.q_width = self.heads * self.head_dim
        self.kv_width = self.kv_heads * self.head_dim
        self.outputs = self.vocab if self.input == "token" else self.classes

    def layers(self, stack):
        return self.encoder_depth if stack == "encoder" else self.depth

    def stacks(self):
        return ("encoder", "decoder") if self.encoder_depth else ("main",)


def fans(kind, s):
    """Fan-in and fan-out of a tensor or of the matrix that a bias belongs to."""
    n = s.n
    if s.blocks == "shallow":
        return (n, 1) if kind == "head" else (s.patch_dim, n)
    return {
        "patch_embedding": (s.patch_dim, n), "patch_bias": (s.patch_dim, n),
        "query": (n, s.q_width), "key": (n, s.kv_width), "value": (n, s.kv_width),
        "attention_output": (s.q_width, n),
        "mlp_up": (n, s.d_ff), "mlp_gate": (n, s.d_ff), "mlp_down": (s.d_ff, n),
        "head": (n, s.outputs), "head_bias": (n, s.outputs),
        "relative_position": (1, s.heads), "scalar": (1, 1), "qk_scale": (1, s.q_width),
        "up_scale": (1, s.d_ff), "gate_scale": (1, s.d_ff), "logit_scale": (1, s.outputs),
    }.get(kind, (1, n))  # one-hot inputs and vectors of the stream


Tensor = namedtuple("Tensor", "name group kind stack layer")  # layer from 1; 0 outside the blocks


def tensors(s):
    found = []

    def add(name, group=None, kind=None, stack="none", layer=0):
        group = group or name.split(".")[-1]
        found.append(Tensor(name, group, kind or group, stack, layer))

    def norm(name, group, stack, layer):
        if s.blocks != "residual":
            return
        if s.norm_gain:
            add(name + "_gain", group + "_gain", None, stack, layer)
        if s.norm_bias:
            add(name + "_bias", group + "_bias", None, stack, layer)

    def block(prefix, stack, layer):
        def matrix(name, kind):
            add(prefix + name, kind, kind, stack, layer)
            if s.biases:
                add(prefix + name + "_bias", "hidden_bias", kind, stack, layer)

        def gain(name):
            if s.residual_gain == "channel":
                add(prefix + name, "residual_gain", None, stack, layer)
            elif s.residual_gain == "scalar":
                add(prefix + name, "residual_gain", "scalar", stack, layer)

        for cross in ("", "cross_") if stack == "decoder" else ("",):
            norm(prefix + cross + "attention_norm", "norm", stack, layer)
            for kind in ("query", "key", "value", "attention_output"):
                matrix(cross + kind, kind)
            gain(cross + "attention_gain")
        if s.relative_buckets and layer == 1:
            add(prefix + "relative_position", None, None, stack, layer)
        norm(prefix + "mlp_norm", "norm", stack, layer)
        for kind in ("mlp_up", "mlp_gate", "mlp_down") if s.gated_mlp else ("mlp_up", "mlp_down"):
            matrix(kind, kind)
        gain("mlp_gain")
        if s.blocks == "normalized":
            for kind in ("attention_step", "qk_scale", "mlp_step", "up_scale", "gate_scale"):
                add(prefix + kind, None, None, stack, layer)

    if s.blocks == "shallow":
        for kind in ("query", "key", "value"):
            add("layer.0." + kind, None, None, "main", 1)
        add("head")
        return found
    if s.input == "token":
        add("token_embedding")
    else:
        add("patch_embedding")
        if s.biases:
            add("patch_bias")
        if s.class_token:
            add("class_token")
    if s.learned_positions:
        for stack in s.stacks():
            add(("" if stack == "main" else stack + ".") + "position_embedding")
    if s.segments:
        add("segment_embedding")
    for stack in s.stacks():
        top = "" if stack == "main" else stack + "."
        if s.embedding_norm:
            norm(top + "embedding_norm", "embedding_norm", stack, 0)
        for layer in range(1, s.layers(stack) + 1):
            block((top or "layer.") + str(layer - 1) + ".", stack, layer)
        if s.final_norm:
            norm(top + "final_norm", "final_norm", stack, 0)
    if not s.tied_head:
        add("head")
    if s.head_bias:
        add("head_bias")
    if s.blocks == "normalized":
        add("logit_scale")
    return found


def size(t, s):
    """How many numbers a tensor holds."""
    fi, fo = fans(t.kind, s)
    rows = {"token_embedding": s.vocab, "position_embedding": s.context,
            "segment_embedding": s.segments, "relative_position": s.relative_buckets}
    if t.group in MATRICES + ("patch_embedding", "head"):
        return fi * fo
    return rows.get(t.group, 1) * fo


EMBEDDINGS = ("token_embedding", "position_embedding", "segment_embedding", "class_token")
MATRICES = ("query", "key", "value", "attention_output", "mlp_up", "mlp_gate", "mlp_down")
GAINS = ("norm_gain", "embedding_norm_gain", "final_norm_gain")

# ---------------------------------------------------------------------------------------------
# Rows: what one tensor gets. Rates are (SGD, AdamW); decay is in the coupled form.


class Row:
    def __init__(self, variance, distribution="normal", mean=0, multiplier=1, sgd=1, adamw=1,
                 decay=1, epsilon=1):
        if variance == 0:
            distribution = "constant"
        self.__dict__.update(locals())

    def but(self, **changes):
        values = {k: v for k, v in self.__dict__.items() if k != "self"}
        values.update(changes)
        values.pop("changes", None)
        return Row(**values)


def vector(group, **more):
    """Gains start at 1, biases at 0."""
    return Row(0, mean=1 if group in GAINS else 0, **more)


class Case:
    """One model under one rule."""

    def __init__(self, rule, optimizer, shape, base=None, **params):
        self.rule, self.optimizer, self.params = rule, optimizer, params
        self.given, self.given_base = shape, base
        self.s = Shape(shape, rule)
        self.b = Shape(base, rule) if base else None

    def get(self, name, default):
        return self.params.get(name, default)

    def fans(self, t):
        return fans(t.kind, self.s)

    def fan_ratios(self, t):
        """Target over base. Rules count fan-ins of biases and of inputs as constant."""
        fi, fo = self.fans(t)
        base_fi, base_fo = fans(t.kind, self.b)
        return fi / base_fi, fo / base_fo

    def m_width(self):
        return self.s.n / self.b.n

    def m_depth(self, stack):
        return self.s.layers(stack) / self.b.layers(stack)


# Baselines: one rate for everything -------------------------------------------------------------


def standard(c, t, gain=1):
    """LeCun et al. 1998, eq. (16), 1/fan-in; one active row of an embedding has fan-in 1."""
    if t.group in EMBEDDINGS:
        return Row(1)
    if t.group in MATRICES + ("patch_embedding", "head"):
        return Row(gain / c.fans(t)[0])
    return vector(t.group)


def he(c, t):
    """He et al. 2015, eq. (10): variance 2/fan-in."""
    return standard(c, t, gain=2)


def xavier(c, t):
    """Glorot, Bengio 2010, eq. (16): uniform with variance 2/(fi+fo). Vaswani et al. 2017, section
    3.4: embeddings times √n, hence variance 1/n."""
    if t.group == "token_embedding":
        return Row(1 / c.s.n, multiplier=sqrt(c.s.n))
    if t.group in EMBEDDINGS:
        return Row(1 / c.s.n)
    if t.group in MATRICES + ("patch_embedding", "head"):
        return Row(2 / sum(c.fans(t)), "uniform")
    return vector(t.group)


def pytorch(c, t):
    """torch.nn: Linear draws weight and bias from U(±1/√fi), Embedding from N(0, 1)."""
    if t.group in EMBEDDINGS[:3] + ("relative_position",):
        return Row(1)
    if t.group in MATRICES + ("patch_embedding", "head", "hidden_bias", "patch_bias", "head_bias"):
        return Row(1 / (3 * c.fans(t)[0]), "uniform")
    return vector(t.group)


def gpt2(c, t):
    """Radford et al. 2019, section 2.3: the ends of residual branches times 1/√(2L), on 0.02."""
    if t.group in ("attention_output", "mlp_down"):
        return Row(0.02**2 / (2 * c.s.layers(t.stack)))
    if t.group in EMBEDDINGS + MATRICES + ("patch_embedding", "head"):
        return Row(0.02**2)
    return vector(t.group, decay=0)


def bert(c, t):
    """Devlin et al. 2019: 0.02 everywhere, cut at two deviations; gains, biases not decayed."""
    if t.group in EMBEDDINGS + MATRICES + ("patch_embedding", "head"):
        return Row(0.02**2, "truncated_normal")
    return vector(t.group, decay=0)


# Depth ------------------------------------------------------------------------------------------


def deep_norm_numbers(c, stack):
    """Wang et al. 2022, Figure 2: α and β."""
    if stack == "main":
        return (2 * c.s.depth) ** 0.25, (8 * c.s.depth) ** -0.25
    if stack == "encoder":
        both = (c.s.encoder_depth**4 * c.s.depth) ** (1 / 16)
        return 0.81 * both, 0.87 / both
    return (3 * c.s.depth) ** 0.25, (12 * c.s.depth) ** -0.25


def deep_norm(c, t):
    """Xavier's normal with gain β on value, output and MLP, 1 on query and key."""
    if t.group in ("query", "key"):
        return Row(2 / sum(c.fans(t)))
    if t.group in MATRICES:
        return Row(deep_norm_numbers(c, t.stack)[1] ** 2 * 2 / sum(c.fans(t)))
    return xavier(c, t)


def ds_init(c, t):
    """Zhang et al. 2019, section 4.1: Xavier's bound of layer l times 1/√l."""
    row = xavier(c, t)
    return row.but(variance=row.variance / t.layer) if t.group in MATRICES else row


def layer_scale(c, t):
    """Touvron et al. 2021, section 2, and the released code: linear layers, positions and class
    token from a normal of 0.02 (the cut at ±2 is a hundred deviations away), the convolution over
    patches as PyTorch has it; no decay of vectors, positions and class token. Segments are as
    positions, tokens as linear layers: its models have neither."""
    if t.group == "residual_gain":
        depth = c.s.layers(t.stack)
        return Row(0, mean=0.1 if depth <= 18 else 1e-5 if depth <= 24 else 1e-6, decay=0)
    if t.group == "patch_embedding":
        return pytorch(c, t)
    if t.group == "patch_bias":
        return pytorch(c, t).but(decay=0)
    if t.group in ("position_embedding", "segment_embedding", "class_token"):
        return Row(0.02**2, decay=0)
    if t.group in EMBEDDINGS + MATRICES + ("head",):
        return Row(0.02**2)
    return vector(t.group, decay=0)


def rezero(c, t):
    """Bachlechner et al. 2021, eq. (2): a number per branch that starts at 0."""
    return Row(0, decay=0) if t.group == "residual_gain" else xavier(c, t)


def skip_init(c, t):
    """De, Smith 2020, section 4: the same on He's initialization."""
    return Row(0, decay=0) if t.group == "residual_gain" else he(c, t)


def relu_correlation(r):
    """Correlation of E[relu(x) relu(y)] for unit normals of correlation r, over E[relu(x)²]."""
    return r / 2 + sqrt(1 - r * r) / pi + r * asin(r) / pi


def correlation_after(c, layers, depth, memory=None):
    """r after some layers of a stack: Kedia et al. 2024, appendices B and M, as covariance over variance. `memory` is that of
    what cross attention reads."""
    keep = 1 - c.params["dropout"]
    branch = c.get("k", 2) / depth ** c.get("a", 1)
    skip = 1 if c.get("unit_skip", 0) else 1 - branch
    variance = c.get("input_variance", 1)
    covariance = c.params["input_correlation"] * keep * variance
    for _ in range(layers):
        for size in (1, memory * variance / covariance) if memory else (1,):
            variance = skip * variance + branch * size
            covariance = skip * covariance + branch * keep * size
        covariance = skip * covariance + branch * keep * relu_correlation(covariance / variance)
        variance = skip * variance + branch
    return covariance / variance


def token_correlation(c, t):
    """r before the attention of layer l."""
    memory = None
    if c.get("cross_attention", 0) and t.stack == "decoder":
        depth = c.s.layers("encoder")
        memory = correlation_after(c, depth, depth)
    return correlation_after(c, t.layer - 1, c.s.layers(t.stack), memory)


def deep_scale_lm(c, t, correlation=token_correlation):
    """Kedia et al. 2024, section 3.5 and appendix M; every number is a variance. The paper's 1/n of
    value and output is each matrix's fan-in; only their product enters the output's variance."""
    s, keep = c.s, 1 - c.params["dropout"]
    tables = c.get("embedding_tables", 0) or 1 + s.learned_positions + (s.segments > 0)
    if t.group in EMBEDDINGS:
        return Row(keep / tables)
    if t.group == "patch_embedding":
        return Row(keep / (tables * s.patch_dim))
    if t.group in ("query", "key"):
        return Row(1 / s.n)
    if t.group in ("value", "attention_output"):
        return Row(sqrt(keep / correlation(c, t)) / c.fans(t)[0])
    if t.group in MATRICES:
        return Row(sqrt(2 * keep / (s.d_ff * s.n)))
    return Row(1) if t.group == "head" else vector(t.group)


def deep_scale_lm_simple(c, t):
    """Section 3.5, "Simpler Initialization": value and output as the MLP's at F = 4n."""
    return deep_scale_lm(c, t, lambda *_: 2)


# Width ------------------------------------------------------------------------------------------


def neural_tangent(c, t, s=0):
    """Dinan, Yaida, Zhang 2023: (1.25)-(1.34), (1.99)-(1.116), footnotes 8 and 26. An AdamW rate
    is the SGD rate times the gradient's size |g|, (1.95), and epsilon follows |g|. A gradient's
    norm is spread over fan-out outputs: |g| is 1/√fan-out, times n^(-s/2) through the head."""
    n = c.s.n
    fi, fo = c.fans(t)
    power = float(n) ** s
    gradient = 1 / sqrt(fo * power)
    sgd, variance = power, 0
    if t.group in EMBEDDINGS:
        variance = 1
    elif t.group in MATRICES + ("patch_embedding",):
        variance, sgd = 1 / fi, power / fi
    elif t.group == "head":
        variance, sgd, gradient = 1 / (n * power), 1 / n, 1 / sqrt(fo)
    elif t.group == "head_bias":
        sgd, gradient = 1, 1 / sqrt(fo)
    adamw = sgd * gradient
    if not c.get("mlp_ratio_in_rates", 1) and t.group in ("mlp_up", "mlp_gate", "mlp_down"):
        adamw *= sqrt(c.s.d_ff / n) if t.group != "mlp_down" else c.s.d_ff / n
    variance *= c.get("C_" + t.group, 1)
    constant = c.get("Lambda_" + t.group, 1)
    sgd, adamw = sgd * constant, adamw * constant
    # (1.94): the decay is free of the group's rate, hence divided by it in the coupled form.
    decay = 0 if t.group == "head_bias" else 1 / (sgd if c.optimizer == "sgd" else adamw)
    mean = 1 if t.group in GAINS else 0
    return Row(variance, mean=mean, sgd=sgd, adamw=adamw, decay=decay, epsilon=gradient)


def meta_principled(c, t):
    return neural_tangent(c, t, c.get("s", 0.5))


def of_both(of, c, t):
    """A number of a matrix's fans, over that of the base's matrix."""
    (fi, fo), (m_fi, m_fo) = c.fans(t), c.fan_ratios(t)
    return of(fi, fo) / of(fi / m_fi, fo / m_fo)


# What users' optimizers multiply the step of a matrix by. Hidden matrices alone have Muon, the rest AdamW;
# arXiv:2512.05620: steps with singular values of 1 have the rate √(fo/fi).
MUON = {"muon-plain": lambda c, t: 1,
        "muon-fan-ratio": lambda c, t: of_both(lambda fi, fo: sqrt(fo / fi), c, t),
        "muon-original": lambda c, t: of_both(lambda fi, fo: sqrt(max(1, fo / fi)), c, t),
        "muon-spectral": lambda c, t: of_both(lambda fi, fo: sqrt(max(fi, fo)), c, t),
        "muon-match-adamw": lambda c, t: of_both(lambda fi, fo: 0.2 * sqrt(max(fi, fo)), c, t)}


def maximal_update(c, t):
    """Yang et al. 2022, Tables 3, 8, 9 and section B.3, as ratios; decay independent of the width.
    Epsilon follows the gradient's entries. Outputs of a matrix lead through weights of size 1/√fo,
    with incoherent signs, to a stream whose gradient is 1/m_N: 1/√(m_fo m_N), of the bias as well,
    which is B.3's 1/n where all widths grow alike."""
    m_n, table = c.m_width(), c.get("table", 8)
    fi, fo = c.fan_ratios(t)
    if t.group == "head":
        variance, multiplier, sgd, adamw, epsilon = {
            3: (1 / fi**2, 1, 1 / fi, 1 / fi, 1),
            8: (1, 1 / fi, fi, 1, 1 / fi),
            9: (1 / fi, 1 / sqrt(fi), 1, 1 / sqrt(fi), 1 / sqrt(fi))}[table]
        row = Row(0 if c.get("zero_head", 0) else variance, multiplier=multiplier, sgd=sgd,
                  adamw=adamw, epsilon=epsilon)
    elif t.group in MATRICES:
        zero = t.group == "query" and c.get("zero_query", 0)
        row = Row(0 if zero else 1 / fi, sgd=fo / fi, adamw=1 / fi, epsilon=1 / sqrt(fo * m_n))
        if c.optimizer in MUON:
            row = row.but(adamw=sqrt(fo / fi) / MUON[c.optimizer](c, t), epsilon=1)
    else:  # input weights, all gains and biases
        row = Row(1) if t.group in EMBEDDINGS + ("patch_embedding",) else vector(t.group)
        gradient = 1 if t.group == "head_bias" else 1 / sqrt(fo * m_n)
        row = row.but(sgd=fo, epsilon=gradient)
        if table == 9:
            row = row.but(variance=row.variance / fo, mean=row.mean / sqrt(fo),
                          multiplier=sqrt(fo), sgd=1, adamw=1 / sqrt(fo),
                          epsilon=gradient * sqrt(fo))
    return row.but(decay=1 / (row.sgd if c.optimizer == "sgd" else row.adamw))


def complete_p(c, t, alpha=None):
    """Dey et al. 2025, Table 1, AdamW, with each matrix's own fans as in maximal update."""
    alpha = c.get("alpha", 1) if alpha is None else alpha
    m_n = c.m_width()
    fi, fo = c.fan_ratios(t)
    if t.group in EMBEDDINGS + ("patch_embedding",):
        return Row(1, epsilon=1 / m_n)
    if t.group == "head":
        return Row(1, multiplier=1 / m_n, epsilon=1 / m_n)
    if t.group == "head_bias":
        return vector(t.group, decay=0)
    if t.layer == 0:
        return vector(t.group, decay=0, epsilon=1 / m_n)
    m_l = c.m_depth(t.stack)
    if t.group in MATRICES:
        return Row(1 / fi, adamw=m_l ** (alpha - 1) / fi, decay=fi,
                   epsilon=1 / (sqrt(fo * m_n) * m_l**alpha))
    return vector(t.group, adamw=m_l ** (alpha - 1), decay=0, epsilon=1 / (m_n * m_l**alpha))


def depth_mup(c, t):
    return complete_p(c, t, 0.5)


# Normalized transformers ------------------------------------------------------------------------


def normalized(c, t):
    """Shigida, Hanin, Gromov 2026, Tables 1 and 2. A rescaler is stored at `scale` and acts as
    `init`: mean = scale, multiplier = init/scale. No decay."""
    n, rule = c.s.n, c.rule
    horizon, m_n, m_l = 1, 1, 1
    if rule != "ngpt":
        m_n, m_l = c.m_width(), c.m_depth("main")
    if rule.startswith("nu-gpt") and c.s.iterations:
        horizon = (c.s.iterations / c.b.iterations) ** (-1 / 3)
    if t.group in MATRICES + ("token_embedding", "head"):
        inputs, hidden, outputs = {
            "ngpt": (1, 1, 1),
            "ngpt-depth-mup": (m_n**-0.5, 1 / (m_n * sqrt(m_l)), 1 / m_n),
            "ngpt-complete-p": (m_n**-0.5, 1 / m_n, 1 / m_n),
            "nu-gpt": (c.get("input_rate", 1) * m_n**-0.5, m_n ** -c.get("alignment", 0.75),
                       c.get("output_rate", 1) * m_n ** -c.get("alignment", 0.75)),
            "nu-gpt-full-align": (m_n**-0.5, 1 / m_n, 1 / m_n)}[rule]
        rate = {"token_embedding": inputs, "head": outputs}.get(t.group, hidden)
        return Row(1 / n, adamw=horizon * rate, decay=0)
    scale = 1 / sqrt(n) if rule == "ngpt" else 0.03
    if t.group in ("attention_step", "mlp_step"):
        init = 0.05 / {"ngpt": 1, "ngpt-depth-mup": sqrt(m_l)}.get(rule, m_l)
    elif t.group in ("up_scale", "gate_scale"):
        init, scale = 1, 1
    else:
        init = sqrt(m_n) if t.group == "logit_scale" and rule.startswith("nu-gpt") else 1
    return Row(0, mean=scale, multiplier=init / scale, adamw=horizon, decay=0)


# Shallow encoder --------------------------------------------------------------------------------


def shallow(c, t):
    """Wu, Liu, Chrysos, Cevher 2023, table of initializations: η and τ₁."""
    d, d_m = c.s.patch_dim, c.s.n
    inner, outer, tau = {"shallow-lecun": (1 / d, 1 / d_m, 1),
                         "shallow-he": (2 / d, 2 / d_m, 1),
                         "shallow-ntk": (1, 1, 1 / sqrt(d_m))}[c.rule]
    return Row(outer, multiplier=tau) if t.group == "head" else Row(inner)


RULES = {
    "standard": standard, "he": he, "xavier": xavier, "pytorch": pytorch, "gpt2": gpt2,
    "bert": bert, "deep-norm": deep_norm, "ds-init": ds_init, "layer-scale": layer_scale,
    "rezero": rezero, "skip-init": skip_init, "deep-scale-lm": deep_scale_lm,
    "deep-scale-lm-simple": deep_scale_lm_simple, "neural-tangent": neural_tangent,
    "meta-principled": meta_principled, "maximal-update": maximal_update,
    "complete-p": complete_p, "depth-mup": depth_mup,
    **{rule: normalized for rule in NORMALIZED}, **{rule: shallow for rule in SHALLOW},
}

# ---------------------------------------------------------------------------------------------
# The model as a whole.


def attention_scale(c):
    """Factor on q·k."""
    if c.rule in NORMALIZED:
        return sqrt(c.s.head_dim)
    if c.rule in SHALLOW:
        return c.s.n ** -c.get("tau0", 0.5)
    if c.rule in ("maximal-update", "complete-p", "depth-mup"):
        return sqrt(c.b.head_dim) / c.s.head_dim  # section B.1: 1/√C at the base
    return 1 / sqrt(c.s.head_dim)


def embedding_multiplier(c):
    if c.rule in ("xavier", "deep-norm", "ds-init", "rezero") and c.s.input == "token":
        return sqrt(c.s.n)
    if c.rule == "maximal-update" and c.get("table", 8) == 9:
        return sqrt(c.m_width())
    return 1


def logit_multiplier(c):
    """Factor on W h; of a tied head W is the stored token embedding."""
    n, tied = c.s.n, c.s.tied_head
    if c.rule in ("standard", "he", "skip-init"):
        return 1 / sqrt(n) if tied else 1
    if c.rule in ("deep-scale-lm", "deep-scale-lm-simple"):
        return 1 / sqrt(n)  # appendix M
    if c.rule in ("neural-tangent", "meta-principled"):
        s = 0 if c.rule == "neural-tangent" else c.get("s", 0.5)
        return n ** (-(1 + s) / 2) if tied else 1  # N_rescale, (1.34)
    if c.rule in ("complete-p", "depth-mup"):
        return 1 / c.m_width()
    if c.rule == "maximal-update":
        m = c.m_width()
        untied = {3: 1, 8: 1 / m, 9: 1 / sqrt(m)}
        return {3: 1 / m, 8: 1 / m, 9: 1 / sqrt(m)}[c.get("table", 8)] if tied else untied[
            c.get("table", 8)]
    return 1 / sqrt(n) if c.rule == "shallow-ntk" else 1


def residual(c, stack):
    """Skip and branch factors of a layer's blocks."""
    if c.rule == "deep-norm":
        return deep_norm_numbers(c, stack)[0], 1
    if c.rule in ("deep-scale-lm", "deep-scale-lm-simple"):
        branch = c.get("k", 2) / c.s.layers(stack) ** c.get("a", 1)
        return 1 if c.get("unit_skip", 0) else sqrt(1 - branch), sqrt(branch)
    if c.rule in ("complete-p", "depth-mup"):
        alpha = 0.5 if c.rule == "depth-mup" else c.get("alpha", 1)
        return 1, c.m_depth(stack) ** -alpha
    return 1, 1


# ---------------------------------------------------------------------------------------------
# Cases. Sizes are such that no two of them can be mixed up.

GPT = dict(d_model=768, depth=4, heads=12, context=1024, vocab=50257)
# Grouped queries, H·C ≠ n, d_ff ≠ 4n, a gate, rotary positions, no biases, RMS norms.
LLAMA = dict(d_model=1024, depth=3, heads=16, kv_heads=4, head_dim=96, d_ff=2816, vocab=32000,
             gated_mlp=True, biases=False, norm_bias=False, learned_positions=False)
# The same without a gate.
GROUPED = dict(LLAMA, gated_mlp=False)
# A tied head with a bias, segments, a norm after the embeddings.
BERT = dict(d_model=320, depth=2, heads=5, d_ff=1000, context=128, vocab=30522, segments=2,
            embedding_norm=True, tied_head=True, head_bias=True)
VIT = dict(input="patch", d_model=192, depth=3, heads=3, d_ff=640, context=50, patch_dim=588,
           classes=100, class_token=True)
# Two stacks; H·C ≠ n.
T5 = dict(d_model=512, encoder_depth=3, depth=2, heads=12, head_dim=64, d_ff=1280, vocab=32128,
          relative_buckets=32, learned_positions=False, biases=False, norm_bias=False,
          tied_head=True)
BART = dict(d_model=256, encoder_depth=2, depth=3, heads=4, context=64, vocab=1000)

# Targets and bases: all sizes grow apart; only the base has groups and H·C ≠ n.
PAIRS = [
    (dict(GPT, d_model=1600, depth=48, heads=25), dict(GPT, depth=12)),
    (dict(LLAMA, d_model=4096, depth=32, heads=24, kv_heads=8, head_dim=128, d_ff=14336),
     dict(LLAMA, d_model=256, depth=4, heads=6, kv_heads=6, head_dim=64, d_ff=1024)),
    (dict(GPT, d_model=1152, depth=18, heads=18),
     dict(GPT, depth=6, heads=10, kv_heads=2, head_dim=96, d_ff=2000)),
    (dict(BERT, d_model=1280, depth=10, heads=20), BERT),
    (dict(VIT, d_model=384, depth=12, heads=6), VIT),
    (dict(T5, d_model=2048, encoder_depth=12, depth=18, heads=24, d_ff=10240), T5),
    (dict(BART, d_model=1024, encoder_depth=6, depth=12, heads=16), BART),
]


def cases():
    for rule in ("standard", "he", "xavier", "pytorch", "gpt2", "bert", "deep-norm", "ds-init",
                 "layer-scale", "rezero", "skip-init", "neural-tangent", "meta-principled"):
        for optimizer in ("sgd", "adamw"):
            for shape in (GPT, LLAMA, BERT, VIT, T5, BART):
                yield Case(rule, optimizer, shape)
    # A head of its own where the rule's default is to tie, and the other way round.
    for rule in ("gpt2", "bert", "neural-tangent", "meta-principled"):
        yield Case(rule, "adamw", dict(GPT, tied_head=False))
    for rule in ("standard", "he", "xavier", "pytorch", "deep-norm"):
        yield Case(rule, "adamw", dict(GPT, tied_head=True))
    for depth in (1, 18, 19, 24, 25):
        yield Case("layer-scale", "adamw", dict(VIT, depth=depth))
        yield Case("gpt2", "adamw", dict(GPT, depth=depth))
        yield Case("deep-norm", "adamw", dict(GROUPED, depth=depth))
    yield Case("ds-init", "adamw", dict(GPT, depth=12))
    # Kedia et al. 2024: measured for text (appendix A) and for images (appendix H).
    of_text, of_images = (dict(dropout=0.1, input_correlation=r) for r in (0.221, 0.46))
    for rule in ("deep-scale-lm", "deep-scale-lm-simple"):
        for optimizer in ("sgd", "adamw"):
            for shape in (GPT, GROUPED, dict(BERT, depth=5), dict(T5, depth=4),
                          dict(BART, encoder_depth=4)):
                yield Case(rule, optimizer, shape, **of_text)
            yield Case(rule, optimizer, VIT, **of_images)
        for params in (dict(dropout=0, input_correlation=0.3), dict(dropout=0.25, k=1),
                       dict(embedding_tables=1), dict(a=1.5), dict(k=0.5, a=2, dropout=0.5)):
            yield Case(rule, "adamw", dict(GPT, depth=10), **{**of_text, **params})
        yield Case(rule, "adamw", dict(VIT, depth=6), **{**of_images, "input_correlation": 0.1})
    for params in (dict(unit_skip=1), dict(unit_skip=1, k=20), dict(unit_skip=1, input_variance=2.2)):
        yield Case("deep-scale-lm", "adamw", dict(GPT, depth=6), **of_text, **params)
    yield Case("deep-scale-lm", "adamw", dict(BART, encoder_depth=4), **of_text, cross_attention=1)
    for rule in ("neural-tangent", "meta-principled"):
        for optimizer in ("sgd", "adamw"):
            for shape in (LLAMA, VIT):
                yield Case(rule, optimizer, shape, mlp_ratio_in_rates=0)
            yield Case(rule, optimizer, VIT, C_query=0.5, C_mlp_down=1.6, C_head=0.75,
                       Lambda_key=2, Lambda_head=3, Lambda_patch_embedding=0.25,
                       Lambda_mlp_up=0.5)
    for s in (0, 0.25, 0.3, 1):
        for optimizer in ("sgd", "adamw"):
            for shape in (LLAMA, VIT, BART):
                yield Case("meta-principled", optimizer, shape, s=s)
    for target, base in PAIRS:
        for table in (3, 8, 9):
            for optimizer in ("sgd", "adamw"):
                yield Case("maximal-update", optimizer, target, base, table=table)
        for optimizer in MUON:
            yield Case("maximal-update", optimizer, target, base)
        for alpha in (0.5, 0.75, 1):
            yield Case("complete-p", "adamw", target, base, alpha=alpha)
        yield Case("depth-mup", "adamw", target, base)
    for table in (3, 8, 9):
        yield Case("maximal-update", "adamw", *PAIRS[0], table=table, zero_head=1, zero_query=1)
        tied = [dict(shape, tied_head=True) for shape in PAIRS[1]]
        yield Case("maximal-update", "sgd", *tied, table=table)
    yield Case("maximal-update", "adamw", *PAIRS[1])
    yield Case("complete-p", "adamw", *PAIRS[1])
    yield Case("complete-p", "adamw", *[dict(shape, tied_head=True) for shape in PAIRS[0]])
    for rule in NORMALIZED:
        for target, base in PAIRS[:3]:
            yield Case(rule, "adamw", target, base)
            yield Case(rule, "adamw", dict(target, iterations=80000), dict(base, iterations=3000))
    for params in (dict(alignment=0.5), dict(alignment=1), dict(alignment=0.625, input_rate=2),
                   dict(output_rate=0.5)):
        yield Case("nu-gpt", "adamw", dict(PAIRS[0][0], iterations=50000),
                   dict(PAIRS[0][1], iterations=200), **params)
    for rule in SHALLOW:
        for optimizer in ("sgd", "adamw"):
            for tau in (0.5, 1):
                yield Case(rule, optimizer, VIT, tau0=tau)
                yield Case(rule, optimizer, dict(VIT, d_model=60, patch_dim=7), tau0=tau)
        yield Case(rule, "sgd", VIT)


# ---------------------------------------------------------------------------------------------
# Output.


def text(value):
    """JSON of a value; numbers to 15 digits, so that the last bit of a power does not show."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return '"' + value + '"'
    if isinstance(value, dict):
        return "{" + ", ".join(text(k) + ": " + text(v) for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(text(v) for v in value) + "]"
    return str(value) if isinstance(value, int) else "%.15g" % value


def pattern(t):
    """The name with a star for the layer."""
    return t.name.replace(".%d." % (t.layer - 1), ".*.", 1)


def tensor_rows(c):
    """Rows of the table, each with the names of all tensors that it is for."""
    values = {}
    by_pattern = {}
    for t in tensors(c.s):
        row = RULES[c.rule](c, t)
        rate = row.sgd if c.optimizer == "sgd" else row.adamw
        values[t] = (row.distribution, row.variance, row.mean, row.multiplier, rate, row.decay,
                     None if c.optimizer == "sgd" else row.epsilon)
        by_pattern.setdefault(pattern(t), []).append(t)
    names = {}
    for star, members in by_pattern.items():
        if len({text(values[t]) for t in members}) == 1:
            names.setdefault(text(values[members[0]])[1:-1], []).append(star)
        else:
            for t in members:
                names.setdefault(text(values[t])[1:-1], []).append(t.name)
    return ["[" + text(" ".join(list_)) + ", " + row + "]" for row, list_ in names.items()]


def case_text(c):
    head = {"policy": c.rule, "optimizer": c.optimizer, "shape": c.given}
    if c.given_base:
        head["base"] = c.given_base
    if c.params:
        head["params"] = c.params
    lines = [text(key) + ": " + text(value) for key, value in head.items()]
    lines.append('"model": ' + text({
        "parameters": sum(size(t, c.s) for t in tensors(c.s)),
        "attention_scale": attention_scale(c), "embedding_multiplier": embedding_multiplier(c),
        "logit_multiplier": logit_multiplier(c),
        "residuals": {stack: residual(c, stack) for stack in c.s.stacks()}}))
    lines.append('"tensors": [\n' + ",\n".join(tensor_rows(c)) + "]")
    return "{" + ",\n".join(lines) + "}"


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--check"]):
        sys.exit("usage: generate_rules.py FILE [--check]")
    file = pathlib.Path(sys.argv[1])
    written = ('{"about": "Expected plans of every rule; README.md has the conventions.",\n"cases": [\n'
               + ",\n".join(case_text(c) for c in cases()) + "\n]}\n").encode()
    if not sys.argv[2:]:
        file.write_bytes(written)
    elif file.read_bytes() != written:
        sys.exit(f"{file} has other bytes than this program writes")


if __name__ == "__main__":
    main()
