# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""The environment in which programs start soonest, for tests that start many and compute next to nothing."""

import os

# Threads that wait give way to others.
PASSIVE = {**os.environ, "OMP_WAIT_POLICY": "passive"}
# Nor do programs restart themselves, without OpenBLAS's own threads and for its fastest kernels: every x86-64 has these.
QUICK = {**PASSIVE, "OPENBLAS_NUM_THREADS": "1", "OPENBLAS_CORETYPE": "Prescott"}
