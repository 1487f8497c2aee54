// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/files/file_cursor.hpp"
#include "scalewise/io/ggml_type.hpp"
#include "scalewise/io/gguf_metadata.hpp"
#include "scalewise/io/gguf_shape.hpp"
#include "scalewise/io/stored_tensor.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/messages/sizes_text.hpp"

namespace scalewise {

namespace detail {

/// Reads the description of one tensor; its offset counts from the beginning of the data.
class GgufTensorReader {
 public:
  explicit GgufTensorReader(files::FileCursor& file) : file_(file) {}

  StoredTensor read() {
    StoredTensor tensor;
    const std::uint64_t length = file_.natural(8, "length of a tensor's name");
    if (length > longest_name) {
      throw file_.error("length of a tensor's name", std::to_string(length),
                        "at most " + std::to_string(longest_name));
    }
    tensor.name = file_.text(static_cast<std::size_t>(length), "a tensor's name");
    name_ = messages::printable(tensor.name);
    read_shape(tensor);
    read_type(tensor);
    const std::uint64_t offset = file_.natural(8, name_ + ": offset");
    if (offset > largest_int64 - static_cast<std::uint64_t>(tensor.bytes)) {
      throw file_.error(name_ + ": offset", std::to_string(offset), "a place in the file");
    }
    tensor.offset = static_cast<std::int64_t>(offset);
    return tensor;
  }

 private:
  static constexpr std::uint64_t longest_name = 64;
  static constexpr std::uint64_t most_ggml_dimensions = 4;

  void read_shape(StoredTensor& tensor) {
    const std::uint64_t dimensions = file_.natural(4, name_ + ": n_dims");
    if (dimensions > most_ggml_dimensions) {
      throw file_.error(name_ + ": n_dims", std::to_string(dimensions),
                        "at most " + std::to_string(most_ggml_dimensions));
    }
    tensor.shape.resize(static_cast<std::size_t>(dimensions));
    // ggml's ne has the innermost dimension first.
    for (auto size = tensor.shape.rbegin(); size != tensor.shape.rend(); ++size) {
      const std::uint64_t number = file_.natural(8, name_ + ": dims");
      if (number > largest_int64) {
        throw file_.error(name_ + ": dims", std::to_string(number), "sizes below 2^63");
      }
      *size = static_cast<std::int64_t>(number);
    }
  }

  void read_type(StoredTensor& tensor) {
    const auto id = static_cast<std::uint32_t>(file_.natural(4, name_ + ": type"));
    const io::GgmlType* type = io::ggml_type(id);
    if (type == nullptr) {
      throw file_.error(name_ + ": type", std::to_string(id), "the number of a type of ggml");
    }
    tensor.type = type->name;
    const std::int64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
    if (row % type->block != 0) {
      throw file_.error(name_ + ": dims", messages::sizes_text(tensor.shape),
                        "rows of whole blocks of " + std::to_string(type->block) + ", as " +
                            tensor.type + " has them");
    }
    const std::optional<std::int64_t> entries = entries_of(tensor.shape);
    const std::optional<std::int64_t> bytes =
        entries ? checked_product(*entries / type->block, type->bytes) : entries;
    if (!bytes) {
      throw file_.error(name_ + ": dims", messages::sizes_text(tensor.shape),
                        "fewer than 2^63 bytes");
    }
    tensor.bytes = *bytes;
  }

  files::FileCursor& file_;
  std::string name_;  // of the tensor, as errors show it
};

/// The least multiple of `alignment` that is not smaller; both are below 2^63.
inline std::uint64_t aligned(std::uint64_t position, std::uint64_t alignment) {
  return position + (alignment - position % alignment) % alignment;
}

inline std::uint64_t gguf_alignment(const files::FileCursor& file, const GgufMetadata& metadata) {
  const auto found = metadata.find("general.alignment");
  if (found == metadata.end()) return 32;
  const GgufValue& value = found->second;
  if (value.form != GgufValue::Form::natural || value.natural == 0 || value.natural % 8 != 0 ||
      value.natural > 1U << 30U) {
    throw file.error("general.alignment", to_text(value), "a multiple of 8, at most 2^30");
  }
  return value.natural;
}

/// Tensors follow each other with nothing but padding in between, and end within the file. Returns
/// where the last one's padding ends, counted from the beginning of the data.
inline std::uint64_t check_gguf_layout(const files::FileCursor& file, const TensorList& list,
                                       std::uint64_t alignment, std::uint64_t data_size) {
  std::uint64_t end = 0;
  const auto order = list.sorted(0, [](const StoredTensor& a, const StoredTensor& b) {
    return a.offset != b.offset ? a.offset < b.offset : a.bytes < b.bytes;
  });
  for (const std::uint32_t place : order) {
    const StoredTensor& tensor = list.all()[place];
    const auto offset = static_cast<std::uint64_t>(tensor.offset);
    const auto bytes = static_cast<std::uint64_t>(tensor.bytes);
    const std::string field = messages::printable(tensor.name) + ": offset";
    if (offset != end) {
      throw file.error(
          field, std::to_string(offset), std::to_string(end),
          offset < end ? "it overlaps the tensor before it" : "no tensor has the bytes before it");
    }
    if (bytes > data_size || offset > data_size - bytes) {
      throw file.error(field, std::to_string(offset),
                       std::to_string(bytes) + " bytes from there on, where the data has " +
                           std::to_string(data_size));
    }
    end = aligned(offset + bytes, alignment);
  }
  return end;
}

inline void read_gguf_version(files::FileCursor& file) {
  if (file.text(4, "magic") != "GGUF") throw file.error("magic", "(another)", "GGUF");
  const std::uint64_t version = file.natural(4, "version");
  if (version == 2 || version == 3) return;
  const bool big_endian = version != 0 && (version & 0xFFFFU) == 0;
  throw file.error("version", std::to_string(version), "2 or 3",
                   big_endian     ? "it is a file for machines with the highest byte first"
                   : version == 1 ? "convert the model again, with a current llama.cpp"
                                  : "");
}

/// A model in several files has its metadata in the first alone.
inline void refuse_split(const files::FileCursor& file, const GgufMetadata& metadata) {
  const auto count = metadata.find("split.count");
  if (count == metadata.end() || count->second.natural <= 1) return;
  throw file.error("split.count", to_text(count->second), "a model in one file",
                   "merge the files with llama-gguf-split --merge");
}

}  // namespace detail

namespace io {

/// The tensors of a GGUF file, and the shape of a llama, qwen2, qwen3, gemma or gpt2, from its
/// header alone.
/// Source:   ggml, docs/gguf.md, and gguf_init_from_file() of llama.cpp, ggml/src/gguf.cpp.
/// Throws:   InvalidInput, naming the file and the field, for another version than 2 and 3, counts
///           and lengths that the file cannot hold, a key or name given twice, a name of more than
///           64 bytes, more than 4 dimensions, an unknown type, rows that are not whole blocks,
///           offsets that overlap or leave more than padding, tensors or data beyond the end of the
///           file, and for one file of several.
/// Differs:  keys take at most 1 MiB, metadata ends within 64 MiB, arrays are at most 4 deep; the
///           format has no such bounds.
inline TensorFile read_gguf(const std::string& path) {
  using namespace detail;
  files::FileCursor file(path);
  TensorList list("GGUF");
  list.begin_file(path);
  read_gguf_version(file);
  const std::uint64_t tensors = file.natural(8, "n_tensors");
  constexpr std::uint64_t smallest_tensor = 24;  // without a name, as a number
  const std::uint64_t values = file.natural(8, "n_kv");
  if (tensors > most_tensors || tensors > file.left() / smallest_tensor) {
    throw file.error("n_tensors", std::to_string(tensors),
                     "at most " + std::to_string(most_tensors) + " that fit in the file");
  }
  const GgufMetadata metadata = GgufMetadataReader(file).read(values);
  refuse_split(file, metadata);
  const std::uint64_t alignment = gguf_alignment(file, metadata);
  list.reserve(static_cast<std::size_t>(tensors));
  GgufTensorReader reader(file);
  for (std::uint64_t i = 0; i < tensors; ++i) list.add(reader.read());
  const std::vector<std::uint32_t> by_name = list.by_name();

  const std::uint64_t data = aligned(file.position(), alignment);
  const std::uint64_t data_size = file.size() > data ? file.size() - data : 0;
  const std::uint64_t end = check_gguf_layout(file, list, alignment, data_size);
  // Tensors without a byte fit anywhere.
  if (tensors > 0 && data > file.size()) {
    throw file.error("tensor data", "at byte " + std::to_string(data),
                     "a place within the file, which has " + std::to_string(file.size()));
  }
  for (std::size_t i = 0; i < list.all().size(); ++i) {
    list[i].offset += static_cast<std::int64_t>(data);
  }
  TensorFile result = std::move(list).take();
  if (tensors > 0 && data_size > end) {
    result.notes.push_back(std::to_string(data_size - end) +
                           " bytes after the last tensor belong to none");
  }
  GgufShape(file, metadata, by_name, result).read();
  return result;
}

}  // namespace io

}  // namespace scalewise
