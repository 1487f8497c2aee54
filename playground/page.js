// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The page: a form, the address and the plan, kept equal. What is asked for is a request with the
// options of `plan` by their names, and "set" an object; the address has the same options after "#".
"use strict";

const $ = (id) => document.getElementById(id);
const FIRST = "rule=maximal-update&preset=gpt2-xl&base-preset=gpt2";
const FLAGS = ["fold", "single-rate", "layers"];
const TEXTS = ["rule", "compare", "preset", "config", "base-preset", "base-config", "optimizer", "decay",
  "start", "names", "language"];

let library;  // the rules, as WebAssembly
let lists;    // what there is to choose
let state;    // what is asked for
let shown = {};  // the last answer without an error
let waiting;  // for the end of typing

// ---- the address ---------------------------------------------------------------------------------

function readAddress(text) {
  const read = {set: {}};
  for (const [key, value] of new URLSearchParams(text)) {
    if (FLAGS.includes(key)) read[key] = value === "true";
    else if (TEXTS.includes(key)) read[key] = value;
    else if (key === "set" && value.includes("=")) {
      const equals = value.indexOf("=");
      read.set[value.slice(0, equals)] = value.slice(equals + 1);
    }
  }
  return read;
}

function writeAddress(from) {
  const words = new URLSearchParams();
  for (const key of [...TEXTS, ...FLAGS]) if (from[key]) words.append(key, from[key]);
  for (const setting of settings(from)) words.append("set", setting);
  // Commas and equals signs read better as they are.
  return String(words).replaceAll("%2C", ",").replace(/(?<=set=[^&]*)%3D/, "=").replaceAll("%3D", "=");
}

// ---- requests ------------------------------------------------------------------------------------

const settings = (from) => Object.entries(from.set).map(([key, value]) => `${key}=${value}`);

/// The options of `plan` that make this plan.
function requestOf(from) {
  const request = {};
  for (const key of [...TEXTS, ...FLAGS]) if (from[key]) request[key] = from[key];
  delete request.language;
  if (from.compare !== undefined) {
    delete request.rule;
    delete request.names;  // one plan at a time
  }
  for (const side of ["", "base-"]) {
    if (request[`${side}preset`]) delete request[`${side}config`];
  }
  const set = settings(from);
  if (set.length > 0) request.set = set;
  return request;
}

/// The answer of the library as text. The text that it gets is too long for the stack, where ccall would put it.
function answerTo(text) {
  const size = library.lengthBytesUTF8(text) + 1;
  const place = library._malloc(size);
  if (place === 0) throw new Error("not enough memory for a text this long");
  try {
    library.stringToUTF8(text, place, size);
    return library.ccall("scalewise_plan", "string", ["number"], [place]);
  } finally {
    library._free(place);
  }
}

/// The answer to a request, written as `format` if that is given.
function ask(request, format) {
  const {layers, names, compare, ...rest} = request;
  if (layers) rest.layers = true;
  if (compare) rest.compare = compare.split(",");
  if (format) {
    rest.format = format;
    if (names) rest.names = names;
  }
  const answer = JSON.parse(answerTo(JSON.stringify(rest)));
  if (answer.error) throw new Error(answer.error);
  return answer;
}

// ---- building blocks -----------------------------------------------------------------------------

function make(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
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

/// Everything that shows the state, from the state.
function fillForm() {
  for (const part of document.querySelectorAll("[data-of]")) {
    const of = part.dataset.of;
    const config = state[option(of, "config")];
    const isConfig = config !== undefined && !state[option(of, "preset")];
    choose(part.querySelector("[data-model]"), isConfig ? "config.json" : state[option(of, "preset")] ?? "");
    part.querySelector("[data-config]").hidden = !isConfig;
    part.querySelector("details").hidden = Boolean(of) && !isConfig && !state["base-preset"];
    const text = part.querySelector("textarea");
    if (document.activeElement !== text) text.value = config ?? "";
  }
  const [first, second] = idsOf(state);
  choose($("rule"), first);
  choose($("second"), second ?? "");
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
  if ($("parameters").dataset.key !== key) {  // an input that is typed into stays
    $("parameters").dataset.key = key;
    $("parameters").replaceChildren(...[...parameters].map(([name, value]) => {
      const label = fieldInput(name, "number", "");
      label.lastChild.placeholder = value;
      return label;
    }));
  }
  for (const input of document.querySelectorAll("[data-set]")) {
    const value = state.set[input.dataset.set] ?? "";
    if (document.activeElement === input && input.tagName === "INPUT") continue;
    if (input.tagName === "SELECT") choose(input, value);
    else input.value = value;
  }
}

/// What a field has unless it is changed.
function showDefaults() {
  for (const input of document.querySelectorAll("[data-of] [data-set]")) {
    const of = input.closest("[data-of]").dataset.of;
    const value = (of ? shown.base : shown.shape)?.[input.dataset.set.slice(of.length)];
    const text = value === null || value === undefined ? "" : String(value);
    if (input.tagName === "INPUT") input.placeholder = text;
    else input.options[0].textContent = text && !(input.dataset.set in state.set) ? `(${text})` : "(as it was)";
  }
}

function setModel(of, value) {
  const isConfig = value === "config.json";
  state[option(of, "preset")] = isConfig || !value ? undefined : value;
  state[option(of, "config")] = isConfig ? state[option(of, "config")] ?? "" : undefined;
  for (const key of Object.keys(state.set)) {
    if (key.startsWith("base.") === Boolean(of) && (of || key in lists.fields)) delete state.set[key];
  }
}

function setRules(first, second) {
  const before = rulesOf(state).flatMap((rule) => rule.parameters.map((p) => p.name));
  state.rule = second ? undefined : first;
  state.compare = second ? `${first},${second}` : undefined;
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
  else if (element.type === "file") return takeFile(element.files[0], of);
  else if (element.id === "rule" || element.id === "second") setRules($("rule").value, $("second").value);
  else if (element.id === "rewrite") for (const flag of ["fold", "single-rate"]) state[flag] = value === flag;
  else if (element.type === "checkbox") state[element.id] = element.checked;
  else state[element.id] = value || undefined;
  changed();
}

async function takeFile(file, of) {
  if (!file) return;
  const text = await file.text();
  setModel(of, "config.json");
  state[option(of, "config")] = text;
  changed();
}

// ---- the plan ------------------------------------------------------------------------------------

function cell(text, column) {
  if (column === "source") return make("td", {className: "source"}, text);
  const [value, ...formula] = text.split(" = ");
  if (formula.length === 0) return make("td", {}, text);
  return make("td", {}, make("span", {className: "value", textContent: value}),
    make("span", {className: "formula", textContent: ` = ${formula.join(" = ")}`}));
}

function names(text) {  // breaks after "_" too
  const parts = text.split("_");
  return make("th", {scope: "row"},
    ...parts.flatMap((part, i) => i + 1 < parts.length ? [`${part}_`, make("wbr")] : [part]));
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

function showPlan(answer) {
  $("summary").replaceChildren(...answer.plans.map((plan) => make("p", {},
    make("strong", {textContent: plan.rule}), ` ${plan.citation} `,
    make("span", {className: "count", textContent: `${plan.parameter_count.toLocaleString("en")} parameters`}))));
  $("messages").replaceChildren(...answer.messages.map((text) => make("li", {textContent: text})));
  $("tables").replaceChildren(...answer.tables.filter((one) => one.rows.length > 0).map(table));
  $("legend").replaceChildren(...answer.legend.map((text) => make("div", {textContent: text})));
}

function codeText() {
  const language = languages.find((one) => one.id === state.language) ?? languages[0];
  const request = requestOf(state);
  const named = state.names ?? language.names;
  if (language.write) return language.write(request, lists.rules, named);
  if (language.names && request.compare) throw new Error(`${language.title} is for one rule: compare with none.`);
  return ask({...request, names: language.names ? named : undefined}, language.format).text;
}

function refresh() {
  $("error").hidden = true;
  try {
    shown = ask(requestOf(state));
    showPlan(shown);
    showDefaults();
    try {
      $("code").textContent = codeText();
    } catch (error) {
      $("code").textContent = error.message;
    }
  } catch (error) {
    $("error").textContent = error.message;
    $("error").hidden = false;
  }
  $("plan").hidden = $("output").hidden = !$("error").hidden;
}

/// False where the state is too long for an address: browsers take two million characters.
function showAddress() {
  const config = (state.config ?? "").length + (state["base-config"] ?? "").length;
  const address = config < 1e6 ? writeAddress(state) : "";
  const fits = config < 1e6 && address.length < 2e6;
  history.replaceState(null, "", fits ? `#${address}` : location.pathname);
  return fits;
}

function changed() {
  showAddress();
  $("done").textContent = "";
  fillForm();
  refresh();
}

function readState() {
  const text = location.hash.slice(1);
  state = readAddress(text || FIRST);
  fillForm();
  refresh();
}

// ---- buttons -------------------------------------------------------------------------------------

async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {  // where pages may not use it
    const area = document.body.appendChild(make("textarea", {value: text, className: "away"}));
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  $("done").textContent = `${what} copied`;
}

function download() {
  const {text} = ask(requestOf(state), "json");
  const blob = new Blob([text], {type: "application/json"});
  const link = make("a", {href: URL.createObjectURL(blob), download: "plan.json"});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function connect() {
  document.addEventListener("input", ({target}) => {
    clearTimeout(waiting);
    const typing = target.tagName === "TEXTAREA" || target.type === "text";
    waiting = setTimeout(() => take(target), typing ? 200 : 0);
  });
  $("form").addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("hashchange", readState);
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    const part = event.target.closest?.("[data-of]");
    takeFile(event.dataTransfer.files[0], part?.dataset.of ?? "");
  });
  $("share").addEventListener("click", () => {
    if (showAddress()) copy(location.href, "Link");
    else $("done").textContent = "This model is too long for a link";
  });
  $("copy").addEventListener("click", () => copy($("code").textContent, "Code"));
  $("download").addEventListener("click", download);
}

scalewise().then((module) => {
  library = module;
  lists = JSON.parse(library.ccall("scalewise_lists", "string", [], []));
  buildForm();
  connect();
  readState();
  document.documentElement.dataset.ready = "true";
}).catch((error) => {
  $("error").textContent = `This browser cannot run the page: ${error}`;
  $("error").hidden = false;
});
