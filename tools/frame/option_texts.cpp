// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "frame/option_texts.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace scalewise::frame {

namespace {

struct OptionText {
  std::string_view name;
  std::string_view text;
};

constexpr std::array option_texts{
    OptionText{"FILE",
               "safetensors, model.safetensors.index.json, GGUF or a checkpoint of llm.c; several "
               "are the parts of one model"},
    OptionText{"--activation", "activation of the MLP"},
    OptionText{"--alpha", "share of the tokens next to encodings, or of the skip connection"},
    OptionText{"--attention",
               "attention weights, of scores over the root of d except for the last two"},
    OptionText{"--axis", "what grows"},
    OptionText{"--base", "size that the rate was tuned at"},
    OptionText{"--base-config", "config.json of the model that rates were tuned on"},
    OptionText{"--base-depth", "depth of a base that is like the target otherwise"},
    OptionText{"--base-preset", "published shape that rates were tuned on"},
    OptionText{"--base-std", "initial standard deviation of the base model"},
    OptionText{"--base-width", "width of a base that is like the target otherwise"},
    OptionText{"--batch", "sequences or images per batch"},
    OptionText{"--beta2", "square of the residual branch's weight; that of the skip is 1 - beta2"},
    OptionText{"--bias-variance", "variance of the biases of dense layers"},
    OptionText{"--bidirectional", "no causal mask"},
    OptionText{"--budget", "seconds after which no new runs begin"},
    OptionText{"--centred", "count outputs from their initial values"},
    OptionText{"--checkpoint", "file that keeps the run; the same command resumes from it"},
    OptionText{"--checkpoint-every", "steps from one checkpoint to the next"},
    OptionText{"--clip", "largest norm of the gradient"},
    OptionText{"--collect",
               "read the results: print the verdict, or the next command lines (exit code 4)"},
    OptionText{"--compare", "several rules side by side"},
    OptionText{"--config", "Hugging Face config.json"},
    OptionText{"--correct", "number of correct set-ups"},
    OptionText{"--cut", "what Muon cuts out of fused matrices before it normalizes them"},
    OptionText{"--data", "images, or passages of a novel"},
    OptionText{"--decay", "form of weight decay"},
    OptionText{"--depth", "layers"},
    OptionText{"--digits", "images to learn from, a CSV file"},
    OptionText{"--dropout", "dropout probability"},
    OptionText{"--emit-tasks", "print a command line for each run that is missing"},
    OptionText{"--extra",
               "NAME:GROUP:ROWS[,COLUMNS]: a tensor of your own, * for the layer in its name"},
    OptionText{"--fault",
               "train with missing:INGREDIENT, twice:INGREDIENT or off:INGREDIENT:EXPONENT"},
    OptionText{"--features", "features of an input token"},
    OptionText{"--first", "number of the first set-up"},
    OptionText{"--fold", "put the multipliers of the forward pass into the weights"},
    OptionText{"--format", "format of the output"},
    OptionText{"--gradient-correlation", "token correlation of the loss's gradient"},
    OptionText{"--gross", "number of gross mistakes"},
    OptionText{"--groups", "seeds of the set-ups of the program's test, and nothing else"},
    OptionText{"--head-dim", "size of a head"},
    OptionText{"--heads", "attention heads"},
    OptionText{"--input-correlation", "token correlation of the input before dropout"},
    OptionText{"--inputs", "inputs of the kernel"},
    OptionText{"--judge", "judge these files of records (JSON lines or .csv); train nothing"},
    OptionText{"--k", "of DeepScaleLM: beta^2 = k/N"},
    OptionText{"--kernels", "kernels to compare"},
    OptionText{"--layers", "one row per tensor instead of one per kind"},
    OptionText{"--learned", "a learned factor on every residual branch, 1 at first"},
    OptionText{"--list", "print the set-ups, run nothing"},
    OptionText{"--list-names", "print the code bases that --names knows"},
    OptionText{"--list-presets", "print the presets"},
    OptionText{"--list-rules", "print the rules"},
    OptionText{"--log", "CSV file with a row per step"},
    OptionText{"--measure", "run untrained reference transformers too"},
    OptionText{"--min-rate", "learning rate at the end of the schedule, as a fraction of the peak"},
    OptionText{"--muon", "set-ups of maximal update under Muon alone"},
    OptionText{"--names",
               "code base whose names tensors have, see plan --list-names, or a file that says "
               "them (.json)"},
    OptionText{"--norm", "normalization"},
    OptionText{"--optimizer", "optimizer"},
    OptionText{"--out", "folder for CSV, JSON and pictures"},
    OptionText{"--outputs", "logits of each input, of the most frequent bytes"},
    OptionText{"--overwrite", "start again, and write over an old checkpoint and log"},
    OptionText{"--patch", "side of an image's patches"},
    OptionText{"--phi", "decay of the encodings' covariance with the distance"},
    OptionText{"--placement", "place of the norms"},
    OptionText{"--points", "random parameters per component"},
    OptionText{"--precision", "precision of numbers"},
    OptionText{"--preset", "published shape, see plan --list-presets"},
    OptionText{"--plans", "plans of these models, one of each size (JSON of plan)"},
    OptionText{"--profile", "moments of every layer, before and after training"},
    OptionText{"--query-key", "factor on the initial variance of queries and keys"},
    OptionText{"--quiet", "no progress"},
    OptionText{"--rate", "learning rate"},
    OptionText{"--reading", "reading of the formulas"},
    OptionText{"--record", "append what is recorded to this file (JSON lines)"},
    OptionText{"--results", "folder of the results, one file per run"},
    OptionText{"--rho", "variance of the encodings"},
    OptionText{"--rotary", "rotary instead of learned positions"},
    OptionText{"--rounds", "rounds of runs, at most"},
    OptionText{"--rule", "name of a rule, see plan --list-rules"},
    OptionText{"--run-one", "ID: make this run, write its result, and print it as JSON"},
    OptionText{"--samples", "random layers"},
    OptionText{"--save", "file to write instead of the terminal"},
    OptionText{"--schedule", "learning rate after the warm-up"},
    OptionText{"--seed", "random seed"},
    OptionText{"--seeds", "runs of each model, with a seed each"},
    OptionText{"--seq", "tokens per sequence; of a text, bytes"},
    OptionText{"--set",
               "key=value: a field of the shape (base.key for the base) or a parameter of the "
               "rule"},
    OptionText{"--sigma-qk", "deviation of queries times that of keys"},
    OptionText{"--single-rate", "one learning rate for all, as multipliers instead"},
    OptionText{"--sizes", "sizes to compare"},
    OptionText{"--slight", "number of exponents that are off by little"},
    OptionText{"--start", "rule that initializes the base model of a relative rule"},
    OptionText{"--steps", "optimizer steps"},
    OptionText{"--store", "folder for Gram matrices; the same command resumes from them"},
    OptionText{"--stride", "between windows of an image, of stride + 2 pixels a side"},
    OptionText{"--strict", "make warnings errors"},
    OptionText{"--task", "what to learn from a text"},
    OptionText{"--tau0", "0.5 or 1: scores are times width^-tau0"},
    OptionText{"--test", "test inputs"},
    OptionText{"--text", "text to learn from, byte by byte"},
    OptionText{"--threads", "0: all cores; results do not depend on it"},
    OptionText{"--train", "training inputs"},
    OptionText{"--trained-as", "train by another rule"},
    OptionText{"--tune", "what each size is tuned in, around --rate or --weight-decay"},
    OptionText{"--tuning-seeds", "runs at each rate that is tried, with seeds of their own"},
    OptionText{"--validate-every", "steps from one validation to the next"},
    OptionText{"--validation", "inputs that the regularizer is chosen on"},
    OptionText{"--warmup", "steps of linear warm-up"},
    OptionText{"--weight-decay", "weight decay, before the plan's factors"},
    OptionText{"--weight-variance", "variance of the weights of dense layers"},
    OptionText{"--width", "features of a token, d_model"},
};

}  // namespace

std::string option_text(std::string_view name) {
  const auto* found = std::find_if(option_texts.begin(), option_texts.end(),
                                   [&](const OptionText& known) { return known.name == name; });
  if (found == option_texts.end()) {
    throw std::logic_error(std::string(name) + " is not in option_texts.cpp");
  }
  return std::string(found->text);
}

}  // namespace scalewise::frame
