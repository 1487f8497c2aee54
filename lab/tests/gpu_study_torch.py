#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""The study on a GPU at toy size, on one core: whole, killed and resumed, and with a module that fails.

    gpu_study_torch.py TOOLS
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
STUDY = ROOT / "lab/studies/tuned_base"
tools = sys.argv[1]


def command(out, module=STUDY / "small_module.py"):
    return [sys.executable, str(STUDY / "gpu.py"), "--module", str(module), "--text", str(ROOT / "tools/data/austen_persuasion.txt"),
            "--tools", tools, "--out", str(out),
            *"--base 16 --widths 16,32 --depth 2 --head-dim 8 --context 16 --biases --batch 2 --steps 5 --trials 12".split(),
            *"--space rate=0.01:0.1,logits=0.5:4 --seeds 1 --workers 1 --device cpu".split()]


def rows_of(out):
    """The runs without what differs from one time to the next, each once."""
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    found = {row.pop("key"): {name: value for name, value in row.items() if name != "seconds"} for row in rows}
    assert len(found) == len(rows), "a run was made twice"
    return found


with tempfile.TemporaryDirectory() as scratch:
    whole, killed, failing = (pathlib.Path(scratch) / f"{name}.jsonl" for name in ("whole", "killed", "failing"))
    temporary = pathlib.Path(scratch) / "temporary"  # where nothing is left, nor next to the output
    temporary.mkdir()
    os.environ["TMPDIR"] = str(temporary)
    subprocess.run(command(whole), check=True)
    expected = rows_of(whole)
    for arm, least in (("search", 12), ("tuned", 6), ("one rate", 8), ("maximal update", 8)):
        widths = [row["width"] for row in expected.values() if row["arm"] == arm]
        assert len(widths) >= least and set(widths) == ({16} if arm == "search" else {16, 32}), (arm, widths)
    for row in expected.values():
        assert 3 < row["val"] < 6 and row["params"] == 12 * 2 * row["width"] ** 2 + (256 + 16 + 2 * 13 + 2) * row["width"], row

    # kill -9 within a run, and a line that was not written to its end
    process = subprocess.Popen(command(killed))
    while not killed.exists() or killed.read_bytes().count(b"\n") < 15:
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.wait()
    with killed.open("ab") as file:
        file.write(b'{"arm": "one ra')
    subprocess.run(command(killed), check=True)
    assert rows_of(killed) == expected
    left = [path for path in [*temporary.iterdir(), *pathlib.Path(scratch).iterdir()] if path not in (whole, killed, temporary)]
    assert not left, left

    # runs that fail are lines, too, and the search says that none trained
    module = pathlib.Path(scratch) / "module.py"
    module.write_text(re.sub("return logits, .*", "raise MemoryError('too large')", (STUDY / "small_module.py").read_text().replace(
        "__file__", repr(str(STUDY / "small_module.py")))))
    done = subprocess.run(command(failing, module), stderr=subprocess.PIPE, text=True)
    assert done.returncode != 0 and "no draw trained" in done.stderr, done
    assert {(row["error"], row["val"]) for row in rows_of(failing).values()} == {("MemoryError: too large", None)}
