// Removes from a line of a trace whatever says whose it is.
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

// Replaces names: equal names stay equal, and nothing of the old name is in the new one.
class Pseudonyms {
 public:
  // Returns "host-1" for the first host, "host-2" for the next; an empty name stays empty.
  std::string of(std::string_view kind, std::string_view name);
  std::size_t number(std::string_view kind, std::string_view name);

  // The same, but keeps what is known to be the same for everybody, by the kind: the name of a
  // function of NCCL or CUDA, that of a library without its folder, the rank in "rank 3 on node7".
  const std::string& shown(std::string_view kind, std::string_view name);

 private:
  using Numbers = std::map<std::string, std::size_t, std::less<>>;
  using Shown = std::map<std::string, std::string, std::less<>>;
  std::map<std::string, Numbers, std::less<>> numbers_;  // by kind
  std::map<std::string, Shown, std::less<>> shown_;
};

// True for names such as rank-00003.json and rank-00003.r1.json.gz, which say only the rank.
bool is_rank_file_name(std::string_view name);

// A field of a line, as the contract (interpose/format/line.schema.json) has it, as far as the
// values of its strings are concerned.
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

// Treats a value by what the contract says of its field. Numbers are copied digit by digit. A
// string stays if it is a word of the contract, and becomes a pseudonym if it is anything else.
// Lines and fields that are not the contract's are left out.
class Anonymizer {
 public:
  Anonymizer();
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

  // By category, or by name if it has none (true): it is a metadata line then.
  std::map<std::pair<bool, std::string>, Field> lines_;
  simdjson::ondemand::parser parser_;
  Pseudonyms names_;
};

}  // namespace tprof::trace_export
