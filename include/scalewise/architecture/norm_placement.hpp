// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/messages/words.hpp"

namespace scalewise {

/// Where the norms of a residual block stand.
/// Equation: pre:  y = λ x + β f(norm x);  post: y = norm(λ x + β f(x));  none: y = λ x + β f(x)
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), appendix E.
/// Differs:  its section 2.3 has the post-norm before the skip connection.
enum class NormPlacement { pre, post, none };

namespace architecture {

inline constexpr messages::Spelling<NormPlacement, 3> norm_placement_words{
    {{NormPlacement::pre, "pre"}, {NormPlacement::post, "post"}, {NormPlacement::none, "none"}}};

}  // namespace architecture

}  // namespace scalewise
