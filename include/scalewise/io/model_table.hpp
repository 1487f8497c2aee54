// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <string_view>

namespace scalewise::detail {

/// A family of models as text, one line for each tensor of a layer, in parts that families share.
///
///     width n = hidden_size           the width; depth L = …: the number of layers
///     grows H = num_attention_heads   a size in proportion to the width
///     keys K = num_key_value_heads or H        the same, but a single key head stays one; of keys the first given
///     let C = head_dim or n/H         a size that does not grow, or in small letters a flag; "or null H" is for a key
///                                     that is null, "or -1 P" for one that is -1 or missing
///     let E = num_local_experts       the number of experts, which a base may have fewer of
///     deep M = encoder_layers         a number of layers in proportion to the depth
///     layer sparse = CONDITION        a flag of each layer
///     word gated = KEY WORDS | WORDS  whether the key has one of the words before the bar, or is "missing"; where there
///                                     is a bar, it has no others than these
///     skip rope_theta                 keys that change no tensor and no product
///     only qk_norm false              a key with one value that the table describes; needs: and that must be given
///     note logit_scale TEXT           a key that the code multiplies by; says TEXT: what it does without a key
///     layers model.layers … end       what stands between is in each layer l, with this prefix and the number;
///                                     layers NAME M: of another number of layers than L
///     embedding NAME rows columns     NAME.weight
///     linear NAME inputs outputs +    NAME.weight, and NAME.bias; +FLAG: where the flag is set; conv1d: inputs first
///     norm NAME size +                NAME.weight, and NAME.bias
///     linear:eoi NAME sizes           any kind with its axes, and the name whole
///
/// A key of an object in the configuration is OBJECT.KEY.
/// After the sizes: `tied NAME` where `tie` is 1, `as ROLE` or `as ROLE:CONDITION`, `if CONDITION`.
struct ModelTable {
  std::string_view type;
  std::array<std::string_view, 10> parts;
};

}  // namespace scalewise::detail
