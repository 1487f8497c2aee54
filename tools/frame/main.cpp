// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "frame/program.hpp"

int main(int argc, char** argv) {
  using namespace scalewise;
  return frame::run(frame::program(), {argv + (argc > 0 ? 1 : 0), argv + argc});
}
