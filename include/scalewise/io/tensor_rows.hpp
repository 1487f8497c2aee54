// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/dialect/flat_blocks.hpp"
#include "scalewise/dialect/named_plan.hpp"
#include "scalewise/io/python_code.hpp"
#include "scalewise/io/quoting.hpp"
#include "scalewise/messages/words.hpp"
#include "scalewise/plan/code_factors.hpp"

namespace scalewise {

namespace detail {

/// A part of a tensor that lies in one block, with its entry.
struct TensorRow {
  const dialect::OwnerTensor* tensor;
  std::size_t index;  // of the tensor
  const Entry* entry;
  dialect::FlatBlock block;
};

inline std::vector<TensorRow> tensor_rows(const dialect::NamedPlan& named) {
  const auto entries = dialect::entries_by_name(named.plan);
  std::vector<TensorRow> rows;
  for (std::size_t i = 0; i < named.assignment.tensors.size(); ++i) {
    const dialect::OwnerTensor& tensor = named.assignment.tensors[i];
    for (const dialect::OwnedPart& part : tensor.parts) {
      for (const dialect::FlatBlock& block : dialect::flat_blocks(tensor, part)) {
        rows.push_back({&tensor, i, entries.at(part.entry), block});
      }
    }
  }
  return rows;
}

/// A constant of the type float, so that compilers have no conversion to warn of.
inline std::string float_constant(double value) {
  return fmt::format("{:#}f", static_cast<float>(value));
}

/// What the model multiplies, as constants of C.
inline std::string c_model(const Plan& plan) {
  const plan::CodeNumbers code = plan::code_of(plan);  // what it does by itself
  std::string text =
      "/* Scores are attention_scale q k. Embeddings and logits are multiplied by what is left\n"
      "   beside the code base's own factors. It contains the multiplier of the blocks of their\n"
      "   tensors: apply one of the two. */\n";
  text += fmt::format("static const double scalewise_attention_scale = {};\n",
                      plan.model.attention_scale.value);
  text += fmt::format(
      "static const double scalewise_embedding_multiplier = {};\n",
      plan::left_over(plan.model.embedding_multiplier, code.embedding_multiplier).value);
  text += fmt::format("static const double scalewise_logit_multiplier = {};\n\n",
                      plan::left_over(plan.model.logit_multiplier, code.logit_multiplier).value);
  text += "/* x = skip * x + branch * f(x), by layer. */\nstatic const double scalewise_skip[] = {";
  for (const Residual& r : plan.model.residuals) text += fmt::format("{}, ", r.skip.value);
  text += "};\nstatic const double scalewise_branch[] = {";
  for (const Residual& r : plan.model.residuals)
    text += fmt::format("{}, ", plan::left_over(r.branch, code.branch).value);
  return text + "};\n\n";
}

}  // namespace detail

/// One line per block of an entry, with tabs between columns: for languages without JSON.
/// Units:    std is a standard deviation, a factor on the base model's under a relative rule; the
///           rates, decays and epsilons are factors; offsets and sizes count numbers
/// Throws:   InvalidInput for a plan with several optimizers.
inline std::string tensor_tsv(const dialect::NamedPlan& named) {
  detail::require_one_optimizer(named, "tsv");
  std::string text =
      "tensor\tshape\tentry\toffset\tcount\tstride\trepeats\tdistribution\tmean\tstd\tmultiplier\t"
      "learning_rate\tweight_decay\tepsilon\n";
  for (const detail::TensorRow& row : detail::tensor_rows(named)) {
    const Entry& e = *row.entry;
    text += fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n",
                        io::tsv_field(row.tensor->name), fmt::join(row.tensor->shape, "x"),
                        io::tsv_field(e.name), row.block.offset, row.block.count, row.block.stride,
                        row.block.repeats, word(policy::distribution_words, e.distribution),
                        e.init_mean.value, std_dev(e.init_variance), e.multiplier.value,
                        e.learning_rate.value, e.weight_decay.value, e.epsilon.value);
  }
  return text;
}

/// Arrays for C: one row per tensor with its factors, in the dialect's order, and one per block of an
/// entry with its distribution.
/// Units:    as tensor_tsv(); weight_decay for an optimizer that multiplies it by the tensor's rate
/// Throws:   InvalidInput for a plan with several optimizers.
inline std::string c_header(const dialect::NamedPlan& named) {
  using detail::float_constant;
  detail::require_one_optimizer(named, "c-header");
  const auto rows = detail::tensor_rows(named);
  const Plan& plan = named.plan;
  const bool relative = plan.reference == Reference::base;
  std::string text = fmt::format(
      "/* Rule {}, optimizer {}, names {}; {} parameters. */\n"
      "#ifndef SCALEWISE_PLAN_H\n#define SCALEWISE_PLAN_H\n\n"
      "/* Factors on the global learning rate, weight decay and epsilon.\n"
      "   Weight decay: {}. */\n"
      "typedef struct {{\n  const char* name;\n  float lr, wd, eps;\n}} scalewise_tensor;\n\n"
      "/* How `count` numbers from `offset` start, `repeats` times, each `stride` further. A "
      "normal\n"
      "   of std, or as `distribution` says; 'c': constant, 'u': uniform, 't': cut at two std, "
      "'o': as\n"
      "   the model itself does.\n"
      "   Each std is {}. */\n"
      "typedef struct {{\n  int tensor;\n  const char* entry;\n"
      "  long long offset, count, stride, repeats;\n  char distribution;\n"
      "  float mean, std, multiplier;\n}} scalewise_block;\n\n"
      "enum {{ scalewise_tensors = {}, scalewise_blocks = {}, scalewise_std_is_relative = {} "
      "}};\n\n",
      io::c_comment_text(plan.rule), plan.optimizer.name,
      io::c_comment_text(named.assignment.dialect), plan.parameter_count(), io::coupled_decay(plan),
      relative ? "a factor on that of the same tensor in the base model" : "a standard deviation",
      named.assignment.tensors.size(), rows.size(), relative ? 1 : 0);
  text += detail::c_model(plan);
  text += "static const scalewise_tensor scalewise_tensor_rows[] = {\n";
  for (std::size_t i = 0; i < named.factors.size(); ++i) {
    const dialect::TensorFactors& f = named.factors[i];
    text += fmt::format("  {{{}, {}, {}, {}}},\n", io::c_string(named.assignment.tensors[i].name),
                        float_constant(f.learning_rate),
                        float_constant(io::factor_of_coupled_decay(plan, f)),
                        float_constant(f.epsilon));
  }
  text += "};\n\nstatic const scalewise_block scalewise_block_rows[] = {\n";
  for (const detail::TensorRow& row : rows) {
    const std::string_view kind = word(policy::distribution_words, row.entry->distribution);
    text += fmt::format("  {{{}, {}, {}, {}, {}, {}, '{}', {}, {}, {}}},\n", row.index,
                        io::c_string(row.entry->name), row.block.offset, row.block.count,
                        row.block.stride, row.block.repeats, kind.front(),
                        float_constant(row.entry->init_mean.value),
                        float_constant(std_dev(row.entry->init_variance)),
                        float_constant(row.entry->multiplier.value));
  }
  return text + "};\n\n#endif\n";
}

}  // namespace scalewise
