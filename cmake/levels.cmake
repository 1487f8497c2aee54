# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT
#
# scalewise_install_levels(program...): installs programs that compute once for any x86-64 processor and once for each of
# SCALEWISE_LEVELS, and in their place a launcher that starts the one for the processor. The programs of a level are a
# build of this project in the folder levels, the same but for -march.
include(ExternalProject)

function(scalewise_install_levels)
  set(folder ${CMAKE_INSTALL_LIBEXECDIR}/scalewise)
  file(RELATIVE_PATH from_programs ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBEXECDIR}/scalewise)
  add_executable(launcher launcher/launcher.cpp)
  target_include_directories(launcher PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_compile_features(launcher PRIVATE cxx_std_20)
  target_compile_definitions(launcher PRIVATE SCALEWISE_LEVELS_DIR="${from_programs}")
  target_link_libraries(launcher PRIVATE scalewise_dev)

  install(TARGETS ${ARGN} DESTINATION ${folder}/x86-64 COMPONENT programs)
  foreach(program IN LISTS ARGN)
    install(PROGRAMS $<TARGET_FILE:launcher> DESTINATION ${CMAKE_INSTALL_BINDIR} RENAME ${program}
      COMPONENT programs)
  endforeach()

  # One after the other: each uses all cores.
  set(before ${ARGN})
  foreach(level IN LISTS SCALEWISE_LEVELS)
    set(build ${PROJECT_BINARY_DIR}/levels/${level})
    ExternalProject_Add(programs_${level}
      SOURCE_DIR ${PROJECT_SOURCE_DIR}
      BINARY_DIR ${build}
      PREFIX ${build}/prefix
      CMAKE_ARGS
        -D CMAKE_BUILD_TYPE=${CMAKE_BUILD_TYPE}
        -D CMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}
        -D CMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER}
        "-DCMAKE_CXX_FLAGS=${CMAKE_CXX_FLAGS} -march=${level}"
        -D CMAKE_EXE_LINKER_FLAGS=-s
        -D CMAKE_UNITY_BUILD=${CMAKE_UNITY_BUILD}
        -D SCALEWISE_BLAS=${SCALEWISE_BLAS}
        -D SCALEWISE_BUILD_TESTS=OFF
        -D SCALEWISE_INSTALL=OFF
        -D SCALEWISE_NATIVE=OFF
      BUILD_COMMAND ${CMAKE_COMMAND} --build <BINARY_DIR> --target ${ARGN}
      BUILD_ALWAYS ON
      INSTALL_COMMAND ""
      DEPENDS ${before})
    set(before programs_${level})
    list(TRANSFORM ARGN PREPEND ${build}/tools/ OUTPUT_VARIABLE programs)
    install(PROGRAMS ${programs} DESTINATION ${folder}/${level} COMPONENT programs)
  endforeach()
endfunction()
