// Values that a file of another program holds: none, truth, numbers, texts, lists and dictionaries,
// as JSON or as Python's pickle. A pickle is a program, of which only the opcodes that make such
// values are run; any other is refused. Memory and time are bounded by the size of the file.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tprof::read {

struct PlainValue {
  enum class Kind : std::uint8_t { none, truth, integer, real, text, list, dict };
  using Place = std::uint32_t;  // of another value of the file

  Kind kind = Kind::none;
  std::int64_t number = 0;     // of a truth or an integer
  std::string_view text{};     // of the file's bytes
  std::vector<Place> items{};  // of a list; of a dictionary key, value, key, value, ...
};

class PlainValues {
 public:
  // Throws BadInput for anything that is not one plain value.
  PlainValues(const std::filesystem::path& file, std::string bytes);

  const PlainValue& root() const { return all_[root_]; }
  const PlainValue& at(PlainValue::Place place) const { return all_[place]; }
  // Null: there is no such key, its value is none, or this is no dictionary.
  const PlainValue* find(const PlainValue& dict, std::string_view key) const;
  // An integer, or the digits of one as a text; nullopt for anything else.
  std::optional<std::int64_t> integer(const PlainValue& dict, std::string_view key) const;
  // Empty where there is none.
  std::string_view text(const PlainValue& dict, std::string_view key) const;
  std::vector<PlainValue::Place> list(const PlainValue& dict, std::string_view key) const;

 private:
  friend class Unpickler;
  PlainValue::Place add(PlainValue value);
  PlainValue::Place from_json(const simdjson::dom::element& element);

  std::filesystem::path file_;
  std::string bytes_;
  simdjson::dom::parser parser_;  // holds the texts of JSON
  std::vector<PlainValue> all_;
  PlainValue::Place root_ = 0;
};

// Returns the number that these digits are.
std::optional<std::int64_t> integer_in(std::string_view digits);

}  // namespace tprof::read
