// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The program `plan` for a page: JSON in, JSON out. A request has the options of `plan` by their names:
//
//   {"rule": "maximal-update", "preset": "gpt2-xl", "base-preset": "gpt2", "set": ["depth=24"]}
//
// "config" and "base-config" are the text of a config.json, not its path. The answer has the tables, and
// with "format" also "text": what `plan --format` prints. Or it is {"error": "..."}.

#include <algorithm>
#include <exception>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "planning/plans.hpp"
#include "planning/writing.hpp"
#include "scalewise/architecture/presets.hpp"
#include "scalewise/architecture/shape_fields.hpp"
#include "scalewise/dialect/all.hpp"
#include "scalewise/io/config_json.hpp"
#include "scalewise/io/plan_table.hpp"
#include "scalewise/io/shape_json.hpp"
#include "scalewise/policy/rule.hpp"
#include "scalewise/policy/rule_id.hpp"

namespace {

using Json = nlohmann::ordered_json;
using namespace scalewise;

/// The keys of a request that are given.
class Request {
 public:
  explicit Request(const std::string& text) : json_(io::parse_json(text, "request")) {
    reader().only({"rule", "compare", "optimizer", "decay", "start", "preset", "config",
                   "base-preset", "base-config", "set", "extra", "fold", "single-rate", "names",
                   "layers", "format"});
  }

  std::string text(const char* key, std::string otherwise = {}) const {
    return reader().has(key) ? reader().at(key).string() : std::move(otherwise);
  }
  bool flag(const char* key) const { return reader().has(key) && reader().at(key).boolean(); }
  std::vector<std::string> list(const char* key) const {
    std::vector<std::string> all;
    if (!reader().has(key)) return all;
    for (const io::JsonReader& item : reader().at(key).items()) all.push_back(item.string());
    return all;
  }
  /// The id of a rule by any of its names; empty where none is given.
  std::string rule(const char* key) const {
    return reader().has(key) ? policy::rule_id(text(key), std::string("--") + key) : "";
  }
  /// Of a preset, or of what is in a file `name`.
  std::optional<tools::GivenModel> model(const char* preset, const char* config, const char* name,
                                         Json& messages) const {
    if (reader().has(preset)) return tools::GivenModel{preset_shape(text(preset))};
    if (!reader().has(config)) return {};
    const io::ModelConfig read = io::model_config(io::parse_json(text(config), name), name);
    for (const std::string& note : read.notes) messages.push_back("note: " + note);
    return tools::GivenModel{read.shape, read.code, read.initializer_std};
  }

 private:
  io::JsonReader reader() const { return {json_, "request"}; }

  Json json_;
};

Json table_json(const Table& table) {
  return {{"caption", table.caption}, {"header", table.header}, {"rows", table.rows}};
}

std::vector<Table> tables_of(const std::vector<Plan>& plans, bool compare, bool layers) {
  if (compare) return comparison_tables(plans, layers);
  return {model_table(plans), plan_table(plans.front(), layers)};
}

Json plan_summary(const Plan& plan) {
  return {{"rule", plan.rule},
          {"title", plan.title},
          {"citation", citation(plan)},
          {"parameter_count", plan.parameter_count()}};
}

Json answer(const Request& request) {
  tools::PlanArguments a;
  a.rule = request.rule("rule");
  for (const std::string& name : request.list("compare")) {
    a.compare.push_back(policy::rule_id(name, "--compare"));
  }
  a.optimizer = request.text("optimizer", a.optimizer);
  a.decay = value_of(policy::decay_words, "--decay",
                     request.text("decay", std::string(word(policy::decay_words, a.decay))));
  a.start = request.rule("start");
  a.set = request.list("set");
  a.extra = request.list("extra");
  a.fold = request.flag("fold");
  a.single_rate = request.flag("single-rate");
  Json messages = Json::array();
  const auto target = request.model("preset", "config", "config.json", messages);
  if (!target) throw InvalidInput("preset", "none", "a model", "choose one or give a config.json");

  const std::string names = request.text("names");
  if (!names.empty()) a.names_code = dialect::dialect_named("names", names).code;
  const auto say = [&](const std::string& line) {  // plans of several rules say the same
    if (std::find(messages.begin(), messages.end(), line) == messages.end())
      messages.push_back(line);
  };
  const std::vector<Plan> plans = make_plans(
      a, *target, request.model("base-preset", "base-config", "base config.json", messages), say);
  const bool compare = !a.compare.empty();
  const bool layers = request.flag("layers");

  Json json = {{"plans", Json::array()}, {"tables", Json::array()}};
  for (const Plan& plan : plans) json["plans"].push_back(plan_summary(plan));
  for (const Table& table : tables_of(plans, compare, layers)) {
    json["tables"].push_back(table_json(table));
  }
  json["legend"] = legend(plans);
  json["messages"] = messages;
  json["shape"] = to_json(plans.front().shape);
  json["base"] = plans.front().base ? to_json(*plans.front().base) : Json(nullptr);
  const std::string format = request.text("format");
  if (!names.empty()) {
    const auto& dialect = dialect::dialect_named("names", names);
    json["text"] = tools::write_named(name_plan(plans.front(), dialect), format, layers, 0, say);
    json["messages"] = messages;
  } else if (!format.empty()) {
    json["text"] = tools::write_plans(plans, compare, format, layers);
  }
  return json;
}

template <class Spelling>
Json words_of(const Spelling& spelling) {
  Json words = Json::array();
  for (const auto& entry : spelling) words.push_back(entry.text);
  return words;
}

Json kind_of(long) { return "size"; }
Json kind_of(bool) { return "flag"; }
template <class Enum>
requires std::is_enum_v<Enum> Json kind_of(Enum any) {
  return words_of(architecture::words_of(any));
}
template <class Value>
Json kind_of(const std::optional<Value>&) {
  return kind_of(Value{});
}

/// The fields that "set" knows: "size", "flag", or the words.
Json fields() {
  Json json;
  const Shape shape;
  architecture::for_each_field(shape, [&](const char* name, const auto& field) {
    if (architecture::is_users(name)) json[name] = kind_of(field);
  });
  return json;
}

/// The optimizers that a rule can be planned for.
Json optimizers_of(const Rule& rule) {
  Json names = Json::array();
  for (const Optimizer& optimizer : policy::known_optimizers) {
    if (policy::states(rule, optimizer)) names.push_back(optimizer.name);
  }
  return names;
}

Json lists() {
  Json json = {{"rules", Json::array()},
               {"presets", Json::array()},
               {"names", Json::array()},
               {"optimizers", policy::names_of(policy::known_optimizers)},
               {"decay", words_of(policy::decay_words)},
               {"fields", fields()}};
  for (const Rule& rule : rules()) {
    Json parameters = Json::array();
    for (const std::string& name : rule.to_give) {
      parameters.push_back({{"name", name}, {"value", ""}});
    }
    for (const Parameter& p : rule.parameters) {
      parameters.push_back({{"name", p.name}, {"value", numeric::number_text(p.value)}});
    }
    json["rules"].push_back({{"id", rule.id},
                             {"title", rule.source.title},
                             {"needs_base", policy::needs_base(rule)},
                             {"relative", rule.reference == Reference::base},
                             {"optimizers", optimizers_of(rule)},
                             {"parameters", parameters}});
  }
  for (const Preset& preset : presets()) json["presets"].push_back(preset.id);
  for (const dialect::Dialect* dialect : dialect::all_dialects) {
    json["names"].push_back({{"id", dialect->id}, {"title", dialect->title}});
  }
  return json;
}

/// The text for JavaScript, valid until the next call.
const char* handed_over(const Json& json) {
  static std::string text;
  text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.c_str();
}

}  // namespace

extern "C" {

const char* scalewise_lists() { return handed_over(lists()); }

const char* scalewise_plan(const char* request) {
  try {
    return handed_over(answer(Request(request)));
  } catch (const std::bad_alloc&) {
    return handed_over({{"error", "not enough memory for this model"}});
  } catch (const std::exception& error) {
    return handed_over({{"error", error.what()}});
  }
}

}  // extern "C"
