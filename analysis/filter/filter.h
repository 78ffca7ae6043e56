// The choice of what a command is asked about, in the same words for every command: --ranks,
// --steps, --ops, --sizes, --comm and --phase.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "interpose/format/call_choice.h"
#include "job/jobs.h"
#include "read/events.h"
#include "run/lines.h"
#include "steps/found.h"
#include "tables/phases.h"
#include "tables/rank_calls.h"
#include "tables/steps.h"

namespace tprof::filter {

// As they stand on the command line. Empty: all of them.
struct Words {
  std::string ranks{};
  std::string steps{};
  std::string ops{};
  std::string sizes{};
  std::string comms{};
  std::string phases{};

  bool of_calls() const;  // any but --ranks
  bool empty() const { return ranks.empty() && !of_calls(); }
  // "only ranks 0-3, steps 10-19"; empty: all.
  std::string sentence() const;
  // Each that is given, with its name: "ranks", "steps", ...
  std::vector<std::pair<const char*, std::string>> given() const;
};

struct Filter {
  Words words{};
  std::optional<tables::StepList> steps{};
  std::vector<std::string> ops{};    // names or patterns
  std::vector<Sizes> sizes{};        // any of them; none: all sizes
  std::vector<std::string> comms{};  // names, ids, beginnings of ids, numbers, or roles
  std::set<tables::StepPhase> phases{};
};

// Throws BadInput that says what was expected.
Filter parsed(const Words& words);

// True if a list such as "0-3,7" has this rank. Throws BadInput that says what was expected.
bool is_listed(std::string_view ranks, std::int64_t rank);

// Tells of a call, or of a row of a ledger, whether a filter lets it pass.

// some: it depends on the call, of which a row has no more than the range of its size.
enum class Holds { no, yes, some };

using PhasesOfRanks = run::ByRank<tables::RankPhases>;

class Calls {
 public:
  Calls() = default;
  // Throws BadInput with the names that are there, if a name is none of the job's.
  Calls(const Filter& filter, const job::Job& job);

  bool on(const read::Process& rank, std::int64_t comm) const;  // the communicator
  // By operation, communicator and size.
  Holds row(const read::Process& rank, const read::Row& row) const;
  // The launch of a graph, which is of no operation, size and communicator.
  bool launch(const read::Process& rank, const read::Event& e) const;
  // By all; `found` and `phases` have to be set if steps and phases are in the filter.
  bool call(const read::Process& rank, const read::Event& e) const;
  bool time(const read::Process& rank, const read::DeviceTime& t) const;

  const steps::Found* found = nullptr;
  const PhasesOfRanks* phases = nullptr;
  // When calls of the chosen operations and sizes began, and on which thread: the line of a device
  // time does not say the size, and of a copy not the direction. Empty: nobody asks time().
  using Begun = std::pair<std::int64_t, std::int64_t>;
  std::map<const read::Process*, std::set<Begun>> begun{};
  bool needs_begun() const { return !filter_.ops.empty() || !filter_.sizes.empty(); }

 private:
  bool named(const read::Process& rank, Bucket bucket, std::string_view name,
             const std::optional<std::int64_t>& comm) const;
  bool moment(const read::Process& rank, std::int64_t thread, std::int64_t ts_ns) const;

  Filter filter_;
  std::map<const read::Process*, std::set<std::int64_t>> comms_;  // their numbers
};

}  // namespace tprof::filter
