// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <string_view>

#include "scalewise/dense/matrix.hpp"

namespace scalewise::nn {

/// Whether an observer sees an intermediate itself or the gradient of the loss with respect to it.
enum class Observed { value, gradient };

/// Called with every named intermediate of a pass, in the order in which they are computed. The view
/// is the model's own memory: it holds until the call returns. Of a post-norm or normalized block
/// `input` is the stream itself, and its gradient is the part that comes through the block.
template <class Scalar>
using Observer =
    std::function<void(std::string_view name, Observed quantity, const ConstView<Scalar>& values)>;

}  // namespace scalewise::nn
