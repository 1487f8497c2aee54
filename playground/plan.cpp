// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The program `plan` for a page: JSON in, JSON out. A request has the options of `plan` by their names:
//
//   {"rule": "maximal-update", "preset": "gpt2-xl", "base-preset": "gpt2", "set": ["depth=24"]}
//
// "config" and "base-config" are the text of a config.json, not its path. The answer has the tables, and
// with "format" also "text": what `plan --format` prints; "messages" are what it says besides. Or it is
// {"error": "..."}.

#include <algorithm>
#include <charconv>
#include <exception>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "planning/described.hpp"
#include "planning/lists.hpp"
#include "planning/plans.hpp"
#include "planning/writing.hpp"
#include "scalewise/architecture/presets.hpp"
#include "scalewise/architecture/shape_fields.hpp"
#include "scalewise/dialect/all.hpp"
#include "scalewise/io/json_reader.hpp"
#include "scalewise/io/parse_json.hpp"
#include "scalewise/io/plan_table.hpp"
#include "scalewise/io/published_configs.hpp"
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
                   "base-preset", "base-config", "base-width", "base-depth", "base-experts", "set",
                   "fold", "single-rate", "names", "layers", "format"});
    const auto refuse_both = [&](const auto& exclusions) {
      for (const tools::Exclusion& one : exclusions) {
        if (given(one.option) && given(one.other)) throw one.error();
      }
    };
    refuse_both(tools::comparison_exclusions);
    refuse_both(tools::shape_exclusions);
    refuse_both(tools::rewriting_exclusions);
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
  /// As the program reads it from a command line; 0 where none is given.
  long size(const char* key) const {
    const std::string word = text(key, "0");
    long value = -1;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error == std::errc{} && *stop == 0 && value >= 0 && value <= 1000000000) return value;
    throw InvalidInput(std::string("--") + key, messages::printable(word),
                       "a whole number from 0 to 1000000000");
  }
  /// The text of a file `name`, or what a preset is that no shape describes; empty where neither is given.
  std::optional<tools::NamedConfig> config(const char* preset, const char* config,
                                           const char* name) const {
    if (!reader().has(config)) return tools::config_of_preset(text(preset));
    return tools::NamedConfig{io::parse_json(text(config), name), name};
  }

 private:
  io::JsonReader reader() const { return {json_, "request"}; }
  /// Of an option with its dashes.
  bool given(const std::string& option) const {
    const std::string key = option.substr(2);
    return reader().has(key) && json_[key] != Json(false);
  }

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
          {"base", plan.base ? Json(tools::base_text(plan)) : Json(nullptr)},
          {"parameter_count", plan.parameter_count()}};
}

/// The value of each field of a shape.
Json values_of(const Shape& shape) {
  Json json = Json::object();
  architecture::for_each_field(shape, [&](const char* name, const auto& field) {
    json[name] = architecture::field_text(field);
  });
  return json;
}

tools::PlanArguments arguments_of(const Request& request) {
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
  a.base_preset = request.text("base-preset");
  a.base = {request.size("base-width"), request.size("base-depth"), request.size("base-experts")};
  a.fold = request.flag("fold");
  a.single_rate = request.flag("single-rate");
  return a;
}

/// The plans of a request.
struct Answer {
  std::vector<Plan> plans;
  std::optional<tools::CodedModel> described;  // of a model that has no shape
};

Answer plans_of(const Request& request, const tools::PlanArguments& a, const tools::Say& say) {
  const auto config = request.config("preset", "config", "config.json");
  const auto base = request.config("base-preset", "base-config", "base config.json");
  if (config && tools::has_no_shape(*config)) {
    const auto sizes = tools::described_config(a, *config, base, say);
    const tools::CodedModel model = tools::described_model(a, sizes, say);
    return {tools::make_plans(a, model, say), model};
  }
  const auto model = [&](const char* key, const std::optional<tools::NamedConfig>& of) {
    const std::string preset = request.text(key);
    return preset.empty() && of ? tools::given_config(*of, say) : tools::model_of_preset(preset);
  };
  const auto target = model("preset", config);
  if (!target) throw InvalidInput("preset", "none", "a model", "choose one or give a config.json");
  return {tools::make_plans(a, *target, model("base-preset", base), say), {}};
}

Json answer(const Request& request) {
  Json messages = Json::array();
  const auto say = [&](const std::string& line) {  // plans of several rules say the same
    if (std::find(messages.begin(), messages.end(), line) == messages.end())
      messages.push_back(line);
  };
  tools::PlanArguments a = arguments_of(request);
  const std::string names = request.text("names");
  const auto* dialect = names.empty() ? nullptr : &dialect::dialect_named("--names", names);
  if (dialect != nullptr) a.names_code = dialect->code;
  const auto [plans, described] = plans_of(request, a, say);
  const bool compare = !a.compare.empty();
  const bool layers = request.flag("layers");

  Json json = {{"plans", Json::array()}, {"tables", Json::array()}};
  for (const Plan& plan : plans) json["plans"].push_back(plan_summary(plan));
  if (described) json["tables"].push_back(table_json(tools::roles_table(*described)));
  for (const Table& table : tables_of(plans, compare, layers)) {
    json["tables"].push_back(table_json(table));
  }
  std::vector<std::string> lines = legend(plans);
  if (described) {
    lines.insert(lines.begin(), described->sizes.begin(), described->sizes.end());
    lines.insert(lines.begin(), described->ties.begin(), described->ties.end());
  }
  json["legend"] = lines;
  json["described"] = described.has_value();
  json["shape"] = values_of(plans.front().shape);
  json["base"] = plans.front().base ? values_of(*plans.front().base) : Json(nullptr);
  const std::string format = request.text("format");
  if (described) tools::require_of_list(names, format);
  if (dialect != nullptr) {
    if (!dialect->note.empty()) say("note: " + std::string(dialect->note));
    json["text"] = tools::write_named(name_plan(plans.front(), *dialect), format, layers, 0, say);
  } else if (!format.empty()) {
    json["text"] = (described && format == "table" ? tools::roles_text(*described) : "") +
                   tools::write_plans(plans, compare, format, layers);
  }
  json["messages"] = messages;
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
  for (const io::PublishedConfig& config : io::published_configs)
    json["presets"].push_back(config.id);
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

/// The id of a rule by any of its names; the text itself where it is none.
const char* scalewise_rule(const char* name) {
  static std::string id;
  try {
    id = policy::rule_id(name);
  } catch (const InvalidInput&) {  // scalewise_plan() says what is wrong
    id = name;
  }
  return id.c_str();
}

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
