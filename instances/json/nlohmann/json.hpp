// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Found before the library's own header by all that links instances_json, where its classes are compiled once.
#pragma once
#pragma GCC system_header

#include_next <nlohmann/json.hpp>

extern template class nlohmann::basic_json<>;
extern template class nlohmann::basic_json<nlohmann::ordered_map>;
// What parse_json() calls; with it come the parser and the readers of binary formats.
extern template bool nlohmann::json::sax_parse(const char*, const char*, nlohmann::json_sax<nlohmann::json>*,
                                               nlohmann::detail::input_format_t, bool, bool);
// What a reader of records calls for each number.
extern template nlohmann::json nlohmann::json::parse(const char*, const char*, nlohmann::json::parser_callback_t, bool,
                                                     bool);
