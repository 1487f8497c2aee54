// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/core.h>

#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/plot/svg_text.hpp"

namespace scalewise::plot {

/// A point of a picture.
/// Units:    pixels from the left and from the top
struct Pixel {
  double x = 0, y = 0;
};

/// How a text of a picture is set.
struct TextStyle {
  double size = 12.5;
  bool bold = false;
  bool muted = false;
  bool centred = false;   // about x, rather than from there
  std::string_view of{};  // the number that it shows, as the attribute data-number
};

/// The colours of a filled shape: of paper, of boxes, and of numbers below and above 1.
enum class Fill { none, box, below, above };

/// A picture of boxes, lines, cells and texts as SVG, in the order in which they are drawn. Its colours
/// follow the reader's choice of light or dark, and stay apart for colour-blind readers: orange and
/// blue from Okabe and Ito, "Color Universal Design" (2008).
/// Units:    pixels
class SvgPicture {
 public:
  SvgPicture(double width, std::string title) : width_(width), title_(std::move(title)) {}

  /// `at` is the left end of the base line, or its middle.
  void text(Pixel at, std::string_view text, const TextStyle& style = {}) {
    if (text.empty()) return;
    body_ += fmt::format("<text x=\"{:.10g}\" y=\"{:.10g}\" font-size=\"{:.10g}\" class=\"{}\"",
                         at.x, at.y, style.size, style.muted ? "m" : "i");
    if (style.bold) body_ += " font-weight=\"bold\"";
    if (style.centred) body_ += " text-anchor=\"middle\"";
    if (!style.of.empty()) body_ += " data-number=\"" + xml_text(style.of) + "\"";
    body_ += ">" + xml_text(text) + "</text>\n";
  }

  /// A rectangle with round corners, given from its top left.
  void box(Pixel at, double width, double height, Fill fill) {
    static constexpr std::string_view classes[] = {"f", "b", "lo", "hi"};
    body_ += fmt::format(
        "<rect x=\"{:.10g}\" y=\"{:.10g}\" width=\"{:.10g}\" height=\"{:.10g}\" rx=\"4\" "
        "class=\"{}\"/>\n",
        at.x, at.y, width, height, classes[static_cast<std::size_t>(fill)]);
  }

  /// The ground on which cells() of a row stand: what no shade is.
  void ground(Pixel at, double width, double height) {
    body_ += fmt::format(
        "<rect x=\"{:.10g}\" y=\"{:.10g}\" width=\"{:.10g}\" height=\"{:.10g}\" class=\"z\"/>\n",
        at.x, at.y, width, height);
  }

  /// A cell of a heat map. `shade`: from -1, full orange, to 1, full blue; NaN: grey. `hover`: what a
  /// reader sees who points at it.
  void cell(Pixel at, double width, double height, double shade, bool framed,
            std::string_view hover) {
    const bool grey = std::isnan(shade);
    body_ += fmt::format(
        "<rect x=\"{:.10g}\" y=\"{:.10g}\" width=\"{:.10g}\" height=\"{:.10g}\" "
        "class=\"{}{}\" fill-opacity=\"{:.3g}\">",
        at.x, at.y, width, height,
        grey        ? "n"
        : shade < 0 ? "lc"
                    : "hc",
        framed ? " k" : "", grey ? 0.6 : deepest * std::abs(shade));
    body_ += "<title>" + xml_text(hover) + "</title></rect>\n";
  }

  /// A thin line between the rows of a table.
  void rule(Pixel from, Pixel to) { path({from, to}, "r", false); }

  /// The path of a signal.
  void wire(const std::vector<Pixel>& points, bool arrow) { path(points, "w", arrow); }

  /// The path of the residual stream.
  void stream(Pixel from, Pixel to, bool arrow) { path({from, to}, "s", arrow); }

  /// Where two signals are added.
  void plus(Pixel at) {
    body_ +=
        fmt::format("<circle cx=\"{0:.10g}\" cy=\"{1:.10g}\" r=\"8\" class=\"b\"/>\n", at.x, at.y);
    path({{at.x - 5, at.y}, {at.x + 5, at.y}}, "w", false);
    path({{at.x, at.y - 5}, {at.x, at.y + 5}}, "w", false);
  }

  /// The file.
  std::string svg(double height) const {
    return fmt::format(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.10g}\" height=\"{1:.10g}\" "
               "viewBox=\"0 0 {0:.10g} {1:.10g}\" role=\"img\" "
               "font-family=\"'DejaVu Sans',Verdana,sans-serif\">\n<title>{2}</title>\n<style>\n",
               width_, height, xml_text(title_)) +
           std::string(style_sheet) +
           fmt::format(
               "</style>\n<defs><marker id=\"a\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" "
               "markerWidth=\"8\" markerHeight=\"8\" markerUnits=\"userSpaceOnUse\" "
               "orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" class=\"h\"/></marker></defs>\n"
               "<rect width=\"{:.10g}\" height=\"{:.10g}\" class=\"p\"/>\n",
               width_, height) +
           body_ + "</svg>\n";
  }

 private:
  static constexpr double deepest = 0.75;  // opacity; texts stand out by 4.5 to 1 even there

  static constexpr std::string_view style_sheet =
      ".p{fill:#fff}.i{fill:#1f2328}.m{fill:#57606a}\n"
      ".b{fill:#f6f8fa;stroke:#57606a}.f{fill:none;stroke:#8c959f;stroke-dasharray:5 4}\n"
      ".lo{fill:#fde3cf;stroke:#d55e00}.hi{fill:#d6e9f8;stroke:#0072b2}\n"
      ".w,.r,.s{fill:none;stroke:#57606a}.r{stroke:#d8dee4}.s{stroke-width:4}.h{fill:#57606a}\n"
      ".z{fill:#eef1f4}.n{fill:#8c959f}.lc{fill:#d55e00}.hc{fill:#0072b2}.k{stroke:#1f2328;stroke-"
      "width:2}\n"
      "@media(prefers-color-scheme:dark){.p{fill:#0d1117}.i{fill:#e6edf3}.m{fill:#9da7b1}\n"
      ".b{fill:#1c2430;stroke:#8b949e}.f{stroke:#6e7681}\n"
      ".lo{fill:#4f2a0c;stroke:#f0883e}.hi{fill:#0d3350;stroke:#58a6ff}\n"
      ".z{fill:#1c2430}.lc{fill:#cc5f14}.hc{fill:#2f81d6}.k{stroke:#e6edf3}\n"
      ".w,.s{stroke:#8b949e}.r{stroke:#2b333d}.h{fill:#8b949e}}\n";

  void path(const std::vector<Pixel>& points, std::string_view kind, bool arrow) {
    body_ += fmt::format("<path class=\"{}\" d=\"", kind);
    for (std::size_t i = 0; i < points.size(); ++i) {
      body_ += fmt::format("{}{:.10g} {:.10g}", i == 0 ? "M" : "L", points[i].x, points[i].y);
    }
    body_ += arrow ? "\" marker-end=\"url(#a)\"/>\n" : "\"/>\n";
  }

  double width_;
  std::string title_;
  std::string body_;
};

}  // namespace scalewise::plot
