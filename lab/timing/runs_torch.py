#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""The time of a coordinate check, or of a sweep over learning rates, next to the same runs in PyTorch, eager mode.

    python3 lab/timing/runs_torch.py check build/release/tools/coordinate_check
    python3 lab/timing/runs_torch.py check build/release/tools/coordinate_check --seeds 1
    python3 lab/timing/runs_torch.py sweep build/release/tools/learning_rate_transfer

The first is the default check, which adds runs until it has a verdict; with --seeds it is so many runs at each
of the widths 64 to 1024. Both sides train a pre-norm GPT (depth 2, sequences of 64, batches of 8, vocabulary 256,
heads of 16) with AdamW for 10 steps at the same widths and as often, and measure the activations of every block
at every step. Ours besides measures changes, gradients and updates, and judges. A sweep trains models of three widths
for 60 steps of 4 sequences of 32, as often as ours needed for its verdict. They alternate. PyTorch runs in the
configuration that is fastest here, all cores in one process or one in each of several, each tried once.
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
SWEEP = "--sizes 32,64,128 --steps 60 --seq 32 --batch 4 --depth 2 --head-dim 16 --seeds 1"


def worker(kind, runs, threads):
    """Makes the runs, widths and seeds, that it is given, and answers when they are done."""
    import step_torch  # first, since it chooses kernels
    import torch
    import torch.nn.functional as F

    torch.set_num_threads(threads)
    steps, seq, batch = (10, 64, 8) if kind == "check" else (60, 32, 4)

    def run(width, seed):
        torch.manual_seed(seed)
        options = argparse.Namespace(width=width, depth=2, heads=width // 16, vocab=256, seq=seq, init_std=width**-0.5)
        model = step_torch.GPT(options)
        sizes = []

        def record(_module, _inputs, output):
            sizes.append(output.detach().abs().mean().item())

        for module in model.modules() if kind == "check" else ():
            if isinstance(module, (torch.nn.Linear, torch.nn.Embedding, torch.nn.LayerNorm)):
                module.register_forward_hook(record)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0, foreach=True)
        for step in range(steps):
            if step == 0 or kind == "sweep":
                ids, targets = torch.randint(256, (2, batch, seq))
            logits = model(ids)
            loss = F.cross_entropy(logits.view(-1, 256), targets.view(-1))
            sizes.append(loss.item())
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


def torch_seconds(kind, runs, threads, processes):
    """Without the time of the imports."""
    python = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
    workers = [subprocess.Popen([python, __file__, kind, "--worker", json.dumps(part), "--threads", str(threads)],
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


def our_seconds(program, options):
    start = time.perf_counter()
    result = subprocess.run([program, *options, "--quiet", "--format", "json"], capture_output=True, text=True,
                            check=False)
    seconds = time.perf_counter() - start
    return seconds, json.loads(result.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=("check", "sweep"))
    parser.add_argument("program", nargs="?")
    parser.add_argument("--seeds", type=int, help="runs of each of the widths 64 to 1024 (default: the default check)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int, default=1, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.worker:
        worker(asked.kind, json.loads(asked.worker), asked.threads)
        return
    options = SWEEP.split() if asked.kind == "sweep" else []
    if asked.seeds:
        options = ["--sizes", ",".join(map(str, WIDTHS)), "--seeds", str(asked.seeds)]
    _, report = our_seconds(asked.program, options)
    if asked.kind == "sweep":
        runs = [(run["size"], i) for i, run in enumerate(report["runs"])]
    else:
        runs = [(size["size"], seed) for size in report["sizes"] for seed in range(1, size["seeds"] + 1)]
    cores = os.cpu_count()
    _, threads, processes = min((torch_seconds(asked.kind, runs, t, p), t, p) for t, p in ((cores, 1), (1, cores)))
    if not asked.json:
        print(f"PyTorch is fastest with {threads} threads in each of {processes} processes", flush=True)
    result = {"runs": len(runs), "sizes": report["sizes"], "verdict": report["verdict"],
              "pytorch_threads": threads, "pytorch_processes": processes, "ours": [], "pytorch": []}
    for _ in range(asked.rounds):
        result["ours"].append(our_seconds(asked.program, options)[0])
        result["pytorch"].append(torch_seconds(asked.kind, runs, threads, processes))
        if not asked.json:
            print(f"{len(runs)} runs: ours {result['ours'][-1]:.1f} s ({report['verdict']}), "
                  f"PyTorch {result['pytorch'][-1]:.1f} s", flush=True)
    ratios = [ours / theirs for ours, theirs in zip(result["ours"], result["pytorch"])]
    lower, _, upper = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else [ratios[0]] * 3
    result["ratio"] = {"median": statistics.median(ratios), "lower_quartile": lower, "upper_quartile": upper}
    if asked.json:
        print(json.dumps(result))
    else:
        print(f"ours over PyTorch's: median {result['ratio']['median']:.3f}, quartiles {lower:.3f} to {upper:.3f}")


if __name__ == "__main__":
    main()
