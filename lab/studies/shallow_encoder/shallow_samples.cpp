// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// shallow_samples: conditions of the convergence theorem of a shallow encoder over numbers of samples
// and widths; lab/studies/shallow_encoder/README.md has the table.
//
//   shallow_samples --rule shallow-ntk --tau0 1 --inputs 4,8,16 --sizes 16,64,256

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "check/report.hpp"
#include "frame/progress.hpp"
#include "frame/signals.hpp"
#include "lab/programs/check/for_each_run.hpp"
#include "lab/programs/kernel/shallow.hpp"
#include "scalewise/kernels/shallow_encoder.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::experiment;
using Eigen::MatrixXd;

struct Settings {
  std::string rule = "shallow-lecun";
  double tau0 = 0.5;
  std::vector<long> samples{4, 8, 16, 32, 64};
  std::vector<long> sizes{16, 32, 64, 128, 256, 512, 1024};
  long seeds = 4;
  long steps = 50;
  double rate = 1;
  ShallowDataSettings data{.features = 16};
};

/// How far a network is from the theorem's conditions; λ is the smallest eigenvalue of the part of the
/// tangent kernel that belongs to w_O.
struct Conditions {
  double initial = 0;  // λ at the start over that of the limit: the proof wants 1/4
  double kept = 1;     // the lowest λ in training over that at the start
  double bound = 0;    // the largest loss_t/((1 - γ λ/2)^t loss_0): the theorem says at most 1
  bool diverged = false;
};

Conditions conditions_of(const Settings& s, const ShallowData& data, long width, long seed) {
  const kernels::ShallowScales scales = shallow_scales_of(s.rule, s.tau0, width, s.data);
  kernels::ShallowEncoder encoder(s.data.features, scales, static_cast<std::uint64_t>(seed));
  const auto kernel = [&] { return encoder.tangent_kernel(encoder.gradients(data.inputs)); };
  const kernels::ShallowKernel first = kernel();
  const MatrixXd scores =
      s.tau0 == 1 ? MatrixXd::Zero(s.data.features, s.data.features).eval() : encoder.scores();
  const kernels::ShallowKernel limit = kernels::shallow_kernel(data.inputs, scales, scores);
  const double at_start = std::max(kernels::smallest_eigenvalue(first.output), 0.0);
  Conditions c;
  c.initial = at_start / kernels::smallest_eigenvalue(limit.output);
  if (at_start == 0) return c.kept = 0, c;
  const double rate = s.rate / -kernels::smallest_eigenvalue(-first.total());
  double allowed = (encoder.outputs(data.inputs) - data.targets).squaredNorm() / 2;
  for (long step = 1; step <= s.steps; ++step) {
    encoder.step(data.inputs, data.targets, rate);
    allowed *= 1 - rate * at_start / 2;
    const double loss = (encoder.outputs(data.inputs) - data.targets).squaredNorm() / 2;
    if (!std::isfinite(loss)) return c.kept = 0, c.diverged = true, c;
    c.bound = std::max(c.bound, loss / allowed);
    if ((step & (step - 1)) != 0 && step != s.steps) continue;
    c.kept = std::min(c.kept, kernels::smallest_eigenvalue(kernel().output) / at_start);
  }
  return c;
}

Report run(const Settings& s) {
  Section section{"networks", "Conditions of the theorem, network by network"};
  double cost = 0;
  for (const long width : s.sizes) {
    for (const long samples : s.samples) cost += static_cast<double>(width * samples * s.seeds);
  }
  frame::Progress progress("networks",
                           s.seeds * static_cast<long>(s.sizes.size() * s.samples.size()), cost);
  for (const long samples : s.samples) {
    Settings now = s;
    now.data.inputs = samples;
    const ShallowData data = draw_shallow_data(now.data);
    const long finished = for_each_run(s.sizes, s.seeds, [&](long width, long seed) {
      const Conditions c = conditions_of(now, data, width, seed);
      section.rows.push_back({{"samples", samples},
                              {"width", width},
                              {"seed", seed},
                              {"initial", c.initial},
                              {"kept", c.kept},
                              {"bound", c.bound},
                              {"diverged", c.diverged ? 1L : 0L}});
      progress.done(static_cast<double>(width * samples));
    });
    if (finished < s.seeds * static_cast<long>(s.sizes.size())) throw frame::Interrupted{};
  }
  return {{section}, {}, check::Verdict::pass, s.rule};
}

}  // namespace

scalewise::frame::Program scalewise::frame::program() {
  const auto s = std::make_shared<::Settings>();
  Program program{"shallow_samples",
                  "How wide a shallow encoder has to be for the convergence theorem to hold."};
  Options& o = *program.options;
  o.add("--rule", s->rule, "name of a rule, see plan --list-rules")
      .words({"shallow-lecun", "shallow-he", "shallow-ntk"});
  o.add("--tau0", s->tau0, "0.5 or 1: scores are times width^-tau0").from(0.5).to(1);
  o.add("--inputs", s->samples, "inputs of the kernel").from(2).to(1000).increasing();
  o.add("--sizes", s->sizes, "sizes to compare (widths)").from(1).to(1'000'000).increasing();
  o.add("--seeds", s->seeds, "runs of each model, with a seed each").from(1).to(1000);
  o.add("--steps", s->steps, "optimizer steps").from(1).to(1'000'000);
  o.add("--rate", s->rate,
        "learning rate (in units of 1/largest eigenvalue of the kernel at initialization)")
      .above(0)
      .below(2);
  make_report(program, [s] { return ::run(*s); });
  return program;
}
