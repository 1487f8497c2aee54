// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#if defined(__unix__) || defined(__APPLE__)
#define SCALEWISE_HAS_PROGRAMS
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX asks for it
#endif

namespace scalewise::plot::detail {

/// Result of another program.
struct ProgramRun {
  std::string output = {};
  std::string errors = {};   // its standard error
  std::string problem = {};  // why it has no result; empty: it ended with exit code 0
};

#ifdef SCALEWISE_HAS_PROGRAMS

/// A file descriptor that is closed at the end of its scope.
class Handle {
 public:
  explicit Handle(int value = -1) : value_(value) {}
  Handle(Handle&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Handle() { close(); }
  void close() {
    if (value_ >= 0) ::close(std::exchange(value_, -1));
  }
  int get() const { return value_; }
  bool is_open() const { return value_ >= 0; }

 private:
  int value_;
};

/// Both ends of a stream: sockets, since writing to a closed one need not raise a signal.
struct Stream {
  Handle ours;
  Handle theirs;

  Stream() {
    std::array<int, 2> ends{-1, -1};
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) != 0) return;
    for (const int end : ends) ::fcntl(end, F_SETFD, FD_CLOEXEC);
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
#ifdef SO_NOSIGPIPE
    const int on = 1;
    ::setsockopt(ends[0], SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
#endif
    ours = Handle(ends[0]);
    theirs = Handle(ends[1]);
  }
};

/// Sends what a stream takes of a text, and closes it after the end.
inline void send_some(Handle& to, std::string_view& text) {
#ifdef MSG_NOSIGNAL
  constexpr int flags = MSG_NOSIGNAL;
#else
  constexpr int flags = 0;
#endif
  const ssize_t sent = ::send(to.get(), text.data(), text.size(), flags);
  if (sent > 0) text.remove_prefix(static_cast<std::size_t>(sent));
  const bool later = sent < 0 && (errno == EAGAIN || errno == EINTR);
  if (text.empty() || (sent < 0 && !later)) to.close();
}

/// Takes what is there, and closes the stream at its end.
inline void receive_some(Handle& from, std::string& text) {
  std::array<char, std::size_t{1} << 16> block;
  const ssize_t got = ::recv(from.get(), block.data(), block.size(), 0);
  if (got > 0) text.append(block.data(), static_cast<std::size_t>(got));
  const bool later = got < 0 && (errno == EAGAIN || errno == EINTR);
  if (got == 0 || (got < 0 && !later)) from.close();
}

/// A process in a group of its own, which a signal to this one's group (Ctrl-C) does not reach.
/// Returns:  0, or the error.
inline int start_program(const char* name, const char* argument, const std::array<int, 3>& streams,
                         pid_t& process) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  for (int i = 0; i < 3; ++i) {
    ::posix_spawn_file_actions_adddup2(&actions, streams[static_cast<std::size_t>(i)], i);
  }
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::string first = name;
  std::string second = argument;
  const std::array<char*, 3> words{first.data(), second.data(), nullptr};
  const int error = ::posix_spawnp(&process, name, &actions, &attributes, words.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  return error;
}

/// Runs a program found in PATH on an input; no file is written, and no shell is asked.
/// Returns:  what it wrote, or the problem: it is not found or cannot start, it fails, or it takes longer
///           than `limit`; then it is killed with all that it started.
inline ProgramRun run_program(const char* name, const char* argument, std::string_view input,
                              std::chrono::milliseconds limit) {
  Stream in;
  Stream out;
  Stream err;
  if (!in.theirs.is_open() || !out.theirs.is_open() || !err.theirs.is_open()) {
    return {.problem = std::string("cannot start ") + name + ": " + std::strerror(errno)};
  }
  pid_t process = 0;
  const int error =
      start_program(name, argument, {in.theirs.get(), out.theirs.get(), err.theirs.get()}, process);
  if (error == ENOENT || error == EACCES) return {.problem = std::string(name) + " was not found"};
  if (error != 0) {
    return {.problem = std::string("cannot start ") + name + ": " + std::strerror(error)};
  }
  for (Stream* stream : {&in, &out, &err}) stream->theirs.close();

  ProgramRun run;
  const auto end = std::chrono::steady_clock::now() + limit;
  bool late = false;
  while (!late && (out.ours.is_open() || err.ours.is_open())) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    late = left.count() <= 0;
    std::array<pollfd, 3> streams{pollfd{in.ours.get(), POLLOUT, 0},  // poll leaves out -1
                                  pollfd{out.ours.get(), POLLIN, 0},
                                  pollfd{err.ours.get(), POLLIN, 0}};
    if (late || ::poll(streams.data(), streams.size(), static_cast<int>(left.count())) <= 0) {
      continue;
    }
    if (streams[0].revents != 0) send_some(in.ours, input);
    if (streams[1].revents != 0) receive_some(out.ours, run.output);
    if (streams[2].revents != 0) receive_some(err.ours, run.errors);
  }
  // Its group may have processes that keep running after it.
  if (late) ::kill(-process, SIGKILL);
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) continue;
  if (late) {
    run.problem = std::string(name) + " took longer than " +
                  std::to_string(std::chrono::duration_cast<std::chrono::seconds>(limit).count()) +
                  " s";
  } else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    run.problem = std::string(name) + " failed";
  }
  return run;
}

#else

inline ProgramRun run_program(const char* name, const char*, std::string_view,
                              std::chrono::milliseconds) {
  return {.problem = std::string(name) + " runs on POSIX systems only"};
}

#endif

}  // namespace scalewise::plot::detail
