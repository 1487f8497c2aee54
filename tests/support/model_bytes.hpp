// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Files of models, written byte by byte from the formats' specifications, and what their readers
// say about them. Nothing here is the library's own.

#pragma once

#include <bit>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/error_message.hpp"
#include "support/temporary_file.hpp"

namespace scalewise::test {

/// Numbers and texts one after another, the lowest byte first.
class ModelBytes {
 public:
  ModelBytes& number(std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) text_ += static_cast<char>(value >> (8 * i) & 255U);
    return *this;
  }
  ModelBytes& u32(std::uint64_t value) { return number(value, 4); }
  ModelBytes& u64(std::uint64_t value) { return number(value, 8); }
  ModelBytes& f32(float value) { return u32(std::bit_cast<std::uint32_t>(value)); }
  ModelBytes& raw(std::string_view text) {
    text_ += text;
    return *this;
  }
  /// GGUF's string: its length, then its bytes.
  ModelBytes& gguf_text(std::string_view text) { return u64(text.size()).raw(text); }
  ModelBytes& zeros(std::size_t count) {
    text_.append(count, '\0');
    return *this;
  }
  ModelBytes& pad_to(std::size_t multiple) {
    return zeros((multiple - text_.size() % multiple) % multiple);
  }
  std::size_t size() const { return text_.size(); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// A safetensors file: a length, a JSON text, and `data` bytes.
inline std::string safetensors_bytes(const std::string& header, std::size_t data) {
  return ModelBytes().u64(header.size()).raw(header).zeros(data).text();
}

/// A GGUF file as it is put together; numbers of values and tensors count themselves.
struct GgufBytes {
  std::uint32_t version = 3;
  std::uint64_t values = 0;
  std::uint64_t tensors = 0;
  ModelBytes metadata = {};
  ModelBytes infos = {};
  std::size_t alignment = 32;
  std::size_t data = 0;

  /// A value whose bytes follow its type.
  GgufBytes& value(std::string_view key, std::uint32_t type, const ModelBytes& bytes) {
    ++values;
    metadata.gguf_text(key).u32(type).raw(bytes.text());
    return *this;
  }
  GgufBytes& u32(std::string_view key, std::uint64_t number) {
    return value(key, 4, ModelBytes().u32(number));
  }
  GgufBytes& text(std::string_view key, std::string_view text) {
    return value(key, 8, ModelBytes().gguf_text(text));
  }

  /// A tensor with ggml's ne, the innermost dimension first.
  GgufBytes& tensor(std::string_view name, const std::vector<std::uint64_t>& ne, std::uint32_t type,
                    std::uint64_t offset) {
    ++tensors;
    infos.gguf_text(name).u32(ne.size());
    for (const std::uint64_t size : ne) infos.u64(size);
    infos.u32(type).u64(offset);
    return *this;
  }
  /// A tensor of `bytes` bytes, after the last one.
  GgufBytes& next(std::string_view name, const std::vector<std::uint64_t>& ne, std::uint32_t type,
                  std::size_t bytes) {
    const std::size_t offset = (data + alignment - 1) / alignment * alignment;
    data = offset + bytes;
    return tensor(name, ne, type, offset);
  }

  /// Where the data begin.
  std::size_t begin() const { return bytes_before_data().size(); }
  std::string bytes() const { return bytes_before_data().zeros(data).text(); }

 private:
  ModelBytes bytes_before_data() const {
    ModelBytes all;
    all.raw("GGUF").u32(version).u64(tensors).u64(values);
    all.raw(metadata.text()).raw(infos.text()).pad_to(alignment);
    return all;
  }
};

/// The message of read(path) about a file with this content, which is called FILE.
template <class Read>
std::string refusal_of(const std::string& content, const Read& read) {
  const TemporaryFile file(content);
  std::string message = error_message([&] { static_cast<void>(read(file.path())); });
  for (std::size_t at = 0; (at = message.find(file.path(), at)) != std::string::npos;) {
    message.replace(at, file.path().size(), "FILE");
  }
  return message;
}

}  // namespace scalewise::test
