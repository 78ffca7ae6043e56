// Names units by FSDP's own ranges, by other NVTX ranges, or by lines of the program.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stats/rank_calls.h"
#include "stats/sites.h"

namespace tprof::stats {

// module: FSDP2's own ranges name the module. range: the innermost NVTX range that is around all of
// its forward gathers and no other unit's. site: the innermost line of the program from which all
// of its forward gathers come, and no other unit's.
enum class NamedBy { none, module, range, site };
inline constexpr std::string_view kNamedByNames[] = {"", "module", "range", "site"};

// The names around the forward gathers of a unit.
struct RowNames {
  struct Around {
    std::uint64_t calls = 0;
    std::uint64_t depth = 0;  // summed: the innermost has the least
  };

  void add(const RankCalls& rank, const SiteLines& sites, std::uint32_t call);
  RowNames& operator+=(const RowNames& more);

  std::uint64_t gathered = 0;  // calls
  std::set<std::string> modules{};
  std::map<std::pair<NamedBy, std::string>, Around> around{};  // ranges and sites
};

// Returns the module that FSDP2 gathers or reduces within a range of this name ("FSDP::all_gather
// (blocks.3)", as torch.autograd.profiler.emit_nvtx makes them). Empty if no range names one.
std::string_view module_around(const RankCalls& rank, std::uint32_t call);

// Returns the name of each row, and what names it.
std::vector<std::pair<NamedBy, std::string>> names_of(const std::vector<const RowNames*>& rows);

}  // namespace tprof::stats
