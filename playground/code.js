// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// A request for a plan as code: the command line, C++ and PyTorch. What needs the numbers of a plan is
// written by the library; `format` says as what.
"use strict";

const languages = [
  {id: "shell", title: "Command line", write: commandLine},
  {id: "cpp", title: "C++", write: cppCode},
  {id: "pytorch", title: "PyTorch", write: pytorchCode, names: "nanogpt"},
  {id: "torch-groups", title: "PyTorch, groups as JSON", format: "torch-groups", names: "nanogpt"},
  {id: "torchtitan", title: "torchtitan", format: "torchtitan", names: "torchtitan"},
  {id: "megatron", title: "Megatron-LM", format: "megatron", names: "megatron"},
  {id: "c-header", title: "C", format: "c-header", names: "llm-c"},
  {id: "latex", title: "LaTeX", format: "latex"},
  {id: "markdown", title: "Markdown", format: "markdown"},
  {id: "csv", title: "CSV", format: "csv"},
];

function shellWord(text) {
  return /^[\w.,=@%+:\/-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/// The words of `plan` for a request; a config.json has the name of a file.
function commandWords(request) {
  const files = {"config": "config.json", "base-config": "base_config.json"};
  const words = ["plan"];
  for (const [key, value] of Object.entries(request)) {
    if (key === "set") value.forEach((setting) => words.push("--set", setting));
    else if (value === true) words.push(`--${key}`);
    else words.push(`--${key}`, files[key] ?? String(value));
  }
  return words;
}

/// One option with its value on a line where there are many.
function commandLine(request) {
  const words = commandWords(request).map(shellWord);
  let lines = [words[0]];
  for (const word of words.slice(1)) {
    const last = lines.length - 1;
    if (word.startsWith("--") && lines[last].length > 60) lines.push(`  ${word}`);
    else lines[last] += ` ${word}`;
  }
  return lines.join(" \\\n") + "\n";
}

const quoted = (text) => JSON.stringify(text);

function cppCode(request, rules) {
  const lines = [];
  const includes = ["scalewise.hpp"];
  const shape = (name, preset, config, file) => {
    if (config !== undefined) includes.push("json.hpp");
    const value = config === undefined ? `preset_shape(${quoted(preset)})` : `shape_from_config_file("${file}")`;
    lines.push(`Shape ${name} = ${value};`);
  };
  shape("target", request.preset, request.config, "config.json");
  const hasBase = (request["base-preset"] ?? request["base-config"]) !== undefined;
  if (hasBase) shape("base", request["base-preset"], request["base-config"], "base_config.json");
  const ids = request.compare ? request.compare.split(",") : [request.rule];
  const parameters = [];
  for (const setting of request.set ?? []) {
    const [key, value] = [setting.slice(0, setting.indexOf("=")), setting.slice(setting.indexOf("=") + 1)];
    if (rules.some((rule) => ids.includes(rule.id) && rule.parameters.some((p) => p.name === key))) {
      parameters.push([key, value]);
    } else if (key.startsWith("base.")) {
      lines.push(`architecture::set_field(base, ${quoted(key.slice(5))}, ${quoted(value)});`);
    } else {
      lines.push(`architecture::set_field(target, ${quoted(key)}, ${quoted(value)});`);
    }
  }
  const number = (value) => ({"true": "1", "false": "0"})[value] ?? value;
  lines.push(`const Optimizer optimizer = policy::optimizer_named("optimizer", ${quoted(request.optimizer ?? "adamw")});`,
    `const DecayForm decay = messages::value_of(policy::decay_words, "decay", ${quoted(request.decay ?? "coupled")});`);
  const plans = [];
  for (const id of ids) {
    const own = rules.find((rule) => rule.id === id)?.parameters ?? [];
    const list = parameters.filter(([key]) => own.some((p) => p.name === key))
      .map(([key, value]) => `{${quoted(key)}, ${number(value)}}`).join(", ");
    const name = ids.length === 1 ? "plan" : id.replaceAll("-", "_").replace(/^(\d)/, "_$1") + "_plan";
    const members = [".model = target", ...hasBase ? [".base = base"] : [], ".optimizer = optimizer", ".decay = decay",
      ...list ? [`.parameters = {${list}}`] : [], ...request.start ? [`.start = ${quoted(request.start)}`] : []];
    lines.push(`Plan ${name} = make_plan(${quoted(id)}, {${members.join(", ")}});`);
    if (request.fold) lines.push(`${name} = fold(${name}).plan;`);
    if (request["single-rate"]) lines.push(`${name} = single_rate(${name}).plan;`);
    plans.push(name);
  }
  for (const name of plans) {
    lines.push(`for (const Entry& entry : ${name}.entries) {`,
      `  std::cout << entry.name << " variance " << entry.init_variance.value << " learning rate "`,
      `            << entry.learning_rate.value << '\\n';`, `}`);
  }
  return ["#include <iostream>", ...[...new Set(includes)].sort().map((name) => `#include <scalewise/${name}>`), "",
    "int main() {", "  using namespace scalewise;", ...lines.map((line) => `  ${line}`), "}", ""].join("\n");
}

function pytorchCode(request, rules, names) {
  if (request.compare) throw new Error("PyTorch code is for one rule: compare with none.");
  const rule = rules.find((one) => one.id === request.rule);
  const {names: _, ...rest} = request;
  const command = commandLine({...rest, names, format: "json", out: "plan.json"}).trimEnd();
  const relative = rule?.relative && !request.start;
  const optimizer = request.optimizer === "sgd" ? "SGD" : "AdamW";
  if (![undefined, "sgd", "adamw"].includes(request.optimizer)) {
    throw new Error(`torch.optim has no ${request.optimizer}; "groups as JSON" are for any optimizer.`);
  }
  return [...command.split("\n").map((line) => `# ${line}`), "import scalewise", "import torch", "",
    `plan = scalewise.load("plan.json")`,
    relative ? "scalewise.apply(model, plan, base_std=0.02, seed=0)  # the base model's standard deviation"
             : "scalewise.apply(model, plan, seed=0)",
    "groups = scalewise.param_groups(model, plan, lr=lr, weight_decay=weight_decay)",
    `optimizer = torch.optim.${optimizer}(groups${optimizer === "SGD" ? ", lr=lr" : ""})`,
    "multipliers = plan.multipliers()  # for the forward pass", ""].join("\n");
}
