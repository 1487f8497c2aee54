// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <system_error>

#include "child_process.hpp"
#include "step_model.hpp"
#include "step_settings.hpp"

namespace scalewise::benchmark {

/// The first of the usual interpreters that can import torch; empty if none can.
inline std::string find_torch() {
  for (const char* python : {"python3", "/usr/bin/python3"}) {
    try {
      ChildProcess trial({python, "-c", "try:\n import torch\nexcept ImportError:\n exit(1)"});
      if (trial.wait() == 0) return python;
    } catch (const std::runtime_error&) {
      continue;  // no such interpreter
    }
  }
  return "";
}

/// The folder of the OpenBLAS with threads where Debian and Ubuntu have it; empty if there is none.
inline std::string openblas_folder() {
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/usr/lib", none)) {
    const std::filesystem::path folder = entry.path() / "openblas-pthread";
    if (std::filesystem::exists(folder, none)) return folder.string();
  }
  return "";
}

/// step_torch.py in a process of its own.
/// Throws:   std::runtime_error when it ends before it is asked to.
class TorchWorker {
 public:
  TorchWorker(const StepSettings& s, long width, bool foreach)
      : process_(command(s, width, foreach), environment(s)) {
    about_ = next();
  }

  /// Version, threads, parameters, first loss, and memory before the model.
  const nlohmann::ordered_json& about() const { return about_; }

  double run(long steps) { return ask("run " + std::to_string(steps)).get<double>(); }

  /// Peak memory and loaded BLAS.
  nlohmann::ordered_json status() { return ask("status"); }

 private:
  static std::vector<std::string> command(const StepSettings& s, long width, bool foreach) {
    std::vector<std::string> words = {s.torch, SCALEWISE_BENCHMARK_DIR "/step_torch.py"};
    const auto add = [&](const char* flag, const std::string& value) {
      words.insert(words.end(), {flag, value});
    };
    add("--width", std::to_string(width));
    add("--depth", std::to_string(s.depth));
    add("--heads", std::to_string(s.heads_at(width)));
    add("--seq", std::to_string(s.seq));
    add("--batch", std::to_string(s.batch));
    add("--vocab", std::to_string(s.vocab));
    add("--threads", std::to_string(s.torch_threads));
    add("--init-std", std::to_string(init_std));
    if (foreach) words.emplace_back("--foreach");
    return words;
  }

  static ChildProcess::Environment environment(const StepSettings& s) {
    ChildProcess::Environment changed;
    changed["OPENBLAS_NUM_THREADS"] = std::to_string(s.torch_blas_threads);
    changed["OMP_NUM_THREADS"] = std::to_string(s.torch_threads);
    std::string path = openblas_folder();
    if (!path.empty()) {
      if (const char* before = std::getenv("LD_LIBRARY_PATH")) path += std::string(":") + before;
      changed["LD_LIBRARY_PATH"] = path;
    }
    return changed;
  }

  nlohmann::ordered_json ask(const std::string& line) {
    process_.write_line(line);
    return next();
  }

  nlohmann::ordered_json next() {
    const std::optional<std::string> line = process_.read_line();
    if (!line) throw std::runtime_error("the PyTorch worker has ended");
    return nlohmann::ordered_json::parse(*line);
  }

  ChildProcess process_;
  nlohmann::ordered_json about_;
};

/// Whether AdamW by lists of tensors is the faster one: the faster of three runs of each.
inline bool foreach_is_faster(const StepSettings& s, long width) {
  double best[2] = {};
  for (const bool foreach : {false, true}) {
    TorchWorker worker(s, width, foreach);
    double& seconds = best[foreach ? 1 : 0];
    seconds = worker.run(s.steps);
    for (int i = 0; i < 2; ++i) seconds = std::min(seconds, worker.run(s.steps));
  }
  std::cerr << "width " << width << ", PyTorch's AdamW by lists "
            << best[1] * 1e3 / static_cast<double>(s.steps) << " ms, tensor by tensor "
            << best[0] * 1e3 / static_cast<double>(s.steps) << " ms\n";
  return best[1] < best[0];
}

}  // namespace scalewise::benchmark
