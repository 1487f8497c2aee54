// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Streams of random numbers and the initial values drawn from them.

#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "scalewise/nn/initialize.hpp"
#include "scalewise/plan/make_plan.hpp"
#include "support/catch.hpp"
#include "support/tolerances.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::nn;
using namespace scalewise::test;

constexpr int draws = 400'000;

/// Mean of f over draws, and nothing else.
template <class F>
double mean_of(F&& f, int count = draws) {
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += f();
  return sum / count;
}

double standard_error(double variance, int count = draws) { return std::sqrt(variance / count); }

}  // namespace

TEST_CASE("The normal quantile inverts the distribution function") {
  std::vector<double> ps{5e-324, 1e-300, 1e-100, 1e-20, 0x1p-54, 0.075, 0.425, 0.5, 0.925};
  for (int i = 1; i < 1000; ++i) ps.push_back(i / 1000.0);
  for (int i = 1; i < 53; ++i) ps.push_back(std::ldexp(1.0, -i));
  for (int i = 2; i < 53; ++i) ps.push_back(1 - std::ldexp(1.0, -i));
  for (const double tail : {std::exp(-25.0), 0.074999999999, 0.075000000001, 1.3887e-11}) {
    ps.push_back(tail);
  }
  for (const double p : ps) {
    const double z = numeric::RandomStream::normal_quantile(p);
    // Newton's correction of z, on the side where the probability is small; 1 - p is exact there.
    const long double wide = z;
    const long double side = p < 0.5 ? p : 1 - static_cast<long double>(p);
    const long double under = std::erfc(std::abs(wide) / std::sqrt(2.0L)) / 2;
    const long double density = std::exp(-wide * wide / 2) * 0.398942280401432677939946L;
    const auto error = static_cast<double>(std::abs((under - side) / density));
    INFO(p << " " << z << " " << error);
    if (p == 5e-324) {
      CHECK(std::abs(z + 38.467405617144344) < 1e-12);
      continue;
    }
    CHECK(error <= 1e-14 * std::max(1.0, std::abs(z)));
    CHECK((z < 0) == (p < 0.5));
  }
  CHECK(numeric::RandomStream::normal_quantile(0.5) == 0);
}

TEST_CASE("Uniform and normal draws have the moments of their distributions") {
  for (const std::string name : {"", "layer.0.query", "layer.1.query", "head"}) {
    INFO(name);
    numeric::RandomStream uniform(1, name);
    double least = 1;
    double most = 0;
    const double mean = mean_of([&] {
      const double u = uniform.uniform();
      least = std::min(least, u);
      most = std::max(most, u);
      return u - 0.5;
    });
    CHECK(std::abs(mean) <= standard_errors * standard_error(1 / 12.0));
    CHECK(least > 0);
    CHECK(least < 20.0 / draws);
    CHECK(most < 1);
    CHECK(most > 1 - 20.0 / draws);
    const auto moment = [&](int power) {
      numeric::RandomStream normal(1, name);
      return mean_of([&] { return std::pow(normal.normal(), power); });
    };
    CHECK(std::abs(moment(1)) <= standard_errors * standard_error(1));
    CHECK(std::abs(moment(2) - 1) <= standard_errors * standard_error(2));
    CHECK(std::abs(moment(3)) <= standard_errors * standard_error(15));
    CHECK(std::abs(moment(4) - 3) <= standard_errors * standard_error(105 - 9));
  }
}

TEST_CASE("Truncated draws lie within two deviations and have the variance of the cut") {
  numeric::RandomStream stream(1, "truncated");
  double furthest = 0;
  const double square = mean_of([&] {
    const double z = stream.truncated_normal();
    furthest = std::max(furthest, std::abs(z));
    return z * z;
  });
  const double density = std::exp(-2.0) / std::sqrt(2 * std::acos(-1.0));
  const double expected = 1 - 4 * density / (1 - std::erfc(std::sqrt(2.0)));
  CHECK(std::abs(expected - 0.7737) < 1e-4);
  CHECK(std::abs(square - expected) <= standard_errors * standard_error(2));
  CHECK(furthest < 2);
  CHECK(furthest > 1.999);
}

TEST_CASE("Streams of other names and seeds are uncorrelated, within and across") {
  const std::array<std::pair<std::uint64_t, std::string>, 6> all{{{1, "layer.0.query"},
                                                                  {1, "layer.1.query"},
                                                                  {2, "layer.0.query"},
                                                                  {0, ""},
                                                                  {1, "head"},
                                                                  {1, "layer.0.key"}}};
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = i; j < all.size(); ++j) {
      for (const int lag : {0, 1, 7}) {
        if (i == j && lag == 0) continue;
        numeric::RandomStream a(all[i].first, all[i].second);
        numeric::RandomStream b(all[j].first, all[j].second);
        for (int skip = 0; skip < lag; ++skip) b.normal();
        const double correlation = mean_of([&] { return a.normal() * b.normal(); }, 100'000);
        INFO(i << " " << j << " lag " << lag);
        CHECK(std::abs(correlation) <= standard_errors * standard_error(1, 100'000));
      }
    }
  }
}

TEST_CASE("A stream is made of its seed and the whole of its name, in constant expressions too") {
  constexpr auto first = [](std::uint64_t seed, std::string_view name) {
    return numeric::RandomStream(seed, name).bits();
  };
  static_assert(first(1, "a") == first(1, "a"));
  static_assert(numeric::RandomStream(1, "a").normal() != 0);
  CHECK(first(1, "a") != first(2, "a"));
  CHECK(first(1, "a") != first(1, "b"));
  CHECK(first(1, "ab") != first(1, "ba"));
  CHECK(first(1, "a") != first(1, std::string_view("a\0", 2)));
}

TEST_CASE("Normal draws side by side are those one by one, to the last bit") {
  numeric::RandomStream one(3, "side by side");
  numeric::RandomStream many(3, "side by side");
  for (const std::size_t size :
       std::array<std::size_t, 9>{1, 7, 255, 256, 257, 1000, 100'000, 0, 3}) {
    std::vector<double> drawn(size);
    many.normals(drawn);
    int differ = 0;
    for (const double z : drawn) differ += z == one.normal() ? 0 : 1;
    INFO(size);
    CHECK(differ == 0);
  }
  CHECK(many.bits() == one.bits());
}

namespace {

/// The argument for which mix() returns z: each of its steps taken back.
std::uint64_t unmixed(std::uint64_t z) {
  z ^= z >> 31U ^ z >> 62U;
  z *= 0x319642B2D24D8EC3ULL;
  z ^= z >> 27U ^ z >> 54U;
  z *= 0x96DE1B173F119089ULL;
  return z ^ z >> 30U ^ z >> 60U;
}

}  // namespace

// One draw in 4e10 comes from the last approximation. The quantiles were computed with sixty digits.
TEST_CASE("The rarest normal draws, side by side too, are quantiles") {
  constexpr std::uint64_t increment = 0x9E3779B97F4A7C15ULL;
  CHECK(numeric::RandomStream::mix(unmixed(12345)) == 12345);
  constexpr std::uint64_t hash = 14695981039346656037ULL;  // of no name
  struct Rare {
    std::uint64_t bits;
    double z;
  };
  for (const auto& [bits, z] :
       {Rare{0x0ULL, -8.292361075813595}, Rare{0x800ULL, -8.160707840858583},
        Rare{0x100000ULL, -7.423810598904473}, Rare{0x181C800ULL, -6.990388968721072},
        Rare{0xFFFFFFFFFFFFFFFFULL, 8.209536151601387},
        Rare{0xFFFFFFFFC0000000ULL, 6.443934526538564}, Rare{0x10000000ULL, -6.651034818517205}}) {
    const std::uint64_t seed = unmixed((unmixed(bits) - increment) ^ hash) - increment;
    INFO(bits);
    CHECK(numeric::RandomStream(seed, "").bits() == bits);
    CHECK(std::abs(numeric::RandomStream(seed, "").normal() - z) <= 4 * epsilon * std::abs(z));
    std::vector<double> drawn(2);
    numeric::RandomStream(seed, "").normals(drawn);
    CHECK(std::abs(drawn[0] - z) <= 4 * epsilon * std::abs(z));
  }
}

// Computed apart from this code: integers exactly, quantiles with forty digits.
TEST_CASE("The first numbers of a stream are the same for ever") {
  numeric::RandomStream bits(7, "layer.0.query");
  numeric::RandomStream uniform(7, "layer.0.query");
  numeric::RandomStream normal(7, "layer.0.query");
  for (const std::uint64_t expected :
       {0xBA178DDAAB22EEA2ULL, 0x18668B86A9471B24ULL, 0x011CBB2AECE8DA83ULL, 0x69A8AE4CF4D9BB5DULL,
        0x1813DA301B3C8E50ULL, 0xC78D80FDD07155B8ULL}) {
    CHECK(bits.bits() == expected);
  }
  for (const double expected : {0.72692190731607886, 0.095314712883262265, 0.0043446521566780638,
                                0.41273011568851009, 0.094052922005390893, 0.77950292774807406}) {
    CHECK(uniform.uniform() == expected);
  }
  for (const double expected : {0.60352996830703909, -1.3087193763133227, -2.6240421027263543,
                                -0.22052766208326352, -1.3162032177302769, 0.77051553319612509}) {
    CHECK(std::abs(normal.normal() - expected) <= 4 * epsilon * std::abs(expected));
  }
}

namespace {

Shape target() {
  return Shape{.d_model = 120, .depth = 2, .heads = 4, .d_ff = 300, .context = 50, .vocab = 300};
}

Shape base() {
  Shape s = target();
  s.d_model = 40;
  s.d_ff = 100;
  return s;
}

Parameters<double> drawn(const Plan& plan, std::uint64_t seed = 7) {
  Parameters<double> parameters(plan);
  initialize(parameters, plan, seed, BaseDeviation::uniform(0.05));
  return parameters;
}

/// Names of tensors of both whose values differ.
std::vector<std::string> changed(Parameters<double> a, Parameters<double> b) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const long j = b.find(a.name(i));
    if (j >= 0 && a.value(i) != b.value(static_cast<std::size_t>(j))) names.push_back(a.name(i));
  }
  return names;
}

Plan mup(const Shape& shape, const std::vector<Parameter>& parameters = {}) {
  return make_plan("maximal-update", {.model = shape, .base = base(), .parameters = parameters});
}

}  // namespace

TEST_CASE("Zeroing or adding tensors shifts no other tensor's draws") {
  using Names = std::vector<std::string>;
  const auto plain = drawn(mup(target()));
  CHECK(changed(plain, drawn(mup(target()))).empty());
  CHECK(changed(plain, drawn(mup(target(), {{"zero_head", 1}}))) == Names{"head"});
  CHECK(changed(plain, drawn(mup(target(), {{"zero_query", 1}}))) ==
        Names{"layer.0.query", "layer.1.query"});
  Parameters<double> zero = drawn(mup(target(), {{"zero_head", 1}}));
  CHECK(zero.value(static_cast<std::size_t>(zero.find("head"))).cwiseAbs().maxCoeff() == 0);
  Shape more = target();
  more.gated_mlp = true;
  more.embedding_norm = true;
  more.segments = 2;
  more.depth = 3;
  more.head_bias = true;
  CHECK(drawn(mup(more)).size() > plain.size());
  CHECK(changed(plain, drawn(mup(more))).empty());
  Shape fewer = target();
  fewer.biases = false;
  fewer.learned_positions = false;
  fewer.tied_head = true;
  CHECK(changed(plain, drawn(mup(fewer))).empty());
  CHECK(changed(plain, drawn(mup(target()), 8)).size() >= 15);  // every matrix
}

TEST_CASE("Every tensor has the mean and variance that its plan says, whatever its distribution") {
  const double cut = 0.7737413035;
  Shape big = target();
  big.residual_gain = ResidualGain::none;
  for (const std::string rule :
       {"gpt2", "bert", "xavier", "pytorch", "maximal-update", "complete-p", "layer-scale", "ngpt",
        "neural-tangent", "ds-init"}) {
    const Plan plan = make_plan(rule, {.model = big, .base = base()});
    const bool relative = plan.reference == Reference::base;
    Parameters<double> parameters = drawn(plan);
    for (std::size_t i = 0; i < plan.entries.size(); ++i) {
      const Entry& entry = plan.entries[i];
      const View<double> value = parameters.value(i);
      INFO(rule << " " << entry.name);
      REQUIRE(value.size() == entry.rows * entry.columns);
      double variance = entry.init_variance.value * (relative ? 0.05 * 0.05 : 1);
      if (entry.distribution == Distribution::constant) CHECK(variance == 0);
      const double bound = entry.distribution == Distribution::uniform ? std::sqrt(3.0) : 2;
      if (entry.distribution != Distribution::normal) {
        const auto around = value.array() - entry.init_mean.value;
        CHECK(around.abs().maxCoeff() <= bound * std::sqrt(variance));
        if (value.size() > 1000)
          CHECK(around.abs().maxCoeff() >= 0.99 * bound * std::sqrt(variance));
      }
      if (entry.distribution == Distribution::truncated_normal) variance *= cut;
      const auto count = static_cast<int>(value.size());
      const double mean = (value.array() - entry.init_mean.value).mean();
      const double square = (value.array() - entry.init_mean.value).square().mean();
      CHECK(std::abs(mean) <= standard_errors * standard_error(variance, count));
      CHECK(std::abs(square - variance) <=
            standard_errors * standard_error(2 * variance * variance, count));
    }
  }
}

TEST_CASE("A base model's deviation is taken by group, and asked for by relative rules alone") {
  const Plan relative = mup(target());
  Parameters<double> parameters(relative);
  CHECK_THROWS_AS(initialize(parameters, relative, 7), InvalidInput);
  BaseDeviation deviations = BaseDeviation::uniform(0.05);
  deviations.values[static_cast<std::size_t>(Group::key)] = 0.5;
  initialize(parameters, relative, 7, deviations);
  Parameters<double> plain = drawn(relative);
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const double factor = relative.entries[i].group == Group::key ? 10 : 1;
    CHECK((parameters.value(i) - factor * plain.value(i)).cwiseAbs().maxCoeff() <= 1e-15);
  }
  // Of one layer, as GPT-2's, whose weights next to the stream shrink with the depth of a stack.
  deviations.tensors = {{"layer.1.key", 0.25}};
  initialize(parameters, relative, 7, deviations);
  const auto second = static_cast<std::size_t>(parameters.find("layer.1.key"));
  CHECK((parameters.value(second) - 5 * plain.value(second)).cwiseAbs().maxCoeff() <= 1e-15);
  const auto first = static_cast<std::size_t>(parameters.find("layer.0.key"));
  CHECK((parameters.value(first) - 10 * plain.value(first)).cwiseAbs().maxCoeff() <= 1e-15);
  deviations.tensors = {{"layer.99.key", 0.25}};
  CHECK_THROWS_AS(initialize(parameters, relative, 7, deviations), InvalidInput);
  deviations.tensors = {{"layer.1.key", -0.25}};
  CHECK_THROWS_AS(initialize(parameters, relative, 7, deviations), InvalidInput);
  for (const double wrong : {-0.05, HUGE_VAL, std::nan("")}) {
    CHECK_THROWS_AS(initialize(parameters, relative, 7, BaseDeviation::uniform(wrong)),
                    InvalidInput);
  }
  deviations.tensors.clear();
  for (const double wrong : {-1.0, HUGE_VAL, std::nan("")}) {
    Plan plan = relative;
    plan.entries.front().init_variance.value = wrong;
    CHECK_THROWS_WITH(initialize(parameters, plan, 7, deviations),
                      Catch::Matchers::ContainsSubstring("token_embedding.init_variance = "));
  }
  const Plan absolute = make_plan("gpt2", {.model = target()});
  Parameters<double> without(absolute);
  Parameters<double> with(absolute);
  initialize(without, absolute, 7);
  initialize(with, absolute, 7, deviations);
  CHECK(without.values() == with.values());
}
