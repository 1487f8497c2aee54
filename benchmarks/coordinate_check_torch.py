#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""The time of a coordinate check beside the same runs in PyTorch, eager mode.

    python3 benchmarks/coordinate_check_torch.py build/native/tools/coordinate_check

Both train a pre-norm GPT (depth 2, sequences of 64, batches of 8, vocabulary 256, heads of 16) with
AdamW at widths 64 to 1024, for 10 steps from each seed, and measure the activations of every block at
every step. Ours besides measures changes, gradients and updates, and judges. They alternate. PyTorch
runs in the configuration that is fastest here, all cores in one process or one in each of several,
each tried once on one seed per process. Give OPENBLAS_CORETYPE where OpenBLAS does not know the processor.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

WIDTHS = (64, 128, 256, 512, 1024)


def worker(seeds, threads):
    """Runs the seeds that it is given and answers the seconds, without those of the imports."""
    import torch
    import torch.nn.functional as F

    import step_torch

    torch.set_num_threads(threads)

    def run(width, seed):
        torch.manual_seed(seed)
        options = argparse.Namespace(width=width, depth=2, heads=width // 16, vocab=256, seq=64, init_std=width**-0.5)
        model = step_torch.GPT(options)
        sizes = []

        def record(_module, _inputs, output):
            sizes.append(output.detach().abs().mean().item())

        for module in model.modules():
            if isinstance(module, (torch.nn.Linear, torch.nn.Embedding, torch.nn.LayerNorm)):
                module.register_forward_hook(record)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0, foreach=True)
        ids, targets = torch.randint(256, (2, 8, 64))
        for _ in range(10):
            logits = model(ids)
            loss = F.cross_entropy(logits.view(-1, 256), targets.view(-1))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            model(ids)

    run(64, 0)
    print("ready", flush=True)
    sys.stdin.readline()
    for width in reversed(WIDTHS):
        for seed in seeds:
            run(width, seed)
    print("done", flush=True)


def torch_seconds(seeds, threads, processes):
    shares = [[s for s in range(1, seeds + 1) if s % processes == p] for p in range(processes)]
    python = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
    workers = [subprocess.Popen([python, __file__, "--worker", json.dumps(share), "--threads", str(threads)],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                cwd=pathlib.Path(__file__).parent) for share in shares if share]
    for process in workers:
        process.stdout.readline()
    start = time.perf_counter()
    for process in workers:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in workers:
        process.stdout.readline()
    seconds = time.perf_counter() - start
    for process in workers:
        process.communicate()
    return seconds


def our_seconds(program, seeds):
    start = time.perf_counter()
    result = subprocess.run([program, "--sizes", "64,128,256,512,1024", "--seeds", str(seeds), "--quiet", "--format", "json"], capture_output=True,
                            text=True, check=False)
    seconds = time.perf_counter() - start
    return seconds, json.loads(result.stdout)["verdict"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", nargs="?")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--worker")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.worker:
        worker(json.loads(arguments.worker), arguments.threads)
        return
    cores = os.cpu_count()
    best = min(((torch_seconds(cores, t, p), t, p) for t, p in ((cores, 1), (1, cores))))
    print(f"PyTorch's best: {best[1]} threads in each of {best[2]} processes; load {os.getloadavg()[0]:.2f}", flush=True)
    ratios = []
    for number in range(arguments.rounds):
        ours, verdict = our_seconds(arguments.program, arguments.seeds)
        theirs = torch_seconds(arguments.seeds, best[1], best[2])
        ratios.append(ours / theirs)
        print(f"round {number + 1}: ours {ours:.1f} s ({verdict}), PyTorch {theirs:.1f} s, ratio {ratios[-1]:.3f}",
              flush=True)
    quartiles = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else [ratios[0]] * 3
    print(f"median ratio {statistics.median(ratios):.3f}, quartiles {quartiles[0]:.3f} to {quartiles[2]:.3f}")


if __name__ == "__main__":
    main()
