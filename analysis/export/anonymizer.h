// Removes from a line everything that identifies its origin.
#pragma once

#include <simdjson.h>

#include <cstddef>
#include <map>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "read/lines.h"

namespace tprof::trace_export {

// Replaces names. Equal names stay equal, and new names reveal nothing of old ones.
class Pseudonyms {
 public:
  // Returns "host-1" for the first host, "host-2" for the next; an empty name stays empty.
  std::string of(std::string_view kind, std::string_view name);
  std::size_t number(std::string_view kind, std::string_view name);

  // The same, but keeps what is public, depending on the kind: names of NCCL and CUDA functions,
  // libraries without their folder, the rank in "rank 3 on node7".
  const std::string& shown(std::string_view kind, std::string_view name);

 private:
  using Numbers = std::map<std::string, std::size_t, std::less<>>;
  using Shown = std::map<std::string, std::string, std::less<>>;
  std::map<std::string, Numbers, std::less<>> numbers_;  // by kind
  std::map<std::string, Shown, std::less<>> shown_;
};

// True for names such as rank-00003.json and rank-00003.r1.json.gz, which only contain the rank.
bool is_rank_file_name(std::string_view name);

// The contract (interpose/format/line.schema.json) for the strings in a field of a line.
struct Field {
  std::string key;
  std::vector<Field> fields{};          // of an object
  std::vector<Field> items{};           // of a list: one or none
  std::vector<std::string> words{};     // the words that a string may be
  std::optional<std::regex> pattern{};  // a pattern that a string has to match
  // The kind that a string (or keys, if there are no `fields`) names: "host". Every string in the
  // contract has this, words or a pattern.
  std::string names{};

  const Field* find(std::string_view of) const;
};

// Treats a value as the contract defines its field. Numbers are copied digit by digit. Words of the
// contract stay, other strings become pseudonyms. Unknown lines and fields are left out.
class Anonymizer {
 public:
  Anonymizer();
  // Appends the line to `out` without a line break. Returns false, appending nothing, if the
  // contract does not have such a line. Throws read::Malformed.
  bool edit(const read::Line& line, std::string& out);

  // Returns a host's pseudonym in the lines.
  std::string host(std::string_view name) { return names_.of("host", name); }

 private:
  void put_value(simdjson::ondemand::value value, const Field& field, std::string& out);
  void put_object(simdjson::ondemand::object object, const Field& field, std::string& out);
  std::string key_of(std::string_view key, const Field& field);
  std::string shown(std::string_view text, const Field& field);

  // By category, or by name for metadata lines (true), which have no category.
  std::map<std::pair<bool, std::string>, Field> lines_;
  simdjson::ondemand::parser parser_;
  Pseudonyms names_;
};

}  // namespace tprof::trace_export
