# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""The environment in which programs start soonest, for tests that start many and compute next to nothing."""

import itertools
import os
import pathlib
import sys

# The interpreter itself, since python3 may be a script that looks for one first, which takes ten times as long.
PYTHON = {"PATH": os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])}
# Threads that wait give way to others.
QUICK = {**os.environ, **PYTHON, "OMP_WAIT_POLICY": "passive"}


def programs():
    """The programs in the folders that the command line begins with, by name, and its arguments after these."""
    folders = list(itertools.takewhile(os.path.isdir, sys.argv[1:]))
    found = {path.name: path for folder in folders for path in pathlib.Path(folder).resolve().iterdir()
             if path.is_file() and os.access(path, os.X_OK) and not path.suffix}
    return found, sys.argv[1 + len(folders):]
