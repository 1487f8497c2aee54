// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Which constants matter, and how well the best is known: a quadratic in their logarithms.
#pragma once

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace scalewise::tune {

/// A loss at a place in the box: -1 to 1 along each axis, by the logarithm.
struct Point {
  std::vector<double> at;
  long group = 0;  // runs of one length and seed, which have a level of their own
  double loss = 0;
  bool is_short = false;  // of fewer steps than the best, whose place may be another
};

/// The effect of an axis by the quadratic.
struct AxisEffect {
  // How much higher the loss is, half of the box away from the best toward the other side, and its standard error.
  double effect = 0, error = std::numeric_limits<double>::infinity();  // not known
  // The places around the best whose loss is not significantly above its.
  double low = -1, high = 1;

  bool is_known() const { return std::isfinite(error); }
};

/// A quadratic with all interactions, fitted by ridge regression.
/// Equation: loss = level of its group + Σ b_i x_i + Σ c_ij x_i x_j, of short runs + Σ s_i x_i, since their best place may be
///           another; the penalty λ Σ(b² + c² + s²) has the λ of least
///           generalized cross-validation. Covariance, with M = (XᵀX + λ)⁻¹: M Xᵀ diag(r²) X M + λσ² M², where r are
///           the residuals of runs that are left out themselves, which see what is not quadratic
/// Source:   Golub, Heath and Wahba 1979, doi:10.1080/00401706.1979.10489751; r: MacKinnon and White 1985,
///           doi:10.1016/0304-4076(85)90158-7; runs above the third quartile by more than 1.5 times the range of
///           quartiles are left out: Tukey 1977, Exploratory Data Analysis
/// Accuracy: two standard errors hold the effect of one among two or more constants in 85 to 97 %, of a single one in 69 %,
///           where the curve is no parabola; the range holds the best value in 94 to 99 %
///           (lab/studies/error_rates/tune_errors.cpp)
class Quadratic {
 public:
  /// `lost`: places of runs without a loss, beyond which no place is as good as the best
  explicit Quadratic(std::vector<Point> points, std::vector<std::vector<double>> lost = {})
      : points_(std::move(points)), lost_(std::move(lost)) {
    leave_out_outliers();
    std::set<std::vector<double>> places;
    for (const Point& p : points_) places.insert(p.at);
    if (places.size() < 3) return;  // which have no bend
    axes_ = points_.front().at.size();
    fit();
  }

  bool fitted() const { return coefficients_.size() > 0; }
  std::size_t used() const { return points_.size(); }

  /// Of each axis, seen from the best place.
  std::vector<AxisEffect> effects(const std::vector<double>& best) const {
    std::vector<AxisEffect> all(best.size());
    if (!fitted()) return all;
    for (std::size_t j = 0; j < best.size(); ++j) {
      const auto rise = [&](double to) {
        std::vector<double> there = best;
        there[j] = to;
        const Eigen::VectorXd step = terms(there) - terms(best);
        return std::pair(step.dot(coefficients_), std::sqrt(step.dot(covariance_ * step)));
      };
      std::tie(all[j].effect, all[j].error) = rise(best[j] > 0 ? best[j] - 1 : best[j] + 1);
      const auto reach = [&](double toward) {
        double last = best[j];
        for (int i = 1; i <= 50; ++i) {
          const double to = best[j] + (toward - best[j]) * i / 50;
          const auto [loss, error] = rise(to);
          if (loss > 2 * error) break;
          last = to;
        }
        return last;
      };
      all[j].low = reach(end(j, -1)), all[j].high = reach(end(j, 1));
    }
    return all;
  }

 private:
  void leave_out_outliers() {
    std::map<long, std::vector<double>> losses;
    for (const Point& p : points_) losses[p.group].push_back(p.loss);
    std::map<long, double> most;
    for (auto& [group, all] : losses) {
      std::sort(all.begin(), all.end());
      const double first = all[all.size() / 4], third = all[all.size() * 3 / 4];
      most[group] = third + 1.5 * (third - first);
    }
    const auto is_outlier = [&](const Point& p) { return p.loss > most.at(p.group); };
    for (const Point& p : points_) {
      if (is_outlier(p)) lost_.push_back(p.at);
    }
    std::erase_if(points_, is_outlier);
  }

  /// The end of an axis in one direction, or the last point that was fitted where runs beyond it are lost.
  double end(std::size_t axis, double toward) const {
    double last = -1;
    for (const Point& p : points_) last = std::max(last, toward * p.at[axis]);
    const bool beyond = std::any_of(lost_.begin(), lost_.end(),
                                    [&](const auto& at) { return toward * at[axis] > last; });
    return toward * (beyond ? last : 1);
  }

  Eigen::Index axes() const { return static_cast<Eigen::Index>(axes_); }

  Eigen::VectorXd terms(const std::vector<double>& at) const {
    const Eigen::Index d = axes();
    Eigen::VectorXd x(d + d * (d + 1) / 2);
    Eigen::Index k = 0;
    for (const double v : at) x[k++] = v;
    for (std::size_t i = 0; i < axes_; ++i) {
      for (std::size_t j = i; j < axes_; ++j) x[k++] = at[i] * at[j];
    }
    return x;
  }

  /// M Xᵀ diag(r²) X M
  static Eigen::MatrixXd errors(const Eigen::MatrixXd& x, Eigen::VectorXd r,
                                const Eigen::VectorXd& own, const Eigen::MatrixXd& inverse) {
    const Eigen::MatrixXd product = x * inverse;
    for (Eigen::Index i = 0; i < r.size(); ++i) {
      const double others = 1 - own[i] - product.row(i).dot(x.row(i));
      r[i] = others > 1e-9 ? r[i] / others : 0;  // a run alone in its group says nothing
    }
    const Eigen::MatrixXd weighted = r.asDiagonal() * product;
    return weighted.transpose() * weighted;
  }

  /// Levels of groups are not penalized: terms and losses are taken from the means of their group.
  void fit() {
    const auto n = static_cast<Eigen::Index>(points_.size());
    const Eigen::Index shape = terms(points_.front().at).size(), p = shape + axes();
    Eigen::MatrixXd x = Eigen::MatrixXd::Zero(n, p);
    Eigen::VectorXd y(n);
    std::map<long, std::vector<Eigen::Index>> groups;
    for (Eigen::Index i = 0; i < n; ++i) {
      const Point& point = points_[static_cast<std::size_t>(i)];
      x.row(i).head(shape) = terms(point.at).transpose();
      if (point.is_short) x.row(i).tail(axes()) = x.row(i).head(axes());
      y[i] = point.loss;
      groups[point.group].push_back(i);
    }
    Eigen::VectorXd own(n);  // what a run has in the level of its group
    for (const auto& [group, rows] : groups) {
      Eigen::RowVectorXd mean = Eigen::RowVectorXd::Zero(p);
      double level = 0;
      for (const Eigen::Index i : rows) mean += x.row(i), level += y[i];
      for (const Eigen::Index i : rows) {
        x.row(i) -= mean / static_cast<double>(rows.size());
        y[i] -= level / static_cast<double>(rows.size());
        own[i] = 1.0 / static_cast<double>(rows.size());
      }
    }
    const Eigen::MatrixXd squared = x.transpose() * x, one = Eigen::MatrixXd::Identity(p, p);
    const Eigen::VectorXd projected = x.transpose() * y;
    const auto levels = static_cast<double>(groups.size());
    double least = std::numeric_limits<double>::infinity();
    for (double lambda = 1e-6; lambda < 1e3; lambda *= 2) {
      const Eigen::MatrixXd inverse = (squared + lambda * one).llt().solve(one);
      const Eigen::VectorXd b = inverse * projected;
      const double used = static_cast<double>(p) - lambda * inverse.trace();  // degrees of freedom
      const double left = static_cast<double>(n) - levels - used;
      if (left < 1) continue;
      const double squares = (y - x * b).squaredNorm();
      if (squares / (left * left) >= least) continue;
      least = squares / (left * left);
      coefficients_ = b.head(shape);
      covariance_ =
          (errors(x, y - x * b, own, inverse) + lambda * squares / left * inverse * inverse)
              .topLeftCorner(shape, shape);
    }
  }

  std::vector<Point> points_;
  std::vector<std::vector<double>> lost_;
  std::size_t axes_ = 0;
  Eigen::VectorXd coefficients_;
  Eigen::MatrixXd covariance_;
};

}  // namespace scalewise::tune
