// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

#include "scalewise/files/bytes.hpp"
#include "scalewise/plan/plan.hpp"

namespace scalewise::plan {

/// Sixteen hexadecimal digits that stand for a plan: its rule and every tensor's name, size and
/// numbers. Plans that differ in any of them have, up to chance, different ones.
inline std::string plan_fingerprint(const Plan& plan) {
  files::ByteWriter text;
  text.text(plan.rule);
  text.number(static_cast<std::uint32_t>(plan.reference));
  text.number(static_cast<std::uint32_t>(plan.decay));
  text.number(plan.model.attention_scale.value);
  text.number(plan.model.embedding_multiplier.value);
  text.number(plan.model.logit_multiplier.value);
  for (const Residual& residual : plan.model.residuals) {
    text.number(residual.skip.value);
    text.number(residual.branch.value);
  }
  for (const Entry& entry : plan.entries) {
    text.text(entry.name);
    text.number(static_cast<std::int64_t>(entry.rows));
    text.number(static_cast<std::int64_t>(entry.columns));
    text.number(static_cast<std::uint32_t>(entry.distribution));
    for_each_number(entry, [&](const char*, const auto& planned) { text.number(planned.value); });
  }
  return files::fingerprint(text.bytes());
}

}  // namespace scalewise::plan
