// Names that say nothing about whose a trace is.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

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

// Returns a setting's value. Keeps what names no folder, user or host: numbers, lists of them,
// sizes, and the words that settings have. Everything else gets a number.
std::string setting_value(Pseudonyms& names, std::string_view name, std::string_view value);
// True for the names of settings that the library writes down.
bool is_setting(std::string_view name);

// True for names such as rank-00003.json and rank-00003.r1.json.gz, which say only the rank.
bool is_rank_file_name(std::string_view name);

}  // namespace tprof::trace_export
