// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "frame/openblas_kernels.hpp"
#include "frame/program.hpp"

int main(int argc, char** argv) {
  using namespace scalewise;
  frame::choose_openblas_kernels(argv);
  if (argc > 0) frame::called_as() = argv[0];
  return frame::run(frame::program(), {argv + (argc > 0 ? 1 : 0), argv + argc});
}
