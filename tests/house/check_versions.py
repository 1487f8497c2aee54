#!/usr/bin/env python3
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
"""Checks that all files which name the version name the same one."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BEFORE = {"CMakeLists.txt": r"project\(scalewise[^)]*VERSION ", "meson.build": r"project\([^)]* version: '",
          "CITATION.cff": r'\nversion: "?', "CHANGELOG.md": r"\A[^#]*# [^#]*## \[?",
          "include/scalewise/messages/version.hpp": r'SCALEWISE_VERSION "',
          "python/scalewise.py": r'__version__ = "'}

found = {file: re.search(before + r"(\d+\.\d+\.\d+)", (ROOT / file).read_text("utf-8"))
         for file, before in BEFORE.items()}
versions = {file: match[1] if match else "none" for file, match in found.items()}
sys.exit(None if len(set(versions.values())) == 1 and all(found.values()) else f"versions differ: {versions}")
