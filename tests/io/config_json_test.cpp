// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#include "scalewise/io/config_json.hpp"

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/architecture/presets.hpp"
#include "scalewise/architecture/shape.hpp"
#include "scalewise/io/parse_json.hpp"
#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/temporary_file.hpp"

namespace {

using json = nlohmann::ordered_json;
using scalewise::preset_shape;
using scalewise::Shape;
using scalewise::shape_from_config;
using scalewise::shape_from_config_file;
using scalewise::files::read_file;
using scalewise::io::parse_json;
using scalewise::test::error_message;
using scalewise::test::TemporaryFile;

std::string data(const std::string& name) {
  return std::string(SCALEWISE_TEST_DIR) + "/data/configs/" + name + ".json";
}

std::string text_of(const std::string& name) { return read_file(data(name), 1 << 20); }

json config(const std::string& name) { return parse_json(text_of(name), name); }

std::string error_of(const json& config) {
  const std::string text = error_message([&] { shape_from_config(config); });
  if (text == "no error")
    resolved(shape_from_config(config));  // throws what a test does not expect
  return text;
}

std::string error_of_text(const std::string& text) {
  return error_message([&] { shape_from_config(parse_json(text, "config.json")); });
}

std::string error_of_file(const std::string& path) {
  return error_message([&] { shape_from_config_file(path); });
}

/// A configuration with one key changed, or removed when the value is discarded.
json with(const std::string& name, const std::string& key, const json& value) {
  json result = config(name);
  if (value.is_discarded()) {
    result.erase(key);
  } else {
    result[key] = value;
  }
  return result;
}

json without(const std::string& name, const std::string& key) {
  return with(name, key, json(json::value_t::discarded));
}

Shape resolved_config(const json& config) { return resolved(shape_from_config(config)); }

const std::string whole = "expected a whole number from 1 to 2^30";

struct Keys {
  std::string file;
  std::vector<std::string> required;
  std::vector<std::string> optional;
  std::vector<std::string> flags;
};

const std::vector<Keys> all_keys = {
    {"gpt2",
     {"n_embd", "n_layer", "n_head", "n_positions", "vocab_size"},
     {"n_inner"},
     {"tie_word_embeddings", "add_cross_attention"}},
    {"llama-3-8b",
     {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size"},
     {"num_key_value_heads", "head_dim", "max_position_embeddings"},
     {"tie_word_embeddings", "attention_bias", "mlp_bias"}},
    {"mistral-7b",
     {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size"},
     {"num_key_value_heads", "head_dim", "max_position_embeddings"},
     {"tie_word_embeddings"}},
    {"bert-base",
     {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
      "max_position_embeddings", "vocab_size"},
     {"type_vocab_size"},
     {"tie_word_embeddings", "add_cross_attention"}},
    {"vit-b16",
     {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"},
     {"num_channels", "num_labels"},
     {"qkv_bias"}},
    {"t5-base",
     {"d_model", "num_layers", "num_heads", "d_ff", "vocab_size"},
     {"num_decoder_layers", "d_kv", "n_positions", "relative_attention_num_buckets"},
     {"tie_word_embeddings", "is_encoder_decoder"}},
    {"bart-large",
     {"d_model", "encoder_layers", "decoder_layers", "encoder_attention_heads",
      "decoder_attention_heads", "encoder_ffn_dim", "decoder_ffn_dim", "max_position_embeddings",
      "vocab_size"},
     {},
     {"tie_word_embeddings", "is_encoder_decoder"}},
};

}  // namespace

TEST_CASE("a published config.json has the shape of its preset", "[config_json]") {
  const std::vector<std::pair<std::string, std::string>> pairs = {
      {"gpt2", "gpt2"},
      {"gpt2-xl", "gpt2-xl"},
      {"llama-2-7b", "llama-2-7b"},
      {"llama-3-8b", "llama-3-8b"},
      {"llama-3.2-1b", "llama-3.2-1b"},
      {"bert-base", "bert-base"},
      {"bert-large", "bert-large"},
      {"vit-b16", "vit-b16"},
      {"t5-base", "t5-base"},
      {"t5-11b", "t5-11b"},
      {"t5-1.1-xxl", "t5-1.1-xxl"},
      {"bart-large", "bart-large"},
  };
  for (const auto& [file, preset] : pairs) {
    INFO(file);
    const Shape shape = resolved(shape_from_config_file(data(file)));
    CHECK(shape == resolved(preset_shape(preset)));
    CHECK(shape == resolved_config(config(file)));
  }
}

TEST_CASE("keys that are absent or null have the defaults of transformers", "[config_json]") {
  const json null = nullptr;
  SECTION("gpt2") {
    CHECK(resolved_config(with("gpt2", "n_inner", null)).d_ff == 3072);
    CHECK(resolved_config(with("gpt2", "n_inner", 1000)).d_ff == 1000);
    CHECK(resolved_config(config("gpt2")).tied_head == true);
    CHECK(resolved_config(with("gpt2", "tie_word_embeddings", false)).tied_head == false);
  }
  SECTION("llama") {
    CHECK(resolved_config(without("llama-3-8b", "num_key_value_heads")).kv_heads == 32);
    CHECK(resolved_config(with("llama-3-8b", "num_key_value_heads", null)).kv_heads == 32);
    CHECK(resolved_config(without("llama-3-8b", "max_position_embeddings")).context == 2048);
    CHECK(resolved_config(with("llama-3-8b", "head_dim", null)).head_dim == 128);
    CHECK(resolved_config(with("llama-3-8b", "head_dim", 100)).head_dim == 100);
    CHECK(resolved_config(without("llama-3-8b", "tie_word_embeddings")).tied_head == false);
    CHECK(!resolved_config(without("llama-3-8b", "attention_bias")).biases);
    json biased = with("llama-3-8b", "attention_bias", true);
    biased["mlp_bias"] = true;
    CHECK(resolved_config(biased).biases);
  }
  SECTION("mistral") {
    CHECK(resolved_config(config("mistral-7b")).context == 32768);
    json many = with("mistral-7b", "num_attention_heads", 64);
    CHECK(resolved_config(many).kv_heads == 8);
    many["num_key_value_heads"] = null;
    CHECK(resolved_config(many).kv_heads == 64);
    many.erase("num_key_value_heads");
    CHECK(resolved_config(many).kv_heads == 8);
    many.erase("max_position_embeddings");
    CHECK(resolved_config(many).context == 131072);
    many.erase("tie_word_embeddings");
    CHECK(resolved_config(many).tied_head == false);
    many["attention_bias"] = false;  // a key that the model does not have
    CHECK(!resolved_config(many).biases);
  }
  SECTION("bert") {
    CHECK(resolved_config(with("bert-base", "type_vocab_size", 5)).segments == 5);
    CHECK(resolved_config(without("bert-base", "type_vocab_size")).segments == 2);
    CHECK(resolved_config(without("bert-base", "position_embedding_type")) ==
          resolved_config(config("bert-base")));
    CHECK(resolved_config(with("bert-base", "tie_word_embeddings", false)).tied_head == false);
  }
  SECTION("vit") {
    const Shape small = resolved_config(with("vit-b16", "image_size", 100));
    CHECK(small.context == 37);  // 6 x 6 whole patches and the class token
    const Shape large = resolved_config(with("vit-b16", "patch_size", 14));
    CHECK(large.context == 257);
    CHECK(large.patch_dim == 588);
    CHECK(resolved_config(with("vit-b16", "num_channels", 1)).patch_dim == 256);
    json bare = config("vit-b16");
    for (const char* key : {"image_size", "patch_size", "num_channels", "num_labels", "qkv_bias"}) {
      bare.erase(key);
    }
    Shape expected = resolved(preset_shape("vit-b16"));
    expected.classes = 2;
    CHECK(resolved_config(bare) == expected);
    bare["id2label"] = {{"0", "cat"}, {"1", "dog"}, {"2", "bird"}};
    CHECK(resolved_config(bare).classes == 3);
    bare["num_labels"] = 7;  // id2label wins
    CHECK(resolved_config(bare).classes == 3);
  }
  SECTION("t5") {
    json t5 = with("t5-base", "num_decoder_layers", 3);
    CHECK(resolved_config(t5).depth == 3);
    CHECK(resolved_config(t5).encoder_depth == 12);
    t5["num_decoder_layers"] = null;
    CHECK(resolved_config(t5).depth == 12);
    CHECK(resolved_config(without("t5-11b", "d_kv")).head_dim == 64);
    CHECK(resolved_config(without("t5-base", "relative_attention_num_buckets")).relative_buckets ==
          32);
    CHECK(resolved_config(without("t5-base", "n_positions")).context == 0);
    CHECK(resolved_config(with("t5-base", "feed_forward_proj", "gelu")).gated_mlp == false);
    CHECK(resolved_config(with("t5-base", "feed_forward_proj", "gated-silu")).gated_mlp);
  }
  SECTION("bart") {
    const Shape shape = resolved_config(with("bart-large", "decoder_layers", 3));
    CHECK(shape.depth == 3);
    CHECK(shape.encoder_depth == 12);
    CHECK(resolved_config(with("bart-large", "tie_word_embeddings", false)).tied_head == false);
  }
}

TEST_CASE("a size of a config.json is a whole number in range", "[config_json]") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const std::vector<std::pair<json, std::string>> bad = {
      {"768", "\"768\""},
      {768.0, "768.0"},
      {true, "true"},
      {0, "0"},
      {-12, "-12"},
      {1073741825, "1073741825"},
      {18446744073709551615U, "18446744073709551615"},
      {std::numeric_limits<std::int64_t>::min(), "-9223372036854775808"},
      {1e30, "1e+30"},
      {std::nan(""), "(not finite)"},
      {infinity, "(not finite)"},
      {json::array({768}), "(an array)"},
      {json::object(), "(an object)"},
      {std::string(100, 'x'), '"' + std::string(56, 'x') + "..."},
      {"a\nb\x01\xff\x7f", "\"a b???\""},
  };
  for (const Keys& keys : all_keys) {
    std::vector<std::string> sizes = keys.required;
    sizes.insert(sizes.end(), keys.optional.begin(), keys.optional.end());
    for (const std::string& key : sizes) {
      for (const auto& [value, shown] : bad) {
        INFO(keys.file << " " << key);
        CHECK(error_of(with(keys.file, key, value)) ==
              "config.json: " + key + (shown[0] == '(' ? " " : " = ") + shown + ": " + whole);
      }
    }
    for (const std::string& key : keys.required) {
      INFO(keys.file << " " << key);
      CHECK(error_of(without(keys.file, key)) == "config.json: " + key + " (missing): " + whole);
      CHECK(error_of(with(keys.file, key, nullptr)) == "config.json: " + key + " = null: " + whole);
    }
    for (const std::string& key : keys.optional) {
      INFO(keys.file << " " << key);
      CHECK(error_of(without(keys.file, key)) == "no error");
      CHECK(error_of(with(keys.file, key, nullptr)) == "no error");
    }
    for (const std::string& key : keys.flags) {
      INFO(keys.file << " " << key);
      CHECK(error_of(with(keys.file, key, 1)) ==
            "config.json: " + key + " = 1: expected true or false");
      CHECK(error_of(with(keys.file, key, "true")) ==
            "config.json: " + key + " = \"true\": expected true or false");
      CHECK(error_of(without(keys.file, key)) == "no error");
    }
  }
  CHECK(error_of(with("gpt2", "vocab_size", 1073741824)) == "no error");
  CHECK(error_of(with("gpt2", "vocab_size", 1)) == "no error");
}

TEST_CASE("an error in a config.json says what and where", "[config_json]") {
  SECTION("model type") {
    const std::string types =
        "expected one of bart, bert, gemma, gpt2, gpt_neox, granite, llama, mistral, olmo2, opt, "
        "phi3, qwen2, qwen3, t5, vit (hint: ";
    const std::string way_on =
        "describe the model (docs/any_model.md), or give the nearest one by --preset and --set, "
        "its "
        "names by --names FILE)";
    CHECK(error_of(with("gpt2", "model_type", "gtp2")) ==
          "config.json: model_type = \"gtp2\": " + types +
              "there is no reader for gtp2: " + way_on);
    CHECK(error_of(with("gpt2", "model_type", "GPT2")) ==
          "config.json: model_type = \"GPT2\": " + types +
              "there is no reader for GPT2: " + way_on);
    CHECK(error_of(with("llama-3-8b", "model_type", "llama4")) ==
          "config.json: model_type = \"llama4\": " + types + "a mixture of experts; " + way_on);
    const std::string which = types + "which model is it? " + way_on;
    CHECK(error_of(without("gpt2", "model_type")) == "config.json: model_type (missing): " + which);
    CHECK(error_of(with("gpt2", "model_type", 2)) == "config.json: model_type = 2: " + which);
    CHECK(error_of(with("gpt2", "model_type", "")) == "config.json: model_type = \"\": " + which);
  }
  SECTION("more layers than a shape may have") {
    CHECK(error_of(with("gpt2", "n_layer", 5000)) == "no error");
    const std::vector<std::pair<std::string, std::string>> keys = {
        {"gpt2", "n_layer"},
        {"llama-3-8b", "num_hidden_layers"},
        {"mistral-7b", "num_hidden_layers"},
        {"bert-base", "num_hidden_layers"},
        {"vit-b16", "num_hidden_layers"},
        {"t5-base", "num_layers"},
        {"t5-base", "num_decoder_layers"},
        {"bart-large", "encoder_layers"},
        {"bart-large", "decoder_layers"}};
    for (const auto& [file, key] : keys) {
      CHECK(error_of(with(file, key, 5001)) ==
            "config.json: " + key + " = 5001: expected at most 5000");
    }
  }
  SECTION("heads that are too wide together") {
    const std::string rest =
        " = 100000000: expected a smaller number (hint: a size that follows from it would reach "
        "2^30)";
    CHECK(error_of(with("t5-base", "d_kv", 100000000)) == "config.json: d_kv" + rest);
    CHECK(error_of(with("llama-3-8b", "head_dim", 100000000)) == "config.json: head_dim" + rest);
  }
  SECTION("sizes that do not divide") {
    CHECK(error_of(with("gpt2", "n_head", 7)) ==
          "config.json: n_head = 7: expected a divisor of n_embd = 768");
    CHECK(error_of(with("bert-base", "num_attention_heads", 7)) ==
          "config.json: num_attention_heads = 7: expected a divisor of hidden_size = 768");
    CHECK(error_of(with("vit-b16", "num_attention_heads", 7)) ==
          "config.json: num_attention_heads = 7: expected a divisor of hidden_size = 768");
    CHECK(error_of(with("bart-large", "encoder_attention_heads", 7)) ==
          "config.json: encoder_attention_heads = 7: expected a divisor of d_model = 1024");
    CHECK(
        error_of(with("llama-3-8b", "num_attention_heads", 7)) ==
        "config.json: num_attention_heads = 7: expected a divisor of hidden_size = 4096 (hint: or "
        "give head_dim, the size of a head in the tensors)");
    CHECK(error_of(with("llama-3-8b", "num_key_value_heads", 7)) ==
          "config.json: num_key_value_heads = 7: expected a divisor of num_attention_heads = 32");
    CHECK(error_of(with("llama-3-8b", "num_key_value_heads", 64)) ==
          "config.json: num_key_value_heads = 64: expected a divisor of num_attention_heads = 32");
    json few = with("mistral-7b", "num_attention_heads", 4);
    few.erase("num_key_value_heads");
    CHECK(error_of(few) ==
          "config.json: num_key_value_heads (missing): expected a divisor of "
          "num_attention_heads = 4 (hint: it is 8 when it is missing)");
  }
  SECTION("encoder and decoder that differ") {
    const std::string hint = " (hint: a shape has one such size for both stacks)";
    CHECK(error_of(with("bart-large", "decoder_attention_heads", 8)) ==
          "config.json: decoder_attention_heads = 8: expected encoder_attention_heads = 16" + hint);
    CHECK(error_of(with("bart-large", "decoder_ffn_dim", 8)) ==
          "config.json: decoder_ffn_dim = 8: expected encoder_ffn_dim = 4096" + hint);
  }
  SECTION("models that a shape cannot describe") {
    const std::string hint =
        " (hint: a shape cannot tell such a model: try inspect --describe, and plan --model)";
    CHECK(error_of(with("gpt2", "add_cross_attention", true)) ==
          "config.json: add_cross_attention = true: expected false" + hint);
    CHECK(error_of(with("bert-base", "add_cross_attention", true)) ==
          "config.json: add_cross_attention = true: expected false" + hint);
    CHECK(error_of(with("vit-b16", "qkv_bias", false)) ==
          "config.json: qkv_bias = false: expected true" + hint);
    CHECK(error_of(with("t5-base", "is_encoder_decoder", false)) ==
          "config.json: is_encoder_decoder = false: expected true" + hint);
    CHECK(error_of(with("bart-large", "is_encoder_decoder", false)) ==
          "config.json: is_encoder_decoder = false: expected true" + hint);
    CHECK(error_of(with("llama-3-8b", "mlp_bias", true)) ==
          "config.json: mlp_bias = true: expected false, or attention_bias = true as well (hint: a "
          "shape "
          "has no biases of the MLP alone)");
    CHECK(error_of(with("bert-base", "position_embedding_type", "relative_key")) ==
          "config.json: position_embedding_type = \"relative_key\": expected \"absolute\" (hint: a "
          "shape has positions in a table)");
    CHECK(error_of(with("bert-base", "position_embedding_type", 1)) ==
          "config.json: position_embedding_type = 1: expected a string");
  }
  SECTION("activations of T5") {
    for (const char* name : {"", "gated-", "gated-gelu-new", "gelu-new", "-"}) {
      CHECK(error_of(with("t5-base", "feed_forward_proj", name)) ==
            "config.json: feed_forward_proj = \"" + std::string(name) +
                "\": expected relu, gelu or silu (hint: a shape knows no other activation)");
    }
    CHECK(error_of(with("t5-base", "feed_forward_proj", true)) ==
          "config.json: feed_forward_proj = true: expected a string");
  }
  SECTION("images") {
    CHECK(error_of(with("vit-b16", "patch_size", 225)) ==
          "config.json: patch_size = 225: expected at most image_size = 224");
    const std::string large =
        "1073741824: expected a smaller number (hint: a size that follows from it would reach "
        "2^30)";
    CHECK(error_of(with("vit-b16", "image_size", 1073741824)) ==
          "config.json: image_size = " + large);
    CHECK(error_of(with("vit-b16", "num_channels", 1073741824)) ==
          "config.json: num_channels = " + large);
    json both = with("vit-b16", "image_size", 1073741824);
    both["patch_size"] = 1073741824;
    CHECK(error_of(both) == "config.json: patch_size = " + large);
    json most = with("vit-b16", "image_size", 32768);
    most["patch_size"] = 1;
    CHECK(error_of(most) ==
          "config.json: image_size = 32768: expected a smaller number (hint: a size that follows "
          "from it would reach 2^30)");
    most["image_size"] = 32767;
    CHECK(error_of(most) == "no error");
    CHECK(error_of(with("vit-b16", "id2label", json::object())) ==
          "config.json: id2label (an object): expected an object with one key for each class");
    CHECK(error_of(with("vit-b16", "id2label", json::array({"cat"}))) ==
          "config.json: id2label (an array): expected an object with one key for each class");
  }
  SECTION("not an object") {
    CHECK(error_of_text("[1, 2]") == "config.json (an array): expected a JSON object");
    CHECK(error_of_text("3.5") == "config.json = 3.5: expected a JSON object");
    CHECK(error_of_text("null") == "config.json = null: expected a JSON object");
    CHECK(error_of_text("\"gpt2\"") == "config.json = \"gpt2\": expected a JSON object");
    CHECK(error_of_text("{}") ==
          "config.json: model_type (missing): expected one of bart, bert, gemma, gpt2, gpt_neox, "
          "granite, llama, mistral, olmo2, opt, phi3, qwen2, qwen3, t5, vit (hint: which model is "
          "it? describe the model (docs/any_model.md), or give the nearest one by --preset and "
          "--set, "
          "its names by --names FILE)");
  }
  SECTION("the name is the caller's") {
    CHECK(error_message([] { shape_from_config(without("gpt2", "n_embd"), "mine.json"); }) ==
          "mine.json: n_embd (missing): " + whole);
  }
}

TEST_CASE("a text that is not JSON is refused", "[parse_json]") {
  const std::string early = ": expected valid JSON (hint: it ends too early, in line ";
  const std::string wrong = ": expected valid JSON (hint: the last of these characters, in line ";
  const auto stands = [&](const std::string& shown, const std::string& line) {
    return "config.json = " + shown + wrong + line + ", cannot stand there)";
  };
  CHECK(error_of_text("") == "config.json (empty): expected valid JSON");
  CHECK(error_of_text(" \n\t\r\n") == "config.json (empty): expected valid JSON");
  CHECK(error_of_text("{") == "config.json = {" + early + "1)");
  CHECK(error_of_text("{\n\"a\": [1, 2") == "config.json = { \"a\": [1, 2" + early + "2)");
  CHECK(error_of_text("{\"a\": \"gpt") == "config.json = {\"a\": \"gpt" + early + "1)");
  CHECK(error_of_text("{\"a\": NaN}") == stands("{\"a\": N", "1"));
  CHECK(error_of_text("{\"a\": Infinity}") == stands("{\"a\": I", "1"));
  CHECK(error_of_text("{\"a\": 1,}") == stands("{\"a\": 1,}", "1"));
  CHECK(error_of_text("{\"a\": 1}\n x") == stands("{\"a\": 1}  x", "2"));
  CHECK(error_of_text("{} {}") == stands("{} {", "1"));
  CHECK(error_of_text("// comment\n{}") == stands("/", "1"));
  CHECK(error_of_text("{'a': 1}") == stands("{'", "1"));
  CHECK(error_of_text("{\"a\": \"\xff\"}") == stands("{\"a\": \"?", "1"));
  CHECK(error_of_text(std::string("{\"a\0\"", 5)) == stands("{\"a?", "1"));
  CHECK(error_of_text("{\"" + std::string(1000, 'k') + "\":\n2 3}") ==
        stands("..." + std::string(24, 'k') + "\": 2 3", "2"));
  CHECK(error_of_text("{\"n_embd\": 1e400}") ==
        "config.json: n_embd = 1e400: expected a number that a double can hold");
  CHECK(error_of_text("{\"n_embd\": -1e400}") ==
        "config.json: n_embd = -1e400: expected a number that a double can hold");
  CHECK(error_of_text("1e400") == "config.json = 1e400: expected a number that a double can hold");
  CHECK(error_of_text("{\"n_embd\": 1" + std::string(400, '0') + "}") ==
        "config.json: n_embd = 1" + std::string(56, '0') +
            "...: expected a number that a double can hold");
}

TEST_CASE("a key may be given once in each object", "[parse_json]") {
  CHECK(error_of_text("{\"n_embd\": 1, \"n_head\": 2, \"n_embd\": 1}") ==
        "config.json: n_embd (given twice): expected one value for each key");
  CHECK(error_of_text("{\"x\": [{\"y\": null, \"y\": {}}]}") ==
        "config.json: y (given twice): expected one value for each key");
  CHECK(error_of_text("{\"" + std::string(100, 'k') + "\": 1, \"" + std::string(100, 'k') +
                      "\": 1}") == "config.json: " + std::string(57, 'k') +
                                       "... (given twice): expected one value for "
                                       "each key");
  CHECK(parse_json("{\"a\": {\"a\": 1}, \"b\": {\"a\": 2}}", "x") ==
        json({{"a", {{"a", 1}}}, {"b", {{"a", 2}}}}));
}

TEST_CASE("deep nesting is refused without deep recursion", "[parse_json]") {
  const std::string expected =
      "config.json (nested deeper than 64): expected at most 64 arrays and objects inside each "
      "other";
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
  CHECK(error_of_text(std::string(100000, '[')) == expected);
  CHECK(error_of_text(objects) == expected);
  CHECK(error_of_text(std::string(65, '[') + std::string(65, ']')) == expected);
  const json deepest = parse_json(std::string(64, '[') + std::string(64, ']'), "x");
  CHECK(deepest.is_array());
  // Nesting, not the number of arrays.
  std::string many = "[";
  for (int i = 0; i < 1000; ++i) many += "[],{},";
  CHECK(parse_json(many + "0]", "x").size() == 2001);
}

TEST_CASE("parse_json reads what the JSON library reads", "[parse_json]") {
  for (const std::string text :
       {"null", "true", "-3", "18446744073709551615", "0.1", "-2.5e-300", "\"a\\u00e9\\n\"", "[]",
        "{}", "[[],{},[1,[2,{\"a\":[3]}]]]",
        "{\"b\":{\"x\":[1,2,{\"y\":null}],\"z\":false},\"a\":[{\"b\":1},{\"b\":2}],\"\":0}"}) {
    INFO(text);
    CHECK(parse_json(text, "x") == json::parse(text));
  }
  for (const Keys& keys : all_keys) {
    CHECK(parse_json(text_of(keys.file), "x") == json::parse(text_of(keys.file)));
  }
  CHECK(parse_json("\xEF\xBB\xBF{}", "x") == json::object());  // byte order mark
}

TEST_CASE("a file that cannot be read is refused", "[config_json]") {
  const std::string missing = std::string(SCALEWISE_TEST_DIR) + "/data/configs/none.json";
  CHECK(error_of_file(missing) == "cannot open " + missing + ": no such file");
  CHECK(error_of_file(SCALEWISE_TEST_DIR) == "cannot open " SCALEWISE_TEST_DIR
                                             ": it is a directory");
  CHECK(error_of_file("") == "file name (empty): expected a file");

  const TemporaryFile empty("");
  CHECK(error_of_file(empty.path()) == empty.path() + " (empty): expected valid JSON");

  const TemporaryFile cut(text_of("gpt2").substr(0, 38));
  CHECK(error_of_file(cut.path()) ==
        cut.path() +
            " = ...ivation_function\": \"gelu_new\",: expected valid JSON (hint: it ends "
            "too early, in line 2)");

  const TemporaryFile wrong("{\"model_type\": \"gpt2\", \"n_embd\": \"768\"}");
  CHECK(error_of_file(wrong.path()) == wrong.path() + ": n_embd = \"768\": " + whole);

  const TemporaryFile full(std::string(1 << 24, ' '));
  CHECK(error_of_file(full.path()) == full.path() + " (empty): expected valid JSON");
  const TemporaryFile large(std::string((1 << 24) + 1, ' '));
  CHECK(error_of_file(large.path()) == large.path() + " (larger): expected at most 16777216 bytes");
}

TEST_CASE("read_file returns every byte up to its limit", "[parse_json]") {
  std::string content;
  for (int i = 0; i < 70000; ++i) content += static_cast<char>(i % 256);  // more than one block
  const TemporaryFile file(content);
  CHECK(read_file(file.path(), 70000) == content);
  CHECK(error_message([&] { read_file(file.path(), 69999); }) ==
        file.path() + " (larger): expected at most 69999 bytes");
}
