// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// A rule with symbols that the library does not know.

#include <string>
#include <type_traits>
#include <vector>

#include "scalewise/io/plan_json.hpp"
#include "scalewise/policy/standard.hpp"
#include "scalewise/scalewise.hpp"
#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/formula_problem.hpp"
#include "support/small_shapes.hpp"

namespace {

using namespace scalewise;
using scalewise::test::error_message;

constexpr Symbol batch{.text = "B",
                       .latex = "B_s",
                       .ratio_text = "m_B",
                       .ratio_latex = "m_{B_s}",
                       .meaning = "tokens per step"};
constexpr Symbol noise{.text = "q",
                       .latex = "q_\\ell",
                       .ratio_text = "m_q",
                       .ratio_latex = "m_{q_\\ell}",
                       .meaning = "noise of the layer",
                       .varies = true};
constexpr Scaling B{batch};
constexpr Scaling q{noise};

// They take part in formulas as all others do.
static_assert(B * q == q * B && B / B == Scaling(1) && sqrt(B) * sqrt(B) == B);
static_assert(B != q && B != ratio(B) && ratio(B).needs_base());
static_assert(substitute(symbols::n / B, batch, symbols::F) == symbols::n / symbols::F);
static_assert((symbols::n / B).exponent_of(batch) == Exponent(-1));
static_assert([] {
  architecture::Values values(Shape{.d_model = 14});
  values.set(batch, 64);
  return architecture::evaluate(symbols::n / sqrt(B), values) == 14.0 / 8;
}());

// A formula does not refer to a symbol that is gone.
static_assert(std::is_constructible_v<Scaling, const Symbol&>);
static_assert(!std::is_constructible_v<Scaling, Symbol>);

/// var W = q/(Bn), rate √B/n, in hidden matrices; q halves from layer to layer.
struct Noisy : Standard {
  constexpr Row row(Group group) const {
    Row row = Standard::row(group);
    if (role_of(group) == Role::hidden) {
      row.init_variance = q / (B * symbols::n);
      row.rates = sqrt(B) / symbols::n;
    }
    return row;
  }
  static std::vector<policy::OwnValues> own_values(const policy::Context&) {
    return {{&batch, {64}}, {&noise, {0.5, 0.25}}};
  }
};

}  // namespace

TEST_CASE("Symbols that a rule brings along are written, evaluated and listed", "[symbol]") {
  const Plan plan = make_plan(Noisy{}, {.model = test::token_shape()});  // n = 14
  const Entry& first = plan.at("layer.0.query");
  CHECK(first.init_variance.formula() == "q/(nB)");
  CHECK(first.init_variance.latex() == "\\frac{q_\\ell}{n\\,B_s}");
  CHECK(first.init_variance.value == 0.5 / (14 * 64));
  CHECK(first.learning_rate.formula() == "√B/n");
  CHECK(first.learning_rate.value == 8.0 / 14);
  CHECK(plan.at("layer.1.query").init_variance.value == 0.25 / (14 * 64));

  CHECK(plan.symbols.back() == plan::SymbolValue{"B", "B_s", "tokens per step", 64});
  CHECK(first.where == std::vector{plan::SymbolValue{"q", "q_\\ell", "noise of the layer", 0.5}});
  CHECK(plan.at("layer.1.query").where.front().value == 0.25);
  for (const plan::SymbolValue& listed : plan.symbols) CHECK(listed.text != "q");

  CHECK(plan_from_json(nlohmann::ordered_json::parse(to_json(plan).dump())) == plan);
}

TEST_CASE("A symbol that varies is listed wherever it stands", "[symbol]") {
  struct NoisyRate : Noisy {
    Row row(Group group) const {
      Row row = Noisy::row(group);
      if (role_of(group) == Role::hidden) {
        row.init_variance = 1 / symbols::n;
        row.rates = q / symbols::n;
      }
      return row;
    }
  };
  const Plan plan = make_plan(NoisyRate{}, {.model = test::token_shape()});
  CHECK(test::formula_problem(plan) == "");
  CHECK(plan.at("layer.1.query").where ==
        std::vector{plan::SymbolValue{"q", "q_\\ell", "noise of the layer", 0.25}});
  CHECK(plan_from_json(nlohmann::ordered_json::parse(to_json(plan).dump())) == plan);
}

TEST_CASE("Symbols of one place go by their text, after those of all rules", "[symbol]") {
  CHECK(to_text(q * B * Scaling(symbols::layer) * symbols::n) == "nlBq");
  CHECK(to_latex(ratio(q) * ratio(B)) == "m_{B_s}\\,m_{q_\\ell}");
}

TEST_CASE("A symbol without a value, or with one that cannot be, is refused", "[symbol]") {
  struct Silent : Noisy {
    static std::vector<policy::OwnValues> own_values(const policy::Context&) {
      return {{&noise, {0.5, 0.25}}};
    }
  };
  CHECK(error_message([] { make_plan(Silent{}, {.model = test::token_shape()}); }) ==
        "tokens per step = missing: expected a positive size, which this rule scales with");
  static constexpr Symbol other_n{"n", "n", "m_n", "m_n", "noise of the data"};
  struct Taken : Noisy {
    static std::vector<policy::OwnValues> own_values(const policy::Context&) {
      return {{&batch, {64}}, {&noise, {0.5, 0.25}}, {&other_n, {3}}};
    }
  };
  CHECK(error_message([] { make_plan(Taken{}, {.model = test::token_shape()}); }) ==
        "symbol = n: expected a text that no other symbol has (hint: it is that of d_model)");
  struct Changing : Noisy {
    static std::vector<policy::OwnValues> own_values(const policy::Context&) {
      return {{&batch, {64, 32}}, {&noise, {0.5, 0.25}}};
    }
  };
  CHECK(error_message([] { make_plan(Changing{}, {.model = test::token_shape()}); }) ==
        "B = a value for each layer: expected one value, or a symbol that varies");
}
