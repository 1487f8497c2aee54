// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// plan: every tensor's initial variance, learning rate, decay and multiplier for a real model under
// a published rule, or under several rules side by side.
//
//   plan --rule maximal-update --optimizer adamw --preset gpt2-xl --base-preset gpt2
//   plan --compare gpt2,neural-tangent --config config.json
//   plan --rule complete-p --config mixtral.json --base-width 1024

#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "frame/program.hpp"
#include "frame/progress.hpp"
#include "planning/arguments.hpp"
#include "planning/lists.hpp"
#include "planning/picture.hpp"
#include "planning/rule_options.hpp"
#include "planning/writing.hpp"
#include "scalewise/files/file.hpp"
#include "scalewise/messages/error.hpp"

namespace {

using scalewise::InvalidInput;
using scalewise::Plan;
using scalewise::tools::cut_of;

struct Arguments : scalewise::tools::PlanArguments {
  std::string names;
  bool layers = false;
  std::string format = "table";
  std::string save;
  bool list_rules = false;
  bool list_presets = false;
  bool list_names = false;

  /// Of the terminal that text has to fit.
  std::size_t columns() const { return save.empty() ? scalewise::frame::terminal_columns() : 0; }
};

std::string write_plans(const std::vector<Plan>& plans, const Arguments& a) {
  if (a.format == "svg") return scalewise::tools::draw_plan(plans, a.layers);
  return scalewise::tools::write_plans(plans, !a.compare.empty(), a.format, a.layers, a.columns());
}

/// The plan by the names of a code base.
std::string write_with_names(const Plan& plan, const Arguments& a) {
  std::string text;
  scalewise::tools::with_names(a.program, a.names, [&](const scalewise::dialect::Dialect& dialect) {
    text = scalewise::tools::write_named(
        name_plan(plan, dialect, cut_of(a, plan)), a.format, a.layers, a.columns(),
        [&](const std::string& line) { scalewise::frame::say_once(a.program + ": " + line); });
  });
  return text;
}

/// Those of inspect, and a picture.
std::vector<std::string> formats() {
  std::vector<std::string> all = scalewise::tools::plan_formats();
  all.emplace_back("svg");
  return all;
}

std::string run(Arguments arguments) {
  using namespace scalewise::tools;
  const auto list = [&](const scalewise::Table& table) {
    return write_list(table, arguments.format, arguments.columns());
  };
  if (arguments.list_rules) return list(rule_list());
  if (arguments.list_presets) return list(preset_list());
  if (arguments.list_names) return list(name_list());
  if (arguments.rule.empty() && arguments.compare.empty()) {
    throw InvalidInput("--rule", "none", "the id of a rule", "see --list-rules, or use --compare");
  }
  const AskedModel asked = asked_model(arguments);
  if (const auto& model = asked.described) {
    require_of_list(arguments.names, arguments.format);
    const std::vector<Plan> plans = make_plans(arguments, *model);
    return (arguments.format == "table" ? roles_text(*model) : "") + write_plans(plans, arguments);
  }
  const auto& target = asked.given;
  if (!target) {
    throw InvalidInput("--preset", "none", "a model", "see --list-presets, or give --config");
  }
  if (!arguments.names.empty()) {
    arguments.names_code = scalewise::tools::code_of_names(arguments.names);
    return write_with_names(make_plans(arguments, *target).front(), arguments);
  }
  if (arguments.cut) {
    throw InvalidInput("--cut", std::string(word(scalewise::dialect::cut_words, *arguments.cut)),
                       "--names as well", "only a code base has tensors to cut");
  }
  return write_plans(make_plans(arguments, *target), arguments);
}

}  // namespace

scalewise::frame::Program scalewise::frame::program() {
  const auto a = std::make_shared<Arguments>();
  Program program{"plan",
                  "Every tensor's initial variance, learning rate, decay and multiplier under a "
                  "published rule."};
  Options& o = *program.options;
  scalewise::tools::add_rule_option(o, a->rule);
  o.add("--compare", a->compare, "several rules side by side")
      .names(scalewise::tools::rule_id);
  add_shape_options(o, *a);
  add_description_options(o, *a);
  add_plan_options(o, *a);
  o.group("Output");
  o.add("--names", a->names,
        "code base whose names tensors have, see plan --list-names, or a file that says them "
        "(.json)")
      .reads(".json");
  exclude(o, scalewise::tools::comparison_exclusions);
  o.add(
       "--layers", a->layers,
       "one row per tensor instead of one per kind (with --format svg: a heat map, layer by layer)")
      .not_an_input();
  o.add("--format", a->format, "format of the output").words(formats()).not_an_input();
  o.add("--save", a->save, "file to write instead of the terminal").writes(files::try_file);
  o.add("--list-rules", a->list_rules, "print the rules").not_an_input();
  o.add("--list-presets", a->list_presets, "print the presets").not_an_input();
  o.add("--list-names", a->list_names, "print the code bases that --names knows").not_an_input();
  program.run = [a](const std::vector<std::string>&) {
    const std::string text = ::run(*a);
    if (a->save.empty()) {
      std::cout << text;
    } else {
      scalewise::files::write_file(a->save, text);
    }
    return 0;
  };
  return program;
}
