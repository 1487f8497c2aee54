#!/usr/bin/env bash
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
#
# scripts/playground.sh [FOLDER [OPTIMIZATION]]
# Builds the playground, the page FOLDER/index.html, by default build/playground, and by default with -Oz, which
# makes it small. With -fsyntax-only it checks whether the C++ compiles, and writes no page. It needs Emscripten,
# nlohmann-json and fmt (Debian: emscripten node-acorn nlohmann-json3-dev libfmt-dev). Exit code: 2 when Emscripten
# or its acorn is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/lib.sh

folder=${1:-build/playground}
have_command em++ || give_up "missing: Emscripten (Debian: apt-get install emscripten node-acorn)"
# Where Debian has acorn, which the optimizer of Emscripten needs and other builds of Node do not look for.
export NODE_PATH=${NODE_PATH:+$NODE_PATH:}/usr/share/nodejs
node -e 'require("acorn")' 2>/dev/null || give_up "missing: acorn (Debian: apt-get install node-acorn)"

objects=${folder%/}-wasm
mkdir -p "$folder" "$objects/system"
# Of this system's headers, those of nlohmann-json and fmt and no others: the rest is Emscripten's.
for header in nlohmann/json.hpp fmt/format.h; do
  have_header $header || give_up "missing: $header (Debian: apt-get install nlohmann-json3-dev libfmt-dev)"
  for headers in /usr/include /usr/local/include; do
    [ ! -e $headers/$header ] || ln -sfn $headers/${header%/*} "$objects/system/${header%/*}"
  done
done
# One unit, since its headers take as long to compile as all else. Newer versions have a stack of 64 KiB otherwise.
printf '#include "%s"\n' playground/plan.cpp tools/planning/{described,lists,plans,set_option,writing}.cpp >"$objects/plan.cpp"
compile=(em++ -std=c++20 "${2:--Oz}" -fwasm-exceptions -D FMT_HEADER_ONLY -I . -I include -I tools
  -isystem "$objects/system" "$objects/plan.cpp")
if [ "${2-}" = -fsyntax-only ]; then
  "${compile[@]}" || exit 1
  exit
fi
"${compile[@]}" -o "$objects/plan.js" --no-entry \
  -sSINGLE_FILE -sMODULARIZE -sEXPORT_NAME=scalewise -sENVIRONMENT=web,node \
  -sFILESYSTEM=0 -sALLOW_MEMORY_GROWTH -sTOTAL_STACK=1048576 \
  -sEXPORTED_FUNCTIONS=_scalewise_lists,_scalewise_plan,_scalewise_rule,_malloc,_free \
  -sEXPORTED_RUNTIME_METHODS=ccall,lengthBytesUTF8,stringToUTF8 || exit 1
node playground/assemble.js "$folder" "$objects/plan.js"
