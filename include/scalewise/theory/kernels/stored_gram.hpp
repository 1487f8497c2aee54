// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <Eigen/Core>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "scalewise/core/error.hpp"
#include "scalewise/io/bytes.hpp"
#include "scalewise/io/file.hpp"
#include "scalewise/io/read_file.hpp"
#include "scalewise/theory/kernels/gram.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <sys/file.h>
#endif

namespace scalewise::kernels {

/// Symmetric Gram matrices in a folder, a file per block, so that they may be larger than memory.
/// A block is on disk in full or not at all, however the program ends; what is there is not
/// computed again.
class StoredGram {
 public:
  /// Begins a folder, or goes on with one. `settings` say all that the kernel depends on beside the
  /// order of its inputs.
  /// Throws:   InvalidInput for a folder of other settings, in use by another process, or that
  ///           cannot be written, and for n or block below 1.
  StoredGram(std::string folder, Eigen::Index n, const std::string& settings,
             Eigen::Index block = 256)
      : folder_(std::move(folder)), n_(n), block_(block), blocks_(symmetric_blocks(n, block)) {
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    const std::string path = file("settings.txt");
    const std::string text = "scalewise.gram/1\n" + std::to_string(n) + " inputs, blocks of " +
                             std::to_string(block) + "\n" + settings + "\n";
    lock();
    if (!std::filesystem::exists(path, error)) write_file(path, text);
    const std::string saved = read_file(path, std::size_t{1} << 20U);
    if (saved != text) {
      throw InvalidInput("settings", printable(text), printable(saved) + ", as in " + path,
                         "another folder for another kernel");
    }
    for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
      if (entry.path().string().find(".bin.tmp") != std::string::npos) {
        std::filesystem::remove(entry.path(), error);  // left by a run that was killed
      }
    }
  }

  Eigen::Index size() const { return n_; }

  /// The blocks that are not on disk.
  std::vector<GramBlock> missing() const {
    std::vector<GramBlock> result;
    std::error_code error;
    for (const GramBlock& block : blocks_) {
      const std::string path = file(name(block));
      if (std::filesystem::file_size(path, error) != file_size(block) || error) {
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
          ByteWriter bytes;
          bytes.numbers(gram.nngp.data(), static_cast<std::size_t>(gram.nngp.size()));
          bytes.numbers(gram.ntk.data(), static_cast<std::size_t>(gram.ntk.size()));
          bytes.raw(fingerprint(bytes.bytes()));
          write_file(file(name(block)), bytes.bytes());
        },
        report);
  }

  /// Calls visit(block, matrices) for every block on and above the diagonal, one in memory at a
  /// time.
  /// Throws:   InvalidInput for a block that is missing or damaged.
  template <class Visit>
  void for_each_block(const Visit& visit) const {
    for (const GramBlock& block : blocks_) visit(block, read(block));
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
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  static constexpr std::size_t checksum = 16;  // digits

  void lock() {
    const std::string path = file("lock");
    lock_.reset(std::fopen(path.c_str(), "ab"));
    if (lock_ == nullptr) {
      throw InvalidInput("folder", folder_.empty() ? "(empty)" : folder_,
                         "a folder that can be written");
    }
#if defined(__unix__) || defined(__APPLE__)
    if (::flock(::fileno(lock_.get()), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      throw InvalidInput("folder", folder_, "a folder that no other process writes");
    }
#endif
  }

  std::string file(const std::string& name) const {
    return (std::filesystem::path(folder_) / name).string();
  }
  std::string name(const GramBlock& block) const {
    return "block_" + std::to_string(block.row / block_) + "_" +
           std::to_string(block.column / block_) + ".bin";
  }
  static std::size_t file_size(const GramBlock& block) {
    return 2 * sizeof(double) * static_cast<std::size_t>(block.rows * block.columns) + checksum;
  }

  GramMatrices read(const GramBlock& block) const {
    const std::string path = file(name(block));
    const std::string bytes = read_file(path, file_size(block));
    if (bytes.size() != file_size(block) ||
        fingerprint(std::string_view(bytes).substr(0, bytes.size() - checksum)) !=
            bytes.substr(bytes.size() - checksum)) {
      throw InvalidInput(path, "(damaged)", "a whole block", "delete it and compute it again");
    }
    GramMatrices gram{Eigen::MatrixXd(block.rows, block.columns),
                      Eigen::MatrixXd(block.rows, block.columns)};
    ByteReader reader(bytes);
    reader.numbers(gram.nngp.data(), static_cast<std::size_t>(gram.nngp.size()));
    reader.numbers(gram.ntk.data(), static_cast<std::size_t>(gram.ntk.size()));
    return gram;
  }

  std::string folder_;
  Eigen::Index n_;
  Eigen::Index block_;
  std::vector<GramBlock> blocks_;
  std::unique_ptr<std::FILE, Close> lock_;
};

}  // namespace scalewise::kernels
