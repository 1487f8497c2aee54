// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
/// scalewise: from a transformer's shape to every tensor's initial variance, learning rate, decay
/// and multiplier, under a published rule. This header needs the standard library only. The others to include are
/// names.hpp, theory.hpp, json.hpp, format.hpp, check.hpp, testing.hpp, nn.hpp, kernels.hpp and torch.hpp; headers in
/// folders move and change without notice.
#pragma once

#include "scalewise/messages/version.hpp"
#ifdef SCALEWISE_VERSION  // else the compiler has said why

#include "scalewise/architecture/base_like.hpp"
#include "scalewise/architecture/from_descriptions.hpp"
#include "scalewise/architecture/group.hpp"
#include "scalewise/architecture/operations.hpp"
#include "scalewise/architecture/presets.hpp"
#include "scalewise/architecture/same_growth.hpp"
#include "scalewise/architecture/shape.hpp"
#include "scalewise/architecture/shape_fields.hpp"
#include "scalewise/architecture/tensor.hpp"
#include "scalewise/architecture/values.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/numeric/exponent.hpp"
#include "scalewise/plan/check_plan.hpp"
#include "scalewise/plan/constants.hpp"
#include "scalewise/plan/fold.hpp"
#include "scalewise/plan/initial_values.hpp"
#include "scalewise/plan/make_plan.hpp"
#include "scalewise/plan/plan.hpp"
#include "scalewise/plan/plan_request.hpp"
#include "scalewise/plan/set_up_warnings.hpp"
#include "scalewise/plan/single_rate.hpp"
#include "scalewise/plan/start.hpp"
#include "scalewise/policy/all.hpp"
#include "scalewise/policy/formulation.hpp"
#include "scalewise/policy/muon_names.hpp"
#include "scalewise/policy/policy.hpp"
#include "scalewise/policy/row.hpp"
#include "scalewise/policy/rule.hpp"
#include "scalewise/policy/rule_id.hpp"
#include "scalewise/scaling/formula.hpp"
#include "scalewise/scaling/scaling.hpp"
#include "scalewise/scaling/symbol.hpp"

#endif
