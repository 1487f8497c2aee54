// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The box of constants that is searched, and the points that are drawn from it.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "planning/set_option.hpp"
#include "scalewise/numeric/random.hpp"
#include "scalewise/plan/constants.hpp"
#include "tune/search.hpp"

namespace scalewise::tune {

/// A constant and its range, which is drawn from log-uniformly.
struct Axis {
  std::string name;
  double low = 1, high = 1;

  /// Its value at a place from 0 to 1, with the few digits that a user reads.
  double value(double place) const {
    return std::strtod(fmt::format("{:.4g}", low * std::pow(high / low, place)).c_str(), nullptr);
  }
};

using Space = std::vector<Axis>;

/// Of Sobol's sequence below: dimensions.
inline constexpr std::size_t most_axes = 10;

/// The axes of --space NAME=LOW:HIGH,…
/// Throws:   InvalidInput.
inline Space space_of(const std::vector<std::string>& lists) {
  Space space;
  for (const std::string& list : lists) {
    std::istringstream words(list + ",");
    for (std::string word; std::getline(words, word, ',');) {
      const std::size_t equals = word.find('='), colon = word.find(':', equals);
      if (equals == std::string::npos || colon == std::string::npos) {
        throw InvalidInput("--space", word.empty() ? "(empty)" : word, "NAME=LOW:HIGH",
                           "such as --space rate=0.001:0.03,logits=0.5:8");
      }
      const std::string name = word.substr(0, equals);
      const Axis axis{name, tools::number_of(name, word.substr(equals + 1, colon - equals - 1)),
                      tools::number_of(name, word.substr(colon + 1))};
      if (!(axis.low >= 1e-12 && axis.low < axis.high && axis.high <= 1e12)) {
        throw InvalidInput("--space", word, "two factors from 1e-12 to 1e12, the lower one first");
      }
      for (const Axis& other : space) {
        if (other.name == name) throw InvalidInput("--space", name, "each constant once");
      }
      space.push_back(axis);
    }
  }
  if (space.size() > most_axes) {
    throw InvalidInput("--space", std::to_string(space.size()) + " constants", "at most 10");
  }
  return space;
}

namespace detail {

/// The directions of a dimension of Sobol's sequence, by the recurrence of its primitive polynomial.
inline std::array<std::uint32_t, 32> sobol_directions(std::size_t dimension) {
  struct Polynomial {
    unsigned degree, coefficients;
    std::array<std::uint32_t, 5> first;
  };
  constexpr std::array<Polynomial, most_axes - 1> polynomials{{{1, 0, {1}},
                                                               {2, 1, {1, 3}},
                                                               {3, 1, {1, 3, 1}},
                                                               {3, 2, {1, 1, 1}},
                                                               {4, 1, {1, 1, 3, 3}},
                                                               {4, 4, {1, 3, 5, 13}},
                                                               {5, 2, {1, 1, 5, 5, 17}},
                                                               {5, 4, {1, 1, 5, 5, 5}},
                                                               {5, 7, {1, 1, 7, 11, 19}}}};
  std::array<std::uint32_t, 32> v{};
  if (dimension == 0) {
    for (unsigned i = 0; i < 32; ++i) v[i] = std::uint32_t{1} << (31 - i);
    return v;
  }
  const auto& [s, a, m] = polynomials[dimension - 1];
  for (unsigned i = 0; i < s; ++i) v[i] = m[i] << (31 - i);
  for (unsigned i = s; i < 32; ++i) {
    v[i] = v[i - s] ^ (v[i - s] >> s);
    for (unsigned k = 1; k < s; ++k) v[i] ^= ((a >> (s - 1 - k)) & 1U) * v[i - k];
  }
  return v;
}

}  // namespace detail

/// A point of Sobol's sequence in the unit cube, shifted bit by bit by random numbers of a seed: any first 2^k points
/// fill each axis evenly, and a larger number of them goes on where a smaller one ended.
/// Source:   Joe and Kuo 2008, doi:10.1137/070709359, direction numbers new-joe-kuo-6.21201; the digital shift as in
///           Dick and Pillichshammer 2010, doi:10.1017/CBO9780511761188
/// Shapes:   the result (dimensions)
inline std::vector<double> sobol_point(std::uint32_t index, std::size_t dimensions,
                                       std::uint64_t seed) {
  std::vector<double> point;
  for (std::size_t j = 0; j < dimensions; ++j) {
    const std::array<std::uint32_t, 32> v = detail::sobol_directions(j);
    numeric::RandomStream stream(seed, "sobol.", std::to_string(j));
    auto bits = static_cast<std::uint32_t>(stream.bits() >> 32U);
    const std::uint32_t gray = index ^ (index >> 1U);
    for (unsigned i = 0; i < 32; ++i) bits ^= ((gray >> i) & 1U) * v[i];
    point.push_back((static_cast<double>(bits) + 0.5) * 0x1p-32);
  }
  return point;
}

/// Where a draw lies in the unit cube.
/// Shapes:   the result (dimensions)
inline std::vector<double> place_of(const Draw& draw, std::size_t dimensions, std::uint64_t seed) {
  const auto sobol = [&](long i) {
    return sobol_point(static_cast<std::uint32_t>(i), dimensions, seed);
  };
  std::vector<double> at = sobol(draw.index);
  if (draw.around < 0) return at;
  const std::vector<double> middle = sobol(draw.around);
  for (std::size_t j = 0; j < dimensions; ++j)
    at[j] = std::clamp(middle[j] - 1.0 / 6, 0.0, 2.0 / 3) + at[j] / 3;
  return at;
}

/// The constants of a draw.
inline std::vector<Parameter> constants_of_draw(const Space& space, const Draw& draw,
                                                std::uint64_t seed) {
  const std::vector<double> at = place_of(draw, space.size(), seed);
  std::vector<Parameter> constants;
  for (std::size_t j = 0; j < space.size(); ++j) {
    constants.push_back({space[j].name, space[j].value(at[j])});
  }
  return constants;
}

/// As --constant takes them.
inline std::string constants_text(const std::vector<Parameter>& constants) {
  std::string text;
  for (const Parameter& c : constants) {
    text += (text.empty() ? "" : ",") + c.name + "=" + numeric::number_text(c.value);
  }
  return text;
}

/// Refuses an axis that changes nothing, and one that moves training as others together do.
/// Equation: the logarithms of all numbers that training sees are linear in those of the constants; what a constant
///           changes must not lie in the span of what the ones before it change
/// Requires: a plan without these constants.
/// Throws:   InvalidInput.
inline void require_independent(const Plan& plan, const Space& space) {
  const auto seen = [](const Plan& seen_plan) {
    const Plan p = scalewise::detail::seen_by_training(seen_plan);
    std::vector<double> logs;
    const auto add = [&](const auto& number) {
      logs.push_back(number.value > 0 ? std::log2(number.value) : 0);
    };
    add(p.model.attention_scale), add(p.model.embedding_multiplier), add(p.model.logit_multiplier);
    for (const Residual& residual : p.model.residuals) add(residual.branch);
    for (const Entry& e : p.entries) {
      add(e.init_variance), add(e.multiplier), add(e.learning_rate), add(e.weight_decay);
    }
    return logs;
  };
  const auto dot = [](const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
  };
  const std::vector<double> plain = seen(plan);
  std::vector<std::vector<double>> basis;
  std::string before;
  for (const Axis& axis : space) {
    if (plan::is_record(axis.name))
      throw InvalidInput("--space", axis.name, "a constant that changes training",
                         "this one is a record: --constant " + axis.name + "=…");
    std::vector<double> change = seen(plan::with_constants(plan, {{axis.name, 2}}));
    for (std::size_t i = 0; i < change.size(); ++i) change[i] -= plain[i];
    const double size = dot(change, change);
    for (const std::vector<double>& other : basis) {
      const double part = dot(change, other) / dot(other, other);
      for (std::size_t i = 0; i < change.size(); ++i) change[i] -= part * other[i];
    }
    if (dot(change, change) < 1e-18 * size) {
      throw InvalidInput("--space", axis.name, "constants of which none replaces another",
                         "it changes training as " + before + " do: leave one of them out");
    }
    basis.push_back(std::move(change));
    before += (before.empty() ? "" : ", ") + axis.name;
  }
}

}  // namespace scalewise::tune
