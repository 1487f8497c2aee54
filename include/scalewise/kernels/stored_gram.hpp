// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "scalewise/files/bytes.hpp"
#include "scalewise/files/file.hpp"
#include "scalewise/files/inputs.hpp"
#include "scalewise/files/lock.hpp"
#include "scalewise/files/read_file.hpp"
#include "scalewise/kernels/gram.hpp"
#include "scalewise/messages/error.hpp"

namespace scalewise::kernels {

/// Symmetric Gram matrices in a folder, a file per block, so that they may be larger than memory.
/// Every file carries a checksum and what it was computed from; a block is on disk in full or not
/// at all, however the program ends, and what is there is not computed again.
class StoredGram {
 public:
  /// Begins a folder, or resumes one. `inputs` are all that the kernel depends on, the data
  /// and their order included.
  /// Throws:   InvalidInput for a folder of other inputs, of an older version, in use by another
  ///           process, or that cannot be written, and for n or block below 1.
  StoredGram(std::string folder, Eigen::Index n, files::Inputs inputs, Eigen::Index block = 256)
      : folder_(std::move(folder)),
        n_(n),
        block_(block),
        blocks_(symmetric_blocks(n, block)),
        inputs_(std::move(inputs)) {
    inputs_.push_back({"rows of the Gram matrix", std::to_string(n)});
    inputs_.push_back({"rows of a block", std::to_string(block)});
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    lock();
    if (std::filesystem::exists(file("settings.txt"), error)) {
      throw InvalidInput("folder", folder_, "blocks that carry checksums",
                         "an older version wrote them; use another folder");
    }
    const std::string path = file("inputs.bin");
    if (!std::filesystem::exists(path, error)) {
      files::ByteWriter bytes;
      bytes.text(schema);
      files::write_inputs(bytes, inputs_);
      files::write_file(path, files::with_checksum(std::move(bytes).take()));
    }
    files::require_same_inputs(inputs_, saved_inputs(path), path);
    for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
      if (entry.path().string().find(files::temporary_suffix) != std::string::npos) {
        std::filesystem::remove(entry.path(), error);  // left by a run that was killed
      }
    }
  }

  Eigen::Index size() const { return n_; }

  /// The blocks that are not on disk, are damaged, or belong to another place or store.
  std::vector<GramBlock> missing() const {
    std::vector<GramBlock> result;
    std::error_code error;
    for (const GramBlock& block : blocks_) {
      if (!std::filesystem::exists(file(name(block)), error) || !read(block)) {
        result.push_back(block);
      }
    }
    return result;
  }

  /// Computes what is missing.
  /// Returns:  false when `report` asked to stop; what is done stays.
  /// Throws:   as for_each_gram_block() does; InvalidInput when a block cannot be written.
  template <class Pair>
  bool compute(const Pair& pair, const GramReport& report = {}) {
    return for_each_gram_block(
        missing(), pair,
        [&](const GramBlock& block, const GramMatrices& gram) {
          files::ByteWriter bytes;
          bytes.raw(header(block));
          bytes.numbers(gram.nngp.data(), static_cast<std::size_t>(gram.nngp.size()));
          bytes.numbers(gram.ntk.data(), static_cast<std::size_t>(gram.ntk.size()));
          files::write_file(file(name(block)), files::with_checksum(std::move(bytes).take()));
        },
        report);
  }

  /// Calls visit(block, matrices) for every block on and above the diagonal, one in memory at a
  /// time.
  /// Throws:   InvalidInput for a block that missing() would name.
  template <class Visit>
  void for_each_block(const Visit& visit) const {
    for (const GramBlock& block : blocks_) {
      const std::optional<GramMatrices> gram = read(block);
      if (!gram) {
        throw InvalidInput(file(name(block)), "(damaged, or of another place)",
                           name(block) + " of these inputs", "compute() repairs it");
      }
      visit(block, *gram);
    }
  }

  /// Both matrices in memory.
  /// Throws:   as for_each_block() does.
  GramMatrices load() const {
    GramMatrices all{Eigen::MatrixXd(n_, n_), Eigen::MatrixXd(n_, n_)};
    for_each_block([&](const GramBlock& b, const GramMatrices& part) {
      const auto put = [&](Eigen::MatrixXd& to, const Eigen::MatrixXd& from) {
        to.block(b.row, b.column, b.rows, b.columns) = from;
        to.block(b.column, b.row, b.columns, b.rows) = from.transpose();
      };
      put(all.nngp, part.nngp);
      put(all.ntk, part.ntk);
    });
    return all;
  }

 private:
  static constexpr std::string_view schema = "scalewise.gram/2";

  void lock() {
    const std::string path = file("lock");
    lock_.reset(std::fopen(path.c_str(), "ab"));
    if (lock_ == nullptr) {
      throw InvalidInput("folder", folder_.empty() ? "(empty)" : folder_,
                         "a folder that can be written");
    }
    if (!files::lock_file(lock_.get(), files::IfLocked::refuse)) {
      throw InvalidInput("folder", folder_, "a folder that no other process writes");
    }
  }

  std::string file(const std::string& name) const {
    return (std::filesystem::path(folder_) / name).string();
  }
  std::string name(const GramBlock& block) const {
    return "block_" + std::to_string(block.row / block_) + "_" +
           std::to_string(block.column / block_) + ".bin";
  }

  static files::Inputs saved_inputs(const std::string& path) {
    const std::string text = files::read_file(path, std::size_t{1} << 20U);
    const std::optional<std::string_view> covered = files::without_checksum(text);
    files::ByteReader bytes(covered.value_or(std::string_view{}));
    const bool known = bytes.text() == schema;
    files::Inputs inputs = files::read_inputs(bytes);
    if (!covered || !known || !bytes.good() || !bytes.at_end()) {
      throw InvalidInput(path, "(damaged)", "the inputs of these blocks",
                         "delete this file; blocks of other inputs are then computed again");
    }
    return inputs;
  }

  /// The first line of a block's file: its place in the matrix.
  std::string header(const GramBlock& block) const {
    files::ByteWriter bytes;
    bytes.text(schema);
    bytes.text(files::fingerprint(inputs_));
    for (const Eigen::Index place : {block.row, block.column, block.rows, block.columns}) {
      bytes.number(static_cast<std::int64_t>(place));
    }
    return std::move(bytes).take();
  }

  /// None for a file that is damaged, or of another place or store.
  /// Throws:   InvalidInput for one that is missing or cannot be read.
  std::optional<GramMatrices> read(const GramBlock& block) const {
    const std::string begin = header(block);
    const auto numbers = static_cast<std::size_t>(block.rows * block.columns);
    const std::size_t size = begin.size() + 2 * sizeof(double) * numbers + sizeof(std::uint64_t);
    const std::string path = file(name(block));
    std::error_code error;
    if (std::filesystem::file_size(path, error) != size && !error) return {};
    const std::string bytes = files::read_file(path, size);
    const std::optional<std::string_view> covered = files::without_checksum(bytes);
    if (!covered || bytes.size() != size || !covered->starts_with(begin)) return {};
    GramMatrices gram{Eigen::MatrixXd(block.rows, block.columns),
                      Eigen::MatrixXd(block.rows, block.columns)};
    files::ByteReader reader(covered->substr(begin.size()));
    reader.numbers(gram.nngp.data(), numbers);
    reader.numbers(gram.ntk.data(), numbers);
    return gram;
  }

  std::string folder_;
  Eigen::Index n_;
  Eigen::Index block_;
  std::vector<GramBlock> blocks_;
  files::Inputs inputs_;
  files::OpenFile lock_;
};

}  // namespace scalewise::kernels
