// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// A request for a plan as code: the command line, C++ and PyTorch. What needs the numbers of a plan is
// written by the library; `format` says as what. `names` are those of the tensors in a language that has any; where
// they are empty, those of the model. `check` throws for a request that the language has no code for.
"use strict";

const languages = [
  {id: "shell", title: "Command line", write: commandLine},
  {id: "cpp", title: "C++", write: cppCode},
  {id: "pytorch", title: "PyTorch", write: pytorchCode, names: "", check: torchOptimizer},
  {id: "torch-groups", title: "PyTorch, groups as JSON", format: "torch-groups", names: ""},
  {id: "torchtitan", title: "torchtitan", format: "torchtitan", names: "torchtitan"},
  {id: "megatron", title: "Megatron-LM", format: "megatron", names: "megatron"},
  {id: "c-header", title: "C", format: "c-header", names: "llm-c"},
  {id: "latex", title: "LaTeX", format: "latex"},
  {id: "markdown", title: "Markdown", format: "markdown"},
  {id: "csv", title: "CSV", format: "csv"},
];

/// Code bases whose names a model may have, the likeliest first: the one of its own name, then those of each family.
function likelyNames(request, known) {
  const plain = (text) => text.toLowerCase().replace(/[^a-z0-9]/g, "");
  const model = plain(request.preset ?? JSON.parse(request.config).model_type ?? "");
  return [...known.filter((id) => model.startsWith(plain(id))), "gpt-neox", request.preset ? "nanogpt" : "hf-gpt2",
    "hf-llama", "hf-bert", "hf-vit", "hf-t5", "hf-bart", "torch-nn"];
}

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

/// Lines that make the shapes of a plan.
function cppShapes(request, isParameter) {
  const shape = (name, preset, file) => preset === undefined ? `Shape ${name} = shape_from_config_file("${file}");`
    : `Shape ${name} = preset_shape(${quoted(preset)});`;
  const set = (prefix, name) => (request.set ?? [])
    .filter((one) => one.startsWith("base.") === Boolean(prefix) && !isParameter(one))
    .map((one) => settingOf(one.slice(prefix.length)))
    .map(([key, value]) =>
      `if (!architecture::set_field(${name}, ${quoted(key)}, ${quoted(value)}))\n` +
      `    throw InvalidInput(${quoted(key)}, ${quoted(value)}, "a field of the shape");`);
  const lines = [shape("target", request.preset, "config.json"), ...set("", "target")];
  const like = ["width", "depth", "experts"].filter((key) => request[`base-${key}`])
    .map((key) => `.${key} = ${Number(request[`base-${key}`])}`);
  if (like.length > 0) lines.push(`Shape base = base_like(target, {${like.join(", ")}});`);
  else if (hasBase(request)) lines.push(shape("base", request["base-preset"], "base_config.json"));
  return [...lines, ...set("base.", "base")].flatMap((line) => line.split("\n"));
}

const hasBase = (request) => Object.keys(request).some((key) => key.startsWith("base-"));

const settingOf = (text) => [text.slice(0, text.indexOf("=")), text.slice(text.indexOf("=") + 1)];

function cppCode(request, rules, shown) {
  if (shown.described) {
    throw new Error("C++ code is for models with a shape, and this one is a list of tensors: docs/any_model.md has " +
      "its code.");
  }
  const ids = request.compare ? request.compare.split(",") : [request.rule];
  const parametersOf = (id) => (rules.find((rule) => rule.id === id)?.parameters ?? []).map((p) => p.name);
  const isParameter = (setting) => ids.some((id) => parametersOf(id).includes(settingOf(setting)[0]));
  const lines = cppShapes(request, isParameter);
  lines.push(`const Optimizer optimizer = policy::optimizer_named("optimizer", ${quoted(request.optimizer ?? "adamw")});`,
    `const DecayForm decay = messages::value_of(policy::decay_words, "decay", ${quoted(request.decay ?? "coupled")});`);
  const number = (value) => ({"true": "1", "false": "0"})[value] ?? String(Number(value));
  const plans = [];
  for (const id of ids) {
    const list = (request.set ?? []).map(settingOf).filter(([key]) => parametersOf(id).includes(key))
      .map(([key, value]) => `{${quoted(key)}, ${number(value)}}`).join(", ");
    const name = ids.length === 1 ? "plan" : id.replaceAll("-", "_").replace(/^(\d)/, "_$1") + "_plan";
    const members = [".model = target", ...hasBase(request) ? [".base = base"] : [], ".optimizer = optimizer",
      ".decay = decay", ...list ? [`.parameters = {${list}}`] : [],
      ...request.start ? [`.start = ${quoted(request.start)}`] : []];
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
  const json = request.config ?? request["base-config"];
  return ["#include <iostream>", ...json === undefined ? [] : ["#include <scalewise/json.hpp>"],
    "#include <scalewise/scalewise.hpp>", "", "int main() {", "  using namespace scalewise;",
    ...lines.map((line) => `  ${line}`), "}", ""].join("\n");
}

function torchOptimizer({optimizer}) {
  if ([undefined, "adamw"].includes(optimizer)) return "AdamW";
  if (optimizer === "sgd") return "SGD";
  const other = optimizer.startsWith("muon-") ? "docs/muon.md has it with two optimizers"
    : "torch.optim has no such optimizer";
  throw new Error(`This code is for adamw and sgd: ${other}. "Groups as JSON" are for ${optimizer} as well.`);
}

function pytorchCode(request, rules) {
  const rule = rules.find((one) => one.id === request.rule);
  const {names, ...rest} = request;
  const command = commandLine({...rest, ...names ? {names} : {}, format: "json", save: "plan.json"}).trimEnd();
  const relative = rule?.relative && !request.start;
  const optimizer = torchOptimizer(request);
  return [...command.split("\n").map((line) => `# ${line}`), "import scalewise", "import torch", "",
    `plan = scalewise.load("plan.json")`,
    relative ? "scalewise.apply(model, plan, base_std=0.02, seed=0)  # the base model's standard deviation"
             : "scalewise.apply(model, plan, seed=0)",
    "groups = scalewise.param_groups(model, plan, lr=lr, weight_decay=weight_decay)",
    `optimizer = torch.optim.${optimizer}(groups${optimizer === "SGD" ? ", lr=lr" : ""})`,
    "multipliers = plan.multipliers()  # for the forward pass", ""].join("\n");
}
