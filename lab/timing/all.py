#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""All benchmarks, on one machine and one commit, and the tables of lab/timing/README.md.

  python3 lab/timing/all.py

builds what is measured below build/, makes what is missing of lab/timing/results/*.json, in about half an hour, and writes
the tables again. A result of another commit or another processor is made again. Every part waits until the machine is
quiet; one during which somebody else had more than 5 % of it is no result, and is tried once more. --tables only
writes; --check fails where the page is not what the results give; --only NAME,… makes these.
"""

import argparse
import json
import os
import pathlib
import resource
import shlex
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "shared"))
import page  # noqa: E402
import tables  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "lab/timing/README.md"
RESULTS = PAGE.with_name("results")
CORES = os.cpu_count() or 1

# folder below build/: options of CMake in addition to the preset release
BUILDS = {
    "release": "",
    "no_avx512": "-D CMAKE_CXX_FLAGS=-mno-avx512f",
    "eigen": "-D SCALEWISE_ONEDNN=OFF",
    "portable": "-D SCALEWISE_NATIVE=OFF -D SCALEWISE_ONEDNN=OFF",
}
STEP = "lab/timing/step --width 64,128,256,512,1024 --steps 5"
# name: build, command below its folder, or a script of this one
PARTS = {
    "step": ("release", f"{STEP} --rounds 9"),
    "step_no_avx512": ("no_avx512", f"{STEP} --rounds 5"),
    "step_eigen": ("eigen", f"{STEP} --rounds 3 --no-torch"),
    "step_portable": ("portable", f"{STEP} --rounds 3 --no-torch"),
    "products": ("release", "lab/timing/products"),
    "check": ("release", "runs_torch.py check {build}/tools/coordinate_check --rounds 5 --json"),
    "check_one_seed": ("release", "runs_torch.py check {build}/tools/coordinate_check --seeds 1 --rounds 5 --json"),
    "sweep": ("release", "runs_torch.py sweep {build}/tools/learning_rate_transfer --rounds 3 --json"),
    "expected": ("release", "expected_times.py {build}/tools"),
    "kernels": ("release", "lab/timing/kernels --images 1000"),
    "kernels_growth": ("release", "lab/timing/kernels --images 200 --stride 1,2,4 --depth 2,4,8,16 --no-numpy"),
    "profile": ("release", "lab/timing/deep_profile --rounds 201"),
    "include": ("release", "compile_time.py --include include"),
}
TARGETS = {"release": "step products deep_profile kernels coordinate_check learning_rate_transfer alignment empirical_ntk"}


def output(command: str) -> str:
    return subprocess.run(shlex.split(command), cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def processor() -> str:
    lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))


class Shares:
    """The shares of all cores that this script's processes, others, and the host of a virtual machine take."""

    def __init__(self) -> None:
        self.start, self.before, self.own = time.perf_counter(), self.ticks(), self.used()

    @staticmethod
    def ticks() -> tuple[int, int]:
        cpu = [int(word) for word in pathlib.Path("/proc/stat").read_text(encoding="utf-8").split("\n")[0].split()[1:]]
        return sum(cpu) - cpu[3] - cpu[4] - cpu[7], cpu[7]  # less idle, waiting for disks, stolen; stolen

    @staticmethod
    def used() -> float:
        return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))

    def others(self) -> float:
        """The part of the machine that others had since."""
        hertz, all_time = os.sysconf("SC_CLK_TCK"), (time.perf_counter() - self.start) * CORES
        busy, stolen = (now - then for now, then in zip(self.ticks(), self.before))
        return max(0.0, busy / hertz - (self.used() - self.own) + stolen / hertz) / all_time


def wait_until_quiet(most_seconds: float = 600) -> None:
    begin = time.perf_counter()
    while time.perf_counter() - begin < most_seconds:
        shares = Shares()
        time.sleep(3)
        if shares.others() < 0.05:
            return
        print("waiting: others use this machine", file=sys.stderr, flush=True)
    sys.exit("this machine is not quiet: nothing was measured")


def build(name: str) -> None:
    folder, targets = f"build/{name}", TARGETS.get(name, "step products")
    for command in (f"cmake --preset release -B {folder} {BUILDS[name]}", f"cmake --build {folder} --target {targets}"):
        done = subprocess.run(shlex.split(command), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False)
        if done.returncode:
            sys.exit(f"{command}\n{done.stdout[-3000:]}")


def measured(name: str) -> dict:
    folder, command = PARTS[name]
    script = command.split()[0].endswith(".py")
    words = shlex.split(command.format(build=f"build/{folder}"))
    words = [sys.executable, f"lab/timing/{words[0]}", *words[1:]] if script else [f"build/{folder}/{words[0]}", *words[1:]]
    own = {"OMP_NUM_THREADS": "1"} if "products" in command else {}
    for _ in range(2):
        wait_until_quiet()
        shares = Shares()
        done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False,
                              env={**os.environ, **own})
        if done.returncode:
            sys.exit(f"{name}: exit code {done.returncode}")
        others = shares.others()
        if others < 0.05:
            shown = [f"build/{folder}/{command}"] if not script else [f"python3 lab/timing/{command}"]
            return {"command": " ".join([*(f"{k}={v}" for k, v in own.items()), *shown]).format(build=f"build/{folder}"),
                    "cmake": BUILDS[folder], "others": round(others, 4), **json.loads(done.stdout)}
        print(f"{name}: others had {100 * others:.0f} % of the machine: no result", file=sys.stderr, flush=True)
    sys.exit(f"{name}: this machine is not quiet")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS), help="parts, with commas between")
    parser.add_argument("--tables", action="store_true")
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    if asked.check:
        page.check(PAGE, tables.of(page.kept(RESULTS)), "python3 lab/timing/all.py --tables")
        return
    if not asked.tables:
        if output("git status --porcelain --untracked-files=no -- include tools lab/timing lab/programs cmake"):
            sys.exit("what is measured is changed: commit it first, so that results have a commit")
        about = {"commit": output("git log -1 --format=%h -- include tools lab/timing lab/programs cmake instances"),
                 "processor": processor(), "compiler": output("g++ --version").splitlines()[0]}
        RESULTS.mkdir(exist_ok=True)
        for name in asked.only.split(","):
            path = RESULTS / f"{name}.json"
            if path.exists():
                old = json.loads(path.read_text(encoding="utf-8"))
                if all(old[key] == value for key, value in about.items()):
                    continue
            build(PARTS[name][0])
            print(name, file=sys.stderr, flush=True)
            page.keep(path, {**about, **measured(name)})
    page.write(PAGE, page.filled(PAGE, tables.of(page.kept(RESULTS))))


if __name__ == "__main__":
    main()
