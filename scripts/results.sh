#!/usr/bin/env bash
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
#
# scripts/results.sh [--quick]
# Makes what is missing of the results of lab/studies, and writes the pages: all of them in two and a half hours on two cores,
# but for those of a GPU and of PyTorch, which have scripts of their own. To resume what was stopped or killed, run
# the same command. --quick makes it all at small size in build/results_quick, in six minutes with the programs built, and leaves
# the pages alone.
# SCALEWISE_TOOLS=<folder> says where the programs are already built; those of the laboratory in its sibling lab.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

quick=()
case "${1:-}" in
  "") ;;
  --quick) quick=(--quick) ;;
  *)
    echo "usage: scripts/results.sh [--quick]" >&2
    exit 2
    ;;
esac
tools=${SCALEWISE_TOOLS:-build/release/tools}
if [ -z "${SCALEWISE_TOOLS:-}" ]; then
  . scripts/lib.sh
  [ -e build/release/build.ninja ] || { install_build_packages --fast && cmake --preset release >/dev/null; }
  cmake --build build/release --target scalewise_results >/dev/null
fi
for page in which_rule shallow_encoder infinite_attention deep_scale normalized_transformer neural_tangent tuned_base any_model; do
  python3 "lab/studies/$page/run.py" "$tools" "${quick[@]}"
done
