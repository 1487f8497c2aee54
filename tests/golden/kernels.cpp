// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// kernels.json: kernels of infinite width, layer by layer and of whole transformers, each to the
// tolerance that the file states for it. Matrices are stacked over all tokens of all inputs.

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "golden/files.hpp"
#include "scalewise/architecture/presets.hpp"
#include "scalewise/kernels/effective_theory.hpp"
#include "scalewise/kernels/regression.hpp"
#include "scalewise/kernels/stacked_kernel.hpp"
#include "scalewise/plan/make_plan.hpp"
#include "scalewise/policy/meta_principled.hpp"

namespace scalewise::golden {

namespace {

using namespace kernels;
using json = nlohmann::ordered_json;

Matrix<> matrix(const json& rows) {
  Matrix<> m(static_cast<Index>(rows.size()), static_cast<Index>(rows.at(0).size()));
  for (Index a = 0; a < m.rows(); ++a) {
    for (Index b = 0; b < m.cols(); ++b) {
      m(a, b) = rows[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)].get<double>();
    }
  }
  return m;
}

double number(const json& object, const char* key, double otherwise = 0) {
  return object.value(key, otherwise);
}

/// One case, with the tolerance that it names.
class Case {
 public:
  Case(const io::JsonReader& reader, const json& all, const json& tolerances, Tally& tally)
      : params(all.at("params")),
        inputs(all.at("inputs")),
        expect(all.at("expect")),
        group(all.at("group").get<std::string>()),
        reader_(reader),
        tolerance_(tolerances.at(all.at("tol").get<std::string>())),
        closed_(tolerances.at("closed")),
        tally_(tally) {}

  const json& params;
  const json& inputs;
  const json& expect;
  std::string group;

  void compare(const json& in, const std::string& key, double actual) const {
    compare(in.at(key), reader_.at("expect").path() + "." + key, actual, false, 0);
  }

  /// A matrix of expected numbers; coincident(a, b) where the tolerance may be that of two tokens
  /// that coincide.
  void compare(const json& in, const std::string& key, const Matrix<>& actual,
               const Matrix<>* nngp = nullptr) const {
    const std::string path = reader_.at("expect").path() + "." + key;
    const Matrix<> expected = matrix(in.at(key));
    if (expected.rows() != actual.rows() || expected.cols() != actual.cols()) {
      return tally_.complain(path, "is of another size");
    }
    const json* errors =
        expect.contains(key + "_standard_error") ? &expect.at(key + "_standard_error") : nullptr;
    for (Index a = 0; a < actual.rows(); ++a) {
      for (Index b = 0; b < actual.cols(); ++b) {
        const auto i = static_cast<std::size_t>(a);
        const auto j = static_cast<std::size_t>(b);
        const bool coincide = nngp != nullptr && (*nngp)(a, b) * (*nngp)(a, b) >=
                                                     (*nngp)(a, a) * (*nngp)(b, b) * (1 - 1e-12);
        compare(in.at(key)[i][j], path + "[" + std::to_string(a) + "][" + std::to_string(b) + "]",
                actual(a, b), coincide, errors != nullptr ? 5 * (*errors)[i][j].get<double>() : 0);
      }
    }
  }

  /// A kernel by its two matrices.
  void compare(const json& in, const Kernel& actual, const std::string& nngp = "nngp",
               const std::string& ntk = "ntk") const {
    compare(in, nngp, actual.nngp);
    compare(in, ntk, actual.ntk, &actual.nngp);
  }

  void complain(const std::string& what) const { tally_.complain(reader_.path(), what); }

 private:
  void compare(const json& expected, const std::string& path, double actual, bool coincide,
               double error) const {
    // An estimate's own entries have errors, other entries of its case are closed forms.
    const json& tolerance = error == 0 && tolerance_.at("atol").is_null() ? closed_ : tolerance_;
    double absolute = error > 0 ? error : tolerance.at("atol").get<double>();
    if (coincide) absolute = std::max(absolute, number(tolerance, "ntk_coincident_atol"));
    const double relative = expected.get<double>() == 0 ? 0 : number(tolerance, "rtol");
    tally_.compare(io::JsonReader(expected, path), actual, relative, absolute);
  }

  const io::JsonReader& reader_;
  const json& tolerance_;
  const json& closed_;
  Tally& tally_;
};

Function function(const std::string& name) {
  static const std::map<std::string, Function> functions{
      {"none", Function::identity}, {"identity", Function::identity}, {"relu", Function::relu},
      {"abs", Function::abs},       {"erf", Function::erf},           {"gelu", Function::gelu}};
  const auto found = functions.find(name);
  if (found == functions.end()) throw InvalidInput("activation", name, "a known one");
  return found->second;
}

Tokens tokens(const json& lengths) { return Tokens(lengths.get<std::vector<Index>>()); }

std::vector<Matrix<>> features(const json& x) {
  std::vector<Matrix<>> inputs;
  for (const json& one : x) inputs.push_back(matrix(one));
  return inputs;
}

Dense dense(const json& params) {
  return {number(params, "sigma_w", 1), number(params, "sigma_b")};
}

Encodings encodings(const json& params, const std::string& kind) {
  using enum Encodings::Geometry;
  using enum Encodings::Trained;
  Encodings e;
  e.geometry = kind == "none" ? none : kind == "random" ? random : string;
  e.alpha = number(params, "alpha", 1);
  e.rho = number(params, "rho", 1);
  e.phi = number(params, "phi");
  e.in_values = params.value("value_pe", true);
  e.trained = params.value("encodings_trained", true) ? through_root : nothing;
  return e;
}

SelfAttention attention(const json& params) {
  using enum SelfAttention::ScoreScale;
  using enum SelfAttention::WeightFunction;
  static const std::map<std::string, SelfAttention::WeightFunction> weights{
      {"softmax", softmax}, {"identity", identity}, {"relu", relu}, {"abs", abs}};
  SelfAttention layer;
  const bool tied = params.value("tied", true);
  layer.scores = number(params, "tau") == 1 ? (tied ? tied_over_d : over_d) : over_root_d;
  layer.weights = weights.at(params.at("zeta").get<std::string>());
  layer.causal = params.value("causal", false);
  layer.sigma_q = number(params, "sigma_q", 1);
  layer.sigma_k = number(params, "sigma_k", 1);
  layer.sigma_v = number(params, "sigma_v", 1);
  layer.sigma_o = number(params, "sigma_o", 1);
  layer.sigma_b = number(params, "sigma_b");
  layer.encodings =
      encodings(params, params.value("pe_kind", params.contains("phi") ? "struct" : "none"));
  layer.sample.points = 65536;
  return layer;
}

ResidualAttention residual(const json& params) {
  return {encodings(params, "struct"), number(params, "sigma_qk", 1),
          number(params, "sigma_ov", 1)};
}

Layer layer_of_step(const json& step) {
  const std::string op = step.at("op").get<std::string>();
  if (op == "dense") return dense(step);
  if (op == "act") return Nonlinearity{function(step.at("name").get<std::string>())};
  if (op == "layernorm") return LayerNorm{number(step, "eps")};
  if (op == "attn") return attention(step);
  if (op == "residual") return residual(step);
  if (op == "flatten") return Flatten{step.value("padded_length", Index{0})};
  if (op == "gap") return GlobalAveragePool{};
  throw InvalidInput("op", op, "a known layer");
}

void check_dual(const Case& c) {
  const Dual d =
      dual(function(c.group.substr(5)), c.inputs.at("v1"), c.inputs.at("v2"), c.inputs.at("c"));
  c.compare(c.expect, "e_ff", d.value);
  c.compare(c.expect, "e_dfdf", d.derivative);
}

void check_dense(const Case& c) {
  const Nonlinearity activation{function(c.group.substr(6))};
  const Matrix<> x = matrix(c.inputs.at("x"));
  std::vector<Matrix<>> inputs;
  for (Index i = 0; i < x.rows(); ++i) inputs.emplace_back(x.row(i));
  Kernel k = propagate(dense(c.params), stacked_input_kernel(inputs));
  // One entry per layer: dense, then activation and dense by turns, or only the dense ones.
  const json& after = c.expect.at("after_layer");
  const auto depth = c.params.at("depth").get<std::size_t>();
  const bool all = after.size() == 2 * depth + 1;
  std::size_t at = 0;
  if (all || after.size() == depth + 1) c.compare(after.at(at++), k);
  for (std::size_t l = 0; l < depth; ++l) {
    k = propagate(activation, k);
    if (all) c.compare(after.at(at++), k);
    k = propagate(dense(c.params), k);
    c.compare(after.at(at++), k);
  }
  if (at != after.size()) c.complain("lists other layers");
}

void check_layernorm(const Case& c) {
  const Kernel k{tokens(c.inputs.at("lengths")), matrix(c.inputs.at("nngp")),
                 matrix(c.inputs.at("ntk"))};
  c.compare(c.expect, propagate(LayerNorm{number(c.params, "eps")}, k));
}

void check_string(const Case& c) {
  const Tokens t = tokens(c.inputs.at("lengths"));
  const Encodings e = encodings(c.params, "struct");
  Matrix<> r(t.total(), t.total());
  for (Index i = 0; i < t.inputs(); ++i) {
    for (Index j = 0; j < t.inputs(); ++j)
      t.block(r, i, j) = e.covariance(t.length(i), t.length(j));
  }
  c.compare(c.expect, "R", r);
}

void check_image(const Case& c) {
  Encodings e = encodings(c.params, "struct");
  e.geometry = Encodings::Geometry::grid;
  e.sides = {c.params.at("height").get<Index>(), c.params.at("width").get<Index>()};
  c.compare(c.expect, "R", e.covariance(e.sides[0] * e.sides[1], e.sides[0] * e.sides[1]));
}

/// The input of an attention layer is an expected value as well.
Kernel first_layer(const Case& c) {
  const json& first = c.inputs.at("first_layer");
  return propagate(Nonlinearity{function(first.at("activation").get<std::string>())},
                   propagate(dense(first), stacked_input_kernel(features(c.inputs.at("x")))));
}

void check_attention(const Case& c) {
  const Kernel in = first_layer(c);
  c.compare(c.inputs, in, "nngp_in", "ntk_in");
  c.compare(c.expect, propagate(attention(c.params), in));
}

void check_residual(const Case& c) {
  const Kernel in = first_layer(c);
  c.compare(c.inputs, in, "nngp_in", "ntk_in");
  c.compare(c.expect, propagate(residual(c.params), in));
}

void check_padded(const Case& c) {
  Mask mask;
  std::vector<Index> padded_lengths;
  for (const json& row : c.inputs.at("mask")) {
    mask.emplace_back();
    for (const json& real : row) mask.back().push_back(real.get<double>() != 0);
    padded_lengths.push_back(static_cast<Index>(row.size()));
  }
  const Kernel padded{Tokens(padded_lengths), matrix(c.inputs.at("nngp_in_padded")),
                      matrix(c.inputs.at("ntk_in_padded"))};
  const Kernel out = propagate(attention(c.params), without_padding(padded, mask));
  const Kernel out_padded = with_padding(out, mask);
  c.compare(c.expect, out_padded, "nngp_padded", "ntk_padded");
  c.compare(c.expect, propagate(GlobalAveragePool{}, out), "gap_nngp", "gap_ntk");
  c.compare(c.expect, propagate(Flatten{}, out_padded), "flatten_nngp", "flatten_ntk");
}

void check_readout(const Case& c) {
  const Kernel k{tokens(c.inputs.at("lengths")), matrix(c.inputs.at("nngp")),
                 matrix(c.inputs.at("ntk"))};
  const bool flatten = c.group == "readout_flatten";
  const Kernel pooled = propagate(flatten ? Layer(Flatten{}) : Layer(GlobalAveragePool{}), k);
  c.compare(c.expect, pooled, "pooled_nngp", "pooled_ntk");
  c.compare(c.expect, propagate(dense(c.params), pooled), "dense_nngp", "dense_ntk");
}

void check_stack(const Case& c) {
  Kernel k = stacked_input_kernel(features(c.inputs.at("x")));
  const json& steps = c.params.at("steps");
  for (std::size_t i = 0; i < steps.size(); ++i) {
    k = propagate(layer_of_step(steps[i]), k);
    c.compare(c.expect.at("trace").at(i), k);
  }
}

void check_regression(const Case& c) {
  const auto train = c.params.at("n_train").get<Index>();
  const KernelBlocks k = split_kernel(matrix(c.inputs.at("nngp")), train);
  const KernelBlocks theta = split_kernel(matrix(c.inputs.at("ntk")), train);
  const Regularizer r{number(c.params, "reg"), c.params.at("reg_times_mean_diagonal")};
  const Matrix<> y = matrix(c.inputs.at("y"));
  if (!c.inputs.at("labels").is_null()) {
    const auto labels = c.inputs.at("labels").get<std::vector<int>>();
    c.compare(c.inputs, "y", class_targets(labels, static_cast<int>(y.cols())));
  }
  const Posterior nngp = nngp_posterior(k, y, r);
  const Posterior ntk = ntk_posterior(k, theta, y, r);
  c.compare(c.expect, "nngp_mean", nngp.mean);
  c.compare(c.expect, "nngp_cov", nngp.covariance);
  c.compare(c.expect, "ntk_mean", ntk.mean);
  c.compare(c.expect, "ntk_cov", ntk.covariance);
}

EffectiveScales effective_scales(const json& hyper) {
  const auto scale = [&](const std::string& name) {
    return GroupScale{hyper.at("C" + name), hyper.at("L" + name)};
  };
  return {scale("patch"), scale("WE"),   scale("PE"),       scale("Q"),
          scale("K"),     scale("V"),    scale("U"),        scale("W"),
          scale("X"),     scale("head"), hyper.at("Lbias"), hyper.at("eps")};
}

void check_effective(const Case& c) {
  const EffectiveScales scales = effective_scales(c.params.at("hyper"));
  const bool vision = c.params.at("kind") == "vision";
  const json& data = c.inputs.at("data");
  const json& blocks = c.expect.at("blocks");
  EffectiveScales raw = scales;  // G0: no positions, C = 1
  raw.patch_embedding.variance = raw.token_embedding.variance = 1;
  raw.position_embedding.variance = 0;
  const auto stem = [&](const EffectiveScales& s) {
    return vision ? vision_stem(features(data), s)
                  : language_stem(data.get<std::vector<std::vector<long>>>(), s);
  };
  Kernel k = stem(scales);
  c.compare(blocks.at(0), "G0", stem(raw).nngp);
  c.compare(blocks.at(0), k, "G", "Theta");
  for (std::size_t i = 1; i < blocks.size(); ++i) {
    const json& expected = blocks[i];
    const auto kind = expected.at("block").get<std::string>();
    if (kind == "head") {
      EffectiveHead head;
      head.tied = !vision;
      const double s = c.params.at("s");
      head.shrinkage = s == 0 ? 1 : std::pow(c.params.at("width").get<double>(), -s);
      c.compare(expected, "F", propagate(LayerNorm{scales.epsilon}, k).nngp);
      k = head(k, scales);
      c.compare(expected, k, "G", "Theta");
      if (vision)
        c.compare(expected, propagate(GlobalAveragePool{}, k), "G_pooled", "Theta_pooled");
      continue;
    }
    const bool attends = kind == "attn";
    const EffectiveBlock block =
        attends ? attention_block(k, scales, c.params.at("causal"))
                : mlp_block(k, scales, function(c.params.at("activation").get<std::string>()));
    c.compare(expected, "F", block.normalized);
    c.compare(expected, attends ? "attn_moment" : "act_moment", block.moment);
    c.compare(expected, attends ? "attn_jac_moment" : "act_jac_moment", block.slope_moment,
              &block.normalized);
    c.compare(expected, "theta_additive", block.additive, &block.normalized);
    c.compare(expected, "theta_cumulative", block.cumulative, &block.normalized);
    k = block.kernel;
    c.compare(expected, "G", k.nngp);
    c.compare(expected, "Theta", k.ntk, &block.normalized);
  }
}

/// The scalings are those of the policy's plan.
void check_scaling(const Case& c) {
  static const std::map<std::string, Group> groups{{"patch", Group::patch_embedding},
                                                   {"WE", Group::token_embedding},
                                                   {"PE", Group::position_embedding},
                                                   {"Q", Group::query},
                                                   {"K", Group::key},
                                                   {"V", Group::value},
                                                   {"U", Group::attention_output},
                                                   {"W", Group::mlp_up},
                                                   {"X", Group::mlp_down},
                                                   {"head", Group::head},
                                                   {"head_bias", Group::head_bias}};
  const bool vision = c.group == "scaling_vision";
  Shape shape;
  shape.d_model = c.params.at("n");
  shape.d_ff = c.params.at("M").get<long>() * shape.d_model;
  shape.depth = 1;
  shape.heads = 1;
  shape.context = 1;
  if (vision) {
    shape.input = Input::patch;
    shape.patch_dim = c.params.at("npatch");
    shape.classes = c.params.at("nout");
    shape.head_bias = true;
  } else {
    shape.vocab = 2;
    shape.tied_head = true;
  }
  MetaPrincipled policy;
  policy.s = c.params.at("s");
  const Plan by_sgd = make_plan(policy, {.model = shape, .optimizer = scalewise::sgd});
  const Plan by_adamw = make_plan(policy, {.model = shape});
  for (const auto& [quantity, values] : c.expect.items()) {
    for (const auto& [name, value] : values.items()) {
      // Clang 14 cannot capture structured bindings.
      const auto check = [&c, q = quantity, key = name](double actual) {
        c.compare(c.expect.at(q), key, actual);
      };
      if (name == "n_rescale") {
        check(by_adamw.model.logit_multiplier.value);
        continue;
      }
      const std::vector<const Entry*> entries =
          (quantity == "sgd" ? by_sgd : by_adamw).of(groups.at(name));
      if (entries.empty()) c.complain("no " + name + " in the plan");
      for (const Entry* entry : entries) {
        check(quantity == "init_variance" ? entry->init_variance.value
                                          : entry->learning_rate.value);
      }
    }
  }
}

/// Parameters as the effective theory counts them: no biases, no gains, no class token.
void check_parameter_counts(const Case& c) {
  static const std::map<std::string, std::string> presets{
      {"vit_b", "vit-b16"}, {"bart_large", "bart-large"}, {"r2c2", "r2c2-2.7b"}};
  for (const auto& [name, count] : c.expect.items()) {
    Shape shape = preset_shape(presets.at(name));
    shape.biases = false;
    shape.norm_gain = false;
    shape.norm_bias = false;
    shape.class_token = false;
    shape.embedding_norm = false;
    if (name == "vit_b") {
      shape.head_bias = true;
      shape.context = 196;
    } else {
      shape.context = 514;
      shape.vocab = 50265;
    }
    c.compare(c.expect, name,
              static_cast<double>(make_plan(MetaPrincipled{}, {.model = shape}).parameter_count()));
  }
}

/// By the beginning of a group's name; the longest one that fits.
const std::map<std::string, void (*)(const Case&)> checks{
    {"dual_", check_dual},
    {"dense_", check_dense},
    {"layernorm", check_layernorm},
    {"pe_string", check_string},
    {"pe_image", check_image},
    {"attn_", check_attention},
    {"attn_residual", check_residual},
    {"attn_padded", check_padded},
    {"readout_", check_readout},
    {"regression", check_regression},
    {"stack_", check_stack},
    {"eff_", check_effective},
    {"scaling_", check_scaling},
    {"parameter_counts", check_parameter_counts}};

void check_case(const Case& c) {
  void (*check)(const Case&) = nullptr;
  for (const auto& [prefix, candidate] : checks) {  // in order, so longer ones come later
    if (c.group.rfind(prefix, 0) == 0) check = candidate;
  }
  if (check == nullptr) return c.complain("unknown group " + c.group);
  check(c);
}

}  // namespace

long check_kernels(const json& file, Tally& tally) {
  const std::vector<io::JsonReader> cases =
      io::JsonReader(file, "kernels.json").at("cases").items();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    try {
      check_case(Case(cases[i], file["cases"][i], file.at("tolerances"), tally));
    } catch (const std::exception& error) {
      tally.complain(cases[i].path(), error.what());
    }
  }
  return static_cast<long>(cases.size());
}

}  // namespace scalewise::golden
