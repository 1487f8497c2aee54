#!/usr/bin/env bash
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
#
# scripts/playground.sh [FOLDER [OPTIMIZATION]]
# Builds the playground, the page FOLDER/index.html, by default build/playground, and by default with -Oz, which
# makes it small. It needs Emscripten, CMake, Ninja, nlohmann-json and fmt (Debian: emscripten node-acorn cmake
# ninja-build nlohmann-json3-dev libfmt-dev). Exit code: 2 when Emscripten or its acorn is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/lib.sh

folder=${1:-build/playground}
have_command emcmake || give_up "missing: Emscripten (Debian: apt-get install emscripten node-acorn)"
# Where Debian has acorn, which the optimizer of Emscripten needs and other builds of Node do not look for.
export NODE_PATH=${NODE_PATH:+$NODE_PATH:}/usr/share/nodejs
node -e 'require("acorn")' 2>/dev/null || give_up "missing: acorn (Debian: apt-get install node-acorn)"

objects=${folder%/}-wasm
mkdir -p "$folder" "$objects"
emcmake cmake -S playground -B "$objects" -G Ninja -D CMAKE_BUILD_TYPE=None \
  -D OPTIMIZATION="${2:--Oz}" >"$objects/cmake.log" 2>&1 ||
  { cat "$objects/cmake.log" >&2; exit 1; }
cmake --build "$objects" || exit 1
node playground/assemble.js "$folder" "$objects/plan.js"
