// The amounts that each rank of a job moved in a step.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "check/names.h"
#include "read/events.h"
#include "read/folder.h"
#include "read/rows.h"
#include "steps/found.h"
#include "tables/totals.h"
#include "text/text.h"

namespace tprof::budget {

// Identifies calls by everything except the communicator. A kind has fewer parts.
using Key = tables::OpKey;

// The counts of one step; means may be fractions.
struct Moved {
  double calls = 0;
  double bytes = 0;
  double elements = 0;

  auto operator<=>(const Moved&) const = default;  // NOLINT(modernize-use-nullptr)
  Moved& operator+=(const Moved& m) {
    return *this = {calls + m.calls, bytes + m.bytes, elements + m.elements};
  }
  Moved operator-(const Moved& m) const {
    return {calls - m.calls, bytes - m.bytes, elements - m.elements};
  }
  Moved operator/(double n) const { return {calls / n, bytes / n, elements / n}; }
};
using Figures = std::map<Key, Moved>;

// For tables::RankGroups.
void add(Moved& to, const read::Event& event, const read::DeviceTime*);

// Returns the key's function and type without communicator and size.
inline Key kind_of(const Key& key) {
  return {.bucket = key.bucket, .name = key.name, .dtype = key.dtype};
}

// Adds up the keys that pass, by kind.
template <typename Passes>
Figures by_kind(const Figures& figures, const Passes& passes) {
  Figures kinds;
  for (const auto& [key, moved] : figures) {
    if (passes(key)) kinds[kind_of(key)] += moved;
  }
  std::erase_if(kinds, [](const auto& kind) { return kind.second == Moved{}; });
  return kinds;
}

// False for norms, losses and barriers, which come and go, and for batches, which differ.
bool tells_steps_apart(const Key& key);

// "steps 5,10 have", or the number of steps.
std::string steps_have(const std::vector<std::int64_t>& steps);

// Ranks that moved the same.
struct Members {
  text::Ranks numbers{};              // of ranks
  std::vector<std::string> others{};  // ascending; of processes without a rank: "pid 17 on node7"

  Members() = default;
  Members(std::initializer_list<std::int64_t> ranks) : numbers(std::vector(ranks)) {}
  explicit Members(const check::Processes& all);

  std::size_t size() const { return numbers.size() + others.size(); }
  void add(const Members& more);

  std::string list() const;   // "0-3,7", "0-3,7, pid 17 on node7"
  std::string names() const;  // "rank 3", "ranks 0-3,7, pid 17 on node7"

  auto operator<=>(const Members&) const = default;  // NOLINT(modernize-use-nullptr)
};

struct Group {
  Members ranks;
  Figures figures;
  Figures often{};  // as in Usual, the maximum over these ranks
};

struct Measured {
  enum class From { step_lines, lines, ledger };
  From from = From::ledger;
  std::size_t steps = 0;              // in the figures, on the rank with most
  std::size_t found = 0;              // steps or micro-batches
  bool may_be_steps = false;          // several of them were read as one step, but each may be one
  bool may_be_micro_batches = false;  // each was read as a step, but may be a micro-batch
  std::size_t left_out = 0;           // steps, on the rank with most of them
  bool usual = false;           // the others are the same apart from copies; else they may differ
  std::vector<Group> groups{};  // the largest first
  // NCCL calls of unusual steps relative to the usual one, as in Usual, from the rank that makes
  // most. Setup is separate.
  std::map<std::int64_t, Figures> other_steps{};
  std::map<std::int64_t, Figures> setup{};
  std::int64_t nranks = 0;           // of the job
  std::vector<std::string> notes{};  // sentences without a full stop
  std::vector<read::Skipped> unreadable{};
};

struct Asked {
  std::uint64_t steps = 0;  // made by the job; 0: as found
  std::uint64_t micro_batches = 1;
  bool each_is_step = false;  // the user says that each found one is a step
  bool copies = true;         // else NCCL calls only
};

// Throws BadInput if no steps are known, or no rank made one. Returns at least one group.
Measured measure(const run::Lines& all_lines, const Asked& asked);

}  // namespace tprof::budget
