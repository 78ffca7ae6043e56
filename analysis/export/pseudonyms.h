// Names in place of names: equal ones stay equal, and nothing of the old name is in the new one.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace tprof::trace_export {

class Pseudonyms {
 public:
  // "host-1" for the first host, "host-2" for the next; an empty name stays empty.
  std::string of(std::string_view kind, std::string_view name);
  std::size_t number(std::string_view kind, std::string_view name);

 private:
  std::map<std::string, std::map<std::string, std::size_t, std::less<>>, std::less<>> known_;
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

}  // namespace tprof::trace_export
