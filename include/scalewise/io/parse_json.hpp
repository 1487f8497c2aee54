// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/files/read_file.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/messages/words.hpp"

namespace scalewise {

namespace detail {

/// A JSON value as error messages show it.
inline std::string value_text(const nlohmann::ordered_json& value) {
  if (value.is_object()) return "(an object)";
  if (value.is_array()) return "(an array)";
  if (value.is_string())
    return messages::printable('"' + value.get_ref<const std::string&>() + '"');
  if (value.is_number_float() && !std::isfinite(value.get<double>())) return "(not finite)";
  return messages::printable(value.dump());
}

/// Builds the value while it is read, so that a bad text is refused before it can do harm.
class JsonBuilder final : public nlohmann::json_sax<nlohmann::ordered_json> {
 public:
  using Json = nlohmann::ordered_json;

  static constexpr std::size_t max_depth = 64;

  JsonBuilder(std::string_view text, std::string name) : text_(text), name_(std::move(name)) {}

  Json take() && { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // no JSON text has one

  bool start_object(std::size_t) override { return open(Json::object()); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_array() override { return close(); }

  bool key(string_t& value) override {
    key_ = value;
    if (!open_.back().keys.insert(key_).second) {
      throw InvalidInput(field(), "(given twice)", "one value for each key");
    }
    return true;
  }

  bool parse_error(std::size_t position, const std::string& token,
                   const Json::exception& error) override {
    constexpr int out_of_range = 406;
    if (error.id == out_of_range) {
      throw InvalidInput(field(), messages::printable(token), "a number that a double can hold");
    }
    const std::size_t end = (std::min)(position, text_.size());  // just after what was not expected
    const std::string_view before = text_.substr(0, end);
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const std::string_view last = before.substr(end > 30 ? end - 30 : 0);
    const bool cut_short = position > text_.size();
    throw InvalidInput(name_, (end > 30 ? "..." : "") + messages::printable(last), "valid JSON",
                       cut_short ? "it ends too early, in line " + std::to_string(line)
                                 : "the last of these characters, in line " + std::to_string(line) +
                                       ", cannot stand there");
  }

 private:
  struct Open {
    Json* value;
    std::set<std::string> keys;  // an ordered object would look through all of its own for each
  };

  std::string field() const {
    return key_.empty() ? name_ : name_ + ": " + messages::printable(key_);
  }

  Json* place(Json&& value) {
    if (open_.empty()) return &(root_ = std::move(value));
    Json& parent = *open_.back().value;
    if (parent.is_object()) {
      return &parent.get_ref<Json::object_t&>().emplace_back(key_, std::move(value)).second;
    }
    return &parent.emplace_back(std::move(value));
  }

  bool add(Json&& value) {
    place(std::move(value));
    return true;
  }

  bool open(Json&& value) {
    if (open_.size() == max_depth) {
      throw InvalidInput(name_, "(nested deeper than " + std::to_string(max_depth) + ")",
                         "at most " + std::to_string(max_depth) +
                             " arrays and objects inside "
                             "each other");
    }
    open_.push_back({place(std::move(value)), {}});  // stays where it is until it is closed
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  std::string_view text_;
  std::string name_;
  std::string key_;  // the last one
  Json root_;
  std::vector<Open> open_;
};

}  // namespace detail

namespace io {

/// The value of a JSON text; `name` is what errors call the text.
/// Throws:   InvalidInput for a text that is not JSON, a key given twice in one object, a number
///           beyond a double, or more than 64 arrays and objects inside each other.
/// Differs:  JSON itself allows all of these but the first.
inline nlohmann::ordered_json parse_json(std::string_view text, const std::string& name) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    throw InvalidInput(name, "(empty)", "valid JSON");
  }
  detail::JsonBuilder builder(text, name);
  nlohmann::json_sax<nlohmann::ordered_json>* const events = &builder;
  nlohmann::ordered_json::sax_parse(text.begin(), text.end(), events);
  return std::move(builder).take();
}

}  // namespace io

}  // namespace scalewise
