// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "frame/program.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <new>
#include <stdexcept>

#include "frame/machine.hpp"
#include "frame/signals.hpp"
#include "scalewise/messages/error.hpp"

namespace scalewise::frame {

namespace {

constexpr int bad_input = 2;

/// Gives closed standard streams a place, so that no file of results gets their numbers; writing to
/// a closed standard output still fails.
void fill_closed_streams() {
  for (const int stream : {0, 1, 2}) {
    if (::fcntl(stream, F_GETFD) != -1) continue;
    if (::open("/dev/null", stream == 2 ? O_WRONLY : O_RDONLY) < 0) return;
  }
}

bool running = false;

/// Takes over where a library ends the program, which OpenMP does by exit(1) without memory or threads: that code
/// is a verdict of ours.
void on_exit() {
  if (!running) return;
  static_cast<void>(
      std::fputs("a library ended the program: does it lack memory or threads?\n", stderr));
  std::_Exit(bad_input);
}

int say(const Program& program, const std::string& message) {
  std::cerr << program.name << ": " << message << '\n';
  return bad_input;
}

void print_inputs(const Options& options) {
  const files::Inputs inputs = options.inputs();
  for (const auto& [name, value] : inputs) {
    std::cout << name << " = " << messages::printable(value.empty() ? "(none)" : value) << '\n';
  }
  std::cout << "fingerprint " << files::fingerprint(inputs) << '\n';
}

int answer(const Program& program, const std::vector<std::string>& arguments) {
  const Request request = program.options->parse(arguments);
  const bool runs = request == Request::run || request == Request::dry_run;
  if (runs && program.check) program.check();
  if (runs) program.options->keep_inputs();
  switch (request) {
    case Request::help:
      std::cout << program.options->help(program.name, program.about);
      return 0;
    case Request::version:
      std::cout << program.name << " of scalewise " SCALEWISE_VERSION "\nproducts " << products()
                << ", vectors " << vectors() << ", threads " << threads() << '\n';
      return 0;
    case Request::dry_run:
      print_inputs(*program.options);
      if (program.expected) std::cout << "expected " << program.expected() << '\n';
      return 0;
    case Request::run:
      break;
  }
  program.options->try_outputs();
  handle_signals(program.name.c_str());
  const int code = program.run(arguments);
  return stop_requested() != 0 ? 128 + stop_requested() : code;
}

int guarded(const Program& program, const std::vector<std::string>& arguments) {
  try {
    return answer(program, arguments);
  } catch (const Interrupted&) {
    say(program, "stopped before anything was finished");
    return 128 + stop_requested();
  } catch (const std::exception& error) {
    const bool memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
                        dynamic_cast<const std::length_error*>(&error) != nullptr;
    return say(program, memory ? "not enough memory (hint: choose smaller sizes)" : error.what());
  }
}

}  // namespace

std::size_t terminal_columns() {
  if (::isatty(STDOUT_FILENO) == 0) return 0;
  winsize size{};
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

static int run(const Program& program, const std::vector<std::string>& arguments) {
  fill_closed_streams();
  ignore_write_signals();
  static const bool watched = std::atexit(on_exit) == 0;
  static_cast<void>(watched);
  running = true;
  const int code = guarded(program, arguments);
  running = false;
  errno = 0;
  const bool flushed = std::cout.flush() && std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (flushed) return code;
  const std::string reason = errno != 0 ? std::string(": ") + std::strerror(errno) : "";
  return say(program, "cannot write all of the output" + reason +
                          " (hint: is the disk full, or the reader of a pipe gone?)");
}

}  // namespace scalewise::frame

int main(int argc, char** argv) {
  using namespace scalewise;
  if (argc > 0) frame::called_as = argv[0];
  return frame::run(frame::program(), {argv + (argc > 0 ? 1 : 0), argv + argc});
}
