#!/usr/bin/env bash
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
#
# scripts/demo.sh
# Builds the example program "plan" and compares four parametrizations of GPT-2 XL with it.
# On Debian and Ubuntu it first installs what is missing. SCALEWISE_PLAN=<path> names a program
# that is already built; then nothing is built.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

plan=${SCALEWISE_PLAN:-build/release/examples/plan}

if [ -z "${SCALEWISE_PLAN:-}" ]; then
  . scripts/lib.sh
  mkdir -p build
  log=build/demo.log
  first=no
  if [ ! -e build/release/build.ninja ]; then
    install_build_packages
    try_install_gnuplot
    first=yes
  fi
  if [ ! -x "$plan" ] || [ -n "$(find include examples cmake -newer "$plan" -print -quit)" ]; then
    say "Building the example program (about half a minute)"
  fi
  if ! {
    { [ $first = no ] || cmake --preset release; } &&
      cmake --build build/release --target plan
  } >"$log" 2>&1; then
    cat "$log" >&2
    say "error: the build failed; its output is above and in $log"
    exit 1
  fi
fi

exec "$plan" --preset gpt2-xl --base-preset gpt2 \
  --compare maximal-update,complete-p,neural-tangent,gpt2 --optimizer adamw
