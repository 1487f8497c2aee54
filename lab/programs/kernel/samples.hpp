// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Inputs with classes for kernels: images as windows of pixels, passages of a novel as words.
#pragma once

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lab/programs/kernel/windows.hpp"
#include "scalewise/data/digits.hpp"
#include "scalewise/files/read_file.hpp"
#include "scalewise/kernels/token_grid.hpp"

namespace scalewise::experiment {

struct SampleSettings {
  std::string data = "digits";
  std::string digits = {};  // paths
  std::string novel = {};
  long train = 1000;
  long validation = 297;
  long test = 0;  // all others
  long seed = 1;
  long stride = 2;  // of windows of pixels
};

/// Training, validation and test inputs, in this order.
struct Samples {
  std::vector<Matrix<>> inputs;
  std::vector<int> labels;
  int classes = 0;
  kernels::Index train = 0;
  kernels::Index validation = 0;
  kernels::GridSides sides = {};  // of images, in tokens
  kernels::Index longest = 0;     // tokens
  double chance = 0;              // part of the test inputs of the class that is the most frequent
  std::string description;
};

namespace detail {

inline Samples digits(const SampleSettings& s) {
  const data::Images images = data::read_digits(s.digits);
  if (images.side % s.stride != 0) {
    throw InvalidInput("--stride", std::to_string(s.stride),
                       "a divisor of the images' side, " + std::to_string(images.side));
  }
  const auto pixels = static_cast<std::size_t>(images.side * images.side);
  Samples all;
  const kernels::Index side = images.side / s.stride;
  all.sides = {side, side};
  all.longest = side * side;
  all.classes = 10;
  for (kernels::Index i = 0; i < images.size(); ++i) {
    all.inputs.push_back(windows({images.pixels.row(i).data(), pixels}, images.side, s.stride));
  }
  all.labels = images.labels;
  return all;
}

struct Passage {
  std::vector<std::string> words;  // in lower case
  int chapter = 0;                 // from 1
};

/// Passages of whole sentences, from `least` words on and cut at `most`, of one chapter each.
inline std::vector<Passage> passages(const std::string& text, std::size_t least, std::size_t most) {
  std::vector<Passage> all;
  Passage now;  // chapter 0 is the title page
  const auto flush = [&] {
    if (now.words.size() >= least && now.chapter > 0) {
      now.words.resize(std::min(now.words.size(), most));
      all.push_back(now);
    }
    now.words.clear();
  };
  std::string word;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ' ';
    if (text.compare(i, 9, "\nChapter ") == 0) {
      flush();
      ++now.chapter;
      i = text.find('\n', i + 1);  // its heading
      word.clear();
    } else if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else {
      if (!word.empty()) now.words.push_back(std::move(word));
      word.clear();
      if ((c == '.' || c == '?' || c == '!') && now.words.size() >= least) flush();
    }
  }
  flush();
  return all;
}

/// Passages of a novel, six chapters in a row a class. A word is a normal vector of its own times
/// ln(passages/passages with the word), which is small for words that tell little.
inline Samples chapters(const SampleSettings& s) {
  constexpr std::size_t least = 100;
  constexpr std::size_t most = 200;
  constexpr int chapters_of_class = 6;
  constexpr kernels::Index features = 256;
  const std::vector<Passage> list =
      passages(files::read_file(s.novel, std::size_t{1} << 26U), least, most);
  std::map<std::string, double> with_word;
  for (const Passage& passage : list) {
    for (const std::string& w : std::set(passage.words.begin(), passage.words.end()))
      ++with_word[w];
  }
  Samples all;
  all.longest = most;
  for (const Passage& passage : list) {
    Matrix<> tokens(static_cast<kernels::Index>(passage.words.size()), features);
    for (kernels::Index t = 0; t < tokens.rows(); ++t) {
      const std::string& word = passage.words[static_cast<std::size_t>(t)];
      const double weight = std::log(static_cast<double>(list.size()) / with_word[word]);
      numeric::RandomStream stream(1, word);
      for (kernels::Index c = 0; c < features; ++c) tokens(t, c) = weight * stream.normal();
    }
    all.inputs.push_back(std::move(tokens));
    all.labels.push_back((passage.chapter - 1) / chapters_of_class);
    all.classes = std::max(all.classes, all.labels.back() + 1);
  }
  return all;
}

}  // namespace detail

/// Throws:   InvalidInput unless least <= value <= most.
inline void require_between(const char* option, long value, long least, long most) {
  if (value >= least && value <= most) return;
  throw InvalidInput(
      option, std::to_string(value),
      "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
}

/// Throws:   InvalidInput for other data, and more samples than there are.
inline Samples read_samples(const SampleSettings& s) {
  const Samples all = s.data == "digits" ? detail::digits(s) : detail::chapters(s);
  const auto count = static_cast<long>(all.inputs.size());
  require_between("--train", s.train, 1, count - 2);
  require_between("--validation", s.validation, 1, count - 1 - s.train);
  require_between("--test", s.test, 0, count - s.train - s.validation);
  const long tests = s.test > 0 ? s.test : count - s.train - s.validation;

  std::vector<std::size_t> order(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  numeric::RandomStream stream(static_cast<std::uint64_t>(s.seed), "split");
  for (std::size_t i = order.size() - 1; i > 0; --i)
    std::swap(order[i], order[stream.bits() % (i + 1)]);
  Samples chosen = all;
  chosen.inputs.clear();
  chosen.labels.clear();
  chosen.train = s.train;
  chosen.validation = s.validation;
  std::map<int, long> of_class;
  for (long i = 0; i < s.train + s.validation + tests; ++i) {
    const std::size_t from = order[static_cast<std::size_t>(i)];
    chosen.inputs.push_back(all.inputs[from]);
    chosen.labels.push_back(all.labels[from]);
    if (i >= s.train + s.validation) ++of_class[all.labels[from]];
  }
  for (const auto& [label, of] : of_class) {
    chosen.chance = std::max(chosen.chance, static_cast<double>(of) / static_cast<double>(tests));
  }
  chosen.description = s.data + ": " + std::to_string(s.train) + " training, " +
                       std::to_string(s.validation) + " validation and " + std::to_string(tests) +
                       " test inputs, " + std::to_string(all.classes) + " classes, split " +
                       std::to_string(s.seed);
  return chosen;
}

}  // namespace scalewise::experiment
