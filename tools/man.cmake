# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
#
# Runs when the programs `installed` (paths) are: man pages by `help2man` from --help, for `version`.
set(ENV{OMP_NUM_THREADS} 1)
foreach(program IN LISTS installed)
  cmake_path(GET program FILENAME name)
  execute_process(COMMAND ${program} --help OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCH "^[^\n]*[^.\n]" about "${text}")
  execute_process(COMMAND ${help2man} --no-info "--name=${about}" --version-string=${version}
      "--source=scalewise ${version}" --include=${CMAKE_CURRENT_LIST_DIR}/man.h2m ${program}
    OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  # Where data lie depends on where the programs are put later.
  set(data ${CMAKE_CURRENT_LIST_DIR}/data/)
  string(REPLACE "-" "\\-" escaped ${data})
  string(REPLACE "${escaped}" "" text "${text}")
  string(REPLACE "${data}" "" text "${text}")
  set(page ${CMAKE_INSTALL_PREFIX}/${mandir}/man1/${name}.1)
  file(WRITE $ENV{DESTDIR}${page} "${text}")
  list(APPEND CMAKE_INSTALL_MANIFEST_FILES ${page})
endforeach()
