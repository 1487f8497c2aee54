// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/files/file_cursor.hpp"
#include "scalewise/io/json_pieces.hpp"
#include "scalewise/io/stored_tensor.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/messages/sizes_text.hpp"

namespace scalewise {

namespace detail {

struct SafetensorsType {
  std::string_view name;
  std::int64_t bits;
};

/// Source:   safetensors, enum Dtype and bitsize() in src/tensor.rs.
inline constexpr std::array<SafetensorsType, 22> safetensors_types{{
    {"BOOL", 8},        {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
    {"I8", 8},          {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
    {"F8_E5M2FNUZ", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16},    {"BF16", 16},
    {"I32", 32},        {"U32", 32},    {"F32", 32},    {"C64", 64},    {"F64", 64},
    {"I64", 64},        {"U64", 64},
}};

/// A longer header is refused; the format allows 100 MB.
inline constexpr std::uint64_t longest_safetensors_header = std::uint64_t{1} << 24U;

/// The JSON of a header: {name: {"dtype": …, "shape": […], "data_offsets": [begin, end]}}. Offsets
/// in the list count from the beginning of the data.
class SafetensorsHeader final : public io::JsonPieces {
 public:
  SafetensorsHeader(files::FileCursor& file, TensorList& list, std::uint64_t data_size)
      : io::JsonPieces(file), list_(list), data_size_(data_size) {}

 private:
  enum class Place { outside, names, metadata, tensor, shape, offsets };
  enum Key : unsigned { no_key = 0, dtype = 1, shape = 2, data_offsets = 4, all_keys = 7 };

  static constexpr std::size_t most_metadata = std::size_t{1} << 16U;

  void open(bool object) override {
    if (place_ == Place::outside && object) {
      place_ = Place::names;
    } else if (place_ == Place::names && object) {
      place_ = in_metadata_ ? Place::metadata : Place::tensor;
    } else if (place_ == Place::tensor && key_ == shape && !object) {
      place_ = Place::shape;
    } else if (place_ == Place::tensor && key_ == data_offsets && !object) {
      place_ = Place::offsets;
    } else {
      refuse(object ? "(an object)" : "(an array)");
    }
  }

  void close() override {
    if (place_ == Place::shape) {
      place_ = Place::tensor;
    } else if (place_ == Place::offsets) {
      if (offsets_ != 2) refuse("(" + std::to_string(offsets_) + " numbers)");
      place_ = Place::tensor;
    } else if (place_ == Place::tensor) {
      finish();
      place_ = Place::names;
    } else if (place_ == Place::metadata) {
      place_ = Place::names;
    } else {
      place_ = Place::outside;
    }
  }

  void name(std::string& key) override {
    if (place_ == Place::names) {
      in_metadata_ = key == "__metadata__";
      if (in_metadata_ && std::exchange(has_metadata_, true)) refuse_second("__metadata__");
      tensor_ = {};
      tensor_.name = std::move(key);
      given_ = 0;
      key_ = no_key;
    } else if (place_ == Place::metadata) {
      if (metadata_.size() == most_metadata) {
        throw file().error("__metadata__", "(larger)",
                           "at most " + std::to_string(most_metadata) + " keys");
      }
      if (!metadata_.insert(key).second) refuse_second("__metadata__: " + messages::printable(key));
    } else {
      key_ = key == "dtype"          ? dtype
             : key == "shape"        ? shape
             : key == "data_offsets" ? data_offsets
                                     : no_key;
      if (key_ == no_key) {
        throw file().error(field("") + messages::printable(key), "(given)",
                           "dtype, shape and data_offsets");
      }
      if ((given_ & key_) != 0) refuse_second(field(messages::printable(key)));
      given_ |= key_;
    }
  }

  void text(std::string& value) override {
    if (place_ == Place::metadata) return;
    if (place_ != Place::tensor || key_ != dtype) refuse('"' + messages::printable(value) + '"');
    tensor_.type = std::move(value);
  }

  void natural(std::uint64_t value) override {
    if (place_ != Place::shape && place_ != Place::offsets) refuse(std::to_string(value));
    if (value > largest_int64) refuse(std::to_string(value));
    const auto number = static_cast<std::int64_t>(value);
    if (place_ == Place::shape) {
      if (tensor_.shape.size() == io::most_dimensions) refuse("(more)");
      tensor_.shape.push_back(number);
    } else {
      if (offsets_ == 2) refuse("(more)");
      (offsets_ == 0 ? tensor_.offset : end_) = number;
      ++offsets_;
    }
  }

  void other(const std::string& value) override { refuse(value); }

  /// A tensor's object is complete.
  void finish() {
    for (const auto& [key, text] : {std::pair{dtype, "dtype"}, std::pair{shape, "shape"},
                                    std::pair{data_offsets, "data_offsets"}}) {
      if ((given_ & key) == 0) throw file().error(field(text), "(missing)", "a value");
    }
    offsets_ = 0;
    const SafetensorsType* known = nullptr;
    for (const SafetensorsType& type : safetensors_types) {
      if (type.name == tensor_.type) known = &type;
    }
    if (known == nullptr) {
      throw file().error(field("dtype"), messages::printable(tensor_.type),
                         "a type of safetensors");
    }
    const std::optional<std::int64_t> entries = entries_of(tensor_.shape);
    const std::optional<std::int64_t> bits =
        entries ? checked_product(*entries, known->bits) : entries;
    if (!bits || *bits % 8 != 0) {
      throw file().error(field("shape"), messages::sizes_text(tensor_.shape),
                         bits ? "a whole number of bytes" : "fewer than 2^63 bits");
    }
    const std::string offsets = messages::sizes_text({tensor_.offset, end_});
    if (end_ < tensor_.offset || end_ - tensor_.offset != *bits / 8) {
      throw file().error(field("data_offsets"), offsets,
                         "the " + std::to_string(*bits / 8) + " bytes of " + tensor_.type + " " +
                             messages::sizes_text(tensor_.shape));
    }
    if (static_cast<std::uint64_t>(end_) > data_size_) {
      throw file().error(field("data_offsets"), offsets,
                         "at most the " + std::to_string(data_size_) + " bytes after the header");
    }
    tensor_.bytes = *bits / 8;
    list_.add(std::exchange(tensor_, {}));
  }

  /// "wte.weight: shape".
  std::string field(const std::string& key) const {
    return messages::printable(tensor_.name) + ": " + key;
  }

  [[noreturn]] void refuse_second(const std::string& name) const {
    throw file().error(name, "(given twice)", "one value for each key");
  }

  [[noreturn]] void refuse(const std::string& value) const {
    if (place_ == Place::outside) throw file().error("header", value, "an object");
    if (place_ == Place::names)
      throw file().error(messages::printable(tensor_.name), value, "an object");
    if (place_ == Place::metadata) throw file().error("__metadata__", value, "strings only");
    if (place_ == Place::shape || key_ == shape) {
      throw file().error(field("shape"), value,
                         "an array of at most " + std::to_string(io::most_dimensions) +
                             " whole numbers from 0 to 2^63 - 1");
    }
    if (place_ == Place::offsets || key_ == data_offsets) {
      throw file().error(field("data_offsets"), value, "two whole numbers from 0 to 2^63 - 1");
    }
    throw file().error(field("dtype"), value, "a string");
  }

  TensorList& list_;
  std::uint64_t data_size_;
  Place place_ = Place::outside;
  bool in_metadata_ = false;
  bool has_metadata_ = false;
  std::set<std::string> metadata_;  // its keys
  StoredTensor tensor_;             // that is being read
  unsigned given_ = 0;              // its keys
  Key key_ = no_key;                // the last one
  std::size_t offsets_ = 0;         // of two
  std::int64_t end_ = 0;            // of its data
};

/// Tensors from `first` on share a buffer of `size` bytes without a gap or an overlap.
inline void check_safetensors_layout(const files::FileCursor& file, const TensorList& list,
                                     std::size_t first, std::uint64_t size) {
  std::int64_t end = 0;
  const auto order = list.sorted(first, [](const StoredTensor& a, const StoredTensor& b) {
    return a.offset != b.offset ? a.offset < b.offset : a.bytes < b.bytes;
  });
  for (const std::uint32_t place : order) {
    const StoredTensor& tensor = list.all()[place];
    if (tensor.offset != end) {
      throw file.error(messages::printable(tensor.name) + ": data_offsets",
                       messages::sizes_text({tensor.offset, tensor.offset + tensor.bytes}),
                       "a begin of " + std::to_string(end),
                       tensor.offset < end ? "it overlaps the tensor before it"
                                           : "no tensor has the bytes before it");
    }
    end += tensor.bytes;
  }
  if (static_cast<std::uint64_t>(end) == size) return;
  throw file.error("size", std::to_string(file.size()),
                   std::to_string(file.size() - size + static_cast<std::uint64_t>(end)),
                   "no tensor has the bytes at the end");
}

/// Adds the tensors of one file.
inline void read_safetensors_into(TensorList& list, const std::string& path) {
  files::FileCursor file(path);
  list.begin_file(path);
  const std::size_t first = list.all().size();
  const std::uint64_t length = file.natural(8, "header length");
  if (length > file.left()) {
    throw file.error("header length", std::to_string(length),
                     "at most the " + std::to_string(file.left()) + " bytes after it");
  }
  if (length > longest_safetensors_header) {
    throw file.error("header length", std::to_string(length),
                     "at most " + std::to_string(longest_safetensors_header),
                     "100000 tensors take less");
  }
  const std::uint64_t data = file.position() + length;
  const std::uint64_t data_size = file.size() - data;
  if (length == 0 || file.peek("header") != '{') {
    throw file.error("header", length == 0 ? "(empty)" : "(something else)", "a JSON object");
  }
  SafetensorsHeader(file, list, data_size).read(length);
  check_safetensors_layout(file, list, first, data_size);
  for (std::size_t i = first; i < list.all().size(); ++i) {
    list[i].offset += static_cast<std::int64_t>(data);
  }
}

}  // namespace detail

namespace io {

/// The tensors of a safetensors file, from its header alone.
/// Source:   safetensors, README.md, section Format, and Metadata::validate() in src/tensor.rs.
/// Throws:   InvalidInput, naming the file, the tensor and the field, for a header of more than
///           16 MiB, what is no JSON of that form, a name or key given twice, an unknown dtype, more
///           than 8 dimensions, offsets outside the file or that leave a gap, overlap or are
///           not the size of the shape, and for bytes after the last tensor.
/// Differs:  the format allows headers of 100 MB and any number of dimensions.
inline TensorFile read_safetensors(const std::string& path) {
  detail::TensorList list("safetensors");
  detail::read_safetensors_into(list, path);
  static_cast<void>(list.by_name());
  return std::move(list).take();
}

}  // namespace io

}  // namespace scalewise
