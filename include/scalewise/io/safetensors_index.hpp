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
#include <system_error>
#include <utility>
#include <vector>

#include "scalewise/files/file_cursor.hpp"
#include "scalewise/io/json_pieces.hpp"
#include "scalewise/io/safetensors.hpp"
#include "scalewise/io/stored_tensor.hpp"
#include "scalewise/messages/error.hpp"

namespace scalewise {

namespace detail {

/// A longer index is refused: 300000 tensors take less.
inline constexpr std::uint64_t longest_index = std::uint64_t{1} << 25U;

/// The most files that one index may name; DeepSeek-V3 has 163.
inline constexpr std::size_t most_shards = 4096;

/// Calls visit(tensor, file) for each member of weight_map, which is an object in the object that the
/// text is; whatever else is there is skipped.
class WeightMap final : public io::JsonPieces {
 public:
  using Visit = std::function<void(const std::string& tensor, const std::string& file)>;

  WeightMap(files::FileCursor& file, Visit visit)
      : io::JsonPieces(file), visit_(std::move(visit)) {}

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
    if (!inside_) other('"' + messages::printable(value) + '"');
  }

  void natural(std::uint64_t value) override { other(std::to_string(value)); }

  void other(const std::string& value) override {
    if (inside_ || depth_ == 0 || (depth_ == 1 && key_ == "weight_map")) refuse(value);
  }

  [[noreturn]] void refuse(const std::string& value) const {
    if (depth_ == 0) throw file().error("index", value, "an object");
    if (!inside_) throw file().error("weight_map", value, "one object");
    throw file().error("weight_map: " + messages::printable(key_), value, "the name of a file");
  }

  Visit visit_;
  std::string key_;
  std::size_t depth_ = 0;  // of objects and arrays around the next value
  bool inside_ = false;    // of weight_map
  bool found_ = false;
};

inline bool read_weight_map(files::FileCursor& file, WeightMap::Visit visit) {
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

inline files::FileCursor open_index(const std::string& path) {
  files::FileCursor file(path);
  if (file.size() <= longest_index) return file;
  throw file.error("size", std::to_string(file.size()), "at most " + std::to_string(longest_index));
}

/// How many tensors an index names; their files go to `shards`.
inline std::size_t count_weight_map(files::FileCursor& file, std::set<std::string>& shards) {
  std::size_t count = 0;
  const bool found =
      read_weight_map(file, [&](const std::string& tensor, const std::string& shard) {
        ++count;
        if (!is_plain_file_name(shard)) {
          throw file.error("weight_map: " + messages::printable(tensor), messages::printable(shard),
                           "the name of a file in the same folder");
        }
        if (shards.insert(shard).second && shards.size() > most_shards) {
          throw file.error("weight_map", "(more files)",
                           "at most " + std::to_string(most_shards) + " files");
        }
      });
  if (!found) {
    throw file.error("weight_map", "(missing)", "an object",
                     "a config.json is for --config and --describe of inspect");
  }
  return count;
}

/// Which of all tensors an index takes: each of its names in the file that it says. A tensor that two files have
/// is that of the index's file; one that it does not name, and whose file it names, is an error.
class IndexedTensors {
 public:
  IndexedTensors(const TensorList& list, const std::vector<std::string>& shards)
      : list_(list),
        shards_(shards),
        places_(list.sorted(0, [](const auto& a, const auto& b) { return a.name < b.name; })),
        taken_(list.all().size(), false) {}

  void check(files::FileCursor& file) {
    read_weight_map(file, [&](const std::string& tensor, const std::string& shard) {
      take(file, tensor, shard);
    });
    for (std::size_t begin = 0, end = 0; begin < places_.size(); begin = end) {
      bool any = false;
      for (end = begin; end < places_.size() && name(end) == name(begin); ++end) {
        any = any || taken_[places_[end]];
        if (end > begin && tensor(end).file == tensor(end - 1).file) {
          throw InvalidInput(list_.path_of(tensor(end)) + ": " + messages::printable(name(end)),
                             "(given twice)", "one tensor of each name");
        }
      }
      if (any) continue;
      throw file.error("weight_map: " + messages::printable(name(begin)), "(missing)",
                       "its file, " + shards_[tensor(begin).file]);
    }
  }

  const std::vector<bool>& taken() const { return taken_; }

 private:
  const StoredTensor& tensor(std::size_t i) const { return list_.all()[places_[i]]; }
  const std::string& name(std::size_t i) const { return tensor(i).name; }

  void take(const files::FileCursor& file, const std::string& sought, const std::string& shard) {
    const std::string field = "weight_map: " + messages::printable(sought);
    const auto first = std::lower_bound(places_.begin(), places_.end(), sought,
                                        [&](std::uint32_t place, const std::string& wanted) {
                                          return list_.all()[place].name < wanted;
                                        });
    std::string other;
    for (auto i = static_cast<std::size_t>(first - places_.begin());
         i < places_.size() && name(i) == sought; ++i) {
      if (shards_[tensor(i).file] != shard) {
        other = shards_[tensor(i).file];
        continue;
      }
      if (taken_[places_[i]]) throw file.error(field, "(given twice)", "one file for each tensor");
      taken_[places_[i]] = true;
      return;
    }
    throw file.error(field, messages::printable(shard),
                     other.empty() ? "a file with this tensor" : other);
  }

  const TensorList& list_;
  const std::vector<std::string>& shards_;
  std::vector<std::uint32_t> places_;  // by name
  std::vector<bool> taken_;            // by place
};

/// A file that an index names.
inline void read_shard(TensorList& list, const std::filesystem::path& file,
                       const std::string& index) {
  std::error_code none;
  if (!std::filesystem::exists(file, none)) {
    throw InvalidInput(file.string(), "(no such file)", "a file, as " + index + " names it",
                       "is the download complete?");
  }
  read_safetensors_into(list, file.string());
}

}  // namespace detail

namespace io {

/// The tensors of all files that a model.safetensors.index.json names, which are in its folder. Where two files
/// have a tensor, the index says which one counts.
/// Throws:   InvalidInput as read_safetensors(), for an index of more than 32 MiB or 4096 files, for
///           a file that is not in the same folder, and where the index and its files disagree.
inline TensorFile read_safetensors_index(const std::string& path) {
  std::set<std::string> names;
  files::FileCursor first = detail::open_index(path);
  const std::size_t count = detail::count_weight_map(first, names);
  detail::TensorList list("safetensors");
  list.reserve(count);
  const std::vector<std::string> shards(names.begin(), names.end());
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  for (const std::string& shard : shards) {
    detail::read_shard(list, folder / shard, path);
  }
  files::FileCursor second = detail::open_index(path);
  detail::IndexedTensors indexed(list, shards);
  indexed.check(second);
  TensorFile all = std::move(list).take();
  std::size_t at = 0;
  const std::size_t before = all.tensors.size();
  std::erase_if(all.tensors, [&](const StoredTensor&) { return !indexed.taken()[at++]; });
  if (all.tensors.size() < before) {
    all.notes.push_back(std::to_string(before - all.tensors.size()) +
                        " tensors that two files have are read from the file of the index");
  }
  return all;
}

}  // namespace io

}  // namespace scalewise
