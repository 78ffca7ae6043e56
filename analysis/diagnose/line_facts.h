// What one pass over a process's lines tells, in memory that does not grow with their number.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/intervals.h"
#include "job/jobs.h"
#include "read/events.h"
#include "read/folder.h"

namespace tprof::diagnose {

// What a row of the ledger and the lines of its calls have in common.
struct CallKey {
  Bucket bucket = Bucket::ALLGATHER;
  std::string name;
  std::string dtype;
  std::optional<std::int64_t> comm;
  Mode mode = Mode::direct;

  // clang-tidy 14 takes the 0 of a rewritten comparison for a pointer.
  auto operator<=>(const CallKey&) const = default;  // NOLINT(modernize-use-nullptr)
};

struct CallSums {
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;
  std::uint64_t unfinished = 0;
};

// Sends or receives of one rank with one other.
struct ChannelKey {
  std::int64_t comm = 0;
  std::int64_t peer = 0;
  bool send = false;

  auto operator<=>(const ChannelKey&) const = default;  // NOLINT(modernize-use-nullptr)
};

struct Channel {
  Intervals seqs;  // calls that returned
  std::uint64_t bytes = 0;
};

struct LineFacts {
  std::map<CallKey, CallSums> calls;
  std::map<std::int64_t, Intervals> collectives;  // by communicator: which have a line
  std::map<ChannelKey, Channel> channels;
  std::map<std::int64_t, std::uint64_t> failed;  // by communicator
  std::map<std::int64_t, std::int64_t> begun;    // by communicator: when its first was called
  std::vector<read::Event> open;                 // calls that never returned
  std::optional<read::Event> last;               // the call or launch that began last, see below
  // Of a process that did not close: the last collective of each communicator, and how many sends
  // and receives there were.
  std::map<std::int64_t, read::Event> last_collective;
  std::map<ChannelKey, std::uint64_t> talked;
  bool from_ring = false;              // its ring tells what it did last, whatever has lines
  std::vector<read::Range> ranges;     // NVTX ranges that are open
  std::vector<read::Anchor> clock;     // all of them, in the order of the file
  std::vector<std::string> decreased;  // where a ledger says less than one before it

  bool any() const { return !calls.empty(); }
};

// Whether each call of the bucket gets a line, as far as there is room.
bool wants_lines(const read::Process& process, Bucket bucket);
// Whether `last` is known to be the last: the ring tells, or all that was called has a line.
bool knows_last(const read::Process& process, const LineFacts& facts);

using Facts = std::map<const read::Process*, LineFacts>;

// Of all processes of a job, several files at a time. `progress` gets the number of files done,
// from any thread. Of a file with a line that can't be read there is nothing but why, in
// `unreadable`.
Facts line_facts(const match::Job& job, const read::Traces& traces,
                 const std::function<void(std::size_t)>& progress,
                 std::vector<read::Skipped>& unreadable);

}  // namespace tprof::diagnose
