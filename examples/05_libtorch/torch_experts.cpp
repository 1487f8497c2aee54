// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// A plan for a module that no shape describes, for docs/any_model.md: a model of another width says the roles of its
// tensors.

#include <cstddef>
#include <iostream>
#include <scalewise/scalewise.hpp>
#include <scalewise/torch.hpp>
#include <vector>

#include "experts.hpp"

int main() {
  using namespace scalewise;
  torch::set_num_threads(1);
  torch_experts::Experts model(256, 2), base(64, 2);
  const auto global = torch::optim::AdamWOptions(1e-2).weight_decay(0.1);

  const std::vector<libtorch::GivenKind> kinds{{"*.up", "linear:eoi"}, {"*.down", "linear:eoi"}};
  const DescribedModel roles = from_descriptions(libtorch::describe(*model, kinds),  //
                                                 libtorch::describe(*base, kinds));
  const PlanRequest request{.model = roles.shape, .base = roles.base, .extras = roles.tensors};
  const Plan plan = fold(make_plan(MaximalUpdate{}, request)).plan;
  libtorch::PlannedModule planned = libtorch::plan_module(*model, plan);
  libtorch::initialize(planned, /*seed=*/1, /*base_deviation=*/0.02);
  torch::optim::AdamW optimizer(libtorch::param_groups(planned, global));

  libtorch::check_optimizer(optimizer, planned, global);
  for (std::size_t i = 0; i < roles.tensors.size(); ++i) {
    std::cout << roles.tensors[i].name << ": " << roles.reasons[i] << '\n';
  }
  for (const auto& group : optimizer.param_groups()) {
    std::cout << "rate " << group.options().get_lr() << ": " << group.params().size()
              << " tensors\n";
  }
}
