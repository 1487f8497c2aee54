#!/usr/bin/env bash
# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
#
# scripts/site.sh [folder]
# Builds the documentation as a site: docs/ by MkDocs, the C++ interface by Doxygen, and build/playground where
# scripts/playground.sh has made it. The folder is build/site unless another is given; what it held before is
# replaced. Open its index.html, no server is needed. Packages of Debian: mkdocs mkdocs-material doxygen. Exit
# code: 0, 77 when one of them is missing, and otherwise that of the program that failed; warnings are errors.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/lib.sh

have_site_programs || { say "site.sh: mkdocs, mkdocs-material or doxygen was not found"; exit 77; }

site=$(realpath -m "${1:-build/site}")
export SCALEWISE_SITE_PAGES=${site}_pages
python3 scripts/site/pages.py "$SCALEWISE_SITE_PAGES"
mkdocs build --quiet --strict --clean --site-dir "$site"
SCALEWISE_SITE_API=$site doxygen scripts/site/Doxyfile
[ ! -e build/playground/index.html ] || install -D -m 644 build/playground/index.html "$site/playground/index.html"
