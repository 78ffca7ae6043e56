// An event as its JSON has it: the tokens of its fields, of which some may be replaced before it is
// written again.
#pragma once

#include <simdjson.h>

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "export/pen.h"
#include "read/json.h"

namespace tprof::trace_export {

inline read::Malformed not_an_object() {
  return read::Malformed("expected one JSON object on this line");
}

// Returns simdjson's value. Throws if the line is not JSON.
template <typename T>
T value_of(simdjson::simdjson_result<T> result) {
  T value;
  if (std::move(result).get(value) != simdjson::SUCCESS) throw not_an_object();
  return value;
}

class EventFields {
 public:
  // Takes an object apart. The bytes behind it may be read, as simdjson's padding. Throws
  // Malformed.
  void read(std::string_view object);
  void clear() { fields_.clear(); }

  // The field's token; empty: there is none. Throws Malformed for a field that stands twice: JSON
  // does not say which of them counts.
  std::string_view operator[](std::string_view key) const;
  // Another value, at the end if there was none. An empty one takes the field out.
  void set(std::string_view key, std::string value);
  // Fields as they are written.
  void add(std::string text);
  // The fields without their braces.
  std::string text() const;

 private:
  struct Field {
    std::string_view key;  // empty: the value is a text of fields
    std::string_view value;
  };
  std::size_t find(std::string_view key) const;  // their number: there is none

  simdjson::ondemand::parser parser_;
  std::vector<Field> fields_;
  std::deque<std::string> texts_;  // of replaced values
};

}  // namespace tprof::trace_export
