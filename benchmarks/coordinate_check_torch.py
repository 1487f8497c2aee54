#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""The time of a coordinate check beside the same runs in PyTorch, eager mode.

    python3 benchmarks/coordinate_check_torch.py build/release/tools/coordinate_check
    python3 benchmarks/coordinate_check_torch.py build/release/tools/coordinate_check --seeds 1

The first is the default check, which adds runs until it has a verdict; with --seeds it is so many runs at each
of the widths 64 to 1024. Both sides train a pre-norm GPT (depth 2, sequences of 64, batches of 8, vocabulary 256,
heads of 16) with AdamW for 10 steps at the same widths and as often, and measure the activations of every block
at every step. Ours besides measures changes, gradients and updates, and judges. They alternate. PyTorch runs in
the configuration that is fastest here, all cores in one process or one in each of several, each tried once. Give
OPENBLAS_CORETYPE where OpenBLAS does not know the processor.
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


def worker(runs, threads):
    """Makes the runs, widths and seeds, that it is given, and answers when they are done."""
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
    for width, seed in runs:
        run(width, seed)
    print("done", flush=True)


def shares(runs, processes):
    """The runs, the longest first, each given to the process that has least to do."""
    parts = [[] for _ in range(processes)]
    for run in sorted(runs, reverse=True):
        min(parts, key=lambda part: sum(width**2 for width, _ in part)).append(run)
    return [part for part in parts if part]


def torch_seconds(runs, threads, processes):
    """Without the time of the imports."""
    python = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
    workers = [subprocess.Popen([python, __file__, "--worker", json.dumps(part), "--threads", str(threads)],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                cwd=pathlib.Path(__file__).parent) for part in shares(runs, processes)]
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


def our_check(program, options):
    start = time.perf_counter()
    result = subprocess.run([program, *options, "--quiet", "--format", "json"], capture_output=True, text=True,
                            check=False)
    seconds = time.perf_counter() - start
    return seconds, json.loads(result.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", nargs="?")
    parser.add_argument("--seeds", type=int, help="runs of each of the widths 64 to 1024; else the default check")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int, default=1, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        worker(json.loads(arguments.worker), arguments.threads)
        return
    options = []
    if arguments.seeds:
        options = ["--sizes", ",".join(map(str, WIDTHS)), "--seeds", str(arguments.seeds)]
    _, report = our_check(arguments.program, options)
    runs = [(size["size"], seed) for size in report["sizes"] for seed in range(1, size["seeds"] + 1)]
    cores = os.cpu_count()
    _, threads, processes = min((torch_seconds(runs, t, p), t, p) for t, p in ((cores, 1), (1, cores)))
    if not arguments.json:
        print(f"PyTorch is fastest with {threads} threads in each of {processes} processes", flush=True)
    result = {"runs": len(runs), "sizes": report["sizes"], "verdict": report["verdict"],
              "pytorch_threads": threads, "pytorch_processes": processes, "ours": [], "pytorch": []}
    for _ in range(arguments.rounds):
        result["ours"].append(our_check(arguments.program, options)[0])
        result["pytorch"].append(torch_seconds(runs, threads, processes))
        if not arguments.json:
            print(f"{len(runs)} runs: ours {result['ours'][-1]:.1f} s ({report['verdict']}), "
                  f"PyTorch {result['pytorch'][-1]:.1f} s", flush=True)
    ratios = [ours / theirs for ours, theirs in zip(result["ours"], result["pytorch"])]
    lower, _, upper = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else [ratios[0]] * 3
    result["ratio"] = {"median": statistics.median(ratios), "lower_quartile": lower, "upper_quartile": upper}
    if arguments.json:
        print(json.dumps(result))
    else:
        print(f"ours over PyTorch's: median {result['ratio']['median']:.3f}, quartiles {lower:.3f} to {upper:.3f}")


if __name__ == "__main__":
    main()
