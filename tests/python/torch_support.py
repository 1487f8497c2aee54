# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""What tests with PyTorch share. Their first argument is the program plan, their last the source folder; where PyTorch is
not installed they exit with code 77."""

import json
import pathlib
import subprocess
import sys
import unittest.mock
import warnings

PLAN, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[-1]).resolve()

try:
    import torch
except ImportError:
    print("skipped: PyTorch is not installed for", sys.executable)
    sys.exit(77)

sys.path[:0] = [str(SOURCE / "python"), str(SOURCE / "examples" / "pytorch")]
import scalewise  # noqa: E402

torch.set_num_threads(1)


def settings(prefix="", **sizes):
    """Options of plan that set sizes of the model, or of its base."""
    return [word for key, value in sizes.items() for word in ("--set", f"{prefix}{key}={value}")]


def plan_output(*options, code=0):
    """What plan prints; its messages where it refuses."""
    done = subprocess.run([PLAN, *map(str, options)], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == code, (options, done.stderr)
    return done.stderr if code else done.stdout


def plan_of(*options):
    return scalewise.Plan(json.loads(plan_output(*options, "--format", "json")))


def message_of(call, *arguments, **options):
    """Of the ValueError that a call raises."""
    try:
        call(*arguments, **options)
    except ValueError as error:
        return str(error)
    raise AssertionError("nothing was refused")


def records_of(recorder):
    """What save() writes."""
    with warnings.catch_warnings(), unittest.mock.patch("scalewise_record._append_line") as append:
        warnings.simplefilter("ignore")
        recorder.save("x")
    return {(r["step"], r["signal"], r["name"]): [r["sum_abs"], r["sum_squares"], r["count"]]
            for r in json.loads(append.call_args[0][1])["records"]}
