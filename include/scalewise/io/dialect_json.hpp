// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/dialect/all.hpp"
#include "scalewise/dialect/known_entries.hpp"
#include "scalewise/dialect/pattern.hpp"
#include "scalewise/files/read_file.hpp"
#include "scalewise/io/json_reader.hpp"
#include "scalewise/io/parse_json.hpp"
#include "scalewise/messages/name.hpp"
#include "scalewise/messages/nearest.hpp"
#include "scalewise/messages/words.hpp"
#include "scalewise/plan/code_factors.hpp"

namespace scalewise {

namespace io {

/// Name and major version of a dialect's JSON; docs/dialects.md writes it down.
inline constexpr std::string_view dialect_schema = "scalewise.dialect/1";

inline constexpr messages::Spelling<dialect::MatrixLayout, 2> layout_words{
    {{dialect::MatrixLayout::out_in, "out_in"}, {dialect::MatrixLayout::in_out, "in_out"}}};
inline constexpr messages::Spelling<dialect::Packing, 7> packing_words{
    {{dialect::Packing::blocks, "blocks"},
     {dialect::Packing::key_groups, "key_groups"},
     {dialect::Packing::alternating, "alternating"},
     {dialect::Packing::heads, "heads"},
     {dialect::Packing::after_two, "after_two"},
     {dialect::Packing::alias, "alias"},
     {dialect::Packing::image, "image"}}};

}  // namespace io

namespace detail {

/// A factor of code: "12", "sqrt(d_model)", "1/sqrt(head_dim)", "1/d_model".
inline Scaling code_factor(const std::string& field, std::string_view text) {
  const std::string_view whole = text;
  const bool under = text.starts_with("1/");
  if (under) text.remove_prefix(2);
  const bool root = text.starts_with("sqrt(") && text.ends_with(')');
  if (root) text = text.substr(5, text.size() - 6);
  Scaling factor = 0;
  if (text == "d_model") factor = symbols::n;
  if (text == "head_dim") factor = symbols::C;
  if (text == "d_ff") factor = symbols::F;
  const bool decimal = !text.empty() && text.size() < 32 &&
                       text.find_first_not_of(".0123456789") == std::string_view::npos;
  if (decimal) factor = std::strtod(std::string(text).c_str(), nullptr);
  if (factor.is_zero()) {
    throw InvalidInput(
        field, messages::printable(std::string(whole)),
        "a positive number, d_model, head_dim or d_ff, perhaps in sqrt() or after 1/");
  }
  if (root) factor = sqrt(factor);
  return under ? 1 / factor : factor;
}

}  // namespace detail

namespace io {

/// A dialect with the memory of its texts: those of a library's dialect are constants.
class OwnDialect {
 public:
  /// Reads {"schema", "id", "title", "extends", "prefix", "layout", "patterns", "code"}, each pattern an array
  /// of its name, its entries and, where it is not "blocks", its packing. Patterns of the dialect that it
  /// extends follow its own, except those of the same name.
  /// Throws:   InvalidInput for JSON of another form, a text that require_name() refuses, a name or entries
  ///           with more than one {}, and an entry that no plan has.
  explicit OwnDialect(const JsonReader& json) {
    json.only({"schema", "id", "title", "extends", "prefix", "layout", "patterns", "code"});
    const std::string schema = json.at("schema").string();
    if (schema != dialect_schema) {
      throw InvalidInput(json.path() + ".schema", messages::printable(schema),
                         std::string(dialect_schema));
    }
    if (json.has("extends")) {
      const JsonReader extends = json.at("extends");
      dialect_ = dialect::dialect_named(extends.path(), extends.string());
    }
    dialect_.id = keep(json.at("id"));
    if (json.has("title")) dialect_.title = keep(json.at("title"));
    if (json.has("prefix")) dialect_.prefix = keep(json.at("prefix"));
    if (json.has("layout")) dialect_.layout = json.at("layout").word(layout_words);
    if (json.has("code")) read_code(json.at("code"));
    for (const JsonReader& item : json.at("patterns").items()) patterns_.push_back(pattern(item));
    for (const dialect::TensorPattern& inherited : dialect_.patterns) {
      const auto same = [&](const auto& own) { return own.name == inherited.name; };
      if (std::none_of(patterns_.begin(), patterns_.end(), same)) patterns_.push_back(inherited);
    }
    dialect_.patterns = patterns_;
  }
  OwnDialect(const OwnDialect&) = delete;
  OwnDialect& operator=(const OwnDialect&) = delete;

  const dialect::Dialect& get() const { return dialect_; }

 private:
  std::string_view keep(const JsonReader& json) {
    std::string text = json.string();
    messages::require_name(json.path(), text);
    return texts_.emplace_back(std::move(text));
  }

  void read_code(const JsonReader& json) {
    json.only({"attention_scale", "embedding_multiplier", "logit_multiplier", "branch"});
    plan::CodeFactors& code = dialect_.code;
    const auto read = [&](const char* key, Scaling& factor) {
      if (json.has(key)) factor = detail::code_factor(json.at(key).path(), json.at(key).string());
    };
    read("attention_scale", code.scores);
    read("embedding_multiplier", code.embedding);
    read("branch", code.branch);
    read("logit_multiplier", code.logits);
    if (json.has("logit_multiplier")) code.tied_logits = code.logits;
  }

  dialect::TensorPattern pattern(const JsonReader& json) {
    const std::vector<JsonReader> items = json.items();
    if (items.size() < 2 || items.size() > 3) {
      throw InvalidInput(json.path(), std::to_string(items.size()) + " items",
                         "a name, its entries and perhaps a packing");
    }
    dialect::TensorPattern pattern{keep(items[0]), keep(items[1])};
    if (items.size() == 3) pattern.packing = items[2].word(packing_words);
    one_layer(items[0].path(), pattern.name);
    for (std::string_view entry : dialect::detail::words_of(pattern.entries)) {
      one_layer(items[1].path(), entry);
      require_entry(items[1].path(), entry);
    }
    if (pattern.name.empty()) throw InvalidInput(items[0].path(), "\"\"", "the name of a tensor");
    return pattern;
  }

  /// "!" begins what a shape must not have, and "-" is a tensor that no plan has.
  static void require_entry(const std::string& field, std::string_view entry) {
    if (entry == "-") return;
    if (entry.starts_with('!')) entry.remove_prefix(1);
    const std::string name = dialect::without_layer(entry);
    messages::Nearest nearest(name);
    for (const std::string& known : dialect::known_entries()) {
      if (known == name) return;
      nearest.offer(known);
    }
    throw InvalidInput(field, messages::printable(entry), "the name of an entry of a plan",
                       nearest.hint());
  }

  static void one_layer(const std::string& field, std::string_view text) {
    if (std::count(text.begin(), text.end(), '{') <= 1) return;
    throw InvalidInput(field, messages::printable(text), "one {} or {1} at most, for the layer");
  }

  std::deque<std::string> texts_;
  std::vector<dialect::TensorPattern> patterns_;
  dialect::Dialect dialect_;
};

}  // namespace io

/// Reads a dialect from a file.
/// Throws:   InvalidInput as OwnDialect, read_file and parse_json; at most 1 MiB.
inline std::unique_ptr<io::OwnDialect> read_dialect_file(const std::string& path) {
  constexpr std::size_t limit = std::size_t{1} << 20;
  const nlohmann::ordered_json json = io::parse_json(files::read_file(path, limit), path);
  return std::make_unique<io::OwnDialect>(io::JsonReader(json, path));
}

}  // namespace scalewise
