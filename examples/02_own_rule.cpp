// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// A rule of your own: a struct with a name, a source, one row per group and one for the model.
// Here: fan-in initialization whose residual outputs shrink with depth, and hidden rates in 1/fi.

#include <fmt/core.h>

#include <scalewise/format.hpp>
#include <scalewise/scalewise.hpp>

struct Mine {
  static constexpr std::string_view id = "mine";
  static constexpr scalewise::Source source{"Lab notebook", "A. Reader", "2026", "unpublished",
                                            "p. 12"};
  static constexpr scalewise::Reference reference = scalewise::Reference::absolute;
  static constexpr std::array optimizers{scalewise::adamw};

  constexpr scalewise::Row row(scalewise::Group group) const {
    using namespace scalewise::symbols;
    using scalewise::Group;
    switch (role_of(group)) {
      case scalewise::Role::input:
        return {.init_variance = 1, .source = "p. 12, line 1"};
      case scalewise::Role::hidden: {
        const bool writes_residual = group == Group::attention_output || group == Group::mlp_down;
        return {.init_variance = writes_residual ? 1 / (2 * L * fi) : 1 / fi,
                .rates = {{scalewise::adamw, 1 / fi}},
                .source = "p. 12, line 2"};
      }
      case scalewise::Role::output:
        return {.init_variance = 1 / (fi * fi),
                .rates = {{scalewise::adamw, 1 / fi}},
                .source = "p. 12, line 3"};
      default:
        return vector_row(group);
    }
  }

  constexpr scalewise::ModelRow model() const { return {.source = "p. 12"}; }
};

static_assert(scalewise::Policy<Mine>);

int main() {
  using namespace scalewise;
  const Plan plan = make_plan(Mine{}, {.model = preset_shape("llama-3-8b")});
  for (const char* name : {"token_embedding", "layer.0.query", "layer.0.mlp_down", "head"}) {
    fmt::print("{}\n", plan.at(name));
  }
  const Entry& down = plan.at("layer.0.mlp_down");
  fmt::print("{:.2}\n", down.init_variance);
  fmt::print("{:latex}\n", down.init_variance);
  fmt::print("{:ascii}\n", down.init_variance);
}
