// The program's NVTX ranges by name: how long they took, and what was called within them.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "interpose/format/buckets.h"
#include "read/told_lines.h"
#include "run/lines.h"
#include "tables/durations.h"

namespace tprof::tables {

// The open start/end ranges (nvtxRangeStart) of a process, which have separate lines for begin and
// end. Keeps at most kMost.
class StartedRanges {
 public:
  void start(const read::Range& r) {
    if (open_.size() < kMost) open_.try_emplace(r.id, r);
  }
  // Returns when the range ended by this line began; nullopt if unknown.
  std::optional<std::int64_t> end(const read::Range& r) {
    const auto began = open_.find(r.id);
    if (began == open_.end()) return std::nullopt;
    const std::int64_t ts_ns = began->second.ts_ns;
    open_.erase(began);
    return ts_ns;
  }
  const std::map<std::string, read::Range>& open() const { return open_; }  // by id

 private:
  static constexpr std::size_t kMost = 4096;
  std::map<std::string, read::Range> open_;
};

struct RangeKey {
  std::string domain;  // empty: the default domain, or unknown
  std::string name;
  bool mark = false;          // an instant without duration and contents
  std::int64_t category = 0;  // 0: none, or it has a name
  std::string category_name{};

  auto operator<=>(const RangeKey&) const = default;  // NOLINT(modernize-use-nullptr)
};

struct Moved {
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;
};

// Calls by bucket.
using Inside = std::array<Moved, kBucketCount>;

// Numbers that the program gave to ranges.
struct Payloads {
  std::uint64_t count = 0;
  long double sum = 0;
  long double min = 0;
  long double max = 0;

  void add(const Payloads& other);
  long double mean() const { return count == 0 ? 0 : sum / static_cast<long double>(count); }
};

struct RangeTotal {
  Spread time;              // of ended ranges; for marks only the count
  std::uint64_t open = 0;   // not ended by the end of the trace
  std::uint64_t apart = 0;  // of `time`: start/end ranges, which have no `inside`
  std::uint64_t vague = 0;  // may contain more calls than `inside`
  std::set<std::int64_t> ranks{};
  // Calls that the range's thread began while it was open: directly executed, with a line, without
  // graph launches. A call within two ranges is in both.
  Inside inside{};
  Payloads payloads{};
  std::uint64_t elements = 0;  // given by scopes
  std::uint64_t bytes = 0;
  std::uint64_t errors = 0;            // of `time`: left by an exception
  std::optional<std::string> color{};  // nullopt: none has one; empty: they differ
  std::uint64_t beyond = 0;            // of `time`: without a line, so their deviation is unknown
  std::uint64_t device_timed = 0;      // scopes with a time on the device
  std::uint64_t device_ns = 0;

  RangeTotal& operator+=(const RangeTotal& more);
};

struct RangeTotals {
  static constexpr std::size_t kMaxNames = 10'000;  // all later names share one

  std::map<RangeKey, RangeTotal> ranges;
  std::uint64_t dropped = 0;  // ranges without a line
  bool all_lines = true;      // every call has a line, if its bucket gets any
};

// The scopes of a process as of its last ledger, exact even without lines. If a process holds
// several ranks, its first rank has them.
std::span<const read::ScopeTotal> scopes_of(const run::Lines& lines, const read::Process& rank);

// Uses bounded memory. Throws BadInput for an unreadable line.
RangeTotals range_totals(const run::Lines& lines);

}  // namespace tprof::tables
