// When each rank of a job arrived at its collectives and left them: a list by number for each rank
// of a communicator, on its host's clock. Memory is bounded.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "align/clocks.h"
#include "job/hosts.h"
#include "run/lines.h"

namespace tprof::check {

// A rank's call of a collective, and who waits for whom in it.
struct CalledAs {
  Bucket bucket = Bucket::ALLREDUCE;
  std::uint8_t size_class = 0;  // floor(log2(bytes))
  bool rooted = false;
  bool awaited = false;  // others wait for this rank
  bool waits = false;    // it waits for others
  bool called = false;
  bool timed = false;

  bool same_kind(const CalledAs& other) const {
    return bucket == other.bucket && rooted == other.rooted && size_class == other.size_class;
  }
};

struct Arrivals {
  // A member of a communicator. Its columns are indexed by number / stride.
  struct Rank {
    const read::Process* process = nullptr;
    const read::Comm* comm = nullptr;
    std::size_t host = 0;  // job::Hosts::all
    bool has_lines = false;
    std::vector<CalledAs> as{};
    std::vector<std::int64_t> came_ns{};
    std::vector<std::int64_t> called_ns{};
    std::vector<std::int64_t> ended_ns{};  // on the device; empty: host times
    // The longest it may have waited for values read since its previous collective; 0: it read
    // none. Empty: device times.
    std::vector<std::int64_t> read_ns{};

    // Null: it is unknown when the rank arrived at that collective, or left it.
    const CalledAs* at(std::size_t n) const {
      const bool known = n < as.size() && as[n].called && (as[n].timed || ended_ns.empty());
      return known ? &as[n] : nullptr;
    }
  };
  struct Comm {  // of several ranks
    std::string id;
    std::uint64_t collectives = 0;
    std::vector<Rank> ranks{};
  };

  job::Hosts hosts;
  // Times are device times. Otherwise they are times of host calls; these return once the work is
  // enqueued, so there are no ends.
  bool on_device = false;
  std::uint64_t stride = 1;   // every stride-th collective is kept
  std::uint64_t untimed = 0;  // with device times: calls without one, which are left out
  std::vector<Comm> comms{};

  // The hosts' clocks, as far as device times determine them: times of host calls prove nothing
  // about other hosts.
  align::Clocks clocks{{}};
  std::uint64_t across_hosts = 0;  // collectives that the clocks were fitted to
  // How many of these contradict the fit by more than a microsecond: a clock was set, or they are
  // not the same collective.
  std::uint64_t violated = 0;

  // Calls see(comm, n) for each collective that some rank is known to have reached, by communicator
  // and number, until ranks called different things: after that, equal numbers no longer mean the
  // same collective.
  void each(const std::function<void(const Comm&, std::size_t n)>& see) const;
  // How far off the difference of two hosts' times may be.
  double error_ns(std::size_t a, std::size_t b) const;
};

// Keeps at most `room` calls: if there are more, only every second collective, or every fourth, and
// so on. Files that can't be read are left out.
Arrivals arrivals_of(const run::Lines& lines, std::size_t room = std::size_t{1} << 23);

// True if the ledgers of two ranks, the fewest to compare, have collectives that were timed on the
// device.
bool timed_on_device(const job::Job& job);

// Returns the function of a bucket whose collectives make all ranks wait for each other.
const char* collective_name(Bucket bucket);

}  // namespace tprof::check
