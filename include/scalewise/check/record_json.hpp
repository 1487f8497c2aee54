// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/core.h>

#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "scalewise/check/records.hpp"
#include "scalewise/check/require_record.hpp"
#include "scalewise/io/json_reader.hpp"
#include "scalewise/io/line_file.hpp"
#include "scalewise/messages/error.hpp"

namespace scalewise::check {

namespace detail {

inline nlohmann::ordered_json record_json(const Quantity& quantity, long step,
                                          const Moments& moments) {
  return {{"step", step},
          {"signal", word(signal_words, quantity.signal)},
          {"name", io::text_json(quantity.name)},
          {"sum_abs", moments.sum_abs},  // null if not finite
          {"sum_squares", moments.sum_squares},
          {"count", moments.count}};
}

}  // namespace detail

/// The records of each run, as a list for files; sums that are not finite are null.
inline std::map<Run, nlohmann::ordered_json> records_json(const Records& records) {
  std::map<Run, nlohmann::ordered_json> lists;
  records.for_each(
      [&](const Quantity& quantity, long step, const Run& run, const Moments& moments) {
        lists[run].push_back(detail::record_json(quantity, step, moments));
      });
  return lists;
}

/// The other way round, of one run.
/// Throws:   InvalidInput naming the member: for one that is unknown or missing, a sum that is negative
///           or no number, sums that no numbers have, a name that is not UTF-8 or has control
///           characters, and a record given twice.
inline Records records_of(const io::JsonReader& list, const Run& run) {
  Records records;
  for (const io::JsonReader& item : list.items()) {
    item.only({"step", "signal", "name", "sum_abs", "sum_squares", "count"});
    const auto sum = [&](const char* key) {
      const io::JsonReader value = item.at(key);
      if (value.is_null()) return HUGE_VAL;
      if (!(value.number() >= 0))
        throw InvalidInput(value.path(), fmt::format("{:g}", value.number()),
                           "a sum, 0 or greater");
      return value.number();
    };
    const Quantity quantity{item.at("signal").word(signal_words), io::text_of(item.at("name"))};
    messages::require_name(item.at("name").path(), quantity.name);
    const long step = item.at("step").integer(0, (std::numeric_limits<long>::max)());
    if (records.has(quantity, step, run)) {
      throw InvalidInput(item.path(), "(given twice)", "one record of each quantity and step");
    }
    const Moments moments{sum("sum_abs"), sum("sum_squares"), item.at("count").natural()};
    detail::require_possible_sums(item.path(), quantity, moments);
    records.add(quantity, step, run, moments);
  }
  return records;
}

}  // namespace scalewise::check
