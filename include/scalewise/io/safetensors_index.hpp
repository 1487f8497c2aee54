// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/files/file_cursor.hpp"
#include "scalewise/io/json_pieces.hpp"
#include "scalewise/io/safetensors.hpp"
#include "scalewise/io/stored_tensor.hpp"
#include "scalewise/messages/error.hpp"

namespace scalewise::inline io {

namespace detail {

/// A longer index is refused: 300000 tensors take less.
inline constexpr std::uint64_t longest_index = std::uint64_t{1} << 25U;

/// The most files that one index may name; DeepSeek-V3 has 163.
inline constexpr std::size_t most_shards = 4096;

/// Calls visit(tensor, file) for each member of weight_map, which is an object in the object that the
/// text is; whatever else is there is skipped.
class WeightMap final : public JsonPieces {
 public:
  using Visit = std::function<void(const std::string& tensor, const std::string& file)>;

  WeightMap(FileCursor& file, Visit visit) : JsonPieces(file), visit_(std::move(visit)) {}

  bool found() const { return found_; }

 private:
  void open(bool object) override {
    if (inside_ || (depth_ == 0 && !object)) refuse(object ? "(an object)" : "(an array)");
    if (depth_ == 1 && key_ == "weight_map") {
      if (!object) refuse("(an array)");
      if (std::exchange(found_, true)) refuse("(given twice)");
      inside_ = true;
    }
    ++depth_;
  }

  void close() override {
    --depth_;
    inside_ = false;
  }

  void name(std::string& key) override {
    if (depth_ <= 1 || inside_) key_ = std::move(key);
  }

  void text(std::string& value) override {
    if (inside_) visit_(key_, value);
    if (!inside_) other('"' + printable(value) + '"');
  }

  void natural(std::uint64_t value) override { other(std::to_string(value)); }

  void other(const std::string& value) override {
    if (inside_ || depth_ == 0 || (depth_ == 1 && key_ == "weight_map")) refuse(value);
  }

  [[noreturn]] void refuse(const std::string& value) const {
    if (depth_ == 0) throw file().error("index", value, "an object");
    if (!inside_) throw file().error("weight_map", value, "one object");
    throw file().error("weight_map: " + printable(key_), value, "the name of a file");
  }

  Visit visit_;
  std::string key_;
  std::size_t depth_ = 0;  // of objects and arrays around the next value
  bool inside_ = false;    // of weight_map
  bool found_ = false;
};

inline bool read_weight_map(FileCursor& file, WeightMap::Visit visit) {
  WeightMap map(file, std::move(visit));
  map.read(file.left());
  return map.found();
}

/// A name in an index may not lead out of its folder.
inline bool is_plain_file_name(const std::string& name) {
  const bool special = std::any_of(name.begin(), name.end(), [](char c) {
    return c == '/' || c == '\\' || c == ':' || static_cast<unsigned char>(c) < ' ';
  });
  return !special && !name.empty() && name.size() < 256 && name != "." && name != "..";
}

inline FileCursor open_index(const std::string& path) {
  FileCursor file(path);
  if (file.size() <= longest_index) return file;
  throw file.error("size", std::to_string(file.size()), "at most " + std::to_string(longest_index));
}

/// How many tensors an index names; their files go to `shards`.
inline std::size_t count_weight_map(FileCursor& file, std::set<std::string>& shards) {
  std::size_t count = 0;
  const bool found =
      read_weight_map(file, [&](const std::string& tensor, const std::string& shard) {
        ++count;
        if (!is_plain_file_name(shard)) {
          throw file.error("weight_map: " + printable(tensor), printable(shard),
                           "the name of a file in the same folder");
        }
        if (shards.insert(shard).second && shards.size() > most_shards) {
          throw file.error("weight_map", "(more files)",
                           "at most " + std::to_string(most_shards) + " files");
        }
      });
  if (!found) throw file.error("weight_map", "(missing)", "an object");
  return count;
}

/// The tensors that an index names are those of its files, each in the file that it says.
inline void check_weight_map(FileCursor& file, const TensorList& list,
                             const std::vector<std::string>& shards) {
  const std::vector<std::uint32_t> places = list.by_name();
  std::vector<bool> seen(places.size());
  read_weight_map(file, [&](const std::string& tensor, const std::string& shard) {
    const std::string field = "weight_map: " + printable(tensor);
    const auto found = std::lower_bound(places.begin(), places.end(), tensor,
                                        [&](std::uint32_t place, const std::string& name) {
                                          return list.all()[place].name < name;
                                        });
    const bool known = found != places.end() && list.all()[*found].name == tensor;
    if (!known || shards[list.all()[*found].file] != shard) {
      throw file.error(field, printable(shard),
                       known ? shards[list.all()[*found].file] : "a file with this tensor");
    }
    const auto at = static_cast<std::size_t>(found - places.begin());
    if (seen[at]) throw file.error(field, "(given twice)", "one file for each tensor");
    seen[at] = true;
  });
  const auto missing = std::find(seen.begin(), seen.end(), false);
  if (missing == seen.end()) return;
  const StoredTensor& tensor = list.all()[places[static_cast<std::size_t>(missing - seen.begin())]];
  throw file.error("weight_map: " + printable(tensor.name), "(missing)",
                   "its file, " + shards[tensor.file]);
}

}  // namespace detail

/// The tensors of all files that a model.safetensors.index.json names, which are in its folder.
/// Throws:   InvalidInput as read_safetensors(), for an index of more than 32 MiB or 4096 files, for
///           a file that is not in the same folder, and where the index and its files disagree.
inline TensorFile read_safetensors_index(const std::string& path) {
  std::set<std::string> names;
  FileCursor first = detail::open_index(path);
  const std::size_t count = detail::count_weight_map(first, names);
  detail::TensorList list("safetensors");
  list.reserve(count);
  const std::vector<std::string> shards(names.begin(), names.end());
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  for (const std::string& shard : shards) {
    detail::read_safetensors_into(list, (folder / shard).string());
  }
  FileCursor second = detail::open_index(path);
  detail::check_weight_map(second, list, shards);
  return std::move(list).take();
}

}  // namespace scalewise::inline io
