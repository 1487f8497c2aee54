// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace scalewise::dialect {

/// Segments that wrappers put into names: DistributedDataParallel, torch.compile, activation checkpointing
/// and FullyShardedDataParallel.
inline constexpr std::string_view wrapper_segments[] = {
    "module", "_orig_mod", "_checkpoint_wrapped_module", "_fsdp_wrapped_module"};

/// A name without the segments of wrappers: "layers.0.attention.wq" of
/// "_orig_mod.layers.0._checkpoint_wrapped_module.attention.wq".
inline std::string unwrapped(std::string_view name) {
  std::string plain;
  plain.reserve(name.size());
  while (true) {
    const std::size_t end = name.find('.');
    const std::string_view segment = name.substr(0, end);
    bool wrapper = end != std::string_view::npos;  // never the last
    if (wrapper) {
      wrapper = false;
      for (const std::string_view known : wrapper_segments) wrapper = wrapper || segment == known;
    }
    if (!wrapper) plain.append(segment);
    if (end == std::string_view::npos) return plain;
    if (!wrapper) plain += '.';
    name = name.substr(end + 1);
  }
}

/// The segments with which all names begin, each a prefix that ends in a dot: "net.", "net.model.".
inline std::vector<std::string> common_prefixes(const std::vector<std::string>& names) {
  std::vector<std::string> prefixes;
  if (names.empty()) return prefixes;
  std::string_view common = names.front();
  for (const std::string& name : names) {
    std::size_t same = 0;
    while (same < common.size() && same < name.size() && common[same] == name[same]) ++same;
    common = common.substr(0, same);
  }
  constexpr std::size_t most = 8;
  for (std::size_t dot = common.find('.'); dot != std::string_view::npos && prefixes.size() < most;
       dot = common.find('.', dot + 1)) {
    prefixes.emplace_back(common.substr(0, dot + 1));
  }
  return prefixes;
}

/// The kind of file that has such names, where it is not one of a whole model's own weights; empty otherwise.
/// Source:   the formats of PEFT, GPTQ and AWQ, bitsandbytes, and block-wise FP8
inline std::string_view kind_of_names(std::string_view name) {
  const auto ends = [&](std::string_view end) { return name.ends_with(end); };
  if (name.find(".lora_") != std::string_view::npos || ends("lora_A.weight"))
    return "an adapter (LoRA): give the model that it was made for, or plan its tensors by --extra";
  if (ends(".qweight") || ends(".qzeros") || ends(".g_idx"))
    return "quantized by GPTQ or AWQ: its tensors are packed; give the file that was quantized";
  if (ends(".weight_scale_inv") || ends(".weight_scale") || ends(".input_scale"))
    return "quantized to FP8, with scales next to the weights; give the file that was quantized";
  if (ends(".absmax") || ends(".quant_map") || ends(".SCB") ||
      name.find(".quant_state.") != std::string_view::npos)
    return "quantized by bitsandbytes; give the file that was quantized";
  return "";
}

}  // namespace scalewise::dialect
