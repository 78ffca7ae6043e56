// Removes from a line of a trace whatever says whose it is.
#pragma once

#include <simdjson.h>

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "read/lines.h"

namespace tprof::trace_export {

// Replaces names: equal names stay equal, and nothing of the old name is in the new one.
class Pseudonyms {
 public:
  // Returns "host-1" for the first host, "host-2" for the next; an empty name stays empty.
  std::string of(std::string_view kind, std::string_view name);
  std::size_t number(std::string_view kind, std::string_view name);

 private:
  std::map<std::string, std::map<std::string, std::size_t>> known_;  // by kind
};

// Turns "/home/me/env/lib/libnccl.so.2" into "folder-1/libnccl.so.2": the name of a library is
// useful, its folder says who you are.
std::string library_path(Pseudonyms& names, std::string_view path);

// Keeps "rank 3", "pid 47" and "rank 3, pid 47". The host in "rank 3 on node7" gets a pseudonym.
std::string process_title(Pseudonyms& names, std::string_view title);

// Keeps what names no folder, user or host: numbers, lists of them, sizes, and the words that
// settings have. Everything else gets a number.
std::string setting_value(Pseudonyms& names, std::string_view name, std::string_view value);

// True for names such as rank-00003.json and rank-00003.r1.json.gz, which say only the rank.
bool is_rank_file_name(std::string_view name);

// Treats a value by its type and its key, wherever in a line it is. Numbers are copied digit by
// digit. A string becomes a pseudonym, unless its key is for words of the contract and it is one.
// Keys and lines that are not the contract's are left out.
class Anonymizer {
 public:
  // Appends the line to `out`, without a line break. If it is no line of the contract, appends
  // nothing and returns false. Throws read::Malformed.
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
  std::string_view names_are_;  // what the next "name" names
};

}  // namespace tprof::trace_export
