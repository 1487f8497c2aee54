// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace scalewise::files {

/// Hash of a text: FNV-1a with 64 bits. Every single changed byte changes it.
constexpr std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash;
}

/// A hash as 16 hexadecimal digits.
inline std::string fingerprint(std::string_view text) {
  std::string digits(16, '0');
  std::uint64_t rest = hash_of(text);
  for (std::size_t i = digits.size(); i-- > 0; rest >>= 4U)
    digits[i] = "0123456789abcdef"[rest & 15U];
  return digits;
}

/// The unsigned integer with the bits of a number.
template <class Number>
using BitsOf = std::conditional_t<sizeof(Number) == 4, std::uint32_t, std::uint64_t>;

/// Writes numbers and texts one after another, as the same bytes on every platform: lowest byte
/// first, floating-point numbers as IEEE 754 has them, a text after its length.
class ByteWriter {
 public:
  template <class Number>
  void number(Number value) {
    numbers(&value, 1);
  }

  template <class Number>
  void numbers(const Number* values, std::size_t count) {
    const std::size_t begin = bytes_.size();
    bytes_.resize(begin + count * sizeof(Number));
    char* out = bytes_.data() + begin;
    for (std::size_t i = 0; i < count; ++i) {
      const auto bits = __builtin_bit_cast(BitsOf<Number>, values[i]);
      for (unsigned b = 0; b < sizeof(Number); ++b) *out++ = static_cast<char>(bits >> (8 * b));
    }
  }

  void text(std::string_view value) {
    number(static_cast<std::uint64_t>(value.size()));
    raw(value);
  }

  /// Bytes without their length.
  void raw(std::string_view value) { bytes_.append(value); }

  const std::string& bytes() const { return bytes_; }
  std::string take() && { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Takes apart what ByteWriter wrote. At the first read beyond the end it turns bad, and from then
/// on gives zeros and empty texts.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  template <class Number>
  Number number() {
    Number value{};
    numbers(&value, 1);
    return value;
  }

  template <class Number>
  void numbers(Number* values, std::size_t count) {
    if (!has(count, sizeof(Number))) return;
    const char* in = rest_.data();
    for (std::size_t i = 0; i < count; ++i) {
      BitsOf<Number> bits = 0;
      for (unsigned b = 0; b < sizeof(Number); ++b) {
        bits |= static_cast<BitsOf<Number>>(static_cast<unsigned char>(*in++)) << (8 * b);
      }
      values[i] = __builtin_bit_cast(Number, bits);
    }
    rest_.remove_prefix(count * sizeof(Number));
  }

  std::string text() { return raw(number<std::uint64_t>()); }

  /// Bytes of a known length.
  std::string raw(std::uint64_t size) {
    if (!has(size, 1)) return {};
    std::string value(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return value;
  }

  /// Whether `count` items of at least `size` bytes can still come; bad if not.
  bool has(std::uint64_t count, std::size_t size) {
    if (count > rest_.size() / size) good_ = false;
    return good_;
  }

  bool good() const { return good_; }
  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
  bool good_ = true;
};

/// Bytes and, in the 8 bytes after them, their hash.
inline std::string with_checksum(std::string bytes) {
  ByteWriter sum;
  sum.number(hash_of(bytes));
  return std::move(bytes) + sum.bytes();
}

/// The bytes before their hash; none when they do not match it.
inline std::optional<std::string_view> without_checksum(std::string_view bytes) {
  constexpr std::size_t size = sizeof(std::uint64_t);
  if (bytes.size() < size) return {};
  const std::string_view covered = bytes.substr(0, bytes.size() - size);
  const auto sum = ByteReader(bytes.substr(covered.size())).number<std::uint64_t>();
  if (sum != hash_of(covered)) return {};
  return covered;
}

}  // namespace scalewise::files
