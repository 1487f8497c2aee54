# SPDX-FileCopyrightText: The scalewise authors
# SPDX-License-Identifier: MIT

# Public headers that need the standard library only.
set(SCALEWISE_HEADERS
  include/scalewise/core/axis.hpp
  include/scalewise/core/correlation.hpp
  include/scalewise/core/error.hpp
  include/scalewise/core/exponent.hpp
  include/scalewise/core/group.hpp
  include/scalewise/core/nearest.hpp
  include/scalewise/core/policy.hpp
  include/scalewise/core/policy_view.hpp
  include/scalewise/core/power.hpp
  include/scalewise/core/print.hpp
  include/scalewise/core/rule.hpp
  include/scalewise/core/scaling.hpp
  include/scalewise/core/shape.hpp
  include/scalewise/core/shape_set.hpp
  include/scalewise/core/source.hpp
  include/scalewise/core/spelling.hpp
  include/scalewise/core/tensor.hpp
  include/scalewise/core/values.hpp
  include/scalewise/formulation.hpp
  include/scalewise/io/file.hpp
  include/scalewise/io/plan_table.hpp
  include/scalewise/io/table.hpp
  include/scalewise/make_plan.hpp
  include/scalewise/plan.hpp
  include/scalewise/policy/all.hpp
  include/scalewise/policy/bert.hpp
  include/scalewise/policy/complete_p.hpp
  include/scalewise/policy/deep_norm.hpp
  include/scalewise/policy/deep_scale_lm.hpp
  include/scalewise/policy/deep_scale_lm_simple.hpp
  include/scalewise/policy/depth_mup.hpp
  include/scalewise/policy/ds_init.hpp
  include/scalewise/policy/gpt2.hpp
  include/scalewise/policy/he.hpp
  include/scalewise/policy/layer_scale.hpp
  include/scalewise/policy/maximal_update.hpp
  include/scalewise/policy/meta_principled.hpp
  include/scalewise/policy/neural_tangent.hpp
  include/scalewise/policy/ngpt.hpp
  include/scalewise/policy/ngpt_complete_p.hpp
  include/scalewise/policy/ngpt_depth_mup.hpp
  include/scalewise/policy/normalized.hpp
  include/scalewise/policy/nu_gpt.hpp
  include/scalewise/policy/nu_gpt_full_align.hpp
  include/scalewise/policy/pytorch.hpp
  include/scalewise/policy/rezero.hpp
  include/scalewise/policy/shallow_encoder.hpp
  include/scalewise/policy/skip_init.hpp
  include/scalewise/policy/standard.hpp
  include/scalewise/policy/xavier.hpp
  include/scalewise/presets.hpp
  include/scalewise/registry.hpp
  include/scalewise/scalewise.hpp
)

# Public headers that need nlohmann-json.
set(SCALEWISE_JSON_HEADERS
  include/scalewise/io/config_json.hpp
  include/scalewise/io/json_reader.hpp
  include/scalewise/io/parse_json.hpp
  include/scalewise/io/plan_json.hpp
  include/scalewise/io/shape_json.hpp
)

# Public headers that need Eigen.
set(SCALEWISE_NN_HEADERS
  include/scalewise/nn/activation.hpp
  include/scalewise/nn/attention.hpp
  include/scalewise/nn/blocks.hpp
  include/scalewise/nn/config.hpp
  include/scalewise/nn/initialize.hpp
  include/scalewise/nn/linear.hpp
  include/scalewise/nn/loss.hpp
  include/scalewise/nn/matrix.hpp
  include/scalewise/nn/norm.hpp
  include/scalewise/nn/parallel.hpp
  include/scalewise/nn/parameters.hpp
  include/scalewise/nn/random.hpp
  include/scalewise/nn/residual.hpp
  include/scalewise/nn/stack.hpp
  include/scalewise/nn/transformer.hpp
  include/scalewise/nn/weight.hpp
)
