// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/policy/nu_gpt.hpp"

#include "support/catch.hpp"
#include "support/normalized_rows.hpp"

using namespace scalewise;
using namespace scalewise::symbols;
using namespace scalewise::test;

namespace {

// Every rate times m_D^(-1/3). The alignment exponent of Definition 3.2: none 1/2, mid 3/4, full 1,
// and anything between. Constants on the input and output rates, and on no other.
constexpr Column nu_gpt(Exponent alignment, double input = 1, double output = 1) {
  const Scaling hidden = pow(m_N, -alignment);
  return {pow(m_D, {-1, 3}), input / sqrt(m_N), hidden, output * hidden, 0.05 / m_L, 0.03,
          sqrt(m_N)};
}
static_assert(has_column(NuGpt{}, nu_gpt({3, 4})));
static_assert(has_column(NuGpt{.alignment = 0.5}, nu_gpt({1, 2})));
static_assert(has_column(NuGpt{.alignment = 0.6}, nu_gpt({3, 5})));
static_assert(has_column(NuGpt{.alignment = 0.75}, nu_gpt({3, 4})));
static_assert(has_column(NuGpt{.alignment = 1}, nu_gpt(1)));
static_assert(has_column(NuGpt{.input_rate = 2, .output_rate = 0.5}, nu_gpt({3, 4}, 2, 0.5)));
// Hidden matrices and the head have max{α, ν} of their own (sections 3.2 and 4.3); what has none has the common one.
constexpr Column apart(Exponent hidden, Exponent output) {
  return {pow(m_D, {-1, 3}), 1 / sqrt(m_N), pow(m_N, -hidden), pow(m_N, -output),
          0.05 / m_L,        0.03,          sqrt(m_N)};
}
static_assert(has_column(NuGpt{.hidden_alignment = 0.5, .output_alignment = 1}, apart({1, 2}, 1)));
static_assert(has_column(NuGpt{.hidden_alignment = 0.6}, apart({3, 5}, {3, 4})));
static_assert(has_column(NuGpt{.alignment = 0.5, .output_alignment = 0.8}, apart({1, 2}, {4, 5})));
// Equations (10) and (11): a step ∝ L^-α, a hidden rate ∝ L^(α-1). Other horizons: section 3.3 names 0.32 and 1/2.
constexpr Column exponents(Exponent depth, Exponent horizon) {
  return {pow(m_D, -horizon), 1 / sqrt(m_N),           pow(m_N, {-3, 4}) * pow(m_L, depth - 1),
          pow(m_N, {-3, 4}),  0.05 * pow(m_L, -depth), 0.03,
          sqrt(m_N)};
}
static_assert(has_column(NuGpt{.depth_exponent = 0.5}, exponents({1, 2}, {1, 3})));
static_assert(has_column(NuGpt{.depth_exponent = 0}, exponents(0, {1, 3})));
static_assert(has_column(NuGpt{.horizon_exponent = 0.32}, exponents(1, {8, 25})));
static_assert(has_column(NuGpt{.horizon_exponent = 0.5}, exponents(1, {1, 2})));
static_assert(has_column(NuGpt{.horizon_exponent = 0}, exponents(1, 0)));
static_assert(unit_model(NuGpt{}.model()));
static_assert(NuGpt{}.row(Group::query).rate(adamw).scaling.needs_base());
static_assert(!policy::states(NuGpt{}, sgd));

}  // namespace

TEST_CASE("An alignment may be no simple fraction") {
  const double a = 0.6180339887;
  const Plan plan = make_plan(NuGpt{.alignment = a}, {.model = decoder(), .base = decoder_base()});
  // Widths are 3 to 1, and 8 times the steps halve every rate.
  CHECK(near(plan.at("layer.4.query").learning_rate.value, 0.5 * std::pow(3.0, -a)));
  CHECK(near(plan.at("head").learning_rate.value, 0.5 * std::pow(3.0, -a)));
}
