// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The inputs that a result depends on, and the places that it is written to.

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <type_traits>

#include "frame/options.hpp"
#include "frame/outputs.hpp"
#include "scalewise/files/bytes.hpp"
#include "scalewise/files/read_file.hpp"
#include "scalewise/io/parse_json.hpp"
#include "scalewise/messages/error.hpp"

namespace scalewise::frame {

namespace {

using Json = nlohmann::ordered_json;

/// Of the bytes of a file. A pipe could not be read again by the program.
std::string file_fingerprint(const std::string& option, const std::string& path) {
  if (path.empty()) return {};
  std::error_code error;
  if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error)) {
    throw InvalidInput(option, printable(path), "a regular file");
  }
  return fingerprint(read_file(path, std::size_t{1} << 30U));
}

/// A value of settings() as Inputs hold it.
template <class AnyJson>
std::string input_text(const AnyJson& value) {
  return value.is_string() ? value.template get<std::string>() : value.dump();
}

/// The "settings" of the file PROGRAM.json that an earlier run has left in a folder; none without such a file.
/// Throws:   InvalidInput for a file of something else.
std::optional<nlohmann::json> settings_in(const std::string& file, const std::string& option,
                                          const std::string& folder) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(file, error);
  if (!std::filesystem::exists(status)) return {};
  if (std::filesystem::is_regular_file(status)) {  // reading a pipe would wait for ever
    try {
      const nlohmann::json saved = parse_json(read_file(file, std::size_t{1} << 30U), file);
      if (saved.is_object() && saved.contains("settings") && saved["settings"].is_object()) {
        return saved["settings"];
      }
    } catch (const InvalidInput&) {  // the message below says what to do
    }
  }
  throw InvalidInput(option, printable(folder), "a folder without another " + file,
                     "use another folder, or delete that file");
}

}  // namespace

nlohmann::ordered_json Option::value() const {
  return std::visit(
      [&](const auto* variable) -> Json {
        using Value = std::remove_cv_t<std::remove_pointer_t<decltype(variable)>>;
        if constexpr (std::is_same_v<Value, std::optional<double>>) {
          return *variable ? Json(**variable) : Json(nullptr);
        } else if constexpr (std::is_same_v<Value, std::string>) {
          return role_ == Role::reads ? file_fingerprint(name_, *variable) : *variable;
        } else if constexpr (std::is_same_v<Value, std::vector<std::string>>) {
          if (role_ != Role::reads) return *variable;
          Json files = Json::array();
          for (const std::string& path : *variable) files.push_back(file_fingerprint(name_, path));
          return files;
        } else {
          return *variable;
        }
      },
      variable_);
}

Inputs Options::inputs() const {
  Inputs inputs;
  for (const Option& option : list_) {
    if (option.is_input()) inputs.push_back({option.name_, input_text(option.value())});
  }
  return inputs;
}

nlohmann::ordered_json Options::settings() const {
  Json settings = Json::object();
  for (const Option& option : list_) {
    if (option.is_input() || option.role_ == Option::Role::runs) {
      settings[option.name_.starts_with("--") ? option.name_.substr(2) : option.name_] =
          option.value();
    }
  }
  return settings;
}

std::vector<std::string> Options::words(bool from_anywhere) const {
  std::vector<std::string> words;
  for (const Option& option : list_) {
    const bool counts = option.is_input() || option.role_ == Option::Role::runs;
    if (!option.given_ || !(counts || (from_anywhere && option.name_ == "--threads"))) continue;
    for (const std::string& word : option.given_words_) {
      words.push_back(option.name_);
      if (std::holds_alternative<bool*>(option.variable_)) break;
      const bool path = from_anywhere && option.role_ == Option::Role::reads;
      words.push_back(path ? std::filesystem::absolute(word).string() : word);
    }
  }
  return words;
}

void Options::try_outputs(const std::string& program) const {
  for (const Option& option : list_) {
    const auto* path = std::get_if<std::string*>(&option.variable_);
    if (path == nullptr || (*path)->empty()) continue;
    if (option.role_ == Option::Role::writes_file) try_file(option.name_, **path);
    if (option.role_ != Option::Role::writes_folder) continue;
    if (!option.read_with_.empty() && given(option.read_with_)) continue;
    try_folder(option.name_, **path);
    const std::string file = (std::filesystem::path(**path) / (program + ".json")).string();
    std::optional<nlohmann::json> saved = settings_in(file, option.name_, **path);
    if (!saved) continue;
    Inputs there;  // in the order of the options, which objects of JSON do not keep
    for (const Option& other : list_) {
      const auto found = saved->find(other.name_.substr(other.name_.starts_with("--") ? 2 : 0));
      if (found == saved->end()) continue;
      if (other.role_ != Option::Role::runs) there.push_back({other.name_, input_text(*found)});
      saved->erase(found);
    }
    for (const auto& [name, value] : saved->items()) {
      there.push_back({"--" + name, input_text(value)});
    }
    require_same_inputs(inputs(), there, file);
  }
}

}  // namespace scalewise::frame
