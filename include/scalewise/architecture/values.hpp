// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>

#include "scalewise/architecture/shape.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/scaling/scaling.hpp"

namespace scalewise::inline architecture {

/// A number for every axis, at the target and, for relative rules, at the base.
class Values {
 public:
  constexpr explicit Values(const Shape& target, Stack stack = Stack::main)
      : target_(sizes(target, stack)) {}
  constexpr Values(const Shape& target, const Shape& base, Stack stack = Stack::main)
      : target_(sizes(target, stack)), base_(sizes(base, stack)), has_base_(true) {
    // A horizon that nobody states is the same horizon.
    if (target.iterations == 0 && base.iterations == 0) {
      set(Axis::iterations, 1);
      base_[static_cast<std::size_t>(Axis::iterations)] = 1;
    }
  }

  constexpr double at(Axis axis) const { return target_[static_cast<std::size_t>(axis)]; }
  constexpr double ratio(Axis axis) const {
    if (!has_base_) {
      throw InvalidInput("base", "none", "the shape of the model that was tuned",
                         "this rule is relative to a base; there is no default");
    }
    return at(axis) / base_[static_cast<std::size_t>(axis)];
  }

  /// Sets an axis that is no size of the shape: a layer, a correlation, a fan of one matrix.
  constexpr void set(Axis axis, double value) { target_[static_cast<std::size_t>(axis)] = value; }

 private:
  using Table = std::array<double, axis_count>;

  static constexpr Table sizes(const Shape& s, Stack stack) {
    Table table{};
    const auto put = [&](Axis axis, long value) {
      table[static_cast<std::size_t>(axis)] = static_cast<double>(value);
    };
    put(Axis::d_model, s.d_model);
    put(Axis::d_ff, s.d_ff);
    put(Axis::heads, s.heads);
    put(Axis::kv_heads, s.kv_heads);
    put(Axis::head_dim, s.head_dim);
    put(Axis::depth, stack == Stack::encoder ? s.encoder_depth : s.depth);
    put(Axis::encoder_depth, s.encoder_depth);
    put(Axis::decoder_depth, s.depth);
    put(Axis::vocab, s.vocab);
    put(Axis::patch_dim, s.patch_dim);
    put(Axis::classes, s.input == Input::token ? s.vocab : s.classes);
    put(Axis::context, s.context);
    put(Axis::iterations, s.iterations);
    if (s.d_model > 0) {
      table[static_cast<std::size_t>(Axis::mlp_ratio)] =
          static_cast<double>(s.d_ff) / static_cast<double>(s.d_model);
    }
    return table;
  }

  Table target_;
  Table base_{};
  bool has_base_ = false;
};

/// The one place where a scaling becomes a number.
/// Accuracy: relative 1e-14; exactly the scaling's number when target equals base and every
///           factor is a ratio.
/// Throws:   InvalidInput when the scaling needs a base and there is none, or needs a size that the
///           shape leaves at 0.
constexpr double evaluate(const Scaling& scaling, const Values& values) {
  double product = scaling.number();
  for (const Factor& factor : scaling.factors()) {
    const double size = factor.axis == Axis::number ? factor.number
                        : factor.ratio              ? values.ratio(factor.axis)
                                                    : values.at(factor.axis);
    if (!(size > 0 && size < 1e300)) {
      throw InvalidInput(std::string(name_of(factor.axis).meaning), "missing",
                         "a positive size, which this rule scales with",
                         factor.ratio ? "give it for the target and for the base" : "");
    }
    product *= power(size, factor.exponent);
  }
  return product;
}

/// Absolute value at a shape.
constexpr double at(const Scaling& scaling, const Shape& shape) {
  return evaluate(scaling, Values(resolved(shape)));
}

/// The same scaling as target over base; 1 when the two are equal and the number is 1.
constexpr double relative(const Scaling& scaling, const Shape& target, const Shape& base) {
  return evaluate(ratio(scaling), Values(resolved(target), resolved(base)));
}

}  // namespace scalewise::inline architecture
