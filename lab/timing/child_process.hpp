// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

extern char** environ;

namespace scalewise::benchmark {

/// A program that is spoken to line by line through its standard input and output.
/// Requires: SIGPIPE ignored, so that a program that has ended is reported by write_line().
/// Throws:   std::runtime_error when it cannot be started or spoken to.
class ChildProcess {
 public:
  using Environment = std::map<std::string, std::string>;

  /// Starts command[0], searched in PATH, with `changed` in place of variables of the same name.
  explicit ChildProcess(const std::vector<std::string>& command, const Environment& changed = {})
      : name_(command.at(0)) {
    int input[2] = {-1, -1};
    int output[2] = {-1, -1};
    if (pipe2(input, O_CLOEXEC) != 0 || pipe2(output, O_CLOEXEC) != 0) fail("pipe", errno);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
    std::vector<std::string> arguments = command;
    std::vector<std::string> variables = environment(changed);
    const int error = posix_spawnp(&id_, name_.c_str(), &actions, nullptr,
                                   pointers(arguments).data(), pointers(variables).data());
    posix_spawn_file_actions_destroy(&actions);
    close(input[0]);
    close(output[1]);
    input_ = input[1];
    output_ = output[0];
    if (error != 0) {
      id_ = -1;
      close_pipes();
      fail("start", error);
    }
  }

  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess() { wait(); }

  void write_line(const std::string& line) {
    const std::string text = line + "\n";
    for (std::size_t sent = 0; sent < text.size();) {
      const ssize_t size = write(input_, text.data() + sent, text.size() - sent);
      if (size < 0 && errno == EINTR) continue;
      if (size < 0) fail("write to", errno);
      sent += static_cast<std::size_t>(size);
    }
  }

  /// The next line without its end, or nothing when the program has closed its output.
  std::optional<std::string> read_line() {
    for (;;) {
      const std::size_t end = received_.find('\n');
      if (end != std::string::npos) {
        std::string line = received_.substr(0, end);
        received_.erase(0, end + 1);
        return line;
      }
      char buffer[4096];
      const ssize_t size = ::read(output_, buffer, sizeof buffer);
      if (size < 0 && errno == EINTR) continue;
      if (size < 0) fail("read from", errno);
      if (size == 0) return std::nullopt;
      received_.append(buffer, static_cast<std::size_t>(size));
    }
  }

  /// Closes its input and returns its exit code once it ends; 128 + signal when one ended it.
  int wait() {
    close_pipes();
    if (id_ > 0) {
      int status = 0;
      while (waitpid(id_, &status, 0) < 0 && errno == EINTR) {
      }
      id_ = -1;
      code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    return code_;
  }

 private:
  [[noreturn]] void fail(const std::string& what, int error) const {
    throw std::runtime_error("cannot " + what + " " + name_ + ": " + std::strerror(error));
  }

  void close_pipes() {
    if (input_ >= 0) close(input_);
    if (output_ >= 0) close(output_);
    input_ = output_ = -1;
  }

  static std::vector<std::string> environment(const Environment& changed) {
    std::vector<std::string> variables;
    for (char** at = environ; *at != nullptr; ++at) {
      const std::string variable = *at;
      if (!changed.contains(variable.substr(0, variable.find('=')))) variables.push_back(variable);
    }
    for (const auto& [name, value] : changed) variables.push_back(name + "=" + value);
    return variables;
  }

  static std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> all;
    for (std::string& text : texts) all.push_back(text.data());
    all.push_back(nullptr);
    return all;
  }

  std::string name_;
  std::string received_;
  pid_t id_ = -1;
  int input_ = -1;
  int output_ = -1;
  int code_ = -1;
};

}  // namespace scalewise::benchmark
