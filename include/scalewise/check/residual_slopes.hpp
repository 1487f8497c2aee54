// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "scalewise/architecture/observables.hpp"
#include "scalewise/check/scales.hpp"
#include "scalewise/check/slopes_state.hpp"

namespace scalewise::check {

namespace detail {

/// A transformer with residual blocks, walked through with slopes in place of numbers. Layers are
/// alike, so one stands for all; along the depth, what they add to the stream adds up.
class ResidualSlopes {
 public:
  ResidualSlopes(const Scales& scales, const Shape& shape, const GroupSlopes& change,
                 const Assumptions& assumptions)
      : s_(scales),
        change_(change),
        alignment_(assumptions.alignment),
        backward_(assumptions.backward),
        gated_(shape.gated_mlp),
        experts_(shape.experts > 0),
        chooses_(shape.experts_per_token < shape.experts),
        patches_(shape.input == Input::patch),
        tied_(shape.tied_head.value_or(false)),
        norms_(assumptions.norms),
        qk_norm_(norms_ && shape.qk_norm != QkNorm::none),
        branch_norm_(norms_ && shape.branch_norm),
        sharp_softmax_(assumptions.sharp_softmax),
        post_norm_(assumptions.post_norm) {}

  State walk(const Shape& shape) && {
    forward();
    backward();
    exact_starts(shape);
    return std::move(state_);
  }

 private:
  static constexpr double most_alike = 0.25;  // powers of two terms of one size

  // ---- the parts --------------------------------------------------------------------------------

  const Band& moved(Group group) const { return change_[static_cast<std::size_t>(group)]; }

  MovingMatrix matrix(Group group) const {
    const GroupExponents& g = s_.of(group);
    // Steps with singular values of one size are aligned with what made them.
    const bool by_matrix = g.normalization == policy::Normalization::by_matrix;
    return {g.multiplier,
            g.deviation,
            moved(group),
            g.fan_in,
            g.fan_out,
            by_matrix ? Band(1) : alignment_,
            omega(g.fan_out + (group == Group::expert_up ? s_.active_experts : 0))};
  }

  /// The change of a matrix's input may be aligned with it, unless it has as many outputs as inputs.
  Band omega(double fan_out) const {
    return {0.5, (std::max)(0.5, 1 - (s_.width > 0 ? fan_out / s_.width : 1) / 2)};
  }

  MovingMatrix head() const {
    const Group group = tied_ ? Group::token_embedding : Group::head;
    return {s_.logit_multiplier,
            s_.of(group).deviation,
            moved(group),
            s_.width,
            0,
            alignment_,
            omega(0)};
  }

  /// A look-up, or the projection of a patch.
  Moving table(Group group, const Band& multiplier) const {
    return {multiplier + s_.of(group).deviation, multiplier + moved(group)};
  }

  /// A gain or bias; it starts at its mean.
  Moving vector(Group group) const {
    const GroupExponents& g = s_.of(group);
    if (!g.present) return {};
    return {g.multiplier + g.mean, g.multiplier + moved(group)};
  }

  /// The gain or bias of one tensor, whose numbers may not be those of its group.
  Moving own_vector(const std::string& name, Group group) const {
    const auto found = s_.tensors.find(name);
    if (found == s_.tensors.end() || !found->second.present) return {};
    const GroupExponents& g = found->second;
    Band change = moved(group);
    if (!change.is_zero()) {
      const bool follows = g.normalization == policy::Normalization::none;
      change = follows ? change + (g.rate.low - s_.of(group).rate.low) : g.rate;
    }
    return {g.multiplier + g.mean, g.multiplier + change};
  }

  /// A bias starts at zero; what it moves may be much smaller than what the matrix does.
  Moving linear(Group group, const Moving& x) const {
    const Moving product = matrix(group).times(x);
    const Moving bias = own_vector(std::string(to_string(group)) + "_bias", Group::hidden_bias);
    return {sum(product.start, bias.start), mixture(product.change, bias.change)};
  }

  Moving normalized(const Moving& x, Group gain, Group bias) const {
    if (!norms_) return x;
    const Moving unit{0, turn(x)};
    const Moving scaled = s_.of(gain).present ? product(unit, vector(gain)) : unit;
    return sum(scaled, vector(bias));
  }

  Moving inner_gain(const std::string& what) const {
    return s_.tensors.contains(what + "_norm_gain")
               ? own_vector(what + "_norm_gain", Group::norm_gain)
               : Moving{0, Band::zero()};
  }

  /// A query, a key or the output of a branch, and what its norm, if there is one, makes of it.
  Moving inner_normalized(bool has_norm, const std::string& what, const Moving& x) const {
    if (!has_norm) return x;
    return sum(product({0, turn(x)}, inner_gain(what)),
               own_vector(what + "_norm_bias", Group::norm_bias));
  }

  /// Its gradient from that of what its norm has made of it.
  Band inner_back(bool has_norm, const std::string& what, const Moving& x, const Band& d) const {
    return has_norm ? inner_gain(what).now() + d - x.now() : d;
  }

  // ---- forward ----------------------------------------------------------------------------------

  void forward() {
    const Group input = patches_ ? Group::patch_embedding : Group::token_embedding;
    embedding_ = table(input, s_.embedding_multiplier);
    if (s_.of(Group::position_embedding).present) {
      const GroupExponents& positions = s_.of(Group::position_embedding);
      const Moving position = table(Group::position_embedding, positions.multiplier);
      const Moving token = embedding_;
      embedding_ = sum(token, position);
      // Of terms that grow by almost the same power neither outgrows the other.
      const double apart = std::abs(token.start.low - position.start.low);  // NaN of two zeros
      if (apart > 0 && apart <= most_alike) {
        embedding_.start = s_.token_share * token.start + (1 - s_.token_share) * position.start;
      }
    }
    stream_ = shown_stream_ = embedding_;
    // Each pass feeds what the blocks have added back into their inputs.
    for (int pass = 0; pass < 3; ++pass) blocks();
    final_hidden_ =
        post_norm_ ? stream_ : normalized(stream_, Group::final_norm_gain, Group::final_norm_bias);
    logits_ = head().times(final_hidden_);
    // A tied head reads its own rows: the logit of the token itself is a sum of squares. Where it grows
    // it predicts that token for sure, and gradients of neighbours cancel.
    if (tied_) logits_.start = logits_.start + s_.width * Band(0, 0.5);
    state_.gradients_have_limit = !(tied_ && logits_.start.high > 0);
    // A change that would outgrow the vector may not have reached its length yet.
    Moving shown_final = final_hidden_;
    const bool gains = norms_ && !post_norm_ && s_.of(Group::final_norm_gain).present;
    const Band length = gains ? vector(Group::final_norm_gain).start : Band(0);
    shown_final.change =
        mixture(final_hidden_.change, sum(final_hidden_.change, relative_change(stream_) + length));
    state_.activations = {{architecture::observable("embedding"), embedding_},
                          {architecture::observable("attention.scores"), scores_},
                          {architecture::observable("attention.output"), attention_},
                          {architecture::observable("mlp.hidden"), hidden_},
                          {architecture::observable("mlp.output"), mlp_},
                          {architecture::observable("mlp.stream"), shown_stream_},
                          {architecture::observable("final_hidden"), shown_final},
                          {architecture::observable("logits"), logits_}};
    if (experts_) state_.activations.emplace_back(architecture::observable("mlp.router"), router_);
  }

  /// Embeddings are random numbers themselves. Rows of a fresh matrix make of vectors that a norm has set to one length
  /// numbers of one variance, whatever these vectors are.
  void exact_starts(const Shape& shape) {
    const bool one_term =
        !s_.of(Group::position_embedding).present ||
        table(Group::token_embedding, s_.embedding_multiplier).start ==
            table(Group::position_embedding, s_.of(Group::position_embedding).multiplier).start;
    const bool plain = !patches_ && shape.segments == 0 && !shape.embedding_norm;
    if (plain && one_term) state_.exact_starts.push_back(architecture::observable("embedding"));
    if (!norms_ || post_norm_) return;
    if (!qk_norm_) state_.exact_starts.push_back(architecture::observable("attention.scores"));
    if (experts_) state_.exact_starts.push_back(architecture::observable("mlp.router"));
    if (!tied_ && shape.final_norm)
      state_.exact_starts.push_back(architecture::observable("logits"));
  }

  void blocks() {
    // The first block reads the embedding, the others a stream of several terms.
    input_ = post_norm_ ? sum(embedding_, stream_)
                        : sum(normalized(embedding_, Group::norm_gain, Group::norm_bias),
                              normalized(stream_, Group::norm_gain, Group::norm_bias));
    raw_query_ = linear(Group::query, input_);
    raw_key_ = linear(Group::key, input_);
    query_ = inner_normalized(qk_norm_, "query", raw_query_);
    key_ = inner_normalized(qk_norm_, "key", raw_key_);
    value_ = linear(Group::value, input_);
    const Moving dot = product(query_, key_);
    scores_ = {s_.attention_scale + s_.head_dim / 2 + dot.start,
               s_.attention_scale + s_.head_dim * alignment_ + dot.change};
    // Probabilities are of order one and move by no more.
    mixed_ = {value_.start, sum(value_.change, value_.start + bounded(scores_.change))};
    raw_attention_ = linear(Group::attention_output, mixed_);
    attention_ = inner_normalized(branch_norm_, "attention_branch", raw_attention_);

    up_ = linear(up(), input_);
    hidden_ = up_;  // the activation keeps the order of what it gets
    if (gated_) {
      gate_ = linear(gate(), input_);
      hidden_ = product(up_, gate_);
    }
    expert_ = raw_mlp_ = linear(down(), hidden_);
    if (experts_) {
      router_ = matrix(Group::router).times(input_);
      raw_mlp_ = mean_of_experts(matrix(down()), hidden_, router_, s_.active_experts, chooses_);
    }
    mlp_ = inner_normalized(branch_norm_, "mlp_branch", raw_mlp_);

    Moving added = sum(branch(attention_), branch(mlp_));
    added.start = added.start + s_.layers / 2;
    added.change = added.change + s_.layers * Band(0.5, 1);
    const Moving all = sum(Moving{s_.skip + embedding_.start, s_.skip + embedding_.change}, added);
    stream_ = post_norm_ ? normalized(all, Group::norm_gain, Group::norm_bias) : all;
    // At finite depths either the embedding or what was added to it is the larger.
    shown_stream_ = stream_;
    if (!post_norm_) {
      shown_stream_ = {mixture(s_.skip + embedding_.start, added.start),
                       mixture(s_.skip + embedding_.change, added.change)};
    }
  }

  Group up() const { return experts_ ? Group::expert_up : Group::mlp_up; }
  Group gate() const { return experts_ ? Group::expert_up : Group::mlp_gate; }
  Group down() const { return experts_ ? Group::expert_down : Group::mlp_down; }

  Moving branch(const Moving& output) const {
    const Moving scaled{s_.branch + output.start, s_.branch + output.change};
    if (!s_.of(Group::residual_gain).present) return scaled;
    return product(scaled, vector(Group::residual_gain));
  }

  // ---- backward ---------------------------------------------------------------------------------

  /// A gain's gradient sums products of an activation and its own gradient over tokens. They are
  /// independent at first; training turns one towards the other.
  Band gain_gradient(const Band& d) const {
    const bool trained = !logits_.change.is_zero();
    return d + (trained ? Band(0, 0.5) : Band(0));
  }

  void gradient(Group group, const Band& input, const Band& output) {
    const GroupExponents& g = s_.of(group);
    if (!norms_ && architecture::is_norm(group)) {
      if (g.present) state_.set_gradient(group, Band::zero());
      return;
    }
    if (g.present) state_.set_gradient(group, g.multiplier + input + output);
  }

  /// The gradient of a stream from that of what its norm has made of it. Along the depth, terms of
  /// the stream change places as the larger one.
  Band through_norm(const Band& d, Group gain) const {
    if (!norms_) return d;
    const Band scaled = s_.of(gain).present ? vector(gain).now() + d : d;
    if (s_.layers == 0) return scaled - stream_.now();
    return scaled - mixture(shown_stream_.start, shown_stream_.change);
  }

  /// Along the depth, the multiplier of a branch wherever it is: at its end, or in the matrix before that.
  Band whole_branch() const {
    const Band& last = s_.of(Group::attention_output).deviation;
    return s_.layers == 0 || last.is_zero() ? s_.branch : s_.branch + last;
  }

  /// The gradient of the logits, p - y, is of order one at large sizes. Until then it falls in two cases.
  Band of_logits() const {
    // All tokens of a model without norms are predicted to be the same one, for as long as logits are large.
    if (!norms_ && sharp_softmax_) return {(std::min)(0.0, logits_.start.low), 0};
    // Branches before norms make gradients larger, by a power of L b² (measured), what all add.
    if (post_norm_) return {(std::min)(0.0, (s_.layers + 2 * whole_branch()).low / 2), 0};
    return 0;
  }

  void backward() {
    const Band dlogits = state_.logit_gradient = of_logits();
    const Band left_gradient = s_.logit_multiplier + final_hidden_.now() + dlogits;
    if (!tied_) {
      state_.set_gradient(Group::head, left_gradient);
    }
    gradient(Group::head_bias, 0, dlogits);
    const Band dfinal_hidden = head().back(dlogits) + backward_;
    gradient(Group::final_norm_gain, 0, gain_gradient(dfinal_hidden));
    gradient(Group::final_norm_bias, 0, dfinal_hidden);
    const Band top =
        post_norm_ ? dfinal_hidden : through_norm(dfinal_hidden, Group::final_norm_gain);

    Band stream = top;
    for (int pass = 0; pass < 2; ++pass) stream = sum(top, through_blocks(stream));
    const Band tied = tied_ ? left_gradient : Band::zero();
    for (const Group table : {Group::token_embedding, Group::patch_embedding}) {
      if (!s_.of(table).present) continue;
      state_.set_gradient(table, sum(s_.embedding_multiplier + stream, tied));
    }
    gradient(Group::position_embedding, 0, stream);
    gradient(Group::patch_bias, 0, stream);
  }

  /// The part that the blocks add to the gradient of the stream.
  Band through_blocks(const Band& stream) {
    const Moving gain = s_.of(Group::residual_gain).present ? vector(Group::residual_gain)
                                                            : Moving{0, Band::zero()};
    gradient(Group::residual_gain, s_.branch + sum(attention_.now(), mlp_.now()), stream);
    const Band behind = post_norm_ ? through_norm(stream, Group::norm_gain) : stream;
    const Band doutput = s_.branch + gain.now() + behind;

    const Band dattention = inner_back(branch_norm_, "attention_branch", raw_attention_, doutput);
    const Band dmlp = inner_back(branch_norm_, "mlp_branch", raw_mlp_, doutput);
    gradient(Group::attention_output, mixed_.now(), dattention);
    const Band dmixed = matrix(Group::attention_output).back(dattention);
    // Scores that outgrow order one make peaked probabilities, which pass on less.
    const Band peaked{(std::min)(0.0, -scores_.start.high), 0};
    const Band dscores = dmixed + value_.now() + s_.head_dim * Band(0.5, 1) + peaked;
    const Band dquery =
        inner_back(qk_norm_, "query", raw_query_, s_.attention_scale + dscores + key_.now());
    // Keys and values hear from all heads that share them.
    const Band shared = s_.queries_per_key * Band(0.5, 1);
    const Band dkey =
        inner_back(qk_norm_, "key", raw_key_, s_.attention_scale + dscores + query_.now() + shared);
    const Band dvalue = dmixed + shared;
    gradient(Group::value, input_.now(), dvalue);
    gradient(Group::query, input_.now(), dquery);
    gradient(Group::key, input_.now(), dkey);

    const Band dexpert = dmlp + Band(-s_.active_experts);  // the weight of each
    gradient(down(), hidden_.now(), dexpert);
    const Band dhidden = matrix(down()).back(dexpert);
    Band drouter = Band::zero();
    if (experts_) {
      drouter = gain_gradient(expert_.now() + dexpert + s_.width / 2);
      gradient(Group::router, input_.now(), drouter);
    }
    const Band dup = gated_ ? dhidden + gate_.now() : dhidden;
    const Band dgate = gated_ ? dhidden + up_.now() : Band::zero();
    gradient(Group::mlp_gate, input_.now(), dgate);
    gradient(up(), input_.now(), experts_ ? mixture(dup, dgate) : dup);

    const Band together = s_.active_experts * Band(0.5, 1);  // of active experts
    const Band dinput = sum(matrix(Group::query).back(dquery), matrix(Group::key).back(dkey),
                            matrix(Group::value).back(dvalue), together + matrix(up()).back(dup),
                            gated_ ? together + matrix(gate()).back(dgate) : Band::zero(),
                            experts_ ? matrix(Group::router).back(drouter) : Band::zero());
    // One group has the biases of all these.
    const Band biases = mixture(mixture(mixture(dattention, dmlp), dvalue),
                                mixture(mixture(dquery, dkey), mixture(dup, dgate)));
    gradient(Group::hidden_bias, 0, biases);
    gradient(Group::norm_gain, 0, gain_gradient(post_norm_ ? stream : dinput));
    gradient(Group::norm_bias, 0, post_norm_ ? stream : dinput);
    const Band added = post_norm_ ? dinput : through_norm(dinput, Group::norm_gain);
    return sum(post_norm_ ? behind : Band::zero(), added + s_.layers * Band(0.5, 1));
  }

  const Scales& s_;
  const GroupSlopes& change_;
  Band alignment_;
  double backward_;
  bool gated_;
  bool experts_, chooses_;  // chooses: not all experts are active
  bool patches_;
  bool tied_;
  bool norms_;
  bool qk_norm_;
  bool branch_norm_;
  bool sharp_softmax_;
  bool post_norm_;
  Moving embedding_, stream_, shown_stream_, input_, raw_query_, raw_key_, query_, key_, value_;
  Moving scores_, mixed_;
  Moving router_, expert_, raw_attention_, raw_mlp_, attention_, up_, gate_, hidden_, mlp_,
      final_hidden_, logits_;
  State state_;
};

}  // namespace detail

/// Slopes of a transformer with residual blocks whose weights have moved by `change`.
inline State residual_slopes(const Scales& scales, const Shape& shape, const GroupSlopes& change,
                             const Assumptions& assumptions) {
  return detail::ResidualSlopes(scales, shape, change, assumptions).walk(shape);
}

}  // namespace scalewise::check
