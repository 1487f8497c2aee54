# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""The environment in which programs start soonest, for tests that start many and compute next to nothing."""

import os
import pathlib
import sys

# The interpreter itself, since python3 may be a script that looks for one first, which takes ten times as long.
PYTHON = {"PATH": os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])}
# Threads that wait give way to others.
QUICK = {**os.environ, **PYTHON, "OMP_WAIT_POLICY": "passive"}
