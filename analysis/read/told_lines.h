// Metadata lines that only some readers want, and ask for one by one: what the rank's own writer
// says of a step, a window or a place in the program, and of scopes.
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
  std::uint64_t launches = 0;  // of graphs, whose calls are in no row
  bool lost = false;           // calls may be missing
  bool found = false;          // by the writer itself: nothing marked it
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
  std::int64_t to_ns = std::numeric_limits<std::int64_t>::max();  // it may not have ended
};

struct SiteFrame {
  std::string function;
  std::string file;
  std::int64_t line = 0;

  auto operator<=>(const SiteFrame&) const = default;  // NOLINT(modernize-use-nullptr)
};

// Frames of native code, one after the other in one object.
struct NativeFrames {
  std::string object;  // its path
  std::string build_id;
  std::vector<std::uint64_t> offsets{};
};

// tprof_site: where in the program calls came from. 64 frames of a kind are taken at most.
struct SiteLine {
  std::int64_t site = 0;  // its number
  std::string object;     // path; empty: not known
  std::uint64_t offset = 0;
  std::string symbol;
  std::vector<SiteFrame> frames{};  // Python's, innermost first
  std::vector<NativeFrames> native{};
  bool native_cut = false;  // there were more
};

// The scopes of one name and category that ended.
struct ScopeTotal {
  std::string name;
  std::string category;  // empty: none
  std::uint64_t count = 0;
  std::uint64_t total_ns = 0;
  std::uint64_t max_ns = 0;
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;
  std::uint64_t errors = 0;
  std::uint64_t device_timed = 0;  // of `count`: those that have a time on the device
  std::uint64_t device_ns = 0;
  std::map<std::uint64_t, std::uint64_t> bins{};  // counts, by the bin's shortest duration
};
void add(ScopeTotal& to, const ScopeTotal& more);

// Those of a tprof_ledger line.
struct ScopesOfLedger {
  std::vector<ScopeTotal> scopes{};
};

// Returns what such a line says: T is StepLine, GroupLine, WindowLine, SiteLine or ScopesOfLedger.
// Throws BadInput, with the line's place in the file.
template <typename T>
T told_in(const Line& line, const std::filesystem::path& file);

}  // namespace tprof::read
