// The settings, read from the environment once, when tracing starts.
#pragma once

#include <cstdint>

#include "interpose/format/ring_file.h"
#include "interpose/format/settings.h"

namespace tprof {

struct Config {
  char output_dir[1024];  // %j %h %p %r still in it
  char run_id[128];       // "" if none
  char ring_dir[1024];    // "": auto
  EventLines events;
  std::uint64_t quota;              // bytes of event lines, 0: no limit
  std::uint32_t copy_element_size;  // bytes: 1, 2, 4 or 8
  std::uint32_t ring_records;       // per thread, a power of two
  bool all_ranks;                   // TPROF_RANKS is unset, or "all"
  char ranks[kMaxRankList + 1];     // its text
  bool redact;                      // leave out of the header what looks like a secret
};

// TPROF_DISABLE is set to something true: cheap enough for any process.
bool disabled_by_environment();

// TPROF_NVTX: whose ranges are wanted. A bad value is spoken of when tracing starts.
enum class NvtxRanges : std::uint8_t { off, nccl, all };
NvtxRanges nvtx_by_environment();

// A bad value costs one line on standard error and the default is used; so does a variable that
// is not a setting but is named as one.
Config read_config();

// Whether `rank` is in a list such as "0-7,64".
bool rank_in_list(const char* list, std::int64_t rank);

}  // namespace tprof
