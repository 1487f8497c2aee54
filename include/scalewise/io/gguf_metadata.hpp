// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "scalewise/files/file_cursor.hpp"
#include "scalewise/io/stored_tensor.hpp"
#include "scalewise/messages/error.hpp"

namespace scalewise::detail {

/// A value of GGUF's metadata. Only whole numbers and short texts are kept.
struct GgufValue {
  enum class Form { natural, text, array, other };

  Form form = Form::other;
  std::uint64_t natural = 0;
  std::string text;  // of an "other": what errors call it
};

using GgufMetadata = std::map<std::string, GgufValue, std::less<>>;

inline std::string to_text(const GgufValue& value) {
  switch (value.form) {
    case GgufValue::Form::natural:
      return std::to_string(value.natural);
    case GgufValue::Form::text:
      return '"' + messages::printable(value.text) + '"';
    case GgufValue::Form::array:
      return "(an array)";
    case GgufValue::Form::other:
      break;
  }
  return value.text;
}

/// Reads the keys and values of GGUF's metadata.
class GgufMetadataReader {
 public:
  explicit GgufMetadataReader(files::FileCursor& file) : file_(file) {}

  GgufMetadata read(std::uint64_t count) {
    if (count > most_values || count > file_.left() / smallest_value) {
      throw file_.error("n_kv", std::to_string(count),
                        "at most " + std::to_string(most_values) + " that fit in the file");
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t length = file_.natural(8, "length of a key");
      keys_size_ += (std::min)(length, longest_keys + 1);
      if (length == 0 || length > longest_key || keys_size_ > longest_keys) {
        throw file_.error("length of a key", std::to_string(length),
                          "1 to " + std::to_string(longest_key) + ", and at most " +
                              std::to_string(longest_keys) + " bytes in all");
      }
      key_ = file_.text(static_cast<std::size_t>(length), "key");
      field_ = messages::printable(key_);
      if (metadata_.contains(key_)) {
        throw file_.error(field_, "(given twice)", "one value for each key");
      }
      GgufValue value = read_value();
      metadata_.emplace(std::move(key_), std::move(value));
    }
    return std::move(metadata_);
  }

 private:
  enum Type : std::uint32_t { float32 = 6, boolean = 7, string = 8, array = 9, float64 = 12 };

  static constexpr std::uint64_t most_values = 1U << 14U;
  static constexpr std::uint64_t smallest_value = 14;  // a key of one letter and one byte
  static constexpr std::uint64_t longest_key = 65535;
  static constexpr std::uint64_t longest_keys = 1U << 20U;
  static constexpr std::uint64_t longest_text = 64;
  static constexpr std::uint64_t longest_metadata = 1U << 26U;
  static constexpr int deepest = 4;  // arrays in each other

  /// Bytes of a value, by type: u8, i8, u16, i16, u32, i32, f32, bool, string, array, u64, i64, f64.
  static constexpr std::array<unsigned, 13> widths{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

  std::uint32_t read_type() {
    const auto type = static_cast<std::uint32_t>(file_.natural(4, field_ + ": type"));
    if (type < widths.size()) return type;
    throw file_.error(field_ + ": type", std::to_string(type), "a type from 0 to 12");
  }

  GgufValue read_value() {
    const std::uint32_t type = read_type();
    GgufValue value;
    if (type == array) {
      skip_array(1);
      value.form = GgufValue::Form::array;
    } else if (type == string) {
      const std::uint64_t length = file_.natural(8, field_);
      if (length <= longest_text) {
        value.form = GgufValue::Form::text;
        value.text = file_.text(static_cast<std::size_t>(length), field_);
      } else {
        skip(length);
        value.text = "(a longer text)";
      }
    } else {
      value.natural = file_.natural(widths[type], field_);
      const bool is_signed = type == 1 || type == 3 || type == 5 || type == 11;
      const bool negative = is_signed && (value.natural >> (8 * widths[type] - 1)) != 0;
      if (type == boolean && value.natural > 1) {
        throw file_.error(field_, std::to_string(value.natural), "0 or 1, a boolean");
      }
      if (type == float32 || type == float64 || type == boolean || negative) {
        value.text = negative          ? "(negative)"
                     : type == boolean ? (value.natural == 1 ? "true" : "false")
                                       : "(a floating-point number)";
      } else {
        value.form = GgufValue::Form::natural;
      }
    }
    return value;
  }

  void skip_array(int depth) {
    check_length();
    if (depth > deepest) {
      throw file_.error(field_, "(nested deeper)",
                        "at most " + std::to_string(deepest) + " arrays in each other");
    }
    const std::uint32_t type = read_type();
    const std::uint64_t count = file_.natural(8, field_);
    const std::uint64_t least = type == string ? 8 : type == array ? 12 : widths[type];
    if (count > file_.left() / least) {
      throw file_.error(field_, "(an array of " + std::to_string(count) + ")",
                        "as many as the file can hold");
    }
    if (type != string && type != array) {
      skip(count * least);
      return;
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      if (type == array) skip_array(depth + 1);
      if (type == string) skip(file_.natural(8, field_));
    }
  }

  void skip(std::uint64_t bytes) {
    file_.skip(bytes, field_);
    check_length();
  }

  void check_length() const {
    if (file_.position() <= longest_metadata) return;
    throw file_.error("metadata", "(longer)",
                      "at most " + std::to_string(longest_metadata) + " bytes");
  }

  files::FileCursor& file_;
  GgufMetadata metadata_;
  std::string key_;    // the last one
  std::string field_;  // what errors call it
  std::uint64_t keys_size_ = 0;
};

}  // namespace scalewise::detail
