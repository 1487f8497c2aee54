// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "scalewise/files/file_cursor.hpp"
#include "scalewise/io/gguf.hpp"
#include "scalewise/io/llm_c.hpp"
#include "scalewise/io/safetensors.hpp"
#include "scalewise/io/safetensors_index.hpp"
#include "scalewise/io/stored_tensor.hpp"
#include "scalewise/messages/error.hpp"

namespace scalewise {

namespace detail {

/// A format that is known and not read, by its first bytes.
struct ForeignFormat {
  std::string_view begin;
  std::string_view name;
  std::string_view hint;
};

inline constexpr std::string_view save_as_safetensors =
    "save the tensors as safetensors, in Python by safetensors.torch.save_file(model.state_dict(), "
    "...)";

inline constexpr std::array<ForeignFormat, 11> foreign_formats{{
    {"PK\x03\x04", "a zip archive, as torch.save() and numpy.savez() write", save_as_safetensors},
    {"\x80\x02", "a pickle, as torch.save() writes", save_as_safetensors},
    {"\x80\x03", "a pickle", save_as_safetensors},
    {"\x80\x04", "a pickle", save_as_safetensors},
    {"\x80\x05", "a pickle", save_as_safetensors},
    {"\x93NUMPY", "an array of NumPy", save_as_safetensors},
    {"\x89HDF", "HDF5, as Keras writes", save_as_safetensors},
    {"\xC7\xD7\x34\x01", "a state of llm.c's tests", "give the model, such as gpt2_124M.bin"},
    {"\x8F\xD8\x34\x01", "an optimizer state of llm.c", "give the model_*.bin of the same step"},
    {"version https://git-lfs", "a pointer of Git LFS", "fetch the file itself with git lfs pull"},
    {"tjgg", "a model older than GGUF", "convert it to GGUF with llama.cpp"},
}};

/// ONNX has no first bytes of its own: a version of one byte, then a text or a number.
inline bool looks_like_onnx(std::string_view begin) {
  if (begin.size() < 4 || begin[0] != '\x08' || begin[1] < 1 || begin[1] > 32) return false;
  return begin[2] == '\x12' || begin[2] == '\x1A' || begin[2] == '\x3A' || begin[2] == '\x42';
}

inline const ForeignFormat* foreign_format(std::string_view begin) {
  for (const ForeignFormat& format : foreign_formats) {
    if (begin.starts_with(format.begin)) return &format;
  }
  return nullptr;
}

[[noreturn]] inline void refuse_format(const std::string& path, std::string_view begin) {
  const ForeignFormat* known = foreign_format(begin);
  const std::string_view name = known != nullptr         ? known->name
                                : looks_like_onnx(begin) ? "ONNX"
                                : begin.empty()          ? "empty"
                                                         : "another format";
  throw InvalidInput(path, "(" + std::string(name) + ")",
                     "safetensors, a model.safetensors.index.json, GGUF or a checkpoint of llm.c",
                     std::string(known != nullptr ? known->hint : save_as_safetensors));
}

}  // namespace detail

/// The tensors of a model's file, and its shape where the format tells it: safetensors, GGUF or a
/// checkpoint of llm.c, as the first bytes say, or, where the name ends in .json, the files of a
/// model.safetensors.index.json. Headers are read, and no data; 64 MiB of memory suffice for any file.
/// Throws:   InvalidInput as read_safetensors(), read_safetensors_index(), read_gguf() and
///           read_llm_c(), and for every other format.
inline TensorFile read_tensor_file(const std::string& path) {
  files::FileCursor file(path);
  constexpr std::uint64_t most = 24;
  const auto count = static_cast<std::size_t>((std::min)(file.size(), most));
  const std::string begin = file.text(count, "header");
  if (path.ends_with(".json")) return io::read_safetensors_index(path);
  if (begin.starts_with("GGUF")) return io::read_gguf(path);
  if (begin.size() >= 4) {
    const std::uint64_t magic = files::FileCursor(path).natural(4, "magic");
    if (magic == io::llm_c_gpt2_magic || magic == io::llm_c_llama_magic)
      return io::read_llm_c(path);
  }
  // A length of a header may begin with the two bytes of a pickle, but not like the others.
  const detail::ForeignFormat* foreign = detail::foreign_format(begin);
  const bool other = foreign != nullptr && foreign->begin.size() > 2;
  if (!other && begin.size() > 8 && begin[8] == '{') return io::read_safetensors(path);
  detail::refuse_format(path, begin);
}

}  // namespace scalewise
