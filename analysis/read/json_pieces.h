// Takes JSON apart while it is read: into the elements of its one long array, however it is
// printed.
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
  // An element without white space, and where it begins.
  struct Piece {
    std::string_view text;
    std::uint64_t byte;
    std::uint64_t line;
  };
  // The array is the outermost one, or in an object that of `key`. Without a key the elements may
  // also stand for themselves, one after the other. `file`: for errors.
  JsonPieces(const std::filesystem::path& file, std::string_view key,
             std::function<void(const Piece&)> piece);

  // Throws BadInput where it is no JSON, with line and byte.
  void take(std::string_view bytes);
  // The same where it has no end, and where there is none of these arrays.
  void end();

  bool whole() const { return open_.empty() && (depth_ == 0 || !rest_.empty()); }
  // All else, where the array is empty.
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
  std::string text_;  // of the element so far
  std::string rest_;
  std::string open_;              // the brackets that are open
  std::string word_;              // a number, true, false or null so far
  std::size_t depth_ = SIZE_MAX;  // of brackets around an element; SIZE_MAX: not known yet
  std::uint64_t byte_ = 0;
  std::uint64_t line_ = 1;
  std::uint64_t begin_ = 0;  // of the element
  std::uint64_t begin_line_ = 0;
  bool quoted_ = false;
  bool escaped_ = false;
};

}  // namespace tprof::read
