// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/plan/set_up_warnings.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "scalewise/plan/make_plan.hpp"
#include "scalewise/policy/complete_p.hpp"
#include "scalewise/policy/gpt2.hpp"
#include "scalewise/policy/maximal_update.hpp"
#include "scalewise/policy/pytorch.hpp"
#include "scalewise/policy/standard.hpp"
#include "support/catch.hpp"

using namespace scalewise;
using Catch::Matchers::StartsWith;

namespace {

Shape warned_shape(long width) {
  Shape s{.d_model = width, .depth = 2, .heads = width / 32, .context = 16, .vocab = 50};
  s.tied_head = true;
  return s;
}

std::vector<std::string> warnings_of(const Shape& target, const Shape& base) {
  return set_up_warnings(make_plan(CompleteP{}, {.model = target, .base = base}));
}

}  // namespace

TEST_CASE("A plan that was meant so has no warnings") {
  CHECK(warnings_of(warned_shape(256), warned_shape(64)).empty());
  Shape deep = warned_shape(256);
  deep.depth = 8;
  CHECK(warnings_of(deep, warned_shape(64)).empty());
  Shape longer = warned_shape(256), base = warned_shape(64);
  longer.tied_head = base.tied_head = false;
  longer.iterations = base.iterations = 8;
  CHECK(warnings_of(longer, base).empty());
  base.iterations = 2;
  CHECK(set_up_warnings(make_plan("nu-gpt", {.model = longer, .base = base})).empty());
}

TEST_CASE("Each doubtful choice is one line") {
  Shape target = warned_shape(256), base = warned_shape(64);
  const auto only = [&](const std::string& start) {
    const std::vector<std::string> found = warnings_of(target, base);
    REQUIRE(found.size() == 1);
    CHECK_THAT(found[0], StartsWith(start));
  };
  SECTION("swapped") {
    std::swap(target, base);
    only("d_model = 64 is less than the base's 256");
  }
  SECTION("swapped in depth") {
    target.depth = 1;
    only("depth = 1 is less than the base's 2");
  }
  SECTION("steps that no number depends on") {
    target.iterations = 8;
    base.iterations = 2;
    only("iterations = 8: complete-p does not scale with the number of steps");
  }
  SECTION("segments") {
    target.segments = 2;
    only("segments differs from the base's");
  }
  SECTION("relative positions") {
    base.relative_buckets = 32;
    only("relative_buckets differs from the base's");
  }
  SECTION("tied head") {
    base.tied_head = false;
    only("tied_head differs from the base's");
  }
  SECTION("biases") {
    base.biases = false;
    only("biases differs from the base's");
  }
  SECTION("gates") {
    target.gated_mlp = true;
    only("gated_mlp differs from the base's");
  }
  SECTION("norms of queries") {
    target.qk_norm = QkNorm::head;
    only("qk_norm differs from the base's");
  }
  SECTION("activation") {
    target.activation = Activation::relu;
    only("activation differs from the base's");
  }
  SECTION("several at once") {
    base.biases = false;
    base.activation = Activation::silu;
    only("biases, activation differ from the base's");
  }
  SECTION("narrow heads") {
    base.heads = 4;
    only("base.head_dim = 16");
  }
}

TEST_CASE("Depth matters to rules that have none, and decayed gains are said once") {
  Shape deep = warned_shape(256);
  deep.depth = 8;
  const auto found =
      set_up_warnings(make_plan(MaximalUpdate{}, {.model = deep, .base = warned_shape(64)}));
  REQUIRE(found.size() == 2);
  CHECK_THAT(found[0], StartsWith("depth = 8, but the base's is 2: maximal-update does not scale"));
  CHECK_THAT(found[1], StartsWith("gains are decayed (layer.0.attention_norm_gain"));
  CHECK(set_up_warnings(make_plan(Gpt2{}, {.model = warned_shape(256)})).size() <= 1);
}

TEST_CASE("A norm of each branch undoes depths that its last matrix is drawn by") {
  // Those rules whose tables have the depth in the variance of the attention's output: 2/(2L), (8L)^(-1/2), 1/l and, through
  // the correlation that reaches a layer, 1/r_l. The others have it in the branch's multiplier or in rates, or nowhere.
  const std::vector<std::string> drawn{"gpt2", "deep-norm", "ds-init", "deep-scale-lm"};
  Shape shape = warned_shape(256);
  shape.depth = 8;
  shape.activation = Activation::relu;
  for (const Rule& rule : rules()) {
    if (rule.id.starts_with("shallow")) continue;
    CAPTURE(rule.id);
    std::vector<Parameter> parameters;
    for (const Parameter& p : {Parameter{"dropout", 0.1}, Parameter{"input_correlation", 0.2}}) {
      const auto names = policy::parameter_names(rule.id);
      if (std::count(names.begin(), names.end(), p.name) > 0) parameters.push_back(p);
    }
    for (const bool norm : {true, false}) {
      shape.branch_norm = norm;
      const auto found = set_up_warnings(
          make_plan(rule, {.model = shape, .base = shape, .parameters = parameters}));
      const auto is_said = [](const std::string& text) {
        return text.starts_with("branch_norm = true: the norm of a branch undoes that ");
      };
      const bool expected = norm && std::count(drawn.begin(), drawn.end(), rule.id) > 0;
      CHECK(std::count_if(found.begin(), found.end(), is_said) == (expected ? 1 : 0));
    }
  }
}

TEST_CASE("A tied head with a large embedding warns with the first loss") {
  // Measured on the reference transformer: 42, 166 and 510 at widths 64, 256 and 768.
  Shape shape = warned_shape(768);
  shape.vocab = 256;
  const auto tied_lines = [](const Plan& plan) {
    std::vector<std::string> found;
    for (const std::string& text : set_up_warnings(plan)) {
      if (text.starts_with("the head is tied")) found.push_back(text);
    }
    return found;
  };
  const auto found = tied_lines(make_plan(PyTorch{}, {.model = shape}));
  REQUIRE(found.size() == 1);
  CHECK_THAT(found[0],
             StartsWith("the head is tied to an embedding of variance 1, so that the token "
                        "just read gets the logit 543, and the first loss is about that "
                        "(ln vocab is 5.5)"));
  shape.learned_positions = false;
  CHECK_THAT(tied_lines(make_plan(PyTorch{}, {.model = shape})).at(0),
             Catch::Matchers::ContainsSubstring("the logit 768,"));
  shape.tied_head = false;
  CHECK(tied_lines(make_plan(PyTorch{}, {.model = shape})).empty());
  CHECK(tied_lines(make_plan(Gpt2{}, {.model = warned_shape(768)})).empty());
}
