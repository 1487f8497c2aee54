// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// kernels: time of the Gram matrices of digit images under a Struct attention kernel after dense
// layers, next to the same in numpy. Writes JSON; lab/timing/README.md explains it.
// Exit code: 0 done, 1 the two sides do not agree, 2 wrong arguments or a run that failed.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iomanip>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "child_process.hpp"
#include "lab/programs/kernel/windows.hpp"
#include "machine.hpp"
#include "scalewise/data/digits.hpp"
#include "scalewise/kernels/network_gram.hpp"
#include "summary.hpp"
#include "train/threads.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::benchmark;
using nlohmann::ordered_json;

struct Settings {
  std::string digits = SCALEWISE_BENCHMARK_DIR "/../../tools/data/digits.csv";
  long images = 1000;
  std::vector<long> strides{2};
  std::vector<long> depths{8};
  long rounds = 5;
  int threads = 0;
  std::string python;  // empty: the first with numpy
  bool no_numpy = false;
};

/// As in kernels_numpy.py.
kernels::Network network_of(long depth, kernels::Index side) {
  const double sigma_w = std::sqrt(1.7562);
  const double sigma_b = std::sqrt(0.1841);
  std::vector<kernels::Layer> layers;
  for (long i = 0; i < depth; ++i) {
    layers.emplace_back(kernels::Dense{sigma_w, sigma_b});
    layers.emplace_back(kernels::Nonlinearity{kernels::Function::relu});
  }
  kernels::SelfAttention attention;
  attention.encodings.geometry = kernels::Encodings::Geometry::grid;
  attention.encodings.sides = {side, side};
  attention.encodings.alpha = 0.75;
  attention.encodings.phi = 5;
  layers.emplace_back(attention);
  layers.emplace_back(kernels::LayerNorm{});
  layers.emplace_back(kernels::Flatten{});
  layers.emplace_back(kernels::Dense{sigma_w, sigma_b});
  return kernels::Network(layers);
}

std::vector<Matrix<>> inputs_of(const Settings& s, long stride) {
  const data::Images images = data::read_digits(s.digits);
  if (s.images > images.size()) {
    throw InvalidInput("--images", std::to_string(s.images),
                       "at most " + std::to_string(images.size()));
  }
  const auto pixels = static_cast<std::size_t>(images.side * images.side);
  std::vector<Matrix<>> inputs;
  for (long i = 0; i < s.images; ++i) {
    inputs.push_back(
        experiment::windows({images.pixels.row(i).data(), pixels}, images.side, stride));
  }
  return inputs;
}

/// The first of the usual interpreters that can import numpy.
std::string find_numpy() {
  for (const char* python : {"python3", "/usr/bin/python3"}) {
    try {
      ChildProcess trial({python, "-c", "try:\n import numpy\nexcept ImportError:\n exit(1)"});
      if (trial.wait() == 0) return python;
    } catch (const std::runtime_error&) {
      continue;  // no such interpreter
    }
  }
  throw std::runtime_error("no Python with numpy was found; give --python, or --no-numpy");
}

/// Floating-point operations of one pair: T tokens, products of matrices as 2NKM. A dense layer is 4
/// operations per pair of tokens, ReLU 63, counted in token_layers.hpp and relu_piece.hpp; of what leaves
/// attention, flatten reads the diagonal.
double flop_per_pair(double tokens, double features, double depth) {
  const double squares = tokens * tokens;
  const double input = 2 * features * squares;
  const double dense_and_relu = depth * (4 + 63) * squares;
  const double attention = 12 * squares + 2 * 2 * tokens * squares;
  return input + dense_and_relu + attention;
}

class Numpy {
 public:
  Numpy(const Settings& s, long stride, long depth, int processes)
      : process_({s.python, SCALEWISE_BENCHMARK_DIR "/kernels_numpy.py", "--digits", s.digits,
                  "--images", std::to_string(s.images), "--stride", std::to_string(stride),
                  "--depth", std::to_string(depth), "--processes", std::to_string(processes)}) {
    about_ = next();
  }

  const ordered_json& about() const { return about_; }
  double run() { return ask("run").at("seconds").get<double>(); }

  /// Both matrices, one after the other.
  std::vector<double> matrices(long images) {
    const std::string path = (std::filesystem::temp_directory_path() /
                              ("scalewise-kernels-" + std::to_string(::getpid())))
                                 .string();
    ask("write " + path);
    std::vector<double> values(static_cast<std::size_t>(2 * images * images));
    std::ifstream(path, std::ios::binary)
        .read(reinterpret_cast<char*>(values.data()),
              static_cast<std::streamsize>(values.size() * sizeof(double)));
    std::filesystem::remove(path);
    return values;
  }

 private:
  ordered_json ask(const std::string& line) {
    process_.write_line(line);
    return next();
  }
  ordered_json next() {
    const std::optional<std::string> line = process_.read_line();
    if (!line) throw std::runtime_error("kernels_numpy.py has ended");
    return ordered_json::parse(*line);
  }

  ChildProcess process_;
  ordered_json about_;
};

double largest_difference(const kernels::GramMatrices& gram, const std::vector<double>& values) {
  const auto n = gram.nngp.rows();
  double largest = 0;
  for (Eigen::Index i = 0; i < n * n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const auto of = [&](const Eigen::MatrixXd& m, double theirs) {
      const double ours = m(i / n, i % n);
      largest = std::max(largest, std::abs(theirs - ours) / std::abs(ours));
    };
    of(gram.nngp, values[at]);
    of(gram.ntk, values[static_cast<std::size_t>(n * n) + at]);
  }
  return largest;
}

/// Seconds that ours takes from the inputs to `gram`.
double run_ours(const std::vector<Matrix<>>& raw, long depth, kernels::GramMatrices& gram) {
  const auto side =
      static_cast<kernels::Index>(std::lround(std::sqrt(static_cast<double>(raw[0].rows()))));
  const auto start = std::chrono::steady_clock::now();
  const kernels::Network network = network_of(depth, side);
  const std::vector<kernels::PreparedInput> inputs = kernels::prepare(network, raw);
  gram = kernels::gram(static_cast<kernels::Index>(raw.size()),
                       kernels::NetworkPairs(network, inputs));
  return seconds_since(start);
}

/// Seconds of each side, ours first, in each round after one that warms up. Sides take turns,
/// forwards and backwards.
std::vector<std::vector<double>> take_turns(const std::string& title, long rounds,
                                            std::size_t sides,
                                            const std::function<double(std::size_t)>& run) {
  std::vector<std::vector<double>> seconds(sides);
  for (long round = 0; round <= rounds; ++round) {
    std::vector<double> now(sides);
    for (std::size_t i = 0; i < sides; ++i) {
      const std::size_t turn = round % 2 == 0 ? i : sides - 1 - i;
      now[turn] = run(turn);
    }
    std::cerr << title << ", round " << round << " of " << rounds << ": " << now[0] << " s";
    for (std::size_t i = 1; i < sides; ++i) std::cerr << ", numpy " << now[i] << " s";
    std::cerr << "\n";
    if (round == 0) continue;
    for (std::size_t i = 0; i < sides; ++i) seconds[i].push_back(now[i]);
  }
  return seconds;
}

ordered_json report_of(Numpy& numpy, const std::vector<double>& theirs,
                       const std::vector<double>& ours, const kernels::GramMatrices& gram) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < theirs.size(); ++i) ratios.push_back(theirs[i] / ours[i]);
  ordered_json report = numpy.about();
  report["seconds"] = summary(theirs);
  report["times_as_fast"] = summary(ratios);
  report["largest_relative_difference"] =
      largest_difference(gram, numpy.matrices(static_cast<long>(gram.nngp.rows())));
  return report;
}

/// One kernel: ours, numpy in one process and numpy in a process per core.
ordered_json measure(const Settings& s, long stride, long depth, int threads) {
  const std::vector<Matrix<>> raw = inputs_of(s, stride);
  std::vector<std::unique_ptr<Numpy>> numpy;
  if (!s.no_numpy) {
    numpy.push_back(std::make_unique<Numpy>(s, stride, depth, 1));
    if (threads > 1) numpy.push_back(std::make_unique<Numpy>(s, stride, depth, threads));
  }
  kernels::GramMatrices gram;
  const std::string title =
      std::to_string(raw[0].rows()) + " tokens, depth " + std::to_string(depth);
  const auto seconds = take_turns(title, s.rounds, numpy.size() + 1, [&](std::size_t side) {
    return side == 0 ? run_ours(raw, depth, gram) : numpy[side - 1]->run();
  });

  const auto tokens = static_cast<double>(raw[0].rows());
  const double pairs = static_cast<double>(s.images) * static_cast<double>(s.images + 1) / 2;
  const double flop =
      flop_per_pair(tokens, static_cast<double>(raw[0].cols()), static_cast<double>(depth));
  const double microseconds = median(seconds[0]) / pairs * 1e6 * threads;
  ordered_json report{{"tokens", tokens},
                      {"depth", depth},
                      {"flop_per_pair", flop},
                      {"scalewise",
                       {{"seconds", summary(seconds[0])},
                        {"core_microseconds_per_pair", microseconds},
                        {"gflop_per_s_and_core", flop / microseconds / 1e3}}}};
  auto& others = report["numpy"] = ordered_json::array();
  for (std::size_t i = 0; i < numpy.size(); ++i) {
    others.push_back(report_of(*numpy[i], seconds[i + 1], seconds[0], gram));
  }
  return report;
}

/// Whether the matrices agree, except at angles near zero, where arccos loses half its digits.
bool agrees(const ordered_json& result) {
  for (const ordered_json& numpy : result["numpy"]) {
    if (!(numpy["largest_relative_difference"] < 1e-7)) return false;
  }
  return true;
}

ordered_json build_report(int threads) {
  return {{"flags", SCALEWISE_BENCHMARK_FLAGS},
          {"simd", Eigen::SimdInstructionSetsInUse()},
          {"threads", threads},
          {"processor", cpu_model()},
          {"load_average", load_average()},
          {"thread_variables", thread_variables()}};
}

void add_options(CLI::App& app, Settings& s) {
  app.add_option("--digits", s.digits, "file of images")->capture_default_str();
  app.add_option("--images", s.images)->capture_default_str()->check(CLI::Range(2, 100000));
  app.add_option("--stride", s.strides, "of windows of pixels: 1, 2 and 4 make 64, 16 and 4 tokens")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--depth", s.depths, "dense layers")->delimiter(',')->capture_default_str();
  app.add_option("--rounds", s.rounds)->capture_default_str()->check(CLI::Range(1, 1000));
  app.add_option("--threads", s.threads, "0: all cores")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024));
  app.add_option("--python", s.python, "interpreter with numpy (empty: the first found)");
  app.add_flag("--no-numpy", s.no_numpy, "ours alone");
}

/// Measures all kernels and prints the report.
/// Returns:  the exit code.
int run(Settings& s) {
  train::use_threads(s.threads);
  if (!s.no_numpy && s.python.empty()) s.python = find_numpy();
#ifdef _OPENMP
  const int threads = omp_get_max_threads();
#else
  const int threads = 1;
#endif
  ordered_json report = build_report(threads);
  report["images"] = s.images;
  auto& results = report["results"] = ordered_json::array();
  bool agree = true;
  for (const long stride : s.strides) {
    for (const long depth : s.depths) {
      results.push_back(measure(s, stride, depth, threads));
      agree = agrees(results.back()) && agree;
    }
  }
  std::cout << std::setw(1) << report << "\n";
  return agree ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  Settings s;
  CLI::App app{"Time of Gram matrices of infinite width next to numpy's", "kernels"};
  add_options(app, s);
  try {
    app.parse(argc, argv);
    return run(s);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::cerr << "kernels: " << error.what() << "\n";
    return 2;
  }
}
