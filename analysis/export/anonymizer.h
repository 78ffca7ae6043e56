// Removes from a line of a trace whatever says whose it is.
#pragma once

#include <simdjson.h>

#include <string>

#include "export/contract.h"
#include "export/pseudonyms.h"
#include "read/lines.h"

namespace tprof::trace_export {

// Treats a value by what the contract says of its field. Numbers are copied digit by digit. A
// string stays if it is a word of the contract, and becomes a pseudonym if it is anything else.
// Lines and fields that are not the contract's are left out.
class Anonymizer {
 public:
  // Appends the line to `out`, without a line break. If it is no line of the contract, appends
  // nothing and returns false. Throws read::Malformed.
  bool edit(const read::Line& line, std::string& out);

  // Returns a host's pseudonym, as it is in the lines.
  std::string host(std::string_view name) { return names_.of("host", name); }

 private:
  void put_value(simdjson::ondemand::value value, const Field& field, std::string& out);
  void put_object(simdjson::ondemand::object object, const Field& field, std::string& out);
  std::string key_of(std::string_view key, const Field& field);
  std::string shown(std::string_view text, const Field& field);

  const Contract contract_;
  simdjson::ondemand::parser parser_;
  Pseudonyms names_;
};

}  // namespace tprof::trace_export
