# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""The environment in which programs start soonest, for tests that start many and compute next to nothing."""

import os
import pathlib
import sys

# The interpreter itself, since python3 may be a script that looks for one first, which takes ten times as long.
PYTHON = {"PATH": os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])}
# Threads that wait give way to others.
PASSIVE = {**os.environ, **PYTHON, "OMP_WAIT_POLICY": "passive"}
# Nor do programs restart themselves, without OpenBLAS's own threads and for its fastest kernels: every x86-64 has these.
QUICK = {**PASSIVE, "OPENBLAS_NUM_THREADS": "1", "OPENBLAS_CORETYPE": "Prescott"}
