// A run of a job, as columns: what each rank's device did, on one clock.
//
// A row is what was timed on the device as one: a call of NCCL, a group's calls on one stream, a
// copy, or the launch of a graph. Rows of several ranks are connected by meetings: a collective, or
// a message of two ranks.
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

// Yes or no of a row.
struct Is {
  bool messages : 1 = false;  // sends and receives
  bool wide : 1 = false;      // float32
  bool backward : 1 = false;  // one of autograd's threads called
  bool mixed : 1 = false;     // calls of several functions, timed as one
  bool launch : 1 = false;    // of a graph, with the kernels that are in it
  bool met : 1 = false;       // it is known when all whom it meets had come
  bool at_once : 1 = false;   // it came to the device before the host made its next call
};

// The rows of one rank, by when they came to the device. Times are nanoseconds on the run's clock.
struct Calls {
  std::vector<std::int64_t> came_ns{};    // the row came to the device
  std::vector<std::int64_t> ended_ns{};   // it ended there
  std::vector<std::int64_t> called_ns{};  // the host called it, or had ended its group
  std::vector<std::int64_t> waited_ns{};  // by its launches, since the row called before it
  std::vector<std::uint32_t> comm{};    // the process's number of the communicator; kNoComm: a copy
  std::vector<std::uint16_t> stream{};  // the rank's streams are numbered as they come
  std::vector<Bucket> bucket{};         // of the first of its calls, as for name, count and wide
  std::vector<text::Kept> name{};
  std::vector<std::uint64_t> count{};  // API argument
  std::vector<std::uint32_t> made{};   // calls
  std::vector<std::uint64_t> bytes{};  // of all of these
  // When all whom it meets had come, as far as that is known, and no later than it ended. A row
  // that meets nobody came by itself.
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

// Its rows by when they were called.
std::vector<std::size_t> by_call(const Calls& calls);

// A copy between host and device.
struct Copy {
  std::int64_t called_ns = 0;
  std::uint64_t bytes = 0;
};

// A copy for which the host waited, and when. It does so within a call that copies from or to
// pageable memory, and behind one that reads a value into pinned memory.
struct Blocked {
  static constexpr std::int64_t kRoundedNs = 100;  // which times in lines may be by

  // From here on the host went on.
  std::int64_t goes_on_ns() const { return host.to_ns - kRoundedNs; }

  Interval host{};
  bool to_device = false;
  std::uint64_t bytes = 0;
};

// From where a host began a step to where it began the next.
struct Step {
  std::int64_t number = 0;
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;
  // The host called in it:
  std::uint64_t to_device = 0;    // bytes of copies
  std::uint64_t sent = 0;         // bytes of calls of NCCL
  std::uint64_t collectives = 0;  // calls of NCCL
  std::uint64_t to_time = 0;      // of these, what has something to do on the device
};

// The one of these in which that moment is; null: none.
inline const Step* step_at(const std::vector<Step>& ascending, std::int64_t ns) {
  const auto next = std::ranges::upper_bound(ascending, ns, {}, &Step::from_ns);
  if (next == ascending.begin() || ns >= std::prev(next)->to_ns) return nullptr;
  return &*std::prev(next);
}

struct Rank {
  const read::Process* process = nullptr;
  std::size_t host = 0;  // job::Hosts::all
  Calls calls{};
  Intervals work{};                // when its device computed, or is taken to have computed
  Intervals sure{};                // of that, what is sure, and
  Intervals unsure{};              // when it may have computed; both empty: all is sure
  std::vector<Blocked> blocked{};  // by when they ended
  std::vector<Copy> loads{};       // to the device, by none of autograd's threads; by when called
  std::vector<Copy> reads{};       // from the device; by when called
  std::vector<Step> steps{};       // of its host, ascending
  Intervals followed{};  // in the gaps between work and these ends nobody looked at the device
  bool windows = false;  // lines are of windows only
  // From the first step on: messages to and from its neighbours, as a stage of a pipeline has, and
  // bytes of those in all-to-alls.
  std::uint64_t stage_messages = 0;
  std::uint64_t exchanged = 0;
};

// When its device computed or communicated, or copied if `copies`: apart, ascending.
Intervals busy_of(const Rank& rank, bool copies);

struct Row {
  std::uint32_t rank = 0;  // of Run::ranks
  std::uint32_t row = 0;   // of its calls
};

struct Run {
  std::vector<Rank> ranks{};
  align::Clocks clocks{{}};              // of the hosts, which the times are already on
  std::vector<std::int64_t> slack_ns{};  // by host: job::Host
  std::uint64_t no_room_for = 0;         // so many calls, as the fewest steps have: there are none
  // The rows that meet: those of meeting m are members[first[m]] to members[first[m + 1] - 1].
  std::vector<std::uint32_t> first{0};
  std::vector<Row> members{};

  std::size_t meetings() const { return first.size() - 1; }
  std::span<const Row> meeting(std::size_t m) const {
    return std::span(members).subspan(first[m], first[m + 1] - first[m]);
  }
  // How wrong the distance between times of two ranks may be, ns.
  double error_ns(const Rank& a, const Rank& b) const {
    return clocks.at_most(a.host, b.host) +
           static_cast<double>(std::max(slack_ns[a.host], slack_ns[b.host]));
  }
  bool timed() const;  // calls of two ranks or more have times on the device
};

// Calls f(row, for how many of `by_coming` it waited): the rows of a meeting as they came. One that
// came when a row had ended was not waited for: a small message may be on its way.
template <typename F>
void each_of_meeting(const Run& run, std::span<const Row> rows, std::vector<Row>& by_coming,
                     F&& f) {
  const auto came = [&](const Row& r) { return run.ranks[r.rank].calls.came_ns[r.row]; };
  by_coming.assign(rows.begin(), rows.end());
  std::ranges::stable_sort(by_coming, {}, came);
  for (const Row& r : rows) {
    const std::int64_t ended = run.ranks[r.rank].calls.ended_ns[r.row];
    const auto later = std::ranges::lower_bound(by_coming, ended, {}, came);
    f(r, static_cast<std::size_t>(later - by_coming.begin()));
  }
}

// From the lines of a job's ranks: of those in `only`, what began in this part of their own time.
// `steps` are the ranks' own, on their own clocks. A file that can't be read gives no rows. Clocks
// of hosts that nothing connects stay as the hosts had them.
using Parts = std::map<const read::Process*, Interval>;
using Steps = std::map<const read::Process*, std::vector<Step>>;
Run load(const Lines& lines, Steps steps, const Parts& only = {});

}  // namespace tprof::run
