#!/bin/sh
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
#
# 07_sweep.sh RULE FOLDER
# Does the best learning rate of width 16 hold at width 128? Runs are tasks: lines for a shell, here executed on all
# cores; results are files in FOLDER. A sweep that was stopped is resumed by the same command.
set -eu
sweep="build/release/tools/learning_rate_transfer --rule $1 --sizes 16,128 --depth 1 --seq 16 --steps 60 --rate 0.02 --seeds 2"
mkdir -p "$2"

# Exit code 4 of --collect: runs are missing, and these are their command lines.
wave=1
until $sweep --collect --results "$2" > "$2/tasks" || [ $? != 4 ]; do
  echo "wave $wave: $(wc -l < "$2/tasks") runs"
  xargs -d '\n' -P "$(nproc)" -I TASK sh -c TASK < "$2/tasks" > "$2/losses"
  wave=$((wave + 1))
done
cat "$2/tasks"  # nothing is missing: the report
