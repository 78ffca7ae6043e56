// Calls by what they have in common in any run: without ids of communicators.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tables/comms.h"
#include "tables/totals.h"

namespace tprof::tables {

struct OpKind {
  Bucket bucket = Bucket::ALLGATHER;
  std::string function{};
  std::string dtype{};
  std::int64_t bytes_class = -1;
  // The communicator's role; for a copy between host and device the host's memory. Empty: not
  // known.
  std::string role{};
  std::string size{};  // of the communicator: "world", or a number; empty: a copy

  std::uint64_t hash() const {
    const std::hash<std::string> text;
    return run::hash_of(bytes_class, static_cast<std::int64_t>(text(function) ^ 3 * text(dtype)),
                        static_cast<std::int64_t>(text(role) ^ 3 * text(size)));
  }
  auto operator<=>(const OpKind&) const = default;  // NOLINT(modernize-use-nullptr)
};

// Made once for several micro-batches, at least in some programs: gradients may be reduced once for
// all of them, and logs written.
bool once_for_several(Bucket bucket);

class OpKinds {
 public:
  OpKinds(std::int64_t world, const std::vector<CommSummary>& comms);

  template <typename Call>  // an event, or a row of a ledger or of a step
  OpKind of(const Call& call, const read::Process& process) const {
    return of(op_of(call, process), call.host_memory);
  }

 private:
  OpKind of(const OpKey& op, HostMemory memory) const;

  std::int64_t world_;
  std::map<std::pair<std::string, std::int64_t>, std::string> roles_;
};

}  // namespace tprof::tables
