// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/architecture/extra.hpp"
#include "scalewise/architecture/tensor.hpp"
#include "scalewise/architecture/values.hpp"
#include "scalewise/messages/words.hpp"
#include "scalewise/plan/plan.hpp"
#include "scalewise/scaling/formula.hpp"

namespace scalewise {

namespace detail {

/// Compares a plan with what its shape implies.
class PlanCheck {
 public:
  PlanCheck(const Plan& plan, std::string_view name) : plan_(plan), name_(name) {}

  void run() {
    check_shape("shape", plan_.shape);
    if (plan_.base) check_base();
    std::size_t next = 0;
    architecture::for_each_tensor(plan_.shape, plan_.shape,
                                  [&](const Tensor& tensor) { entry(next++, tensor); });
    for (const Tensor& tensor : architecture::extra_tensors(plan_.extras, plan_.shape))
      entry(next++, tensor);
    end("entries", plan_.entries.size(), next, "no further entry, as the shape implies");
    if (next == 0) fail("extra", "(empty)", "the tensors of the list, as roles.tensors has them");
    residuals();
    number("model.attention_scale", plan_.model.attention_scale.value);
    if (architecture::has_heads(plan_.shape) && plan_.model.attention_scale.scaling.is_zero()) {
      fail("model.attention_scale", "(missing)", "a factor of the scores");
    }
    number("model.embedding_multiplier", plan_.model.embedding_multiplier.value);
    number("model.logit_multiplier", plan_.model.logit_multiplier.value);
    if (plan_.model.code) code(*plan_.model.code);
    symbols("symbols", plan_.symbols, sizes_of(plan_, last_stack(plan_.shape)));
    for (std::size_t i = 0; i < plan_.constants.size(); ++i) {
      path_ = "constants[" + std::to_string(i) + "]";
      number("value", plan_.constants[i].value);
      const bool exempts = plan::is_decay(plan_.constants[i].name) && plan_.constants[i].value == 0;
      if (!exempts && !(plan_.constants[i].value > 0))
        fail("value", text(plan_.constants[i].value), "a positive number");
    }
    for (std::size_t i = 0; i < plan_.parameters.size(); ++i) {
      path_ = "parameters[" + std::to_string(i) + "]";
      number("value", plan_.parameters[i].value);
    }
  }

 private:
  [[noreturn]] void fail(const std::string& field, const std::string& value,
                         const std::string& expectation) const {
    throw InvalidInput(std::string(name_) + "." + (path_.empty() ? "" : path_ + ".") + field, value,
                       expectation);
  }

  static std::string text(bool value) { return value ? "true" : "false"; }
  static std::string text(long value) { return std::to_string(value); }
  static std::string text(double value) { return numeric::number_text(value); }
  static std::string text(std::string_view value) { return messages::printable(value); }

  template <class T>
  void same(const char* field, const T& value, const T& implied) const {
    if (value == implied) return;
    fail(field, text(value), text(implied) + ", as the shape implies");
  }

  void number(const std::string& field, double value) const {
    if (value > -1e308 && value < 1e308) return;
    fail(field, numeric::number_text(value), "a finite number");
  }

  void code(const plan::CodeNumbers& code) const {
    const std::pair<const char*, double> values[] = {
        {"attention_scale", code.attention_scale.value},
        {"embedding_multiplier", code.embedding_multiplier.value},
        {"logit_multiplier", code.logit_multiplier.value},
        {"branch", code.branch.value}};
    for (const auto& [field, value] : values) {
      const std::string path = "model.code." + std::string(field);
      number(path, value);
      if (!(value > 0)) fail(path, numeric::number_text(value), "a positive number");
    }
  }

  void not_negative(const std::string& field, double value) const {
    number(field, value);
    if (value < 0) fail(field, numeric::number_text(value), "0 or more");
  }

  void end(const char* field, std::size_t size, std::size_t implied, const char* expectation) {
    path_.clear();
    if (size > implied) {
      fail(std::string(field) + "[" + std::to_string(implied) + "]", "one more", expectation);
    }
  }

  /// A shape is resolved, and its rule has settled every choice.
  void check_shape(const char* path, const Shape& shape) {
    const Shape whole = resolved(shape);
    path_ = path;
    std::vector<long> sizes;
    architecture::for_each_size(whole, [&](const char*, auto value) { sizes.push_back(value); });
    std::size_t i = 0;
    architecture::for_each_size(
        shape, [&](const char* field, long value) { same(field, value, sizes[i++]); });
    const auto settled = [&](const char* field, const auto& flag) {
      if constexpr (!std::same_as<std::remove_cvref_t<decltype(flag)>, bool>) {
        if (!flag) fail(field, "null", "true or false");
      }
    };
    architecture::for_each_flag(shape, settled);
    path_.clear();
  }

  void check_base() {
    check_shape("base", *plan_.base);
    path_ = "base";
    same("input", word(architecture::input_words, plan_.base->input),
         word(architecture::input_words, plan_.shape.input));
    if ((plan_.base->encoder_depth > 0) != two_stacks()) {
      fail("encoder_depth", text(plan_.base->encoder_depth),
           two_stacks() ? "an encoder, as in shape" : "0, as in shape");
    }
    path_.clear();
  }

  bool two_stacks() const { return plan_.shape.encoder_depth > 0; }

  void entry(std::size_t index, const Tensor& tensor) {
    if (index == plan_.entries.size()) {
      fail("entries[" + std::to_string(index) + "]", "(missing)",
           tensor.name + ", as the shape implies");
    }
    const auto& e = plan_.entries[index];
    path_ = "entries[" + std::to_string(index) + "]";
    same<std::string_view>("name", e.name, tensor.name);
    same("group", to_string(e.group), to_string(tensor.group));
    same("stack", word(architecture::stack_words, e.stack),
         word(architecture::stack_words, tensor.stack));
    same<long>("layer", e.layer, tensor.layer);
    same("rows", e.rows, tensor.rows);
    same("columns", e.columns, tensor.columns);
    if ((e.distribution == Distribution::own) != tensor.own_values) {
      fail("distribution", text(word(policy::distribution_words, e.distribution)),
           tensor.own_values ? "own, as the extra says" : "one that can be drawn from");
    }
    if (tensor.stack != stack_) at_ = sizes_of(plan_, stack_ = tensor.stack);
    same("fan_in", e.fan_in, architecture::evaluate(tensor.fan_in, at_));
    same("fan_out", e.fan_out, architecture::evaluate(tensor.fan_out, at_));
    plan::for_each_number(e, [&]<Kind kind>(const std::string& field, const Number<kind>& planned) {
      if (kind == Kind::mean || kind == Kind::multiplier) {
        number(field + ".value", planned.value);
      } else {
        not_negative(field + ".value", planned.value);
      }
    });
    if (e.where.empty()) return;
    architecture::Values own = at_;
    own.set(symbols::layer, tensor.layer + 1);
    own.set(symbols::fan_total, e.fan_in + e.fan_out);
    symbols(path_ + ".where", e.where, own);
  }

  void residuals() {
    const auto& all = plan_.model.residuals;
    std::size_t index = 0;
    const auto layers = [&](Stack stack, long depth) {
      architecture::Values own = sizes_of(plan_, stack);
      for (long layer = 0; layer < depth; ++layer, ++index) {
        path_ = "model";
        const std::string at = "residuals[" + std::to_string(index) + "]";
        if (index == all.size()) {
          fail(at, "(missing)",
               std::string(word(architecture::stack_words, stack)) + " layer " + text(layer) +
                   ", as the shape implies");
        }
        path_ += "." + at;
        same("stack", word(architecture::stack_words, all[index].stack),
             word(architecture::stack_words, stack));
        same<long>("layer", all[index].layer, layer);
        number("skip.value", all[index].skip.value);
        number("branch.value", all[index].branch.value);
        own.set(symbols::layer, static_cast<double>(layer + 1));
        symbols(path_ + ".where", all[index].where, own);
      }
    };
    if (two_stacks()) layers(Stack::encoder, plan_.shape.encoder_depth);
    layers(two_stacks() ? Stack::decoder : Stack::main, plan_.shape.depth);
    end("model.residuals", all.size(), index, "no further layer, as the shape implies");
  }

  /// Sizes follow from the shapes; the values of a rule's own symbols do not.
  void symbols(const std::string& path, const std::vector<plan::SymbolValue>& all,
               const architecture::Values& at) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      path_ = path + "[" + std::to_string(i) + "]";
      number("value", all[i].value);
      same("value", all[i].value, implied(all[i], at));
    }
    path_.clear();
  }

  /// The value that a symbol must have: its own where the shapes leave it open.
  double implied(const plan::SymbolValue& listed, const architecture::Values& at) const {
    for (const Symbol* symbol : scaling::known_symbols) {
      const double size = at.at(*symbol);
      if (listed.text == symbol->text) return size > 0 ? size : listed.value;
      if (listed.text != symbol->ratio_text) continue;
      if (!plan_.base) fail("symbol", listed.text, "no ratio, as base is null");
      return size > 0 ? at.ratio(*symbol) : listed.value;
    }
    return listed.value;
  }

  const Plan& plan_;
  std::string_view name_;
  std::string path_;
  Stack stack_ = Stack::none;  // of the last tensor
  architecture::Values at_ = sizes_of(plan_, stack_);
};

}  // namespace detail

/// Checks that a plan is one: its shapes are resolved, entries and residuals are exactly those that
/// the shape implies (names, order, groups, stacks, layers, sizes, fans), symbols have the values of
/// the shapes, and numbers are finite and variances, rates, decays and epsilons not negative. What
/// make_plan() returns is one; so is what read_plan() accepts.
/// Formulas, sources and the planned values themselves are the rule's, and not checked.
/// Time:     linear in the number of entries.
/// Throws:   InvalidInput that names the first difference, with `name` before it.
inline void check_plan(const Plan& plan, std::string_view name = "plan") {
  detail::PlanCheck(plan, name).run();
}

namespace plan {

/// The plan itself, after check_plan().
/// Throws:   InvalidInput as check_plan().
inline const Plan& checked(const Plan& plan) {
  check_plan(plan);
  return plan;
}

}  // namespace plan

}  // namespace scalewise
