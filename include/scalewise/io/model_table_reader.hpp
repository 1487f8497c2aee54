// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/architecture/base_like.hpp"
#include "scalewise/architecture/description.hpp"
#include "scalewise/io/config_reader.hpp"
#include "scalewise/io/model_table.hpp"
#include "scalewise/io/parse_json.hpp"
#include "scalewise/io/size_expression.hpp"
#include "scalewise/plan/code_factors.hpp"

namespace scalewise {

namespace io {

/// The tensors that a configuration describes, and what follows from it beside them.
struct ConfigDescription {
  ModelDescription model;
  Shape shape;                                    // Blocks::listed, with the sizes that have names
  std::vector<architecture::RoleOverride> roles;  // that sides alone do not tell
  std::vector<std::string> notes;  // what no factor can say, and keys that are not known
  plan::CodeFactors code = {};     // what the model's own code multiplies
};

}  // namespace io

namespace detail {

/// Keys of many configurations that change no tensor.
inline constexpr std::string_view keys_of_no_tensor =
    "hidden_act hidden_activation activation_function max_position_embeddings num_experts_per_tok "
    "norm_topk_prob router_aux_loss_coef output_router_logits router_jitter_noise "
    "input_jitter_noise initializer_range";

/// Reads the tensors of one configuration from the table of its family.
class ModelTableReader {
 public:
  ModelTableReader(const ModelTable& table, const ConfigReader& config, const Base& base)
      : config_(config), base_(base), contains_([this](const std::string& key, long element) {
          return config_.lists(key.c_str(), element);
        }) {
    for (const std::string_view part : table.parts) {
      std::istringstream lines{std::string(part)};
      for (std::string line; std::getline(lines, line);) read_line(words_of(line));
    }
    skip(words_of(std::string(keys_of_no_tensor)));
    if (base.width < 0 || base.width > architecture::largest_size)
      throw InvalidInput("base width", std::to_string(base.width), "a size from 1 to 2^30");
    if (base.depth < 0 || base.depth > architecture::most_layers) {
      throw InvalidInput(
          "base depth", std::to_string(base.depth),
          "a positive integer, at most " + std::to_string(architecture::most_layers));
    }
  }

  io::ConfigDescription describe() && {
    static_cast<void>(size_of(width_));
    name_sizes();
    for (std::size_t i = 0; i < rows_.size();) {
      std::size_t end = i + 1;
      while (!rows_[i].prefix.empty() && end < rows_.size() && rows_[end].prefix == rows_[i].prefix)
        ++end;
      const long layers = rows_[i].prefix.empty() ? 1 : size_of(rows_[i].layers);
      for (layer_ = 0; layer_ < layers; ++layer_) {
        for (std::size_t row = i; row < end; ++row) add(rows_[row]);
      }
      i = end;
    }
    architecture::check_description(description_.model);
    return std::move(description_);
  }

 private:
  using Words = std::vector<std::string>;
  static constexpr const char* experts_symbol = "E";

  /// A size or flag of the table.
  struct TableSymbol {
    std::string text;
    std::string kind;  // the first word of its line
    long target = -1;  // until it is read
    long base = -1;

    std::string key() const { return text.substr(0, text.find(" or ")); }
  };

  /// The line of a tensor, and where it stands.
  struct TableLine {
    Words words;
    std::string prefix;
    std::string layers;  // how many, as a symbol
  };

  static Words words_of(const std::string& line) {
    std::istringstream text(line);
    Words words;
    for (std::string word; text >> word;) words.push_back(word);
    return words;
  }

  static std::string joined(const Words& words, std::size_t from) {
    std::string text;
    for (; from < words.size(); ++from) text += (text.empty() ? "" : " ") + words[from];
    return text;
  }

  // ---- lines ------------------------------------------------------------------------------------

  void read_line(const Words& words) {
    if (words.empty()) return;
    const std::string& first = words[0];
    if (first == "width") width_ = words[1];
    if (first == "depth") depth_ = words[1];
    if (first == "word") {
      const std::string text = config_.text(words[3].c_str(), "missing");
      const auto bar = std::find(words.begin() + 4, words.end(), "|");
      const bool has = std::find(words.begin() + 4, bar, text) != bar;
      if (!has && bar != words.end() && std::find(bar, words.end(), text) == words.end())
        throw config_.error(words[3].c_str(), "one of " + joined(words, 4));
      symbols_[words[1]] = {has ? "1" : "0", "let"};
    } else if (words.size() > 3 && words[2] == "=") {
      symbols_[words[1]] = {joined(words, 3), first};
      skip(words);  // where the configuration has it and no tensor does
    } else if (first == "skip") {
      skip(words);
    } else if (first == "only") {
      config_.only_value(words[1].c_str(), io::parse_json(words[2], "the model table"));
    } else if (first == "needs") {
      if (config_.find(words[1].c_str()) == nullptr)
        throw config_.error(words[1].c_str(), words[2]);
      config_.only_value(words[1].c_str(), io::parse_json(words[2], "the model table"));
    } else if (first == "note") {
      note(words);
    } else if (first == "says") {
      description_.notes.push_back(joined(words, 1));
    } else if (first == "layers" || first == "end") {
      prefix_ = first == "end" ? "" : words[1];
      layers_ = words.size() > 2 ? words[2] : depth_;
    } else {
      rows_.push_back({words, prefix_, layers_});
    }
  }

  void skip(const Words& keys) {
    for (const std::string& key : keys) static_cast<void>(config_.find(key.c_str()));
  }

  void note(const Words& words) {
    const nlohmann::ordered_json* value = config_.find(words[1].c_str());
    if (value == nullptr || is_neutral(words[1], *value)) return;
    description_.notes.push_back(words[1] + " = " + value_text(*value) + ": " + joined(words, 2));
  }

  // ---- sizes ------------------------------------------------------------------------------------

  long expression(const std::string& text, bool of_base, bool condition = false) {
    std::string meaning;  // "n is hidden_size, H is num_attention_heads"
    const SizeExpression::Value value = [&](const std::string& name) {
      if (name == "l") return layer_;
      const auto symbol = symbols_.find(name);
      if (symbol == symbols_.end()) return key_value(name, condition, true);
      meaning += (meaning.empty() ? "" : ", ") + name + " is " + symbol->second.key();
      return of_base ? size_of(name) : target_of(name);
    };
    try {
      return SizeExpression(text, value, contains_).evaluate();
    } catch (const SizeExpression::Refused& refused) {
      throw InvalidInput(config_.name() + ": " + text, refused.value, refused.expectation, meaning);
    }
  }

  /// A key of the configuration: a size, or what may be a flag. Of conditions one that is missing is false.
  long key_value(const std::string& key, bool condition, bool flag) {
    if (key == "classes") return config_.classes();
    if (key == "image_height") return config_.sides("image_size", 224).first;
    if (key == "image_width") return config_.sides("image_size", 224).second;
    if (key == "patch_height") return config_.sides("patch_size", target_of("patch")).first;
    if (key == "patch_width") return config_.sides("patch_size", target_of("patch")).second;
    const nlohmann::ordered_json* value = config_.find(key.c_str());
    if (value == nullptr ? condition : *value == 0) return 0;
    return flag ? config_.size_or_flag(key.c_str()) : config_.size(key.c_str());
  }

  /// The first alternative that the configuration has; the last needs no key. Where a key is needed and all are null
  /// or missing, an error names the first that is null, or else the first.
  long first_given(const std::string& name, const std::string& text) {
    const bool flag = symbols_.at(name).kind == "let" && name[0] > 'Z';  // H is a size
    std::string key, null;
    for (std::size_t begin = 0;;) {
      const std::size_t end = (std::min)(text.find(" or ", begin), text.size());
      const std::string part = text.substr(begin, end - begin);
      const bool last = end == text.size();
      const bool is_key =
          part.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789") == std::string::npos &&
          part.find_first_not_of("0123456789") != std::string::npos &&
          (part == name || !symbols_.contains(part));
      if (part.starts_with("null ")) {
        if (config_.has(key.c_str())) return expression(part.substr(5), false);
        if (last) return key_value(key, false, flag);  // which is missing
      } else if (!is_key) {
        return expression(part.substr(part.starts_with("-1 ") ? 3 : 0), false);
      } else if (const auto* value = config_.find(part.c_str());
                 value != nullptr && !(*value == -1 && text.compare(end, 7, " or -1 ") == 0)) {
        return key_value(part, false, flag);
      } else if (last) {
        return key_value(null.empty() ? text.substr(0, text.find(" or ")) : null, false, flag);
      }
      if (null.empty() && config_.has(part.c_str())) null = part;
      key = part, begin = end + 4;
    }
  }

  long target_of(const std::string& name) {
    TableSymbol& symbol = symbols_.at(name);
    if (symbol.kind == "layer") return expression(symbol.text, false, true);
    if (symbol.target < 0) {
      symbol.target = first_given(name, symbol.text);
      const bool layers = name == depth_ || symbol.kind == "deep";
      const long most = layers ? architecture::most_layers : architecture::largest_size;
      if (symbol.kind != "let" && (symbol.target < 1 || symbol.target > most)) {
        throw InvalidInput(config_.name() + ": " + symbol.key(), std::to_string(symbol.target),
                           "a whole number from 1 to " + std::to_string(most));
      }
      if (symbol.kind == "keys" && target_of("H") % symbol.target != 0)
        throw InvalidInput(config_.name() + ": " + symbol.key(), std::to_string(symbol.target),
                           "a divisor of the " + std::to_string(target_of("H")) + " heads");
    }
    return symbol.target;
  }

  /// The size that the base has, which is the target's where no base is asked for.
  long size_of(const std::string& name) {
    TableSymbol& symbol = symbols_.at(name);
    const long target = target_of(name);
    if (symbol.kind == "layer") return target;
    if (symbol.base >= 0) return symbol.base;
    symbol.base = target;
    if (name == depth_ && base_.depth > 0) symbol.base = base_.depth;
    if (name == width_ && base_.width > 0) symbol.base = base_.width;
    if (name == experts_symbol && base_.experts > 0) symbol.base = base_.experts;
    if (symbol.kind == "deep" && base_.depth > 0) {
      const long step = step_of(target, target_of(depth_));
      if (base_.depth % step != 0) {
        throw InvalidInput("base depth", std::to_string(base_.depth),
                           "a multiple of " + std::to_string(step),
                           "the base has " + symbol.key() + " in proportion");
      }
      symbol.base = target / (target_of(depth_) / step) * (base_.depth / step);
    }
    if (base_.width > 0 && in_proportion(name)) symbol.base = proportion(name, target);
    return symbol.base;
  }

  bool in_proportion(const std::string& name) {
    const std::string& kind = symbols_.at(name).kind;
    return kind == "grows" || (kind == "keys" && target_of(name) > 1);
  }

  long proportion(const std::string& name, long target) {
    const long width = target_of(width_);
    const long step = step_of(target, width);
    if (base_.width % step == 0) return target / (width / step) * (base_.width / step);
    long all = 1;
    for (const auto& [other, symbol] : symbols_) {
      if (in_proportion(other)) all = std::lcm(all, step_of(target_of(other), width));
    }
    throw InvalidInput("base width", std::to_string(base_.width),
                       "a multiple of " + std::to_string(all),
                       "the base has " + symbols_.at(name).key() + " in proportion, " +
                           std::to_string(target) + " at a width of " + std::to_string(width));
  }

  /// The sizes that a plan knows by name.
  void name_sizes() {
    description_.shape.blocks = Blocks::listed;
    description_.shape.d_model = size_of(width_);
    description_.shape.depth = size_of(depth_);
    if (symbols_.contains("H")) static_cast<void>(size_of("H"));  // whole ones, in the base too
    if (symbols_.contains("C")) description_.shape.head_dim = size_of("C");
    for (const char* key : {"num_experts_per_tok", "experts_per_token"}) {
      if (config_.find(key) == nullptr) continue;
      description_.shape.experts_per_token = config_.size(key);
      const long experts = symbols_.contains(experts_symbol) ? target_of(experts_symbol) : 0;
      if (experts > 0 && config_.size(key) > experts)
        throw config_.error(key, "at most the " + std::to_string(experts) + " experts");
    }
    if (base_.experts != 0) {
      const bool has = symbols_.contains(experts_symbol);
      description_.shape.experts_per_token = active_in_base(
          description_.shape.experts_per_token, has ? target_of(experts_symbol) : 0, base_.experts);
    }
    const auto d_ff = symbols_.find("F");
    if (d_ff != symbols_.end() && d_ff->second.base > 0)
      description_.shape.d_ff = d_ff->second.base;
  }

  // ---- tensors ----------------------------------------------------------------------------------

  /// The part of a line after its sizes.
  struct Ending {
    std::string bias;  // the flag that says that there is one
    std::string tied_to;
    std::string role;
    bool exists = true;
  };

  Ending ending_of(Words& words) {
    Ending ending;
    for (std::size_t i = 2; i < words.size(); ++i) {
      if (words[i][0] != '+' && words[i] != "tied" && words[i] != "as" && words[i] != "if")
        continue;
      for (std::size_t at = i; at < words.size(); ++at) {
        if (words[at][0] == '+') ending.bias = words[at].size() == 1 ? "1" : words[at].substr(1);
        if (words[at] == "tied")
          ending.tied_to = words[++at];
        else if (words[at] == "as")
          ending.role = words[++at];
        else if (words[at] == "if") {
          ending.exists = expression(joined(words, at + 1), false, true) != 0;
          break;
        }
      }
      words.resize(i);
    }
    return ending;
  }

  void add(const TableLine& row) {
    Words words = row.words;
    const Ending ending = ending_of(words);
    if (!ending.exists) return;
    const std::string prefix =
        row.prefix.empty() ? "" : row.prefix + "." + std::to_string(layer_) + ".";
    std::vector<long> sizes;
    for (std::size_t i = 2; i < words.size(); ++i) sizes.push_back(expression(words[i], true));
    std::string name = prefix + words[1];
    const std::string outputs = words.back();
    DescribedTensor tensor = described(words[0], name, std::move(sizes));
    if (!ending.tied_to.empty() && expression("tie", true, true) != 0)
      tensor.tied_to = ending.tied_to;
    if (!ending.role.empty()) give_role(row, ending.role);
    description_.model.tensors.push_back(std::move(tensor));
    if (ending.bias.empty() || expression(ending.bias, true, true) == 0) return;
    description_.model.tensors.push_back(
        {name + ".bias", TensorKind::bias, "o", {expression(outputs, true)}});
  }

  /// To all of this name.
  void give_role(const TableLine& row, const std::string& role) {
    const std::string name =
        (row.prefix.empty() ? "" : row.prefix + ".*.") + row.words[1] + ".weight";
    std::vector<architecture::RoleOverride>& roles = description_.roles;
    if (!roles.empty() && std::any_of(roles.begin(), roles.end(),
                                      [&](const auto& given) { return given.pattern == name; }))
      return;
    roles.push_back({name, value_of(architecture::given_role_words, "role", role)});
  }

  static DescribedTensor described(const std::string& word, const std::string& name,
                                   std::vector<long> sizes) {
    if (const std::size_t colon = word.find(':'); colon != std::string::npos) {
      return {name, value_of(architecture::tensor_kind_words, "kind", word.substr(0, colon)),
              word.substr(colon + 1), std::move(sizes)};
    }
    if (word == "norm") return {name + ".weight", TensorKind::gain, "o", std::move(sizes)};
    if (word == "embedding")
      return {name + ".weight", TensorKind::embedding, "io", std::move(sizes)};
    if (word == "conv1d") return {name + ".weight", TensorKind::linear, "io", std::move(sizes)};
    std::reverse(sizes.begin(), sizes.end());
    return {name + ".weight", TensorKind::linear, "oi", std::move(sizes)};
  }

  const ConfigReader& config_;
  Base base_;
  SizeExpression::Contains contains_;
  std::map<std::string, TableSymbol> symbols_;
  std::string width_, depth_;
  std::vector<TableLine> rows_;
  std::string prefix_, layers_;  // of the lines that are read
  long layer_ = 0;
  io::ConfigDescription description_;
};

}  // namespace detail

}  // namespace scalewise
