// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "check/network.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>

#include "check/batch_statistics.hpp"
#include "check/logit_gradient.hpp"
#include "check/network_plan.hpp"
#include "instances/transformer.hpp"
#include "scalewise/nn/initialize.hpp"
#include "scalewise/nn/normalize_matrices.hpp"
#include "scalewise/nn/optimizer.hpp"
#include "train/batches.hpp"
#include "train/model.hpp"

namespace scalewise::experiment {

namespace {

Array array_of(const ConstView<float>& view) {
  if (view.outerStride() != view.cols() && view.rows() > 1) {
    throw InvalidInput("intermediate", "a block of a matrix", "a whole matrix");
  }
  return {view.data(), static_cast<std::size_t>(view.rows()),
          static_cast<std::size_t>(view.cols())};
}

}  // namespace

struct Network::Parts {
  explicit Parts(const train::Settings& s)
      : settings(s),
        data(train::read_data(s)),
        plan(network_plan(s, data)),
        model(plan, train::config_of(s)),
        optimizer(plan, train::optimizer_of(s)),
        schedule(train::schedule_of(s)),
        fixed(train::first_validation_batch<float>(s, data)) {
    nn::initialize(model.parameters(), plan, s.seed, train::base_deviation(s, plan));
    nn::normalize_matrices(model.parameters(), plan);
  }

  train::Settings settings;
  train::Data data;
  Plan plan;
  nn::Transformer<float> model;
  nn::PlannedOptimizer<float> optimizer;
  nn::Schedule schedule;
  nn::Batch<float> fixed;
  long steps = 0;
};

Network::Network(const train::Settings& settings) : parts_(std::make_unique<Parts>(settings)) {}
Network::~Network() = default;
Network::Network(Network&&) noexcept = default;
Network& Network::operator=(Network&&) noexcept = default;

const Plan& Network::plan() const { return parts_->plan; }

std::span<const float> Network::values() const {
  const View<float> all = parts_->model.parameters().values();
  return {all.data(), static_cast<std::size_t>(all.size())};
}

Array Network::tensor(std::size_t entry) const {
  return array_of(dense::read(parts_->model.parameters().value(entry)));
}

double Network::step() {
  Parts& p = *parts_;
  const auto batch = train::training_batch<float>(p.settings, p.data, p.steps);
  const double loss = p.model.loss_and_gradient(batch, static_cast<std::uint64_t>(p.steps));
  p.optimizer.step(p.model.parameters(), p.schedule.factor(p.steps));
  nn::normalize_matrices(p.model.parameters(), p.plan);
  ++p.steps;
  return loss;
}

std::size_t Network::sequences() const { return static_cast<std::size_t>(parts_->fixed.size); }

std::size_t Network::predictions() const { return parts_->fixed.targets.size(); }

propagation::Data Network::statistics() const { return batch_statistics(parts_->fixed); }

double Network::loss() { return parts_->model.loss(parts_->fixed); }

double Network::observe(const Observer& observer, bool gradients) {
  Parts& p = *parts_;
  p.model.observe(
      [&](std::string_view name, nn::Observed quantity, const ConstView<float>& values) {
        observer(name, quantity == nn::Observed::gradient, array_of(values));
      });
  const double loss = gradients ? p.model.loss_and_gradient(p.fixed) : p.model.loss(p.fixed);
  p.model.observe({});
  return loss;
}

std::vector<int> Network::frequent_tokens(std::size_t count) const {
  const auto vocab = static_cast<std::size_t>(parts_->plan.shape.vocab);
  std::vector<long> often(vocab);
  for (const int token : parts_->data.tokens.train) ++often[static_cast<std::size_t>(token)];
  std::vector<int> tokens(vocab);
  std::iota(tokens.begin(), tokens.end(), 0);
  std::stable_sort(tokens.begin(), tokens.end(), [&](int a, int b) {
    return often[static_cast<std::size_t>(a)] > often[static_cast<std::size_t>(b)];
  });
  tokens.resize(std::min(count, vocab));
  return tokens;
}

void Network::logit_gradient(std::size_t sequence, int token, std::span<float> gradient) {
  Parts& p = *parts_;
  const auto tokens = static_cast<std::ptrdiff_t>(p.fixed.tokens.size() / sequences());
  const std::ptrdiff_t first = static_cast<std::ptrdiff_t>(sequence) * tokens;
  nn::Batch<float> batch;
  batch.size = 1;
  batch.tokens.assign(p.fixed.tokens.begin() + first, p.fixed.tokens.begin() + first + tokens);
  batch.targets.assign(p.fixed.targets.begin() + first, p.fixed.targets.begin() + first + tokens);
  experiment::logit_gradient(p.model, std::move(batch), tokens - 1, token);
  const View<float> all = p.model.parameters().gradients();
  std::copy(all.data(), all.data() + all.size(), gradient.begin());
}

}  // namespace scalewise::experiment
