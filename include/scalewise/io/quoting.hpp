// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Text within other languages: one function for each, whatever is in the text.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "scalewise/messages/utf8.hpp"

namespace scalewise {

namespace detail {

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

inline bool is_letter_or_digit(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// A text with another one for each of its characters; `replacement` gets the character, what stands before
/// it and what after it.
template <class Replacement>
std::string replaced(std::string_view text, Replacement&& replacement) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = messages::utf8_length(text.substr(i));
    const std::size_t size = length == 0 ? 1 : length;
    result += replacement(text.substr(i, size), text.substr(0, i), text.substr(i + size));
    i += size;
  }
  return result;
}

/// Whether a decimal number is all of a text.
inline bool is_decimal(std::string_view text) {
  const auto sign = [&] {
    if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  };
  const auto digits = [&] {
    const std::size_t count = (std::min)(text.find_first_not_of("0123456789"), text.size());
    text.remove_prefix(count);
    return count > 0;
  };
  sign();
  bool number = digits();
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    number = digits() || number;
  }
  if (number && (text.starts_with('e') || text.starts_with('E'))) {
    text.remove_prefix(1);
    sign();
    number = digits();
  }
  return number && text.empty();
}

}  // namespace detail

namespace io {

/// A text for a line of a comment that ends with the line, as those of Python, LaTeX and gnuplot do.
inline std::string comment_text(std::string_view text) { return messages::visible_text(text); }

/// A text for a comment of C.
inline std::string c_comment_text(std::string_view text) {
  return detail::replaced(messages::visible_text(text),
                          [](std::string_view c, std::string_view before, std::string_view) {
                            const bool ends = c == "/" && before.ends_with('*');
                            const bool begins = c == "*" && before.ends_with('/');
                            return (ends || begins ? " " : "") + std::string(c);
                          });
}

/// A text as a string of Python: raw where it has a backslash and may be raw.
inline std::string python_string(std::string_view text) {
  const bool plain = messages::is_printable_utf8(text) && text.find('"') == std::string_view::npos;
  if (plain && text.find('\\') != std::string_view::npos && !text.ends_with('\\')) {
    return "r\"" + std::string(text) + "\"";
  }
  return "\"" +
         detail::replaced(
             text,
             [](std::string_view c, std::string_view, std::string_view) -> std::string {
               const auto [length, code] = messages::utf8_character(c);
               if (c == "\"" || c == "\\") return "\\" + std::string(c);
               if (length > 0 && messages::is_visible(code)) return std::string(c);
               // A byte that is no UTF-8 is what Python's own "surrogateescape" makes of it.
               const unsigned other = 0xDC00U + static_cast<unsigned char>(c.front());
               return fmt::format("\\U{:08x}", length > 0 ? code : other);
             }) +
         "\"";
}

/// A text as a string of C99 or C++.
inline std::string c_string(std::string_view text) {
  return "\"" +
         detail::replaced(text,
                          [](std::string_view c, std::string_view, std::string_view) {
                            // ?? begins a trigraph of C99.
                            if (c == "\"" || c == "\\" || c == "?") return "\\" + std::string(c);
                            const auto [length, code] = messages::utf8_character(c);
                            if (length > 0 && messages::is_visible(code)) return std::string(c);
                            std::string octal;
                            for (const char byte : c) {
                              octal += fmt::format("\\{:03o}", static_cast<unsigned char>(byte));
                            }
                            return octal;
                          }) +
         "\"";
}

/// A text as a regular expression of itself, for Python's re.
inline std::string regex_text(std::string_view text) {
  return detail::replaced(text, [](std::string_view c, std::string_view, std::string_view) {
    const bool plain = c.size() > 1 || detail::is_letter_or_digit(c[0]) || c[0] == '_' ||
                       c[0] == '/' || static_cast<unsigned char>(c[0]) >= 0x80U;
    return (plain ? "" : "\\") + std::string(c);
  });
}

/// A text as a glob of itself, for Python's fnmatch.
inline std::string glob_text(std::string_view text) {
  return detail::replaced(text, [](std::string_view c, std::string_view, std::string_view) {
    const bool special = c == "*" || c == "?" || c == "[";
    return special ? "[" + std::string(c) + "]" : std::string(c);
  });
}

/// A field between tabs. Such files have no quotes: what is not visible is replaced.
inline std::string tsv_field(std::string_view text) { return messages::visible_text(text); }

/// A field of CSV (RFC 4180). Spreadsheets run text that begins as a formula does; an apostrophe before
/// it, which they hide, makes it text.
inline std::string csv_field(std::string_view text) {
  const bool sign = text.starts_with('+') || text.starts_with('-');
  const bool formula = text.starts_with('=') || text.starts_with('@') || text.starts_with('\t') ||
                       text.starts_with('\r') ||
                       (sign && text.size() > 1 && !detail::is_decimal(text));
  std::string field = (formula ? "'" : "") + std::string(text);
  if (field.find_first_of(",\"\r\n") == std::string::npos) return field;
  const auto doubled = [](std::string_view c, std::string_view, std::string_view) {
    return c == "\"" ? std::string("\"\"") : std::string(c);
  };
  return "\"" + detail::replaced(field, doubled) + "\"";
}

/// A text as Markdown, within a line or a cell of a table: nothing in it is a mark, a link or HTML.
inline std::string markdown_text(std::string_view text) {
  const auto word = [](char c) { return detail::is_letter_or_digit(c); };
  return detail::replaced(
      messages::visible_text(text),
      [&](std::string_view c, std::string_view before, std::string_view after) -> std::string {
        if (c == "|" || c == "*" || c == "\\" || c == "`" || c == "[" || c == "]") {
          return "\\" + std::string(c);
        }
        const bool in_word =
            !before.empty() && !after.empty() && word(before.back()) && word(after.front());
        if (c == "_") return in_word ? "_" : "\\_";
        const bool link = (c == ":" && after.starts_with("//")) || c == "@" ||
                          (c == "." && (before.ends_with("www") || before.ends_with("WWW")));
        const bool special = c == "<" || c == ">" || c == "&" || c == "~" || c == "$";
        return special || link ? fmt::format("&#{};", static_cast<int>(c[0])) : std::string(c);
      });
}

}  // namespace io

namespace detail {

/// A character that is not of ASCII. Those that pdfTeX's usual fonts lack are named by their number.
inline std::string latex_letter(std::string_view c) {
  constexpr std::pair<std::string_view, std::string_view> letters[] = {
      {"α", "$\\alpha$"}, {"β", "$\\beta$"}, {"λ", "$\\lambda$"}, {"μ", "$\\mu$"},
      {"ν", "$\\nu$"},    {"√", "$\\surd$"}, {"×", "$\\times$"},  {"·", "$\\cdot$"},
      {"–", "--"},        {"…", "\\ldots{}"}};
  for (const auto& [letter, command] : letters) {
    if (c == letter) return std::string(command);
  }
  const std::uint32_t code = messages::utf8_character(c).code;
  const bool european = code >= 0xC0U && code <= 0x17FU;
  return european ? std::string(c) : fmt::format("\\texttt{{U+{:04X}}}", code);
}

}  // namespace detail

namespace io {

/// A text as LaTeX text.
inline std::string latex_text(std::string_view text) {
  return detail::replaced(
      messages::visible_text(text),
      [](std::string_view c, std::string_view before, std::string_view) -> std::string {
        if (c.size() > 1) return detail::latex_letter(c);
        switch (c[0]) {
          case '\\':
            return "\\textbackslash{}";
          case '~':
            return "\\textasciitilde{}";
          case '^':
            return "\\textasciicircum{}";
          case '<':
            return "\\textless{}";
          case '>':
            return "\\textgreater{}";
          case '|':
            return "\\textbar{}";
          case '"':
            return "\\char34{}";
          case '_':
          case '&':
          case '%':
          case '#':
          case '$':
          case '{':
          case '}':
            return "\\" + std::string(c);
          default:
            break;
        }
        // Two of these become one: a dash, a quotation mark.
        const bool joins = (c == "-" || c == "'" || c == "`") && before.ends_with(c);
        const bool turned = c == "`" && (before.ends_with('?') || before.ends_with('!'));
        return (joins || turned ? "{}" : "") + std::string(c);
      });
}

}  // namespace io

}  // namespace scalewise
