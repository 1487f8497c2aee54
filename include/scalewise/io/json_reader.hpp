// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "scalewise/io/parse_json.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/messages/nearest.hpp"
#include "scalewise/messages/words.hpp"

namespace scalewise::io {

/// A JSON value together with the path to it, so that every complaint says where.
/// Throws:   each accessor, InvalidInput when the value is not what it asks for.
class JsonReader {
 public:
  JsonReader(const nlohmann::ordered_json& json, std::string path)
      : json_(json), path_(std::move(path)) {}
  JsonReader(nlohmann::ordered_json&& json, std::string path) = delete;  // it has to outlive this

  const std::string& path() const { return path_; }
  bool is_null() const { return json_.is_null(); }
  bool has(const std::string& key) const { return json_.is_object() && json_.contains(key); }

  JsonReader at(const std::string& key) const {
    if (!json_.is_object()) fail("an object");
    const auto found = json_.find(key);
    if (found == json_.end()) {
      throw InvalidInput(path_ + "." + key, "(missing)", "a value");
    }
    return {*found, path_ + "." + key};
  }

  std::vector<JsonReader> items() const {
    if (!json_.is_array()) fail("an array");
    std::vector<JsonReader> all;
    for (std::size_t i = 0; i < json_.size(); ++i) {
      all.emplace_back(json_[i], path_ + "[" + std::to_string(i) + "]");
    }
    return all;
  }

  /// Complains of a key that is not among the known ones.
  template <class Names = std::initializer_list<std::string_view>>
  void only(const Names& known) const {
    if (!json_.is_object()) fail("an object");
    for (auto item = json_.begin(); item != json_.end(); ++item) {
      if (std::find(known.begin(), known.end(), item.key()) != known.end()) continue;
      throw InvalidInput(path_ + "." + item.key(), detail::value_text(item.value()), "a known key",
                         messages::did_you_mean(item.key(), known));
    }
  }

  std::string string() const {
    if (!json_.is_string()) fail("a string");
    return json_.get<std::string>();
  }
  bool boolean() const {
    if (!json_.is_boolean()) fail("true or false");
    return json_.get<bool>();
  }
  long integer() const {
    if (!json_.is_number_integer()) fail("a whole number");
    if (json_.is_number_unsigned() && json_.get<std::uint64_t>() >= std::uint64_t{1} << 62U) {
      fail("a whole number below 2^62");
    }
    const auto value = json_.get<std::int64_t>();
    using Limits = std::numeric_limits<long>;  // 32 bits on Windows
    if (value < (Limits::min)() || value > (Limits::max)()) fail("a smaller whole number");
    return static_cast<long>(value);
  }
  /// A number below 1e308 in size.
  /// Units:    as in the file: no conversion
  double number() const {
    if (!json_.is_number()) fail("a number");
    const double value = json_.get<double>();
    if (!(value > -1e308 && value < 1e308)) fail("a finite number");
    return value;
  }
  /// A whole number between two bounds, both included.
  long integer(long least, long most) const {
    const long value = integer();
    if (value < least || value > most) {
      fail("a whole number from " + std::to_string(least) + " to " + std::to_string(most));
    }
    return value;
  }
  /// A whole number from 0 to 2^64 - 1.
  std::uint64_t natural() const {
    if (!json_.is_number_unsigned()) fail("a whole number from 0 to 2^64 - 1");
    return json_.get<std::uint64_t>();
  }
  template <class Enum, std::size_t size>
  Enum word(const messages::Spelling<Enum, size>& spelling) const {
    return value_of(spelling, path_, string());
  }

 private:
  [[noreturn]] void fail(const std::string& expectation) const {
    throw InvalidInput(path_, detail::value_text(json_), expectation);
  }

  const nlohmann::ordered_json& json_;
  std::string path_;
};

}  // namespace scalewise::io
