// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// inspect: what each tensor of a model's files is, and its plan.
//
//   inspect model.safetensors
//   inspect model.gguf --rule complete-p --base-preset gpt2
//   inspect model-*.safetensors --config config.json --format json
//   inspect config.json --describe target.json

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frame/program.hpp"
#include "frame/progress.hpp"
#include "planning/arguments.hpp"
#include "planning/rule_options.hpp"
#include "planning/set_option.hpp"
#include "planning/writing.hpp"
#include "scalewise/architecture/shape_fields.hpp"
#include "scalewise/dialect/detect.hpp"
#include "scalewise/dialect/wrappers.hpp"
#include "scalewise/files/file.hpp"
#include "scalewise/io/config_json.hpp"
#include "scalewise/io/describe_config.hpp"
#include "scalewise/io/describe_tensors.hpp"
#include "scalewise/io/description_json.hpp"
#include "scalewise/io/fit_table.hpp"
#include "scalewise/io/name_patterns.hpp"
#include "scalewise/io/named_plan_json.hpp"
#include "scalewise/io/tensor_file.hpp"
#include "scalewise/messages/nearest.hpp"
#include "scalewise/messages/sizes_text.hpp"

namespace {

using scalewise::InvalidInput;
using scalewise::Plan;
using scalewise::Shape;
using scalewise::StoredTensor;
using scalewise::Table;
using scalewise::TensorFile;
using scalewise::dialect::Assignment;
using scalewise::dialect::ModelTensor;
using scalewise::messages::printable;
using Json = nlohmann::ordered_json;

struct Arguments : scalewise::tools::PlanArguments {
  const scalewise::frame::Options* options = nullptr;
  std::vector<std::string> files;
  std::string names;
  bool layers = false;
  std::string format = "table";
  std::string save;
  std::string describe;

  /// Of the terminal that text has to fit.
  std::size_t columns() const { return save.empty() ? scalewise::frame::terminal_columns() : 0; }
};

/// One model: its tensors in all files, and where its shape is from.
struct Model {
  TensorFile content;
  std::optional<scalewise::tools::GivenModel> given = {};
  std::string shape_from = {};
};

/// Several files are the parts of one model.
TensorFile read_all(const Arguments& a) {
  const std::vector<std::string>& files = a.files;
  if (files.empty()) throw InvalidInput("FILE", "none", "a file of a model");
  TensorFile all = scalewise::read_tensor_file(files.front());
  std::set<std::string> names;
  for (const StoredTensor& tensor : all.tensors) names.insert(tensor.name);
  for (std::size_t i = 1; i < files.size(); ++i) {
    TensorFile next = scalewise::read_tensor_file(files[i]);
    if (next.format != all.format) {
      throw InvalidInput("FILE", files[i] + " (" + next.format + ")", "parts of one model",
                         files.front() + " is " + all.format);
    }
    for (StoredTensor& tensor : next.tensors) {
      if (!names.insert(tensor.name).second) {
        throw InvalidInput(files[i], printable(tensor.name), "a tensor that no other file has",
                           "several files are read as parts of one model");
      }
      tensor.file += all.files.size();
      all.tensors.push_back(std::move(tensor));
    }
    all.files.insert(all.files.end(), next.files.begin(), next.files.end());
    all.notes.insert(all.notes.end(), next.notes.begin(), next.notes.end());
  }
  a.options->keep_inputs(all.files);  // which an index names
  return all;
}

bool is_file(const std::filesystem::path& path) {
  std::error_code none;
  return std::filesystem::is_regular_file(path, none);
}

/// The configuration; what is wrong with it is a note, so that the table of the files is shown.
void read_config(const Arguments& a, const std::string& path, Model& model) {
  a.options->keep_inputs({path});
  try {
    model.given = scalewise::tools::model_of_config(a.program, path);
    model.shape_from = path;
  } catch (const std::invalid_argument& error) {
    if (!a.rule.empty() || !is_file(path)) throw;
    model.content.notes.push_back(std::string("no shape: ") + error.what());
  }
}

/// From the options; without them from the file itself, or from the config.json next to it.
Model read_model(const Arguments& a) {
  Model model{read_all(a)};
  if (!a.preset.empty()) {
    model.given = given_model(a);
    model.shape_from = a.preset;
  } else if (!a.config.empty()) {
    read_config(a, a.config, model);
  } else if (model.content.shape) {
    model.given = scalewise::tools::GivenModel{*model.content.shape};
    if (model.content.code != scalewise::plan::CodeFactors{})
      model.given->code = model.content.code;
    model.shape_from = a.files.front();
  } else if (const auto beside =
                 std::filesystem::path(a.files.front()).parent_path() / "config.json";
             is_file(beside)) {
    read_config(a, beside.string(), model);
  }
  for (const StoredTensor& tensor : model.content.tensors) {
    const std::string_view kind = scalewise::dialect::kind_of_names(tensor.name);
    if (kind.empty()) continue;
    model.content.notes.push_back(printable(tensor.name) + ": the file is " + std::string(kind));
    break;
  }
  return model;
}

std::vector<ModelTensor> tensors_of(const TensorFile& content) {
  std::vector<ModelTensor> tensors;
  for (const StoredTensor& tensor : content.tensors) tensors.push_back({tensor.name, tensor.shape});
  return tensors;
}

/// By the dialect that is named, or the nearest one.
Assignment assignment_of(const Arguments& a, const Shape& shape,
                         const std::vector<ModelTensor>& tensors) {
  if (!a.names.empty()) {
    Assignment named;
    scalewise::tools::with_names(
        a.program, a.names, [&](const scalewise::dialect::Dialect& dialect) {
          named = classify(dialect, shape, tensors, scalewise::tools::extras_of(a));
        });
    return named;
  }
  scalewise::dialect::Detection found =
      scalewise::dialect::nearest_dialect(shape, tensors, scalewise::tools::extras_of(a));
  if (found.exact.size() < 2) return std::move(found.assignment);
  throw InvalidInput("--names", "none",
                     fmt::format("one of {}, which all fit", fmt::join(found.exact, ", ")));
}

/// Whether the head is tied is what the files have, where nothing says it.
Assignment classified(const Arguments& a, Shape shape, const std::vector<ModelTensor>& tensors) {
  shape = resolved(shape);
  if (shape.tied_head) return assignment_of(a, shape, tensors);
  shape.tied_head = false;
  Assignment untied = assignment_of(a, shape, tensors);
  shape.tied_head = true;
  Assignment tied = assignment_of(a, shape, tensors);
  return tied.problems.size() < untied.problems.size() ? std::move(tied) : std::move(untied);
}

/// The meaning of each name: its entries, or why it has none.
std::map<std::string, std::string> meanings(const Assignment& assignment) {
  std::map<std::string, std::string> all;
  for (const auto& tensor : assignment.tensors) {
    std::vector<std::string> entries;
    std::set<std::string> seen;  // a slab has each kind once per layer
    for (const auto& part : tensor.parts) {
      std::string entry = scalewise::io::name_of_any_layer(part.entry);
      if (seen.insert(entry).second) entries.push_back(std::move(entry));
    }
    all[tensor.name] = fmt::format("{}", fmt::join(entries, " + "));
  }
  for (const auto& alias : assignment.aliases) all[alias.name] = "the same as " + alias.of;
  for (const std::string& name : assignment.buffers) all[name] = "(not trained)";
  for (const std::string& name : assignment.unplanned) all[name] = "(in no plan)";
  return all;
}

/// Whether a code base has the names.
bool knows_names(const std::optional<Assignment>& assignment) {
  return assignment && !assignment->dialect.empty();
}

/// Readers refuse sizes whose product does not fit.
std::int64_t product(const std::vector<std::int64_t>& sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return count;
}

/// Padded rows of a table are among them.
std::int64_t planned_parameters(const Assignment& assignment) {
  std::int64_t count = 0;
  for (const auto& tensor : assignment.tensors) count += product(tensor.shape);
  return count;
}

/// One row per tensor, or per tensors that differ in the layer alone.
Table tensor_table(const TensorFile& content, const std::map<std::string, std::string>& meaning,
                   bool layers) {
  Table table{"", {"tensor", "times", "type", "shape", "is"}, {}};
  std::map<std::vector<std::string>, std::size_t> rows;
  std::vector<long> times;
  for (const StoredTensor& tensor : content.tensors) {
    const auto found = meaning.find(tensor.name);
    const std::string name = layers ? tensor.name : scalewise::io::name_of_any_layer(tensor.name);
    std::vector<std::string> row{name, "", tensor.type,
                                 scalewise::messages::sizes_text(tensor.shape),
                                 found == meaning.end() ? "?" : found->second};
    const auto [at, is_first] = rows.emplace(row, table.rows.size());
    row.front() = scalewise::messages::visible_text(name);
    if (is_first) {
      table.rows.push_back(std::move(row));
      times.push_back(0);
    }
    ++times[at->second];
  }
  for (std::size_t i = 0; i < times.size(); ++i) table.rows[i][1] = std::to_string(times[i]);
  return table;
}

std::int64_t numbers_of(const TensorFile& content) {
  std::int64_t count = 0;
  for (const StoredTensor& tensor : content.tensors) count += product(tensor.shape);
  return count;
}

std::string as_text(const Model& model, const std::optional<Assignment>& assignment, bool layers,
                    scalewise::TableFormat format, std::size_t columns) {
  const TensorFile& content = model.content;
  const auto meaning = assignment ? meanings(*assignment) : std::map<std::string, std::string>();
  const scalewise::Table table = tensor_table(content, meaning, layers);
  if (format != scalewise::TableFormat::text) return render(table, format);
  std::int64_t bytes = 0;
  for (const StoredTensor& tensor : content.tensors) bytes += tensor.bytes;
  std::string text =
      fmt::format("format   {}, {} {}, {} tensors, {} numbers, {} bytes\n", content.format,
                  content.files.size(), content.files.size() == 1 ? "file" : "files",
                  content.tensors.size(), numbers_of(content), bytes);
  text += fmt::format("shape    {}\n", model.given ? "from " + printable(model.shape_from)
                                                   : "not known: give --config or --preset");
  if (assignment) {
    const std::string names = knows_names(assignment)
                                  ? fmt::format("{}, {} parameters of a plan", assignment->dialect,
                                                planned_parameters(*assignment))
                                  : "of no known code base";
    text += fmt::format("names    {}, {} {}\n", names, assignment->problems.size(),
                        assignment->problems.size() == 1 ? "problem" : "problems");
  }
  for (const std::string& note : content.notes) text += "note     " + note + "\n";
  text += "\n" + scalewise::io::render_to_fit(table, columns);
  if (assignment && !assignment->problems.empty()) {
    text += fmt::format("\nproblems\n  {}\n", fmt::join(assignment->problems, "\n  "));
  }
  return text;
}

Json as_json(const Model& model, const std::optional<Assignment>& assignment) {
  const TensorFile& content = model.content;
  const auto meaning = assignment ? meanings(*assignment) : std::map<std::string, std::string>();
  Json tensors = Json::array();
  for (const StoredTensor& tensor : content.tensors) {
    const auto found = meaning.find(tensor.name);
    tensors.push_back({{"name", tensor.name},
                       {"type", tensor.type},
                       {"shape", tensor.shape},
                       {"file", content.files[tensor.file]},
                       {"offset", tensor.offset},
                       {"bytes", tensor.bytes},
                       {"is", found == meaning.end() ? Json(nullptr) : Json(found->second)}});
  }
  Json json{{"schema", "scalewise.inspection/1"},
            {"format", content.format},
            {"files", content.files},
            {"numbers", numbers_of(content)},
            {"shape_from", model.given ? Json(model.shape_from) : Json(nullptr)},
            {"dialect", knows_names(assignment) ? Json(assignment->dialect) : Json(nullptr)},
            {"parameters",
             knows_names(assignment) ? Json(planned_parameters(*assignment)) : Json(nullptr)},
            {"problems", assignment ? Json(assignment->problems) : Json::array()},
            {"notes", content.notes},
            {"tensors", std::move(tensors)}};
  return json;
}

/// Names are bytes from a file, which need not be UTF-8, and which a terminal must not obey.
std::string dumped(const Json& json) {
  return json.dump(1, ' ', true, Json::error_handler_t::replace) + "\n";
}

/// The plan of a model's files, for what the code base of their names multiplies.
Plan planned(Arguments a, const scalewise::tools::GivenModel& given,
             const std::vector<ModelTensor>& tensors) {
  if (!a.names.empty()) {
    a.names_code = scalewise::tools::code_of_names(a.names);
  } else if (!given.code) {
    const Assignment names = classified(a, given.shape, tensors);
    if (!names.dialect.empty()) a.names_code = scalewise::tools::code_of_names(names.dialect);
  }
  return make_plans(a, given).front();
}

/// The tensors that a configuration describes, or those of a model's files by the names in them.
scalewise::io::ConfigDescription description_of(const Arguments& a) {
  const bool one = a.files.size() == 1;
  if (one && a.files.front().ends_with(".json") && !a.files.front().ends_with(".index.json")) {
    return scalewise::io::describe_config(scalewise::io::read_config_file(a.files.front()),
                                          a.files.front(), a.base);
  }
  if (a.base != scalewise::Base{}) {
    throw InvalidInput("--base-width", "(or its like)", "a config.json as FILE",
                       "the tensors of other files have the sizes that they have");
  }
  scalewise::io::FileDescription read = scalewise::io::describe_tensors(read_all(a));
  return {std::move(read.model), {}, {}, std::move(read.doubts)};
}

/// Writes the tensors that are described; says how many, and what the file does not.
std::string describe(const Arguments& a) {
  const scalewise::io::ConfigDescription read = description_of(a);
  std::int64_t numbers = 0;
  bool tied = false;
  for (const scalewise::DescribedTensor& tensor : read.model.tensors) {
    tied = tied || !tensor.tied_to.empty();
    if (!tensor.tied_to.empty()) continue;
    numbers += product({tensor.sizes.begin(), tensor.sizes.end()});
  }
  scalewise::files::write_file(a.describe, to_json(read.model).dump(1) + "\n");
  std::string text = fmt::format("{} tensors, {} numbers\n", read.model.tensors.size(), numbers);
  for (const auto& [pattern, role] : read.roles) {
    text += fmt::format("note: plan it with --role '{}={}'\n", pattern,
                        word(scalewise::architecture::given_role_words, role));
  }
  for (const std::string& line : scalewise::plan::code_lines(read.code, tied))
    text += "note: " + line + "\n";
  for (const std::string& note : read.notes) text += "note: " + note + "\n";
  return text;
}

/// Without --rule: refuses options of a plan, and of a shape where there is none.
void require_what_options_need(const Arguments& a, const Model& model) {
  const auto need = [&](std::initializer_list<const char*> options, const char* what,
                        const char* hint) {
    for (const char* option : options) {
      if (a.options->given(option)) throw InvalidInput(option, "(given)", what, hint);
    }
  };
  const char* rule = "--rule as well";
  const char* hint = "see --list-rules of plan";
  if (scalewise::tools::is_named_format(a.format)) need({"--format"}, rule, hint);
  need({"--base-preset", "--base-config", "--base-width", "--base-depth", "--base-experts",
        "--optimizer", "--decay", "--start", "--constant", "--from-standard", "--cut", "--fold",
        "--single-rate", "--strict"},
       rule, hint);
  if (model.given) return;
  need({"--set", "--extra", "--names"}, "the model's shape",
       "give --config or --preset: the files do not say it");
}

/// The output, and the exit code.
std::pair<std::string, int> run(const Arguments& a) {
  if (!a.describe.empty()) return {describe(a), 0};
  const Model model = read_model(a);
  const std::vector<ModelTensor> tensors = tensors_of(model.content);
  if (!a.rule.empty()) {
    if (!model.given) {
      throw InvalidInput("--config", "none", "the model's shape",
                         "give --config or --preset: the files do not say it");
    }
    const Plan plan = planned(a, *model.given, tensors);
    return {scalewise::tools::write_named(
                name_plan(plan, assignment_of(a, plan.shape, tensors),
                          scalewise::tools::cut_of(a, plan)),
                a.format, a.layers, a.columns(),
                [](const std::string& line) { scalewise::frame::say_once("inspect: " + line); }),
            0};
  }
  require_what_options_need(a, model);
  std::optional<Assignment> assignment;
  if (model.given) {
    Shape shape = model.given->shape;
    std::optional<Shape> none;
    const auto parameters = scalewise::tools::set_target(a.set, shape);
    scalewise::tools::set_base(a.set, none, "there is none without --rule");
    if (!parameters.empty()) {
      throw InvalidInput("--set", parameters.front().name, "a field of the shape",
                         scalewise::messages::did_you_mean(
                             parameters.front().name, scalewise::architecture::shape_fields()));
    }
    assignment = classified(a, shape, tensors);
  }
  const bool refused = !a.config.empty() && !model.given;
  const int code = refused || (assignment && !assignment->problems.empty()) ? 1 : 0;
  if (a.format == "json") return {dumped(as_json(model, assignment)), code};
  return {
      as_text(model, assignment, a.layers, scalewise::tools::table_format(a.format), a.columns()),
      code};
}

}  // namespace

scalewise::frame::Program scalewise::frame::program() {
  const auto a = std::make_shared<Arguments>();
  Program program{"inspect", "What each tensor of a model's files is, and its plan."};
  a->program = program.name;
  Options& o = *program.options;
  a->options = &o;
  o.add("FILE", a->files,
        "safetensors, model.safetensors.index.json, GGUF or a checkpoint of llm.c; several are the "
        "parts of one model")
      .repeated()
      .not_an_input()
      .path();
  o.add("--rule", a->rule, "name of a rule, see plan --list-rules (to print its plan)")
      .names(scalewise::tools::rule_id);
  add_shape_options(o, *a);
  o.at("--config").help("Hugging Face config.json (where the one next to FILE is not meant)");
  add_plan_options(o, *a);
  o.group("Output");
  o.add("--names", a->names,
        "code base whose names tensors have, see plan --list-names, or a file that says them "
        "(.json)")
      .reads(".json");
  o.add("--describe", a->describe,
        "file for a description of the tensors of FILE, or of a config.json (docs/any_model.md)")
      .writes(files::try_file)
      .excludes("--rule")
      .excludes("--names")
      .excludes("--layers")
      .excludes("--format");
  o.add("--layers", a->layers, "one row per tensor instead of one per kind").not_an_input();
  o.add("--format", a->format, "format of the output")
      .words(scalewise::tools::plan_formats())
      .not_an_input();
  o.add("--save", a->save, "file to write instead of the terminal").writes(files::try_file);
  program.run = [a](const std::vector<std::string>&) {
    const auto [text, code] = ::run(*a);
    if (a->save.empty()) {
      std::cout << text;
    } else {
      scalewise::files::write_file(a->save, text);
    }
    return code;
  };
  return program;
}
