// The counts that each rank of a job moved in a step.
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

// The parts of a call that tell it from others, but the communicator. A kind has fewer of them.
using Key = tables::OpKey;

// The counts of one step: means may be broken numbers.
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

// As tables::RankGroups adds calls up.
void add(Moved& to, const read::Event& event, const read::DeviceTime*);

// Returns the same function and type, on any communicator and of any size.
inline Key kind_of(const Key& key) {
  return {.bucket = key.bucket, .name = key.name, .dtype = key.dtype};
}

// Adds what passes, by kind.
template <typename Passes>
Figures by_kind(const Figures& figures, const Passes& passes) {
  Figures kinds;
  for (const auto& [key, moved] : figures) {
    if (passes(key)) kinds[kind_of(key)] += moved;
  }
  std::erase_if(kinds, [](const auto& kind) { return kind.second == Moved{}; });
  return kinds;
}

// Norms, losses and barriers come and go, and batches differ.
bool tells_steps_apart(const Key& key);

// "steps 5,10 have", or how many they are.
std::string steps_have(const std::vector<std::int64_t>& steps);

// Those that moved the same.
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
  Figures often{};  // as Usual has it, the most of these ranks
};

struct Measured {
  enum class From { step_lines, lines, ledger };
  From from = From::ledger;
  std::size_t steps = 0;              // that the figures are of, on the rank that has most
  std::size_t found = 0;              // steps or micro-batches
  bool may_be_steps = false;          // these, of which several were taken for one; nothing tells
  bool may_be_micro_batches = false;  // these, each of which was taken for one; nothing tells
  std::size_t left_out = 0;           // steps, on the rank that has most of them
  bool usual = false;                 // the others are alike but for copies; else they may differ
  std::vector<Group> groups{};        // the largest first
  // NCCL's calls of steps beside the usual one, against that, as Usual has them: of any rank that
  // makes most. Setup is apart.
  std::map<std::int64_t, Figures> other_steps{};
  std::map<std::int64_t, Figures> setup{};
  std::int64_t nranks = 0;           // of the job
  std::vector<std::string> notes{};  // sentences without their full stop
  std::vector<read::Skipped> unreadable{};
};

struct Asked {
  std::uint64_t steps = 0;  // that the job made; 0: as found
  std::uint64_t micro_batches = 1;
  bool each_is_step = false;  // each of those that are found: somebody said so
  bool copies = true;         // else NCCL's calls only
};

// Throws BadInput if no steps are known, or no rank made one. There is a group at least.
Measured measure(const run::Lines& all_lines, const Asked& asked);

}  // namespace tprof::budget
