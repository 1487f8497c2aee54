#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""The other side of lab/timing/kernels: the same Gram matrices in numpy, vectorized over blocks of pairs.

    kernels_numpy.py --digits digits.csv --images 1000 --stride 2 --depth 8 --processes 2

Answers lines on standard input: "run" computes both matrices and says how long that took, "write FILE"
writes the last ones as raw doubles. With one process numpy is called as one usually does, and its BLAS has
all cores; with more, each has a share of the blocks. The size of the blocks is the fastest of a few, tried
at the start: small enough for the cache, large enough to make numpy's own cost per call small.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import sys
import time

if "--processes" in sys.argv and sys.argv[sys.argv.index("--processes") + 1] != "1":
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = "1"  # processes have the cores

import openblas  # noqa: E402

openblas.choose_kernels()
import numpy as np  # noqa: E402

WEIGHT, BIAS, ALPHA, PHI = 1.7562, 0.1841, 0.75, 5.0
EPSILON = 8 * 2.0**-52


def windows(image, stride):
    """(side, side) pixels -> (T, (stride + 2)²) features, pixels normalized."""
    image = (image - image.mean()) / (image.std() + 1e-15)
    image = np.pad(image, 1)
    across = (image.shape[0] - 2) // stride
    return np.stack([image[i * stride:i * stride + stride + 2, j * stride:j * stride + stride + 2].ravel()
                     for i in range(across) for j in range(across)])


def relu(k, theta, roots, other):
    """In place: the kernels after ReLU, k and theta (P, Q, T, T), roots of variances (P, T) and (Q, T)."""
    norm = roots[:, None, :, None] * other[None, :, None, :]
    cosine = np.divide(k, norm, out=k)
    np.clip(cosine, -1, 1, out=cosine)
    angle = np.pi - np.arccos(cosine)
    theta *= angle
    theta /= 2 * np.pi
    angle *= cosine
    np.multiply(cosine, cosine, out=k)
    np.subtract(1, k, out=k)
    np.sqrt(k, out=k)
    k += angle
    norm /= 2 * np.pi
    k *= norm


def dense(k, theta):
    k *= WEIGHT
    k += BIAS
    theta *= WEIGHT
    theta += k


def softmax(scores):
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return scores / scores.sum(axis=-1, keepdims=True)


class Inputs:
    """All that the layers need of every input by itself."""

    def __init__(self, x, depth):
        self.x = x
        n, tokens, features = x.shape
        side = int(round(tokens**0.5))
        place = np.stack(np.divmod(np.arange(tokens), side), axis=1) / side
        self.r = np.exp(-PHI * ((place[:, None, :] - place[None, :, :])**2).sum(axis=-1))
        k = x @ x.transpose(0, 2, 1) / features
        self.roots = []
        for _ in range(depth):
            k = WEIGHT * k + BIAS
            v = np.einsum("naa->na", k)
            root = np.sqrt(v)
            self.roots.append(root)
            norm = root[:, :, None] * root[:, None, :]
            cosine = np.clip(k / norm, -1, 1)
            cosine[cosine > 1 - EPSILON] = 1
            k = norm / (2 * np.pi) * (np.sqrt(1 - cosine**2) + (np.pi - np.arccos(cosine)) * cosine)
        seen = ALPHA * k + (1 - ALPHA) * self.r
        self.weights = softmax(seen)
        k = self.weights @ seen @ self.weights.transpose(0, 2, 1)
        self.inverse = 1 / np.sqrt(np.einsum("naa->na", k))


def block(inputs, depth, rows, columns):
    """Both kernels of rows of inputs with columns of inputs."""
    x, y = inputs.x[rows], inputs.x[columns]
    tokens, features = x.shape[1:]
    k = (x.reshape(-1, features) @ y.reshape(-1, features).T / features)
    k = np.ascontiguousarray(k.reshape(len(x), tokens, len(y), tokens).transpose(0, 2, 1, 3))
    theta = np.zeros_like(k)
    for roots in inputs.roots:
        dense(k, theta)
        relu(k, theta, roots[rows], roots[columns])
    k = ALPHA * k + (1 - ALPHA) * inputs.r
    theta = ALPHA * theta + (1 - ALPHA) * inputs.r
    left, right = inputs.weights[rows][:, None], inputs.weights[columns][None]
    theta += 2 * k
    # Flatten reads the diagonal only: the second product is one of rows.
    right_k = left @ k
    right_theta = left @ theta
    k = (right_k * right).sum(axis=-1)
    theta = (right_theta * right).sum(axis=-1)
    inverse = inputs.inverse[rows][:, None] * inputs.inverse[columns][None]
    k = (k * inverse).mean(axis=-1)
    theta = (theta * inverse).mean(axis=-1)
    k = WEIGHT * k + BIAS
    return k, k + WEIGHT * theta


INPUTS = None  # of the processes, which inherit it
DEPTH = 0


def work(task):
    return task, block(INPUTS, DEPTH, slice(*task[0]), slice(*task[1]))


def gram(pool, n, size):
    edges = [(i, min(i + size, n)) for i in range(0, n, size)]
    tasks = [(a, b) for i, a in enumerate(edges) for b in edges[i:]]
    matrices = np.empty((2, n, n))
    done = pool.imap_unordered(work, tasks, chunksize=max(1, len(tasks) // 200)) if pool else map(work, tasks)
    for (a, b), parts in done:
        for matrix, part in zip(matrices, parts):
            matrix[a[0]:a[1], b[0]:b[1]] = part
            matrix[b[0]:b[1], a[0]:a[1]] = part.T
    return matrices


def main():
    global INPUTS, DEPTH
    parser = argparse.ArgumentParser()
    parser.add_argument("--digits", required=True)
    parser.add_argument("--images", type=int, required=True)
    parser.add_argument("--stride", type=int, required=True)
    parser.add_argument("--depth", type=int, required=True)
    parser.add_argument("--processes", type=int, required=True)
    options = parser.parse_args()
    rows = np.loadtxt(options.digits, delimiter=",")[:options.images, :-1]
    side = int(round(rows.shape[1]**0.5))
    x = np.stack([windows(row.reshape(side, side), options.stride) for row in rows])
    DEPTH = options.depth
    INPUTS = Inputs(x, options.depth)
    several = options.processes > 1
    with multiprocessing.get_context("fork").Pool(options.processes) if several else contextlib.nullcontext() as pool:
        tried = {}
        few = min(options.images, 96)
        for size in (1, 2, 4, 8, 16, 32):
            gram(pool, few, size)
            start = time.perf_counter()
            gram(pool, few, size)
            tried[size] = time.perf_counter() - start
        size = min(tried, key=tried.get)
        print(json.dumps({"numpy": np.__version__, "processes": options.processes, "block": size,
                          "seconds_of_blocks": tried}), flush=True)
        matrices = None
        for line in sys.stdin:
            words = line.split()
            if words[0] == "run":
                start = time.perf_counter()
                matrices = gram(pool, options.images, size)
                print(json.dumps({"seconds": time.perf_counter() - start}), flush=True)
            else:
                matrices.tofile(words[1])
                print("{}", flush=True)


if __name__ == "__main__":
    main()
