// When the ranks of a job came to their collectives and left them: for each rank of a communicator
// a list by number, on its host's clock. Takes bounded memory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "align/clocks.h"
#include "job/hosts.h"
#include "run/lines.h"

namespace tprof::check {

// A collective as a rank called it, and who waits for whom in it.
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
  // A member of a communicator; its columns are by number / stride.
  struct Rank {
    const read::Process* process = nullptr;
    const read::Comm* comm = nullptr;
    std::size_t host = 0;  // job::Hosts::all
    bool has_lines = false;
    std::vector<CalledAs> as{};
    std::vector<std::int64_t> came_ns{};
    std::vector<std::int64_t> called_ns{};
    std::vector<std::int64_t> ended_ns{};  // on the device; empty: the times are hosts'
    // For how long at most it had waited for values that it read since its collective before;
    // 0: it read none. Empty: the times are devices'.
    std::vector<std::int64_t> read_ns{};

    // Null: it is not known when it came to, or left, its collective there.
    const CalledAs* at(std::size_t n) const {
      const bool known = n < as.size() && as[n].called && (as[n].timed || ended_ns.empty());
      return known ? &as[n] : nullptr;
    }
  };
  struct Comm {  // in which several ranks meet
    std::string id;
    std::uint64_t collectives = 0;
    std::vector<Rank> ranks{};
  };

  job::Hosts hosts;
  // Times are the devices'. Else they are those of the hosts' calls, which return when the work is
  // enqueued, so there are no ends.
  bool on_device = false;
  std::uint64_t stride = 1;   // one in so many collectives is kept
  std::uint64_t untimed = 0;  // with the devices' times: calls without one, which are left out
  std::vector<Comm> comms{};

  // The clocks of the hosts, as far as times on the device determine them: when a host's call began
  // and returned proves nothing about other hosts.
  align::Clocks clocks{{}};
  std::uint64_t across_hosts = 0;  // collectives that tell of the clocks
  // How many of these contradict the clocks by more than a microsecond: a clock was set, or they
  // are not the same collective.
  std::uint64_t violated = 0;

  // Calls see(comm, n) for each collective to which a rank is known to have come, by communicator
  // and number, up to the first in which ranks called different things: from there on equal numbers
  // are no meeting.
  void each(const std::function<void(const Comm&, std::size_t n)>& see) const;
  // How wrong the distance between times of two hosts may be.
  double error_ns(std::size_t a, std::size_t b) const;
};

// `room` is the number of calls to keep. If there are more, every second collective is left out, or
// three of four, and so on. Files that can't be read are left out.
Arrivals arrivals_of(const run::Lines& lines, std::size_t room = std::size_t{1} << 23);

// True if the ledgers of two ranks have collectives that were timed on the device: to compare takes
// two.
bool timed_on_device(const job::Job& job);

// Returns the function of a bucket whose collectives make all ranks wait for each other.
const char* collective_name(Bucket bucket);

}  // namespace tprof::check
