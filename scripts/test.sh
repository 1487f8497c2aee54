#!/usr/bin/env bash
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
#
# scripts/test.sh [--quick|--full]
# Runs what CI runs. --quick (the default) leaves out the tests with the label "slow".
# On Debian and Ubuntu it first installs what is missing; SCALEWISE_TEST_TORCH=1 adds PyTorch.
# The output of each stage is kept in build/logs. Exit code: 0 when every stage passed, 1 when
# one failed, 2 when the machine lacks something that cannot be installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/lib.sh

jobs=2
leave_out=slow
slow=OFF
case "${1:---quick}" in
  --quick) ;;
  --full)
    leave_out=
    slow=ON
    ;;
  *)
    say "usage: scripts/test.sh [--quick|--full]"
    exit 2
    ;;
esac
[ $# -le 1 ] || { say "usage: scripts/test.sh [--quick|--full]"; exit 2; }

# ---- what the machine needs ----------------------------------------------------------------------

clang_can_sanitize() {
  local dir status=0
  dir=$(mktemp -d)
  echo 'int main() {}' >"$dir/main.cpp"
  clang++ -fsanitize=address,undefined "$dir/main.cpp" -o "$dir/main" 2>/dev/null || status=1
  rm -rf "$dir"
  return $status
}

install_test_packages() {
  local -a packages=()
  have_command clang++ || packages+=(clang)
  have_command clang-tidy || packages+=(clang-tidy)
  if [ "${SCALEWISE_TEST_TORCH:-0}" = 1 ] && ! python3 -c 'import torch' 2>/dev/null &&
    ! /usr/bin/python3 -c 'import torch' 2>/dev/null; then
    packages+=(python3-torch)
  fi
  install_packages "${packages[@]}"

  # The sanitizers of Clang are a package of their own, and its name differs between releases.
  clang_sanitizers=yes
  clang_can_sanitize && return
  local major package
  major=$(clang++ -dumpversion | cut -d. -f1)
  for package in "libclang-rt-$major-dev" "libclang-common-$major-dev" libclang-rt-dev; do
    try_install_packages "$package" || continue
    clang_can_sanitize && return
  done
  clang_sanitizers=no
  say "warning: no sanitizer runtime for clang $major found; clang Debug is built without sanitizers"
}

# ---- stages --------------------------------------------------------------------------------------

logs=build/logs
names=()
results=()
failed=0

# run_stage <name> <command...>: runs it with its output in a log, and prints one line.
run_stage() {
  local name=$1 start=$SECONDS result=ok
  local log=$logs/${name// /-}.log
  shift
  "$@" >"$log" 2>&1 </dev/null || result=FAILED
  names+=("$name")
  results+=("$result")
  printf '%-28s %-6s %4d s\n' "$name" "$result" $((SECONDS - start))
  if [ $result = FAILED ]; then
    failed=$((failed + 1))
    printf -- '---- the end of %s\n' "$log"
    tail -n 60 "$log"
    printf -- '----\n'
  fi
}

# build_and_test <preset> <labels to leave out> [cmake option...]
build_and_test() {
  local preset=$1 without=$2
  shift 2
  without="$without${leave_out:+${without:+|}$leave_out}"
  local -a exclude=()
  [ -z "$without" ] || exclude=(--label-exclude "^($without)\$")
  cmake --preset "$preset" "$@" &&
    cmake --build "build/$preset" -j $jobs &&
    ctest --preset "$preset" -j $jobs --no-label-summary "${exclude[@]}"
}

check_headers() {
  CXX=g++ cmake --preset dev -D SCALEWISE_TEST_SLOW=$slow &&
    cmake --build build/dev -j $jobs --target all_verify_interface_header_sets
}

run_tidy() {
  cmake --preset tidy -D SCALEWISE_TEST_MODELS=OFF && cmake --build --preset tidy -j $jobs -- -k 0
}

# The closing lines of CTest in each log.
print_ctest_summaries() {
  local name log
  for name in "${names[@]}"; do
    log=$logs/${name// /-}.log
    grep -q 'tests passed' "$log" || continue
    printf '\nctest, %s:\n' "$name"
    sed -n '/tests passed/,$p' "$log" | sed '/^$/d'
  done
}

install_build_packages
install_test_packages
try_install_gnuplot
mkdir -p "$logs"

sanitizer_option=()
[ $clang_sanitizers = yes ] || sanitizer_option=(-D CMAKE_CXX_FLAGS=)

# Reports of the sanitizers need line numbers and nothing else of -g, which is a fifth of GCC's time
# over Eigen.
sanitizers=(-D CMAKE_CXX_FLAGS_DEBUG=-g1 -D SCALEWISE_TEST_MODELS=OFF)

# The tests of the consumers run in the Release builds, those of the documentation in one.
export CXX=g++
# Whole models of the reference transformer are tested in the Release build of GCC.
run_stage "gcc sanitizers" build_and_test asan-ubsan "consumer|docs" "${sanitizers[@]}"
run_stage "gcc release" build_and_test release "" -D SCALEWISE_TEST_SLOW=$slow
run_stage "header sets" check_headers
export CXX=clang++
run_stage "clang sanitizers" build_and_test clang-asan-ubsan "consumer|docs" \
  "${sanitizers[@]}" -D SCALEWISE_BUILD_EXAMPLES=OFF "${sanitizer_option[@]}"
run_stage "clang release" build_and_test clang-release "docs" -D SCALEWISE_TEST_MODELS=OFF \
  -D SCALEWISE_BUILD_EXAMPLES=OFF
run_stage "clang-tidy" run_tidy

print_ctest_summaries
printf '\n'
[ $clang_sanitizers = yes ] || printf 'note: clang Debug ran without sanitizers\n'
if [ $failed -gt 0 ]; then
  printf 'test.sh: %d of %d stages FAILED in %d s:' $failed ${#names[@]} $SECONDS
  for i in "${!names[@]}"; do
    [ "${results[$i]}" = ok ] || printf ' [%s]' "${names[$i]}"
  done
  printf '\n'
  exit 1
fi
printf 'test.sh: all %d stages passed in %d s\n' ${#names[@]} $SECONDS
