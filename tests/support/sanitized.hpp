// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

namespace scalewise::test {

/// Whether a sanitizer watches. Without optimization and under it everything takes thirty times as
/// long, so that a test which tries very many values tries some of them: the sanitizer needs to see
/// the code run, and the build for release tries all.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool sanitized = true;
#elif defined(__has_feature)
inline constexpr bool sanitized = __has_feature(address_sanitizer);
#else
inline constexpr bool sanitized = false;
#endif

}  // namespace scalewise::test
