#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Loss against width of a nanoGPT-like module: one rate, maximal update, and maximal update with constants tuned on the base.

    gpu.py --module model.py --text corpus.txt --tools build/release/tools --out runs.jsonl

`tune` chooses the rate and four more constants at the base's width. Then every width trains with these, and, for each
of the other two set-ups, at rates an octave apart until the best one has worse ones on both sides. A run is a line
of the output; the same command goes on where a stopped one ended. The module has GPTConfig and GPT as in nanoGPT's
model.py (commit 3adf61e1), with GPT-2's names, and its forward(tokens, targets) gives the logits and the loss.
"""

import argparse
import concurrent.futures
import contextlib
import hashlib
import importlib.util
import json
import math
import multiprocessing
import os
import pathlib
import shlex
import shutil
import socketserver
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
CONSTANTS = "rate=0.0007:0.0078,embedding.rate=0.125:4,logits=0.5:16,hidden.std=0.7:4,embedding.std=1:16"
HELD_OUT = 16  # batches
FIRST_SEED = 100  # which chooses rates; those after it are only measured, and tune has lower ones


class OutOfTime(Exception):
    """Of --minutes none are left for another run."""


# ---- In a worker -----------------------------------------------------------------------------------------------------

def end_with_parent():
    """A worker whose program was killed would keep its memory for ever."""
    multiprocessing.parent_process().join()
    os._exit(1)


def start_worker(module, text, device):
    import torch
    threading.Thread(target=end_with_parent, daemon=True).start()
    sys.path[:0] = [str(ROOT / "python"), str(pathlib.Path(module).parent)]
    spec = importlib.util.spec_from_file_location("module", module)
    loaded = importlib.util.module_from_spec(spec)
    sys.modules["module"] = loaded  # which a dataclass looks itself up in
    spec.loader.exec_module(loaded)
    torch.set_num_threads(1)
    data = torch.frombuffer(bytearray(pathlib.Path(text).read_bytes()), dtype=torch.uint8).to(device)
    start_worker.state = (loaded, data, device)


def train(job):
    """Trains by a plan.

    Returns:  the mean loss of the last tenth of the steps, that of held-out text, and what the run took
    """
    import torch
    import scalewise
    module, data, device = start_worker.state
    begin = time.monotonic()
    plan = scalewise.load(job["plan"])
    shape = plan.plan["shape"]
    config = module.GPTConfig(block_size=shape["context"], vocab_size=shape["vocab"], n_layer=shape["depth"], n_head=shape["heads"],
                              n_embd=shape["d_model"], dropout=0.0, bias=job["biases"])
    torch.manual_seed(job["seed"])
    with contextlib.redirect_stdout(sys.stderr):  # nanoGPT prints its size
        model = module.GPT(config).to(device)
    scalewise.apply(model, plan, seed=job["seed"])
    groups = scalewise.param_groups(model, plan, lr=job["lr"], weight_decay=0.1)
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.95), **({"fused": True} if device == "cuda" else {}))
    span = torch.arange(shape["context"] + 1, device=device)
    end = len(data) * 19 // 20

    def loss_of(low, high, seed):
        starts = torch.randint(low, high - shape["context"] - 1, (job["batch"],), generator=generator_of(seed)).to(device)
        batch = data[starts[:, None] + span].long()
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            return model(batch[:, :-1].contiguous(), batch[:, 1:].contiguous())[1]

    def generator_of(seed):
        return torch.Generator().manual_seed(seed)

    steps, warmup, losses = job["steps"], max(1, job["steps"] // 10), []
    for step in range(steps):
        loss = loss_of(0, end, job["seed"] * 1000003 + step)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        cosine = 0.55 + 0.45 * math.cos(math.pi * max(0, step - warmup) / max(1, steps - warmup))
        scalewise.set_lr(optimizer, job["lr"] * min((step + 1) / warmup, cosine))
        optimizer.step()
        losses.append(loss.detach())
    with torch.no_grad():
        held_out = torch.stack([loss_of(end, len(data), -1 - i) for i in range(HELD_OUT)]).mean().item()
    last = torch.stack(losses[-max(1, steps // 10):]).mean().item()
    return {"train": last, "val": held_out, "seconds": round(time.monotonic() - begin, 2),
            "params": sum(p.numel() for p in model.parameters())}


# ---- The runs --------------------------------------------------------------------------------------------------------

class Runs:
    """What has been trained, in a file of a line each, and the workers that train the rest."""

    def __init__(self, a):
        self.a, self.lock = a, threading.Lock()
        self.rows, self.pending = {}, {}
        if a.out.exists():
            whole = a.out.read_bytes()
            whole = whole[:whole.rfind(b"\n") + 1]  # a line that a killed program left is made again
            a.out.write_bytes(whole)
            self.rows = {row["key"]: row for row in map(json.loads, whole.splitlines())}
        self.pool = concurrent.futures.ProcessPoolExecutor(
            a.workers, multiprocessing.get_context("spawn"), start_worker, (str(a.module), str(a.text), a.device))
        self.late = False
        if a.minutes:
            timer = threading.Timer(60 * a.minutes, self.stop)
            timer.daemon = True
            timer.start()

    def stop(self):
        """Lets the runs that have begun end, and begins no other."""
        with self.lock:
            self.late = True
            self.pool.shutdown(wait=False, cancel_futures=True)

    def loss(self, plan, seed, steps, lr, **notes):
        """The held-out loss of a plan; infinite where training failed.

        Throws:   OutOfTime.
        """
        text = pathlib.Path(plan).read_bytes()
        key = hashlib.sha256(text + f" {seed} {steps} {lr:.17g} {self.a.batch}".encode()).hexdigest()[:16]
        with self.lock:
            future = self.pending.get(key)
            if key not in self.rows and future is None:
                if self.late:
                    raise OutOfTime
                job = {"plan": str(plan), "seed": seed, "steps": steps, "lr": lr, "batch": self.a.batch, "biases": self.a.biases}
                future = self.pending[key] = self.pool.submit(train, job)
        if future is not None:
            self.record(key, future, {**notes, "lr": lr, "seed": seed, "steps": steps})
        value = self.rows[key]["val"]
        return math.inf if value is None else value

    def record(self, key, future, row):
        try:
            result = future.result()
        except concurrent.futures.CancelledError:
            raise OutOfTime from None
        except concurrent.futures.process.BrokenProcessPool:
            raise
        except Exception as problem:  # such as too little memory
            result = {"train": None, "val": None, "error": f"{type(problem).__name__}: {problem}".splitlines()[0]}
        result = {name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in result.items()}
        with self.lock:
            if key in self.rows:
                return
            self.rows[key] = {**row, **result, "key": key}
            with self.a.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(self.rows[key]) + "\n")
            print(f"{len(self.rows)} runs: " + " ".join(f"{name}={value}" for name, value in self.rows[key].items()
                                                       if name in ("arm", "width", "lr", "seed", "val", "seconds")), flush=True)


class Answer(socketserver.StreamRequestHandler):
    """A run that `tune` asks for."""

    def handle(self):
        plan, seed, steps, lr, constants = json.loads(self.rfile.readline())
        try:
            runs = self.server.runs
            loss = runs.loss(plan, int(seed), int(steps), float(lr), arm="search", width=runs.a.base, depth=runs.a.depth,
                             constants=constants)
            self.wfile.write(json.dumps({"loss": loss if math.isfinite(loss) else None}).encode())
        except OutOfTime:
            self.server.late = True


class Server(socketserver.ThreadingTCPServer):
    daemon_threads, late = True, False


def ask(port, *job):
    """What `tune` runs: the loss, from the workers."""
    import socket
    with socket.create_connection(("127.0.0.1", int(port))) as connection:
        connection.sendall(json.dumps(job).encode() + b"\n")
        print(connection.makefile().read())


# ---- The experiment --------------------------------------------------------------------------------------------------

def model_options(a, width):
    return ["--preset", "gpt2", "--set", f"d_model={width}", "--set", f"heads={width // a.head_dim}", "--set", f"depth={a.depth}",
            "--set", "vocab=256", "--set", f"context={a.context}", *([] if a.biases else ["--set", "biases=false", "--set", "norm_bias=false"]),
            "--names", "nanogpt"]


def rule_options(a, arm):
    return ["--rule", "gpt2"] if arm == "one rate" else ["--rule", "maximal-update", "--start", "gpt2", "--fold"]


def plan_of(a, folder, arm, width, constants=""):
    path = folder / f"{arm.replace(' ', '_')}-{width}.json"
    base = [] if arm == "one rate" else ["--base-width", str(a.base)]
    subprocess.run([a.tools / "plan", *rule_options(a, arm), *model_options(a, width), *base,
                    *(["--constant", constants] if constants else []), "--format", "json", "--save", path],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return path


def tuned(a, runs, folder):
    """The rate and the other constants that `tune` finds at the base."""
    with Server(("127.0.0.1", 0), Answer) as server:
        server.runs = runs
        threading.Thread(target=server.serve_forever, daemon=True).start()
        client = f"{shlex.quote(sys.executable)} {shlex.quote(__file__)} --ask {server.server_address[1]}"
        done = subprocess.run([a.tools / "tune", *rule_options(a, "tuned"), *model_options(a, a.base), "--space", a.space,
                               "--steps", str(a.steps), "--trials", str(a.trials), "--seed", str(a.seed),
                               "--threads", str(a.workers), "--quiet", "--format", "json", "--results", folder / f"tune-{os.getpid()}",
                               "--command", client + " {plan} {seed} {steps} {rate} {constants}"],
                              stdout=subprocess.PIPE, text=True)
        server.shutdown()
        if server.late:
            raise OutOfTime
    best = json.loads(done.stdout)["best"] if done.stdout else None
    if best is None:
        sys.exit(f"tune: no draw trained to the end (exit code {done.returncode})")
    constants = dict(word.split("=") for word in best["constants"].split(","))
    rate = float(constants.pop("rate"))
    return rate, ",".join(f"{name}={value}" for name, value in constants.items())


def measured(a):
    return range(FIRST_SEED + 1, FIRST_SEED + 1 + a.seeds)


def at_width(a, runs, plan, arm, width, seed, octave_rate, **notes):
    return runs.loss(plan, seed, a.steps, octave_rate, arm=arm, width=width, depth=a.depth, **notes)


def walk(a, runs, folder, arm, width):
    """Rates an octave apart with one seed, until the best has worse ones on both sides; then the best with other seeds."""
    plan = plan_of(a, folder, arm, width)
    octave = round(math.log2(a.rate * (a.base / width if arm == "one rate" else 1)))
    losses = {}
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        while octave not in losses or not {octave - 1, octave + 1} <= losses.keys():
            wanted = [o for o in (octave - 1, octave, octave + 1) if o not in losses]
            losses.update(zip(wanted, threads.map(lambda o: at_width(a, runs, plan, arm, width, FIRST_SEED, 2.0 ** o), wanted)))
            octave = min(losses, key=losses.get)
        list(threads.map(lambda seed: at_width(a, runs, plan, arm, width, seed, 2.0 ** octave), measured(a)))


def carried(a, runs, folder, rate, constants, width):
    """The constants of the base at a width, and what half and twice the rate give."""
    plan = plan_of(a, folder, "tuned", width, constants)
    jobs = [(seed, rate) for seed in measured(a)] + [(FIRST_SEED + 1, rate / 2), (FIRST_SEED + 1, rate * 2)]
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda job: at_width(a, runs, plan, "tuned", width, *job, constants=constants), jobs))


def experiment(a):
    runs = Runs(a)
    folder = a.out.with_name(a.out.name + ".work")  # plans, which a killed program leaves and the next one makes again
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        rate, constants = tuned(a, runs, folder)
        print(f"tuned: rate={rate},{constants}", flush=True)
        with concurrent.futures.ThreadPoolExecutor(64) as threads:
            largest_first = sorted(a.widths, reverse=True)
            jobs = [threads.submit(carried, a, runs, folder, rate, constants, width) for width in largest_first]
            jobs += [threads.submit(walk, a, runs, folder, arm, width) for width in largest_first
                     for arm in ("one rate", "maximal update")]
            for job in jobs:
                job.result()
    except OutOfTime:
        print("out of time: the same command goes on from here")
    finally:
        runs.stop()
        shutil.rmtree(folder, ignore_errors=True)


def main():
    if sys.argv[1:2] == ["--ask"]:
        ask(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--module", type=pathlib.Path, required=True, help="a file with GPTConfig and GPT")
    parser.add_argument("--text", type=pathlib.Path, required=True, help="what it learns, byte by byte; the last twentieth is held out")
    parser.add_argument("--tools", type=pathlib.Path, required=True, help="the folder of plan and tune")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="a JSON line per run")
    parser.add_argument("--base", type=int, default=256, help="width of the base")
    parser.add_argument("--widths", type=lambda s: [int(w) for w in s.split(",")], default=[256, 512, 1024, 2048])
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--head-dim", type=int, default=64)
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--biases", action="store_true", help="GPTConfig's bias=True")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--rate", type=float, default=2.0 ** -9, help="where the rates begin, at the base's width")
    parser.add_argument("--space", default=CONSTANTS, help="as tune takes it")
    parser.add_argument("--trials", type=int, default=84, help="of tune")
    parser.add_argument("--seed", type=int, default=1, help="of tune's draws and runs")
    parser.add_argument("--seeds", type=int, default=3, help="that measure, at each width")
    parser.add_argument("--workers", type=int, default=4, help="processes that train at once")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--minutes", type=float, help="no run begins later")
    experiment(parser.parse_args())


if __name__ == "__main__":
    main()
