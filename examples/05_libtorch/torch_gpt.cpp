// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Does a GPT in LibTorch follow a rule? It is trained for a few steps at several widths on a text, and the
// coordinate check judges it. With one learning rate for all, it fails. Lines that follow a plan are marked
// "scalewise", and those that record "records".
//
//   torch_gpt TEXT [one-rate]

#include <fstream>
#include <iostream>
#include <iterator>
#include <scalewise/check.hpp>
#include <scalewise/scalewise.hpp>
#include <string>
#include <utility>
#include <vector>

#include "gpt.hpp"

namespace {

using namespace scalewise;

Shape shape_of(long width) {
  Shape shape;
  shape.d_model = width;
  shape.depth = 2;
  shape.heads = width / 8;
  shape.context = 32;
  shape.vocab = 128;
  shape.tied_head = false;
  return shape;
}

/// Four sequences of a text, and what follows each of their bytes.
std::pair<at::Tensor, at::Tensor> batch_of(const std::string& text, std::uint64_t seed) {
  constexpr std::int64_t size = 4, tokens = 32;
  at::Tensor ids = at::empty({size, tokens + 1}, at::kLong);
  for (std::int64_t i = 0; i < size; ++i) {
    const std::size_t begin = 5000 * seed + 1000 * static_cast<std::size_t>(i);
    for (std::int64_t t = 0; t <= tokens; ++t) {
      ids[i][t] = std::int64_t{text.at(begin + static_cast<std::size_t>(t)) & 127};
    }
  }
  return {ids.slice(1, 0, tokens), ids.slice(1, 1, tokens + 1)};
}

check::Records train(const Plan& plan, const std::string& text, std::uint64_t seed, bool one_rate) {
  torch_gpt::Gpt model{torch_gpt::config_of(plan)};
  libtorch::PlannedModule planned =                           // scalewise
      libtorch::plan_module(*model, plan, dialect::nanogpt);  // scalewise
  libtorch::initialize(planned, seed, 0.2);                   // scalewise
  const auto global = torch::optim::AdamWOptions(0.01).weight_decay(0);
  torch::optim::AdamW optimizer(libtorch::param_groups(planned, global));  // scalewise
  libtorch::check_optimizer(optimizer, planned, global);                   // scalewise
  if (one_rate) {
    for (auto& group : optimizer.param_groups()) group.options().set_lr(0.01);
  }
  libtorch::ModuleRecorder recorder(planned, {plan.shape.d_model, seed});  // records
  model->recorder = &recorder;                                             // records
  const auto [inputs, targets] = batch_of(text, seed);
  for (int step = 0; step < 6; ++step) {
    optimizer.zero_grad();
    at::cross_entropy_loss(model->forward(inputs).flatten(0, 1), targets.flatten()).backward();
    recorder.step(optimizer);  // records
  }
  return recorder.records();
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) return std::cerr << "torch_gpt TEXT [one-rate]\n", 2;
  std::ifstream file(arguments[1], std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const bool one_rate = count > 2;
  torch::set_num_threads(1);

  check::Records records;
  std::vector<check::Member> family;
  for (const long width : {32L, 64L, 128L, 256L}) {
    const Plan plan =
        make_plan(MaximalUpdate{}, {.model = shape_of(width), .base = shape_of(32)});  // scalewise
    family.push_back({width, plan});
    const int seeds = width < 128 ? 6 : 3;
    for (int seed = 0; seed < seeds; ++seed) {
      records.merge(train(plan, text, static_cast<std::uint64_t>(seed), one_rate));
    }
  }
  const check::Report report = check::coordinate_check(records, family);
  std::cout << "verdict: " << to_string(report.verdict) << '\n';
  if (!report.diagnosis.empty()) std::cout << report.diagnosis << '\n';
  for (const std::string& line : report.missing) std::cout << "missing: " << line << '\n';
  for (const std::string& line : report.undecided) std::cout << "undecided: " << line << '\n';
  return report.verdict == check::Verdict::pass ? 0 : 1;
}
