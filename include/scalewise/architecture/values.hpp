// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "scalewise/architecture/shape.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/scaling/scaling.hpp"

namespace scalewise::architecture {

/// A number for every symbol, at the target and, for relative rules, at the base: the sizes of the
/// shapes, and what is set.
/// Requires: at most 7 symbols of a rule's own; one more throws std::out_of_range.
class Values {
 public:
  constexpr explicit Values(const Shape& target, Stack stack = Stack::main) {
    read(target, stack, &Size::target);
  }
  constexpr Values(const Shape& target, const Shape& base, Stack stack = Stack::main)
      : has_base_(true) {
    read(target, stack, &Size::target);
    read(base, stack, &Size::base);
    // Where neither shape gives a horizon, both have the same.
    if (target.iterations == 0 && base.iterations == 0) {
      of(symbols::iterations) = {&symbols::iterations, 1, 1};
    }
  }

  /// 0 where there is none.
  /// Units:    the symbol's: a number of features, heads, layers, …, or a probability or
  ///           correlation
  constexpr double at(const Symbol& symbol) const { return sizes_.at(index_of(symbol)).target; }
  /// Target over base.
  /// Units:    a ratio; not finite where the base has 0
  /// Throws:   InvalidInput without a base.
  constexpr double ratio(const Symbol& symbol) const {
    if (!has_base_) {
      throw InvalidInput("base", "none", "the shape of the model that was tuned",
                         "this rule needs a base; there is no default");
    }
    const Size& size = sizes_.at(index_of(symbol));
    return size.target / size.base;
  }

  /// Sets a symbol that is not a size of the shape: a layer, a fan of one matrix, a rule's own.
  constexpr void set(const Symbol& symbol, double value) { of(symbol).target = value; }

 private:
  struct Size {
    const Symbol* symbol = nullptr;
    double target = 0;
    double base = 0;
  };

  /// Where a symbol stands, or would be the next. By its text, as factors (scaling.hpp).
  constexpr std::size_t index_of(const Symbol& symbol) const {
    std::size_t i = 0;
    while (i < used_ && std::string_view(sizes_[i].symbol->text) != symbol.text) ++i;
    return i;
  }
  constexpr Size& of(const Symbol& symbol) {
    const std::size_t i = index_of(symbol);
    Size& size = sizes_.at(i);
    if (i == used_) ++used_;
    size.symbol = &symbol;
    return size;
  }

  constexpr void read(const Shape& s, Stack stack, double Size::*where) {
    const auto put = [&](const Symbol& symbol, long value) {
      of(symbol).*where = static_cast<double>(value);
    };
    put(symbols::d_model, s.d_model);
    put(symbols::d_ff, s.d_ff);
    put(symbols::heads, s.heads);
    put(symbols::kv_heads, s.kv_heads);
    put(symbols::head_dim, s.head_dim);
    put(symbols::depth, stack == Stack::encoder ? s.encoder_depth : s.depth);
    put(symbols::encoder_depth, s.encoder_depth);
    put(symbols::decoder_depth, s.depth);
    put(symbols::vocab, s.vocab);
    put(symbols::patch_dim, s.patch_dim);
    put(symbols::classes, outputs(s));
    put(symbols::context, s.context);
    put(symbols::iterations, s.iterations);
    put(symbols::experts, s.experts);
    put(symbols::expert_ff, s.expert_ff);
    if (s.d_model > 0) {
      of(symbols::mlp_ratio).*where = static_cast<double>(s.d_ff) / static_cast<double>(s.d_model);
    }
  }

  std::array<Size, 26> sizes_{};  // 16 of the shape, the layer, a fan, a rule's own, one free
  std::size_t used_ = 0;
  bool has_base_ = false;
};

/// The one place where a scaling becomes a number.
/// Units:    those of the cell that the scaling stands in, such as a variance or a factor
/// Accuracy: relative 1e-14; exactly the scaling's number when target equals base and every
///           factor is a ratio.
/// Throws:   InvalidInput when the scaling needs a base and there is none, or needs a size that the
///           shape leaves at 0.
constexpr double evaluate(const Scaling& scaling, const Values& values) {
  double product = scaling.number();
  for (const scaling::Factor& factor : scaling.factors()) {
    const double size = factor.is_integer() ? factor.integer
                        : factor.ratio      ? values.ratio(*factor.symbol)
                                            : values.at(*factor.symbol);
    if (!(size > 0 && size < 1e300)) {
      throw InvalidInput(factor.symbol->meaning, "missing",
                         "a positive size, which this rule scales with",
                         factor.ratio ? "give it for the target and for the base" : "");
    }
    product *= numeric::power(size, factor.exponent);
  }
  return product;
}

/// Absolute value at a shape.
/// Units:    those of the cell that the scaling stands in
/// Throws:   InvalidInput as evaluate() and resolved().
constexpr double at(const Scaling& scaling, const Shape& shape) {
  return evaluate(scaling, Values(resolved(shape)));
}

/// The same scaling as target over base; 1 when the two are equal and the number is 1.
/// Units:    a ratio of two values of the cell that the scaling stands in
/// Throws:   InvalidInput as evaluate() and resolved().
constexpr double relative(const Scaling& scaling, const Shape& target, const Shape& base) {
  return evaluate(ratio(scaling), Values(resolved(target), resolved(base)));
}

}  // namespace scalewise::architecture
