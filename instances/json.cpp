// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include <nlohmann/json.hpp>

template class nlohmann::basic_json<>;
template class nlohmann::basic_json<nlohmann::ordered_map>;
template bool nlohmann::json::sax_parse(const char*, const char*,
                                        nlohmann::json_sax<nlohmann::json>*,
                                        nlohmann::detail::input_format_t, bool, bool);
template nlohmann::json nlohmann::json::parse(const char*, const char*,
                                              nlohmann::json::parser_callback_t, bool, bool);
