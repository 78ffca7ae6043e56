// One line of a trace, without what says whose it is.
#pragma once

#include <simdjson.h>

#include <string>
#include <string_view>

#include "export/pseudonyms.h"
#include "read/lines.h"

namespace tprof::trace_export {

struct Field;  // a key that may pass, and what becomes of its value

// Only what is listed passes: numbers as they are, digit by digit; the contract's own words; other
// names by their pseudonyms. A key or a line that is not listed is left out.
class Anonymizer {
 public:
  // Appends the line to `out`, without a line break. False: it is no line of the contract, nothing
  // was appended. Throws read::Malformed.
  bool edit(const read::Line& line, std::string& out);

  Pseudonyms& names() { return names_; }

 private:
  bool edit_value(simdjson::ondemand::value value, const Field& field, std::string& out);
  bool edit_text(std::string_view text, const Field& field, std::string& out);
  void edit_object(simdjson::ondemand::object object, const Field& field, std::string& out);
  void edit_settings(simdjson::ondemand::object object, std::string& out);

  simdjson::ondemand::parser parser_;
  Pseudonyms names_;
};

}  // namespace tprof::trace_export
