// A run of a job, as columns: what each rank's device did, on one clock.
//
// A row is what was timed on the device as one: a call of NCCL, a group's calls on one stream, or a
// copy. Rows of several ranks are connected by meetings: a collective, or a message of two ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "interpose/format/buckets.h"
#include "job/jobs.h"
#include "run/lines.h"
#include "text/kept.h"

namespace tprof::run {

// The rows of one rank, by when they came to the device. Times are nanoseconds on the run's clock.
struct Calls {
  std::vector<std::int64_t> came_ns{};    // the row came to the device
  std::vector<std::int64_t> ended_ns{};   // it ended there
  std::vector<std::int64_t> called_ns{};  // the host called it
  std::vector<std::int64_t> waited_ns{};  // by its launches, since the row called before it
  std::vector<std::uint32_t> comm{};    // the process's number of the communicator; kNoComm: a copy
  std::vector<std::uint16_t> stream{};  // the rank's streams are numbered as they come
  std::vector<bool> messages{};         // sends and receives
  std::vector<Bucket> bucket{};         // of the first of its calls, as for name, count and wide
  std::vector<text::Kept> name{};
  std::vector<std::uint64_t> count{};  // API argument
  std::vector<bool> wide{};            // float32
  std::vector<std::uint32_t> made{};   // calls
  std::vector<std::uint64_t> bytes{};  // of all of these
  std::vector<bool> backward{};        // one of autograd's threads called
  // Bytes of copies that were not timed, on its stream since the row before it there.
  std::vector<std::uint64_t> copied{};

  static constexpr std::uint32_t kNoComm = UINT32_MAX;
  std::size_t size() const { return came_ns.size(); }
};

struct Interval {
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;
};

// Puts them in order and makes one of those that touch.
std::vector<Interval> joined(std::vector<Interval> all);

// A copy to the device that none of autograd's threads made.
struct Load {
  std::int64_t called_ns = 0;
  std::uint64_t bytes = 0;
};

// A copy for which the host waited, and when.
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
};

struct Rank {
  const read::Process* process = nullptr;
  Calls calls{};
  std::vector<Interval> work{};    // when its device computed: ascending, apart from each other
  std::vector<Blocked> blocked{};  // by when they ended
  std::vector<Load> loads{};       // by when they were called
  std::vector<Step> steps{};       // of its host, ascending
};

// When its device computed or communicated, or copied if `copies`: apart, ascending.
std::vector<Interval> busy_of(const Rank& rank, bool copies);

struct Row {
  std::uint32_t rank = 0;  // of Run::ranks
  std::uint32_t row = 0;   // of its calls
};

struct Run {
  std::vector<Rank> ranks{};
  // The rows that meet: those of meeting m are members[first[m]] to members[first[m + 1] - 1].
  std::vector<std::uint32_t> first{0};
  std::vector<Row> members{};

  std::size_t meetings() const { return first.size() - 1; }
  std::span<const Row> meeting(std::size_t m) const {
    return std::span(members).subspan(first[m], first[m + 1] - first[m]);
  }
};

// From the lines of a job's ranks: of those in `only`, what began in this part of their own time.
// `steps` are the ranks' own, on their own clocks. A file that can't be read gives no rows. Clocks
// of hosts that nothing connects stay as the hosts had them.
using Parts = std::map<const read::Process*, Interval>;
using Steps = std::map<const read::Process*, std::vector<Step>>;
Run load(const Lines& lines, const Parts& only = {}, const Steps& steps = {});

}  // namespace tprof::run
