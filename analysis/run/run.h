// A run of a job as columns: what each rank's device did, on one clock.
//
// A row was timed on the device as a whole: an NCCL call, a group's calls on one stream, a copy, or
// a graph launch. A meeting connects the rows of several ranks: a collective, or a send and its
// receive.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "align/clocks.h"
#include "interpose/format/buckets.h"
#include "run/intervals.h"
#include "run/lines.h"
#include "text/kept.h"

namespace tprof::run {

// Flags of a row.
struct Is {
  bool messages : 1 = false;  // sends and receives
  bool wide : 1 = false;      // float32
  bool backward : 1 = false;  // called by an autograd thread
  bool mixed : 1 = false;     // calls of several functions, timed as one
  bool launch : 1 = false;    // of a CUDA graph, including its kernels
  bool met : 1 = false;       // it is known when all ranks of its meeting had come
  bool at_once : 1 = false;   // it reached the device before the host made its next call
};

// The rows of one rank, by when they reached the device. Times are nanoseconds on the run's clock.
struct Calls {
  std::vector<std::int64_t> came_ns{};    // the row reached the device
  std::vector<std::int64_t> ended_ns{};   // it ended there
  std::vector<std::int64_t> called_ns{};  // the host called it, or had ended its group
  std::vector<std::int64_t> waited_ns{};  // in launches, since the host called the previous row
  std::vector<std::uint32_t> comm{};      // communicator number of the process; kNoComm: a copy
  std::vector<std::uint16_t> stream{};    // numbered in order of appearance
  std::vector<Bucket> bucket{};           // of its first call, as are name, count and wide
  std::vector<text::Kept> name{};
  std::vector<std::uint64_t> count{};  // the API's argument
  std::vector<std::uint32_t> made{};   // calls
  std::vector<std::uint64_t> bytes{};  // of all its calls
  // When all ranks of its meeting had come, if known, and no later than it ended. For a row without
  // a meeting: when it came.
  std::vector<std::int64_t> all_came_ns{};
  std::vector<Is> is{};

  template <typename F>
  void each_column(F&& f) {
    std::apply([&](auto&... column) { (f(column), ...); },
               std::tie(came_ns, ended_ns, called_ns, waited_ns, comm, stream, bucket, name, count,
                        made, bytes, is, all_came_ns));
  }
  static constexpr std::uint32_t kNoComm = UINT32_MAX;
  std::size_t size() const { return came_ns.size(); }
  bool copies(std::size_t row) const { return comm[row] == kNoComm && !is[row].launch; }
};

// True for collectives in which every rank waits for all others.
inline bool all_wait(Bucket bucket) {
  return bucket == Bucket::ALLGATHER || bucket == Bucket::RESHARDING ||
         bucket == Bucket::ALLREDUCE || bucket == Bucket::ALLTOALL;
}

// Returns the rows in the order of their host calls.
std::vector<std::size_t> by_call(const Calls& calls);

// A copy between host and device.
struct Copy {
  std::int64_t called_ns = 0;
  std::uint64_t bytes = 0;
};

// A copy that the host waited for, and when. It waits within a copy from or to pageable memory, and
// after a copy that reads a value into pinned memory.
struct Blocked {
  static constexpr std::int64_t kRoundedNs = 100;  // times in lines may be rounded by this

  // When the host went on.
  std::int64_t goes_on_ns() const { return host.to_ns - kRoundedNs; }

  Interval host{};
  bool to_device = false;
  std::uint64_t bytes = 0;
};

// The first of these, sorted by end, that ended later; the end if none did.
inline auto first_ended_after(const std::vector<Blocked>& blocked, std::int64_t ns) {
  return std::ranges::upper_bound(blocked, ns, {}, [](const Blocked& b) { return b.host.to_ns; });
}

// The time from where a host began a step to where it began the next.
struct Step {
  std::int64_t number = 0;
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;
  // The host called during the step:
  std::uint64_t to_device = 0;    // bytes of copies
  std::uint64_t sent = 0;         // bytes of NCCL calls
  std::uint64_t collectives = 0;  // NCCL calls
  std::uint64_t to_time = 0;      // those that take time on the device
};

// Returns the step that contains the moment; null: none.
inline const Step* step_at(const std::vector<Step>& ascending, std::int64_t ns) {
  const auto next = std::ranges::upper_bound(ascending, ns, {}, &Step::from_ns);
  if (next == ascending.begin() || ns >= std::prev(next)->to_ns) return nullptr;
  return &*std::prev(next);
}

struct Rank {
  const read::Process* process = nullptr;
  std::size_t host = 0;  // job::Hosts::all
  Calls calls{};
  Intervals work{};                // when its device computed, or is assumed to have
  Intervals sure{};                // the sure part of that
  Intervals unsure{};              // when it may have computed; both empty: all is sure
  std::vector<Blocked> blocked{};  // by when they ended
  std::vector<Copy> loads{};       // to the device, except from autograd threads; by when called
  std::vector<Copy> reads{};       // from the device; by when called
  std::vector<Step> steps{};       // of its host, ascending
  Intervals followed{};            // the device was observed only in these
  bool windows = false;            // only windows have lines
  // From the first step on: messages between neighbouring pipeline stages, and bytes of all-to-alls
  // made of messages.
  std::uint64_t stage_messages = 0;
  std::uint64_t exchanged = 0;
};

// Returns when its device computed or communicated, or also copied if `copies`.
Intervals busy_of(const Rank& rank, bool copies);

struct Row {
  std::uint32_t rank = 0;  // of Run::ranks
  std::uint32_t row = 0;   // of its calls
};

struct Run {
  std::vector<Rank> ranks{};
  align::Clocks clocks{{}};              // of the hosts; the times are already adjusted
  std::vector<std::int64_t> slack_ns{};  // by host: job::Host
  std::uint64_t no_room_for = 0;         // calls of the fewest steps, if these don't fit
  // The rows of meeting m are members[first[m]] to members[first[m + 1] - 1]; a message's send is
  // before its receive.
  std::vector<std::uint32_t> first{0};
  std::vector<Row> members{};

  std::size_t meetings() const { return first.size() - 1; }
  std::span<const Row> meeting(std::size_t m) const {
    return std::span(members).subspan(first[m], first[m + 1] - first[m]);
  }
  // How far off the difference of two ranks' times may be, in ns.
  double error_ns(const Rank& a, const Rank& b) const {
    return clocks.at_most(a.host, b.host) +
           static_cast<double>(std::max(slack_ns[a.host], slack_ns[b.host]));
  }
  bool timed() const;  // calls of at least two ranks have times on the device
};

// True if the row can't have ended before all rows of its meeting came, whatever the clocks say: a
// collective in which all ranks wait for all others, and a receive.
inline bool waits_for_all(const Run& run, std::span<const Row> meeting, const Row& row) {
  const Calls& c = run.ranks[row.rank].calls;
  const Is is = c.is[row.row];
  if (!is.met) return false;
  return is.messages ? &row == &meeting.back() : !is.mixed && all_wait(c.bucket[row.row]);
}

// Sorts the rows of a meeting into `by_coming`, and calls f(row, n) if the row waited for the first
// n of them. A row that need not wait for all did not wait for one that came after it had ended: a
// small message may be under way.
template <typename F>
void each_of_meeting(const Run& run, std::span<const Row> rows, std::vector<Row>& by_coming,
                     F&& f) {
  const auto came = [&](const Row& r) { return run.ranks[r.rank].calls.came_ns[r.row]; };
  by_coming.assign(rows.begin(), rows.end());
  std::ranges::stable_sort(by_coming, {}, came);
  for (const Row& r : rows) {
    const std::int64_t ended = run.ranks[r.rank].calls.ended_ns[r.row];
    const auto later = waits_for_all(run, rows, r)
                           ? by_coming.end()
                           : std::ranges::lower_bound(by_coming, ended, {}, came);
    f(r, static_cast<std::size_t>(later - by_coming.begin()));
  }
}

// Loads a run from the lines of a job's ranks; for ranks in `only`, just what began in that part of
// their own time. `steps` are on the ranks' own clocks. A file that can't be read gives no rows.
// Hosts that no communication connects keep their own clocks.
using Parts = std::map<const read::Process*, Interval>;
using Steps = std::map<const read::Process*, std::vector<Step>>;
Run load(const Lines& lines, Steps steps, const Parts& only = {});

}  // namespace tprof::run
