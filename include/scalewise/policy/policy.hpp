// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <concepts>
#include <optional>
#include <string_view>
#include <vector>

#include "scalewise/architecture/group.hpp"
#include "scalewise/architecture/norm_placement.hpp"
#include "scalewise/architecture/shape.hpp"
#include "scalewise/messages/words.hpp"
#include "scalewise/policy/row.hpp"
#include "scalewise/policy/source.hpp"
#include "scalewise/scaling/formula.hpp"

namespace scalewise {

/// Whether the initial variances of a rule are numbers, or factors on the tuned base model's.
enum class Reference { absolute, base };

namespace policy {

inline constexpr messages::Spelling<Reference, 2> reference_words{
    {{Reference::absolute, "absolute"}, {Reference::base, "base"}}};

/// The model of a rule's text, where a plan does not depend on it; what decides a tensor is in adapt(). Unset: the
/// text leaves it open, or tries several.
struct TextModel {
  std::optional<Activation> activation = {};
  std::optional<bool> rotary = {};              // false: learned positions
  std::optional<NormPlacement> placement = {};  // of residual blocks
};

/// The model, its base and the stack that a row is for; the cells of a few rules depend on them.
struct Context {
  Shape shape;
  Stack stack = Stack::main;
  std::optional<Shape> base = {};
  std::optional<bool> in_layers = {};  // of a tensor; without, its group says so

  constexpr bool is_in_layers(Group group) const {
    return in_layers.value_or(architecture::is_in_layers(group));
  }

  /// Layers of the stack.
  constexpr long depth() const {
    return stack == Stack::encoder ? shape.encoder_depth : shape.depth;
  }
};

/// The values of a symbol that is not a size of the shape: one for all layers of a stack, or one for
/// each layer from the first on.
struct OwnValues {
  const Symbol* symbol;
  std::vector<double> by_layer;
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
concept HasOptimizers = requires {
  { P::optimizers.front() } -> std::convertible_to<const Optimizer&>;
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

}  // namespace policy

/// States a rule: a small struct with a name, a source, one row per group and one row for the whole
/// model. Parameters are public fields with defaults.
///
///     struct Mine {
///       static constexpr std::string_view id = "mine";
///       static constexpr Source source{...};
///       static constexpr Reference reference = Reference::absolute;
///       static constexpr std::array optimizers{sgd, adamw};   // those that the rule is stated for
///       constexpr Row row(Group group) const;     // or row(Group, const policy::Context&)
///       constexpr ModelRow model() const;         // or model(const policy::Context&)
///     };
///
/// Optional members:
///   static constexpr policy::TextModel text{...}  what its text trains, of which no number depends
///   constexpr Shape adapt(Shape) const            the shape that the rule is defined on
///   constexpr void validate(const Shape&) const   throws InvalidInput for what it cannot take
///   std::vector<policy::OwnValues> own_values(const policy::Context&) const  of symbols the shape does not give
///   static constexpr void parameters(auto& self, auto&& visit)    visit(name, field) for each; a field
///                                                 without a default is a std::optional<double>
template <class P>
concept Policy = policy::HasId<P> && policy::HasSource<P> && policy::HasReference<P> &&
    policy::HasOptimizers<P> && policy::HasRow<P> && policy::HasModel<P>;

/// Says in the compiler's own words what a struct lacks to be a policy.
template <class P>
constexpr bool require_policy() {
  static_assert(policy::HasId<P>, "a policy needs: static constexpr std::string_view id");
  static_assert(policy::HasSource<P>, "a policy needs: static constexpr scalewise::Source source");
  static_assert(policy::HasReference<P>,
                "a policy needs: static constexpr scalewise::Reference reference");
  static_assert(
      policy::HasOptimizers<P>,
      "a policy needs: static constexpr std::array optimizers{scalewise::adamw}, or others");
  static_assert(policy::HasRow<P>,
                "a policy needs: constexpr scalewise::Row row(scalewise::Group) const,"
                " or with a second argument const scalewise::policy::Context&");
  static_assert(policy::HasModel<P>,
                "a policy needs: constexpr scalewise::ModelRow model() const,"
                " or with an argument const scalewise::policy::Context&");
  // Optional members that exist but cannot be used would be ignored silently.
  if constexpr (requires { P::text; }) {
    static_assert(std::same_as<decltype(P::text), const policy::TextModel>,
                  "text is written: static constexpr scalewise::policy::TextModel text{...}");
  }
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
      !requires { &P::own_values; } ||
          requires(const P& p, const policy::Context& c) {
            { p.own_values(c) } -> std::same_as<std::vector<policy::OwnValues>>;
          },
      "own_values is written: std::vector<scalewise::policy::OwnValues> own_values(const "
      "scalewise::policy::Context&) const");
  return Policy<P>;
}

/// A gain or bias: every entry starts at one over the multiplier, or at zero, so that the gain acts
/// as 1 and the bias as 0.
/// Source:   convention, unless the row names another.
constexpr Row vector_row(Group group, Row row = {}) {
  row.init_variance = 0;
  row.init_mean = architecture::is_norm_gain(group) ? 1 / row.multiplier.scaling : 0;
  row.distribution = Distribution::constant;
  if (row.source.empty()) row.source = "convention";
  return row;
}

namespace policy {

/// The row of a group.
template <Policy P>
constexpr Row row_of(const P& policy, Group group, const Context& context = {}) {
  if constexpr (requires { policy.row(group, context); }) {
    return policy.row(group, context);
  } else {
    return policy.row(group);
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

/// True when a rule is stated for an optimizer, or for the one that it is a case of.
template <HasOptimizers R>
constexpr bool states(const R& rule, const Optimizer& optimizer) {
  for (const Optimizer& stated : rule.optimizers) {
    if (stated == optimizer || stated.name == optimizer.case_of) return true;
  }
  return false;
}

}  // namespace policy

/// The shape a policy is defined on, for instance without norms for the normalized transformer. An activation that is
/// unset becomes that of the text.
template <Policy P>
constexpr Shape adapted(const P& policy, Shape shape) {
  if constexpr (requires { policy.adapt(shape); }) shape = policy.adapt(shape);
  if constexpr (requires { P::text; }) {
    if (!shape.activation) shape.activation = P::text.activation;
  }
  if (!shape.tied_head) shape.tied_head = false;
  return shape;
}

}  // namespace scalewise
