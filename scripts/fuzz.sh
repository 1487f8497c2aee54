#!/usr/bin/env bash
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
#
# scripts/fuzz.sh [RUNS [TARGET...]]
# Feeds each fuzz target (tests/fuzz) RUNS inputs, a million unless given, two targets at a time,
# and prints how many edges of the code they reached. What made a target fail is kept in
# build/fuzz/failures, and its log in build/fuzz/logs; inputs that reached something new are kept in
# build/fuzz/corpus, where the next run begins. Exit code: 0 when nothing failed. For speed, reports do
# not say where memory was allocated, and memory that was freed is used again after 4 MiB; where a target is
# run again on the input that failed, neither is so. A single allocation is at most 64 MiB in readers of files.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

runs=${1:-1000000}
shift $(($# > 0))
build=build/fuzz
if [ $# -eq 0 ]; then
  for file in tests/fuzz/corpus/*; do set -- "$@" "${file##*/}"; done
fi

mkdir -p $build/logs $build/failures $build/corpus
printf 'Building the fuzz targets\n'
if ! {
  cmake --preset clang-asan-ubsan -B $build -D CMAKE_CXX_FLAGS_DEBUG='-O2 -g1' \
    -D SCALEWISE_BUILD_FUZZERS=ON -D SCALEWISE_BUILD_TESTS=OFF -D SCALEWISE_BUILD_EXAMPLES=OFF &&
    cmake --build $build --target "${@/#/fuzz_}"
} >$build/logs/build.log 2>&1; then
  cat $build/logs/build.log >&2
  exit 1
fi

# fuzz <target>: prints one line.
fuzz() {
  local name=$1 start=$SECONDS result=ok
  local log=$build/logs/$name.log limit=2048
  case $name in config | dialect | gguf | llm_c | record_csv | records | safetensors*) limit=64 ;; esac
  mkdir -p "$build/corpus/$name"
  ASAN_OPTIONS=malloc_context_size=0:quarantine_size_mb=4:max_malloc_fill_size=0 \
    "$build/tests/fuzz/fuzz_$name" -runs="$runs" -max_len=4096 -timeout=60 -rss_limit_mb=2048 -malloc_limit_mb=$limit \
    -entropic=0 -print_final_stats=1 -artifact_prefix="$build/failures/$name-" \
    "$build/corpus/$name" "tests/fuzz/corpus/$name" >"$log" 2>&1 </dev/null || result=FAILED
  printf '%-17s %-6s %9s inputs, %6s edges, %5d s\n' "$name" $result \
    "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")" \
    "$(sed -n 's/^#.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)" $((SECONDS - start))
  [ $result = ok ] || { tail -n 30 "$log"; return 1; }
}

failed=0
running=0
for name in "$@"; do
  fuzz "$name" &
  running=$((running + 1))
  if [ $running -eq 2 ]; then
    wait -n || failed=1
    running=1
  fi
done
while [ $running -gt 0 ]; do
  wait -n || failed=1
  running=$((running - 1))
done
exit $failed
