// Names units by FSDP's own ranges, by other NVTX ranges, or by lines of the program.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "stats/layer_calls.h"
#include "stats/layers.h"

namespace tprof::stats {

// The names around the calls of a unit.
struct RowNames {
  struct Around {
    std::uint64_t calls = 0;
    std::uint64_t depth = 0;  // summed: the innermost has the least
  };
  using Names = std::map<std::string, Around>;

  std::set<std::string> modules{};
  std::uint64_t gathered = 0;  // in forward passes; the two below count only these
  Names ranges{};
  Names frames{};

  void add(const LayerCalls& rank, std::uint32_t call, bool forward);
  void add(const RowNames& more);
};

// Returns the module that FSDP2 gathers or reduces within a range of this name ("FSDP::all_gather
// (blocks.3)", as torch.autograd.profiler.emit_nvtx makes them). Empty if it names none.
std::string_view module_of(std::string_view range);
std::string_view module_around(const LayerCalls& rank, std::uint32_t call);

// `names` has one entry for each row.
void name_rows(std::vector<LayerRow>& rows, const std::vector<RowNames>& names);

}  // namespace tprof::stats
