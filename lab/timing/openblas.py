# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""OpenBLAS, with which Debian's PyTorch and numpy multiply, at its best."""

import os
import pathlib


def choose_kernels() -> None:
    """To be called before it is loaded: it takes a processor that is newer than itself for an old one, whose kernels are several
    times slower. What the user has set stays."""
    flags = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    core = "SkylakeX" if "avx512vl" in flags else "Haswell" if "avx2" in flags else ""
    if core:
        os.environ.setdefault("OPENBLAS_CORETYPE", core)
