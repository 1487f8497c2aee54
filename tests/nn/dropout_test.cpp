// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Dropout's masks alone: how much they drop, and what they are a function of.

#include "scalewise/nn/dropout.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "scalewise/nn/config.hpp"
#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/sanitized.hpp"
#include "support/tolerances.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::nn;
using namespace scalewise::test;
using Eigen::Index;

constexpr Index height = 101;
constexpr Index columns = 211;

/// 1 / (1 - p) where an entry is kept, else 0.
Matrix<double> mask(const Dropout& dropout) {
  Matrix<double> m = Matrix<double>::Ones(height, columns);
  dropout.apply(dense::view(m));
  return m;
}

/// Correlation of which entries a and b keep, over all pairs of entry i of a and i + lag of b.
double correlation(const Matrix<double>& a, const Matrix<double>& b, Index lag = 0) {
  const Index n = a.size() - lag;
  using Kept = Eigen::ArrayXd;
  const Kept x = Eigen::Map<const Eigen::ArrayXd>(a.data(), n).sign();
  const Kept y = Eigen::Map<const Eigen::ArrayXd>(b.data() + lag, n).sign();
  const Kept dx = x - x.mean();
  const Kept dy = y - y.mean();
  return (dx * dy).sum() / std::sqrt(dx.square().sum() * dy.square().sum());
}

/// Of independent masks, a correlation has the standard error 1/√n.
const double bound = standard_errors / std::sqrt(double(height * columns - columns));

}  // namespace

TEST_CASE("Dropout drops the share it says and scales what it keeps") {
  for (const double rate : {0.01, 0.1, 0.3, 0.5, 0.9}) {
    const Matrix<double> m = mask({rate, 7, 3, "tensor"});
    const auto n = static_cast<double>(m.size());
    const double share = static_cast<double>((m.array() == 0).count()) / n;
    INFO("rate " << rate << ", share " << share);
    CHECK(std::abs(share - rate) <= standard_errors * std::sqrt(rate * (1 - rate) / n));
    CHECK((m.array() == 0 || (m.array() * (1 - rate) - 1).abs() <= 2 * epsilon).all());
  }
}

TEST_CASE("Dropout multiplies every entry by its mask, in either precision") {
  const Dropout dropout(0.3, 7, 3, "tensor");
  const Matrix<double> m = mask(dropout);
  Matrix<double> x(height, columns);
  Matrix<float> y(height, columns);
  for (Index i = 0; i < x.size(); ++i) {
    x.data()[i] = std::ldexp(i % 2 == 0 ? 1.25 : -0.75, static_cast<int>(i % 201) - 100);
    y.data()[i] = static_cast<float>(x.data()[i]);
  }
  const Matrix<double> before = x;
  dropout.apply(dense::view(x));
  dropout.apply(dense::view(y));
  CHECK((x.array() == before.array() * m.array()).all());
  const Eigen::ArrayXXd expected = before.array() * m.array();
  constexpr double epsilon_float = std::numeric_limits<float>::epsilon();
  CHECK(((y.cast<double>().array() - expected).abs() <= epsilon_float * expected.abs()).all());
}

TEST_CASE("Entries of one mask are independent of their neighbours") {
  const Matrix<double> m = mask({0.3, 7, 3, "tensor"});
  for (const Index lag : {Index(1), Index(2), Index(3), Index(64), columns}) {
    INFO("lag " << lag);
    CHECK(std::abs(correlation(m, m, lag)) <= bound);
  }
}

TEST_CASE("A mask is the same when it is drawn again, in pieces or into a part of a matrix") {
  const Dropout dropout(0.3, 7, 3, "tensor");
  const Matrix<double> whole = mask(dropout);
  CHECK(mask({0.3, 7, 3, "tensor"}) == whole);
  CHECK(mask({0.3, 7, 3, "ten", "sor"}) == whole);
  Matrix<double> pieces = Matrix<double>::Ones(height, columns);
  for (Index begin = pieces.size(), size = 1; begin > 0;
       ++size) {  // from the end, in growing steps
    const Index n = std::min(size, begin);
    begin -= n;
    dropout.apply(begin, n, pieces.data() + begin);
  }
  CHECK(pieces == whole);
  Matrix<double> wider = Matrix<double>::Ones(height + 5, columns + 3);
  dropout.apply(dense::block(dense::view(wider), 2, 1, height, columns));
  CHECK(wider.block(2, 1, height, columns) == whole);
  wider.block(2, 1, height, columns).setOnes();
  CHECK((wider.array() == 1).all());
}

// Expected: SplitMix64 and FNV-1a, written down a second time in Python.
TEST_CASE("A mask is the same on every platform") {
  const std::string expected = "1111111111110101001111101110011100010011111010110111110011111111";
  Matrix<double> m = Matrix<double>::Ones(1, 64);
  Dropout(0.3, 7, 12, "layer.0.mlp.output").apply(dense::view(m));
  std::string kept;
  for (Index i = 0; i < m.size(); ++i) kept += m(0, i) == 0 ? '0' : '1';
  CHECK(kept == expected);
}

TEST_CASE("Masks of other draws, seeds and names are independent of each other") {
  std::vector<Matrix<double>> masks;
  for (const std::uint64_t draw : {0U, 1U, 2U, 3U, 1000U}) {
    masks.push_back(mask({0.3, 7, draw, "layer.0.mlp.output"}));
  }
  for (const std::uint64_t seed : {0U, 1U, 6U, 8U}) {
    masks.push_back(mask({0.3, seed, 3, "layer.0.mlp.output"}));
  }
  for (const char* name :
       {"layer.1.mlp.output", "layer.0.attention.output", "layer.0.attention.probabilities",
        "embedding", "encoder.embedding", "decoder.embedding", ""}) {
    masks.push_back(mask({0.3, 7, 3, name}));
  }
  for (std::size_t i = 0; i < masks.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      INFO("masks " << i << " and " << j);
      for (const Index lag : {0, 1, 2}) {  // also shifted: streams that overlap
        if (test::sanitized && lag > 0) break;
        CHECK(std::abs(correlation(masks[i], masks[j], lag)) <= bound);
        CHECK(std::abs(correlation(masks[j], masks[i], lag)) <= bound);
      }
    }
  }
}

TEST_CASE("Dropout of rate zero does nothing") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Dropout& dropout : {Dropout(), Dropout(0, 7, 3, "tensor")}) {
    CHECK_FALSE(dropout.active());
    Matrix<double> x = Matrix<double>::Constant(3, 4, 1.5);
    x(1, 2) = nan;
    dropout.apply(dense::view(x));
    CHECK(std::isnan(x(1, 2)));
    x(1, 2) = 1.5;
    CHECK((x.array() == 1.5).all());
  }
  CHECK(Dropout(1e-9, 7, 3, "tensor").active());
}

TEST_CASE("A dropout that is not a probability below one is refused") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const auto message = [](double rate) {
    return error_message([&] { check(Config{.dropout = rate}, Shape{}); });
  };
  for (const double rate : {-0.1, -1e-300, 1.0, 1.5, infinity, -infinity, nan}) {
    INFO(rate << ": " << message(rate));
    CHECK(message(rate).find("dropout") != std::string::npos);
  }
  for (const double rate : {0.0, 1e-300, 0.1, 0.999}) CHECK(message(rate) == "no error");
}
