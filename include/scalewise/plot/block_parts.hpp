// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/plan/plan.hpp"
#include "scalewise/plot/block_cells.hpp"
#include "scalewise/plot/norms_of_plan.hpp"

namespace scalewise::plot {

/// One line of a part: its label, and the numbers of the tensor that it stands for, if any.
struct BlockRow {
  std::string label;
  BlockCells cells = {};
};

/// Where a part stands between the residual stream and the branch that leaves it.
enum class BlockPlace {
  stream,    // on the stream
  fork,      // where the branch leaves it
  branch,    // on the branch
  parallel,  // on the branch, next to others of the same input
  merge,     // where the branch is added to the stream
};

/// A box of a picture, or an operation without one.
struct BlockPart {
  BlockPlace place = BlockPlace::branch;
  std::vector<BlockRow> rows = {};
};

/// Parts one after the other; those of a layer are framed and say how many there are.
struct BlockSection {
  std::string title;
  bool framed = false;
  bool begins = false;  // a stream of its own
  std::vector<BlockPart> parts = {};
};

namespace detail {

/// The parts of a model in the order in which they act.
class BlockReader {
 public:
  explicit BlockReader(const Plan& plan)
      : plan_(plan), numbers_(plan), post_(norm_placement(plan) == NormPlacement::post) {}

  std::vector<BlockSection> sections() {
    if (shape_.blocks == Blocks::shallow_encoder) {
      layer(Stack::main, "The encoder", 1);
    } else {
      const bool both = shape_.encoder_depth > 0;
      if (both) {
        embedding(Stack::encoder, "Encoder, embedding", true);
        layer(Stack::encoder, "Encoder layer", shape_.encoder_depth);
        end_of(Stack::encoder);
      }
      embedding(both ? Stack::decoder : Stack::main, both ? "Decoder, embedding" : "Embedding",
                !both);
      layer(both ? Stack::decoder : Stack::main, both ? "Decoder layer" : "Layer", shape_.depth);
      end_of(both ? Stack::decoder : Stack::main);
    }
    head();
    rest();
    return std::move(sections_);
  }

 private:
  /// Adds a row for a tensor where the model has it.
  void tensor(BlockPart& part, const std::string& name, const std::string& label) {
    BlockCells cells = numbers_.of(prefix_ + name);
    if (!cells[0].terms.empty()) part.rows.push_back({label, std::move(cells)});
  }

  void open(const std::string& title, bool framed = false, bool begins = false) {
    sections_.push_back({title, framed, begins});
  }

  void add(BlockPart part) {
    const bool needs_row = part.place == BlockPlace::stream || part.place == BlockPlace::branch;
    if (needs_row && part.rows.empty()) return;
    sections_.back().parts.push_back(std::move(part));
  }

  void operation(BlockPlace place, const std::string& label) { add({place, {{label}}}); }

  /// A matrix and its bias.
  BlockPart matrix(BlockPlace place, const std::string& name, const std::string& label) {
    BlockPart part{place};
    tensor(part, name, label);
    tensor(part, name + "_bias", "+ bias");
    return part;
  }

  void norm(BlockPlace place, const std::string& name) {
    BlockPart part{place};
    tensor(part, name + "_gain", "norm, × gain");
    tensor(part, name + "_bias", "+ bias");
    if (part.rows.empty()) part.rows.push_back({"norm"});
    add(part);
  }

  void embedding(Stack stack, const std::string& title, bool own_tokens) {
    open(title, false, true);
    prefix_.clear();
    BlockPart part{BlockPlace::stream};
    if (own_tokens) {
      tensor(part, "token_embedding", "token embedding");
      tensor(part, "patch_embedding", "patch embedding");
      tensor(part, "patch_bias", "+ bias");
      part.rows.push_back({"multiplier in all", numbers_.model("embedding_multiplier")});
      tensor(part, "class_token", "class token");
    } else {
      part.rows.push_back({"token embedding (shared)"});
    }
    tensor(part, "position_embedding", "+ position embedding");
    if (stack != Stack::main) {
      prefix_ = architecture::TensorName{stack}.prefix();
      tensor(part, "position_embedding", "+ position embedding");
    }
    prefix_.clear();
    if (own_tokens) tensor(part, "segment_embedding", "+ segment embedding");
    add(part);
    prefix_ = architecture::TensorName{stack}.prefix();
    if (shape_.embedding_norm) norm(BlockPlace::stream, "embedding_norm");
    if (shape_.blocks == Blocks::normalized) operation(BlockPlace::stream, "to unit length");
  }

  void layer(Stack stack, const std::string& title, long layers) {
    open(layers > 1 ? title + ", " + std::to_string(layers) + " times" : title, true);
    prefix_ = architecture::TensorName{stack}.prefix();
    if (shape_.blocks == Blocks::shallow_encoder) return shallow();
    branch(stack, "attention", [&] { attention(""); });
    if (stack == Stack::decoder) branch(stack, "cross_attention", [&] { attention("cross_"); });
    branch(stack, "mlp", [&] { mlp(); });
  }

  /// A block with its norm, its gain and its residual connection.
  template <class Inner>
  void branch(Stack stack, const std::string& name, Inner&& inner) {
    const bool normalized = shape_.blocks == Blocks::normalized;
    add({BlockPlace::fork});
    if (!post_ && !normalized) norm(BlockPlace::branch, name + "_norm");
    inner();
    if (shape_.branch_norm && !normalized) norm(BlockPlace::branch, name + "_branch_norm");
    BlockPart gain{BlockPlace::branch};
    tensor(gain, name + "_gain", "× gain");
    add(gain);
    BlockPart sum{BlockPlace::merge};
    if (normalized) {
      operation(BlockPlace::branch, "to unit length");
      tensor(sum, name + "_step", "step towards branch");
      add(sum);
      operation(BlockPlace::stream, "to unit length");
      return;
    }
    add({BlockPlace::branch, {{"× branch", numbers_.residual(stack, &Residual::branch)}}});
    sum.rows.push_back({"× stream, before +", numbers_.residual(stack, &Residual::skip)});
    add(sum);
    if (post_) norm(BlockPlace::stream, name + "_norm");
  }

  void attention(const std::string& kind) {
    const std::string from = kind.empty() ? "" : " of encoder";
    BlockPart query = matrix(BlockPlace::parallel, kind + "query", "query");
    BlockPart key = matrix(BlockPlace::parallel, kind + "key", "key" + from);
    for (auto& [part, name] : {std::pair{&query, "query"}, std::pair{&key, "key"}}) {
      tensor(*part, kind + name + "_norm_gain", "norm, × gain");
      tensor(*part, kind + name + "_norm_bias", "+ bias");
    }
    add(query);
    add(key);
    add(matrix(BlockPlace::parallel, kind + "value", "value" + from));
    BlockPart scores{BlockPlace::branch};
    tensor(scores, kind + "qk_scale", "q, k to unit length, ×");
    scores.rows.push_back({"scores q·k ×", numbers_.model("attention_scale")});
    if (kind.empty()) tensor(scores, "relative_position", "+ relative position");
    scores.rows.push_back({"softmax, mix values"});
    add(scores);
    add(matrix(BlockPlace::branch, kind + "attention_output", "attention output"));
  }

  void mlp() {
    static constexpr const char* names[] = {"ReLU", "GELU", "SiLU"};
    const std::string function =
        shape_.activation ? names[static_cast<std::size_t>(*shape_.activation)] : "activation";
    const bool experts = shape_.experts > 0;
    if (experts) {
      add(matrix(BlockPlace::branch, "router", "router"));
      operation(BlockPlace::branch, "best " + std::to_string(shape_.experts_per_token) + " of " +
                                        std::to_string(shape_.experts) + " experts");
    }
    const std::string name = experts ? "expert_" : "mlp_", label = experts ? "expert " : "MLP ";
    BlockPart up = matrix(shape_.gated_mlp ? BlockPlace::parallel : BlockPlace::branch, name + "up",
                          label + "up");
    tensor(up, "up_scale", "× scale");
    BlockPart gate = matrix(BlockPlace::parallel, name + "gate", label + "gate");
    tensor(gate, "gate_scale", "× scale");
    add(up);
    if (shape_.gated_mlp) add(gate);
    operation(BlockPlace::branch, shape_.gated_mlp ? "up × " + function + "(gate)" : function);
    add(matrix(BlockPlace::branch, name + "down", label + "down"));
  }

  /// It reads its input itself and has no residual connection.
  void shallow() {
    prefix_.clear();
    operation(BlockPlace::stream, "input");
    add({BlockPlace::fork});
    for (const char* name : {"query", "key", "value"}) {
      add(matrix(BlockPlace::parallel, name, name));
    }
    add({BlockPlace::branch,
         {{"scores q·k ×", numbers_.model("attention_scale")}, {"softmax, mix values"}}});
    operation(BlockPlace::branch, "ReLU, mean of tokens");
  }

  void end_of(Stack stack) {
    prefix_ = architecture::TensorName{stack}.prefix();
    if (!shape_.final_norm || shape_.blocks != Blocks::residual) return;
    open(stack == Stack::encoder ? "After the encoder" : "After the last layer");
    norm(BlockPlace::stream, "final_norm");
  }

  void head() {
    prefix_.clear();
    open("Head");
    BlockPart part{BlockPlace::stream};
    tensor(part, "head", "head");
    if (part.rows.empty()) part.rows.push_back({"head: token embedding"});
    part.rows.push_back({"multiplier in all", numbers_.model("logit_multiplier")});
    tensor(part, "head_bias", "+ bias");
    tensor(part, "logit_scale", "× scale per logit");
    add(part);
  }

  /// All other tensors, such as those that the user adds.
  void rest() {
    prefix_.clear();
    const std::vector<std::string> names = numbers_.not_shown();
    if (names.empty()) return;
    open("Other tensors", false, true);
    for (const std::string& name : names) {
      BlockPart part{BlockPlace::stream};
      tensor(part, name, name);
      add(part);
    }
  }

  const Plan& plan_;
  const Shape& shape_ = plan_.shape;
  BlockNumbers numbers_;
  bool post_;
  std::string prefix_;
  std::vector<BlockSection> sections_;
};

}  // namespace detail

/// The parts of a model in the order in which it acts: embedding, one layer of each stack, and
/// head, each with its numbers. Numbers that differ between layers are ranges.
inline std::vector<BlockSection> block_sections(const Plan& plan) {
  return detail::BlockReader(plan).sections();
}

}  // namespace scalewise::plot
