// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/io/quoting.hpp"

#include <string>
#include <utility>
#include <vector>

#include "scalewise/dialect/gpt2_dialects.hpp"
#include "scalewise/io/fairseq_groups.hpp"
#include "scalewise/io/megatron_overrides.hpp"
#include "scalewise/io/neox_groups.hpp"
#include "scalewise/io/python_code.hpp"
#include "scalewise/io/tensor_rows.hpp"
#include "scalewise/io/torch_groups.hpp"
#include "scalewise/io/torchtitan_groups.hpp"
#include "scalewise/plan/make_plan.hpp"
#include "scalewise/policy/gpt2.hpp"
#include "support/catch.hpp"

using namespace scalewise;

namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

}  // namespace

// Such texts are read back by each language's own parser in tests/cli/hostile.py.

TEST_CASE("A string of Python is raw where that is all it needs", "[quoting]") {
  for (const auto& [text, python] : Pairs{{"ln_1", "\"ln_1\""},
                                          {"h\\.1", "r\"h\\.1\""},
                                          {"a\\", "\"a\\\\\""},
                                          {"a\"\\b", "\"a\\\"\\\\b\""},
                                          {"größe", "\"größe\""},
                                          {"a\n\t\x7f", "\"a\\U0000000a\\U00000009\\U0000007f\""},
                                          {"a\\\n", "\"a\\\\\\U0000000a\""},
                                          {"\xc2\x9b\xe2\x80\xae", "\"\\U0000009b\\U0000202e\""},
                                          {"caf\xe9", "\"caf\\U0000dce9\""}}) {
    CHECK(io::python_string(text) == python);
  }
}

TEST_CASE("A string of C has no trigraph and no byte that an editor hides", "[quoting]") {
  for (const auto& [text, c] : Pairs{{"a\"b\\", "\"a\\\"b\\\\\""},
                                     {"a?"
                                      "?/b",
                                      "\"a\\?\\?/b\""},
                                     {"a\n1", "\"a\\0121\""},
                                     {"\xe2\x80\xae\xff", "\"\\342\\200\\256\\377\""},
                                     {"größe", "\"größe\""}}) {
    CHECK(io::c_string(text) == c);
  }
  CHECK(io::c_comment_text("a*/b/*c\nd") == "a* /b/ *c d");
  CHECK(io::c_comment_text("/*/") == "/ * /");
}

TEST_CASE("A line of a comment and a field between tabs stay one", "[quoting]") {
  CHECK(io::comment_text("a\nimport os\r\x1b[2J") == "a import os ?[2J");
  CHECK(io::tsv_field("a\tb\nc") == "a b c");
}

TEST_CASE("Text of a regular expression or a glob matches itself alone", "[quoting]") {
  CHECK(io::regex_text("a.b_1/ö+\n") == "a\\.b_1/ö\\+\\\n");
  CHECK(io::glob_text("a.*?[x]") == "a.[*][?][[]x]");
}

TEST_CASE("A spreadsheet runs no field of CSV", "[quoting]") {
  for (const char* text :
       {"=1+1", "@SUM(1)", "+1+1", "-1+1", "+a", "-2x", "-1e", "-.", "-1.5.2", "\tx", "\r=1"}) {
    CHECK(io::csv_field(text).find('\'') <= 1);
  }
  for (const char* text : {"-1", "+1.5", "-.5", "-1e-3", "-1.E+10", "-", "a=1", "1-1", ""}) {
    CHECK(io::csv_field(text) == text);
  }
  CHECK(io::csv_field("=a,\"b\"") == "\"'=a,\"\"b\"\"\"");
}

TEST_CASE("Markdown shows marks, links and HTML as text", "[quoting]") {
  for (const auto& [text, markdown] :
       Pairs{{"ln_1 = 1/m_N", "ln_1 = 1/m_N"},
             {"_a_ __b", "\\_a\\_ \\_\\_b"},
             {"a|b*`c`\\", "a\\|b\\*\\`c\\`\\\\"},
             {"[a](b)", "\\[a\\](b)"},
             {"<b>&amp;", "&#60;b&#62;&#38;amp;"},
             {"~~a~~ $x$", "&#126;&#126;a&#126;&#126; &#36;x&#36;"},
             {"http://a www.b c@d a:b", "http&#58;//a www&#46;b c&#64;d a:b"}}) {
    CHECK(io::markdown_text(text) == markdown);
  }
}

TEST_CASE("LaTeX reads no command in a text", "[quoting]") {
  for (const auto& [text, latex] :
       Pairs{{"\\input{a}", "\\textbackslash{}input\\{a\\}"},
             {"a_b&%#$~^", "a\\_b\\&\\%\\#\\$\\textasciitilde{}\\textasciicircum{}"},
             {"<a>|\"", "\\textless{}a\\textgreater{}\\textbar{}\\char34{}"},
             {"a--b ``c'' ?`", "a-{}-b `{}`c'{}' ?{}`"},
             {"μ√é中", "$\\mu$$\\surd$é\\texttt{U+4E2D}"},
             {"a\nb\x01", "a b?"}}) {
    CHECK(io::latex_text(text) == latex);
  }
}

TEST_CASE("Whatever a dialect of C++ is called, no code and no comment ends early", "[quoting]") {
  Shape shape{.d_model = 8, .depth = 1, .heads = 2, .context = 4, .vocab = 10};
  dialect::NamedPlan named =
      dialect::name_plan(make_plan(Gpt2{}, {.model = shape}), dialect::nanogpt);
  named.assignment.dialect = "a*/\nimport os";
  named.assignment.tensors[0].name = "a\"\nimport os";
  for (const std::string& code :
       {torchtitan_groups(named), megatron_overrides(named), fairseq_groups(named),
        neox_groups(named), c_header(named), tensor_tsv(named)}) {
    CHECK(code.find("\nimport os") == std::string::npos);
  }
  CHECK(c_header(named).find("a*/") == std::string::npos);
}
