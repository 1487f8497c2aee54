// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// How marian makes its parameters: a small stand-in of our own for its graph and its layers, with one
// Adam for all. The lines that follow a plan end with "scalewise"; plan.h is what
//   plan --rule RULE ... --single-rate --names marian --format c-header --save plan.h
// writes. Prints of each parameter, as the layers see it, the size and how far Adam's first step
// moves it. Gradients are made up: a model would compute them.

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "plan.h"  // scalewise

namespace marian {

struct Shape {
  long rows, columns;
  long elements() const { return rows * columns; }
};

// A parameter, or a number times a parameter.
struct Node {
  std::vector<float> value;
  std::shared_ptr<Node> of;
  float factor = 1;
};
using Expr = std::shared_ptr<Node>;

inline Expr operator*(float factor, const Expr& of) {
  return std::make_shared<Node>(Node{{}, of, factor});
}

namespace inits {

struct NodeInitializer {
  float mean, stddev;
};
using Init = std::shared_ptr<NodeInitializer>;

inline Init normal(float mean = 0, float stddev = 1) {
  return std::make_shared<NodeInitializer>(NodeInitializer{mean, stddev});
}
inline Init zeros() { return normal(0, 0); }
inline Init ones() { return normal(1, 0); }
inline Init glorotUniform() { return normal(0, 0.1F); }  // stands for Marian's own values

}  // namespace inits

inline const scalewise_block& planned(const std::string& name, long elements) {       // scalewise
  for (const auto& block : scalewise_block_rows)                                      // scalewise
    if (name == scalewise_tensor_rows[block.tensor].name && block.count == elements)  // scalewise
      return block;                                                                   // scalewise
  std::fprintf(stderr, "%s: not in the plan, or of another size\n", name.c_str());    // scalewise
  std::exit(2);                                                                       // scalewise
}  // scalewise

class ExpressionGraph {
 public:
  std::map<std::string, Expr> params;  // sorted by name

  // Layers call this: it makes the parameter, or finds it if it was made before.
  Expr param(const std::string& pname, const Shape& shape, const inits::Init& /*init*/) {
    const float base_std = 0.05F;                                      // scalewise
    const scalewise_block& plan = planned(pname, shape.elements());    // scalewise
    const auto start = inits::normal(plan.mean, base_std * plan.std);  // scalewise
    const Expr p = made(pname, shape, start);                          // scalewise
    return plan.multiplier == 1 ? p : plan.multiplier * p;             // scalewise
  }

 private:
  Expr made(const std::string& pname, const Shape& shape, const inits::Init& init) {
    Expr& found = params[pname];
    if (found) return found;
    found = std::make_shared<Node>();
    std::normal_distribution<float> standard;
    for (long i = 0; i < shape.elements(); ++i)
      found->value.push_back(init->mean + init->stddev * standard(random_));
    return found;
  }

  std::mt19937 random_{1};
};

// Every parameter of a transformer, in the order in which layers ask for them.
class Transformer {
 public:
  std::vector<std::pair<std::string, Expr>> seen;

  Transformer(ExpressionGraph& graph, long dimEmb, long dimFfn, long dimVocab) : graph_(graph) {
    ask("Wemb", {dimVocab, dimEmb}, inits::glorotUniform());
    for (const std::string layer : {"encoder_l1", "encoder_l2", "decoder_l1"}) {
      attention(layer + "_self", dimEmb);
      if (layer[0] == 'd') attention(layer + "_context", dimEmb);
      dense(layer + "_ffn", "1", dimEmb, dimFfn);
      dense(layer + "_ffn", "2", dimFfn, dimEmb);
      norm(layer + "_ffn_ffn", dimEmb);
    }
    ask("decoder_ff_logit_out_Wt", {dimVocab, dimEmb}, inits::glorotUniform());
    ask("decoder_ff_logit_out_b", {1, dimVocab}, inits::zeros());
  }

 private:
  void ask(const std::string& name, const Shape& shape, const inits::Init& init) {
    seen.emplace_back(name, graph_.param(name, shape, init));
  }
  void dense(const std::string& prefix, const std::string& suffix, long in, long out) {
    ask(prefix + "_W" + suffix, {in, out}, inits::glorotUniform());
    ask(prefix + "_b" + suffix, {1, out}, inits::zeros());
  }
  void norm(const std::string& prefix, long size) {
    ask(prefix + "_ln_scale", {1, size}, inits::ones());
    ask(prefix + "_ln_bias", {1, size}, inits::zeros());
  }
  void attention(const std::string& prefix, long size) {
    for (const char* part : {"q", "k", "v", "o"}) dense(prefix, part, size, size);
    norm(prefix + "_Wo", size);
  }

  ExpressionGraph& graph_;
};

}  // namespace marian

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("params: expected DIM_EMB DIM_FFN DIM_VOCAB\n", stderr);
    return 2;
  }
  marian::ExpressionGraph graph;
  const marian::Transformer model(graph, std::atol(argv[1]), std::atol(argv[2]),
                                  std::atol(argv[3]));

  const auto before = [&] {
    std::map<std::string, std::vector<float>> values;
    for (const auto& [name, param] : graph.params) values[name] = param->value;
    return values;
  }();
  const float eta = 3e-4F, eps = 1e-9F;  // one for all
  for (const auto& [name, param] : graph.params) {
    for (std::size_t i = 0; i < param->value.size(); ++i) {
      const float gradient = i % 2 == 0 ? 1.F : -1.F;
      param->value[i] -= eta * gradient / (std::fabs(gradient) + eps);  // Adam's first step
    }
  }
  for (const auto& [name, expression] : model.seen) {
    const marian::Expr& param = expression->of ? expression->of : expression;
    const std::vector<float>&old = before.at(name), &now = param->value;
    double squares = 0, moved = 0;
    for (std::size_t i = 0; i < now.size(); ++i) {
      squares += std::pow(expression->factor * old[i], 2);
      moved += std::fabs(expression->factor * (now[i] - old[i]));
    }
    const double size = static_cast<double>(now.size());
    std::printf("%-31s rms %.6g  first step %.6g\n", name.c_str(), std::sqrt(squares / size),
                moved / size);
  }
}
