#!/usr/bin/env bash
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
#
# scripts/test.sh [--quick|--full]
# Runs what CI runs. --quick (the default) leaves out the tests with the label "slow", and builds most
# tests with one compiler only; the stages below say which.
# On Debian and Ubuntu it first installs what is missing. The output of each stage is kept in
# build/logs. The last line counts tests: "N passed, N failed, N skipped"; the lines before it name
# those that failed, and those that were skipped because a tool is missing. A stage that runs no
# tests counts as one. Exit code: 0 when nothing failed, 1 when something did, 2 when the machine
# lacks something that cannot be installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/lib.sh

jobs=2
leave_out=slow
case "${1:---quick}" in
  --quick) ;;
  --full)
    leave_out=
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
  echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }' \
    >"$dir/main.cpp"
  clang++ -fsanitize=address,undefined,fuzzer "$dir/main.cpp" -o "$dir/main" 2>/dev/null || status=1
  rm -rf "$dir"
  return $status
}

have_torch() {
  local python
  for python in python3 /usr/bin/python3; do
    "$python" -c 'import torch' 2>/dev/null && return
  done
  return 1
}

have_libcxx() { clang++ -stdlib=libc++ -x c++ -fsyntax-only - <<<'#include <string>' 2>/dev/null; }

# Prints the packages of tests that are left out without them, a line for those that belong together: first those of
# --quick.
missing_optional_packages() {
  have_command gnuplot || echo gnuplot-nox
  have_torch || echo python3-torch
  have_command help2man || echo help2man
  have_command groff || echo groff-base
  have_command parallel || echo parallel
  [ -z "$leave_out" ] || return 0
  have_command chromium || echo chromium
  have_header torch/csrc/api/include/torch/torch.h || echo libtorch-dev
  have_header gmock/gmock.h || echo libgmock-dev
  have_command meson || echo meson
  have_command pkg-config || echo pkg-config
  have_command sbatch || echo slurm-wlm munge
  have_site_programs || echo mkdocs mkdocs-material doxygen
  have_command emcmake || echo emscripten
  [ -e /usr/share/nodejs/acorn ] || echo node-acorn
  have_libcxx || echo libc++-dev libc++abi-dev
}

# Whatever of these cannot be installed, the tests that need it are skipped, and counted. One call for
# all, since each takes seconds; where that fails, each line on its own.
try_install_optional_packages() {
  local missing line
  missing=$(missing_optional_packages)
  # Unquoted: one word per package.
  if [ -n "$missing" ] && ! try_install_packages $missing; then
    while read -r line; do
      try_install_packages $line </dev/null || true
    done <<<"$missing"
  fi
  # The sanitizers of Clang are a package of their own, and its name differs between releases.
  local major package
  major=$(clang++ -dumpversion | cut -d. -f1)
  for package in "libclang-rt-$major-dev" "libclang-common-$major-dev" libclang-rt-dev; do
    clang_can_sanitize && return
    try_install_packages "$package" || true
  done
}

install_clang() {
  local -a packages=()
  have_command clang++ || packages+=(clang)
  have_command run-clang-tidy || packages+=(clang-tidy)
  install_packages "${packages[@]}"
}

# ---- stages --------------------------------------------------------------------------------------

logs=build/logs
passed=0
failed=()
skipped=()

# count_tests <name> <log>: adds up what the closing lines of CTest say.
count_tests() {
  local name=$1 log=$2 closing run
  closing=$(tac "$log" | sed '/^[0-9]*% tests passed, /q' | tac)
  run=$(sed -n '1s/^[0-9]*% tests passed, .* out of //p' <<<"$closing")
  [ -n "$run" ] || return 1
  local -a bad=() left_out=()
  mapfile -t bad < <(sed -n '/^The following tests FAILED:/,$s/^\t *[0-9]* - //p' <<<"$closing")
  mapfile -t left_out < <(sed -n 's/^\t *[0-9]* - \(.*\) (Skipped)$/\1/p' <<<"$closing")
  passed=$((passed + run - ${#bad[@]} - ${#left_out[@]}))
  failed+=("${bad[@]/#/$name: }")
  skipped+=("${left_out[@]/#/$name: }")
}

# report_stage <name> <seconds> <exit code>: counts what its log says, and prints one line.
report_stage() {
  local name=$1 seconds=$2 result=ok before=${#failed[@]}
  local log=$logs/${name// /-}.log
  [ "$3" -eq 0 ] || result=FAILED
  if ! count_tests "$name" "$log" && [ $result = ok ]; then
    passed=$((passed + 1))
  fi
  if [ $result = FAILED ] && [ ${#failed[@]} -eq "$before" ]; then
    failed+=("$name")
  fi
  printf '%-28s %-6s %4d s\n' "$name" "$result" "$seconds"
  if [ $result = FAILED ]; then
    printf -- '---- the end of %s\n' "$log"
    tail -n 60 "$log"
    printf -- '----\n'
  fi
}

# run_stage <name> <command...>: runs it with its output in a log, and reports it.
run_stage() {
  local name=$1 start=$SECONDS status=0
  shift
  "$@" >"$logs/${name// /-}.log" 2>&1 </dev/null || status=$?
  report_stage "$name" $((SECONDS - start)) $status
}

# run_aside <name> <command...>: the same for a process in the background; report_aside <name> reports it later.
run_aside() {
  local name=$1 start=$SECONDS status=0
  shift
  "$@" >"$logs/${name// /-}.log" 2>&1 </dev/null || status=$?
  printf '%s %s\n' $((SECONDS - start)) $status >"$logs/${name// /-}.result"
}
report_aside() {
  local seconds=0 status=1
  read -r seconds status <"$logs/${1// /-}.result" || true
  report_stage "$1" "$seconds" "$status"
}

# build_and_test <preset> <targets> <tests> <labels to leave out> [cmake option...]: builds the targets,
# or all, and runs the tests: those of the programs named, or all but those after a "not".
build_and_test() {
  local preset=$1 targets=$2 tests=$3 without=$4
  shift 4
  without="$without${leave_out:+${without:+|}$leave_out}"
  local -a select=()
  [ -z "$without" ] || select+=(--label-exclude "^($without)\$")
  case $tests in
    "") ;;
    "not "*) tests=${tests#not }; select+=(--exclude-regex "^(${tests// /|})([._]|\$)") ;;
    *) select+=(--tests-regex "^(${tests// /|})([._]|\$)") ;;
  esac
  cmake --preset "$preset" "$@" &&
    cmake --build "build/$preset" -j $jobs ${targets:+--target $targets} &&
    ctest --preset "$preset" -j $jobs --no-label-summary "${select[@]}"
}

# Only whether they compile: the laboratory and each header alone.
check_syntax() {
  cmake --preset dev -B build/syntax -D CMAKE_CXX_FLAGS_DEBUG="-Xclang -fsyntax-only" \
    -D CMAKE_TRY_COMPILE_CONFIGURATION=Release &&
    cmake --build build/syntax -j $jobs --target all_verify_interface_header_sets scalewise_lab_objects
}

# By the compile commands of the preset, so that nothing is compiled on top. In --quick packages may be half
# installed meanwhile, and nothing that needs them is looked for. In --full alone run the analyzer, which takes half of
# the time, and checks that take most of the rest, each ten seconds and more of walking through Eigen.
run_tidy() {
  local -a without=() checks=()
  [ -z "$leave_out" ] || without=(-D SCALEWISE_BUILD_TESTS=OFF)
  local walks=-bugprone-forward-declaration-namespace,-bugprone-forwarding-reference-overload,-bugprone-infinite-loop
  walks+=,-bugprone-undelegated-constructor
  walks+=,-bugprone-unused-raii,-bugprone-unused-return-value,-bugprone-use-after-move,-cppcoreguidelines-init-variables
  walks+=,-cppcoreguidelines-slicing,-misc-definitions-in-headers,-modernize-use-nullptr,-performance-move-const-arg
  walks+=,-performance-unnecessary-value-param,-readability-identifier-naming
  [ -z "$leave_out" ] || checks=("-checks=-clang-analyzer-*,$walks")
  cmake --preset tidy -D SCALEWISE_TEST_MODELS=OFF -D SCALEWISE_TEST_KERNELS=$rest "${without[@]}" &&
    run-clang-tidy -p build/tidy -j $jobs -quiet "${checks[@]}" "$linted"
}

mkdir -p "$logs"
rm -f "$logs"/*.result
if have_command ld.gold; then  # it takes a third of the time
  export LDFLAGS="${LDFLAGS:-} -fuse-ld=gold"
fi
install_build_packages --fast
install_clang
try_install_optional_packages >"$logs/packages.log" 2>&1 </dev/null &
packages=$!

# The purpose of each build. In --full, each compiler builds and runs all, optimized and under sanitizers.
# In --quick each part is tested by the build that finds most: under the sanitizers of Clang all that is
# quick to build; by GCC what users build, so all programs, code in the documentation and whole
# models, and what tries most, the rules; by Clang, with the assertions of the standard library and in half of GCC's
# time, what is all numbers.
# clang-tidy sees the headers. In --full alone are the laboratory, kernels of infinite width, LibTorch's adapter, the
# fuzz targets, what compares the reference transformer with PyTorch, the examples, long pages of the documentation, most
# ways to install, and the sanitizers of GCC.
# Undefined behaviour stops a program without a report, and other reports name functions without lines (the presets alone
# report all): that takes a third off the time to build. The tests of the consumers and of the documentation run in one build.
if [ -n "$leave_out" ]; then
  users="scalewise_tools models_test policy_test"
  users_tests="not core_test dialect_test io_test check_test propagation_test data_test nn_test golden"
  numbers="check_test propagation_test golden"
  watched="core_test dialect_test io_test data_test nn_test"
  watched_tests="not policy_test check_test propagation_test"
  linted="all_headers.cpp"
  unwatched="-fno-sanitize=alignment,null,object-size,vptr"  # a fifth of the time
  rest=OFF
else
  users="" users_tests="" numbers="" watched="" watched_tests=""
  linted="all_headers.cpp|tools/|lab/programs/|examples/"
  unwatched=
  rest=ON
fi
sanitizers=(-D CMAKE_CXX_FLAGS_DEBUG="-fsanitize-undefined-trap-on-error $unwatched" -D SCALEWISE_TEST_MODELS=OFF
  -D SCALEWISE_TEST_KERNELS=OFF -D SCALEWISE_BUILD_EXAMPLES=OFF)

# The release build of GCC is the longest stage, and its tests often wait: for processes, a browser, Slurm. The
# other stages run next to it, one after another, so that a long test at the end of one leaves no core idle. clang-tidy
# begins, since it needs no optional package, while those are installed. Up to four compilers at once take up to 8 GB
# of memory.
aside() {
  CXX=clang++ run_aside "clang-tidy" run_tidy
  tail --pid=$packages -f /dev/null
  if [ -z "$leave_out" ]; then
    CXX=clang++ run_aside "clang syntax" check_syntax
    CXX=g++ run_aside "gcc sanitizers" build_and_test asan-ubsan "" "" "consumer|docs" "${sanitizers[@]}"
  fi
  if clang_can_sanitize; then
    CXX=clang++ run_aside "clang sanitizers" build_and_test clang-asan-ubsan "$watched" "$watched_tests" \
      "consumer|docs|house|lab" \
      "${sanitizers[@]}" -D SCALEWISE_BUILD_FUZZERS=$rest
  fi
  CXX=clang++ run_aside "clang release" build_and_test clang-release "$numbers" "$numbers" "docs" \
    -D SCALEWISE_BUILD_EXAMPLES=OFF -D SCALEWISE_TEST_MODELS=$rest
}

[ -n "$leave_out" ] || wait $packages || true
aside &
others=$!
trap 'trap - INT; kill 0' INT
wait $packages || true
CXX=g++ run_stage "gcc release" build_and_test release "$users" "$users_tests" "" \
  -D SCALEWISE_TEST_KERNELS=$rest -D SCALEWISE_TEST_SLOW=$rest -D SCALEWISE_BUILD_LAB=$rest
wait $others || true
whole=()
[ -n "$leave_out" ] || whole=("clang syntax" "gcc sanitizers")
for stage in "clang-tidy" "${whole[@]}" "clang sanitizers" "clang release"; do
  if [ "$stage" != "clang sanitizers" ] || clang_can_sanitize; then
    report_aside "$stage"
  else
    skipped+=("clang sanitizers: clang++ has no runtime library for them")
  fi
done

printf '\n'
[ ${#failed[@]} -eq 0 ] || printf 'FAILED  %s\n' "${failed[@]}"
[ ${#skipped[@]} -eq 0 ] || printf 'skipped %s\n' "${skipped[@]}"
[ -z "$leave_out" ] || say "not run here, but by --full: the tests with the label slow (LibTorch, GoogleTest, PyTorch's losses next to ours, allocations, the playground, long pages of the documentation, ways to install), of the laboratory and of kernels of infinite width; the fuzz targets; the examples; whether each header compiles alone and spells its names as the others; all cases of tests that try fewer under sanitizers, and alignment, null, object-size and vptr of undefined behaviour; GCC's sanitizers"
printf '%d s\n' $SECONDS
printf '%d passed, %d failed, %d skipped\n' $passed ${#failed[@]} ${#skipped[@]}
[ ${#failed[@]} -eq 0 ]
