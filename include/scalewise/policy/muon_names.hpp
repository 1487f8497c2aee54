// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "scalewise/policy/optimizer.hpp"

namespace scalewise::policy {

/// The word of a code base for the factor by which its Muon multiplies its steps.
struct MuonName {
  std::string_view code;
  std::string_view name;
  Optimizer optimizer;
};

/// The names that people know Muons by: the value of an option, or the code base where it has no such option.
/// A name is written as there: scion's Spectral and the spectral of NVIDIA are two factors.
/// Source:   torch/optim/_muon.py of PyTorch 098e03f, _adjust_lr, with spectral_unclamped since pull request 187402;
///           torchtitan/components/muon_adapter.py 0096a05; emerging_optimizers/orthogonalized_optimizers/muon.py
///           033065f of NVIDIA-NeMo, get_muon_scale_factor, which Megatron-LM's
///           megatron/core/optimizer/emerging_optimizers.py 000a717 calls; dion/megabatch_base.py 3c15037,
///           adjust_lr_*; optax/contrib/_muon.py 039ec0c and 2edbcbe (consistent_rms); Moonlight's
///           examples/toy_train.py abaa96e; scion.py a86f93e, Spectral; nanochat/optim.py 0e4b3fa;
///           crates/burn-optim/src/optim/muon.rs 050c750
inline constexpr std::array muon_names{
    MuonName{"PyTorch", "original", muon_original},
    MuonName{"PyTorch", "match_rms_adamw", muon_match_adamw},
    MuonName{"PyTorch", "spectral_unclamped", muon_fan_ratio},
    MuonName{"torchtitan", "original", muon_original},
    MuonName{"torchtitan", "match_rms_adamw", muon_match_adamw},
    MuonName{"torchtitan", "spectral_unclamped", muon_fan_ratio},
    MuonName{"Megatron-LM", "spectral", muon_spectral},
    MuonName{"Megatron-LM", "shape_scaling", muon_original},
    MuonName{"Megatron-LM", "unit_rms_norm", muon_fan_ratio},
    MuonName{"Emerging-Optimizers", "spectral", muon_spectral},
    MuonName{"Emerging-Optimizers", "shape_scaling", muon_original},
    MuonName{"Emerging-Optimizers", "unit_rms_norm", muon_fan_ratio},
    MuonName{"dion", "spectral_norm", muon_fan_ratio},
    MuonName{"dion", "rms_norm", muon_match_adamw},
    MuonName{"optax without consistent_rms", "optax", muon_original},
    MuonName{"optax", "consistent_rms", muon_spectral},
    MuonName{"Moonlight", "moonlight", muon_match_adamw},
    MuonName{"scion", "scion", muon_fan_ratio},
    MuonName{"scion", "Spectral", muon_fan_ratio},
    MuonName{"nanochat", "nanochat", muon_original},
    MuonName{"modded-nanogpt", "modded-nanogpt", muon_original},
    MuonName{"burn", "Original", muon_original},
    MuonName{"burn", "MatchRmsAdamW", muon_match_adamw},
};

/// The code bases where an optimizer has a name.
inline std::vector<std::string> muons_named(std::string_view name) {
  std::vector<std::string> code;
  for (const MuonName& known : muon_names) {
    if (known.name == name) code.emplace_back(known.code);
  }
  return code;
}

/// The id of an optimizer by any of its names.
/// Throws:   InvalidInput naming the field and the closest name.
inline std::string optimizer_id(std::string_view name, const std::string& field = "optimizer") {
  const std::vector<std::string> ids = names_of(known_optimizers);
  for (const std::string& id : ids) {
    if (id == name) return id;
  }
  std::vector<std::string> all = ids;
  for (const MuonName& known : muon_names) {
    if (known.name == name) return std::string(known.optimizer.name);
    all.emplace_back(known.name);
  }
  std::string hint = messages::did_you_mean(name, all);
  if (name == "muon" || name == "Muon" || name == "lion" || name == "Lion" || hint.empty()) {
    hint =
        "name a Muon by its own factor or by its option, such as original (torch.optim.Muon), "
        "spectral (Megatron-LM) or spectral_norm (dion), and another optimizer by one whose steps "
        "are of the same size, such as sign-sgd for Lion";
  }
  throw InvalidInput(field, messages::printable(name), messages::listed(ids), hint);
}

}  // namespace scalewise::policy
