// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

namespace scalewise::plot {

/// One curve of a panel; `low` and `high`, when given, are error bars.
/// Shapes:   x, y and, unless empty, low and high have one length.
struct Curve {
  std::string label = {};  // empty: not in the legend, and grey
  std::vector<double> x = {}, y = {};
  std::vector<double> low = {}, high = {};
  bool line = true;
  bool points = true;
  bool dashed = false;  // predictions
};

/// One coordinate system.
struct Panel {
  std::string title = {};
  std::string x_label = {};
  std::string y_label = {};
  bool log_x = false;  // base 2
  bool log_y = false;  // base 10
  std::vector<Curve> curves = {};
};

/// Panels side by side, at most three in a row, over one legend: curves of the same label
/// share a colour and an entry of it.
struct Figure {
  std::string title;
  std::vector<Panel> panels;
};

}  // namespace scalewise::plot
