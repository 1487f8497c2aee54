#!/usr/bin/env bash
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
#
# scripts/mutants.sh [--only TEXT] [--list FILE] [--build DIR] [--jobs N]
# Breaks the library on purpose, in one place at a time, and reports which breaks no test notices.
# It works in a copy of the tree, so that nothing happens to the tree itself; run again after
# Ctrl-C, it resumes where it stopped. A tool for developers, not part of CI.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec python3 scripts/mutants.py "$@"
