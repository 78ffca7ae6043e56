// Metadata lines that only some readers parse: steps, windows, call sites and scopes, as the rank's
// own writer wrote them.
#pragma once

#include <compare>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "read/lines.h"
#include "read/rows.h"

namespace tprof::read {

// tprof_step
struct StepLine {
  std::int64_t step = 0;
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;
  std::uint64_t launches = 0;  // graph launches, whose calls are in no row
  bool lost = false;           // calls may be missing
  bool found = false;          // by the writer itself, not marked
  Rows rows{};
};

// tprof_group: its outermost ncclGroupEnd, in which NCCL enqueues the group's work.
struct GroupLine {
  std::int64_t group = 0;
  std::int64_t to_ns = 0;
};

// tprof_window: one for each window of TPROF_SCHEDULE or tprof ctl.
struct WindowLine {
  std::int64_t from_ns = 0;                                       // after the file's base_time_ns
  std::int64_t to_ns = std::numeric_limits<std::int64_t>::max();  // it may still be open
};

struct SiteFrame {
  std::string function;
  std::string file;
  std::int64_t line = 0;

  auto operator<=>(const SiteFrame&) const = default;  // NOLINT(modernize-use-nullptr)
};

// Consecutive native frames in one object.
struct NativeFrames {
  std::string object;  // path
  std::string build_id;
  std::vector<std::uint64_t> offsets{};
};

// tprof_site: where in the program calls came from. At most 64 frames of each kind are kept.
struct SiteLine {
  std::int64_t site = 0;  // number
  std::string object;     // path; empty: not known
  std::uint64_t offset = 0;
  std::string symbol;
  std::vector<SiteFrame> frames{};  // Python's, innermost first
  std::vector<NativeFrames> native{};
  bool native_cut = false;  // there were more
};

// The ended scopes of one name and category.
struct ScopeTotal {
  std::string name;
  std::string category;  // empty: none
  std::uint64_t count = 0;
  std::uint64_t total_ns = 0;
  std::uint64_t max_ns = 0;
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;
  std::uint64_t errors = 0;
  std::uint64_t device_timed = 0;  // of `count`: those with a time on the device
  std::uint64_t device_ns = 0;
  std::map<std::uint64_t, std::uint64_t> bins{};  // shortest duration of a bin -> count
};
void add(ScopeTotal& to, const ScopeTotal& more);

// The scopes of a tprof_ledger line.
struct ScopesOfLedger {
  std::vector<ScopeTotal> scopes{};
};

// Parses such a line: T is StepLine, GroupLine, WindowLine, SiteLine or ScopesOfLedger. Throws
// BadInput with the line's offset.
template <typename T>
T parsed_line(const Line& line, const std::filesystem::path& file);

}  // namespace tprof::read
