// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The JSON of a plan, and everything that takes a plan once it is accepted. An input is JSON, or
// edits of a plan: its number, then lines "pointer value" or, to take something away, "pointer".

#include <charconv>
#include <cstdlib>
#include <functional>

#include "fuzz/fuzz.hpp"
#include "fuzz/json_edit.hpp"
#include "scalewise/plan/make_plan.hpp"
#ifdef SCALEWISE_FUZZ_MODELS
#include "instances/transformer.hpp"
#endif
#include "scalewise/io/plan_json.hpp"
#include "scalewise/io/plan_table.hpp"
#include "scalewise/nn/initialize.hpp"
#include "scalewise/nn/parameters.hpp"
#include "scalewise/plan/fingerprint.hpp"
#include "scalewise/propagation/model.hpp"

namespace scalewise::fuzz::plan_target {

namespace {

using Json = nlohmann::ordered_json;

Shape small(void (*change)(Shape&)) {
  Shape shape{.d_model = 4, .depth = 1, .heads = 2, .d_ff = 6, .context = 3, .vocab = 5};
  shape.biases = shape.norm_bias = false;  // fewer tensors, so that an input takes less time
  change(shape);
  return shape;
}

std::vector<Json> make_plans() {
  const Shape plain = small([](Shape&) {});
  const Shape wide = small([](Shape& s) { s.d_model = 8; });
  const Shape grouped = small([](Shape& s) {
    s.kv_heads = 1;
    s.gated_mlp = true;
    s.learned_positions = false;
    s.tied_head = true;
  });
  const Shape patches = small([](Shape& s) {
    s.input = Input::patch;
    s.patch_dim = 3;
    s.classes = 2;
    s.class_token = true;
    s.biases = s.norm_bias = true;
  });
  const Shape vectors = small([](Shape& s) {
    s.input = Input::patch;
    s.patch_dim = 3;
    s.classes = 2;
  });
  const Shape both = small([](Shape& s) {
    s.encoder_depth = 1;
    s.segments = 2;
    s.embedding_norm = true;
  });
  const Shape relative = small([](Shape& s) {
    s.relative_buckets = 2;
    s.final_norm = false;
  });
  std::vector<Json> all;
  const auto add = [&](const char* rule, Optimizer optimizer, const Shape& shape,
                       const std::optional<Shape>& base = {}) {
    all.push_back(
        Json(to_json(make_plan(rule, {.model = shape, .base = base, .optimizer = optimizer}))));
  };
  add("gpt2", adamw, plain);
  add("xavier", sgd, both);
  add("maximal-update", adamw, wide, plain);
  add("complete-p", adamw, grouped, grouped);
  add("standard", sgd, relative);
  add("pytorch", adamw, patches);
  add("nu-gpt", adamw, wide, plain);
  add("deep-norm", adamw, both);
  add("rezero", adamw, plain);
  add("shallow-he", sgd, vectors);
  return all;
}

const std::vector<Json>& plans() {
  static const std::vector<Json> all = make_plans();
  return all;
}

/// The place of every value of a plan.
const std::vector<std::string>& places(std::size_t plan) {
  static const auto all = [] {
    std::vector<std::vector<std::string>> lists;
    for (const Json& json : plans()) {
      lists.emplace_back();
      const Json flat = json.flatten();
      for (const auto& item : flat.items()) lists.back().push_back(item.key());
    }
    return lists;
  }();
  return all[plan];
}

std::size_t plan_number(std::string_view input) {
  std::size_t number = 0;
  std::from_chars(input.data(), input.data() + input.size(), number);
  return number % plans().size();
}

void edit(Json& json, const std::string& line) {
  const std::size_t space = line.find(' ');
  const std::string place = line.substr(0, space);
  try {
    const Json::json_pointer pointer(place);
    if (!json.contains(pointer) || pointer.empty()) return;
    if (space != std::string::npos) {
      Json value = Json::parse(line.substr(space + 1), nullptr, false);
      if (!value.is_discarded()) json[pointer] = std::move(value);
    } else if (json[pointer.parent_pointer()].is_object()) {
      json[pointer.parent_pointer()].erase(pointer.back());
    } else {
      json[pointer.parent_pointer()].erase(std::stoul(pointer.back()));
    }
  } catch (const Json::exception&) {
    // no such place
  }
}

Plan read(std::string_view input) {
  if (input.starts_with('{')) return read_plan(input);
  Json json = plans()[plan_number(input)];
  while (const std::size_t end = input.find('\n') + 1) {
    input.remove_prefix(end);
    edit(json, std::string(input.substr(0, input.find('\n'))));
  }
  return plan_from_json(json);
}

/// Runs what may refuse a plan.
template <class Step>
void attempt(Step step) {
  try {
    step();
  } catch (const InvalidInput&) {
    // a refusal is an answer
  }
}

/// One way to write it; `choice` says which.
void write(const Plan& plan, std::size_t choice) {
  static constexpr TableFormat formats[] = {TableFormat::text, TableFormat::markdown,
                                            TableFormat::latex, TableFormat::csv};
  const TableFormat format = formats[choice % 4];
  const bool layers = choice % 8 < 4;
  if (choice % 3 == 0) render(plan_table(plan, layers), format);
  if (choice % 3 == 1) render(flat_table({plan}), format);
  if (choice % 3 == 2) {
    for (const Table& table : comparison_tables({plan, plan}, layers)) {
      render(table, format);
    }
  }
  render(model_table({plan}), format);
  legend({plan});
  citation(plan);
  plan::plan_fingerprint(plan);
}

void predict(const Plan& plan, bool causal) {
  const propagation::Conditions conditions{.length = 3, .causal = causal};
  attempt([&] {
    propagation::predict(plan, conditions, propagation::SignalMoments{0, 1, 0.5},
                         propagation::SignalMoments{0, 1, 0.5});
  });
  attempt([&] {
    propagation::predict_encoder_decoder(plan, conditions, {0, 1, 0.5}, {0, 1, 0.5}, {0, 1, 0.5});
  });
}

void build(const Plan& plan) {
  attempt([&] {
    nn::Parameters<double> parameters(plan);
    nn::initialize(parameters, plan, 1);
  });
#ifdef SCALEWISE_FUZZ_MODELS
  attempt([&] {
    nn::Transformer<double> model(plan, {});
    nn::Batch<double> batch;
    batch.size = 1;
    batch.tokens = {0, 1, 2};
    batch.source = {0, 1, 2};
    batch.targets = {1, 2, 0};
    nn::initialize(model.parameters(), plan, 1);
    model.loss_and_gradient(batch);
  });
#endif
}

}  // namespace

static std::vector<std::string> seeds() {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < plans().size(); ++i) all.push_back(std::to_string(i) + "\n");
  all.push_back(plans().front().dump());
  return all;
}

static std::string edited(std::string input, Random& random) {
  if (input.starts_with('{')) return edited_json(input, random);
  const std::vector<std::string>& all = places(plan_number(input));
  std::string place = all[below(all.size(), random)];
  for (std::size_t up = below(8, random); up > 5; --up) {
    if (!place.empty()) place.resize(place.rfind('/'));
  }
  if (input.back() != '\n') input += '\n';
  return input + place + (below(8, random) == 0 ? "" : " " + hostile_json(random)) + '\n';
}

static void run(std::string_view input) {
  const Plan plan = read(input);
  // One of those that take a plan for each input, so that there are more inputs.
  const std::size_t choice = std::hash<std::string_view>{}(input);
  switch (choice % 4) {
    case 0:
      if (!(plan_from_json(Json(to_json(plan))) == plan)) std::abort();
      break;
    case 1:
      write(plan, choice / 4);
      break;
    case 2:
      predict(plan, choice / 4 % 2 == 0);
      break;
    default:
      build(plan);
  }
}

static const Added added{{"plan", seeds, edited, run}};

}  // namespace scalewise::fuzz::plan_target
