// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/io/plan_table.hpp"
#include "scalewise/plot/block_parts.hpp"
#include "scalewise/plot/plan_lines.hpp"
#include "scalewise/plot/svg_picture.hpp"

namespace scalewise::plot {

namespace detail {

/// The smallest and the largest learning rate of a plan, as the result that its picture shows.
inline std::string block_title(const Plan& plan) {
  double low = plan.entries.front().learning_rate.value;
  double high = low;
  for (const Entry& entry : plan.entries) {
    low = (std::min)(low, entry.learning_rate.value);
    high = (std::max)(high, entry.learning_rate.value);
  }
  return plan.rule + ": " +
         (low == high ? "one learning rate for all tensors"
                      : "learning rates from " + scalewise::detail::short_number(low) + " to " +
                            scalewise::detail::short_number(high) + " times the global one");
}

/// Draws the parts of a plan from top to bottom, the model on the left and its numbers on the right.
class BlockLayout {
 public:
  explicit BlockLayout(const Plan& plan) : plan_(plan), picture_(width, block_title(plan)) {}

  std::string svg() {
    heading();
    const std::vector<BlockSection> sections = block_sections(plan_);
    for (std::size_t i = 0; i < sections.size(); ++i) {
      draw(sections[i], i + 1 == sections.size() || sections[i + 1].begins);
    }
    closing();
    return picture_.svg(y_ + 4);
  }

 private:
  // Across, in pixels.
  static constexpr double width = 860;  // of a README
  static constexpr double left = 14, right = width - 14;
  static constexpr double stream_x = 34, branch_x = 160;
  static constexpr double box_left = 66, box_right = 254;  // of the branch
  static constexpr double inner_left = 86, inner_right = 234, bus_left = 74, bus_right = 246;
  static constexpr std::array<double, 5> columns{266, 410, 566, 722, right};
  // Down.
  static constexpr double size = 12.5, line = 17, gap = 13;

  /// A row with its height, and the lines of its label and of each of its cells.
  struct MeasuredRow {
    const BlockRow* row;
    std::vector<std::string> label;
    std::array<std::vector<std::string>, 4> lines;
    double height;
  };

  static double label_x(BlockPlace place) {
    return place == BlockPlace::stream     ? left + 14
           : place == BlockPlace::parallel ? inner_left + 8
           : place == BlockPlace::merge    ? stream_x + 14
                                           : box_left + 10;
  }

  static MeasuredRow measured(const BlockRow& row, BlockPlace place) {
    MeasuredRow result{&row, wrapped(row.label, columns[0] - label_x(place), size), {}, 0};
    result.height = static_cast<double>(result.label.size()) * line + 7;
    for (std::size_t c = 0; c < 4; ++c) {
      const double room = columns[c + 1] - columns[c] - 20;
      const std::string all = fmt::format("{}", fmt::join(row.cells[c].terms, ", "));
      if (text_width(all, size) <= room) {
        if (!all.empty()) result.lines[c] = {all};
      } else {
        for (const std::string& term : row.cells[c].terms) add_term(result.lines[c], term, room);
      }
      const double height = static_cast<double>(result.lines[c].size()) * line + 7;
      if (height > result.height) result.height = height;
    }
    return result;
  }

  /// "0.48 = 1/m_N" on one line where it fits; otherwise value and formula on lines of their own.
  static void add_term(std::vector<std::string>& lines, const std::string& term, double room) {
    const std::size_t equals = term.find(" = ");
    const bool one = text_width(term, size) <= room || equals == std::string::npos;
    const auto add = [&](std::string_view part) {
      for (std::string& text : wrapped(part, room, size)) lines.push_back(std::move(text));
    };
    if (one) return add(term);
    add(std::string_view(term).substr(0, equals));
    add(std::string_view(term).substr(equals + 1));
  }

  void heading() {
    for (const std::string& text :
         wrapped(block_title(plan_), (right - left) / bold_to_plain, 17)) {
      picture_.text({left, y_ += 24}, text, {17, true});
    }
    picture_.text({left, y_ += 20}, plan_subtitle(plan_), {size, false, true});
    y_ += 32;
    const std::array<std::string_view, 4> names{
        "multiplier", plan_.reference == Reference::base ? "init variance / base" : "init variance",
        "learning rate", "weight decay"};
    for (std::size_t c = 0; c < 4; ++c) {
      picture_.text({columns[c] + 10, y_}, names[c], {size, true});
    }
    y_ += 8;
  }

  void closing() {
    y_ += 24;
    picture_.box({left, y_ - 12}, 26, 16, Fill::below);
    picture_.text({left + 34, y_}, "a factor below 1", {size});
    picture_.box({left + 180, y_ - 12}, 26, 16, Fill::above);
    picture_.text({left + 214, y_}, "a factor above 1", {size});
    picture_.text({left + 360, y_}, "Rates and decays are factors on the global ones.",
                  {size, false, true});
    y_ += 8;
    for (const std::string& text : plan_sources(plan_)) paragraph(text);
    y_ += 8;
  }

  void paragraph(const std::string& text) {
    for (const std::string& part : wrapped(text, right - left, 12)) {
      picture_.text({left, y_ += line}, part, {12, false, true});
    }
  }

  /// `last_section`: its stream leaves the picture.
  void draw(const BlockSection& section, bool last_section) {
    std::vector<std::vector<MeasuredRow>> parts;
    double height = 0;
    for (const BlockPart& part : section.parts) {
      auto& rows = parts.emplace_back();
      for (const BlockRow& row : part.rows) rows.push_back(measured(row, part.place));
      height += height_of(part, rows);
    }
    const double frame = section.framed ? 10 : 0;  // around the parts
    const double top = y_ + frame;
    if (section.begins) y_ += 10;
    y_ += frame + 20;
    const double bottom = y_ + height + frame;
    if (section.framed) {
      picture_.box({left - 8, top}, box_right - left + 16, bottom - top, Fill::none);
    }
    // The line begins within its first box. That of the shallow encoder is not a residual stream.
    const bool shallow = plan_.shape.blocks == Blocks::shallow_encoder;
    const double from = section.begins ? y_ + gap + 1 : top - frame;
    const double to = bottom + frame;
    if (!shallow) picture_.stream({stream_x, from}, {stream_x, to}, false);
    if (shallow && section.framed) {
      picture_.wire({{branch_x, bottom - frame}, {branch_x, to + 20 + gap}}, true);
    }
    if (last_section) picture_.stream({stream_x, to}, {stream_x, to + 14}, true);
    const bool beside = !shallow && !section.begins;  // the line
    picture_.text({beside ? stream_x + 18 : left + 4, y_ - 2}, section.title, {size, true});
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const bool first = i == 0 || section.parts[i - 1].place != BlockPlace::parallel;
      const bool last = i + 1 == parts.size() || section.parts[i + 1].place != BlockPlace::parallel;
      draw(section.parts[i].place, parts[i], first, last, !shallow && !(section.begins && i == 0));
    }
    y_ += 2 * frame + (last_section ? 14 : 0);
  }

  static double height_of(const BlockPart& part, const std::vector<MeasuredRow>& rows) {
    double height = part.place == BlockPlace::fork ? 12 : gap;
    if (part.place == BlockPlace::merge) height += 22;
    for (const MeasuredRow& row : rows) height += row.height;
    return height;
  }

  /// `first`, `last`: of boxes next to each other. `arrow`: the stream comes from above.
  void draw(BlockPlace place, const std::vector<MeasuredRow>& rows, bool first, bool last,
            bool arrow) {
    double height = 0;
    for (const MeasuredRow& row : rows) height += row.height;
    switch (place) {
      case BlockPlace::fork:
        picture_.wire({{stream_x, y_ + 6}, {branch_x, y_ + 6}, {branch_x, y_ + 12}}, false);
        y_ += 12;
        return;
      case BlockPlace::stream:
        if (arrow) picture_.stream({stream_x, y_}, {stream_x, y_ + gap}, true);
        y_ += gap;
        picture_.box({left + 4, y_}, box_right - left - 4, height, Fill::box);
        break;
      case BlockPlace::branch:
        picture_.wire({{branch_x, y_}, {branch_x, y_ + gap}}, true);
        y_ += gap;
        picture_.box({box_left, y_}, box_right - box_left, height, Fill::box);
        break;
      case BlockPlace::parallel:
        draw_buses(height, first, last);
        break;
      case BlockPlace::merge:
        picture_.wire({{branch_x, y_}, {branch_x, y_ + gap}, {stream_x + 9, y_ + gap}}, true);
        picture_.plus({stream_x, y_ + gap});
        y_ += gap + 14;
        break;
    }
    for (const MeasuredRow& row : rows) draw(row, label_x(place));
    if (place == BlockPlace::merge) y_ += 8;
  }

  /// The wires into and out of a box that stands next to others, and the box.
  void draw_buses(double height, bool first, bool last) {
    const double in = first ? y_ + gap / 2 : y_;
    const double middle = y_ + gap + height / 2;
    if (first) picture_.wire({{branch_x, y_}, {branch_x, in}, {bus_left, in}}, false);
    picture_.wire({{bus_left, in}, {bus_left, middle}, {inner_left, middle}}, true);
    const double out = y_ + gap + height;
    picture_.wire({{inner_right, middle}, {bus_right, middle}, {bus_right, out}}, false);
    if (last) {
      picture_.wire({{bus_right, out}, {bus_right, out + 6}, {branch_x, out + 6}}, false);
    } else {
      picture_.wire({{bus_left, middle}, {bus_left, out}}, false);
    }
    if (!first) picture_.wire({{bus_right, y_}, {bus_right, middle}}, false);
    y_ += gap;
    picture_.box({inner_left, y_}, inner_right - inner_left, height, Fill::box);
  }

  void draw(const MeasuredRow& row, double label) {
    for (std::size_t i = 0; i < row.label.size(); ++i) {
      picture_.text({label, y_ + 16 + static_cast<double>(i) * line}, row.label[i]);
    }
    bool any = false;
    for (std::size_t c = 0; c < 4; ++c) {
      const std::vector<std::string>& lines = row.lines[c];
      if (lines.empty()) continue;
      any = true;
      const BlockCell& cell = row.row->cells[c];
      if (cell.fill != Fill::none) {
        double widest = 0;
        for (const std::string& text : lines) {
          const double wide = text_width(text, size);
          if (wide > widest) widest = wide;
        }
        picture_.box({columns[c] + 4, y_ + 2}, widest + 12,
                     static_cast<double>(lines.size()) * line + 3, cell.fill);
      }
      for (std::size_t i = 0; i < lines.size(); ++i) {
        picture_.text({columns[c] + 10, y_ + 16 + static_cast<double>(i) * line}, lines[i],
                      {size, false, false, false, cell.of});
      }
    }
    y_ += row.height;
    if (any) picture_.rule({columns[0], y_ + 0.5}, {right, y_ + 0.5});
  }

  const Plan& plan_;
  SvgPicture picture_;
  double y_ = 6;
};

}  // namespace detail

/// A picture of a plan: what the model consists of, with every multiplier, initial variance, learning
/// rate and weight decay next to where it acts.
/// Units:    as in the plan; a number that differs between layers is a range.
/// Accuracy: four digits. Adam's epsilon and the base's own numbers are not in the picture.
/// Returns:  an SVG file, 860 pixels wide, for a light and a dark page.
/// Requires: a plan with tensors.
inline std::string block_svg(const Plan& plan) { return detail::BlockLayout(plan).svg(); }

}  // namespace scalewise::plot
