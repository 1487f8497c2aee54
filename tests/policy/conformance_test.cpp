// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// What holds for every rule, on every kind of model.

#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/registry.hpp"
#include "support/catch.hpp"

namespace {

using namespace scalewise;

constexpr Optimizer sgd = Optimizer::sgd;
constexpr Optimizer adamw = Optimizer::adamw;

struct Variant {
  std::string name;
  Shape shape;
};

Shape tokens() {
  Shape s;
  s.d_model = 24;
  s.depth = 3;
  s.heads = 6;
  s.context = 7;
  s.vocab = 11;
  s.iterations = 100;
  return s;
}

Shape patches() {
  Shape s = tokens();
  s.input = Input::patch;
  s.patch_dim = 10;
  s.classes = 5;
  return s;
}

/// Changes one thing at a time, then several.
std::vector<Variant> variants() {
  std::vector<Variant> all;
  const auto add = [&](const std::string& name, Shape shape, auto&& change) {
    change(shape);
    all.push_back({name, shape});
  };
  add("token", tokens(), [](Shape&) {});
  add("tied", tokens(), [](Shape& s) { s.tied_head = true; });
  add("untied", tokens(), [](Shape& s) { s.tied_head = false; });
  add("head bias", tokens(), [](Shape& s) { s.head_bias = true; });
  add("gated", tokens(), [](Shape& s) { s.gated_mlp = true; });
  add("grouped queries", tokens(), [](Shape& s) { s.kv_heads = 2; });
  add("wide heads", tokens(), [](Shape& s) { s.head_dim = 9; });
  add("narrow mlp", tokens(), [](Shape& s) { s.d_ff = 31; });
  add("no bias", tokens(), [](Shape& s) { s.biases = false; });
  add("no norm bias", tokens(), [](Shape& s) { s.norm_bias = false; });
  add("no norm gain", tokens(), [](Shape& s) { s.norm_gain = s.norm_bias = false; });
  add("no final norm", tokens(), [](Shape& s) { s.final_norm = false; });
  add("segments", tokens(), [](Shape& s) { s.segments = 2; });
  add("embedding norm", tokens(), [](Shape& s) { s.embedding_norm = true; });
  add("no positions", tokens(), [](Shape& s) { s.learned_positions = false, s.context = 0; });
  add("relative positions", tokens(), [](Shape& s) { s.relative_buckets = 4; });
  add("channel gains", tokens(), [](Shape& s) { s.residual_gain = ResidualGain::channel; });
  add("scalar gains", tokens(), [](Shape& s) { s.residual_gain = ResidualGain::scalar; });
  add("encoder-decoder", tokens(), [](Shape& s) { s.encoder_depth = 4; });
  add("all at once", tokens(), [](Shape& s) {
    s.encoder_depth = 4, s.kv_heads = 3, s.head_dim = 5, s.d_ff = 37, s.segments = 3;
    s.gated_mlp = s.embedding_norm = true, s.tied_head = true, s.head_bias = true;
    s.relative_buckets = 4;
  });
  add("patch", patches(), [](Shape&) {});
  add("class token", patches(), [](Shape& s) { s.class_token = true; });
  add("patch, plain head", patches(), [](Shape& s) { s.head_bias = false; });
  add("patch, gated, no bias", patches(), [](Shape& s) { s.gated_mlp = true, s.biases = false; });
  return all;
}

/// A plan, or nothing when the rule is not defined for this input or for an encoder with a decoder.
template <class P>
std::optional<Plan> planned(const Shape& shape, const P& policy = {}) {
  try {
    return make_plan<P, adamw>(shape, shape, policy);
  } catch (const InvalidInput& error) {
    INFO(error.what());
    CHECK((error.field() == "input" || error.field() == "encoder_depth"));
    return {};
  }
}

/// Calls visit(policy) for every shipped rule and for the other forms of those that have several.
template <class Visitor>
void for_each_form(Visitor&& visit) {
  for_each_policy([&]<class P>() { visit(P{}); });
  visit(MaximalUpdateTable3{});
  visit(MaximalUpdateTable8{});
  visit(MaximalUpdateTable9{});
  visit(MaximalUpdate{.table = 3, .zero_head = true});
  visit(MaximalUpdate{.table = 9, .zero_query = true});
  visit(CompleteP{.alpha = 0.6});
  visit(MetaPrincipled{.s = 1});
  visit(NuGpt{.alignment = 1, .input_rate = 2, .output_rate = 0.5});
  visit(DeepScaleLM{.dropout = 0, .embedding_tables = 2, .k = 1.5});
  visit(ShallowNtk{.tau0 = 1});
}

struct Counted {
  long tensors = 0;
  long parameters = 0;
};

/// How many tensors and parameters of each group a model has, counted by hand.
std::map<Group, Counted> inventory(const Shape& s) {
  std::map<Group, Counted> all;
  const auto add = [&](Group group, long tensors, long parameters) {
    if (tensors > 0) all[group] = {tensors, tensors * parameters};
  };
  const long d = s.d_model;
  const long outputs = s.input == Input::token ? s.vocab : s.classes;
  if (s.blocks == Blocks::shallow_encoder) {
    for (const Group g : {Group::query, Group::key, Group::value}) add(g, 1, s.patch_dim * d);
    add(Group::head, 1, d);
    return all;
  }
  const bool both = s.encoder_depth > 0;
  const long stacks = both ? 2 : 1;
  const long layers = s.depth + s.encoder_depth;
  const long attentions = layers + (both ? s.depth : 0);  // the decoder's cross attention
  const long q = s.heads * s.head_dim;
  const long kv = s.kv_heads * s.head_dim;
  const bool norms = s.blocks == Blocks::residual;

  if (s.input == Input::token) {
    add(Group::token_embedding, 1, s.vocab * d);
  } else {
    add(Group::patch_embedding, 1, s.patch_dim * d);
    add(Group::patch_bias, s.biases ? 1 : 0, d);
    add(Group::class_token, s.class_token ? 1 : 0, d);
  }
  add(Group::position_embedding, s.learned_positions ? stacks : 0, s.context * d);
  add(Group::segment_embedding, s.segments > 0 ? 1 : 0, s.segments * d);
  add(Group::embedding_norm_gain, norms && s.embedding_norm && s.norm_gain ? stacks : 0, d);
  add(Group::embedding_norm_bias, norms && s.embedding_norm && s.norm_bias ? stacks : 0, d);

  add(Group::query, attentions, d * q);
  add(Group::key, attentions, d * kv);
  add(Group::value, attentions, d * kv);
  add(Group::attention_output, attentions, q * d);
  add(Group::mlp_up, layers, d * s.d_ff);
  add(Group::mlp_gate, s.gated_mlp ? layers : 0, d * s.d_ff);
  add(Group::mlp_down, layers, s.d_ff * d);
  add(Group::norm_gain, norms && s.norm_gain ? attentions + layers : 0, d);
  add(Group::norm_bias, norms && s.norm_bias ? attentions + layers : 0, d);
  if (s.biases) {
    const long gates = s.gated_mlp ? 1 : 0;
    all[Group::hidden_bias] = {attentions * 4 + layers * (2 + gates),
                               attentions * (q + 2 * kv + d) + layers * (s.d_ff * (1 + gates) + d)};
  }
  add(Group::relative_position, s.relative_buckets > 0 ? stacks : 0, s.relative_buckets * s.heads);
  add(Group::residual_gain, s.residual_gain == ResidualGain::none ? 0 : attentions + layers,
      s.residual_gain == ResidualGain::channel ? d : 1);

  add(Group::final_norm_gain, norms && s.final_norm && s.norm_gain ? stacks : 0, d);
  add(Group::final_norm_bias, norms && s.final_norm && s.norm_bias ? stacks : 0, d);
  add(Group::head, *s.tied_head ? 0 : 1, d * outputs);
  add(Group::head_bias, *s.head_bias ? 1 : 0, outputs);
  if (s.blocks == Blocks::normalized) {
    add(Group::attention_step, attentions, d);
    add(Group::mlp_step, layers, d);
    add(Group::qk_scale, attentions, q);
    add(Group::up_scale, layers, s.d_ff);
    add(Group::gate_scale, layers, s.d_ff);
    add(Group::logit_scale, 1, outputs);
  }
  return all;
}

bool is_matrix(Group group) {
  const Role role = role_of(group);
  return role == Role::input || role == Role::hidden || role == Role::output;
}

/// What is wrong with the numbers of an entry; empty when nothing is.
std::string problem(const Entry& e) {
  const auto finite = [](const auto&... numbers) { return (std::isfinite(numbers.value) && ...); };
  if (!finite(e.init_variance, e.init_mean, e.multiplier, e.learning_rate, e.weight_decay,
              e.epsilon)) {
    return "not finite";
  }
  if (!(e.init_variance.value >= 0)) return "variance below zero";
  if (!(e.learning_rate.value > 0)) return "rate not positive";
  if (!(e.weight_decay.value >= 0)) return "decay below zero";
  if (!(e.epsilon.value > 0)) return "epsilon not positive";
  if (e.multiplier.value == 0) return "multiplier zero";
  if (!(e.fan_in > 0 && e.fan_out > 0)) return "fan not positive";
  if (e.rows <= 0 || e.columns <= 0) return "no entries";
  if (is_matrix(e.group) && e.source.empty()) return "no source";
  if (e.distribution == Distribution::constant && e.init_variance.value != 0) {
    return "constant with a variance";
  }
  if (is_norm_gain(e.group) && std::abs(e.init_mean.value * e.multiplier.value - 1) > 1e-14) {
    return "a norm gain that does not act as one";
  }
  if (e.init_variance.formula.empty() || e.learning_rate.formula.empty() ||
      e.learning_rate.latex.empty()) {
    return "no formula";
  }
  return {};
}

/// The same for numbers that must leave a base model as it is.
std::string problem_at_base(const Entry& e) {
  if (e.learning_rate.value != 1) return "rate";
  if (e.epsilon.value != 1) return "epsilon";
  if (e.multiplier.value != 1) return "multiplier";
  if (e.init_variance.value != 0 && e.init_variance.value != 1) return "variance";
  if (e.weight_decay.value != 0 && e.weight_decay.value != 1) return "decay";
  if (e.init_mean.value != 0 && e.init_mean.value != 1) return "mean";
  return {};
}

template <class P>
constexpr bool accepts(Optimizer optimizer) {
  if constexpr (requires { P::supports(optimizer); }) return P::supports(optimizer);
  return true;
}

/// The rules that say something only about target over base.
const std::set<std::string_view> relative_rules{"maximal-update",   "depth-mup",       "complete-p",
                                                "ngpt-depth-mup",   "ngpt-complete-p", "nu-gpt",
                                                "nu-gpt-full-align"};
/// Those that are published for AdamW alone.
const std::set<std::string_view> adamw_rules{"depth-mup",      "complete-p", "ngpt",
                                             "ngpt-depth-mup", "nu-gpt",     "nu-gpt-full-align",
                                             "ngpt-complete-p"};

}  // namespace

TEST_CASE("every tensor of every model has exactly one entry") {
  for_each_form([]<class P>(const P& policy) {
    int plans = 0;
    for (const Variant& variant : variants()) {
      const std::optional<Plan> plan = planned(variant.shape, policy);
      if (!plan) continue;
      ++plans;
      INFO(P::id << ", " << variant.name);
      std::set<std::string> names;
      std::map<Group, Counted> found;
      for (const Entry& entry : plan->entries) {
        names.insert(entry.name);
        found[entry.group].tensors += 1;
        found[entry.group].parameters += entry.rows * entry.columns;
      }
      CHECK(names.size() == plan->entries.size());  // names are unique
      const std::map<Group, Counted> expected = inventory(plan->shape);
      for (const auto& [group, count] : expected) {
        INFO(to_string(group));
        CHECK(found[group].tensors == count.tensors);
        CHECK(found[group].parameters == count.parameters);
      }
      CHECK(found.size() == expected.size());  // no group that the model lacks
      long total = 0;
      for (const auto& [group, count] : expected) total += count.parameters;
      CHECK(plan->parameter_count() == total);
    }
    INFO(P::id);
    CHECK(plans >= 3);
  });
}

TEST_CASE("numbers are finite, variances not negative, rates positive") {
  for_each_form([]<class P>(const P& policy) {
    for (const Variant& variant : variants()) {
      const std::optional<Plan> plan = planned(variant.shape, policy);
      if (!plan) continue;
      INFO(P::id << ", " << variant.name);
      for (const Entry& entry : plan->entries) {
        const std::string wrong = problem(entry);
        INFO(entry.name);
        if (!wrong.empty()) CHECK(wrong == "");
      }
      const Model& model = plan->model;
      CHECK((std::isfinite(model.attention_scale.value) && model.attention_scale.value > 0));
      CHECK((std::isfinite(model.logit_multiplier.value) && model.logit_multiplier.value > 0));
      CHECK((std::isfinite(model.embedding_multiplier.value) &&
             model.embedding_multiplier.value > 0));
      const Shape& shape = plan->shape;
      CHECK(model.residuals.size() == static_cast<std::size_t>(shape.depth + shape.encoder_depth));
      for (const Residual& residual : model.residuals) {
        CHECK((residual.skip.value > 0 && residual.skip.value < 100));
        CHECK((residual.branch.value > 0 && residual.branch.value <= 1));
      }
    }
  });
}

TEST_CASE("entries say where they sit") {
  for_each_form([]<class P>(const P& policy) {
    Shape shape = tokens();
    shape.encoder_depth = 4;
    const std::optional<Plan> plan = planned(shape, policy);
    if (!plan) return;
    INFO(P::id);
    for (const Entry& entry : plan->entries) {
      INFO(entry.name);
      const bool encoder = entry.name.starts_with("encoder.");
      const bool decoder = entry.name.starts_with("decoder.");
      const bool outside = entry.stack == Stack::none;
      CHECK((encoder || decoder || outside));
      if (!outside) CHECK((entry.stack == Stack::encoder) == encoder);
      if (entry.layer >= 0) CHECK(entry.layer < (encoder ? 4 : 3));
      if (role_of(entry.group) == Role::hidden) CHECK(entry.layer >= 0);
    }
  });
}

TEST_CASE("a plan is a function of its input") {
  for_each_form([]<class P>(const P& policy) {
    for (const Variant& variant : variants()) {
      const std::optional<Plan> plan = planned(variant.shape, policy);
      if (!plan) continue;
      INFO(P::id << ", " << variant.name);
      const P copy = policy;
      CHECK(*plan == *planned(variant.shape, copy));
      CHECK(plan->rule == P::id);
    }
  });
}

TEST_CASE("a rule named at run time gives the same plan") {
  for_each_policy([]<class P>() {
    for (const Variant& variant : variants()) {
      const std::optional<Plan> plan = planned<P>(variant.shape);
      if (!plan) continue;
      INFO(P::id << ", " << variant.name);
      CHECK(*plan == make_plan(P::id, adamw, variant.shape, variant.shape));
    }
  });
}

TEST_CASE("a base model is left exactly as it is") {
  int checked = 0;
  for_each_form([&]<class P>(const P& policy) {
    if (P::reference != Reference::base && !relative_rules.contains(P::id)) return;
    for (const Variant& variant : variants()) {
      const std::optional<Plan> plan = planned(variant.shape, policy);
      if (!plan) continue;
      ++checked;
      INFO(P::id << ", " << variant.name);
      for (const Entry& entry : plan->entries) {
        INFO(entry.name);
        const bool tuned = !plan->parameters.empty() && P::id == std::string_view("nu-gpt");
        if (P::reference == Reference::base) {
          CHECK(problem_at_base(entry) == "");
        } else if (!tuned) {
          CHECK(entry.learning_rate.value == 1);
        }
      }
      if (P::reference == Reference::base) {
        CHECK(plan->model.logit_multiplier.value == 1);
        CHECK(plan->model.embedding_multiplier.value == 1);
        for (const Residual& residual : plan->model.residuals) {
          CHECK(residual.skip.value == 1);
          CHECK(residual.branch.value == 1);
        }
      }
    }
  });
  CHECK(checked > 100);
  // The scores of a base model are scaled as usual, whatever the rule.
  const double usual = 1 / std::sqrt(4.0);
  CHECK(make_plan<MaximalUpdate, adamw>(tokens(), tokens()).model.attention_scale.value == usual);
  CHECK(make_plan<CompleteP, adamw>(tokens(), tokens()).model.attention_scale.value == usual);
  const Plan nu = make_plan<NuGpt, adamw>(tokens(), tokens());
  for (const Entry& entry : nu.entries) CHECK(entry.learning_rate.value == 1);
}

TEST_CASE("an absolute rule ignores the base, a relative one asks for it") {
  Shape base = tokens();
  base.d_model = 12;
  base.depth = 4;
  Shape patch_base = patches();
  patch_base.d_model = 12;
  for_each_policy([&]<class P>() {
    INFO(P::id);
    const bool shallow = std::string_view(P::id).starts_with("shallow");
    const Shape target = shallow ? patches() : tokens();
    if (relative_rules.contains(P::id)) {
      try {
        make_plan<P, adamw>(target);
        FAIL_CHECK("planned without a base");
      } catch (const InvalidInput& error) {
        CHECK(error.field() == "base");
        CHECK(std::string(error.what()).find("base") != std::string::npos);
      }
      CHECK(make_plan<P, adamw>(target, base) != make_plan<P, adamw>(target, target));
    } else {
      const Plan without = make_plan<P, adamw>(target);
      Plan with = make_plan<P, adamw>(target, shallow ? patch_base : base);
      CHECK(with.entries == without.entries);
      CHECK(with.model == without.model);
    }
    CHECK((P::reference == Reference::base) ==
          (P::id == std::string_view("maximal-update") || P::id == std::string_view("depth-mup") ||
           P::id == std::string_view("complete-p")));
  });
}

TEST_CASE("SGD is refused by rules that are published for AdamW") {
  for_each_policy([]<class P>() {
    INFO(P::id);
    const Shape shape = std::string_view(P::id).starts_with("shallow") ? patches() : tokens();
    CHECK(accepts<P>(adamw));
    CHECK(accepts<P>(sgd) != adamw_rules.contains(P::id));
    if (adamw_rules.contains(P::id)) {
      try {
        make_plan<P, sgd>(shape, shape);
        FAIL_CHECK("planned for SGD");
      } catch (const InvalidInput& error) {
        CHECK(error.field() == "optimizer");
      }
    } else {
      const Plan plan = make_plan<P, sgd>(shape, shape);
      CHECK(plan.optimizer == sgd);
      for (const Entry& entry : plan.entries) {
        INFO(entry.name);
        const std::string wrong = problem(entry);
        if (!wrong.empty()) CHECK(wrong == "");
      }
    }
  });
}

TEST_CASE("a penalty in Adam's gradient is refused where rates are scaled") {
  const DecayForm l2 = DecayForm::l2;
  Shape base = tokens();
  base.d_model = 12;
  for (const int table : {3, 8, 9}) {
    INFO(table);
    const MaximalUpdate policy{.table = table};
    CHECK_THROWS_AS((make_plan<MaximalUpdate, adamw>(tokens(), base, policy, l2)), InvalidInput);
    const Plan accepted = make_plan<MaximalUpdate, sgd>(tokens(), base, policy, l2);
    const Plan coupled = make_plan<MaximalUpdate, sgd>(tokens(), base, policy);
    CHECK(accepted.entries == coupled.entries);  // under SGD they are the same
  }
  CHECK_THROWS_AS((make_plan<NeuralTangent, adamw>(tokens(), {}, {}, l2)), InvalidInput);
  CHECK_THROWS_AS((make_plan<CompleteP, adamw>(tokens(), base, {}, l2)), InvalidInput);
  CHECK(make_plan<Standard, adamw>(tokens(), {}, {}, l2).at("head").weight_decay.value == 1);
  CHECK(make_plan<Gpt2, adamw>(tokens(), {}, {}, l2).at("final_norm_gain").weight_decay.value == 0);
}

TEST_CASE("shrink per step is the same in both forms of decay") {
  Shape base = tokens();
  base.d_model = 12;
  base.depth = 2;
  for_each_policy([&]<class P>() {
    const bool shallow = std::string_view(P::id).starts_with("shallow");
    const Shape target = shallow ? patches() : tokens();
    std::optional<Shape> from;
    if (!shallow) from = base;
    // An absolute rule is evaluated at the target, so that a base too shallow for it is no matter.
    if (!relative_rules.contains(P::id)) from = {};
    const Plan coupled = make_plan<P, adamw>(target, from);
    const Plan independent = make_plan<P, adamw>(target, from, {}, DecayForm::independent);
    REQUIRE(coupled.entries.size() == independent.entries.size());
    for (std::size_t i = 0; i < coupled.entries.size(); ++i) {
      const Entry& entry = coupled.entries[i];
      INFO(P::id << ", " << entry.name);
      const double shrink = entry.learning_rate.value * entry.weight_decay.value;
      CHECK(std::abs(independent.entries[i].weight_decay.value - shrink) <= 1e-14 * shrink);
    }
  });
}
