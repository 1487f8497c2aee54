// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "scalewise/architecture/description.hpp"
#include "scalewise/files/read_file.hpp"
#include "scalewise/io/json_reader.hpp"
#include "scalewise/io/parse_json.hpp"

namespace scalewise {

namespace io {

/// Name and major version of a description's JSON; docs/any_model.md writes it down.
inline constexpr std::string_view model_schema = "scalewise.model/1";

}  // namespace io

/// The JSON of a description.
/// Throws:   InvalidInput as check_description().
inline nlohmann::ordered_json to_json(const ModelDescription& model) {
  architecture::check_description(model);
  nlohmann::ordered_json tensors = nlohmann::ordered_json::array();
  for (const DescribedTensor& tensor : model.tensors) {
    nlohmann::ordered_json json = {{"name", tensor.name},
                                   {"kind", word(architecture::tensor_kind_words, tensor.kind)},
                                   {"axes", tensor.axes},
                                   {"sizes", tensor.sizes}};
    if (!tensor.tied_to.empty()) json["tied_to"] = tensor.tied_to;
    tensors.push_back(std::move(json));
  }
  return {{"schema", io::model_schema}, {"tensors", std::move(tensors)}};
}

namespace io {

/// A description from JSON.
/// Throws:   InvalidInput naming the key, and as check_description().
inline ModelDescription read_description(const nlohmann::ordered_json& json,
                                         const std::string& name) {
  const JsonReader root(json, name);
  root.only({"schema", "tensors"});
  const std::string schema = root.at("schema").string();
  if (schema != model_schema) {
    throw InvalidInput(root.path() + ".schema", messages::printable(schema),
                       std::string(model_schema));
  }
  ModelDescription model;
  for (const JsonReader& item : root.at("tensors").items()) {
    item.only({"name", "kind", "axes", "sizes", "tied_to"});
    DescribedTensor tensor{item.at("name").string(),
                           item.at("kind").word(architecture::tensor_kind_words),
                           item.at("axes").string(),
                           {}};
    for (const JsonReader& size : item.at("sizes").items()) {
      tensor.sizes.push_back(size.integer(1, architecture::largest_size));
    }
    if (item.has("tied_to")) tensor.tied_to = item.at("tied_to").string();
    model.tensors.push_back(std::move(tensor));
  }
  architecture::check_description(model);
  return model;
}

}  // namespace io

/// A description from a file.
/// Throws:   InvalidInput as read_description(), read_file and parse_json; at most 256 MiB.
inline ModelDescription read_description_file(const std::string& path) {
  constexpr std::size_t limit = std::size_t{256} << 20U;
  return io::read_description(io::parse_json(files::read_file(path, limit), path), path);
}

}  // namespace scalewise
