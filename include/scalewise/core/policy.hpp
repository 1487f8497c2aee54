// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <string_view>

#include "scalewise/core/group.hpp"
#include "scalewise/core/print.hpp"
#include "scalewise/core/row.hpp"
#include "scalewise/core/shape.hpp"
#include "scalewise/core/source.hpp"
#include "scalewise/core/values.hpp"

namespace scalewise {

/// What the initial variances of a rule are: numbers, or factors on the tuned base model's.
enum class Reference { absolute, base };

/// Where in which model a row is asked for: for the few rules whose cells depend on it.
struct Context {
  Shape shape;
  Stack stack = Stack::main;

  /// Layers of the stack.
  constexpr long depth() const {
    return stack == Stack::encoder ? shape.encoder_depth : shape.depth;
  }
};

template <class P>
concept HasId = requires {
  { P::id } -> std::convertible_to<std::string_view>;
};
template <class P>
concept HasSource = requires {
  { P::source } -> std::convertible_to<Source>;
};
template <class P>
concept HasReference = requires {
  { P::reference } -> std::convertible_to<Reference>;
};
template <class P>
concept HasRow = requires(const P& policy, Group group) {
  { policy.row(group) } -> std::same_as<Row>;
}
|| requires(const P& policy, Group group, const Context& context) {
  { policy.row(group, context) } -> std::same_as<Row>;
};
template <class P>
concept HasModel = requires(const P& policy) {
  { policy.model() } -> std::same_as<ModelRow>;
}
|| requires(const P& policy, const Context& context) {
  { policy.model(context) } -> std::same_as<ModelRow>;
};

/// States a rule: a small struct with a name, a source, one row per group and one row for the whole
/// model. Parameters are public fields with defaults.
///
///     struct Mine {
///       static constexpr std::string_view id = "mine";
///       static constexpr Source source{...};
///       static constexpr Reference reference = Reference::absolute;
///       constexpr Row row(Group group) const;     // or row(Group, const Context&)
///       constexpr ModelRow model() const;         // or model(const Context&)
///     };
///
/// Optional members:
///   constexpr Shape adapt(Shape) const            the shape that the rule is defined on
///   constexpr void validate(const Shape&) const   throws InvalidInput for what it cannot take
///   constexpr void set_values(Values&) const      values of symbols that are its own parameters
///   constexpr void token_correlations(long depth, auto&& visit) const   visit(r) layer by layer
///   static constexpr bool supports(Optimizer)
///   static constexpr void parameters(auto& self, auto&& visit)    visit(name, field) for each
template <class P>
concept Policy = HasId<P> && HasSource<P> && HasReference<P> && HasRow<P> && HasModel<P>;

/// Says in the compiler's own words what a struct lacks to be a policy.
template <class P>
constexpr bool require_policy() {
  static_assert(HasId<P>, "a policy needs: static constexpr std::string_view id");
  static_assert(HasSource<P>, "a policy needs: static constexpr scalewise::Source source");
  static_assert(HasReference<P>, "a policy needs: static constexpr scalewise::Reference reference");
  static_assert(HasRow<P>,
                "a policy needs: constexpr scalewise::Row row(scalewise::Group) const,"
                " or with a second argument const scalewise::Context&");
  static_assert(HasModel<P>,
                "a policy needs: constexpr scalewise::ModelRow model() const,"
                " or with an argument const scalewise::Context&");
  // Optional members that are there but cannot be called would be passed over in silence.
  static_assert(
      !requires { &P::adapt; } ||
          requires(const P& p, Shape s) {
            { p.adapt(s) } -> std::same_as<Shape>;
          },
      "adapt is written: constexpr scalewise::Shape adapt(scalewise::Shape) const");
  static_assert(
      !requires { &P::validate; } || requires(const P& p, const Shape& s) { p.validate(s); },
      "validate is written: constexpr void validate(const scalewise::Shape&) const");
  static_assert(
      !requires { &P::set_values; } || requires(const P& p, Values& v) { p.set_values(v); },
      "set_values is written: constexpr void set_values(scalewise::Values&) const");
  static_assert(
      !requires { &P::supports; } ||
          requires(Optimizer o) {
            { P::supports(o) } -> std::same_as<bool>;
          },
      "supports is written: static constexpr bool supports(scalewise::Optimizer)");
  return Policy<P>;
}

/// A gain or bias: every entry starts at one over the multiplier, or at zero, so that the gain acts
/// as 1 and the bias as 0.
constexpr Row vector_row(Group group, Row row = {}) {
  row.init_variance = 0;
  row.init_mean = is_norm_gain(group) ? 1 / row.multiplier.scaling : 0;
  row.distribution = Distribution::constant;
  if (row.source.empty()) row.source = "convention";
  return row;
}

/// The row of a group.
template <Policy P>
constexpr Row row_of(const P& policy, Group group, const Context& context = {}) {
  if constexpr (requires { policy.row(group); }) {
    return policy.row(group);
  } else {
    return policy.row(group, context);
  }
}

/// The row of the whole model.
template <Policy P>
constexpr ModelRow model_of(const P& policy, const Context& context = {}) {
  if constexpr (requires { policy.model(); }) {
    return policy.model();
  } else {
    return policy.model(context);
  }
}

/// The shape a policy is defined on, for instance without norms for the normalized transformer.
template <Policy P>
constexpr Shape adapted(const P& policy, Shape shape) {
  if constexpr (requires { policy.adapt(shape); }) shape = policy.adapt(shape);
  if (!shape.tied_head) shape.tied_head = false;
  return shape;
}

}  // namespace scalewise
