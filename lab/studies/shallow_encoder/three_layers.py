#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""The width that a ReLU network of three layers needs for n samples, as shallow_samples has it of the encoder.

  python3 lab/studies/shallow_encoder/three_layers.py

needs NumPy. The network is w·ReLU(W₂ ReLU(W₁ x)) with LeCun's variances; x are four random tokens of 16 features and length
one, one after the other. F has a row of last hidden features for each sample.
"""

import math

import numpy as np

np.seterr(over="ignore", invalid="ignore")  # of networks that diverge

WIDTHS, SAMPLES, SEEDS, STEPS, SHARE = (16, 32, 64, 128, 256, 512), (4, 8, 16, 32), 4, 50, 0.25


def relu_kernel(k):
    """E ReLU(u) ReLU(v) of normal u and v with the covariances k."""
    sizes = np.sqrt(np.outer(np.diag(k), np.diag(k)))
    angle = np.arccos(np.clip(k / sizes, -1, 1))
    return (sizes * np.sin(angle) + (np.pi - angle) * k) / (2 * np.pi)


def least(k):
    return float(np.linalg.eigvalsh(k)[0])


def needed_conditions(x, y, width, seed):
    """λ of F Fᵀ at the start over its limit, and the lowest in training over that at the start."""
    draw = np.random.default_rng([seed, width])
    first, second, last = (draw.normal(size=(rows, columns)) / math.sqrt(columns)
                           for rows, columns in ((width, len(x)), (width, width), (1, width)))
    limit = width * least(relu_kernel(relu_kernel(x.T @ x / len(x))))
    start = kept = rate = None
    for step in range(STEPS + 1):
        h = np.maximum(first @ x, 0)
        g = np.maximum(second @ h, 0)
        if not np.isfinite(g).all():
            return start / limit, 0  # it diverged
        if step in (0, 1, 2, 4, 8, 16, 32, STEPS):
            now = max(least(g.T @ g), 0)
            if step == 0:
                start, kept = now, 1
                dg = last.T * (g > 0)
                dh = (second.T @ dg) * (h > 0)
                rate = 1 / np.linalg.eigvalsh(g.T @ g + (h.T @ h) * (dg.T @ dg) + (x.T @ x) * (dh.T @ dh))[-1]
            kept = min(kept, now / start if start > 0 else 0)
        residual = last @ g - y
        dg = (last.T @ residual) * (g > 0)
        dh = (second.T @ dg) * (h > 0)
        last, second, first = last - rate * residual @ g.T, second - rate * dg @ h.T, first - rate * dh @ x.T
    return start / limit, kept


def main():
    names = ("at initialization", "in training too")
    points = {name: [] for name in names}
    for n in SAMPLES:
        draw = np.random.default_rng(n)
        tokens = draw.normal(size=(n, 4, 16))
        x = (tokens / np.linalg.norm(tokens, axis=2, keepdims=True)).reshape(n, 64).T
        y = draw.normal(size=(1, n))
        for seed in range(SEEDS):
            found = dict.fromkeys(names, math.nan)
            holds = dict.fromkeys(names, True)
            for width in reversed(WIDTHS):
                initial, kept = needed_conditions(x, y, width, seed)
                for name, good in zip(names, (initial >= SHARE, initial >= SHARE and kept >= SHARE)):
                    holds[name] = holds[name] and good
                    if holds[name]:
                        found[name] = width
            for name in names:
                points[name].append((n, found[name]))
    for name, all_points in points.items():
        means = [2 ** np.mean([math.log2(w) for m, w in all_points if m == n]) for n in SAMPLES]
        logs = np.log([p for p in all_points if not math.isnan(p[1])])
        (slope, _), covariance = np.polyfit(logs[:, 0], logs[:, 1], 1, cov=True)
        print(f"{name:18}", *(f"{width:6.0f}" for width in means),
              f"  power of n {slope:+.3f} ± {2.14 * math.sqrt(covariance[0, 0]):.2f}")


if __name__ == "__main__":
    main()
