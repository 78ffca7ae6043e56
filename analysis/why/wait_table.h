// How long NCCL calls waited for other ranks and how long they transferred, by operation, size and
// communicator.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "interpose/format/buckets.h"
#include "job/jobs.h"
#include "run/run.h"
#include "steps/found.h"
#include "text/text.h"
#include "why/peak.h"

namespace tprof::why {

// Sums over calls for which it is known when the last rank came.
struct Spent {
  std::uint64_t calls = 0;
  std::int64_t wait_ns = 0;
  std::int64_t transfer_ns = 0;

  void operator+=(const Spent& more) {
    calls += more.calls;
    wait_ns += more.wait_ns;
    transfer_ns += more.transfer_ns;
  }
};

// How often a rank came last by more than the clocks' error, and how long after the last but one.
struct CameLast {
  std::uint64_t times = 0;
  std::int64_t sum_ns = 0;
  std::int64_t most_ns = 0;
};

struct WaitOfRank {
  const read::Process* rank = nullptr;
  std::int64_t on_comm = 0;  // its rank in the communicator
  Spent spent{};
  CameLast last{};
};

struct WaitRow {
  std::string comm{};  // id
  std::int64_t nranks = 0;
  Bucket bucket = Bucket::ALLGATHER;
  std::int64_t size_class = 0;
  text::Ranks ranks{};
  std::size_t hosts = 0;
  // From all ranks' ledgers, so including calls that were not timed.
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;
  Spent spent{};
  Spent in_steps{};                    // the part called in a step
  std::uint64_t rank_steps = 0;        // sum of its ranks' steps
  std::uint64_t meetings = 0;          // collectives or messages with known times on all ranks
  std::int64_t usual_transfer_ns = 0;  // their median
  std::optional<double> busbw_GBps{};  // of the usual transfer; nullopt: unknown
  std::optional<double> peak_share{};  // share of the bandwidth that the user expects
  std::vector<WaitOfRank> of_ranks{};  // by rank in the communicator
  std::map<std::int64_t, Spent> of_steps{};  // by step number, over its ranks

  bool spans_hosts() const { return hosts > 1; }
  // The rank that was last most often; null: none by more than the clocks' error.
  const WaitOfRank* most_often_last() const;
};

struct WaitTable {
  std::vector<WaitRow> rows{};    // sorted by time, the longest first
  std::uint64_t step_stride = 1;  // every step_stride-th step has its own figures
  bool known = false;             // false: nothing was timed on the device
};

WaitTable wait_table_of(const run::Run& run, const job::Job& job, const steps::Found& found,
                        const Peak& peak);

}  // namespace tprof::why
