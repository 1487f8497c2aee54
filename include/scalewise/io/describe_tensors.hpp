// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "scalewise/architecture/description.hpp"
#include "scalewise/io/stored_tensor.hpp"
#include "scalewise/messages/name.hpp"

namespace scalewise::io {

/// The tensors of a file, and which of them the names leave open: each with what it was taken for.
struct FileDescription {
  ModelDescription model;
  std::vector<std::string> doubts;
};

}  // namespace scalewise::io

namespace scalewise::detail {

template <std::size_t size>
bool has_any(std::string_view name, const std::array<std::string_view, size>& parts) {
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) {
    return name.find(part) != std::string_view::npos;
  });
}

/// Kinds and axes by the names that code bases give to tensors.
class TensorsByName {
 public:
  explicit TensorsByName(const TensorFile& file) : file_(file) {
    for (const StoredTensor& tensor : file.tensors) {
      const std::vector<std::int64_t>& s = tensor.shape;
      if (tensor.name.ends_with("attn.c_attn.weight") && s.size() == 2 && s[1] == 3 * s[0])
        inputs_first_ = true;
    }
  }

  io::FileDescription read() {
    for (const StoredTensor& tensor : file_.tensors) add(tensor);
    // Files have their tensors by the alphabet, descriptions in the order of the forward pass: heads are last.
    std::stable_partition(result_.model.tensors.begin(), result_.model.tensors.end(),
                          [](const DescribedTensor& tensor) { return !reads_out(tensor.name); });
    return std::move(result_);
  }

 private:
  static bool reads_out(std::string_view name) {
    constexpr std::array<std::string_view, 4> heads{"lm_head", "embed_out", "classifier", "score."};
    return has_any(name, heads) || name.starts_with("head.") || name.starts_with("output.");
  }

  /// Whether a tensor is not a parameter but a mask, positions or frequencies.
  static bool is_buffer(const StoredTensor& tensor) {
    const std::string_view name = tensor.name;
    return name.ends_with("masked_bias") || name.ends_with("inv_freq") ||
           name.ends_with("position_ids") || (name.ends_with("bias") && tensor.shape.size() == 4);
  }

  void add(const StoredTensor& tensor) {
    if (is_buffer(tensor)) {
      result_.doubts.push_back(messages::printable(tensor.name) +
                               ": taken for a buffer, and left out");
      return;
    }
    DescribedTensor described{tensor.name, TensorKind::other, "", {}};
    for (const std::int64_t size : tensor.shape) described.sizes.push_back(static_cast<long>(size));
    const std::string doubt = tensor.shape.size() == 1   ? vector(described)
                              : tensor.shape.size() == 2 ? matrix(described)
                                                         : block(described);
    if (!doubt.empty()) result_.doubts.push_back(messages::printable(tensor.name) + ": " + doubt);
    result_.model.tensors.push_back(std::move(described));
  }

  static std::string vector(DescribedTensor& tensor) {
    constexpr std::array<std::string_view, 6> norms{"norm", "ln_", "ln1",
                                                    "ln2",  ".ln", "LayerNorm"};
    const std::string_view name = tensor.name;
    tensor.axes = "o";
    if (name.ends_with("bias")) {
      tensor.kind = TensorKind::bias;
    } else if (has_any(name, norms)) {
      tensor.kind = TensorKind::gain;
    } else {
      return "a vector of unknown role";
    }
    return {};
  }

  /// True for a name such as wte.weight or embeddings.word_embeddings.weight; what only stands in a module for embeddings,
  /// as time_embed.0.weight or patch_embed.proj.weight, is not a table.
  static bool is_table(std::string_view name) {
    constexpr std::array<std::string_view, 10> ends{"emb",        "embed",
                                                    "embd",       "embedding",
                                                    "embeddings", "embedding_table",
                                                    "embed_in",   "wte",
                                                    "wpe",        "relative_attention_bias"};
    if (name.ends_with(".weight")) name.remove_suffix(std::string_view(".weight").size());
    const std::string_view own = name.substr(name.rfind('.') + 1);
    if (own.find("patch") != std::string_view::npos) return false;
    return own == "shared" || own.starts_with("embed_tokens") ||
           own.starts_with("embed_positions") ||
           std::any_of(ends.begin(), ends.end(),
                       [&](std::string_view end) { return own.ends_with(end); });
  }

  std::string matrix(DescribedTensor& tensor) const {
    constexpr std::array<std::string_view, 4> conv1d{"c_attn", "c_proj", "c_fc", "q_attn"};
    const std::string_view name = tensor.name;
    if (is_table(name)) {
      tensor.kind = TensorKind::embedding;
      tensor.axes = "io";
      return {};
    }
    tensor.axes = inputs_first_ && has_any(name, conv1d) ? "io" : "oi";
    if (!name.ends_with("weight")) return "a matrix that no layer's name has";
    tensor.kind = TensorKind::linear;
    const bool doubtful = name.find("emb") != std::string_view::npos && !reads_out(name);
    return doubtful ? "taken for a linear layer" : "";
  }

  /// Experts and convolutions: their names do not say which side is which.
  static std::string block(DescribedTensor& tensor) {
    tensor.axes = std::string(tensor.sizes.empty() ? 0 : tensor.sizes.size() - 1, 'i') +
                  std::string(tensor.sizes.empty() ? 0 : 1, 'o');
    const bool convolution =
        tensor.sizes.size() > 2 && (tensor.name.find("conv") != std::string::npos ||
                                    tensor.name.find("patch_embed") != std::string::npos);
    if (!convolution) return "sides of unknown role";
    tensor.kind = TensorKind::linear;
    tensor.axes = "oi" + std::string(tensor.sizes.size() - 2, 'k');
    return "taken for a convolution";
  }

  const TensorFile& file_;
  bool inputs_first_ = false;  // GPT-2's layers, as transformers store them
  io::FileDescription result_;
};

}  // namespace scalewise::detail

namespace scalewise::io {

/// The tensors of a model's file as a description, by their names: matrices of layers are PyTorch's, outputs first, but
/// GPT-2's; what a name leaves open is among the doubts, with the kind other where a role has to be given. Ties are not in
/// files: a tied head has no tensor there.
/// Accuracy: compared with the tables of describe_config() in tests/io/describe_tensors_test.cpp.
inline FileDescription describe_tensors(const TensorFile& file) {
  return detail::TensorsByName(file).read();
}

}  // namespace scalewise::io
