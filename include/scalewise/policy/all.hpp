// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/policy/bert.hpp"
#include "scalewise/policy/complete_p.hpp"
#include "scalewise/policy/deep_norm.hpp"
#include "scalewise/policy/deep_scale_lm.hpp"
#include "scalewise/policy/deep_scale_lm_simple.hpp"
#include "scalewise/policy/depth_mup.hpp"
#include "scalewise/policy/ds_init.hpp"
#include "scalewise/policy/gpt2.hpp"
#include "scalewise/policy/he.hpp"
#include "scalewise/policy/layer_scale.hpp"
#include "scalewise/policy/maximal_update.hpp"
#include "scalewise/policy/meta_principled.hpp"
#include "scalewise/policy/neural_tangent.hpp"
#include "scalewise/policy/ngpt.hpp"
#include "scalewise/policy/ngpt_complete_p.hpp"
#include "scalewise/policy/ngpt_depth_mup.hpp"
#include "scalewise/policy/nu_gpt.hpp"
#include "scalewise/policy/nu_gpt_full_align.hpp"
#include "scalewise/policy/pytorch.hpp"
#include "scalewise/policy/rezero.hpp"
#include "scalewise/policy/shallow_encoder.hpp"
#include "scalewise/policy/skip_init.hpp"
#include "scalewise/policy/standard.hpp"
#include "scalewise/policy/xavier.hpp"

namespace scalewise::policy {

/// Calls visit.template operator()<P>() for every shipped policy, in the order of the docs.
template <class Visitor>
constexpr void for_each_policy(Visitor&& visit) {
  const auto all = [&]<Policy... Ps>() { (visit.template operator()<Ps>(), ...); };
  all.template
  operator()<Standard, PyTorch, Gpt2, Bert, Xavier, He,                          // baselines
             NeuralTangent, MetaPrincipled, MaximalUpdate, DepthMup, CompleteP,  // width and depth
             NGpt, NGptDepthMup, NGptCompleteP, NuGpt, NuGptFullAlign,           // normalized
             DeepScaleLM, DeepScaleLMSimple, DeepNorm, DsInit, LayerScale, ReZero,  // depth
             SkipInit, ShallowLeCun, ShallowHe, ShallowNtk>();
}

}  // namespace scalewise::policy
