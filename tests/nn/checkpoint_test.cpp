// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/nn/checkpoint.hpp"

#include <bit>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/file_size_limit.hpp"
#include "support/sanitized.hpp"
#include "support/temporary_folder.hpp"

namespace fs = std::filesystem;
namespace nn = scalewise::nn;
using Catch::Matchers::ContainsSubstring;
using scalewise::InvalidInput;
using scalewise::Plan;

namespace {

/// A matrix and a bias.
Plan tiny_plan(const scalewise::Optimizer& optimizer = scalewise::adamw) {
  Plan plan;
  plan.optimizer = optimizer;
  plan.rule = "test";
  scalewise::Entry matrix;
  matrix.name = "w";
  matrix.group = scalewise::Group::mlp_up;
  matrix.rows = 2;
  matrix.columns = 3;
  scalewise::Entry bias;
  bias.name = "b";
  bias.group = scalewise::Group::hidden_bias;
  bias.rows = 3;
  plan.entries = {matrix, bias};
  return plan;
}

/// All that a checkpoint holds, filled with numbers that are easy to lose.
template <class Scalar>
struct Run {
  explicit Run(const Plan& plan) : parameters(plan), optimizer(plan, {}) {
    info.plan = scalewise::plan::plan_fingerprint(plan);
    info.inputs = {{"rate", "0.1"}, {"text", "öäü\n"}};
  }

  void fill() {
    using Limits = std::numeric_limits<Scalar>;
    const std::vector<Scalar> odd{Scalar(0.1),   -Scalar(0),       Limits::denorm_min(),
                                  Limits::max(), Limits::lowest(), Limits::infinity()};
    for (Eigen::Index i = 0; i < parameters.values().size(); ++i) {
      const Scalar x = odd[static_cast<std::size_t>(i) % odd.size()];
      parameters.values()(0, i) = x;
      optimizer.state().first.data()[i] = Scalar(i) / 3;
      if (optimizer.state().second.size() > 0) optimizer.state().second.data()[i] = Scalar(i) / 7;
    }
    optimizer.state().steps = 41;
    info.step = 42;
    info.notes = {{"first_loss", "5.5"}};
  }

  void save(const std::string& path) { save_checkpoint(path, parameters, optimizer.state(), info); }
  nn::CheckpointInfo load(const std::string& path) {
    return load_checkpoint(path, parameters, optimizer.state(), info);
  }

  /// Every bit that a load may change.
  std::string bits() {
    const auto& state = optimizer.state();
    std::string all(sizeof(long), '\0');
    std::memcpy(all.data(), &state.steps, sizeof(long));
    const auto append = [&](const Scalar* data, Eigen::Index size) {
      all.append(reinterpret_cast<const char*>(data),
                 static_cast<std::size_t>(size) * sizeof(Scalar));
    };
    append(parameters.values().data(), parameters.values().size());
    append(state.first.data(), state.first.size());
    append(state.second.data(), state.second.size());
    return all;
  }

  nn::Parameters<Scalar> parameters;
  nn::PlannedOptimizer<Scalar> optimizer;
  nn::CheckpointInfo info;
};

struct Scratch {
  scalewise::test::TemporaryFolder own;
  fs::path folder = own.path();
  std::string path = (folder / "run.ckpt").string();

  std::string read() const {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }
  void write(const std::string& bytes) const {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }
};

/// The message of a load, or "loaded"; a refusal must leave the run as it was.
template <class Scalar>
std::string refusal(Run<Scalar>& run, const std::string& path) {
  const std::string before = run.bits();
  try {
    run.load(path);
    return "loaded";
  } catch (const InvalidInput& error) {
    if (run.bits() != before) return "changed something";
    return error.what();
  }
}

/// A number as the format has it, written another way than the library does.
template <class Number>
std::string little_endian(Number value) {
  std::string bytes(sizeof(Number), '\0');
  std::memcpy(bytes.data(), &value, sizeof(Number));
  if (std::endian::native == std::endian::big) bytes = std::string(bytes.rbegin(), bytes.rend());
  return bytes;
}
std::string count(std::uint64_t n) { return little_endian(n); }
std::string text(const std::string& t) { return count(t.size()) + t; }

}  // namespace

TEST_CASE("The hash is FNV-1a", "[checkpoint]") {
  // From the authors' list of test vectors.
  CHECK(scalewise::files::fingerprint("") == "cbf29ce484222325");
  CHECK(scalewise::files::fingerprint("a") == "af63dc4c8601ec8c");
  CHECK(scalewise::files::fingerprint("foobar") == "85944171f73967e8");
}

TEMPLATE_TEST_CASE("A checkpoint comes back bit for bit", "[checkpoint]", float, double) {
  const Scratch scratch;
  const bool with_second = GENERATE(true, false);
  const Plan plan = tiny_plan(with_second ? scalewise::adamw : scalewise::sgd);
  Run<TestType> run(plan);
  run.fill();
  run.save(scratch.path);

  Run<TestType> other(plan);
  REQUIRE(other.bits() != run.bits());
  const nn::CheckpointInfo info = other.load(scratch.path);
  CHECK(other.bits() == run.bits());
  CHECK(info.step == 42);
  CHECK(info.notes == run.info.notes);
  CHECK(info.inputs == run.info.inputs);
}

TEST_CASE("The file is what the format says", "[checkpoint]") {
  const Scratch scratch;
  Plan plan = tiny_plan(scalewise::sgd);
  plan.entries.pop_back();
  Run<float> run(plan);
  run.fill();
  run.save(scratch.path);

  std::string numbers;
  std::string moments;
  for (Eigen::Index i = 0; i < 6; ++i) {
    numbers += little_endian(run.parameters.values()(0, i));
    moments += little_endian(static_cast<float>(i) / 3);
  }
  const std::string body = little_endian(std::uint32_t{4}) + count(42) +
                           text(scalewise::plan::plan_fingerprint(plan)) +  //
                           count(2) + text("rate") + text("0.1") + text("text") +
                           text("öäü\n") +                                           //
                           count(1) + text("first_loss") + text("5.5") +             //
                           count(41) + count(1) + text("w") + count(2) + count(3) +  //
                           count(6) + numbers + count(6) + moments + count(0);
  const std::string start = std::string("\x89SCALEW\n") + little_endian(std::uint32_t{1});
  const std::string file = start + count(start.size() + 16 + body.size()) + body;
  const std::string saved = scratch.read();
  CHECK(saved.substr(0, saved.size() - 8) == file);
  CHECK(saved.substr(saved.size() - 8) == count(scalewise::files::hash_of(file)));
}

TEST_CASE("Every cut and every changed byte is refused and changes nothing", "[checkpoint]") {
  const Scratch scratch;
  Run<float> run(tiny_plan());
  run.fill();
  run.save(scratch.path);
  const std::string good = scratch.read();
  REQUIRE(good.size() > 100);
  Run<float> other(tiny_plan());

  for (std::size_t size = 0; size < good.size(); ++size) {
    INFO("cut to " << size << " bytes");
    scratch.write(good.substr(0, size));
    const char* part = size == 0 ? "(empty)" : size < 8 ? "another kind" : "cut off";
    CHECK_THAT(refusal(other, scratch.path), ContainsSubstring(part));
  }
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const unsigned flip : {1U, 2U, 4U, 8U, 16U, 32U, 64U, 128U, 255U}) {
      if (scalewise::test::sanitized && flip != 1U << at % 8) continue;
      INFO("byte " << at << " changed by " << flip);
      std::string bad = good;
      bad[at] = static_cast<char>(static_cast<unsigned char>(bad[at]) ^ flip);
      scratch.write(bad);
      const std::string message = refusal(other, scratch.path);
      const char* part = at < 8 ? "another kind" : at < 12 ? "version" : at < 20 ? "" : "(damaged)";
      CHECK_THAT(message, ContainsSubstring("expected") && ContainsSubstring(part));
    }
  }
  scratch.write(good + "x");
  CHECK_THAT(refusal(other, scratch.path), ContainsSubstring("(damaged)"));
  scratch.write(good);
  CHECK(refusal(other, scratch.path) == "loaded");
}

TEST_CASE("Counts that a valid checksum covers are not believed", "[checkpoint]") {
  const Scratch scratch;
  Run<float> run(tiny_plan());
  run.save(scratch.path);
  const std::string good = scratch.read();
  Run<float> other(tiny_plan());
  // Each place may be a count or a length; a huge one must neither crash nor take memory.
  for (std::size_t at = 32; at + 16 <= good.size(); ++at) {
    std::string bad = good.substr(0, good.size() - 8);
    bad.replace(at, 8, std::string(8, '\x7F'));
    scratch.write(bad + count(scalewise::files::hash_of(bad)));
    const std::string message = refusal(other, scratch.path);
    CHECK(message != "changed something");
  }
}

TEST_CASE("Numbers that a valid checksum covers are checked before any is taken", "[checkpoint]") {
  const Scratch scratch;
  Run<float> run(tiny_plan());
  run.fill();
  run.save(scratch.path);
  const std::string good = scratch.read();
  Run<float> other(tiny_plan());
  // Bytes in place of others, with the length and the checksum that belong to them.
  const auto refusal_with = [&](std::size_t at, std::size_t size, const std::string& bytes) {
    std::string bad = good.substr(0, good.size() - 8);
    bad.replace(at, size, bytes);
    bad.replace(12, 8, count(bad.size() + 8));
    scratch.write(bad + count(scalewise::files::hash_of(bad)));
    return refusal(other, scratch.path);
  };
  const std::uint64_t negative = ~std::uint64_t{0};
  CHECK_THAT(refusal_with(24, 8, count(negative)), ContainsSubstring("steps = -1: expected"));
  const std::size_t optimizer_steps = good.find(count(41) + count(2));
  REQUIRE(optimizer_steps != std::string::npos);
  CHECK_THAT(refusal_with(optimizer_steps, 8, count(negative)),
             ContainsSubstring("steps = -1: expected"));

  const std::size_t list = 8 + 9 * sizeof(float);  // a count and 9 numbers
  const std::size_t values = good.size() - 8 - 3 * list;
  REQUIRE(good.substr(values, 8) == count(9));
  const std::string number(sizeof(float), '\0');
  CHECK_THAT(refusal_with(values, 8, count(10) + number),
             ContainsSubstring("10 values: expected 9"));
  CHECK_THAT(refusal_with(values, 12, count(8)), ContainsSubstring("8 values: expected 9"));
  CHECK_THAT(refusal_with(values + list, 8, count(10) + number),
             ContainsSubstring("10 first moments: expected 9"));
  CHECK_THAT(refusal_with(values + 2 * list, 8, count(10) + number),
             ContainsSubstring("10 second moments: expected 9"));
  CHECK_THAT(refusal_with(good.size() - 8, 0, number),
             ContainsSubstring("(damaged): expected what its own counts promise"));
  CHECK_THAT(refusal_with(values, 8, count(11)),
             ContainsSubstring("(damaged): expected what its own counts promise"));
  CHECK(refusal_with(0, 0, "") == "loaded");
}

#if SCALEWISE_TEST_FULL_DISK
TEST_CASE("A full disk leaves the old checkpoint", "[checkpoint]") {
  const Scratch scratch;
  Run<float> run(tiny_plan());
  run.save(scratch.path);
  const std::string good = scratch.read();
  run.fill();
  CHECK_THAT(scalewise::test::error_message([&] {
               const scalewise::test::FileSizeLimit limit(good.size() - 10);
               run.save(scratch.path);
             }),
             ContainsSubstring("is the disk full?"));
  CHECK(scratch.read() == good);
  CHECK(std::distance(fs::directory_iterator(scratch.folder), {}) == 1);
}
#endif

TEST_CASE("What is not a checkpoint of this run is refused by name", "[checkpoint]") {
  const Scratch scratch;
  Run<float> run(tiny_plan());
  run.fill();
  CHECK_THAT(refusal(run, scratch.path), ContainsSubstring("no such file"));
  CHECK_THAT(refusal(run, scratch.folder.string()), ContainsSubstring("it is a directory"));
  scratch.write("{\"schema\": \"scalewise.plan/1\"}");
  CHECK_THAT(refusal(run, scratch.path), ContainsSubstring("expected a checkpoint"));

  run.save(scratch.path);
  SECTION("another scalar type") {
    Run<double> other(tiny_plan());
    CHECK_THAT(refusal(other, scratch.path), ContainsSubstring("float: expected double"));
  }
  SECTION("another input") {
    Run<float> other(tiny_plan());
    other.info.inputs[0].value = "0.2";
    CHECK_THAT(refusal(other, scratch.path), ContainsSubstring("rate = 0.2: expected 0.1"));
  }
  SECTION("an input more, an input less") {
    Run<float> other(tiny_plan());
    other.info.inputs.push_back({"clip", "1"});
    CHECK_THAT(refusal(other, scratch.path), ContainsSubstring("clip = 1: expected (none)"));
    other.info.inputs = {{"rate", "0.1"}};
    CHECK_THAT(refusal(other, scratch.path), ContainsSubstring("text (none): expected"));
  }
  SECTION("another number of the plan") {
    Plan plan = tiny_plan();
    plan.entries[1].learning_rate.value = 2;
    Run<float> other(plan);
    CHECK_THAT(refusal(other, scratch.path), ContainsSubstring("plan = "));
  }
  SECTION("another size") {
    Plan plan = tiny_plan();
    plan.entries[1].rows = 4;
    Run<float> other(plan);
    other.info.plan = run.info.plan;
    CHECK_THAT(refusal(other, scratch.path), ContainsSubstring("b of 1 x 3: expected b of 1 x 4"));
  }
  SECTION("a tensor more, a tensor less") {
    Plan plan = tiny_plan();
    plan.entries.pop_back();
    Run<float> fewer(plan);
    fewer.info.plan = run.info.plan;
    CHECK_THAT(refusal(fewer, scratch.path), ContainsSubstring("expected no more tensor"));
    fewer.save(scratch.path);
    CHECK_THAT(refusal(run, scratch.path), ContainsSubstring("no more tensor: expected b"));
  }
  SECTION("another optimizer") {
    Run<float> other(tiny_plan(scalewise::sgd));
    CHECK_THAT(refusal(other, scratch.path), ContainsSubstring("9 second moments: expected 0"));
  }
}

TEST_CASE("Every number of a plan is in its fingerprint", "[checkpoint]") {
  const std::string plain = scalewise::plan::plan_fingerprint(tiny_plan());
  CHECK(plain == scalewise::plan::plan_fingerprint(tiny_plan()));
  const auto changed = [&](auto change) {
    Plan plan = tiny_plan();
    plan.model.residuals.resize(1);
    const std::string before = scalewise::plan::plan_fingerprint(plan);
    change(plan);
    return scalewise::plan::plan_fingerprint(plan) != before;
  };
  CHECK(changed([](Plan& p) { p.rule = "other"; }));
  CHECK(changed([](Plan& p) { p.decay = scalewise::DecayForm::independent; }));
  CHECK(changed([](Plan& p) { p.reference = scalewise::Reference::base; }));
  CHECK(changed([](Plan& p) { p.model.attention_scale.value = 2; }));
  CHECK(changed([](Plan& p) { p.model.embedding_multiplier.value = 2; }));
  CHECK(changed([](Plan& p) { p.model.logit_multiplier.value = 2; }));
  CHECK(changed([](Plan& p) { p.model.residuals[0].skip.value = 2; }));
  CHECK(changed([](Plan& p) { p.model.residuals[0].branch.value = 2; }));
  CHECK(changed([](Plan& p) { p.entries[1].name = "c"; }));
  CHECK(changed([](Plan& p) { p.entries[1].rows = 9; }));
  CHECK(changed([](Plan& p) { p.entries[1].columns = 9; }));
  CHECK(changed([](Plan& p) { p.entries[1].distribution = scalewise::Distribution::uniform; }));
  CHECK(changed([](Plan& p) { p.entries[1].init_variance.value = 9; }));
  CHECK(changed([](Plan& p) { p.entries[1].init_mean.value = 9; }));
  CHECK(changed([](Plan& p) { p.entries[1].multiplier.value = 9; }));
  CHECK(changed([](Plan& p) { p.entries[1].learning_rate.value = 9; }));
  CHECK(changed([](Plan& p) { p.entries[1].weight_decay.value = 9; }));
  CHECK(changed([](Plan& p) { p.entries[1].epsilon.value = 9; }));
}

TEST_CASE("A save that fails leaves the old checkpoint and nothing beside it", "[checkpoint]") {
  const Scratch scratch;
  Run<float> run(tiny_plan());
  CHECK_THROWS_AS(run.save((scratch.folder / "none" / "run.ckpt").string()), InvalidInput);
  CHECK(fs::is_empty(scratch.folder));
  run.save(scratch.path);
  run.fill();
  run.save(scratch.path);
  CHECK(std::distance(fs::directory_iterator(scratch.folder), {}) == 1);
  Run<float> other(tiny_plan());
  CHECK(other.load(scratch.path).step == 42);
}
