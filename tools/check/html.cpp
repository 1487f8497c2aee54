// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "check/html.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "scalewise/messages/utf8.hpp"

namespace scalewise::experiment {

namespace {

constexpr const char* style = R"css(
:root {
  color-scheme: light dark;
  --text: #1c2024; --faint: #5d6671; --page: #ffffff; --box: #f5f6f8; --line: #dcdfe4;
  --pass: #146c2e; --pass-box: #e3f4e7; --fail: #a8071a; --fail-box: #fde7e9;
  --inconclusive: #7a4d00; --inconclusive-box: #fff1d6;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --text: #e4e7eb; --faint: #a0a8b3; --page: #14171a; --box: #1e2226; --line: #353b42;
    --pass: #7ddc93; --pass-box: #12301b; --fail: #ff9aa2; --fail-box: #40141a;
    --inconclusive: #f5c869; --inconclusive-box: #38290a;
  }
  .picture img.light { filter: invert(0.9) hue-rotate(180deg); }
}
* { box-sizing: border-box; }
body {
  max-width: 80rem; margin: 0 auto; padding: 1.5rem clamp(0.75rem, 3vw, 2.5rem) 3rem;
  background: var(--page); color: var(--text); font: 1rem/1.5 system-ui, sans-serif;
}
h1 { margin: 0; font-size: 1.5rem; overflow-wrap: anywhere; }
h2 { margin: 2.25rem 0 0.5rem; font-size: 1.15rem; }
p { margin: 0.4rem 0; max-width: 66rem; overflow-wrap: anywhere; white-space: pre-line; }
.about { color: var(--faint); }
.verdict { margin-top: 1rem; padding: 0.9rem 1.2rem; border-left: 0.4rem solid; border-radius: 0.3rem; }
.verdict strong { display: block; font-size: 1.6rem; line-height: 1.2; letter-spacing: 0.03em; }
.verdict p { color: var(--text); }
.pass { color: var(--pass); }
.fail { color: var(--fail); }
.inconclusive { color: var(--inconclusive); }
.verdict.pass { background: var(--pass-box); }
.verdict.fail { background: var(--fail-box); }
.verdict.inconclusive { background: var(--inconclusive-box); }
td.pass, td.fail, td.inconclusive { font-weight: 600; }
.box { overflow: auto; max-height: 75vh; border: 1px solid var(--line); border-radius: 0.3rem; }
.picture { max-height: none; }
.picture img { display: block; width: 100%; min-width: 40rem; max-width: 82rem; height: auto; margin: 0 auto; }
table { border-collapse: collapse; min-width: 100%; font-size: 0.875rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.3rem 0.7rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
tr:last-child td { border-bottom: 0; }
tbody tr:hover { background: var(--box); }
td { white-space: nowrap; }
td.long { min-width: 18rem; white-space: normal; overflow-wrap: anywhere; }
.number { text-align: right; }
th { position: sticky; top: 0; background: var(--box); white-space: nowrap; }
th button { all: unset; cursor: pointer; font: inherit; }
th button:focus-visible { outline: 2px solid currentColor; outline-offset: 2px; }
th button::after { content: "↕"; margin-left: 0.4em; color: var(--faint); }
th[aria-sort=ascending] button::after { content: "↑"; color: inherit; }
th[aria-sort=descending] button::after { content: "↓"; color: inherit; }
pre {
  margin: 0.5rem 0; padding: 0.7rem 1rem; background: var(--box); border-radius: 0.3rem;
  white-space: pre-wrap; overflow-wrap: anywhere; font: 0.875rem/1.5 ui-monospace, monospace;
}
@media print {
  :root { color-scheme: light; }
  @page { size: landscape; margin: 12mm; }
  body { max-width: none; padding: 0; font-size: 10pt; print-color-adjust: exact; }
  .box { overflow: visible; max-height: none; border: 0; }
  .picture img { min-width: 0; max-height: 165mm; width: auto; max-width: 100%; }
  table { font-size: 7pt; }
  th, td { padding: 0.15rem 0.35rem; }
  td.long { min-width: 0; }
  th { position: static; white-space: normal; }
  th button { display: contents; }
  th button::after { content: none; }
  h2, .verdict, .picture, pre, tr { break-inside: avoid; }
  h2, section > p { break-after: avoid; }
}
)css";

// Numbers come before texts, and cells without either last, whichever way a column is sorted.
constexpr const char* script = R"js(
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const key = (row, i) => {
    const cell = row.cells[i];
    return cell.title ? parseFloat(cell.title) : cell.textContent;
  };
  const order = (a, b, down) => {
    if ((a === "–") !== (b === "–")) return a === "–" ? 1 : -1;
    if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
    const sign = a < b ? -1 : a > b ? 1 : 0;
    return down ? -sign : sign;
  };
  heads.forEach((head, i) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    button.onclick = () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      body.append(...[...body.rows].sort((a, b) => order(key(a, i), key(b, i), down)));
    };
    head.replaceChildren(button);
  });
}
)js";

/// A text between tags or within quotes. What is not visible, or not UTF-8, becomes U+FFFD.
std::string escaped(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const auto [length, code] = messages::utf8_character(text);
    const bool shown = length > 0 && (messages::is_visible(code) || code == '\n' || code == '\t');
    if (code < 128 && std::string_view("&<>\"'").find(static_cast<char>(code)) != text.npos) {
      result += "&#" + std::to_string(code) + ";";
    } else {
      result += shown ? text.substr(0, length) : "\uFFFD";
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return result;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view letters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string result;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t three = 0;
    for (std::size_t j = i; j < i + 3; ++j) {
      three = three << 8U | (j < bytes.size() ? static_cast<unsigned char>(bytes[j]) : 0U);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      result += i + j > bytes.size() ? '=' : letters[three >> (18 - 6 * j) & 63U];
    }
  }
  return result;
}

std::string element(const std::string& name, std::string_view text) {
  return "<" + name + ">" + escaped(text) + "</" + name + ">\n";
}

std::string cell_html(const Cell& cell) {
  const std::string classes = !cell.mood.empty()      ? cell.mood
                              : !cell.exact.empty()   ? "number"
                              : cell.text.size() > 40 ? "long"
                                                      : "";
  std::string out = "<td";
  if (!classes.empty()) out += " class=\"" + escaped(classes) + "\"";
  if (!cell.exact.empty()) out += " title=\"" + escaped(cell.exact) + "\"";
  return out + ">" + escaped(cell.text) + "</td>";
}

/// A box that scrolls sideways, so that the page does not.
std::string table_html(const PageTable& table) {
  std::string out = "<div class=\"box\" tabindex=\"0\">\n<table";
  if (table.sortable) out += " class=\"sortable\"";
  out += ">\n<thead><tr>";
  for (std::size_t i = 0; i < table.header.size(); ++i) {
    const bool number =
        std::any_of(table.rows.begin(), table.rows.end(),
                    [i](const std::vector<Cell>& row) { return !row[i].exact.empty(); });
    out += std::string("<th scope=\"col\"") + (number ? " class=\"number\">" : ">") +
           escaped(table.header[i]) + "</th>";
  }
  out += "</tr></thead>\n<tbody>\n";
  for (const std::vector<Cell>& row : table.rows) {
    out += "<tr>";
    for (const Cell& cell : row) out += cell_html(cell);
    out += "</tr>\n";
  }
  return out + "</tbody>\n</table>\n</div>\n";
}

/// As an image a picture brings neither scripts nor names of its own. One that has no colours for a
/// dark page is inverted there.
std::string picture_html(const std::string& svg, const std::string& title) {
  const bool dark = svg.find("prefers-color-scheme:dark") != std::string::npos;
  return "<div class=\"box picture\" tabindex=\"0\"><img" +
         std::string(dark ? "" : " class=\"light\"") + " alt=\"" + escaped(title) +
         "\" src=\"data:image/svg+xml;base64," + base64(svg) + "\"></div>\n";
}

std::string section_html(const PageSection& section) {
  std::string out;
  for (const std::string& line : section.lines) out += element("p", line);
  if (!section.svg.empty()) {
    out += picture_html(section.svg, section.lines.empty() ? section.title : section.lines[0]);
  }
  if (!section.command.empty()) out += element("pre", section.command);
  if (!section.table.rows.empty()) out += table_html(section.table);
  return out.empty() ? "" : "<section>\n" + element("h2", section.title) + out + "</section>\n";
}

}  // namespace

std::string html(const Page& page) {
  std::string words = page.verdict;
  for (char& c : words) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; "
      "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n" +
      element("title", words + ": " + page.title) + "<style>" + style +
      "</style>\n</head>\n<body>\n<header>\n" + element("h1", page.title) + "<p class=\"about\">" +
      escaped(page.about) + "</p>\n<div class=\"verdict " + escaped(page.verdict) + "\">\n" +
      element("strong", words) + element("p", page.reason) + "</div>\n</header>\n<main>\n";
  for (const PageSection& section : page.sections) out += section_html(section);
  return out + "</main>\n<script>" + script + "</script>\n</body>\n</html>\n";
}

}  // namespace scalewise::experiment
