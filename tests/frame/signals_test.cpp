// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "frame/signals.hpp"

#include "support/catch.hpp"

#if defined(__linux__) && defined(__x86_64__)

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <vector>

namespace {

/// Sends the calling thread a signal while its stack pointer is `top`, as a kernel of oneDNN may have it.
long signal_with_stack_at(std::byte* top, int signal) {
  long result = SYS_tgkill;
  asm volatile(
      "movq %%rsp, %%rbx\n\t"
      "movq %[top], %%rsp\n\t"
      "syscall\n\t"
      "movq %%rbx, %%rsp"
      : "+a"(result)
      : "D"(static_cast<long>(::getpid())), "S"(::syscall(SYS_gettid)),
        "d"(static_cast<long>(signal)), [top] "r"(top)
      : "rbx", "rcx", "r11", "memory");
  return result;
}

}  // namespace

TEST_CASE("Signals write nothing to where the stack pointer is", "[frame]") {
  using namespace scalewise;
  stack_t none{}, others{};  // Catch2 and sanitizers have one
  none.ss_flags = SS_DISABLE;
  REQUIRE(::sigaltstack(&none, &others) == 0);
  frame::handle_signals("signals_test");
  constexpr auto before = std::byte{0x5a};
  std::vector<std::byte> heap(std::size_t{1} << 16, before);
  const long result = signal_with_stack_at(heap.data() + heap.size() / 2, SIGINT);
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  REQUIRE(::sigaltstack(&others, nullptr) == 0);
  CHECK(result == 0);
  CHECK(frame::stop_requested() == SIGINT);
  CHECK(std::count(heap.begin(), heap.end(), before) == static_cast<std::ptrdiff_t>(heap.size()));
}

#endif
