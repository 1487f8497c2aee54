// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "frame/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

namespace scalewise::frame {

namespace {

bool output_is_terminal() { return ::isatty(STDOUT_FILENO) != 0; }

std::string environment(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): never set here
  return value == nullptr ? "" : value;
}

bool has_colors() {
  return output_is_terminal() && environment("NO_COLOR").empty() && environment("TERM") != "dumb";
}

}  // namespace

std::size_t terminal_columns() {
  if (!output_is_terminal()) return 0;
  winsize size{};
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

std::string painted(std::string_view verdict) {
  const char* color = verdict == "pass" ? "32" : verdict == "fail" ? "31" : "33";
  if (!has_colors()) return std::string(verdict);
  return std::string("\x1b[1;") + color + "m" + std::string(verdict) + "\x1b[0m";
}

std::string wrapped(const std::string& text, std::size_t columns, std::size_t indent) {
  if (columns <= indent) return text;
  std::string result;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) end = text.size();
    std::string line = text.substr(begin, end - begin);
    while (line.size() > columns) {
      std::size_t space = line.rfind(' ', columns);
      if (space == std::string::npos || space <= indent) space = line.find(' ', columns);
      if (space == std::string::npos) break;
      result += line.substr(0, space) + "\n";
      line = std::string(indent, ' ') + line.substr(space + 1);
    }
    result += line + (end < text.size() ? "\n" : "");
    begin = end + 1;
  }
  return result;
}

}  // namespace scalewise::frame
