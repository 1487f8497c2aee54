// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/policy/experts.hpp"
#include "scalewise/policy/optimizer.hpp"
#include "scalewise/policy/policy.hpp"
#include "scalewise/scaling/scaling.hpp"

namespace scalewise {

namespace detail {

/// The three columns that the tables of Tensor Programs V share.
enum class MupColumn { input, output, hidden };

constexpr MupColumn mup_column(Group group) {
  switch (role_of(group)) {
    case Role::output:
      return MupColumn::output;
    case Role::hidden:
      return MupColumn::hidden;
    default:
      return MupColumn::input;  // input weights, all biases and all gains
  }
}

/// The rate of hidden matrices under Muon, in all tables: a step whose singular values are the rate changes
/// features by order one where these are √(fo/fi).
/// Source:   Yang, Simon, Bernstein 2023 (arXiv:2310.17813), spectral condition; arXiv:2512.05620, Muon.
constexpr policy::RateOf mup_muon() { return {muon, sqrt(symbols::m_fo / symbols::m_fi)}; }

/// The part that all three tables share: gains and biases start so that they act as 1 and 0, and decay is
/// independent of width in the independent form (section B.3): a row's weight decay stays 1, and a plan
/// of the coupled form divides it by the rate.
constexpr Row mup_row(Group group, Row row) {
  row.decay_form = DecayForm::independent;
  if (!architecture::is_matrix(group)) row = vector_row(group, row);
  // The gradient of logits is of order one; the multiplier is between them and the bias.
  if (role_of(group) == Role::output_bias) row.epsilon = row.multiplier.scaling;
  return row;
}

/// Equation: attention scale √C0/C, which is 1/√C at the base; C is head_dim, C0 the base's. Logits of a
///           tied head get a factor in place of the head's multiplier, 1/m_N where embeddings have entries
///           of order one.
/// Source:   TP-V, section B.1.
constexpr ModelRow mup_model(const Multiplier& tied_logits) {
  using namespace symbols;
  return {.attention_scale = 1 / (sqrt(C) * sqrt(m_C)),
          .tied_logit_multiplier = tied_logits,
          .source = "section B.1"};
}

inline constexpr Source tensor_programs_v{
    "Tensor Programs V: Tuning Large Neural Networks via Zero-Shot Hyperparameter Transfer",
    "Yang, Hu, Babuschkin, Sidor, Liu, Farhi, Ryder, Pachocki, Chen, Gao", "2022",
    "arXiv:2203.03466v2", "Tables 3, 8 and 9, sections B.1 and B.3"};

}  // namespace detail

/// Maximal update parametrization, Table 3: no tensor has a multiplier.
/// Equation: the table below; fi and fo are ratios to the base, of this matrix's own fans
/// Source:   Yang et al. 2022 (arXiv:2203.03466v2), Table 3; attention and per-matrix fans section
///           B.1; decay and epsilon section B.3.
/// Units:    init_variance is a factor on the base model's variance; rates are factors on the
///           global rate.
/// Differs:  the fan-in of input weights, gains and biases does not grow and is written 1. The
///           hidden SGD rate is fo/fi, which is the table's 1 when both grow alike. Epsilon is derived:
///           the size of a gradient's entries, 1/√(fo·m_N) of input and hidden weights (the paper's 1/m_N
///           where all widths grow alike) and 1 of output weights, times the multiplier.
struct MaximalUpdateTable3 {
  static constexpr std::string_view id = "maximal-update";
  static constexpr Source source = detail::tensor_programs_v;
  static constexpr Reference reference = Reference::base;
  static constexpr std::array optimizers{sgd, adamw, muon};

  constexpr Row row(Group group) const {
    return detail::mup_row(group, column(detail::mup_column(group)));
  }

  static constexpr Row column(detail::MupColumn which) {
    using enum detail::MupColumn;
    constexpr Scaling fi = symbols::m_fi;
    constexpr Scaling fo = symbols::m_fo;
    constexpr Scaling n = symbols::m_N;
    // clang-format off
    switch (which) {
      case input:  return {.init_variance = 1,             .rates = {{sgd, fo},      {adamw, 1}},      .epsilon = 1 / sqrt(fo * n),
                           .source = "Table 3, input weights and biases"};
      case output: return {.init_variance = 1 / (fi * fi), .rates = {{sgd, 1 / fi},  {adamw, 1 / fi}}, .epsilon = 1,
                           .source = "Table 3, output weights"};
      case hidden: return {.init_variance = 1 / fi,        .rates = {{sgd, fo / fi}, {adamw, 1 / fi}, detail::mup_muon()}, .epsilon = 1 / sqrt(fo * n),
                           .source = "Table 3, hidden weights"};
    }
    // clang-format on
    return not_stated();  // no group is left
  }

  constexpr ModelRow model() const { return detail::mup_model(1 / symbols::m_N); }
};

/// Maximal update parametrization, Table 8: the output carries a multiplier 1/fi.
/// Equation: the table below; fi and fo are ratios to the base, of this matrix's own fans
/// Source:   Yang et al. 2022 (arXiv:2203.03466v2), Table 8.
/// Units:    as MaximalUpdateTable3.
/// Differs:  as MaximalUpdateTable3.
struct MaximalUpdateTable8 {
  static constexpr std::string_view id = "maximal-update";
  static constexpr Source source = detail::tensor_programs_v;
  static constexpr Reference reference = Reference::base;
  static constexpr std::array optimizers{sgd, adamw, muon};

  constexpr Row row(Group group) const {
    return detail::mup_row(group, column(detail::mup_column(group)));
  }

  static constexpr Row column(detail::MupColumn which) {
    using enum detail::MupColumn;
    constexpr Scaling fi = symbols::m_fi;
    constexpr Scaling fo = symbols::m_fo;
    constexpr Scaling n = symbols::m_N;
    // clang-format off
    switch (which) {
      case input:  return {.init_variance = 1,      .multiplier = 1,      .rates = {{sgd, fo},      {adamw, 1}},      .epsilon = 1 / sqrt(fo * n),
                           .source = "Table 8, input weights and biases"};
      case output: return {.init_variance = 1,      .multiplier = 1 / fi, .rates = {{sgd, fi},      {adamw, 1}},      .epsilon = 1 / fi,
                           .source = "Table 8, output weights"};
      case hidden: return {.init_variance = 1 / fi, .multiplier = 1,      .rates = {{sgd, fo / fi}, {adamw, 1 / fi}, detail::mup_muon()}, .epsilon = 1 / sqrt(fo * n),
                           .source = "Table 8, hidden weights"};
    }
    // clang-format on
    return not_stated();  // no group is left
  }

  constexpr ModelRow model() const { return detail::mup_model(1 / symbols::m_N); }
};

/// Maximal update parametrization, Table 9: the rates of SGD are all 1 where widths grow alike.
/// Equation: the table below; fi and fo are ratios to the base, of this matrix's own fans
/// Source:   Yang et al. 2022 (arXiv:2203.03466v2), Table 9.
/// Units:    as MaximalUpdateTable3.
/// Differs:  as MaximalUpdateTable3; a gain starts at 1/√fo, so that with its multiplier it acts
///           as 1. Embeddings have entries of 1/√n, so that logits of a tied head get 1/√m_N.
struct MaximalUpdateTable9 {
  static constexpr std::string_view id = "maximal-update";
  static constexpr Source source = detail::tensor_programs_v;
  static constexpr Reference reference = Reference::base;
  static constexpr std::array optimizers{sgd, adamw, muon};

  constexpr Row row(Group group) const {
    return detail::mup_row(group, column(detail::mup_column(group)));
  }

  static constexpr Row column(detail::MupColumn which) {
    using enum detail::MupColumn;
    constexpr Scaling fi = symbols::m_fi;
    constexpr Scaling fo = symbols::m_fo;
    constexpr Scaling n = symbols::m_N;
    // clang-format off
    switch (which) {
      case input:  return {.init_variance = 1 / fo, .multiplier = sqrt(fo),     .rates = {{sgd, 1},       {adamw, 1 / sqrt(fo)}}, .epsilon = 1 / sqrt(n),
                           .source = "Table 9, input weights and biases"};
      case output: return {.init_variance = 1 / fi, .multiplier = 1 / sqrt(fi), .rates = {{sgd, 1},       {adamw, 1 / sqrt(fi)}}, .epsilon = 1 / sqrt(fi),
                           .source = "Table 9, output weights"};
      case hidden: return {.init_variance = 1 / fi, .multiplier = 1,            .rates = {{sgd, fo / fi}, {adamw, 1 / fi}, detail::mup_muon()}, .epsilon = 1 / sqrt(fo * n),
                           .source = "Table 9, hidden weights"};
    }
    // clang-format on
    return not_stated();  // no group is left
  }

  constexpr ModelRow model() const { return detail::mup_model(1 / sqrt(symbols::m_N)); }
};

/// Maximal update parametrization in a formulation that you choose.
/// Source:   Yang et al. 2022 (arXiv:2203.03466v2), Tables 3, 8 (the default) and 9.
struct MaximalUpdate {
  static constexpr std::string_view id = "maximal-update";
  static constexpr Source source = detail::tensor_programs_v;
  static constexpr Reference reference = Reference::base;
  static constexpr std::array optimizers{sgd, adamw, muon};

  int table = 8;
  bool zero_head = false;   // recommended by the authors, section D.2
  bool zero_query = false;  // likewise
  policy::Experts experts = {};

  constexpr Row row(Group group, const policy::Context& context = {}) const {
    return experts.row(group, context, [this](Group of) { return row_by_role(of); });
  }

  constexpr Row row_by_role(Group group) const {
    Row row = table == 3   ? MaximalUpdateTable3{}.row(group)
              : table == 8 ? MaximalUpdateTable8{}.row(group)
                           : MaximalUpdateTable9{}.row(group);
    const bool zero = (zero_head && group == Group::head) || (zero_query && group == Group::query);
    return zero ? vector_row(group, row) : row;  // no variance, a mean of 0
  }

  constexpr ModelRow model() const {
    return table == 9 ? MaximalUpdateTable9{}.model() : MaximalUpdateTable8{}.model();
  }

  /// Checks the parameters.
  /// Throws:   InvalidInput for a table other than 3, 8 and 9, and as Experts::validate().
  constexpr void validate(const Shape&) const {
    experts.validate();
    if (table != 3 && table != 8 && table != 9) {
      throw InvalidInput("table", std::to_string(table), "3, 8 or 9");
    }
  }

  static void parameters(auto& self, auto&& visit) {
    visit("table", self.table);
    visit("zero_head", self.zero_head);
    visit("zero_query", self.zero_query);
    policy::Experts::parameters(self.experts, visit);
  }
};

static_assert(Policy<MaximalUpdateTable3> && Policy<MaximalUpdateTable8> &&
              Policy<MaximalUpdateTable9> && Policy<MaximalUpdate>);

}  // namespace scalewise
