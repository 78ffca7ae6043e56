// The calls of one rank from its lines, with what their threads and the ranges around them tell of
// their phase and their layer.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "read/events.h"
#include "stats/phase_names.h"

namespace tprof::stats {

// Calls that are alike.
struct CallKind {
  Bucket bucket = Bucket::ALLGATHER;
  std::int64_t comm = -1;  // -1: a copy
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  std::uint64_t elements = 0;
  std::string dtype{};
};

// The buckets of calls that may carry parameters or gradients.
inline constexpr Bucket kLayerBuckets[] = {Bucket::ALLGATHER, Bucket::RESHARDING,
                                           Bucket::ALLREDUCE};
bool moves_layers(const CallKind& kind);
// The thread that calls backward() has an order of its collectives, and of no others.
bool collective(const CallKind& kind);

struct RankCall {
  std::int64_t ts_ns = 0;
  std::int64_t dur_ns = 0;
  std::uint64_t seq = 0;
  std::int64_t site = 0;             // 0: not known
  std::uint32_t kind = 0;            // index into RankCalls::kinds
  std::uint32_t thread = 0;          // index into RankCalls::threads
  std::optional<StepPhase> range{};  // by the innermost range whose name tells it
};

using Places = std::vector<std::uint32_t>;  // indices into RankCalls::calls, in their order

struct RankCalls {
  explicit RankCalls(const read::Process& rank) : rank_(rank) {}
  static constexpr std::size_t kMost = std::size_t{1} << 22;

  struct Thread {
    std::int64_t tid = 0;
    std::string name{};  // empty: not known
    Places calls{};
    bool autograd() const;
    bool loads() const;  // a thread of PyTorch that only loads data
  };

  void call(const read::Event& e);
  void range(const read::Range& r);
  void thread(const read::ThreadName& t);

  const CallKind& kind(std::uint32_t call) const { return kinds[calls[call].kind]; }
  read::Amounts amounts(std::uint32_t call) const;
  Places by_time() const;

  // True if every call of the rank has its line, and each thread its name. Then the lines have as
  // many calls of autograd threads as the ledger.
  bool whole() const;
  // True if threads have the names that the program gave them (anonymised ones do not).
  bool named() const;

  std::vector<CallKind> kinds;
  std::vector<RankCall> calls;
  std::vector<Thread> threads;
  bool all = true;  // false: there were more than kMost
  // Names of the ranges around a call that moves layers, innermost first and each once. They are
  // indices into `names`, by the call's index.
  std::map<std::uint32_t, std::vector<std::uint32_t>> around;
  std::vector<std::string> names;

 protected:
  const read::Process& rank_;
  void let_go();  // of the calls, when all is told that they tell
  bool names_ranges_ = false;

 private:
  // Counts calls of autograd threads: those in the lines, and those in the ledger that get lines.
  std::pair<std::uint64_t, std::uint64_t> autograd_calls() const;
  std::uint32_t thread_of(std::int64_t tid);
  void add_name(std::uint32_t call, std::string_view name);

  std::map<std::tuple<Bucket, std::int64_t, std::uint64_t, std::uint64_t, std::string>,
           std::uint32_t>
      numbers_;
  std::map<std::int64_t, std::uint32_t> tids_;
  std::map<std::string, std::uint32_t, std::less<>> name_numbers_;
  std::size_t kept_ = 0;  // names in `around`
};

}  // namespace tprof::stats
