// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Signal propagation: moments of activations and gradients, predicted from a plan without a model.
#pragma once

#include "scalewise/propagation/depth_methods.hpp"
#include "scalewise/propagation/embedding.hpp"
#include "scalewise/propagation/fold.hpp"
#include "scalewise/propagation/growth.hpp"
#include "scalewise/propagation/layer_norm.hpp"
#include "scalewise/propagation/model.hpp"
#include "scalewise/propagation/plan_layers.hpp"
#include "scalewise/propagation/profile.hpp"
#include "scalewise/propagation/propagate.hpp"
#include "scalewise/propagation/softmax.hpp"
#include "scalewise/propagation/stable.hpp"
#include "scalewise/propagation/warnings.hpp"
