// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "lab/programs/check/alignment_probe.hpp"

#include <algorithm>
#include <string_view>

#include "scalewise/nn/linear.hpp"

namespace scalewise::experiment {

namespace {

/// The name under which an observer sees what a matrix reads; empty for what is not measured.
std::string input_of(const Entry& entry) {
  const std::string_view group = to_string(entry.group);
  const std::string prefix = entry.name.substr(0, entry.name.size() - group.size());
  switch (entry.group) {
    case Group::query:
    case Group::key:
    case Group::value:
      return prefix + "attention.input";
    case Group::attention_output:
      return prefix + "attention.heads";
    case Group::mlp_up:
    case Group::mlp_gate:
      return prefix + "mlp.input";
    case Group::mlp_down:
      return prefix + "mlp.hidden";
    case Group::head:
      return "final_hidden";
    default:
      return "";
  }
}

std::vector<float> difference(const Array& a, const std::vector<float>& b) {
  std::vector<float> result(b.size());
  for (std::size_t i = 0; i < b.size(); ++i) result[i] = a.data[i] - b[i];
  return result;
}

ConstView<float> eigen(const Array& a) {
  return {a.data, static_cast<Eigen::Index>(a.rows), static_cast<Eigen::Index>(a.columns),
          Eigen::OuterStride<>(static_cast<Eigen::Index>(a.columns))};
}

std::vector<double> product_norms(const Array& x, const Array& w) {
  std::vector<float> product(x.rows * w.columns);
  nn::multiply(1.0F, eigen(x), eigen(w),
               View<float>(product.data(), static_cast<Eigen::Index>(x.rows),
                           static_cast<Eigen::Index>(w.columns),
                           Eigen::OuterStride<>(static_cast<Eigen::Index>(w.columns))));
  return check::row_norms(Array{product.data(), x.rows, w.columns});
}

/// Of the rows that are kept, 256 at most.
std::size_t stride_of(std::size_t rows) {
  constexpr std::size_t most = 256;
  return (rows + most - 1) / most;
}

}  // namespace

std::size_t AlignmentProbe::rows_of(std::size_t tokens) { return tokens / stride_of(tokens); }

AlignmentProbe::AlignmentProbe(Network& network) {
  const Plan& plan = network.plan();
  for (std::size_t i = 0; i < plan.entries.size(); ++i) {
    const Entry& entry = plan.entries[i];
    const std::string input = input_of(entry);
    if (input.empty()) continue;
    const Array w = network.tensor(i);
    matrices_.push_back({i,
                         std::string(to_string(entry.group)),
                         entry.group != Group::head,
                         input,
                         {w.data, w.data + w.rows * w.columns}});
  }
  initial_inputs_ = inputs(network);
}

std::map<std::string, AlignmentProbe::Rows> AlignmentProbe::inputs(Network& network) const {
  std::map<std::string, Rows> all;
  for (const Matrix& matrix : matrices_) all[matrix.input];
  network.observe(
      [&](std::string_view name, bool /*gradient*/, const Array& values) {
        const auto found = all.find(std::string(name));
        if (found == all.end()) return;
        Rows& rows = found->second;
        rows.columns = values.columns;
        const std::size_t stride = stride_of(values.rows);
        for (std::size_t r = stride - 1; r < values.rows; r += stride) {
          rows.entries.insert(rows.entries.end(), values.row(r), values.row(r) + values.columns);
          ++rows.rows;
        }
      },
      false);
  return all;
}

void AlignmentProbe::measure(Network& network, check::Alignments& alignments) const {
  const std::map<std::string, Rows> present = inputs(network);
  for (const Matrix& matrix : matrices_) {
    const Array w = network.tensor(matrix.entry);
    const Rows& initial = initial_inputs_.at(matrix.input);
    const Array x = present.at(matrix.input).view();
    const std::vector<float> dw = difference(w, matrix.initial);
    const std::vector<float> dx = difference(x, initial.entries);
    const Array w0{matrix.initial.data(), w.rows, w.columns};
    const Array dw_view{dw.data(), w.rows, w.columns};
    const Array dx_view{dx.data(), x.rows, x.columns};
    const check::Alignment a = check::alignment({.fan_in = w.rows,
                                                 .w0 = check::frobenius_norm(w0),
                                                 .dw = check::frobenius_norm(dw_view),
                                                 .x0 = check::row_norms(initial.view()),
                                                 .dx = check::row_norms(dx_view),
                                                 .x0_dw = product_norms(initial.view(), dw_view),
                                                 .dx_w0 = product_norms(dx_view, w0),
                                                 .dx_dw = product_norms(dx_view, dw_view)});
    alignments.add(matrix.group, a);
    if (matrix.hidden) alignments.add(all_hidden, a);
  }
}

}  // namespace scalewise::experiment
