// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/io/plan_table.hpp"
#include "scalewise/plan/plan.hpp"
#include "scalewise/plot/svg_picture.hpp"

namespace scalewise::plot {

/// One number of a picture, or its range over the layers, with its formula.
struct BlockCell {
  std::string of;                       // "query learning_rate"
  std::vector<std::string> terms = {};  // "0.48 = 1/m_N"; the variance's mean is a second one
  Fill fill = Fill::none;               // for a factor that is not 1
};

/// The columns of a picture: multiplier, initial variance, learning rate and weight decay. A row
/// without numbers has no terms in any.
using BlockCells = std::array<BlockCell, 4>;

namespace detail {

/// The numbers of a plan by tensor, and which of them were asked for.
class BlockNumbers {
 public:
  explicit BlockNumbers(const Plan& plan)
      : plans_{plan},
        rows_(scalewise::detail::table_rows(plans_, false)),
        shown_(rows_.size(), false) {}

  BlockNumbers(const BlockNumbers&) = delete;  // rows point into plans
  BlockNumbers& operator=(const BlockNumbers&) = delete;

  /// The numbers of a tensor in all layers; none where the model has no such tensor.
  BlockCells of(std::string_view name) {
    BlockCells cells;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (rows_[i].label != name) continue;
      shown_[i] = true;
      const std::vector<const Entry*>& entries = rows_[i].entries[0];
      const bool factor = plans_[0].reference == Reference::base;
      cells[0] = cell(name, "multiplier", entries, &Entry::multiplier, true);
      cells[1] = cell(name, "init_variance", entries, &Entry::init_variance,
                      factor && entries.front()->init_variance.value != 0);
      const std::string mean = text_of(entries, &Entry::init_mean);
      if (mean != "0") cells[1].terms.push_back("mean " + mean);
      cells[2] = cell(name, "learning_rate", entries, &Entry::learning_rate, true);
      cells[3] = cell(name, "weight_decay", entries, &Entry::weight_decay, true);
    }
    return cells;
  }

  /// A multiplier of the model as a whole: "attention_scale", "embedding_multiplier" or
  /// "logit_multiplier".
  BlockCells model(std::string_view name) const {
    const Model& m = plans_[0].model;
    const auto& number = name == "attention_scale"        ? m.attention_scale
                         : name == "embedding_multiplier" ? m.embedding_multiplier
                                                          : m.logit_multiplier;
    BlockCells cells;
    // The scale of attention scores is not a factor on what others do: 1 is not the usual one.
    cells[0] = {std::string(name),
                {scalewise::detail::formula_text(number).text},
                name == "attention_scale" ? Fill::none : fill_of(number.value, number.value)};
    return cells;
  }

  /// A multiplier of the residual connections of a stack.
  BlockCells residual(Stack stack, Number<Kind::multiplier> Residual::*field) const {
    std::vector<Entry> as_entries;  // so that ranges over layers are written as those of tensors
    for (const Residual& residual : plans_[0].model.residuals) {
      if (residual.stack != stack) continue;
      as_entries.emplace_back().multiplier = residual.*field;
    }
    std::vector<const Entry*> entries;
    entries.reserve(as_entries.size());
    for (const Entry& entry : as_entries) entries.push_back(&entry);
    BlockCells cells;
    if (entries.empty()) return cells;
    std::string name = field == &Residual::skip ? "residual_skip" : "residual_branch";
    if (stack != Stack::main)
      name = std::string(word(architecture::stack_words, stack)) + "." + name;
    cells[0] = cell("", name, entries, &Entry::multiplier, true);
    return cells;
  }

  /// The tensors that were not asked for.
  std::vector<std::string> not_shown() const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (!shown_[i]) names.push_back(rows_[i].label);
    }
    return names;
  }

 private:
  static Fill fill_of(double low, double high) {
    if (low == 1 && high == 1) return Fill::none;
    return high <= 1 ? Fill::below : low >= 1 ? Fill::above : Fill::none;
  }

  template <Kind kind>
  static std::string text_of(const std::vector<const Entry*>& entries, Number<kind> Entry::*field) {
    return scalewise::detail::formula_text(entries, field).text;
  }

  template <Kind kind>
  static BlockCell cell(std::string_view tensor, std::string_view quantity,
                        const std::vector<const Entry*>& entries, Number<kind> Entry::*field,
                        bool is_factor) {
    BlockCell result;
    result.of =
        tensor.empty() ? std::string(quantity) : std::string(tensor) + " " + std::string(quantity);
    result.terms = {text_of(entries, field)};
    if (!is_factor) return result;
    double low = (entries.front()->*field).value;
    double high = low;
    for (const Entry* entry : entries) {
      const double value = (entry->*field).value;
      if (value < low) low = value;
      if (value > high) high = value;
    }
    result.fill = fill_of(low, high);
    return result;
  }

  std::vector<Plan> plans_;  // one
  std::vector<scalewise::detail::TableRow> rows_;
  std::vector<bool> shown_;
};

}  // namespace detail

}  // namespace scalewise::plot
