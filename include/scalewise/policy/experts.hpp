// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "scalewise/messages/error.hpp"
#include "scalewise/policy/optimizer.hpp"
#include "scalewise/policy/policy.hpp"
#include "scalewise/scaling/scaling.hpp"

namespace scalewise::policy {

/// The rows of routers and experts under a rule by role, which published tables do not agree on. With neither, a router
/// has the row of output weights and an expert that of hidden ones, each by its own fans and as in a layer: what both tables have where
/// the number of experts stays and their hidden features grow with the width. A published table replaces what hidden
/// weights have as follows; m_E is the ratio of the number of experts, fi and fo are those of a matrix's fans.
/// Equation: mssp:  variance 1/fi, of a router of a fixed number of experts 1/fi², of expert_down m_E/fi where experts are
///                  more but no wider; epsilon 1/(fo·m_E), of a router 1/m_E; the rate of SGD times m_E, of a router as it is
///           jiang: variance 1/fi, of a router 1/fi², of expert_down fo/fi²; epsilon 1/fo, of a router 1/fi, of
///                  expert_down fo/fi²
///           Epsilon keeps the rule's factor of the depth, which MSSP does not have.
/// Source:   MSSP: arXiv:2605.14200, the authors' code (vankadara-lab/mssp-moe e6b6caf, transformer-moe-experiments/
///           scaling.py: MupFixedE, MupAllScale, MupBottleneck; mlp-moe-experiments/scaling_configs.py for SGD). Jiang et
///           al., arXiv:2601.20205v3, Table 2. The default router: G. Yang in microsoft/mup issue 48.
/// Differs:  biases of experts keep the rule's row of biases, where Jiang's epsilon is 1/m_L alone. Muon's rate is that of
///           hidden weights, which neither text has.
struct Experts {
  bool mssp = false;
  bool jiang = false;

  /// The row of a group; usual(group) is what the rule has by role.
  /// Throws:   InvalidInput for another number of experts than the base's without a table, and for another share of active
  ///           ones under Jiang's.
  constexpr Row row(Group group, const Context& context, const auto& usual) const {
    if (!architecture::is_of_experts(group)) return usual(group);
    if (context.base) require_a_row(context.shape, *context.base);
    if (mssp) return of_mssp(group, context, usual(Group::hidden));
    if (jiang) return of_jiang(group, usual(Group::hidden));
    Row row = usual(group);
    if (group == Group::router) row.source = "as output weights (mup#48)";
    return row;
  }

  /// Throws:   InvalidInput for both tables.
  constexpr void validate() const {
    if (mssp && jiang)
      throw InvalidInput("jiang", "true", "one table for experts", "or mssp=false");
  }

  static void parameters(auto& self, auto&& visit) {
    visit("mssp", self.mssp);
    visit("jiang", self.jiang);
  }

 private:
  constexpr void require_a_row(const Shape& shape, const Shape& base) const {
    if (shape.experts != base.experts && !mssp && !jiang) {
      throw InvalidInput("experts",
                         std::to_string(base.experts) + " to " + std::to_string(shape.experts),
                         "as many in both models",
                         "tables for more experts: --set mssp=true, or --set jiang=true");
    }
    if (!jiang || shape.experts_per_token == 0 || base.experts_per_token == 0) return;
    if (shape.experts_per_token * base.experts == base.experts_per_token * shape.experts) return;
    throw InvalidInput(
        "experts_per_token",
        std::to_string(base.experts_per_token) + " of " + std::to_string(base.experts) + " to " +
            std::to_string(shape.experts_per_token) + " of " + std::to_string(shape.experts),
        "the same share of the experts", "Jiang's table holds for one share");
  }

  static constexpr Row of_mssp(Group group, const Context& context, Row row) {
    using namespace symbols;
    const bool more = context.base && context.base->experts != context.shape.experts;
    const long features = context.shape.expert_ff;
    const bool narrow = more && features > 0 && context.base->expert_ff == features;
    const Scaling by_sgd = row.rates.has(sgd) ? row.rate(sgd).scaling : 1;
    const bool router = group == Group::router;
    if (router && !more) row.init_variance = 1 / (m_fi * m_fi);
    if (group == Group::expert_down && narrow) row.init_variance = m_E / m_fi;
    row.epsilon = depth_of_epsilon(row) / (router ? m_E : m_fo * m_E);
    if (row.rates.has(sgd) && !router) row.rates.set(sgd, by_sgd * m_E);
    row.source = router                      ? "MSSP (arXiv:2605.14200), router"
                 : group == Group::expert_up ? "MSSP (arXiv:2605.14200), expert up"
                                             : "MSSP (arXiv:2605.14200), expert down";
    return row;
  }

  static constexpr Row of_jiang(Group group, Row row) {
    using namespace symbols;
    const Scaling depth = depth_of_epsilon(row), narrow = m_fo / (m_fi * m_fi);
    row.rates = row.rates.has(muon) ? Rates{{adamw, row.rate(adamw)}, {muon, row.rate(muon)}}
                                    : Rates{{adamw, row.rate(adamw)}};
    switch (group) {
      case Group::router:
        row.init_variance = 1 / (m_fi * m_fi);
        row.epsilon = depth / m_fi;
        row.source = "arXiv:2601.20205, Table 2, router";
        return row;
      case Group::expert_up:
        row.epsilon = depth / m_fo;
        row.source = "arXiv:2601.20205, Table 2, expert up";
        return row;
      default:
        row.init_variance = narrow;
        row.epsilon = depth * narrow;
        row.source = "arXiv:2601.20205, Table 2, expert down";
        return row;
    }
  }

  /// The part of a hidden matrix's epsilon beside 1/√(fo·m_N), its value where the depth stays.
  static constexpr Scaling depth_of_epsilon(const Row& row) {
    return row.epsilon.scaling * sqrt(symbols::m_fo * symbols::m_N);
  }
};

}  // namespace scalewise::policy
