// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// deep_init: variances to start a deep model with, layer by layer, and what the theory of signal
// propagation says of it: moments of activations and gradients, and warnings.
//
//   deep_init --depth 192 --width 256 --dropout 0.1 --placement post --out results
//   deep_init --rule xavier --depth 48 --measure

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "check/agreement.hpp"
#include "check/depth_probe.hpp"
#include "check/report.hpp"
#include "frame/progress.hpp"
#include "planning/rule_options.hpp"
#include "scalewise/policy/rule.hpp"
#include "scalewise/propagation/model.hpp"
#include "scalewise/propagation/warnings.hpp"
#include "train/model.hpp"
#include "train/settings.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::experiment;

struct Settings {
  train::Settings model;
  std::optional<double> input_correlation;  // of tokens, before dropout; none: of the data
  bool bidirectional = false;
  bool measure = false;
  long seeds = 5;
};

void add_deep_options(frame::Options& o, Settings& s) {
  train::Settings& m = s.model;
  o.group("Model");
  tools::add_rule_option(o, m.rule);
  tools::add_set_option(o, m.set);
  o.add("--depth", m.depth, "layers").from(1);
  o.add("--width", m.width, "features of a token, d_model").from(1);
  o.add("--heads", m.heads, "attention heads").from(1);
  o.add("--dropout", m.dropout, "dropout probability (of embeddings, attention and blocks)")
      .from(0)
      .below(1);
  o.add("--placement", m.placement, train::placement_words,
        "place of the norms (not given: as in the rule's text, or pre)");
  o.add("--activation", m.activation, architecture::activation_words, "activation of the MLP");
  o.add("--bidirectional", s.bidirectional, "no causal mask");

  o.group("Data");
  o.add("--text", m.text, "text to learn from, byte by byte").reads();
  o.add("--seq", m.seq, "tokens per sequence; of a text, bytes").from(1);
  o.add("--digits", m.digits, "images to learn from, a CSV file").reads().excludes("--text");
  o.add("--patch", m.patch, "side of an image's patches").from(1);
  o.add("--batch", m.batch, "sequences or images per batch (for statistics and --measure)").from(1);
  o.add("--input-correlation", s.input_correlation,
        "token correlation of the input before dropout (instead of that of the data)")
      .from(0)
      .to(1);

  o.group("Measure");
  o.add("--measure", s.measure, "run untrained reference transformers too");
  o.add("--seeds", s.seeds, "runs of each model, with a seed each (with --measure)")
      .from(1)
      .to(1000);
}

/// Throws:   InvalidInput for a rule that is relative to a base model, which the theory does not cover.
void require_own_variances(const std::string& id) {
  if (!policy::needs_base(id)) return;
  throw InvalidInput("--rule", id, "a rule that needs no base model",
                     "the theory of signal propagation covers no other");
}

propagation::Conditions conditions_of(const train::Settings& m, long tokens) {
  propagation::Conditions c;
  c.placement = *m.placement;
  c.activation = *m.activation;
  c.length = static_cast<double>(tokens);
  c.causal = m.causal && m.digits.empty();
  c.dropout = m.dropout;
  c.norm_epsilon = nn::Config{}.norm_epsilon;
  return c;
}

/// Tells a rule with such a parameter the correlation of the input.
void inform_rule(train::Settings& m, double correlation) {
  if (!tools::has_parameter(m.rule, "input_correlation")) return;
  m.parameters.push_back({"input_correlation", correlation});
}

/// The profile of the batch itself, token by token: the mean over its sequences.
propagation::Profile batch_profile(const Subject& subject, const propagation::Conditions& c) {
  propagation::Profile mean;
  const auto share = 1 / static_cast<double>(subject.sequences.size());
  for (const SequencePairs& pairs : subject.sequences) {
    const propagation::Profile one =
        propagation::predict(subject.plan, c, pairs.content, pairs.same_target);
    if (mean.forward.empty()) {
      mean = one;
      mean.forward.assign(one.forward.size(), {0, 0, 0});
      mean.gradient = mean.forward;
    }
    for (std::size_t i = 0; i < one.forward.size(); ++i) {
      mean.forward[i] =
          propagation::sum(mean.forward[i], propagation::scaled(share, one.forward[i]));
      mean.gradient[i] =
          propagation::sum(mean.gradient[i], propagation::scaled(share, one.gradient[i]));
    }
  }
  return mean;
}

Section variances_of(const propagation::Layers& layers) {
  Section section{"variances", "Initial variances by layer, and residual weights", {}};
  for (std::size_t i = 0; i + 1 < layers.blocks.size(); i += 2) {
    const propagation::Block& block = layers.blocks[i];
    const auto& a = std::get<propagation::Attention>(block.inner);
    const auto& m = std::get<propagation::Mlp>(layers.blocks[i + 1].inner);
    section.rows.push_back({{"layer", static_cast<long>(i / 2)},
                            {"query", a.query},
                            {"key", a.key},
                            {"value", a.value},
                            {"attention_output", a.output},
                            {"mlp_up", m.up},
                            {"mlp_down", m.down},
                            {"skip", std::sqrt(block.skip)},
                            {"branch", std::sqrt(block.branch)}});
    if (m.gate) section.rows.back().insert(section.rows.back().end() - 3, {"mlp_gate", *m.gate});
  }
  return section;
}

plot::Curve curve(const std::string& label, const std::vector<propagation::SignalMoments>& list,
                  std::size_t stride, bool correlation) {
  plot::Curve c;
  c.label = label;
  c.points = false;
  c.dashed = true;
  for (std::size_t i = 0; i < list.size(); i += stride) {
    c.x.push_back(static_cast<double>(i / stride));
    c.y.push_back(correlation ? list[i].correlation() : list[i].variance);
  }
  return c;
}

plot::Curve curve(const std::string& label, const check::MeasuredProfile& profile,
                  std::size_t depth, check::Estimate check::MeasuredProfile::Estimates::*quantity) {
  plot::Curve c;
  c.label = label;
  for (std::size_t l = 0; l <= depth; ++l) {
    add_point(c, static_cast<double>(l), profile.at(stream_place(static_cast<long>(l))).*quantity);
  }
  return c;
}

/// The results for a model: moments by averages and, with --measure, token by token and measured.
struct Findings {
  propagation::Profile averages;
  propagation::Profile by_token;
  Measured measured;

  bool has_measurement() const { return !by_token.forward.empty(); }
};

Section profile_of(const Findings& f) {
  Section section{"profile", "Moments before each layer, and after the last", {}};
  for (std::size_t l = 0; l <= f.averages.depth(); ++l) {
    const propagation::SignalMoments& x = f.averages.forward_at(l);
    const propagation::SignalMoments& g = f.averages.gradient_at(l);
    Cells row{{"layer", static_cast<long>(l)},
              {"variance", x.variance},
              {"correlation", x.correlation()},
              {"gradient", g.variance},
              {"gradient_correlation", g.correlation()}};
    if (f.has_measurement()) {
      const std::string place = stream_place(static_cast<long>(l));
      const check::MeasuredProfile::Estimates forward = f.measured.forward.at(place);
      const check::MeasuredProfile::Estimates backward = f.measured.backward.at(place);
      put(row, "measured_variance", forward.variance);
      put(row, "measured_correlation", forward.correlation);
      put(row, "measured_gradient", backward.variance);
      put(row, "measured_gradient_correlation", backward.correlation);
      row.emplace_back("variance_by_token", f.by_token.forward_at(l).variance);
      row.emplace_back("correlation_by_token", f.by_token.forward_at(l).correlation());
      row.emplace_back("gradient_by_token", f.by_token.gradient_at(l).variance);
      row.emplace_back("gradient_correlation_by_token", f.by_token.gradient_at(l).correlation());
    }
    section.rows.push_back(row);
  }
  return section;
}

Section summary_of(const propagation::Profile& p, const propagation::SignalMoments& input) {
  const std::size_t depth = p.depth();
  return {"summary",
          "Whole model",
          {{{"input_variance", input.variance},
            {"input_correlation", input.correlation()},
            {"forward_growth", p.forward_at(depth).variance / p.forward_at(0).variance},
            {"gradient_growth", p.gradient_at(0).variance / p.gradient_at(depth).variance},
            {"mean_sensitivity", propagation::mean_sensitivity(p)},
            {"median_sensitivity", propagation::median_sensitivity(p)}}}};
}

Section agreement_of(const Findings& f) {
  Section section{"agreement", "Prediction against measurement, mean over layers", {}};
  const auto add = [&](const char* theory, const char* name,
                       const std::vector<propagation::SignalMoments>& list,
                       const check::MeasuredProfile& of) {
    std::vector<double> predicted;
    for (std::size_t i = 0; i < list.size(); i += f.averages.blocks_per_layer) {
      predicted.push_back(list[i].variance);
    }
    const Agreement a = agreement(predicted, of);
    section.rows.push_back({{"theory", theory},
                            {"variance", name},
                            {"relative_error", a.relative},
                            {"log_error", a.log},
                            {"r2", a.r2}});
  };
  add("averages", "forward", f.averages.forward, f.measured.forward);
  add("averages", "gradient", f.averages.gradient, f.measured.backward);
  add("token by token", "forward", f.by_token.forward, f.measured.forward);
  add("token by token", "gradient", f.by_token.gradient, f.measured.backward);
  return section;
}

Section warnings_of(const propagation::Layers& layers, const propagation::Profile& p) {
  Section section{"warnings", "Warnings", {}};
  for (const propagation::Warning& warning : propagation::warnings(layers, p)) {
    section.rows.push_back(
        {{"about", warning.serious ? "model" : "profile"}, {"text", warning.text}});
  }
  return section;
}

plot::Figure figure_of(const std::string& title, const Findings& f) {
  plot::Figure figure;
  figure.title = title;
  const auto add = [&](const char* name, const std::vector<propagation::SignalMoments>& averages,
                       const std::vector<propagation::SignalMoments>& by_token,
                       const check::MeasuredProfile& measured,
                       check::Estimate check::MeasuredProfile::Estimates::*quantity,
                       bool correlation) {
    const std::size_t stride = f.averages.blocks_per_layer;
    plot::Panel panel;
    panel.title = name;
    panel.x_label = "layer";
    panel.log_y = !correlation;
    if (f.has_measurement()) {
      panel.curves.push_back(curve("token by token", by_token, stride, correlation));
      panel.curves.push_back(curve("measured", measured, f.averages.depth(), quantity));
    }
    panel.curves.push_back(curve("predicted", averages, stride, correlation));
    figure.panels.push_back(panel);
  };
  add("variance of the stream", f.averages.forward, f.by_token.forward, f.measured.forward,
      &check::MeasuredProfile::Estimates::variance, false);
  add("variance of its gradient", f.averages.gradient, f.by_token.gradient, f.measured.backward,
      &check::MeasuredProfile::Estimates::variance, false);
  add("correlation of tokens", f.averages.forward, f.by_token.forward, f.measured.forward,
      &check::MeasuredProfile::Estimates::correlation, true);
  return figure;
}

/// A section whole in the files, and an excerpt of about a dozen layers for people.
void add_layers(Report& report, Section whole, std::size_t depth) {
  Section excerpt = whole;
  const long every = std::max(1L, static_cast<long>(depth) / 12);
  std::erase_if(excerpt.rows, [&](const Cells& row) {
    const long layer = std::get<long>(row[0].second);
    return layer % every != 0 && layer != static_cast<long>(depth);
  });
  excerpt.in_file = false;
  whole.in_text = false;
  report.sections.push_back(std::move(excerpt));
  report.sections.push_back(std::move(whole));
}

/// The moments of the embedding, with --input-correlation its own.
propagation::SignalMoments input_of(const Settings& s, const Subject& subject,
                                    const propagation::Conditions& c) {
  const propagation::SignalMoments input = propagation::embedding(subject.plan, c, subject.data);
  if (!(input.variance > 0)) {
    throw InvalidInput("embedding", "variance 0", "embeddings that differ");
  }
  if (!s.input_correlation) return input;
  return propagation::correlated(input.variance, *s.input_correlation * (1 - c.dropout));
}

Report run(Settings s) {
  train::Settings& m = s.model;
  if (s.input_correlation) inform_rule(m, *s.input_correlation);
  const Subject subject = subject_of(m);
  const propagation::Conditions c = conditions_of(m, subject.tokens);
  const propagation::SignalMoments input = input_of(s, subject, c);
  const propagation::Layers layers = propagation::plan_layers(subject.plan, c);
  Findings found;
  found.averages = propagation::predict(subject.plan, c, subject.data, input);
  long measured = 0;
  if (s.measure) {
    found.by_token = batch_profile(subject, c);
    frame::Progress progress("models", s.seeds);
    found.measured = measure_depth(m, s.seeds, [&](double loss) {
      return progress.done(1, fmt::format("loss {:.4g}", loss));
    });
    measured = progress.count();
  }

  const std::size_t depth = found.averages.depth();
  Report report;
  add_layers(report, variances_of(layers), depth);
  add_layers(report, profile_of(found), depth);
  report.sections.push_back(summary_of(found.averages, input));
  if (s.measure) report.sections.push_back(agreement_of(found));
  const Section warnings = warnings_of(layers, found.averages);
  report.sections.push_back(warnings);
  const bool serious =
      std::any_of(warnings.rows.begin(), warnings.rows.end(),
                  [](const Cells& row) { return std::get<std::string>(row[0].second) == "model"; });
  report.verdict = serious ? check::Verdict::fail : check::Verdict::pass;
  report.reason = serious ? "moments leave their bounds, see the warnings"
                          : "moments stay in bounds through " + std::to_string(depth) + " layers";
  if (s.measure && measured < s.seeds) stopped_early(report, measured, s.seeds);
  report.figure = figure_of("Size and correlation of the signal through " + std::to_string(depth) +
                                " layers: " + m.rule + ", " +
                                std::string(word(train::placement_words, *m.placement)) + "-norm",
                            found);
  return report;
}

}  // namespace

scalewise::frame::Program scalewise::frame::program() {
  const auto s = std::make_shared<::Settings>();
  s->model.rule = "deep-scale-lm";
  s->model.depth = 192;
  s->model.width = 256;
  s->model.dropout = 0.1;
  s->model.activation = Activation::relu;
  s->model.batch = 8;
  s->model.warmup = 0;
  Program program{"deep_init",
                  "Initial variances of a deep model, and its moments layer by layer."};
  Options& o = *program.options;
  add_deep_options(o, *s);
  program.check = [s, &o] {
    if (o.given("--seeds") && !s->measure)
      throw InvalidInput("--seeds", "(given)", "it with --measure", "nothing else is random");
    train::Settings& m = s->model;
    require_own_variances(m.rule);
    train::settle(m);
    m.causal = !s->bidirectional;
    if (!m.digits.empty()) m.text.clear();
  };
  make_report(program, [s] { return ::run(*s); });
  return program;
}
