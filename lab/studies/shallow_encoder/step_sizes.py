#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Steps of the theorem's order n^-1/2 for 16 and 256 samples: is the loss ever above where it started?

  python3 lab/studies/shallow_encoder/step_sizes.py

needs NumPy. NTK with scores over the width, width 256, inputs of four random tokens of 16 features and length one; steps are
4/(λ √n), λ the largest eigenvalue of the limit's parts of w_O and W_V for 16 samples, so that they are 1/λ for these.
"""

import numpy as np

WIDTH, STEPS = 256, 30


def largest_eigenvalue(x):
    mean = x.mean(1)
    gram = mean @ mean.T
    sizes = np.sqrt(np.outer(np.diag(gram), np.diag(gram)))
    angle = np.arccos(np.clip(gram / sizes, -1, 1))
    return np.linalg.eigvalsh((sizes * np.sin(angle) + 2 * (np.pi - angle) * gram) / (2 * np.pi))[-1]


def losses(x, y, rate, draw):
    """Of gradient descent on all weights, before each step."""
    query, key, value = (draw.normal(size=(WIDTH, x.shape[2])) for _ in range(3))
    output = draw.normal(size=WIDTH)
    found = []
    for _ in range(STEPS + 1):
        scores = x @ (query.T @ key / WIDTH) @ x.transpose(0, 2, 1)
        share = np.exp(scores - scores.max(2, keepdims=True))
        share /= share.sum(2, keepdims=True)
        read = share @ x
        a = read @ value.T
        scale = WIDTH**-0.5 / x.shape[1]
        residual = scale * (np.maximum(a, 0) @ output).sum(1) - y
        found.append(residual @ residual / 2)
        da = (a > 0) * output * (scale * residual)[:, None, None]
        dshare = da @ value @ x.transpose(0, 2, 1)
        dscores = share * (dshare - (share * dshare).sum(2, keepdims=True))
        both = np.einsum("nta,ntu,nub->ab", x, dscores, x) / WIDTH
        output = output - rate * np.einsum("ntm,n->m", np.maximum(a, 0), scale * residual)
        value = value - rate * np.einsum("ntm,ntd->md", da, read)
        query, key = query - rate * key @ both.T, key - rate * query @ both
    return found


for seed in range(2):
    rng = np.random.default_rng(seed)
    tokens = rng.normal(size=(256, 4, 16))
    tokens /= np.linalg.norm(tokens, axis=2, keepdims=True)
    targets = rng.normal(size=256)
    few, many = largest_eigenvalue(tokens[:16]), largest_eigenvalue(tokens)
    highest = []
    for n in (16, 256):
        loss = losses(tokens[:n], targets[:n], 4 / few / n**0.5, rng)
        highest.append(max(loss[1:]) / loss[0])
    print(f"largest eigenvalue {many / few:.1f} times as large; highest loss over the first: "
          f"{highest[0]:.2f} for 16 samples, {highest[1]:.1f} for 256")
