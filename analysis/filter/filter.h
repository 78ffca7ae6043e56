// The filters, which are the same for all commands: --ranks, --steps, --ops, --sizes, --comm and
// --phase.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "interpose/format/setting_values.h"
#include "job/jobs.h"
#include "read/events.h"
#include "run/lines.h"
#include "steps/found.h"
#include "tables/phases.h"
#include "tables/rank_calls.h"
#include "tables/steps.h"

namespace tprof::filter {

// The filters as given on the command line; empty: everything.
struct Words {
  std::string ranks{};
  std::string steps{};
  std::string ops{};
  std::string sizes{};
  std::string comms{};
  std::string phases{};
  std::string merged{};  // those of the merge that wrote the trace, as a sentence; these are done

  bool of_calls() const;  // any except --ranks
  bool empty() const { return ranks.empty() && !of_calls(); }
  // "only ranks 0-3, steps 10-19", after those of the merge; empty: all.
  std::string sentence(std::string_view before_merged = "merged with ") const;
  // The given ones with their names: "ranks", "steps", ...
  std::vector<std::pair<const char*, std::string>> given() const;
};

struct Filter {
  Words words{};
  std::optional<tables::StepList> steps{};
  std::vector<std::string> ops{};    // names or patterns
  std::vector<Sizes> sizes{};        // any of these; empty: all sizes
  std::vector<std::string> comms{};  // names, ids, beginnings of ids, numbers, or roles
  std::set<tables::StepPhase> phases{};
};

// Throws BadInput with what was expected.
Filter parsed(const Words& words);

// True if a list such as "0-3,7" has this rank. Throws BadInput with what was expected.
bool is_listed(std::string_view ranks, std::int64_t rank);

// Decides whether a call, or a row of a ledger, passes a filter.

// some: depends on the call, as a row only has a range of sizes.
enum class Holds { no, yes, some };

using PhasesOfRanks = run::ByRank<tables::RankPhases>;

class Calls {
 public:
  Calls() = default;
  // Throws BadInput with the job's names if a name is unknown.
  Calls(const Filter& filter, const job::Job& job);

  bool on(const read::Process& rank, std::int64_t comm) const;  // on a communicator
  // Checks operation, communicator and size.
  Holds row(const read::Process& rank, const read::Row& row) const;
  // A graph launch, which has no operation, size and communicator.
  bool launch(const read::Process& rank, const read::Event& e) const;
  // Checks everything; needs `found` and `phases` if the filter has steps and phases.
  bool call(const read::Process& rank, const read::Event& e) const;
  bool time(const read::Process& rank, const read::DeviceTime& t) const;

  const steps::Found* found = nullptr;
  const PhasesOfRanks* phases = nullptr;
  // When, and on which thread, calls of the chosen operations and sizes began, for time(): the line
  // of a device time lacks the size, and a copy's direction.
  using Begun = std::pair<std::int64_t, std::int64_t>;
  std::map<const read::Process*, std::set<Begun>> begun{};
  bool needs_begun() const { return !filter_.ops.empty() || !filter_.sizes.empty(); }

 private:
  bool named(const read::Process& rank, Bucket bucket, std::string_view name,
             const std::optional<std::int64_t>& comm) const;
  bool moment(const read::Process& rank, std::int64_t thread, std::int64_t ts_ns) const;

  Filter filter_;
  std::map<const read::Process*, std::set<std::int64_t>> comms_;  // communicator numbers
};

}  // namespace tprof::filter
