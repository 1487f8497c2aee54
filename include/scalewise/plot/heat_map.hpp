// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/plot/svg_picture.hpp"

namespace scalewise::plot {

/// A number by its colour.
struct HeatCell {
  double value = 0;        // 0: no colour; NaN: grey, there is no number
  std::string hover = {};  // what a reader sees who points at it
  std::string label = {};  // in the cell, where those of all cells fit
  bool marked = false;     // framed
};

/// Cells of all panels, one after the other; none where there is nothing to show.
struct HeatRow {
  std::string label;
  std::vector<std::optional<HeatCell>> cells;
  std::string note = {};  // to the right; its lines end in \n
  bool marked = false;    // bold
};

/// Columns that belong together, such as steps or layers.
struct HeatPanel {
  std::string title;
  std::vector<long> columns;

  friend bool operator==(const HeatPanel&, const HeatPanel&) = default;
};

/// Rows over the same panels. The columns of a block that has the panels of the one before are not
/// labelled again.
struct HeatBlock {
  std::string title;
  std::vector<HeatPanel> panels;
  std::vector<HeatRow> rows;
};

/// The colours: none at 0, full from `limit` on, orange below and blue above.
struct HeatScale {
  double limit = 1;
  std::vector<std::pair<double, std::string>> marks;  // in order, from -limit to limit
  std::string meaning;
};

struct HeatMap {
  std::string title;  // the result
  std::string subtitle;
  std::vector<HeatBlock> blocks;
  HeatScale scale;
  std::vector<std::string> lines = {};  // below
};

namespace detail {

/// Draws a heat map from top to bottom.
class HeatLayout {
 public:
  explicit HeatLayout(const HeatMap& map) : map_(map), picture_(width, map.title) { measure(); }

  std::string svg() {
    for (const std::string& text : wrapped(map_.title, room / bold_to_plain, 17)) {
      picture_.text({left, y_ += 24}, text, {17, true});
    }
    paragraph(map_.subtitle, size, 20);
    const std::vector<HeatPanel>* above = nullptr;
    for (const HeatBlock& block : map_.blocks) {
      draw(block, above == nullptr || *above != block.panels);
      above = &block.panels;
    }
    legend();
    for (const std::string& text : map_.lines) paragraph(text, 12, 17);
    return picture_.svg(y_ + 12);
  }

 private:
  // In pixels.
  static constexpr double width = 860;  // of a README
  static constexpr double left = 14, room = width - 2 * left, gap = 14;
  static constexpr double size = 12, line = 15;
  static constexpr double widest_label = 190, widest_note = 200, widest_cell = 44;

  static double text_width_of(const std::string& text, bool is_bold) {
    return text_width(text, size) * (is_bold ? bold_to_plain : 1);
  }

  static double widest_of(const std::vector<std::string>& lines, bool is_bold) {
    double widest = 0;
    for (const std::string& text : lines) {
      const double wide = text_width_of(text, is_bold);
      if (wide > widest) widest = wide;
    }
    return widest;
  }

  static std::vector<std::string> lines_of(std::string_view text, double widest, bool is_bold) {
    std::vector<std::string> lines;
    while (!text.empty()) {
      const std::size_t end = (std::min)(text.find('\n'), text.size());
      for (std::string& part :
           wrapped(text.substr(0, end), widest / (is_bold ? bold_to_plain : 1), size)) {
        lines.push_back(std::move(part));
      }
      text.remove_prefix((std::min)(end + 1, text.size()));
    }
    return lines;
  }

  /// Widths of the labels, of the notes, of a cell and of all of them side by side.
  void measure() {
    for (const HeatBlock& block : map_.blocks) {
      for (const HeatRow& row : block.rows) {
        const double label = widest_of(lines_of(row.label, widest_label, row.marked), row.marked);
        const double note = widest_of(lines_of(row.note, widest_note, row.marked), row.marked);
        if (label > label_) label_ = label;
        if (note > note_) note_ = note;
      }
    }
    const double cells = room - label_ - 10 - (note_ > 0 ? note_ + 12 : 0);
    cell_ = widest_cell;
    for (const HeatBlock& block : map_.blocks) {
      while (cell_ > 0.01 && width_of(block) > cells) cell_ *= 0.98;
    }
    for (const HeatBlock& block : map_.blocks) cells_ = (std::max)(cells_, width_of(block));
    labels_fit_ = true;
    for (const HeatBlock& block : map_.blocks) {
      for (const HeatRow& row : block.rows) {
        for (const std::optional<HeatCell>& cell : row.cells) {
          if (cell && text_width(cell->label, 11) + 3 > cell_) labels_fit_ = false;
        }
      }
    }
  }

  double width_of(const HeatPanel& panel) const {
    const double cells = static_cast<double>(panel.columns.size()) * cell_;
    const double title = text_width_of(panel.title, true);
    return cells > title ? cells : title;
  }

  double width_of(const HeatBlock& block) const {
    double all = 0;
    for (const HeatPanel& panel : block.panels) all += width_of(panel) + (all > 0 ? gap : 0);
    return all;
  }

  double cells_left() const { return left + label_ + 10; }

  void paragraph(const std::string& text, double font, double height) {
    if (text.empty()) return;
    for (const std::string& part : wrapped(text, room, font)) {
      picture_.text({left, y_ += height}, part, {font, false, true});
    }
  }

  void draw(const HeatBlock& block, bool labelled) {
    y_ += 12;
    if (!block.title.empty()) {
      for (const std::string& text : wrapped(block.title, room / bold_to_plain, 13)) {
        picture_.text({left, y_ += 18}, text, {13, true});
      }
    }
    if (labelled) label_columns(block.panels);
    y_ += 5;
    for (const HeatRow& row : block.rows) draw(block.panels, row);
  }

  /// The titles of panels, and below them as many numbers of columns as there is room for.
  void label_columns(const std::vector<HeatPanel>& panels) {
    double x = cells_left();
    y_ += 18;
    for (const HeatPanel& panel : panels) {
      picture_.text({x, y_}, panel.title, {size, true});
      label_columns(panel, x);
      x += width_of(panel) + gap;
    }
    y_ += 16;
  }

  void label_columns(const HeatPanel& panel, double x) {
    double widest = 0;
    for (const long column : panel.columns) {
      const double wide = text_width(std::to_string(column), 11);
      if (wide > widest) widest = wide;
    }
    const auto fits = [&](long step) { return static_cast<double>(step) * cell_ >= widest + 10; };
    long step = 1;
    while (!fits(step) && step < 100000000) {
      for (const long next : {2 * step, 5 * step, 10 * step}) {
        step = next;
        if (fits(step)) break;
      }
    }
    for (std::size_t i = 0; i < panel.columns.size(); ++i) {
      if (panel.columns[i] % step != 0 && panel.columns.size() > 1) continue;
      picture_.text({x + (static_cast<double>(i) + 0.5) * cell_, y_ + 16},
                    std::to_string(panel.columns[i]), {11, false, true, true});
    }
  }

  void draw(const std::vector<HeatPanel>& panels, const HeatRow& row) {
    const std::vector<std::string> label = lines_of(row.label, widest_label, row.marked);
    const std::vector<std::string> note = lines_of(row.note, widest_note, row.marked);
    const std::size_t lines = label.size() > note.size() ? label.size() : note.size();
    const double height = static_cast<double>(lines > 0 ? lines : 1) * line + 4;
    write(label, left, row.marked);
    double x = cells_left();
    std::size_t at = 0;
    for (const HeatPanel& panel : panels) {
      for (std::size_t i = 0; i < panel.columns.size(); ++i, ++at) {
        if (at >= row.cells.size() || !row.cells[at]) continue;
        draw(*row.cells[at], {x + static_cast<double>(i) * cell_, y_}, height);
      }
      x += width_of(panel) + gap;
    }
    write(note, cells_left() + cells_ + 12, row.marked);
    y_ += height;
  }

  void write(const std::vector<std::string>& lines, double x, bool is_bold) {
    double y = y_ + 13;
    for (const std::string& text : lines) {
      picture_.text({x, y}, text, {size, is_bold});
      y += line;
    }
  }

  /// Cells of a pixel or two are drawn side by side, larger ones apart.
  void draw(const HeatCell& cell, Pixel at, double height) {
    const double apart = cell_ > 4 ? 1 : 0;
    const double w = cell_ - apart;
    const double h = height - 1;
    picture_.ground(at, w, h);
    const double part = cell.value / map_.scale.limit;
    const double shade = part > 1 ? 1 : part < -1 ? -1 : part;
    const bool framed = cell.marked && cell_ > 8;
    const double inset = framed ? 1 : 0;  // half of the frame
    picture_.cell({at.x + inset, at.y + inset}, w - 2 * inset, h - 2 * inset, shade, framed,
                  cell.hover);
    if (!labels_fit_ || cell.label.empty()) return;
    picture_.text({at.x + w / 2, at.y + h / 2 + 4}, cell.label, {11, false, false, true});
  }

  /// The colours at the marks, from the lowest to the highest.
  void legend() {
    y_ += 14;
    double x = left;
    for (const auto& [value, text] : map_.scale.marks) {
      const double label = text_width(text, 11);
      const double w = label + 12 > 40 ? label + 12 : 40;
      picture_.ground({x, y_}, w, 18);
      picture_.cell({x, y_}, w, 18, value / map_.scale.limit, false, text);
      picture_.text({x + w / 2, y_ + 13}, text, {11, false, false, true});
      x += w;
    }
    const double from = x + 10;
    double y = y_ + 13;
    for (const std::string& text : wrapped(map_.scale.meaning, left + room - from, size)) {
      picture_.text({from, y}, text, {size});
      y += line;
    }
    y_ = y > y_ + 24 ? y - 6 : y_ + 24;
  }

  const HeatMap& map_;
  SvgPicture picture_;
  double y_ = 6, label_ = 0, note_ = 0, cell_ = 0, cells_ = 0;
  bool labels_fit_ = false;
};

}  // namespace detail

/// A heat map: numbers as colours, with rows in blocks and columns in panels.
/// Units:    of the scale; colours are proportional to the number, up to its limit
/// Returns:  an SVG file, 860 pixels wide, for a light and a dark page. Pointing at a cell shows its
///           text.
/// Requires: a limit above 0.
inline std::string heat_map_svg(const HeatMap& map) { return detail::HeatLayout(map).svg(); }

}  // namespace scalewise::plot
