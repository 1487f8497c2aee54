// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "scalewise/files/file_cursor.hpp"
#include "scalewise/messages/error.hpp"

namespace scalewise {

namespace detail {

/// The next bytes of a file as a JSON text: white space outside strings is reduced, and what
/// would grow in memory is refused.
class JsonText {
 public:
  JsonText(files::FileCursor& file, std::uint64_t bytes) : file_(file), left_(bytes) { next(); }

  bool done() const { return done_; }
  const char& current() const { return current_; }

  void next() {
    char c = ' ';
    do {
      if (left_ == 0) {
        done_ = true;
        return;
      }
      --left_;
      c = file_.byte("JSON");
      // Among them 0, which nlohmann-json takes for the end.
      if (static_cast<unsigned char>(c) < ' ' && !is_space(c)) {
        throw file_.error("JSON", "(a control character)", "valid JSON");
      }
    } while (token_ != Token::string && is_space(c) && is_space(current_));
    current_ = c;
    count(c);
  }

 private:
  enum class Token { structure, word, string };

  static constexpr std::size_t longest_string = std::size_t{1} << 20U;
  static constexpr std::size_t longest_other = std::size_t{1} << 16U;

  static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

  /// How long the string, the number or word, or the run of brackets is.
  void count(char c) {
    const Token before = token_;
    if (token_ == Token::string) {
      if (escaped_) {
        escaped_ = false;
      } else if (c == '\\') {
        escaped_ = true;
      } else if (c == '"') {
        token_ = Token::structure;
      }
    } else if (c == '"') {
      token_ = Token::string;
    } else {
      token_ = std::string_view("{}[],: ").find(c) != std::string_view::npos || is_space(c)
                   ? Token::structure
                   : Token::word;
    }
    length_ = token_ == before ? length_ + 1 : 0;
    const std::size_t longest = token_ == Token::string ? longest_string : longest_other;
    if (length_ > longest) {
      throw file_.error("JSON", token_ == Token::string ? "(a longer string)" : "(a longer run)",
                        token_ == Token::string ? "strings of at most 1 MiB"
                                                : "numbers and brackets of at most 64 KiB");
    }
  }

  files::FileCursor& file_;
  std::uint64_t left_;
  Token token_ = Token::structure;
  bool escaped_ = false;
  bool done_ = false;
  char current_ = 0;
  std::size_t length_ = 0;
};

/// An iterator over a JsonText; one without a text is the end.
class JsonTextIterator {
 public:
  // NOLINTBEGIN(readability-identifier-naming): the standard's own names
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;
  // NOLINTEND(readability-identifier-naming)

  explicit JsonTextIterator(JsonText* text = nullptr) : text_(text) {}

  reference operator*() const { return text_->current(); }
  JsonTextIterator& operator++() {
    text_->next();
    return *this;
  }
  void operator++(int) { text_->next(); }
  friend bool operator==(const JsonTextIterator& a, const JsonTextIterator& b) {
    return a.at_end() == b.at_end();
  }

 private:
  bool at_end() const { return text_ == nullptr || text_->done(); }

  JsonText* text_;
};

}  // namespace detail

namespace io {

/// Takes a JSON text piece by piece: only one string of it is in memory at a time.
class JsonPieces : private nlohmann::json_sax<nlohmann::ordered_json> {
 public:
  /// Reads the next bytes of the file as one JSON value, perhaps with white space around it.
  /// Throws:   InvalidInput where they are no JSON, and for a string of more than 1 MiB.
  void read(std::uint64_t bytes) {
    detail::JsonText text(file_, bytes);
    using Iterator = detail::JsonTextIterator;
    nlohmann::json_sax<nlohmann::ordered_json>* const pieces = this;
    nlohmann::ordered_json::sax_parse(Iterator(&text), Iterator(), pieces);
  }

 protected:
  explicit JsonPieces(files::FileCursor& file) : file_(file) {}
  ~JsonPieces() override = default;
  JsonPieces(const JsonPieces&) = delete;
  JsonPieces& operator=(const JsonPieces&) = delete;

  files::FileCursor& file() const { return file_; }

  virtual void open(bool object) = 0;  // or an array
  virtual void close() = 0;
  virtual void name(std::string& key) = 0;
  virtual void text(std::string& value) = 0;
  virtual void natural(std::uint64_t value) = 0;
  /// null, true, false, or a number that is negative or not whole, as errors show it.
  virtual void other(const std::string& value) = 0;

 private:
  bool null() final {
    other("null");
    return true;
  }
  bool boolean(bool value) final {
    other(value ? "true" : "false");
    return true;
  }
  bool number_integer(number_integer_t value) final {
    other(value == 0 ? "-0" : std::to_string(value));
    return true;
  }
  bool number_unsigned(number_unsigned_t value) final {
    natural(value);
    return true;
  }
  bool number_float(number_float_t, const string_t& value) final {
    other(messages::printable(value));
    return true;
  }
  bool string(string_t& value) final {
    text(value);
    return true;
  }
  bool binary(binary_t&) final { return false; }  // no JSON text has one
  bool start_object(std::size_t) final {
    open(true);
    return true;
  }
  bool start_array(std::size_t) final {
    open(false);
    return true;
  }
  bool key(string_t& value) final {
    name(value);
    return true;
  }
  bool end_object() final {
    close();
    return true;
  }
  bool end_array() final {
    close();
    return true;
  }
  bool parse_error(std::size_t, const std::string& token,
                   const nlohmann::ordered_json::exception&) final {
    throw file_.error(
        "JSON", messages::printable(token), "valid JSON",
        "byte " + std::to_string(file_.position()) + " of the file cannot stand there");
  }

  files::FileCursor& file_;
};

}  // namespace io

}  // namespace scalewise
