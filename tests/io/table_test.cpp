// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/io/table.hpp"

#include <ctime>

#include "scalewise/architecture/presets.hpp"
#include "scalewise/io/fit_table.hpp"
#include "scalewise/io/plan_table.hpp"
#include "scalewise/scalewise.hpp"
#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/sanitized.hpp"

using namespace scalewise;

namespace {

const Table table{"Caption", {"a", "b"}, {{"√n", "1"}, {"x|y", "say \"so\", twice"}}};

}  // namespace

TEST_CASE("A table is aligned by what a terminal shows, not by bytes", "[table]") {
  CHECK(render(table, TableFormat::text) == "Caption\na    b\n√n   1\nx|y  say \"so\", twice\n");
}

TEST_CASE("CSV fields with commas, quotes and ends of lines are quoted", "[table]") {
  CHECK(render(table, TableFormat::csv) == "a,b\n√n,1\nx|y,\"say \"\"so\"\", twice\"\n");
  for (const char* text : {"a\rb", "a\nb", "a\"b", "a,b"}) {
    const std::string quoted = *(text + 1) == '"' ? "a\"\"b" : text;
    CHECK(io::csv_field(text) == "\"" + quoted + "\"");
  }
}

TEST_CASE("Markdown cells cannot break the table", "[table]") {
  CHECK(render(table, TableFormat::markdown) ==
        "**Caption**\n\n| a | b |\n|---|---|\n| √n | 1 |\n| x\\|y | say \"so\", twice |\n");
}

TEST_CASE("Ragged tables, and comparisons of no plan, are refused", "[table]") {
  for (const auto& row : {std::vector<std::string>{"1"}, {"1", "2", "3"}}) {
    Table ragged = table;
    ragged.rows.push_back(row);
    const std::string refusal = "table \"Caption\", row 2 = " + std::to_string(row.size()) +
                                " cells: expected 2, one for each column";
    for (const TableFormat format :
         {TableFormat::text, TableFormat::markdown, TableFormat::latex, TableFormat::csv}) {
      CHECK(test::error_message([&] { render(ragged, format); }) == refusal);
    }
    CHECK(test::error_message([&] { io::fit_table(ragged, 10); }) == refusal);
  }
  CHECK(test::error_message([] { comparison_tables({}, false); }) ==
        "plans = none: expected at least one");
}

TEST_CASE("A table of very many layers takes no longer than its rows", "[table]") {
  // The table takes as long as its plan. When rows were looked for one by one, it took three to five times as long,
  // without optimization.
  Shape shape = preset_shape("gpt2");
  shape.depth = scalewise::test::sanitized ? 300 : 1500;
  const std::clock_t start = std::clock();  // of this process alone
  const Plan plan = make_plan(Gpt2{}, {.model = shape});
  const std::clock_t planned = std::clock();
  CHECK(plan_table(plan, true).rows.size() == plan.entries.size());
  CHECK(std::clock() - planned < 2 * (planned - start));
}

TEST_CASE("LaTeX numbers have powers of ten, and text its special letters escaped", "[table]") {
  CHECK(scalewise::detail::latex_number(4.167e-6) == "4.167\\cdot 10^{-6}");
  CHECK(scalewise::detail::latex_number(0.25) == "0.25");
  CHECK(io::latex_text("eta_input, gain β") == "eta\\_input, gain $\\beta$");
}

TEST_CASE("Sizes of the legend are whole", "[table]") {
  const Plan plan = make_plan(NeuralTangent{}, {.model = preset_shape("vit-h14")});
  const std::vector<std::string> lines = legend({plan});
  CHECK(std::find(lines.begin(), lines.end(), "n_out = 1000 (classes, or vocab)") != lines.end());
}

TEST_CASE("A number that only one tensor of both stacks has gets a row of its own", "[table]") {
  Shape shape = preset_shape("gpt2");
  shape.depth = shape.encoder_depth = 1;
  const Plan plan = make_plan(DeepNorm{}, {.model = shape});
  for (std::size_t i = 0; i < plan.entries.size(); ++i) {
    Plan changed = plan;
    changed.entries[i].init_variance.value = 0.123;
    INFO(plan.entries[i].name);
    std::size_t shown = 0;
    for (const Table& each : comparison_tables({changed, plan}, false)) {
      const std::string text = render(each, TableFormat::text);
      for (std::size_t at = 0; (at = text.find("0.123", at)) != std::string::npos; ++at) ++shown;
      // The queries of both stacks still agree.
      if (plan.entries[i].name == "decoder.0.cross_query") {
        CHECK(text.find("encoder.query") == std::string::npos);
      }
    }
    CHECK(shown == 1);
  }
}

TEST_CASE("Tensors of one's own are told apart by all of their names but the layer", "[table]") {
  const std::vector<Extra> extras{{"a.*.up.weight", Group::query, "d_model", "d_model"},
                                  {"a.*.down.weight", Group::query, "d_ff", "d_model"},
                                  {"layer.*.own", Group::query, "4*d_ff", "d_model"}};
  const Plan plan = make_plan("standard", {.model = preset_shape("gpt2"), .extras = extras});
  const auto variance = [&](const std::string& label) {
    for (const auto& row : plan_table(plan, false).rows) {
      if (row[0] == label) return row[1];
    }
    return std::string("no such row");
  };
  CHECK(variance("a.*.up.weight") == "0.001302 = 1/n");
  CHECK(variance("a.*.down.weight") == "0.0003255 = 1/F");
  CHECK(variance("own") == "8.138e-05 = 1/(4F)");
}
