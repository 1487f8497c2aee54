// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/io/plan_table.hpp"
#include "scalewise/plan/plan.hpp"
#include "scalewise/plot/heat_map.hpp"
#include "scalewise/plot/plan_lines.hpp"
#include "scalewise/scaling/symbol.hpp"

namespace scalewise::plot {

namespace detail {

/// One number of one tensor in one layer.
struct LayerNumber {
  double value = 0;
  double ratio = 0;  // to what its colour compares it with
  Scaling scaling = 0;

  friend bool operator==(const LayerNumber&, const LayerNumber&) = default;
};

/// One number of a tensor in all layers.
struct LayerRow {
  std::string tensor;
  bool matrix = true;
  std::map<std::pair<Stack, int>, LayerNumber> at = {};

  template <class Condition>
  bool all(Condition&& condition) const {
    return std::all_of(at.begin(), at.end(), [&](const auto& n) { return condition(n.second); });
  }

  /// "1.302e-05…0.000625 = 2/((fi+fo)l)", as in tables, the formula of a range on a line of its own.
  std::string text() const {
    const auto by_value = [](const auto& a, const auto& b) {
      return a.second.value < b.second.value;
    };
    const LayerNumber& low = std::min_element(at.begin(), at.end(), by_value)->second;
    const LayerNumber& high = std::max_element(at.begin(), at.end(), by_value)->second;
    const Number<Kind::multiplier> number{low.value, low.scaling};
    if (low.value == high.value) return scalewise::detail::formula_text(number).text;
    return scalewise::detail::short_number(low.value) + "…" +
           scalewise::detail::short_number(high.value) + "\n= " + number.formula();
  }
};

/// How numbers change from the first layer of a stack to the last.
class Trend {
 public:
  /// `all`: whether these are all of the tensors.
  explicit Trend(bool all) : all_(all) {}

  void add(const LayerRow& row) {
    bool differs = false;
    const LayerNumber* before = nullptr;
    Stack stack = Stack::none;
    for (const auto& [place, number] : row.at) {
      if (before != nullptr && place.first == stack && before->value != number.value) {
        differs = true;
        (number.value < before->value ? falls_ : grows_) = true;
      }
      before = &number;
      stack = place.first;
    }
    if (!differs) {
      all_ = false;
      return;
    }
    const bool first = tensors_.empty();
    tensors_ += (first ? "" : ", ") + row.tensor;
    const auto by_size = [](const auto& a, const auto& b) {
      return std::abs(a.second.value) < std::abs(b.second.value);
    };
    const auto [low, high] = std::minmax_element(row.at.begin(), row.at.end(), by_size);
    const double fold = std::abs(high->second.value / low->second.value);
    least_ = first ? fold : (std::min)(least_, fold);
    most_ = (std::max)(most_, fold);
  }

  bool differs() const { return !tensors_.empty(); }
  bool steady() const { return falls_ != grows_; }

  /// "initial variance of value falls 2-fold".
  std::string text(const std::string& name) const {
    std::string tensors = tensors_;
    const std::size_t last = tensors.rfind(", ");
    if (last != std::string::npos) tensors.replace(last, 2, " and ");
    std::string text = name + (all_ ? "" : " of " + tensors);
    text += !steady() ? " changes" : falls_ ? " falls" : " grows";
    if (!std::isfinite(most_)) return text;
    const bool alike = fmt::format("{:.3g}", least_) == fmt::format("{:.3g}", most_);
    return text + (alike ? " " : " up to ") + fmt::format("{:.3g}-fold", most_);
  }

 private:
  bool all_;
  std::string tensors_;  // that differ
  bool falls_ = false, grows_ = false;
  double least_ = 0, most_ = 0;
};

/// The numbers of a plan's layers, by kind of number and by tensor.
class LayerNumbers {
 public:
  explicit LayerNumbers(const Plan& plan) : plan_(plan) {
    for (const Entry& entry : plan.entries) {
      if (entry.layer < 0) continue;
      std::size_t kind = 0;
      plan::for_each_number(entry, [&](std::string_view, const auto& number) {
        const bool absolute = kind == 0 && plan.reference != Reference::base;
        add(kind++,
            {.tensor = scalewise::detail::name_of(plan, entry).part,
             .matrix = role_of(entry.group) == Role::hidden,
             .stack = entry.stack,
             .layer = entry.layer},
            number, absolute ? entry.fan_in : 1);
      });
    }
    for (const Residual& r : plan.model.residuals) {
      if (plan.shape.blocks != Blocks::residual) continue;  // the others have no such connection
      add(multipliers, {"residual_skip", true, r.stack, r.layer}, r.skip, 1);
      add(multipliers, {"residual_branch", true, r.stack, r.layer}, r.branch, 1);
    }
    for (std::size_t kind = 0; kind < rows_.size(); ++kind) {
      const std::size_t vectors = vectors_in(rows_[kind]);
      std::erase_if(rows_[kind], [&](const LayerRow& row) {
        const bool trivial = is_trivial(kind, row);
        if (trivial && row.matrix) complete_[kind] = false;
        return trivial;
      });
      join_equal(rows_[kind], vectors > 1 && vectors == vectors_in(rows_[kind]));
    }
  }

  HeatMap map() const {
    HeatMap result;
    result.title = title();
    result.subtitle = plan_subtitle(plan_);
    const std::vector<HeatPanel> panels = panels_of_stacks();
    double farthest = 1;
    for (std::size_t kind = 0; kind < rows_.size(); ++kind) {
      HeatBlock block{heading(kind), panels, {}};
      for (const LayerRow& row : rows_[kind]) {
        block.rows.push_back({row.tensor, {}, row.text()});
        for (const HeatPanel& panel : panels) {
          for (const long layer : panel.columns) {
            const auto found = row.at.find({stack_of(panel), static_cast<int>(layer)});
            auto& cell = block.rows.back().cells.emplace_back();
            if (found != row.at.end()) cell = cell_of(kind, row, found->first, found->second);
            if (cell && std::abs(cell->value) > farthest) farthest = std::abs(cell->value);
          }
        }
      }
      if (!block.rows.empty()) result.blocks.push_back(std::move(block));
    }
    result.scale = scale_to(farthest);
    result.lines = {
        "Left out: numbers whose relative size is 1 in all layers, means that are zero, and zeros "
        "of gains and biases."};
    for (std::string& text : plan_sources(plan_)) result.lines.push_back(std::move(text));
    return result;
  }

 private:
  // In the order of for_each_number().
  static constexpr std::size_t multipliers = 2;
  static constexpr std::array<std::string_view, 6> names{
      "initial variance", "initial mean", "multiplier", "learning rate", "weight decay", "epsilon"};

  /// The row of a number, and its column.
  struct LayerPlace {
    std::string tensor;
    bool matrix;
    Stack stack;
    int layer;
  };

  template <Kind kind>
  void add(std::size_t of, const LayerPlace& place, const Number<kind>& number, double scale) {
    std::vector<LayerRow>& rows = rows_[of];
    const auto same = [&](const LayerRow& row) { return row.tensor == place.tensor; };
    auto row = std::find_if(rows.begin(), rows.end(), same);
    if (row == rows.end()) row = rows.insert(row, LayerRow{place.tensor, place.matrix});
    row->at[{place.stack, place.layer}] = {number.value, number.value * scale, number.scaling};
  }

  static bool is_trivial(std::size_t kind, const LayerRow& row) {
    if (row.all([](const LayerNumber& n) { return n.ratio == 1; })) {
      return kind != 0 || !row.matrix;
    }
    return (kind == 1 || !row.matrix) && row.all([](const LayerNumber& n) { return n.value == 0; });
  }

  /// Gains and biases; none if there are other vectors as well.
  static std::size_t vectors_in(const std::vector<LayerRow>& rows) {
    std::size_t count = 0;
    for (const LayerRow& row : rows) {
      if (row.matrix) continue;
      if (!row.tensor.ends_with("gain") && !row.tensor.ends_with("bias")) return 0;
      ++count;
    }
    return count;
  }

  /// "query, key, value" where all of their numbers agree. `all_vectors`: none was left out.
  static void join_equal(std::vector<LayerRow>& rows, bool all_vectors) {
    const auto is_vector = [](const LayerRow& row) { return !row.matrix; };
    std::vector<LayerRow> joined;
    for (LayerRow& row : rows) {
      const auto same = [&](const LayerRow& other) {
        return other.at == row.at && other.matrix == row.matrix;
      };
      const auto found = std::find_if(joined.begin(), joined.end(), same);
      if (found == joined.end()) {
        joined.push_back(std::move(row));
      } else {
        found->tensor += ", " + row.tensor;
      }
    }
    const auto vectors = [](const LayerRow& row) {
      return row.matrix ? 0 : 1 + std::count(row.tensor.begin(), row.tensor.end(), ',');
    };
    const auto longest = std::max_element(
        joined.begin(), joined.end(),
        [&](const LayerRow& a, const LayerRow& b) { return vectors(a) < vectors(b); });
    if (all_vectors && vectors(*longest) > 3) {
      const bool only = std::count_if(joined.begin(), joined.end(), is_vector) == 1;
      longest->tensor = only ? "gains and biases" : "other gains and biases";
    }
    rows = std::move(joined);
  }

  std::string heading(std::size_t kind) const {
    const bool base = plan_.reference == Reference::base;
    const std::string_view compared = kind == 0             ? base ? "the base model's" : "1/fan-in"
                                      : kind <= multipliers ? "1"
                                                            : "the global one";
    std::string name(names[kind]);
    name[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[0])));
    return name + ", relative to " + std::string(compared);
  }

  /// Marks at powers of ten; where these are few, at 3 times and a third of them as well.
  static HeatScale scale_to(double farthest) {
    HeatScale scale{std::ceil(2 * farthest - 1e-9) / 2, {}, "relative size. Grey: zero."};
    std::vector<double> marks{0.1, 0.3, 1, 3, 10};
    if (scale.limit >= 2) {
      const int step = 1 + static_cast<int>(scale.limit / 4.5);
      const int most = static_cast<int>(scale.limit) / step * step;
      marks.clear();
      for (int power = -most; power <= most; power += step) marks.push_back(std::pow(10, power));
    }
    for (const double mark : marks) {
      scale.marks.emplace_back(std::log10(mark), fmt::format("{:g}", mark));
    }
    return scale;
  }

  std::vector<HeatPanel> panels_of_stacks() const {
    std::vector<HeatPanel> panels;
    for (const Entry& entry : plan_.entries) {
      if (entry.layer < 0) continue;
      const std::string title =
          entry.stack == Stack::main
              ? "layer"
              : std::string(word(architecture::stack_words, entry.stack)) + " layer";
      if (panels.empty() || panels.back().title != title) {
        const auto known = std::find_if(panels.begin(), panels.end(), [&](const HeatPanel& panel) {
          return panel.title == title;
        });
        if (known != panels.end()) continue;  // a tensor of the user's own
        panels.push_back({title, {}});
      }
      std::vector<long>& columns = panels.back().columns;
      if (columns.empty() || columns.back() != entry.layer) columns.push_back(entry.layer);
    }
    return panels;
  }

  static Stack stack_of(const HeatPanel& panel) {
    return panel.title.starts_with("encoder")   ? Stack::encoder
           : panel.title.starts_with("decoder") ? Stack::decoder
                                                : Stack::main;
  }

  static HeatCell cell_of(std::size_t kind, const LayerRow& row, const std::pair<Stack, int>& place,
                          const LayerNumber& number) {
    const std::string layer =
        scalewise::detail::layer_name(place.first, std::to_string(place.second));
    const double size = std::abs(number.ratio);
    const Number<Kind::multiplier> shown{number.value, number.scaling};
    return {size > 0 ? std::log10(size) : std::numeric_limits<double>::quiet_NaN(),
            fmt::format("{} {}: {} {}", layer, row.tensor, names[kind],
                        scalewise::detail::formula_text(shown).text)};
  }

  /// The numbers that differ between layers; where none does, those that depend on how many there are.
  std::string title() const {
    std::string steady;
    std::string other;
    for (std::size_t kind = 0; kind < rows_.size(); ++kind) {
      Trend trend(complete_[kind]);
      for (const LayerRow& row : rows_[kind]) trend.add(row);
      if (!trend.differs()) continue;
      std::string& text = trend.steady() ? steady : other;
      text += (text.empty() ? "" : " and ") + trend.text(std::string(names[kind]));
    }
    if (!steady.empty()) steady += " from the first layer to the last";
    if (!other.empty()) other += " between layers";
    const std::string both = steady + (steady.empty() || other.empty() ? "" : "; ") + other;
    return plan_.rule + ": " + (both.empty() ? of_equal_layers() : both);
  }

  std::string of_equal_layers() const {
    std::size_t layers = 0;
    for (const HeatPanel& panel : panels_of_stacks()) layers += panel.columns.size();
    const bool one_stack = panels_of_stacks().size() == 1;
    std::string text = one_stack ? fmt::format("all {} layers alike", layers)
                                 : std::string("all layers of a stack alike");
    std::vector<std::string> deep;
    for (std::size_t kind = 0; kind < rows_.size(); ++kind) {
      for (const LayerRow& row : rows_[kind]) {
        const auto has_none = [](const LayerNumber& n) {
          return !scalewise::detail::depends_on_depth(n.scaling);
        };
        if (row.all(has_none)) continue;
        std::string name =
            row.tensor.starts_with("residual_") ? row.tensor : std::string(names[kind]);
        if (std::find(deep.begin(), deep.end(), name) == deep.end())
          deep.push_back(std::move(name));
      }
    }
    for (std::size_t i = 0; i < deep.size(); ++i) {
      text += (i == 0 ? "; " : i + 1 == deep.size() ? " and " : ", ") + deep[i];
    }
    return text + (deep.empty()       ? ""
                   : deep.size() == 1 ? " depends on the depth"
                                      : " depend on the depth");
  }

  const Plan& plan_;
  std::array<std::vector<LayerRow>, names.size()> rows_;
  std::array<bool, names.size()> complete_{true, true, true,
                                           true, true, true};  // no matrix left out
};

}  // namespace detail

/// A plan's layers as a heat map: for every number that its rule changes, tensors against layers.
/// Units:    colours are logarithms to base 10; of an absolute initial variance, times the fan-in
/// Returns:  a map whose title says what differs between layers.
inline HeatMap layer_map(const Plan& plan) { return detail::LayerNumbers(plan).map(); }

}  // namespace scalewise::plot
