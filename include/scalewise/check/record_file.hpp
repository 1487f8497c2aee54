// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "scalewise/check/records.hpp"
#include "scalewise/io/file.hpp"
#include "scalewise/io/json_reader.hpp"
#include "scalewise/io/read_file.hpp"

namespace scalewise::check {

inline constexpr std::string_view record_schema = "scalewise.coordinates/1";

/// Appends records to a file, one JSON object per line: any process of any run may append to the
/// same file, and files put behind each other are one.
/// Throws:   InvalidInput when not all could be written.
inline void append_records(const std::string& path, const Records& records) {
  std::string text;
  for (const auto& [quantity, steps] : records.all()) {
    for (const auto& [step, runs] : steps) {
      for (const auto& [run, moments] : runs) {
        // A number that is not finite becomes null.
        const nlohmann::ordered_json line{{"schema", record_schema},
                                          {"size", run.size},
                                          {"seed", run.seed},
                                          {"step", step},
                                          {"signal", word(signal_words, quantity.signal)},
                                          {"name", quantity.name},
                                          {"sum_abs", moments.sum_abs},
                                          {"sum_squares", moments.sum_squares},
                                          {"count", moments.count}};
        text += line.dump() + '\n';
      }
    }
  }
  std::FILE* file = std::fopen(path.c_str(), "ab");
  if (file == nullptr) {
    throw InvalidInput("record file", path, "a file that can be written",
                       "is the folder there, and may you write to it?");
  }
  const bool written =
      std::fwrite(text.data(), 1, text.size(), file) == text.size() && flush_to_disk(file);
  if (std::fclose(file) != 0 || !written) {
    throw InvalidInput("record file", path, "a file that takes all", "is the disk full?");
  }
}

/// Reads what append_records() has written. A last line without its end, of a process that was
/// killed while it wrote, is left out.
/// Throws:   InvalidInput naming file and line.
inline Records read_records(const std::string& path) {
  const std::string text = read_file(path, std::size_t{1} << 32U);
  Records records;
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) break;
    ++number;
    const std::string name = path + " line " + std::to_string(number);
    const nlohmann::json json = parse_json(std::string_view(text).substr(begin, end - begin), name);
    begin = end + 1;
    const JsonReader line(json, name);
    if (const std::string schema = line.at("schema").string(); schema != record_schema) {
      throw InvalidInput(name + ".schema", printable(schema), std::string(record_schema));
    }
    const auto sum = [&](const char* key) {
      const JsonReader value = line.at(key);
      return value.is_null() ? HUGE_VAL : value.number();
    };
    constexpr long most = 1L << 60;
    const Moments moments{sum("sum_abs"), sum("sum_squares"),
                          static_cast<std::uint64_t>(line.at("count").integer(0, most))};
    records.add({line.at("signal").word(signal_words), line.at("name").string()},
                line.at("step").integer(0, most),
                {line.at("size").integer(1, most),
                 static_cast<std::uint64_t>(line.at("seed").integer(0, most))},
                moments);
  }
  return records;
}

}  // namespace scalewise::check
