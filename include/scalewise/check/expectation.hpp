// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

#include "scalewise/check/prediction.hpp"
#include "scalewise/check/quantity.hpp"

namespace scalewise::check {

/// How exact a predicted slope is at finite sizes.
enum class Regime {
  exact,  // at every size: parameters before training, and what an optimizer makes of the plan's rate
  mean,   // at every size on average over initializations: what products with fresh matrices give
  first,  // to first order: before training, and what the first step changes
  later,  // after more steps, where trajectories of different sizes part
};

inline constexpr messages::Spelling<Regime, 4> regime_words{{{Regime::exact, "exact"},
                                                             {Regime::mean, "mean"},
                                                             {Regime::first, "first"},
                                                             {Regime::later, "later"}}};

/// The measure of a tensor's entries that is judged.
enum class Measure {
  rms,           // their root mean square
  entry,         // the size of those that are not zero, such as the steps of normalized gradients
  per_gradient,  // their root mean square over that of the gradient they come from
  per_logits,    // over that of the gradient of the logits
};

/// The rule's prediction for a quantity at a step.
struct Expectation {
  Band band;
  Regime regime = Regime::first;
  Measure measure = Measure::rms;
};

/// The tensor or observable that a recorded name stands for.
struct Subject {
  std::string place;
  std::optional<Group> group;  // of a tensor of the plan
  bool extra = false;          // the shape does not say where its gradient comes from
};

/// The entry of a tensor by its name, with or without its layer; null where the plan has none.
inline const Entry* entry_of(const Plan& plan, const std::string& name) {
  for (const Entry& entry : plan.entries) {
    if (entry.name == name || place_of(plan.shape, entry.name) == name) return &entry;
  }
  return nullptr;
}

namespace detail {

inline std::optional<Expectation> activation_expected(const Prediction& prediction,
                                                      const std::string& place, Signal signal,
                                                      long step) {
  if (!prediction.has_limit()) return {};
  const bool later = prediction.has_later_steps();
  if (signal == Signal::value) {
    if (step > 0 && !later) return {};
    const std::optional<Band> band = prediction.value(place, step);
    if (!band) return {};
    if (step > 0) return Expectation{*band, Regime::later};
    return Expectation{*band, prediction.starts_exactly(place) ? Regime::mean : Regime::first};
  }
  const std::optional<Band> band = prediction.change(place, step);
  if (!band || step == 0) return {};
  const bool first = band->is_zero() || prediction.change(place, step - 1) == Band::zero();
  if (!first && !later) return {};
  const bool near_limit = first && prediction.has_first_changes();
  return Expectation{prediction.shown(*band), near_limit ? Regime::first : Regime::later};
}

/// Whether a matrix that an optimizer normalizes as a whole is almost square in the smallest model, and less so in larger
/// ones. Square gradients have small singular values, which a few steps of Newton and Schulz do not bring to 1.
/// Measured: keys of one head of 8 at widths 8, 16, 32 and 64 under Muon: 0.73, 0.95, 1.00 and 1.00 of 8 singular values
inline bool begins_square(const GroupExponents& tensor) {
  return tensor.normalization == policy::Normalization::by_matrix &&
         tensor.fan_in != tensor.fan_out && tensor.aspect < 2;
}

/// The gradient of a gain before the head. Logits that it makes larger are part of it in all tokens alike, which
/// outweighs the sum of what tokens ask for where logits begin large.
/// Equation: Σ_t (W^T δ_t)_i x_ti is σ_w √T of unaligned terms, and σ_w² T of W in the logits: their ratio has the power of the
///           logits but for the sum over n entries, 1/2
/// Units:    exponents of the width
inline Band with_own_logits(const Band& gradient, const std::optional<Band>& logits) {
  if (!logits || logits->is_zero() || gradient.is_zero()) return gradient;
  return {gradient.low + (std::min)(0.0, logits->low - 0.5),
          gradient.high + (std::max)(0.0, logits->high - 0.5)};
}

/// A first step of descent is the rate times the gradient; with momentum, later ones have older gradients too.
constexpr Regime descent_regime(bool first) { return first ? Regime::exact : Regime::later; }

inline std::optional<Expectation> tensor_expected(const Prediction& prediction,
                                                  const std::string& place, Group group,
                                                  Signal signal, long step) {
  if (signal == Signal::parameter) {
    if (step > 0 || prediction.tensor(place)->own_values) return {};
    return Expectation{prediction.parameter(place, group), Regime::exact};
  }
  if (signal == Signal::gradient) {
    if (!prediction.has_limit()) return {};
    const std::optional<Band> band = prediction.gradient(group, step);
    // Once there was a gradient, later ones are the trajectory's and not the rule's.
    if (!band || (step > 0 && prediction.gradient(group, step - 1) != Band::zero())) return {};
    // Gradients of gains and biases are sums over tokens, which are alike by an unknown degree; those of a router are
    // products of what experts give and what is asked for.
    const bool near_limit = architecture::is_matrix(group) && group != Group::router &&
                            prediction.has_first_gradients();
    const bool last = group == Group::final_norm_gain && prediction.along_width();
    return Expectation{last ? with_own_logits(*band, prediction.value("logits", 0)) : *band,
                       near_limit ? Regime::first : Regime::later,
                       prediction.per_logits() ? Measure::per_logits : Measure::rms};
  }
  const Band band = prediction.update(group, step);
  if (band.is_zero()) return Expectation{band, Regime::exact};
  const GroupExponents& tensor = *prediction.tensor(place);
  const bool first = step == 1 || prediction.update(group, step - 1).is_zero();
  if (tensor.normalization == policy::Normalization::none) {
    return Expectation{tensor.rate, descent_regime(first), Measure::per_gradient};
  }
  const Band own = prediction.normalized_update(place);  // the group's may be of several tensors
  const bool exact = step == 1 && !begins_square(tensor);
  if (step > 1 && !prediction.has_limit()) return {};
  if (!first && !prediction.has_later_steps()) return {};
  if (!first) return Expectation{own, Regime::later};
  // Averages of gradients begin at step 1; what moves later is exact except for their epsilon.
  return Expectation{
      own, exact ? Regime::exact : Regime::first,
      tensor.normalization == policy::Normalization::by_entry ? Measure::entry : Measure::rms};
}

/// Where the gradient of a tensor comes from that the shape does not describe is not known, but a normalized one makes a
/// first step of the size of the rate.
inline std::optional<Expectation> extra_expected(const Prediction& prediction,
                                                 const std::string& place, Signal signal,
                                                 long step) {
  const GroupExponents* tensor = prediction.tensor(place);
  const bool known = tensor != nullptr && tensor->present && signal == Signal::update &&
                     step == 1 && tensor->normalization == policy::Normalization::by_entry;
  if (!known) return {};
  return Expectation{prediction.normalized_update(place), Regime::exact, Measure::entry};
}

/// An activation of a listed model has the name of a tensor of the module that gives it.
inline std::optional<Expectation> role_activation(const Prediction& prediction,
                                                  const std::string& place, Signal signal,
                                                  long step) {
  const RoleSlopes& roles = *prediction.roles();
  const bool first_value = signal == Signal::value && step == 0;
  const bool changed = signal == Signal::change && step > 0;
  if (!prediction.has_limit() || !(first_value || changed)) return {};
  if (place == architecture::observable("logits")) {
    return Expectation{first_value ? roles.logits.start : roles.logits.change, Regime::later};
  }
  const GroupExponents* tensor = prediction.tensor(place);
  // A multiplier may be applied after the module.
  if (tensor == nullptr || !tensor->present || tensor->multiplier != Band(0)) return {};
  const bool matrix = architecture::is_matrix(tensor->group);
  if (tensor->fan_out == 0) {
    if (!matrix || first_value) return {};
    return Expectation{prediction.output_of(*tensor).change, Regime::later};
  }
  const Regime regime = first_value ? Regime::first : Regime::later;
  if (roles.learns_features()) return Expectation{Band(0), regime};
  if (!matrix) return Expectation{first_value ? Band(0) : mixture(0, roles.change), regime};
  const Moving output = prediction.output_of(*tensor);
  return Expectation{first_value ? output.start : output.change, regime};
}

/// Gradients before the first step: of the head by the logits, of tensors that grow by the activations.
inline std::optional<Expectation> role_gradient(const Prediction& prediction,
                                                const std::string& place,
                                                const GroupExponents& tensor, long step) {
  const bool head = place == prediction.head();
  if (!prediction.has_limit() || step > 0 || (tensor.fan_out == 0) != head) return {};
  const Band from = head ? Band(0) : prediction.roles()->gradient;
  Expectation found{tensor.multiplier + from, Regime::later};
  if (architecture::is_norm_gain(tensor.group))  // of which one is before the head
    found.band = with_own_logits(found.band, prediction.roles()->logits.start);
  if (prediction.per_logits()) found.measure = Measure::per_logits;
  return found;
}

/// A quantity of a listed model.
inline std::optional<Expectation> role_expected(const Prediction& prediction,
                                                const std::string& place, Signal signal,
                                                long step) {
  if (is_activation(signal)) return role_activation(prediction, place, signal, step);
  const GroupExponents* tensor = prediction.tensor(place);
  if (tensor == nullptr || !tensor->present) return {};
  if (signal == Signal::gradient) return role_gradient(prediction, place, *tensor, step);
  if (signal == Signal::parameter) {
    if (step > 0 || tensor->own_values) return {};
    return Expectation{prediction.parameter(place, tensor->group), Regime::exact};
  }
  if (tensor->normalization == policy::Normalization::none) {
    return Expectation{tensor->rate, descent_regime(step == 1), Measure::per_gradient};
  }
  const bool by_entry = tensor->normalization == policy::Normalization::by_entry;
  return Expectation{prediction.normalized_update(place),
                     by_entry && step == 1 ? Regime::exact : Regime::later,
                     by_entry && step == 1 ? Measure::entry : Measure::rms};
}

}  // namespace detail

inline Subject subject_of(const Plan& plan, const Quantity& quantity) {
  Subject subject{place_of(plan.shape, quantity.name), {}};
  if (is_activation(quantity.signal)) return subject;
  if (const Entry* entry = entry_of(plan, quantity.name)) {
    subject.group = entry->group;
    subject.extra = plan::is_extra(plan, *entry);
  }
  return subject;
}

/// The prediction for a quantity; none for what is not predicted. The gradient of a key's bias is zero
/// up to rounding, since it cancels in the softmax, and is passed over; so are gradients, and all but the first
/// update, of tensors that the shape does not describe.
inline std::optional<Expectation> expected(const Prediction& prediction, const Subject& subject,
                                           Signal signal, long step) {
  const auto& [place, group, extra] = subject;
  if (prediction.roles() != nullptr) return detail::role_expected(prediction, place, signal, step);
  if (is_activation(signal)) return detail::activation_expected(prediction, place, signal, step);
  if (extra && signal != Signal::parameter)
    return detail::extra_expected(prediction, place, signal, step);
  if (!group || prediction.tensor(place) == nullptr) return {};
  if (place.ends_with("key_bias") && signal != Signal::parameter) return {};
  if (detail::is_inner_norm(place) && signal == Signal::gradient)
    return {};  // its group is that of blocks
  return detail::tensor_expected(prediction, place, *group, signal, step);
}

}  // namespace scalewise::check
