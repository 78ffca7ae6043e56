// The ledgers of a job's processes added up, and the bandwidths that follow.
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

// The common properties of all calls of one line of the operations table.
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

// Calls f(row) for every row that counts: executed calls only (direct and replayed; a captured call
// was not executed).
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

// Returns the line of the operations table that a call, or a row of a process's ledger, is in.
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
// Subtracts some of the calls, what they moved and their host time. Nullopt if there are fewer, as
// in a process whose last ledger is older than its lines.
std::optional<read::Amounts> without(const read::Amounts& all, const read::Amounts& part);

// Bandwidths as nccl-tests defines them (its doc/PERFORMANCE.md), in units of 1e9 bytes a second.
// algbw: bytes over device time, of the calls that were timed there. Nullopt if none was: host time
// is the time to enqueue, and a bandwidth from it would mean nothing. busbw: algbw times the share
// of a message that crosses the busiest link; nullopt for copies.
std::optional<double> algbw(const read::Amounts& amounts);
std::optional<double> busbw(const OpKey& key, const read::Amounts& amounts);
double bus_factor(Bucket bucket, std::int64_t nranks);

// Operations of several keys, added up.
struct Together {
  read::Amounts amounts{};
  double bus_bytes = 0;  // bytes x bus factor
  bool bus = true;       // all that were timed have one

  void add(const OpKey& key, const read::Amounts& more);
  std::optional<double> busbw() const;
};

// The part of ALLGATHER that moves pickled objects instead of tensors.
// torch.distributed.all_gather_object gathers one int64 (the size), then bytes. That is a
// one-element int64 ncclAllGather directly followed on the same communicator by a uint8 one. Both
// calls are counted. They show in event lines only. Nullopt if lines of any process are missing.
std::optional<read::Amounts> object_gathers(const run::Lines& lines);

// The counts of one epoch of a process: between two calls of tprof_reset, or of tprof ctl reset.
// Leaves in the ledger only what that epoch added to it; the first epoch is 0. A longest time that
// may stem from an earlier epoch becomes 0, since it is not known. Throws BadInput if the process
// has no such epoch, or if the ledger with which it began is missing.
void keep_epoch(read::Process& process, std::int64_t epoch);

}  // namespace tprof::tables
