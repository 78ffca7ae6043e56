// One line of a trace, without what says whose it is.
#pragma once

#include <simdjson.h>

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "read/lines.h"

namespace tprof::trace_export {

// Names in place of names: equal ones stay equal, and nothing of the old name is in the new one.
class Pseudonyms {
 public:
  // "host-1" for the first host, "host-2" for the next; an empty name stays empty.
  std::string of(std::string_view kind, std::string_view name);
  std::size_t number(std::string_view kind, std::string_view name);

 private:
  std::map<std::string, std::map<std::string, std::size_t>> known_;  // by kind
};

// "/home/me/env/lib/libnccl.so.2" becomes "folder-1/libnccl.so.2": which library it is says much,
// where it lies says who you are.
std::string library_path(Pseudonyms& names, std::string_view path);

// "rank 3", "pid 47", "rank 3, pid 47" stay; the host in "rank 3 on node7" gets its other name.
std::string process_title(Pseudonyms& names, std::string_view title);

// What names no folder, user or host: numbers, lists of them, sizes, and the words that settings
// have. Everything else gets a number.
std::string setting_value(Pseudonyms& names, std::string_view name, std::string_view value);

// rank-00003.json, rank-00003.r1.json.gz: the name says the rank only.
bool is_rank_file_name(std::string_view name);

// What becomes of a value goes by its type and its key, wherever in a line it stands. Numbers pass
// digit by digit; a string becomes a pseudonym, unless its key says that it holds a word of the
// contract, and it is one. A key or a line that is not the contract's is left out.
class Anonymizer {
 public:
  // Appends the line to `out`, without a line break. False: it is no line of the contract, nothing
  // was appended. Throws read::Malformed.
  bool edit(const read::Line& line, std::string& out);

 private:
  using Value = simdjson::ondemand::value;

  bool put_line(simdjson::ondemand::object line, std::string_view text, std::string& out);
  void put_counter(simdjson::ondemand::object values, std::string& out);
  void put_value(Value value, std::string_view key, std::string& out);
  void put_object(simdjson::ondemand::object object, std::string_view key, std::string& out);
  std::string replaced(std::string_view text, std::string_view key);

  simdjson::ondemand::parser parser_;
  Pseudonyms names_;
  std::string_view names_are_;  // what "name" is, where it comes next
};

}  // namespace tprof::trace_export
