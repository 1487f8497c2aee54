// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// signal_propagation.json: moments of components and of whole models. Closed forms to the file's
// tolerance; simulations to its tolerance for them and five standard errors.

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "golden/files.hpp"
#include "scalewise/propagation/embedding.hpp"
#include "scalewise/propagation/growth.hpp"
#include "scalewise/propagation/layer_norm.hpp"
#include "scalewise/propagation/propagate.hpp"
#include "scalewise/propagation/softmax.hpp"
#include "scalewise/propagation/stable.hpp"

namespace scalewise::golden {

namespace {

using namespace scalewise::propagation;

constexpr Reading readings[] = {Reading::paper_simple, Reading::paper_full, Reading::corrected};

/// Our numbers under the names of the file.
using Numbers = std::map<std::string, double>;

double in(const io::JsonReader& c, const char* name) { return c.at("in").at(name).number(); }

void put(Numbers& n, const std::string& prefix, const SignalMoments& m) {
  n[prefix + "mean"] = m.mean;
  n[prefix + "var"] = m.variance;
  n[prefix + "cov"] = m.covariance;
  n[prefix + "corr"] = m.correlation();
}

/// "paper_simple" as the file spells it.
std::string name_of(Reading reading) {
  std::string name(word(reading_words, reading));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

SignalMoments input_of(const io::JsonReader& c) {
  SignalMoments x = correlated(in(c, "var"), in(c, "corr"));
  if (c.at("in").has("mu")) x.mean = in(c, "mu");
  return x;
}

SignalMoments gradient_of(const io::JsonReader& c) {
  return correlated(in(c, "var_g"), in(c, "corr_g"));
}

// ---- components ----------------------------------------------------------------------------------

Numbers embedding_corr(const io::JsonReader& c) {
  const Embeddings e{.vocab = c.at("in").at("V").integer(),
                     .length = in(c, "L"),
                     .segments = c.at("in").at("segment").boolean(),
                     .positions = c.at("in").at("position").boolean(),
                     .dropout = in(c, "p")};
  Numbers n;
  n["exact"] = embedding_correlation(e);
  n["plug_in"] = embedding_correlation(e, Repeats::plug_in);
  n["series"] = embedding_correlation(e, Repeats::series);
  n["printed"] = embedding_correlation(e, Repeats::printed);
  return n;
}

Numbers linear_layer(const io::JsonReader& c) {
  Numbers n;
  put(n, "fwd_", linear(input_of(c), in(c, "d_in"), in(c, "var_w")));
  put(n, "bwd_", linear_gradient(gradient_of(c), in(c, "d_out"), in(c, "var_w")));
  return n;
}

Numbers dropout_layer(const io::JsonReader& c) {
  Numbers n;
  put(n, "fwd_", dropout(input_of(c), in(c, "p")));
  put(n, "bwd_", dropout_gradient(gradient_of(c), in(c, "p")));
  return n;
}

Numbers relu_layer(const io::JsonReader& c) {
  Numbers n;
  const SignalMoments x = input_of(c);
  put(n, "fwd_", relu(x));
  put(n, "bwd_", relu_gradient(gradient_of(c), x));
  n["fwd_corr_poly"] = relu(x, Reading::paper_simple).correlation();
  return n;
}

Numbers gelu_layer(const io::JsonReader& c) {
  Numbers n;
  put(n, "fwd_", gelu(input_of(c)));
  put(n, "bwd_", gelu_gradient(gradient_of(c), input_of(c)));
  return n;
}

Numbers norm_layer(const io::JsonReader& c) {
  Numbers n;
  const SignalMoments x = input_of(c);
  const SignalMoments g = gradient_of(c);
  const double d = in(c, "d");
  put(n, "fwd_", layer_norm(x, d));
  n["fwd_cov_exact"] = n["fwd_cov"];
  n["fwd_cov_paper"] = layer_norm(x, d, Reading::paper_full).covariance;
  n["fwd_cov_feature"] = layer_norm_feature_covariance(d);
  const SignalMoments paper = layer_norm_gradient(g, x, d, Reading::paper_full);
  n["bwd_var_paper"] = paper.variance;
  n["bwd_cov_paper"] = paper.covariance;
  const SignalMoments finite = layer_norm_gradient(g, x, d);
  n["bwd_var_finite"] = finite.variance;
  n["bwd_cov_finite"] = finite.covariance;
  return n;
}

Numbers softmax_layer(const io::JsonReader& c) {
  Numbers n;
  const SignalMoments x = input_of(c);
  const SignalMoments g = gradient_of(c);
  const double size = in(c, "n");
  n["fwd_mean"] = softmax(x, size).mean;
  n["fwd_var_full"] = softmax(x, size, Reading::paper_full).variance;
  n["fwd_var_simple"] = softmax(x, size, Reading::paper_simple).variance;
  n["fwd_var_corrected"] = n["fwd_var"] = softmax(x, size).variance;
  // A step on the paper's way from its full to its simple form.
  n["fwd_var_mid"] =
      std::expm1((x.variance - x.covariance) * size / (size - 1)) / ((size - 1) * (size - 1));
  n["bwd_var_full"] = softmax_gradient_variance(g, x, size, Reading::paper_full);
  n["bwd_var_simple"] = softmax_gradient_variance(g, x, size, Reading::paper_simple);
  n["bwd_var_corrected"] = n["bwd_var"] = softmax_gradient_variance(g, x, size);
  return n;
}

Numbers attention_core(const io::JsonReader& c) {
  const Attention a{.width = in(c, "d"),
                    .heads = in(c, "dk"),
                    .length = in(c, "L"),
                    .query = in(c, "sq"),
                    .key = in(c, "sk"),
                    .value = in(c, "sv"),
                    .probability_dropout = in(c, "p")};
  Numbers n;
  for (const Reading reading : readings) {
    const std::string prefix = name_of(reading);
    put(n, prefix + "_fwd_", attention_heads(input_of(c), a, reading));
    put(n, prefix + "_bwd_", attention_heads_gradient(gradient_of(c), input_of(c), a, reading));
  }
  return n;
}

Numbers attention(const io::JsonReader& c) {
  const Attention a{.width = in(c, "d"),
                    .heads = in(c, "d"),
                    .length = in(c, "L"),
                    .query = in(c, "sq"),
                    .key = in(c, "sk"),
                    .value = in(c, "sv"),
                    .output = in(c, "so"),
                    .dropout = in(c, "p"),
                    .probability_dropout = in(c, "p_attn")};
  const SignalMoments x = correlated(1, in(c, "corr"));
  Numbers n;
  for (const Reading reading : readings) {
    const std::string prefix = name_of(reading);
    put(n, prefix + "_fwd_", attention_block(x, a, reading));
    put(n, prefix + "_bwd_", attention_block_gradient(gradient_of(c), x, a, reading));
  }
  return n;
}

Numbers mlp(const io::JsonReader& c, Activation activation) {
  const double d = in(c, "d");
  const Mlp m{.width = d,
              .hidden = 4 * d,
              .up = in(c, "s1"),
              .down = in(c, "s2"),
              .activation = activation,
              .dropout = in(c, "p")};
  const SignalMoments x = correlated(1, in(c, "corr"));
  Numbers n;
  put(n, "fwd_", mlp_block(x, m));
  put(n, "bwd_", mlp_block_gradient(gradient_of(c), x, m));
  const SignalMoments table2 = mlp_block(x, m, Reading::paper_simple);
  n["fwd_cov_poly"] = table2.covariance;
  n["fwd_corr_poly"] = table2.correlation();
  return n;
}

Numbers correlation_maps(const io::JsonReader& c) {
  const double r = in(c, "corr");
  Numbers n;
  n["ffn_map"] = relu_product(r);
  n["ffn_poly"] = relu_product(r, Reading::paper_simple);
  n["ffn_grad"] = relu_slope_product(r);
  n["relu_corr"] = relu(correlated(1, r)).correlation();
  n["relu_poly"] = relu(correlated(1, r), Reading::paper_simple).correlation();
  return n;
}

/// How far a closed form may be from the simulation, relative to it.
double truth(const std::string& component, const io::JsonReader& c, const std::string& key) {
  if (component == "softmax") {
    const double a = in(c, "var") * (1 - in(c, "corr"));
    const double n = in(c, "n");
    return 0.001 + 30 * std::exp(6 * a) / (n * n);
  }
  if (component == "layernorm") {
    return key == "bwd_cov_finite" ? 3 / (in(c, "d") * in(c, "d")) : 1e-12;
  }
  if (component == "attention_core_with_value") return 0.03;
  if (component == "attention_block") return 0.035;
  return 1 / in(c, "d");  // MLP blocks
}

struct Component {
  const char* name;
  Numbers (*numbers)(const io::JsonReader& c);
};

const Component components[] = {
    {"embedding_corr", embedding_corr},
    {"linear", linear_layer},
    {"dropout", dropout_layer},
    {"relu", relu_layer},
    {"gelu", gelu_layer},
    {"layernorm", norm_layer},
    {"softmax", softmax_layer},
    {"attention_core_with_value", attention_core},
    {"attention_block", attention},
    {"ffn_block_relu", [](const io::JsonReader& c) { return mlp(c, Activation::relu); }},
    {"ffn_block_gelu", [](const io::JsonReader& c) { return mlp(c, Activation::gelu); }},
    {"correlation_maps", correlation_maps},
};

void compare(const io::JsonReader& expected, const Numbers& ours, const std::string& key,
             Tally& tally, double relative, double absolute = 0) {
  const auto found = ours.find(key);
  if (found == ours.end()) return tally.complain(expected.path(), "no such number");
  tally.compare(expected, found->second, relative, absolute);
}

long check_component(const io::JsonReader& section, const std::string& name,
                     const nlohmann::ordered_json& json, Tally& tally) {
  const auto* component = std::find_if(std::begin(components), std::end(components),
                                       [&](const Component& known) { return known.name == name; });
  if (component == std::end(components)) {
    tally.complain(section.path(), "no such component");
    return 0;
  }
  const double tolerance = section.at("tol_formula").number();
  const std::vector<io::JsonReader> cases = section.at("cases").items();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Numbers ours = component->numbers(cases[i]);
    for (const auto& [key, unused] : json["cases"][i]["out"].items()) {
      compare(cases[i].at("out").at(key), ours, key, tally, tolerance);
    }
    if (!cases[i].has("mc")) continue;
    const bool attends = name.starts_with("attention");
    for (const auto& [key, unused] : json["cases"][i]["mc"].items()) {
      const double error = cases[i].at("mc_se").at(key).number();
      compare(cases[i].at("mc").at(key), ours, attends ? "corrected_" + key : key, tally,
              truth(name, cases[i], key), 5 * error);
    }
  }
  return static_cast<long>(cases.size());
}

// ---- whole models --------------------------------------------------------------------------------

void compare_all(const io::JsonReader& object, const nlohmann::ordered_json& json,
                 const Numbers& ours, Tally& tally, double tolerance) {
  for (const auto& [key, value] : json.items()) {
    if (value.is_number()) compare(object.at(key), ours, key, tally, tolerance);
  }
}

long check_zipf(const io::JsonReader& section, const nlohmann::ordered_json& json, Tally& tally) {
  const long vocab = section.at("V").integer();
  const double length = section.at("L").number();
  const double tolerance = section.at("tol_formula").number();
  const auto all = [&](const auto& number) {
    return Numbers{{"exact", number(Repeats::exact)},
                   {"plug_in", number(Repeats::plug_in)},
                   {"series", number(Repeats::series)},
                   {"printed", number(Repeats::printed)}};
  };
  const auto check = [&](const char* key, const Numbers& ours) {
    compare_all(section.at(key), json[key], ours, tally, tolerance);
  };
  check("token", all([&](Repeats r) { return token_repeats(vocab, length, r); }));
  check("segment", {{"uniform_0_L", segment_repeats(length)},
                    {"continuous", segment_repeats(length, Repeats::plug_in)},
                    {"uniform_1_Lm1", segment_repeats_of_two(length)}});
  for (const bool segments : {true, false}) {
    const Embeddings e{.vocab = vocab, .length = length, .segments = segments};
    check(segments ? "with_segment" : "without_segment",
          all([&](Repeats r) { return embedding_correlation(e, r); }));
  }
  const auto simulated = [&](const char* key, double ours) {
    tally.compare(section.at("mc").at(key), ours, 0,
                  5 * section.at("mc").at(std::string(key) + "_se").number());
  };
  simulated("token", token_repeats(vocab, length));
  simulated("segment", segment_repeats(length));
  return 1;
}

Numbers stable_numbers(const LayerGains& g) {
  const StableCorrelations exact = paper_stable_correlations(g, Reading::paper_full);
  const StableCorrelations simple = paper_stable_correlations(g, Reading::paper_simple);
  const PostNormCorrelations post = post_norm_correlations(g, Reading::paper_full);
  const double C1 = g.attention;
  return {{"rx_poly", simple.forward},
          {"rg_poly", simple.gradient},
          {"rx_exact", exact.forward},
          {"rg_exact", exact.gradient},
          {"rx_pre_weighted", pre_norm_correlation(g)},
          {"rx_post_attn_in", post.attention_input},
          {"rx_post_ffn_in", post.mlp_input},
          {"rg_post_table2_after_attn", post.gradient},
          {"rg_post_table2_into_attn", post.attention_gradient},
          {"post_rate_naive", (1 + C1 * simple.gradient) / (1 + C1 * simple.forward)},
          {"post_rate_consistent",
           (1 + C1 * post.attention_gradient) / (1 + C1 * post.attention_input)},
          {"post_rate_cov_channel", post_norm_rate(g)},
          {"pre_exponent_cov_channel", pre_norm_exponent(g)},
          {"p", g.dropout},
          {"C1", C1},
          {"C2", g.mlp}};
}

long check_stable(const io::JsonReader& section, const nlohmann::ordered_json& json, Tally& tally) {
  const double tolerance = section.at("tol_formula").number();
  const auto gains = [](const io::JsonReader& c) {
    return LayerGains{.attention = c.at("C1").number(), .mlp = c.at("C2").number()};
  };
  const std::vector<io::JsonReader> cases = section.at("cases").items();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    LayerGains g = gains(cases[i]);
    g.dropout = cases[i].at("p").number();
    compare_all(cases[i], json["cases"][i], stable_numbers(g), tally, tolerance);
    const std::vector<io::JsonReader> bounds = cases[i].at("growth_exponent_bounds").items();
    tally.compare(bounds[0], g.mlp / (g.attention + g.mlp), tolerance);
    tally.compare(bounds[1], (g.attention + g.mlp) / g.mlp, tolerance);
  }
  const char* corrected = "corrected_post_grad_corr";
  const std::vector<io::JsonReader> post = section.at(corrected).items();
  for (std::size_t i = 0; i < post.size(); ++i) {
    LayerGains g = gains(post[i]);
    g.score = post[i].at("d2_sq_sk").number();
    const PostNormCorrelations stable = post_norm_correlations(g);
    const double S = g.score * (1 - stable.attention_input);
    const double rS = stable.attention_input * S;
    compare_all(post[i], json[corrected][i],
                {{"C1", g.attention},
                 {"C2", g.mlp},
                 {"d2_sq_sk", g.score},
                 {"score_boost", std::exp(rS) * (1 + rS)},
                 {"rg_layer_boundary", stable.gradient},
                 {"rg_into_attn", stable.attention_gradient}},
                tally, tolerance);
  }
  tally.compare(section.at("ffn_fixed_point_exact"), mlp_stable_correlation(0.1), tolerance);
  tally.compare(section.at("ffn_fixed_point_poly"),
                mlp_stable_correlation(0.1, Reading::paper_simple), tolerance);
  return static_cast<long>(cases.size() + post.size());
}

/// DeepScaleLM with what a case says of it.
DeepScaleLM deep_scale_lm(double dropout, double start) {
  DeepScaleLM rule;
  rule.dropout = dropout;
  rule.input_correlation = start / (1 - dropout);
  return rule;
}

void compare_list(const io::JsonReader& list, const std::vector<double>& ours, Tally& tally,
                  double relative) {
  const std::vector<io::JsonReader> expected = list.items();
  if (expected.size() != ours.size()) {
    return tally.complain(list.path(), "another length: " + std::to_string(ours.size()));
  }
  for (std::size_t i = 0; i < ours.size(); ++i) tally.compare(expected[i], ours[i], relative);
}

/// The correlation behind the last layer when the MLP's map is taken from somewhere else.
double final_correlation(double start, double beta2, double keep, long depth, const auto& map) {
  double r = start;
  for (long l = 0; l < depth; ++l) {
    r = (1 - beta2) * r + beta2 * keep;
    r = (1 - beta2) * r + beta2 * keep * map(r);
  }
  return r;
}

long check_dslm_init(const io::JsonReader& section, Tally& tally) {
  const double tolerance = section.at("tol_formula").number();
  const std::vector<io::JsonReader> cases = section.at("cases").items();
  for (const io::JsonReader& c : cases) {
    const long depth = c.at("N").integer();
    const double p = c.at("p").number();
    const double start = c.at("corr_start").number();
    const double beta2 = c.at("beta2").number();
    DepthModel m;
    m.width = c.at("d").number();
    m.dropout = p;
    m.input_correlation = start / (1 - p);
    const Layers layers = depth_layers(DepthMethod::deep_scale_lm, m, depth);
    const Layers simple = depth_layers(DepthMethod::deep_scale_lm_simple, m, depth);
    std::vector<double> attention_in = deep_scale_lm(p, start).token_correlations(depth);
    std::vector<double> mlp_in;
    std::vector<double> values;
    tally.compare(c.at("final_corr"), attention_in.back(), tolerance);
    attention_in.pop_back();
    for (std::size_t l = 0; l < attention_in.size(); ++l) {
      mlp_in.push_back((1 - beta2) * attention_in[l] + beta2 * (1 - p));
      values.push_back(std::get<Attention>(layers.blocks[2 * l].inner).value);
    }
    compare_list(c.at("attn_in_corr"), attention_in, tally, tolerance);
    compare_list(c.at("ffn_in_corr"), mlp_in, tally, tolerance);
    compare_list(c.at("value_and_output_var"), values, tally, tolerance);
    tally.compare(c.at("lam2"), layers.blocks[0].skip, tolerance);
    tally.compare(c.at("ffn_var"), std::get<Mlp>(layers.blocks[1].inner).up, tolerance);
    tally.compare(c.at("qk_var"), std::get<Attention>(layers.blocks[0].inner).query, tolerance);
    tally.compare(c.at("simple_value_and_output_var"),
                  std::get<Attention>(simple.blocks[0].inner).value, tolerance);
    tally.compare(c.at("embedding_var_3_tables"), (1 - p) / 3, tolerance);
    tally.compare(
        c.at("final_corr_poly"),
        final_correlation(start, beta2, 1 - p, depth,
                          [](double r) { return relu_product(r, Reading::paper_simple); }),
        tolerance);
    // Figure 15 taken literally: no dropout of the embeddings, and F of the input throughout.
    const double input = c.at("corr_embedding").number();
    tally.compare(
        c.at("final_corr_literal_fig15"),
        final_correlation(input, beta2, 1 - p, depth, [&](double) { return relu_product(input); }),
        tolerance);
  }
  const std::vector<io::JsonReader> without = section.at("no_dropout").items();
  for (const io::JsonReader& c : without) {
    const DeepScaleLM rule = deep_scale_lm(0, c.at("corr_start").number());
    tally.compare(c.at("final_corr"), rule.token_correlations(c.at("N").integer()).back(),
                  tolerance);
  }
  return static_cast<long>(cases.size() + without.size());
}

Layers layers_of(const io::JsonReader& c) {
  const long depth = c.at("N").integer();
  const std::string init = c.at("init").string();
  DepthModel m;
  m.placement = value_of(architecture::norm_placement_words, "kind", c.at("kind").string());
  m.width = c.at("d").number();
  m.length = c.at("L").number();
  m.dropout = c.at("p").number();
  m.input_correlation = c.at("corr0").number() / (1 - m.dropout);
  if (init != "xavier") {
    const bool full = init == "dslm";
    m.k = c.at("beta2").number() * static_cast<double>(depth);
    return depth_layers(full ? DepthMethod::deep_scale_lm : DepthMethod::deep_scale_lm_simple, m,
                        depth);
  }
  Layers layers = depth_layers(DepthMethod::vanilla, m, depth);
  const io::JsonReader weights = c.at("weights");
  for (std::size_t i = 0; i < layers.blocks.size(); i += 2) {
    auto& a = std::get<Attention>(layers.blocks[i].inner);
    auto& f = std::get<Mlp>(layers.blocks[i + 1].inner);
    a.query = weights.at("q").number();
    a.key = weights.at("k").number();
    a.value = weights.at("v").number();
    a.output = weights.at("o").number();
    f.up = weights.at("w1").number();
    f.down = weights.at("w2").number();
  }
  return layers;
}

std::vector<double> by_layer(const Profile& p, const std::vector<SignalMoments>& list,
                             bool correlation) {
  std::vector<double> values;
  for (std::size_t l = 0; l <= p.depth(); ++l) {
    const SignalMoments& m = list[l * p.blocks_per_layer];
    values.push_back(correlation ? m.correlation() : m.variance);
  }
  return values;
}

/// The numbers that simulated networks of a case have to agree with.
void check_simulated(const io::JsonReader& mc, const Profile& p, bool post,
                     const io::JsonReader& tolerances, Tally& tally) {
  const auto check = [&](const char* key, const std::vector<double>& ours, double relative,
                         double absolute) {
    const std::vector<io::JsonReader> expected = mc.at(key).items();
    const std::vector<io::JsonReader> layers = mc.at("layers").items();
    const std::string errors = std::string(key) + "_se";
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double error = mc.has(errors) ? mc.at(errors).items()[i].number() : 0;
      const auto layer = static_cast<std::size_t>(layers[i].integer());
      tally.compare(expected[i], ours[layer], relative, absolute + 5 * error);
    }
  };
  const auto tolerance = [&](const char* key) { return tolerances.at(key).number(); };
  check("fwd_var", by_layer(p, p.forward, false), tolerance("fwd_var"), 0);
  check("fwd_corr", by_layer(p, p.forward, true), 0, tolerance("fwd_corr_abs"));
  // The file has no standard errors of these: their root mean square over layers is held to it.
  const std::vector<double> correlations = by_layer(p, p.gradient, true);
  const std::vector<io::JsonReader> simulated = mc.at("grad_corr").items();
  double squares = 0;
  for (std::size_t i = 0; i < simulated.size(); ++i) {
    const auto layer = static_cast<std::size_t>(mc.at("layers").items()[i].integer());
    const double off = correlations[layer] - simulated[i].number();
    squares += off * off / static_cast<double>(simulated.size());
  }
  tally.within(mc.path() + ".grad_corr", std::sqrt(squares), tolerance("grad_corr_abs"));
  const std::vector<double> gradient = by_layer(p, p.gradient, false);
  if (post && tolerances.has("post_grad_var_log")) {
    check("grad_var", gradient, std::exp(tolerance("post_grad_var_log")) - 1, 0);
  } else {
    check("grad_var", gradient, tolerance(tolerances.has("grad_var") ? "grad_var" : "pre_grad_var"),
          0);
  }
}

long check_profiles(const io::JsonReader& section, const nlohmann::ordered_json& json,
                    Tally& tally) {
  const double tolerance = section.at("tol_formula").number();
  const std::vector<io::JsonReader> cases = section.at("cases").items();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const io::JsonReader& c = cases[i];
    const Layers layers = layers_of(c);
    const bool post = layers.placement == NormPlacement::post;
    const SignalMoments input =
        correlated(post ? 1 : c.at("var0").number(), c.at("corr0").number());
    const SignalMoments gradient = correlated(c.at("var_g").number(), c.at("corr_g").number());
    for (const auto& [key, unused] : json["cases"][i]["theory"].items()) {
      std::string name = key;
      std::replace(name.begin(), name.end(), '_', '-');
      const Reading reading = value_of(reading_words, "theory", name);
      const Profile p = propagate(layers, input, gradient, reading);
      const io::JsonReader expected = c.at("theory").at(key);
      compare_list(expected.at("layer_fwd_var"), by_layer(p, p.forward, false), tally, tolerance);
      compare_list(expected.at("layer_fwd_corr"), by_layer(p, p.forward, true), tally, tolerance);
      compare_list(expected.at("layer_grad_var"), by_layer(p, p.gradient, false), tally, tolerance);
      compare_list(expected.at("layer_grad_corr"), by_layer(p, p.gradient, true), tally, tolerance);
      if (reading == Reading::corrected && c.has("mc")) {
        check_simulated(c.at("mc"), p, post, section.at("tol_truth"), tally);
      }
    }
  }
  return static_cast<long>(cases.size());
}

DepthMethod method_of(const std::string& name) {
  if (name == "vanilla") return DepthMethod::vanilla;
  if (name == "dsinit_layer") return DepthMethod::ds_init;
  if (name == "dsinit_total") return DepthMethod::ds_init_total;
  if (name == "layerscale") return DepthMethod::layer_scale;
  if (name == "deepnet") return DepthMethod::deep_norm;
  if (name == "dslm") return DepthMethod::deep_scale_lm;
  if (name == "dslm_simple") return DepthMethod::deep_scale_lm_simple;
  throw InvalidInput("method", name, "a method of the file");
}

long check_growth(const io::JsonReader& section, const nlohmann::ordered_json& json, Tally& tally) {
  const double tolerance = section.at("tol_formula").number();
  DepthModel m;
  m.width = section.at("d").number();
  m.length = section.at("L").number();
  m.dropout = section.at("p").number();
  const double start = section.at("corr0").number();
  m.input_correlation = start / (1 - m.dropout);
  std::vector<long> fitted;
  for (const io::JsonReader& depth : section.at("fit_over_N").items()) {
    fitted.push_back(depth.integer());
  }
  const std::vector<io::JsonReader> cases = section.at("cases").items();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const io::JsonReader& c = cases[i];
    m.placement = value_of(architecture::norm_placement_words, "kind", c.at("kind").string());
    std::string variant = c.at("variant").string();
    std::replace(variant.begin(), variant.end(), '_', '-');
    const Reading reading = value_of(reading_words, "variant", variant);
    std::vector<DepthPoint> points;
    const std::vector<io::JsonReader> expected = c.at("points").items();
    for (std::size_t j = 0; j < expected.size(); ++j) {
      const Layers layers =
          depth_layers(method_of(c.at("method").string()), m, expected[j].at("N").integer());
      const DepthPoint point =
          depth_point(propagate(layers, correlated(section.at("var0").number(), start),
                                correlated(1, c.at("corr_g").number()), reading));
      compare_all(expected[j], json["cases"][i]["points"][j],
                  {{"N", static_cast<double>(point.depth)},
                   {"fwd", point.forward},
                   {"bwd_var", point.gradient},
                   {"bwd_cov", point.covariance},
                   {"bwd_var_min", point.least_gradient},
                   {"bwd_var_max", point.most_gradient},
                   {"sens_sum", point.mean_sensitivity},
                   {"sens_median", point.median_sensitivity}},
                  tally, tolerance);
      if (std::find(fitted.begin(), fitted.end(), point.depth) != fitted.end()) {
        points.push_back(point);
      }
    }
    const GrowthOrders orders = growth_orders(points);
    const double slope = section.at("tol_slope").number();
    const auto absolute = [&](const io::JsonReader& expected_slope, double ours) {
      tally.compare(expected_slope, ours, 0, slope * 1e-6);  // both fit the same numbers
    };
    const io::JsonReader slopes = c.at("slopes");
    absolute(slopes.at("fwd"), orders.forward);
    absolute(slopes.at("bwd_var"), orders.gradient);
    absolute(slopes.at("bwd_cov"), orders.covariance);
    absolute(slopes.at("sens_sum"), orders.mean_sensitivity);
    absolute(slopes.at("sens_median"), orders.median_sensitivity);
    absolute(c.at("bwd_log_per_layer"), orders.gradient_per_layer);
    tally.compare(c.at("sens_sum_per_logN"), orders.sensitivity_per_log, 1e-6, slope * 1e-6);
  }
  return static_cast<long>(cases.size());
}

/// Simulations of DeepScaleLM at twelve layers, whose closed forms are not in the file.
long check_twelve(const io::JsonReader& section, Tally& tally) {
  const std::vector<io::JsonReader> cases = section.at("mc_12").items();
  for (const io::JsonReader& c : cases) {
    DepthModel m;
    m.placement = value_of(architecture::norm_placement_words, "kind", c.at("kind").string());
    m.width = c.at("d").number();
    m.input_correlation = 0.2041150579352331 / (1 - m.dropout);
    const Layers layers = depth_layers(DepthMethod::deep_scale_lm, m, c.at("N").integer());
    const Profile p = propagate(layers, correlated(1, m.input_correlation * (1 - m.dropout)),
                                correlated(1, c.at("corr_g").number()));
    const auto check = [&](const char* key, const std::vector<double>& ours, double relative) {
      const std::vector<io::JsonReader> expected = c.at(key).items();
      const std::string errors = std::string(key) + "_se";
      for (std::size_t l = 0; l < expected.size(); ++l) {
        const double error = c.has(errors) ? c.at(errors).items()[l].number() : 0;
        tally.compare(expected[l], ours[l], relative, 5 * error);
      }
    };
    check("layer_grad_var", by_layer(p, p.gradient, false),
          section.at("tol_truth").at("grad_var").number());
    check("layer_fwd_var", by_layer(p, p.forward, false),
          section.at("tol_truth").at("fwd_var").number());
  }
  return static_cast<long>(cases.size());
}

}  // namespace

long check_signal_propagation(const nlohmann::ordered_json& file, Tally& tally) {
  const io::JsonReader reader(file, "signal_propagation.json");
  long cases = 0;
  for (const auto& [name, json] : file["components"].items()) {
    cases += check_component(reader.at("components").at(name), name, json, tally);
  }
  const io::JsonReader model = reader.at("model");
  const nlohmann::ordered_json& json = file["model"];
  for (const auto& [name, section] : json.items()) {
    if (name == "a_zipf") {
      cases += check_zipf(model.at(name), section, tally);
    } else if (name == "b_stable") {
      cases += check_stable(model.at(name), section, tally);
    } else if (name == "c_dslm_init") {
      cases += check_dslm_init(model.at(name), tally);
    } else if (name == "d_vanilla" || name == "e_dslm") {
      cases += check_profiles(model.at(name), section, tally);
      if (section.contains("mc_12")) cases += check_twelve(model.at(name), tally);
    } else if (name == "f_growth") {
      cases += check_growth(model.at(name), section, tally);
    } else if (name != "error_percentiles") {  // of simulations that this program does not run
      tally.complain(model.at(name).path(), "no such section");
    }
  }
  return cases;
}

}  // namespace scalewise::golden
