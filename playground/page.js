// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The page: a form, the address and the plan, kept equal. What is asked for is a request with the
// options of `plan` by their names, and "set" an object; the address has the same options after "#".
// Answers that the page does not know become a problem that it shows.
"use strict";

const $ = (id) => document.getElementById(id);
const FIRST = "rule=maximal-update&preset=gpt2-xl&base-preset=gpt2";
const FLAGS = ["fold", "single-rate", "layers"];
const SIZES = ["base-width", "base-depth", "base-experts"];
const RULES = ["rule", "compare", "start"];
const TEXTS = [...RULES, "preset", "config", "base-preset", "base-config", ...SIZES, "optimizer", "decay", "names",
  "language"];

let library;  // the rules, as WebAssembly
let lists;    // what there is to choose
let state;    // what is asked for
let shown = {};  // the last answer without an error
let pending;  // an element that was changed and is not taken yet: one that may be typed into

// ---- the address ---------------------------------------------------------------------------------

function readAddress(text) {
  const read = {set: Object.create(null), problems: []};
  for (const [key, value] of new URLSearchParams(text)) {
    if (FLAGS.includes(key)) {
      read[key] = value === "true";
      if (!["true", "false"].includes(value)) read.problems.push(`--${key} = ${value}: expected true or false`);
    } else if (RULES.includes(key)) read[key] = value.split(",").map((name) => call("scalewise_rule", name)).join(",");
    else if (TEXTS.includes(key)) read[key] = value;
    else if (key === "set") {
      const [field] = value.split("=");
      read.set[field] = value === field ? undefined : value.slice(field.length + 1);
    } else {
      const known = [...TEXTS, ...FLAGS, "set"].join(", --");
      read.problems.push(`--${key} (unknown): expected an option of this page, one of --${known}`);
    }
  }
  return read;
}

function writeAddress(from) {
  const words = new URLSearchParams();
  for (const key of [...TEXTS, ...FLAGS]) if (from[key]) words.append(key, from[key]);
  for (const setting of settings(from)) words.append("set", setting);
  // Commas and equals signs read better as they are.
  return String(words).replaceAll("%2C", ",").replaceAll("%3D", "=");
}

// ---- requests ------------------------------------------------------------------------------------

/// As --set has them: a value is missing where it was.
const settings = (from) =>
  Object.entries(from.set).map(([key, value]) => value === undefined ? key : `${key}=${value}`);

/// The options of `plan` that make this plan.
function requestOf(from) {
  const request = {};
  for (const key of [...TEXTS, ...FLAGS]) if (from[key]) request[key] = from[key];
  delete request.language;
  const set = settings(from);
  if (set.length > 0) request.set = set;
  return request;
}

/// The result of a function of the library on a text, which is too long for the stack, where ccall would put it.
function call(name, text) {
  const size = library.lengthBytesUTF8(text) + 1;
  const place = library._malloc(size);
  if (place === 0) throw new Error("not enough memory for a text this long");
  try {
    library.stringToUTF8(text, place, size);
    return library.ccall(name, "string", ["number"], [place]);
  } finally {
    library._free(place);
  }
}

/// The answer to a request, written as `format` if that is given.
function ask(request, format) {
  const {layers, names, compare, ...rest} = request;
  if (layers) rest.layers = true;
  if (compare) rest.compare = compare.split(",");
  if (names && (format || compare)) rest.names = names;
  if (format) rest.format = format;
  const answer = JSON.parse(call("scalewise_plan", JSON.stringify(rest)));
  if (answer.error) throw new Error(answer.error);
  return answer;
}

// ---- building blocks -----------------------------------------------------------------------------

function make(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  for (const child of children) element.append(child);
  return element;
}

function fillSelect(select, options) {
  select.replaceChildren(...options.map(([value, text, disabled]) =>
    make("option", {value, textContent: text ?? value, disabled: Boolean(disabled)})));
}

/// Shows a value, also one that is none of the options: the library then says what is wrong.
function choose(select, value) {
  if (![...select.options].some((one) => one.value === value)) {
    select.append(make("option", {value, textContent: value}));
  }
  select.value = value;
}

const ruleOf = (id) => lists.rules.find((rule) => rule.id === id);
const idsOf = (from) => from.compare ? from.compare.split(",") : [from.rule ?? ""];
const rulesOf = (from) => idsOf(from).map(ruleOf).filter(Boolean);

// ---- the form ------------------------------------------------------------------------------------

function fieldInput(key, kind, of) {
  const name = of + key;
  const words = kind === "flag" ? ["true", "false"] : kind;
  const input = Array.isArray(words) ? make("select")
    : make("input", {type: "text", inputMode: kind === "size" ? "numeric" : "decimal"});
  if (Array.isArray(words)) fillSelect(input, [["", ""], ...words.map((word) => [word])]);
  input.dataset.set = name;
  return make("label", {}, make("span", {textContent: key}), input);
}

function buildForm() {
  const presets = lists.presets.map((id) => [id]);
  for (const part of document.querySelectorAll("[data-of]")) {
    const none = part.dataset.of ? [["", "none"]] : [];
    fillSelect(part.querySelector("[data-model]"), [...none, ...presets, ["config.json", "a config.json"]]);
    part.querySelector("[data-fields]").append(
      ...Object.entries(lists.fields).map(([key, kind]) => fieldInput(key, kind, part.dataset.of)));
  }
  const rules = lists.rules.map((rule) => [rule.id]);
  fillSelect($("rule"), rules);
  fillSelect($("second"), [["", "none"], ...rules]);
  fillSelect($("start"), [["", "its own standard deviations"], ...rules]);
  fillSelect($("decay"), lists.decay.map((word) => [word]));
  fillSelect($("language"), languages.map((one) => [one.id, one.title]));
  fillSelect($("names"), [["", "default"], ...lists.names.map((one) => [one.id, one.title])]);
}

const option = (of, key) => of ? `base-${key}` : key;

const hasSize = () => SIZES.some((key) => state[key]);

/// Everything that shows the state, from the state; an input that is typed into stays unless `all` is true.
function fillForm(all) {
  for (const part of document.querySelectorAll("[data-of]")) {
    const of = part.dataset.of;
    const config = state[option(of, "config")];
    const isConfig = config !== undefined && !state[option(of, "preset")];
    choose(part.querySelector("[data-model]"), isConfig ? "config.json" : state[option(of, "preset")] ?? "");
    part.querySelector("[data-config]").hidden = !isConfig;
    part.querySelector("details").hidden = Boolean(of) && !isConfig && !state["base-preset"] && !hasSize();
    const text = part.querySelector("textarea");
    if (all || document.activeElement !== text) text.value = config ?? "";
  }
  const others = Boolean(state["base-preset"]) || state["base-config"] !== undefined;
  $("base-sizes").hidden = others && !hasSize();
  for (const key of SIZES) if (all || document.activeElement !== $(key)) $(key).value = state[key] ?? "";
  const [first, ...rest] = idsOf(state);
  choose($("rule"), first);
  choose($("second"), rest.join(","));
  fillRule(all);
}

/// Elements that depend on the rules.
function fillRule(all) {
  $("about-rule").textContent = idsOf(state).map((id) => `docs/rules/${id}.md`).join(", ");
  const rules = rulesOf(state);
  const stated = (name) => rules.every((rule) => rule.optimizers.includes(name));
  fillSelect($("optimizer"), lists.optimizers.map((name) =>
    [name, stated(name) ? name : `${name} (not stated)`, !stated(name)]));
  choose($("optimizer"), state.optimizer ?? "adamw");
  choose($("decay"), state.decay ?? lists.decay[0]);
  choose($("start"), state.start ?? "");
  $("start-label").hidden = !state.start && !rules.some((rule) => rule.relative);
  $("rewrite").value = FLAGS.find((flag) => flag !== "layers" && state[flag]) ?? "";
  $("layers").checked = Boolean(state.layers);
  choose($("language"), state.language ?? languages[0].id);
  choose($("names"), state.names ?? "");
  $("names").disabled = Boolean(state.compare);

  const parameters = new Map(rules.flatMap((rule) => rule.parameters.map((p) => [p.name, p.value])));
  const key = JSON.stringify([...parameters]);
  if ($("parameters").dataset.key !== key) {
    $("parameters").dataset.key = key;
    $("parameters").replaceChildren(...[...parameters].map(([name, value]) => {
      const label = fieldInput(name, "number", "");
      label.lastChild.placeholder = value;
      return label;
    }));
  }
  for (const input of document.querySelectorAll("[data-set]")) {
    const value = state.set[input.dataset.set] ?? "";
    if (!all && document.activeElement === input && input.tagName === "INPUT") continue;
    if (input.tagName === "SELECT") choose(input, value);
    else input.value = value;
  }
}

/// The value of a field unless it is changed; nothing where there is no plan.
function showDefaults() {
  for (const input of document.querySelectorAll("[data-of] [data-set]")) {
    const of = input.closest("[data-of]").dataset.of;
    const text = (of ? shown.base : shown.shape)?.[input.dataset.set.slice(of.length)] ?? "";
    if (input.tagName === "INPUT") input.placeholder = text;
    else input.options[0].textContent = input.dataset.set in state.set ? "(the model’s own)" : text && `(${text})`;
  }
}

function setModel(of, value) {
  const isConfig = value === "config.json";
  state[option(of, "preset")] = isConfig || !value ? undefined : value;
  state[option(of, "config")] = isConfig ? state[option(of, "config")] ?? "" : undefined;
  if (of && value) for (const key of SIZES) state[key] = undefined;
  for (const key of Object.keys(state.set)) {
    if (key.startsWith("base.") === Boolean(of) && (of || key in lists.fields)) delete state.set[key];
  }
}

function setRules(first, second) {
  const before = rulesOf(state).flatMap((rule) => rule.parameters.map((p) => p.name));
  state.rule = second ? undefined : first;
  state.compare = second ? `${first},${second}` : undefined;
  if (second) state.names = undefined;
  const rules = rulesOf(state);
  const now = rules.flatMap((rule) => rule.parameters.map((p) => p.name));
  for (const key of before) if (!now.includes(key)) delete state.set[key];
  const all = lists.optimizers.filter((name) => rules.every((rule) => rule.optimizers.includes(name)));
  if (all.length > 0 && !all.includes(state.optimizer ?? "adamw")) state.optimizer = all[0];
  if (!rules.some((rule) => rule.relative)) state.start = undefined;
}

/// The state, from one element that was changed.
function take(element) {
  const of = element.closest("[data-of]")?.dataset.of;
  const value = element.value;
  if (element.dataset.set) {
    if (value.trim()) state.set[element.dataset.set] = value.trim();
    else delete state.set[element.dataset.set];
  } else if ("model" in element.dataset) setModel(of, value);
  else if (element.tagName === "TEXTAREA") state[option(of, "config")] = value;
  else if (element.type === "file") return takeFile(element.files[0], of, element);
  else if (element.id === "rule" || element.id === "second") setRules($("rule").value, $("second").value);
  else if (element.id === "rewrite") for (const flag of ["fold", "single-rate"]) state[flag] = value === flag;
  else if (element.type === "checkbox") state[element.id] = element.checked;
  else state[element.id] = value.trim() || undefined;
  changed(element.tagName === "SELECT" || element.type === "checkbox");
}

/// Takes what was typed last.
function flush() {
  if (!pending) return;
  const {element, timer} = pending;
  pending = undefined;
  clearTimeout(timer);
  take(element);
}

async function takeFile(file, of, element) {
  if (!file) return;
  let text;
  try {
    text = await file.text();
  } catch (error) {  // of a folder, or a file that is gone
    return showError(error.message);
  }
  if (element) element.value = "";  // so that the same file can be taken again
  setModel(of, "config.json");
  state[option(of, "config")] = text;
  changed(true);
}

// ---- the plan ------------------------------------------------------------------------------------

function cell(text, column) {
  if (column === "source") return make("td", {className: "source"}, text);
  const [value, ...formula] = text.split(" = ");
  if (formula.length === 0) return make("td", {}, text);
  return make("td", {}, make("span", {className: "value", textContent: value}),
    make("span", {className: "formula", textContent: ` = ${formula.join(" = ")}`}));
}

function names(text) {  // breaks after "_" and "." too
  const parts = text.match(/[^_.]*[_.]|[^_.]+/g) ?? [];
  return make("th", {scope: "row"}, ...parts.flatMap((part) => [part, make("wbr")]));
}

function table(one) {
  const row = (cells) => make("tr", {}, names(cells[0]),
    ...cells.slice(1).map((text, i) => cell(text, one.header[i + 1])));
  const head = make("tr", {}, ...one.header.map((text) => make("th", {scope: "col", textContent: text})));
  const element = make("table", {}, make("thead", {}, head), make("tbody", {}, ...one.rows.map(row)));
  if (one.caption) element.prepend(make("caption", {textContent: one.caption}));
  const region = make("div", {className: "scroll", tabIndex: 0}, element);
  region.setAttribute("role", "region");
  region.setAttribute("aria-label", one.caption || `Table of ${one.header.join(", ")}`);
  return region;
}

const showLines = (list, lines) => list.replaceChildren(...lines.map((text) => make("li", {textContent: text})));

function showPlan(answer) {
  $("summary").replaceChildren(...answer.plans.map((plan) => make("p", {},
    make("strong", {textContent: plan.rule}), ` ${plan.citation} `,
    make("span", {className: "count", textContent: `${plan.parameter_count.toLocaleString("en")} parameters`}))));
  const base = answer.plans.find((plan) => plan.base)?.base;
  if (base) $("summary").append(make("p", {}, make("strong", {textContent: "base"}), ` ${base}`));
  showLines($("messages"), answer.messages);
  $("tables").replaceChildren(...answer.tables.filter((one) => one.rows.length > 0).map(table));
  $("legend").replaceChildren(...answer.legend.map((text) => make("div", {textContent: text})));
}

/// The names for a language: those that were chosen, or its own, or the first that the model can have.
function namesFor(language, request) {
  if (request.names) return request.names;
  if (language.names || shown.described) return shown.described ? "" : language.names;
  const fits = (names) => {
    try {
      return Boolean(ask({...request, names}, "json"));
    } catch {
      return false;
    }
  };
  const likely = likelyNames(request, lists.names.map((one) => one.id));
  return likely.find(fits) ?? likely[0];
}

/// The code, and what is said with it.
function codeOf(request) {
  const language = languages.find((one) => one.id === state.language) ?? languages[0];
  if (language.names === undefined) {
    return language.write ? {text: language.write(request, lists.rules, shown), messages: []}
                          : ask({...request, names: undefined}, language.format);
  }
  if (request.compare) throw new Error(`${language.title} is for one rule: compare with none.`);
  language.check?.(request);
  const named = {...request, names: namesFor(language, request)};
  const answer = ask(named, language.format ?? "json");
  return language.write ? {...answer, text: language.write(named, lists.rules, shown)} : answer;
}

function showCode() {
  let code, failed = false;
  try {
    code = codeOf(requestOf(state));
  } catch (error) {
    code = {text: error.message, messages: []};
    failed = true;
  }
  $("code").textContent = code.text;
  $("copy").disabled = failed;
  showLines($("code-messages"), code.messages.filter((line) => !shown.messages.includes(line)));
}

/// An error, and which control it is of if its message begins with the name of one.
function showError(text) {
  for (const input of document.querySelectorAll("[aria-invalid]")) {
    input.removeAttribute("aria-invalid");
    input.removeAttribute("aria-describedby");
  }
  $("error").hidden = !text;
  $("error").textContent = text.length > 700 ? `${text.slice(0, 350)} … ${text.slice(-350)}` : text;
  const [, name] = /^(?:--)?([\w.-]+)/.exec(text) ?? [];
  const control = name && [...document.querySelectorAll("#form :is(input, select, textarea)")].find((input) =>
    [input.dataset.set, input.id, input.dataset.model].includes(name));
  if (!control) return;
  control.setAttribute("aria-invalid", "true");
  control.setAttribute("aria-describedby", "error");
}

function refresh() {
  let problem = state.problems.join("; ");
  try {
    if (!problem) shown = ask(requestOf(state));
  } catch (error) {
    problem = error.message;
  }
  $("plan").hidden = $("output").hidden = Boolean(problem);
  showError(problem);
  if (problem) {
    shown = {};
  } else {
    showPlan(shown);
    showCode();
  }
  showDefaults();
}

/// False where the state is too long for an address: browsers take two million characters. With `step`, the button
/// Back leads to the last one.
function showAddress(step) {
  const config = (state.config ?? "").length + (state["base-config"] ?? "").length;
  const address = config < 1e6 ? writeAddress(state) : "";
  const fits = config < 1e6 && address.length < 2e6;
  const place = fits ? `#${address}` : location.pathname;
  if (place !== location.hash) history[step && fits ? "pushState" : "replaceState"](null, "", place);
  return fits;
}

function changed(step) {
  state.problems = [];
  showAddress(step);
  $("done").textContent = "";
  fillForm();
  refresh();
}

function readState() {
  const text = location.hash.slice(1);
  state = readAddress(text || FIRST);
  fillForm(true);
  refresh();
}

// ---- buttons -------------------------------------------------------------------------------------

async function copy(text, what) {
  let copied = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {  // where pages may not use it
    const area = document.body.appendChild(make("textarea", {value: text, className: "away"}));
    area.select();
    copied = document.execCommand("copy");
    area.remove();
  }
  $("done").textContent = copied ? `${what} copied` : `The browser does not let the page copy: select it by hand`;
}

function download() {
  flush();
  let text;
  try {
    ({text} = ask(requestOf(state), "json"));
  } catch (error) {
    return showError(error.message);
  }
  const blob = new Blob([text], {type: "application/json"});
  const link = make("a", {href: URL.createObjectURL(blob), download: "plan.json"});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function connect() {
  document.addEventListener("input", ({target}) => {
    if (pending?.element !== target) flush();
    clearTimeout(pending?.timer);
    const typing = target.tagName === "TEXTAREA" || target.type === "text";
    pending = {element: target, timer: setTimeout(flush, typing ? 200 : 0)};
  });
  document.addEventListener("change", flush);
  $("form").addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("hashchange", readState);
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    if (event.dataTransfer.files.length === 0) return;  // text that is dragged
    event.preventDefault();
    const part = event.target.closest?.("[data-of]");
    takeFile(event.dataTransfer.files[0], part?.dataset.of ?? "");
  });
  $("share").addEventListener("click", () => {
    flush();
    if (showAddress()) copy(location.href, "Link");
    else $("done").textContent = "This model is too long for a link";
  });
  $("copy").addEventListener("click", () => copy($("code").textContent, "Code"));
  $("download").addEventListener("click", download);
}

async function start() {
  library = await scalewise();
  lists = JSON.parse(library.ccall("scalewise_lists", "string", [], []));
  buildForm();
  connect();
  readState();
  $("needs").hidden = true;
  for (const part of document.querySelectorAll("fieldset")) part.disabled = false;
  document.documentElement.dataset.ready = "true";
}

start().catch((error) => {
  $("error").textContent = `This browser cannot run the page: ${error}`;
  document.documentElement.dataset.ready = "false";
  $("error").hidden = false;
});
