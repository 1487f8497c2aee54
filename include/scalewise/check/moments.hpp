// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace scalewise::check {

struct Moments;

/// Moments of numbers that come in pieces, in the order of Moments::add() of all of them at once where each piece but
/// the last has a multiple of 32.
class MomentsInPieces {
 public:
  template <class Scalar>
  void add(const Scalar* data, std::size_t size) {
    std::size_t i = 0;
    for (; i + lanes <= size; i += lanes) {
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        const auto x = static_cast<double>(data[i + lane]);
        abs_[lane] += std::abs(x);
        squares_[lane] += x * x;
      }
    }
    for (; i < size; ++i) {
      const auto x = static_cast<double>(data[i]);
      abs_[0] += std::abs(x);
      squares_[0] += x * x;
    }
    count_ += size;
  }

  void add_to(Moments& moments) const;

 private:
  // Sums side by side, in several vectors, so that none waits for its last sum.
  static constexpr std::size_t lanes = 32;
  std::array<double, lanes> abs_{};
  std::array<double, lanes> squares_{};
  std::uint64_t count_ = 0;
};

/// The sums from which the size of a tensor's entries is read. Those of parts add up, so ranks,
/// batches and layers can each keep their own.
/// Equation: Σ|x|, Σx², and how many entries
/// Units:    mean_abs(), rms() and entry() are in those of the entries, and 0 without entries
/// Accuracy: sums in double, in an order that depends on nothing but the number of entries.
struct Moments {
  double sum_abs = 0;
  double sum_squares = 0;
  std::uint64_t count = 0;

  template <class Scalar>
  void add(const Scalar* data, std::size_t size);

  Moments& operator+=(const Moments& other) {
    sum_abs += other.sum_abs;
    sum_squares += other.sum_squares;
    count += other.count;
    return *this;
  }

  double mean_abs() const { return count == 0 ? 0 : sum_abs / static_cast<double>(count); }
  double rms() const {
    return count == 0 ? 0 : std::sqrt(sum_squares / static_cast<double>(count));
  }

  /// The size of the entries that are not zero, where those are all of one size: the root mean square
  /// does not tell fewer entries from smaller ones.
  /// Equation: Σx²/Σ|x|
  double entry() const { return sum_abs == 0 ? 0 : sum_squares / sum_abs; }

  friend bool operator==(const Moments&, const Moments&) = default;
};

template <class Scalar>
void Moments::add(const Scalar* data, std::size_t size) {
  MomentsInPieces pieces;
  pieces.add(data, size);
  pieces.add_to(*this);
}

inline void MomentsInPieces::add_to(Moments& moments) const {
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    moments.sum_abs += abs_[lane];
    moments.sum_squares += squares_[lane];
  }
  moments.count += count_;
}

}  // namespace scalewise::check
