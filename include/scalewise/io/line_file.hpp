// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "scalewise/files/bytes.hpp"
#include "scalewise/files/file.hpp"
#include "scalewise/files/inputs.hpp"
#include "scalewise/files/lock.hpp"
#include "scalewise/files/read_file.hpp"
#include "scalewise/io/json_reader.hpp"
#include "scalewise/messages/error.hpp"

namespace scalewise {

namespace detail {

// ,"sum":"0123456789abcdef"}
inline constexpr std::string_view sum_begin = ",\"sum\":\"";
inline constexpr std::string_view sum_end = "\"}";

inline std::string sum_of(std::string_view body) {
  return std::string(sum_begin) + files::fingerprint(body) + std::string(sum_end);
}

/// The text without the byte order mark that some editors put before UTF-8.
inline std::string_view after_mark(std::string_view text) {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  return text;
}

}  // namespace detail

namespace io {

/// A JSON object as a line whose last member is the fingerprint of the bytes before that member.
/// Accuracy: any change of one byte shows, the newline included; of other changes, all but one in
///           2^64. What checked_lines() passes over holds nothing.
/// Requires: texts in UTF-8, as text_json() has them.
inline std::string checked_line(const nlohmann::ordered_json& object) {
  std::string line = object.dump();
  line.pop_back();
  return line + detail::sum_of(line) + '\n';
}

/// Any text as JSON: a string where it is UTF-8, or else {"bytes":"ff00"}, in hexadecimal.
inline nlohmann::ordered_json text_json(const std::string& text) {
  nlohmann::ordered_json json = text;
  try {
    static_cast<void>(json.dump());
    return json;
  } catch (const nlohmann::ordered_json::type_error&) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string bytes;
    for (const char c : text) {
      bytes += digits[static_cast<unsigned char>(c) >> 4U];
      bytes += digits[static_cast<unsigned char>(c) & 15U];
    }
    return {{"bytes", bytes}};
  }
}

/// Throws:   InvalidInput for what text_json() does not write.
inline std::string text_of(const JsonReader& json) {
  if (!json.has("bytes")) return json.string();
  const std::string bytes = json.at("bytes").string();
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 2) {
    unsigned char c = 0;
    const char* begin = bytes.data() + i;
    if (i + 2 > bytes.size() || std::from_chars(begin, begin + 2, c, 16).ptr != begin + 2) {
      throw InvalidInput(json.path() + ".bytes", messages::printable(bytes),
                         "pairs of hexadecimal digits");
    }
    text += static_cast<char>(c);
  }
  return text;
}

/// An undamaged line.
struct CheckedLine {
  std::size_t number = 0;  // in its file, from 1
  std::string json;        // without the checksum
};

/// The lines of a file.
struct CheckedLines {
  std::vector<CheckedLine> good;
  std::vector<std::size_t> damaged;  // numbers; a last line without its end is damaged
  std::size_t size = 0;              // bytes up to the end of the last whole line
};

/// The lines of a text. Blank ones, a byte order mark and a carriage return before the end of a line,
/// as an editor or another system may have put them there, are passed over.
inline CheckedLines checked_lines(std::string_view text) {
  CheckedLines lines;
  lines.size = text.size() - detail::after_mark(text).size();
  constexpr std::size_t sum_size = detail::sum_begin.size() + 16 + detail::sum_end.size();
  for (std::size_t number = 1; lines.size < text.size(); ++number) {
    const std::size_t end = text.find('\n', lines.size);
    if (end == std::string_view::npos) {
      lines.damaged.push_back(number);
      break;
    }
    std::string_view line = text.substr(lines.size, end - lines.size);
    lines.size = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const std::string_view body = line.substr(0, line.size() - (std::min)(line.size(), sum_size));
    if (!body.empty() && line.substr(body.size()) == detail::sum_of(body)) {
      lines.good.push_back({number, std::string(body) + '}'});
    } else {
      lines.damaged.push_back(number);
    }
  }
  return lines;
}

/// A sentence for the user about damaged lines; empty where there are none.
inline std::string damage_text(const std::string& path, const std::vector<std::size_t>& damaged) {
  if (damaged.empty()) return {};
  constexpr std::size_t most = 20;
  std::string text = path + ": left out damaged line" + (damaged.size() > 1 ? "s" : "");
  for (std::size_t i = 0; i < (std::min)(damaged.size(), most); ++i) {
    text += (i == 0 ? " " : ", ") + std::to_string(damaged[i]);
  }
  if (damaged.size() > most) text += " and " + std::to_string(damaged.size() - most) + " more";
  return text;
}

/// Inputs as lines have them: [["--rule","he"],["--steps","10"]].
inline nlohmann::ordered_json inputs_json(const files::Inputs& inputs) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const files::Setting& input : inputs) {
    list.push_back(nlohmann::ordered_json::array({text_json(input.name), text_json(input.value)}));
  }
  return list;
}

/// Throws:   InvalidInput for what inputs_json() does not write.
inline files::Inputs inputs_of(const JsonReader& list) {
  files::Inputs inputs;
  for (const JsonReader& item : list.items()) {
    const std::vector<JsonReader> pair = item.items();
    if (pair.size() != 2) {
      throw InvalidInput(item.path(), std::to_string(pair.size()) + " items", "a name and a value");
    }
    inputs.push_back({text_of(pair[0]), text_of(pair[1])});
  }
  return inputs;
}

/// Refuses a file that does not begin with {"schema":"…", except for a damaged first line before an
/// undamaged one, and the rest of an interrupted first write.
/// Throws:   InvalidInput for another kind of file, or one of another version.
inline void require_schema(const std::string& path, std::string_view text,
                           const CheckedLines& lines, std::string_view schema) {
  const std::string begin = "{\"schema\":\"" + std::string(schema) + "\"";
  text = detail::after_mark(text);
  text.remove_prefix((std::min)(text.find_first_not_of("\r\n"), text.size()));
  if (text.substr(0, begin.size()) == begin.substr(0, text.size())) return;
  if (!lines.good.empty() && lines.good[0].number > 1) return;
  const std::size_t version = begin.rfind('/') + 1;
  if (text.substr(0, version) == begin.substr(0, version)) {
    throw InvalidInput(path, messages::printable(text.substr(11, text.find('"', 11) - 11)),
                       std::string(schema),
                       "another version wrote it; give another name and run again");
  }
  throw InvalidInput(path, "(another kind of file)", "a file of " + std::string(schema));
}

/// A file of checked lines, locked and open for appending.
class LineFile {
 public:
  /// Begins a file or resumes one. Changes nothing in an existing file.
  /// Throws:   InvalidInput for a file that is not regular, cannot be written, is of another kind
  ///           or version, or, with IfLocked::refuse, is in use.
  LineFile(std::string path, std::string_view schema, files::IfLocked if_locked)
      : path_(std::move(path)) {
    std::error_code error;
    if (std::filesystem::exists(path_, error) && !std::filesystem::is_regular_file(path_, error)) {
      refuse("(no regular file)", "a file that can be written");
    }
    file_.reset(std::fopen(path_.c_str(), "ab"));
    if (file_ == nullptr) {
      refuse("(cannot be written)", "a file that can be written",
             "is the folder there, and may you write to it?");
    }
    std::setvbuf(file_.get(), nullptr, _IONBF, 0);  // one write for all
    if (!files::lock_file(file_.get(), if_locked)) {
      refuse("(in use)", "a file that no other process writes");
    }
    const std::string text = files::read_file(path_, (std::numeric_limits<std::size_t>::max)());
    lines_ = checked_lines(text);
    require_schema(path_, text, lines_, schema);
    size_ = lines_.size;
  }

  /// The lines that were there when it was opened.
  const CheckedLines& lines() const { return lines_; }

  /// Cuts a last line without its end, which a process that was killed left, and appends lines.
  /// They are on disk when this returns.
  /// Throws:   InvalidInput when not all can be written; the file is as it was then.
  void append(std::string_view lines) {
    cut();
    const bool written = std::fwrite(lines.data(), 1, lines.size(), file_.get()) == lines.size() &&
                         files::flush_to_disk(file_.get());
    if (!written) {
      std::clearerr(file_.get());
      cut();
      refuse("(not all was written)", "room for every line", "is the disk full?");
    }
    if (size_ == 0) files::flush_folder(std::filesystem::path(path_).parent_path().string());
    size_ += lines.size();
  }

 private:
  [[noreturn]] void refuse(const std::string& value, const std::string& expectation,
                           const std::string& hint = {}) const {
    throw InvalidInput(path_.empty() ? "file name" : path_, path_.empty() ? "(empty)" : value,
                       expectation, hint);
  }

  void cut() const {
    std::error_code error;
    if (std::filesystem::file_size(path_, error) == size_ && !error) return;
    std::filesystem::resize_file(path_, size_, error);
    if (error) refuse("(cannot be cut)", "a file that can be written", error.message());
  }

  std::string path_;
  files::OpenFile file_;
  CheckedLines lines_;
  std::uintmax_t size_ = 0;
};

}  // namespace io

}  // namespace scalewise
