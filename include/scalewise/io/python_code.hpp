// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The parts that configurations in Python share, whatever program reads them.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <vector>

#include "scalewise/dialect/named_plan.hpp"
#include "scalewise/io/name_patterns.hpp"
#include "scalewise/io/quoting.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/messages/words.hpp"
#include "scalewise/plan/code_factors.hpp"
#include "scalewise/plan/plan.hpp"

namespace scalewise {

namespace io {

/// The factor on a weight decay that an optimizer multiplies by the tensor's own rate, as PyTorch's do.
/// Units:    a factor on the global weight decay
inline double factor_of_coupled_decay(const Plan& plan, const dialect::TensorFactors& factors) {
  const bool independent = plan.decay == DecayForm::independent && factors.learning_rate > 0;
  return factors.weight_decay / (independent ? factors.learning_rate : 1);
}

/// The form of weight decay that these factors are for, which is not the plan's where that is independent.
inline std::string coupled_decay(const Plan& plan) {
  if (plan.decay == DecayForm::l2) return "l2, added to the gradient";
  const std::string from =
      plan.decay == DecayForm::independent ? ", from the plan's independent" : "";
  return "coupled, multiplied by the tensor's own learning rate" + from;
}

}  // namespace io

namespace detail {

/// The first lines of a configuration in Python.
inline std::string python_heading(const dialect::NamedPlan& named, std::string_view what) {
  std::string text =
      fmt::format("# Rule {}, optimizer {}, names {}.\n# Weight decay: {}.\n# {}\n",
                  io::comment_text(named.plan.rule), named.plan.optimizer.name,
                  io::comment_text(named.assignment.dialect), io::coupled_decay(named.plan), what);
  for (const std::string& left : plan::left_to_multiply(named.plan)) {
    text += "# Not in these groups: the model has to multiply " + io::comment_text(left) + ".\n";
  }
  return text;
}

/// LR * 0.125, or LR.
inline std::string times(std::string_view symbol, double factor) {
  return factor == 1 ? std::string(symbol) : fmt::format("{} * {}", symbol, factor);
}

/// Throws:   InvalidInput for a plan whose tensors have different optimizers.
inline void require_one_optimizer(const dialect::NamedPlan& named, std::string_view format) {
  if (named.plan.optimizer.normalization != policy::Normalization::by_matrix) return;
  throw InvalidInput(
      "optimizer", std::string(named.plan.optimizer.name),
      "one optimizer for all tensors, as " + std::string(format) + " has",
      "--format torch-groups, torchtitan, megatron and json say which tensor has which");
}

/// Throws:   InvalidInput for another optimizer than AdamW and, where a format has it, SGD; for a decay that its
///           Adam does not have.
inline void require_adamw(const dialect::NamedPlan& named, std::string_view format, bool or_sgd) {
  const Plan& plan = named.plan;
  require_one_optimizer(named, format);
  if (plan.optimizer != adamw && !(or_sgd && plan.optimizer == sgd)) {
    throw InvalidInput("optimizer", std::string(plan.optimizer.name),
                       or_sgd ? "adamw or sgd" : "adamw",
                       or_sgd ? "" : "the sgd of " + std::string(format) + " scales rates itself");
  }
  if (plan.optimizer == adamw && plan.decay == DecayForm::l2) {
    throw InvalidInput("decay", "l2", "coupled or independent",
                       "the adam of " + std::string(format) + " decays as AdamW does");
  }
}

/// Whether an optimizer normalizes matrices, as Muon does.
inline bool is_by_matrix(const io::PatternGroup& group) {
  return group.factors.optimizer.normalization == policy::Normalization::by_matrix;
}

/// The numbers of tensors of all patterns.
inline std::string tensor_counts(const io::NamePatterns& patterns) {
  std::string text;
  for (const io::PatternGroup& group : patterns.groups) {
    for (const io::NamePattern& pattern : group.patterns) {
      text += (text.empty() ? "" : ", ") + std::to_string(pattern.tensors);
    }
  }
  return "TENSORS = [" + text + "]\n";
}

/// The patterns of one tensor as arguments in Python, each after a head.
inline std::string python_arguments(const std::vector<std::string>& texts,
                                    const std::string& head = "") {
  std::string all;
  for (const std::string& text : texts) {
    all += (all.empty() ? "" : ", ") + io::python_string(head + text);
  }
  return all;
}

/// The function names(), which makes one regular expression of patterns of bare names.
inline std::string names_function(const io::NamePatterns& patterns) {
  return "import re\n\nWRAPPERS = " + io::python_string(io::wrapper_regex) + R"py(


def names(*patterns):
    """One pattern for the names of a tensor, whatever wrappers of PyTorch add to them."""
    inner = "|".join(p.replace(r"\.", r"\." + WRAPPERS) for p in patterns)
    return )py" +
         (patterns.head.empty() ? "\"^\" + WRAPPERS + \"(?:\""
                                : io::python_string("^" + patterns.head + "(?:")) +
         " + inner + \")$\"\n\n\n";
}

/// The function that counts what the patterns match: `found` has names with the numbers of their patterns.
constexpr std::string_view count_function = R"py(

def check_counts(patterns, found, whole):
    """Stops unless one pattern matches each name, and each pattern as many as in the plan."""
    counts = [0] * len(patterns)
    for name, matches in found:
        if len(matches) != 1:
            raise ValueError(f"{name}: {len(matches)} patterns match, expected 1")
        counts[matches[0]] += 1
    for pattern, count, planned in zip(patterns, counts, TENSORS):
        if count > planned or (whole and count < planned):
            raise ValueError(f"{pattern}: matches {count} tensors, expected {planned}")
)py";

}  // namespace detail

}  // namespace scalewise
