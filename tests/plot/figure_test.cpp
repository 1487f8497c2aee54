// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/plot/figure.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/temporary_folder.hpp"

namespace fs = std::filesystem;
using Catch::Matchers::ContainsSubstring;
using scalewise::plot::Curve;
using scalewise::plot::draw_figure;
using scalewise::plot::Figure;
using scalewise::plot::figure_csv;
using scalewise::plot::log_axis;
using scalewise::plot::Panel;
using scalewise::plot::write_figure;
using scalewise::test::error_message;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

/// A value of the environment until the end of the scope.
class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    setenv(name_, value.c_str(), 1);
  }
  ~Environment() { old_.empty() ? unsetenv(name_) : setenv(name_, old_.c_str(), 1); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
  std::string old_;
};

/// A folder for results, one for programs, and one for what the code under test keeps for a moment.
struct Scratch {
  scalewise::test::TemporaryFolder results;
  scalewise::test::TemporaryFolder programs;
  scalewise::test::TemporaryFolder moment;
  Environment tmpdir{"TMPDIR", moment.path().string()};

  std::string stem(const std::string& name = "figure") const {
    return (results.path() / name).string();
  }
  /// The names of the results.
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(results.path())) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  bool nothing_left_behind() const { return fs::is_empty(moment.path()); }
};

std::string content(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

/// A program called gnuplot that does what a script says.
void make_gnuplot(const fs::path& folder, const std::string& script) {
  const fs::path path = folder / "gnuplot";
  std::ofstream(path) << "#!/bin/sh\n" << script;
  fs::permissions(path, fs::perms::owner_all);
}

bool have_gnuplot() {
  const bool have = std::system("command -v gnuplot >/dev/null 2>&1") == 0;
  if (!have) WARN("no picture is tested: gnuplot is not installed");
  return have;
}

Panel one_panel(const std::string& title, const std::vector<Curve>& curves) {
  return {title, "width", "loss (nats)", false, false, curves};
}

/// An SVG file as the program at hand tells it: its tags match, and no byte is out of place.
bool is_xml(const std::string& path) {
  const std::string check =
      "python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' '" + path + "'";
  return std::system(check.c_str()) == 0;
}

}  // namespace

TEST_CASE("The CSV of a figure has a row per point, and reads back to the same numbers",
          "[figure]") {
  const Curve measured{
      "SP, µ \"a\"", {64, 1e-300}, {0.1 + 0.2, no_number}, {0.1, 0.2}, {infinity, 0.3}};
  const Curve predicted{"", {1.0 / 3}, {-2}};
  const Figure figure{"", {one_panel("two\nlines", {measured}), one_panel("b", {predicted})}};
  CHECK(figure_csv(figure) ==
        "panel,curve,x,y,low,high\n"
        "\"two\nlines\",\"SP, µ \"\"a\"\"\",64,0.30000000000000004,0.1,\n"
        "\"two\nlines\",\"SP, µ \"\"a\"\"\",1e-300,,0.2,0.3\n"
        "b,,0.3333333333333333,-2,,\n");
}

TEST_CASE("Ragged curves and figures without panels are refused before anything is written",
          "[figure]") {
  const Scratch scratch;
  const auto message = [&](const Curve& curve) {
    return error_message([&] { write_figure({"", {one_panel("", {curve})}}, scratch.stem()); });
  };
  CHECK_THAT(message({"SP", {1, 2}, {3}}),
             ContainsSubstring("curve \"SP\", y = 1 values: expected 2, one for each x"));
  CHECK_THAT(message({"SP", {1}, {3}, {1, 2}, {4}}), ContainsSubstring("low = 2 values"));
  CHECK_THAT(message({"SP", {1}, {3}, {1}, {}}), ContainsSubstring("high = 0 values"));
  CHECK_THAT(message({"SP", {1}, {3}, {}, {4}}), ContainsSubstring("low = 0 values"));
  CHECK_THAT(error_message([&] {
               write_figure({"a", {}}, scratch.stem());
             }),
             ContainsSubstring("figure = no panel"));
  CHECK(scratch.files().empty());
}

TEST_CASE("A figure in a folder that is not there is refused", "[figure]") {
  const Scratch scratch;
  CHECK_THAT(error_message([&] {
               write_figure({"", {one_panel("", {})}}, scratch.stem("none/figure"));
             }),
             ContainsSubstring("a file that can be written"));
  CHECK(scratch.files().empty());
}

TEST_CASE("Without gnuplot there is the CSV, and word of how to get pictures", "[figure]") {
  const Scratch scratch;
  const Environment path("PATH", scratch.programs.path().string());
  const std::string message = write_figure({"", {one_panel("", {})}}, scratch.stem());
  CHECK_THAT(message, ContainsSubstring("figure.csv; no pictures"));
  CHECK_THAT(message, ContainsSubstring("install gnuplot"));
  CHECK(scratch.files() == std::vector<std::string>{"figure.csv"});
}

TEST_CASE("What gnuplot complains about is told, and nothing is left behind", "[figure]") {
  const Scratch scratch;
  const Environment path("PATH", scratch.programs.path().string() + ":" + std::getenv("PATH"));
  const Figure figure{"", {one_panel("", {{"a", {1, 2}, {1, 2}}})}};
  SECTION("an error in a command") {
    make_gnuplot(scratch.programs.path(),
                 "echo x\n"
                 "printf '\\n\"commands\" line 1: warning: a font\\n\\nplot\\n    ^\\n"
                 "\"commands\", line 7: no such terminal\\n' >&2\nexit 1\n");
    CHECK_THAT(write_figure(figure, scratch.stem()),
               ContainsSubstring("gnuplot failed: \"commands\", line 7: no such terminal"));
  }
  SECTION("a program that does not start") {
    make_gnuplot(scratch.programs.path(), "echo 'gnuplot: missing library' >&2\nexit 127\n");
    CHECK_THAT(write_figure(figure, scratch.stem()),
               ContainsSubstring("gnuplot failed: gnuplot: missing library"));
  }
  SECTION("a program that does nothing") {
    make_gnuplot(scratch.programs.path(), "exit 0\n");
    CHECK_THAT(write_figure(figure, scratch.stem()),
               ContainsSubstring("gnuplot failed: it gave no reason"));
  }
  SECTION("a program that draws one picture of two") {
    make_gnuplot(scratch.programs.path(), "cat >/dev/null; echo '<svg/>'\n");
    CHECK_THAT(write_figure(figure, scratch.stem()), ContainsSubstring("gnuplot failed"));
  }
  SECTION("pictures, and yet a failure") {
    make_gnuplot(scratch.programs.path(), R"(printf 'drawn\211PNG\r\n\032\ndots'; exit 3)");
    CHECK_THAT(write_figure(figure, scratch.stem()), ContainsSubstring("gnuplot failed"));
  }
  CHECK(scratch.files() == std::vector<std::string>{"figure.csv"});
  CHECK(scratch.nothing_left_behind());
}

TEST_CASE("A gnuplot that hangs is ended, with all that it started", "[figure]") {
  using namespace std::chrono_literals;
  const Scratch scratch;
  const Environment path("PATH", scratch.programs.path().string() + ":" + std::getenv("PATH"));
  make_gnuplot(scratch.programs.path(),
               "(sleep 2; echo x > '" + scratch.stem("late") + "') &\nsleep 100\n");
  std::string label(std::size_t{1} << 22, 'a');  // longer than what a pipe holds
  const Figure figure{label, {one_panel("", {{"a", {1, 2}, {1, 2}}})}};
  const auto start = std::chrono::steady_clock::now();
  CHECK(draw_figure(figure, 1000ms).problem == "gnuplot took longer than 1 s");
  CHECK(std::chrono::steady_clock::now() - start < 20s);
  std::this_thread::sleep_for(1500ms);
  CHECK(scratch.files().empty());
}

TEST_CASE("A path is a path, whatever is in its name", "[figure]") {
  if (!have_gnuplot()) return;
  const Scratch scratch;
  const fs::path hostile = scratch.moment.path() / "it's a \"tmp\" `x` $(y) | z";
  fs::create_directory(hostile);
  const Environment tmpdir("TMPDIR", hostile.string());
  const std::string name = "it's \"one\" $(figure) `of` ~two | three";
  const Figure figure{"", {one_panel("", {{"a", {1, 2}, {1, 2}}})}};
  CHECK(write_figure(figure, scratch.stem(name)) ==
        "wrote " + scratch.stem(name) + ".csv, .svg and .png");
  CHECK(scratch.files() == std::vector<std::string>{name + ".csv", name + ".png", name + ".svg"});
  CHECK(fs::is_empty(hostile));
}

TEST_CASE("Labels are drawn as they are", "[figure]") {
  if (!have_gnuplot()) return;
  const Scratch scratch;
  const std::string label =
      "a_b^c {d} \\e\\n 'f' \"g\" `echo h` @GPVAL_VERSION #i %j $k ~l µP √N ₂ é 𝛼";
  Panel panel = one_panel(label + " panel", {{label + " curve", {1, 2, 3}, {1, 2, 3}}});
  panel.x_label = label + " x";
  panel.y_label = label + " y\\";  // a backslash before a quote, or at the end of a line
  panel.curves.push_back({"two\nlines \x01 \xff \xc3", {1}, {1}});
  panel.curves.push_back({"'first ''two''", {1}, {1}});
  panel.curves.push_back({"''", {1}, {1}});
  panel.curves.push_back({"`touch ran` \xc2\x9b \xe2\x80\xae", {1}, {1}});
  panel.curves.push_back({"<&> \xed\xa0\x80 \xf4\x90\x80\x80 \xe0\x80\x80", {1}, {1}});
  write_figure({label + " title", {panel}}, scratch.stem());
  const std::string svg = content(scratch.stem() + ".svg");
  std::string drawn = label;  // quotes need no escape in the text of XML
  for (const std::string place : {" title", " panel", " x", " y\\", " curve"}) {
    INFO(place);
    CHECK(svg.find(drawn + place) != std::string::npos);
  }
  CHECK(svg.find("two lines ? ? ?") != std::string::npos);
  CHECK(svg.find(">'first ''two''<") != std::string::npos);
  CHECK(svg.find(">''<") != std::string::npos);
  CHECK(svg.find(">`touch ran` ? ?<") != std::string::npos);
  CHECK(svg.find("&lt;&amp;> ??? ???? ???") != std::string::npos);
  CHECK(is_xml(scratch.stem() + ".svg"));
  CHECK(content(scratch.stem() + ".png").substr(1, 3) == "PNG");
}

TEST_CASE("What an axis cannot show is left out of the picture", "[figure]") {
  Panel panel = one_panel("", {{"a",
                                {1, 2, 3, 4, 0},
                                {5, no_number, -1, 0.1, 9},
                                {4, 1, 1, -1, 8},
                                {6, 1, 1, infinity, 10}}});
  panel.log_x = true;
  const auto drawn = [&] {
    const std::string commands = scalewise::plot::gnuplot_commands({"", {panel}});
    const std::string start = "$data_0_0 << END\n";
    const std::size_t at = commands.find(start) + start.size();
    return commands.substr(at, commands.find("END\n", at) - at);
  };
  CHECK(drawn() == "1 5 4 6\n\n3 -1 1 1\n4 0.1 -1 0.1\n\n");
  panel.log_y = true;
  CHECK(drawn() == "1 5 4 6\n\n4 0.1 2.2250738585072014e-308 0.1\n\n");
}

TEST_CASE("gnuplot draws whatever the numbers are", "[figure]") {
  if (!have_gnuplot()) return;
  const Scratch scratch;
  const double tiny = std::numeric_limits<double>::denorm_min();
  const double huge = std::numeric_limits<double>::max();
  const std::vector<std::vector<double>> numbers{{},
                                                 {no_number},
                                                 {0},
                                                 {-1, -2},
                                                 {1},
                                                 {5, 5, 5},
                                                 {1, no_number},
                                                 {no_number, 1},
                                                 {0, 1},
                                                 {-1, 1, 2},
                                                 {infinity, 1},
                                                 {1, 1.0000000000000002},
                                                 {tiny},
                                                 {tiny, 1},
                                                 {1, huge},
                                                 {huge},
                                                 {-huge, huge},
                                                 {1e-30, 1e30},
                                                 {3.2},
                                                 {3.2, 3.3},
                                                 {0.9, 12.0},
                                                 {2, 3},
                                                 {1, no_number, no_number, 2}};
  for (const std::vector<double>& y : numbers) {
    Figure figure{"", {}};
    for (const bool log_x : {false, true}) {
      for (const bool log_y : {false, true}) {
        const std::vector<double> zero(y.size(), 0);
        Panel panel{"", "", "", log_x, log_y, {{"values", y, y}, {"bars", y, y, zero, y}}};
        for (Curve& curve : panel.curves) curve.dashed = log_x;
        panel.curves.push_back({"points", y, y, {}, {}, false});
        panel.curves.push_back({"", y, y, zero, zero, true, false});
        panel.curves.push_back({"nothing", y, y, {}, {}, false, false});
        figure.panels.push_back(panel);
      }
    }
    INFO(figure_csv(figure));
    CHECK_THAT(write_figure(figure, scratch.stem()), ContainsSubstring(".svg and .png"));
  }
  CHECK(scratch.nothing_left_behind());
}

TEST_CASE("The marks of a logarithmic axis", "[figure]") {
  const auto labels = [](double low, double high, int base) {
    std::string text;
    for (const auto& tic : log_axis(low, high, base).tics) {
      if (!tic.label.empty()) text += tic.label + " ";
    }
    return text;
  };
  CHECK(labels(64, 1024, 2) == "64 128 256 512 1024 ");
  CHECK(labels(1.0 / 4096, 1.0 / 256, 2) == "2^{-12} 2^{-11} 2^{-10} 2^{-9} 2^{-8} ");
  CHECK(labels(0.3, 40, 10) == "1 10 ");
  CHECK(labels(3.2, 3.3, 10) == "3.2 3.25 3.3 ");
  CHECK(labels(2e-6, 9e-5, 10) == "2·10^{-6} 5·10^{-6} 10^{-5} 2·10^{-5} 5·10^{-5} 10^{-4} ");
}
