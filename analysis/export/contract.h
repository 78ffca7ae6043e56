// Reads what the contract (interpose/format/line.schema.json) says of each field of a line.
#pragma once

#include <map>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

namespace tprof::trace_export {

// A field, as far as the values of its strings are concerned.
struct Field {
  std::string key;
  std::vector<Field> fields{};          // of an object
  std::vector<Field> items{};           // of a list: one, or none
  std::vector<std::string> words{};     // those that a string may be
  std::optional<std::regex> pattern{};  // that a string has to match
  // The kind of thing that a string names, or keys do if there are no `fields`: "host". A string
  // that has neither this nor words nor a pattern stands in no line of the contract.
  std::string names{};

  const Field* find(std::string_view of) const;
};

class Contract {
 public:
  Contract();
  // Returns the fields of a line, by its category, or by its name if it has none: it is a metadata
  // line then. nullptr: the contract has no such line.
  const Field* line(std::string_view category, std::string_view name) const;

 private:
  std::vector<Field> lines_;
  std::map<std::string, const Field*, std::less<>> by_category_;
  std::map<std::string, const Field*, std::less<>> by_name_;  // of metadata lines
};

}  // namespace tprof::trace_export
