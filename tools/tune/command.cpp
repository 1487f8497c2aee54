// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "tune/command.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <thread>

#include "check/tasks.hpp"
#include "frame/signals.hpp"
#include "scalewise/check/sweep_table.hpp"
#include "scalewise/files/read_file.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/messages/utf8.hpp"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX asks for it

namespace scalewise::tune {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

/// The last line that is not blank.
std::string_view last_line(std::string_view text) {
  const std::size_t end = text.find_last_not_of(" \t\r\n");
  if (end == std::string_view::npos) return {};
  text = text.substr(0, end + 1);
  const std::size_t before = text.find_last_of("\r\n");
  return before == std::string_view::npos ? text : text.substr(before + 1);
}

/// A loss as it is written. None: that is not a number.
std::optional<Outcome> loss_of(const std::string& text) {
  if (check::detail::says_diverged(text)) return Outcome{infinite, "diverged"};
  const double loss = check::detail::table_number(text);
  if (std::isnan(loss)) return {};
  return Outcome{loss};
}

/// Starts sh -c. Returns: 0, or the error.
int start_shell(const std::string& command, const std::string& log, pid_t& process) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  constexpr int fresh = O_WRONLY | O_CREAT | O_TRUNC;
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, 1, (log + ".out").c_str(), fresh, 0666);
  ::posix_spawn_file_actions_addopen(&actions, 2, (log + ".err").c_str(), fresh, 0666);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::string shell = "sh", option = "-c", text = command;
  const std::array<char*, 4> words{shell.data(), option.data(), text.data(), nullptr};
  const int error =
      ::posix_spawn(&process, "/bin/sh", &actions, &attributes, words.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  return error;
}

/// Waits for the end of a process group's first process. Returns: its status; nothing if the program was asked to
/// stop, ten seconds after which the group is killed.
std::optional<int> wait_for(pid_t process) {
  using Clock = std::chrono::steady_clock;
  std::optional<Clock::time_point> stopped;
  int status = 0;
  for (auto pause = std::chrono::milliseconds(1);;
       pause = std::min(2 * pause, std::chrono::milliseconds(50))) {
    const pid_t ended = ::waitpid(process, &status, WNOHANG);
    if (ended == process) break;
    if (ended < 0 && errno != EINTR) return 1 << 8;
    if (frame::stop_requested() != 0) {
      if (!stopped) ::kill(-process, SIGTERM), stopped = Clock::now();
      if (Clock::now() - *stopped > std::chrono::seconds(10)) ::kill(-process, SIGKILL);
    }
    std::this_thread::sleep_for(pause);
  }
  if (frame::stop_requested() == 0) return status;
  ::kill(-process, SIGKILL);
  return {};
}

}  // namespace

std::string filled(std::string_view command,
                   const std::vector<std::pair<std::string, std::string>>& values) {
  std::string text;
  while (!command.empty()) {
    const std::pair<std::string, std::string>* found = nullptr;
    for (const auto& value : values) {
      if (command.starts_with("{" + value.first + "}")) found = &value;
    }
    text += found != nullptr ? experiment::shell_quoted(found->second) : std::string(1, command[0]);
    command.remove_prefix(found != nullptr ? found->first.size() + 2 : 1);
  }
  return text;
}

Outcome loss_in(std::string_view output, LossFrom from) {
  if (from == LossFrom::number) {
    const std::string_view line = last_line(output);
    const std::size_t space = line.find_last_of(" \t=:");
    const std::string word(space == std::string_view::npos ? line : line.substr(space + 1));
    if (const auto found = loss_of(word)) return *found;
    return {infinite,
            line.empty() ? "it printed nothing" : "its last line does not end with a number"};
  }
  for (std::string_view rest = output; !rest.empty();) {
    const std::string_view line = last_line(rest);
    rest = rest.substr(0, line.empty() ? 0 : static_cast<std::size_t>(line.data() - rest.data()));
    const std::size_t begin = std::min(line.find_first_not_of(" \t"), line.size());
    if (!line.substr(begin).starts_with('{')) continue;
    const std::string text = check::detail::with_nulls(line);
    const auto json =
        nlohmann::ordered_json::parse(text.data(), text.data() + text.size(), nullptr, false);
    if (!json.is_object() || !json.contains("loss")) continue;
    const nlohmann::ordered_json& loss = json.at("loss");
    if (const auto found = loss_of(loss.is_string() ? loss.get<std::string>() : loss.dump()))
      return *found;
    return {infinite, "its loss is not a number"};
  }
  return {infinite, last_line(output).empty()
                        ? "it printed nothing"
                        : "no line of its output is a JSON object with a loss"};
}

std::optional<Outcome> run_command(const std::string& command, LossFrom from,
                                   const std::string& log) {
  pid_t process = 0;
  if (const int error = start_shell(command, log, process); error != 0) {
    throw InvalidInput("--command", messages::printable(command), "a command that sh can start",
                       std::strerror(error));
  }
  const std::optional<int> status = wait_for(process);
  std::error_code ignored;
  const auto remove = [&] {
    for (const char* end : {".out", ".err"}) std::filesystem::remove(log + end, ignored);
  };
  if (!status) return remove(), std::nullopt;
  constexpr std::size_t most = std::size_t{1} << 28U;
  Outcome outcome{infinite};
  if (*status == 0) {
    outcome = loss_in(files::read_file(log + ".out", most), from);
  } else {
    // A shell says 128 + signal of its last command.
    const int code = WIFSIGNALED(*status) ? 128 + WTERMSIG(*status) : WEXITSTATUS(*status);
    outcome.reason = code > 128 && code - 128 <= SIGRTMAX
                         ? fmt::format("killed by signal {}", code - 128)
                         : fmt::format("exit code {}", code);
  }
  if (outcome.reason.empty() || outcome.reason == "diverged") return remove(), outcome;
  const std::string errors = files::read_file(log + ".err", most);
  const std::string_view said = last_line(errors).substr(0, 200);
  if (!said.empty()) outcome.reason += ": " + messages::visible_text(said);
  return outcome;
}

}  // namespace scalewise::tune
