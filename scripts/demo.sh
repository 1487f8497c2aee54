#!/usr/bin/env bash
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
#
# scripts/demo.sh
# Compares four parametrizations of GPT-2 XL, then trains small models of growing width and shows
# that maximal update passes the coordinate check and that one global rate fails it, with pictures in
# build/demo. On Debian and Ubuntu it first installs what is missing. SCALEWISE_TOOLS=<folder>
# says where the programs are already built; then nothing is built.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tools=${SCALEWISE_TOOLS:-build/release/tools}

if [ -z "${SCALEWISE_TOOLS:-}" ]; then
  . scripts/lib.sh
  mkdir -p build
  log=build/demo.log
  first=no
  if [ ! -e build/release/build.ninja ]; then
    install_build_packages --fast
    have_command gnuplot || try_install_packages gnuplot-nox ||
      say "gnuplot could not be installed: there will be no pictures"
    first=yes
  fi
  last=$tools/coordinate_check
  if [ ! -x "$last" ] || [ -n "$(find include tools cmake -newer "$last" -print -quit)" ]; then
    say "Building the programs (one or two minutes)"
  fi
  if ! {
    { [ $first = no ] || cmake --preset release; } &&
      cmake --build build/release --target plan coordinate_check
  } >"$log" 2>&1; then
    cat "$log" >&2
    say "error: the build failed; its output is above and in $log"
    exit 1
  fi
fi

"$tools/plan" --preset gpt2-xl --base-preset gpt2 \
  --compare maximal-update,complete-p,neural-tangent,gpt2 --optimizer adamw

# check <title> <folder> <expected exit code> [option...]
check() {
  local title=$1 folder=$2 expected=$3 status=0
  shift 3
  printf '\n%s, widths 32 to 256:\n' "$title"
  "$tools/coordinate_check" --rule maximal-update --sizes 32,64,128,256 --seeds 3 --steps 5 \
    --out "build/demo/$folder" "$@" || status=$?
  [ $status -eq "$expected" ]
}

check 'Maximal update' maximal-update 0
check 'The same with one global rate' one-rate 1 --fault missing:all-rates
