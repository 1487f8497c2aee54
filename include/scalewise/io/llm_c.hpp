// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/architecture/shape.hpp"
#include "scalewise/files/file_cursor.hpp"
#include "scalewise/io/stored_tensor.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/messages/sizes_text.hpp"

namespace scalewise {

namespace io {

/// The first number of a checkpoint of llm.c: GPT-2 and GPT-3, and Llama.
inline constexpr std::uint32_t llm_c_gpt2_magic = 20240326;
inline constexpr std::uint32_t llm_c_llama_magic = 20240803;

}  // namespace io

namespace detail {

/// Reads a checkpoint of llm.c: a header of numbers with 4 bytes, and 16 tensors, those of the blocks with
/// all layers together. L layers, n wide; F are the columns of the last MLP matrix.
class LlmCReader {
 public:
  explicit LlmCReader(const std::string& path) : file_(path), list_("llm.c") {
    list_.begin_file(path);
  }

  TensorFile read() {
    const std::uint64_t magic = file_.natural(4, "magic");
    if (magic != io::llm_c_gpt2_magic && magic != io::llm_c_llama_magic) {
      throw file_.error("magic", std::to_string(magic), "20240326 or 20240803");
    }
    llama_ = magic == io::llm_c_llama_magic;
    const std::uint64_t version = file_.natural(4, "version");
    if (version != 3 && version != 5) {
      throw file_.error("version", std::to_string(version), "3 (float) or 5 (bfloat16)");
    }
    bf16_ = version == 5;
    shape_.context = size("max_seq_len");
    shape_.vocab = size("vocab_size");
    shape_.depth = size("num_layers", architecture::most_layers);
    shape_.heads = size("num_heads");
    if (llama_) {
      read_llama();
    } else {
      read_gpt2();
    }
    add_tensors();
    TensorFile result = std::move(list_).take();
    result.shape = shape_;
    result.notes = std::move(notes_);
    return result;
  }

 private:
  static constexpr std::uint64_t ints_end = 1024;    // 256 whole numbers
  static constexpr std::uint64_t floats_end = 2048;  // Llama: 256 floating-point numbers

  void read_gpt2() {
    read_width(architecture::largest_size / 4);
    shape_.d_ff = 4 * shape_.d_model;
    fused_ = shape_.d_ff;
    shape_.tied_head = true;
    shape_.activation = Activation::gelu;
    query_key_value_ = 3 * std::int64_t{shape_.d_model};
    rows_ = size("padded_vocab_size");
    if (rows_ < shape_.vocab) {
      throw file_.error("padded_vocab_size", std::to_string(rows_),
                        "at least vocab_size = " + std::to_string(shape_.vocab));
    }
    if (rows_ > shape_.vocab) {
      notes_.push_back(std::to_string(rows_ - shape_.vocab) + " rows of wte are padding");
    }
    end_ = ints_end;
    file_.skip(end_ - file_.position(), "header");
  }

  void read_llama() {
    shape_.kv_heads = size("num_kv_heads");
    if (shape_.heads % shape_.kv_heads != 0) {
      throw file_.error("num_kv_heads", std::to_string(shape_.kv_heads),
                        "a divisor of num_heads = " + std::to_string(shape_.heads));
    }
    read_width(architecture::largest_size);
    const long multiple = size("multiple_of");
    if (file_.natural(4, "use_scaled_rope") > 1) {
      throw file_.error("use_scaled_rope", "(another number)", "0 or 1",
                        "train_llama3.py of the branch master writes another layout, which no "
                        "program of llm.c reads; use that of the branch llama3");
    }
    file_.skip(ints_end - file_.position(), "header");
    shape_.d_ff = llama_d_ff(multiple);
    end_ = floats_end;
    file_.skip(end_ - file_.position(), "header");
    shape_.tied_head = false;
    shape_.gated_mlp = true;
    shape_.activation = Activation::silu;
    shape_.biases = false;
    shape_.norm_bias = false;
    shape_.learned_positions = false;
    rows_ = shape_.vocab;
    fused_ = 2 * std::int64_t{shape_.d_ff};
    query_key_value_ = (std::int64_t{shape_.heads} + 2 * std::int64_t{shape_.kv_heads}) *
                       (shape_.d_model / shape_.heads);
    notes_.emplace_back("the biases of Llama in llm.c are stored and not used: the shape has none");
  }

  /// d_ff = 8/3 n times a factor, rounded up.
  long llama_d_ff(long multiple) {
    const auto factor = __builtin_bit_cast(
        float, static_cast<std::uint32_t>(file_.natural(4, "ffn_dim_multiplier")));
    if (!(factor > 0 && factor <= 1024)) {
      throw file_.error("ffn_dim_multiplier", "(another number)", "more than 0 and at most 1024");
    }
    const std::int64_t plain = 2 * (4 * std::int64_t{shape_.d_model}) / 3;
    // In the precision of llm.c, as it decides between two sizes.
    const auto scaled = static_cast<std::int64_t>(factor * static_cast<float>(plain));
    const std::int64_t d_ff = (scaled + multiple - 1) / multiple * multiple;
    if (d_ff < 1 || d_ff > architecture::largest_size) {
      throw file_.error("ffn_dim_multiplier, multiple_of", std::to_string(d_ff),
                        "a d_ff from 1 to 2^30");
    }
    return static_cast<long>(d_ff);
  }

  void read_width(long most) {
    shape_.d_model = size("channels", most);
    if (shape_.d_model % shape_.heads != 0) {
      throw file_.error("channels", std::to_string(shape_.d_model),
                        "a multiple of num_heads = " + std::to_string(shape_.heads));
    }
  }

  long size(const char* field, long most = architecture::largest_size) {
    const std::uint64_t number = file_.natural(4, field);
    if (number < 1 || number > static_cast<std::uint64_t>(most)) {
      throw file_.error(field, std::to_string(static_cast<std::int32_t>(number)),
                        "a whole number from 1 to " + std::to_string(most));
    }
    return static_cast<long>(number);
  }

  void add_tensors() {
    const std::int64_t L = shape_.depth;
    const std::int64_t n = shape_.d_model;
    const std::int64_t F = shape_.d_ff;
    add("wte", {rows_, n});
    if (llama_) {
      add("wlmhead", {rows_, n});
    } else {
      add("wpe", {shape_.context, n});
    }
    add("ln1w", {L, n});
    add("ln1b", {L, n});
    add("qkvw", {L, query_key_value_, n});
    add("qkvb", {L, query_key_value_});
    add("attprojw", {L, n, n});
    add("attprojb", {L, n});
    add("ln2w", {L, n});
    add("ln2b", {L, n});
    add("fcw", {L, fused_, n});
    add("fcb", {L, fused_});
    add("fcprojw", {L, n, F});
    add("fcprojb", {L, n});
    add("lnfw", {n});
    add("lnfb", {n});
    if (end_ == file_.size()) return;
    throw file_.error("size", std::to_string(file_.size()),
                      std::to_string(end_) + ", by the numbers in the header");
  }

  void add(const char* name, std::vector<std::int64_t> sizes) {
    const std::optional<std::int64_t> entries = entries_of(sizes);
    const std::optional<std::int64_t> bytes =
        entries ? checked_product(*entries, bf16_ ? 2 : 4) : entries;
    if (!bytes || static_cast<std::uint64_t>(*bytes) > largest_int64 - end_) {
      throw file_.error(name, messages::sizes_text(sizes), "fewer than 2^63 bytes");
    }
    list_.add({.name = name,
               .shape = std::move(sizes),
               .type = bf16_ ? "BF16" : "F32",
               .offset = static_cast<std::int64_t>(end_),
               .bytes = *bytes});
    end_ += static_cast<std::uint64_t>(*bytes);
  }

  files::FileCursor file_;
  TensorList list_;
  Shape shape_;
  std::vector<std::string> notes_;
  bool llama_ = false;
  bool bf16_ = false;
  std::int64_t rows_ = 0;             // of wte
  std::int64_t query_key_value_ = 0;  // rows of qkvw
  std::int64_t fused_ = 0;            // rows of fcw: up, then gate
  std::uint64_t end_ = 0;             // of the last tensor
};

}  // namespace detail

namespace io {

/// The tensors and the shape of a checkpoint of llm.c, from its header and its size.
/// Source:   llm.c, gpt2_build_from_checkpoint() of train_gpt2.cu, and llama3_build_from_checkpoint()
///           of train_llama3.cu in the branch llama3.
/// Shapes:   tensors of the blocks have all layers: qkvw is (depth, rows, d_model).
/// Throws:   InvalidInput, naming the file and the field, for another magic number, another version
///           than 3 and 5, sizes that are not positive, too large or do not divide, and a file
///           that is not as large as they say.
inline TensorFile read_llm_c(const std::string& path) { return detail::LlmCReader(path).read(); }

}  // namespace io

}  // namespace scalewise
