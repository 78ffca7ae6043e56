// Splits JSON, in any layout, into the elements of its one long array while it is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace tprof::read {

class JsonPieces {
 public:
  // An element without white space, and its position.
  struct Piece {
    std::string_view text;
    std::uint64_t byte;
    std::uint64_t line;
  };
  // The array is the outermost value, or field `key` of the outermost object. Without a key,
  // elements may also follow each other without an array. `file`: for errors.
  JsonPieces(const std::filesystem::path& file, std::string_view key,
             std::function<void(const Piece&)> piece);

  // Throws BadInput with line and byte if it is no JSON.
  void take(std::string_view bytes);
  // Throws BadInput too if the JSON is incomplete or has no such array.
  void end();

  bool whole() const { return open_.empty() && (depth_ == 0 || !rest_.empty()); }
  // Everything else, with the array empty.
  const std::string& rest() const { return rest_; }
  [[noreturn]] void fail(std::uint64_t byte, std::uint64_t line, std::string_view what) const;

 private:
  void take(char c);
  void open(char c);
  void close(char c);
  void end_of_word();
  void add(std::string_view bytes);
  [[noreturn]] void fail(std::string_view what) const { fail(byte_, line_, what); }

  std::filesystem::path file_;
  std::string key_;
  std::function<void(const Piece&)> piece_;
  std::string text_;  // the element so far
  std::string rest_;
  std::string open_;              // the open brackets
  std::string word_;              // a number, true, false or null so far
  std::size_t depth_ = SIZE_MAX;  // of brackets around an element; SIZE_MAX: unknown yet
  std::uint64_t byte_ = 0;
  std::uint64_t line_ = 1;
  std::uint64_t begin_ = 0;  // where the element begins
  std::uint64_t begin_line_ = 0;
  bool quoted_ = false;
  bool escaped_ = false;
};

}  // namespace tprof::read
