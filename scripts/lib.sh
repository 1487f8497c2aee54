# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
#
# Shared by the scripts next to it; to be sourced. It installs what is missing on Debian and Ubuntu.

say() { printf '%s\n' "$*" >&2; }

# Ends the script: what the machine lacks cannot be installed.
give_up() {
  say "error: $*"
  exit 2
}

have_command() { command -v "$1" >/dev/null 2>&1; }

have_header() {
  local dir
  for dir in /usr/include /usr/local/include; do
    [ -e "$dir/$1" ] && return 0
  done
  return 1
}

have_mkdocs_material() {
  [ -e /usr/share/mkdocs/themes/material ] || python3 -c 'import material' 2>/dev/null
}

have_site_programs() { have_command mkdocs && have_command doxygen && have_mkdocs_material; }

have_catch2() { have_header catch2/catch.hpp || have_header catch2/catch_test_macros.hpp; }

have_cmake() {
  have_command cmake || return 1
  local version
  version=$(cmake --version | sed -n '1s/^cmake version \([0-9]*\.[0-9]*\).*/\1/p')
  [ "${version%%.*}" -gt 3 ] || { [ "${version%%.*}" -eq 3 ] && [ "${version#*.}" -ge 25 ]; }
}

# Prints the packages that a build needs and the machine lacks.
missing_build_packages() {
  have_command g++ || echo g++
  have_cmake || echo cmake
  have_command ninja || echo ninja-build
  have_command python3 || echo python3
  have_catch2 || echo catch2
  have_header nlohmann/json.hpp || echo nlohmann-json3-dev
  have_header CLI/CLI.hpp || echo libcli11-dev
  have_header fmt/core.h || echo libfmt-dev
  have_header eigen3/Eigen/Core || have_header Eigen/Core || echo libeigen3-dev
}

apt_lists_updated=no

# Runs apt-get as root, without questions.
run_apt_get() {
  local -a as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    as_root=(sudo)
    [ -t 0 ] || as_root=(sudo -n)
  fi
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -q -o DPkg::Lock::Timeout=300 "$@" </dev/null >&2
}

update_apt_lists() {
  [ "$apt_lists_updated" = no ] || return 1
  apt_lists_updated=yes
  say "Updating the package lists (apt-get update)"
  run_apt_get update
}

# try_install_packages package...: false when a package cannot be installed.
try_install_packages() {
  have_command apt-get || return 1
  [ "$(id -u)" -eq 0 ] || have_command sudo || return 1
  say "Installing: $*"
  ls /var/lib/apt/lists/*_Packages* >/dev/null 2>&1 || update_apt_lists || true
  run_apt_get install -y --no-install-recommends "$@" && return 0
  update_apt_lists && run_apt_get install -y --no-install-recommends "$@"
}

# install_packages package...: ends the script when a package cannot be installed.
install_packages() {
  [ $# -gt 0 ] || return 0
  have_command apt-get ||
    give_up "missing: $*. This script installs with apt-get only; please install these yourself."
  [ "$(id -u)" -eq 0 ] || have_command sudo ||
    give_up "missing: $*. Please run this as root: apt-get install $*"
  try_install_packages "$@" ||
    give_up "apt-get could not install: $*. Its messages are above."
}

# install_build_packages [--fast]: with --fast also oneDNN, by which programs multiply faster, where it can be had.
install_build_packages() {
  # Unquoted: one word per package.
  install_packages $(missing_build_packages)
  if [ "${1:-}" = --fast ] && ! have_header dnnl.h; then
    try_install_packages libdnnl-dev || say "oneDNN could not be installed (libdnnl-dev). Programs will be slower."
  fi
  have_cmake || give_up "CMake 3.25 or newer is needed; this system offers $(cmake --version |
    sed -n '1s/^cmake version //p'). Please install a newer one, for example from cmake.org."
}
