// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "train/options.hpp"

#include "scalewise/policy/muon_names.hpp"
#include "scalewise/policy/rule_id.hpp"

namespace scalewise::train {

void add_model_options(frame::Options& o, Settings& s) {
  o.add("--placement", s.placement, placement_words,
        "place of the norms (not given: as in the rule's text, or pre)");
  o.add("--norm", s.norm, norm_words, "normalization");
  o.add("--activation", s.activation, architecture::activation_words,
        "activation of the MLP (not given: as in the rule's text, or gelu)");
  o.add("--rotary", s.rotary,
        "rotary instead of learned positions (not given: as in the rule's text, or learned)");
  o.add("--parallel", s.parallel, "attention and MLP read the same stream, as in GPT-NeoX");
  o.add("--gates", s.gates, nn::gates_words, "what weighs the outputs of experts");
  o.add("--score-cap", s.score_cap, "c of c tanh(x/c) for attention scores x (0: none)")
      .from(0)
      .below(1e30);
  o.add("--logit-cap", s.logit_cap, "c of c tanh(x/c) for logits x (0: none)").from(0).below(1e30);
}

void add_optimizer_option(frame::Options& o, Settings& s) {
  o.add("--optimizer", s.optimizer, optimizer_words, "optimizer").names(policy::optimizer_id);
}

void add_schedule_options(frame::Options& o, Settings& s) {
  o.add("--epsilon", s.epsilon, "what Adam adds to the root (before the plan's factors)")
      .from(0)
      .below(1e30);
  o.add("--warmup", s.warmup, "steps of linear warm-up (-1: a twentieth of --steps)").from(-1);
  o.add("--schedule", s.schedule, schedule_words, "learning rate after the warm-up");
  o.add("--min-rate", s.min_rate,
        "learning rate at the end of the schedule, as a fraction of the peak")
      .from(0)
      .to(1);
}

void add_decay_options(frame::Options& o, Settings& s) {
  o.add("--weight-decay", s.weight_decay, "weight decay, before the plan's factors")
      .from(0)
      .below(1e30);
  o.add("--decay", s.decay, policy::decay_words, "form of weight decay");
}

}  // namespace scalewise::train
