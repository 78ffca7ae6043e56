// Sums over the ledgers of a job's processes, and bandwidths.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>

#include "read/events.h"
#include "run/known.h"
#include "run/lines.h"

namespace tprof::tables {

using Buckets = std::array<read::Amounts, kBucketCount>;
// Copies between host and device, by the kind of the host's memory.
using HostMemories = std::array<Buckets, kHostMemoryKinds>;
constexpr bool has_host_side(Bucket bucket) {
  return bucket == Bucket::H2D || bucket == Bucket::D2H;
}

// The key that the calls of a row of the operations table share.
struct OpKey {
  Bucket bucket = Bucket::ALLGATHER;
  text::Kept name{};
  text::Kept dtype{};
  text::Kept comm_id{};     // empty: a copy
  std::int64_t nranks = 0;  // 0: a copy
  std::int64_t bytes_class = -1;

  std::uint64_t hash() const {
    return run::hash_of(bucket, name, dtype, comm_id, nranks, bytes_class);
  }
  // clang-tidy 14 takes the 0 of a rewritten comparison for a pointer.
  auto operator<=>(const OpKey&) const = default;  // NOLINT(modernize-use-nullptr)
};

using Ops = std::map<OpKey, read::Amounts>;

// Calls f(row) for every row of executed calls: direct and replayed, not captured.
template <typename F>
void each_row(const read::Rows& rows, F&& f) {
  for (const read::Row& row : rows) {
    if (row.mode != Mode::captured) f(row);
  }
}
template <typename F>
void each_row(const read::Process& process, F&& f) {
  each_row(read::rows_of(process), f);
}

// Returns the row of the operations table for a call, or for a row of a ledger.
OpKey op_of(const read::Event& event, const read::Process& process);
OpKey op_of(const read::Row& row, const read::Process& process);

Buckets bucket_totals(const read::Rows& rows);
inline Buckets bucket_totals(const read::Process& process) {
  return bucket_totals(read::rows_of(process));
}
void add_host_memory(HostMemories& totals, const read::Rows& rows);
void add_ops(Ops& ops, const read::Process& process, const read::Rows& rows);
inline void add_ops(Ops& ops, const read::Process& process) {
  add_ops(ops, process, read::rows_of(process));
}
read::Amounts sum(const Buckets& buckets);
void add(Buckets& to, const Buckets& more);
// Subtracts calls, what they moved and their host time. Nullopt if there are fewer, as when the
// last ledger is older than the lines.
std::optional<read::Amounts> without(const read::Amounts& all, const read::Amounts& part);

// Bandwidths as in nccl-tests (doc/PERFORMANCE.md), in 1e9 bytes per second. algbw: bytes divided
// by device time, for calls timed there; nullopt if there are none, since host time only covers
// enqueueing. busbw: algbw times the share of a message that crosses the busiest link; nullopt for
// copies.
std::optional<double> algbw(const read::Amounts& amounts);
std::optional<double> busbw(const OpKey& key, const read::Amounts& amounts);
double bus_factor(Bucket bucket, std::int64_t nranks);

// Sums over several operations.
struct Together {
  read::Amounts amounts{};
  double bus_bytes = 0;  // bytes x bus factor
  bool bus = true;       // all timed ones have a bus factor

  void add(const OpKey& key, const read::Amounts& more);
  std::optional<double> busbw() const;
};

// Returns the part of ALLGATHER that moves pickled objects: torch.distributed.all_gather_object
// makes a one-element int64 ncclAllGather (the size), directly followed on the same communicator by
// a uint8 one. Counts both calls. Needs event lines; nullopt if any are missing.
std::optional<read::Amounts> object_gathers(const run::Lines& lines);

// Reduces the ledger to one epoch: the counts between two resets (tprof_reset, tprof ctl reset).
// The first epoch is 0. A longest time that may be from an earlier epoch becomes 0, as it is
// unknown. Throws BadInput if the process has no such epoch, or if its first ledger is missing.
void keep_epoch(read::Process& process, std::int64_t epoch);

}  // namespace tprof::tables
