// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Every dialect against lists of tensors that were typed from the code bases themselves, and against the same
// lists with one mistake each.

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/dialect/all.hpp"
#include "scalewise/dialect/classify.hpp"
#include "scalewise/dialect/detect.hpp"
#include "support/catch.hpp"
#include "support/published/all.hpp"
#include "support/published/mutations.hpp"
#include "support/published/qk_norm.hpp"
#include "support/sanitized.hpp"

namespace {

namespace published = scalewise::test::published;
using namespace scalewise;
using namespace scalewise::dialect;

std::vector<published::Model> published_models() {
  std::vector<published::Model> all;
  for (const published::Model& model : published::small_models()) {
    // One table of positions for two entries of a plan, which no dialect has.
    if (model.dialect != "marian" || !model.shape.learned_positions) all.push_back(model);
  }
  Shape pre_norm_marian = published::small_marian();
  pre_norm_marian.final_norm = pre_norm_marian.embedding_norm = true;
  all.push_back(
      published::marian(pre_norm_marian, "pre-norm", published::MarianNorms::before_blocks));
  for (const auto& counted : published::big_models()) all.push_back(counted.model);
  all.push_back(published::qwen2(published::small_llama()));
  all.push_back(published::qwen3(published::small_llama()));
  all.push_back(published::olmo2(published::small_llama()));
  all.push_back(published::hf_llama_with_attention_biases(published::small_llama()));
  return all;
}

/// One in ten where everything takes long.
std::vector<published::Model> few_under_sanitizers(std::vector<published::Model> models) {
  if (!scalewise::test::sanitized) return models;
  std::vector<published::Model> few;
  for (std::size_t i = 0; i < models.size(); i += 10) few.push_back(std::move(models[i]));
  return few;
}

std::vector<ModelTensor> as_model(const std::vector<published::NamedShape>& list) {
  std::vector<ModelTensor> model;
  model.reserve(list.size());
  for (const published::NamedShape& tensor : list) model.push_back({tensor.name, tensor.shape});
  return model;
}

std::string run_text(std::int64_t begin, std::int64_t count) {
  return " [" + std::to_string(begin) + ", " + std::to_string(count) + "]";
}
std::string text_of(const std::pair<std::int64_t, std::int64_t>& run) {
  return run_text(run.first, run.second);
}
std::string text_of(const IndexRun& run) {
  if (run.step == 1) return run_text(run.begin, run.count);
  std::string text;
  for (std::int64_t i = 0; i < run.count; ++i) text += run_text(run.begin + i * run.step, 1);
  return text;
}

/// "layer.0.query: axis 0 [0, 4] [8, 4]" for each part, and whether it is transposed.
std::string text_of(const auto& tensor) {
  std::string text = tensor.transposed ? "transposed\n" : "";
  for (const auto& part : tensor.parts) {
    text += part.entry;
    for (const auto& select : part.select) {
      text += ", axis " + std::to_string(select.axis);
      for (const auto& run : select.runs) text += text_of(run);
    }
    text += "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("Dialects state what their code multiplies") {
  // transformers: GemmaModel.forward and T5Attention, T5ForConditionalGeneration; fairseq's transformer_base.py;
  // Marian's transformer.h.
  const std::map<std::string_view, plan::CodeFactors> multiplied{
      {"gemma", {.embedding = sqrt(symbols::n)}},
      {"hf-t5", {.scores = 1, .tied_logits = 1 / sqrt(symbols::n)}},
      {"fairseq", {.embedding = sqrt(symbols::n)}},
      {"marian", {.embedding = sqrt(symbols::n)}}};
  std::vector<std::string_view> ids;
  for (const Dialect* dialect : all_dialects) ids.push_back(dialect->id);
  for (const auto& [id, dialect] : other_ids) ids.push_back(id);
  for (const std::string_view id : ids) {
    INFO(id);
    const auto own = multiplied.find(id);
    CHECK(dialect_named("id", id).code ==
          (own == multiplied.end() ? plan::CodeFactors{} : own->second));
  }
}

TEST_CASE("Each tensor of a published list is what the list says") {
  for (const published::Model& model : published_models()) {
    INFO(model.dialect << ", " << model.title);
    const Assignment found =
        classify(dialect_named("dialect", model.dialect), resolved(model.shape),
                 as_model(published::listed_in_full(model)));
    for (const std::string& problem : found.problems) UNSCOPED_INFO(problem);
    CHECK(found.problems.empty());
    std::map<std::string, std::string> texts;
    for (const OwnerTensor& tensor : found.tensors) texts[tensor.name] = text_of(tensor);
    CHECK(texts.size() == model.owners.size());
    for (const published::Owner& owner : model.owners) {
      INFO(owner.tensor.name);
      CHECK(texts[owner.tensor.name] == text_of(owner));
    }
    CHECK(found.buffers.size() == model.buffers.size());
    CHECK(found.aliases.size() == model.aliases.size());
    CHECK(found.unplanned.size() == model.extra.size());
  }
}

TEST_CASE("A published list is detected as its dialect") {
  for (const published::Model& model : few_under_sanitizers(published_models())) {
    if (model.owners.size() > 200) continue;  // the same names as a small one
    INFO(model.dialect << ", " << model.title);
    const Dialect& expected = dialect_named("dialect", model.dialect);
    std::string found;
    try {
      found = detect(resolved(model.shape), as_model(published::listed(model))).dialect;
    } catch (const InvalidInput& error) {
      found = error.what();
    }
    // Gemma's names are those of LLaMA.
    CHECK(found == (expected.id == "gemma" ? hf_llama.id : expected.id));
  }
}

TEST_CASE(
    "Every mistake at every tensor of a published list is told by its name and the tensor's") {
  std::map<published::Mistake, int> told;
  for (const published::Model& model : few_under_sanitizers(published_models())) {
    if (model.owners.size() > (test::sanitized ? 60 : 120)) continue;
    INFO(model.dialect << ", " << model.title);
    const Dialect& dialect = dialect_named("dialect", model.dialect);
    const Shape shape = resolved(model.shape);
    for (const published::Mutation& mutation : published::mutations(model)) {
      const Assignment found = classify(dialect, shape, as_model(mutation.list));
      const auto names_it = [&](const std::string& problem) {
        const auto has = [&](const std::string& text) {
          return problem.find(text) != std::string::npos;
        };
        return has(mutation.says) &&
               std::any_of(mutation.one_of.begin(), mutation.one_of.end(),
                           [&](const std::string& name) { return has(messages::printable(name)); });
      };
      INFO("mistake " << static_cast<int>(mutation.mistake) << " at " << mutation.one_of.front());
      const bool is_told = std::any_of(found.problems.begin(), found.problems.end(), names_it);
      if (!is_told) {
        for (const std::string& problem : found.problems) UNSCOPED_INFO(problem);
        CHECK(is_told);
      }
      told[mutation.mistake] += is_told ? 1 : 0;
    }
  }
  CHECK(told.size() == 14);
  CHECK(told[published::Mistake::swapped] > 0);
}
