// Reads the lines of a trace one by one: calls (X and B), NVTX ranges, device times and times of
// computation. The structs hold what a line says (see the contract), and whether the user asked for
// it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "interpose/format/record.h"
#include "read/json.h"
#include "read/load.h"
#include "text/kept.h"

namespace tprof::read {

struct Event {
  text::Kept name{};
  Bucket bucket = Bucket::ALLGATHER;
  bool unfinished = false;
  bool launch = false;  // a graph launch, which has no bucket and no figures
  bool captured = false;
  bool failed = false;  // refused or only simulated: it moved nothing, and its seq is reused
  std::int64_t ts_ns = 0;
  std::int64_t dur_ns = 0;
  std::optional<std::int64_t> comm{};
  bool numbered = false;  // has a seq: its communicator is known exactly
  std::uint64_t seq = 0;
  std::uint64_t count = 0;
  text::Kept dtype{};
  std::uint64_t bytes = 0;
  std::optional<std::int64_t> device{};  // only for copies
  HostMemory host_memory = HostMemory::unknown;
  std::optional<std::int64_t> peer{};
  std::int64_t thread = 0;
  text::Kept reduce{};                     // empty: none
  std::int64_t site = 0;                   // 0: unknown
  std::optional<std::int64_t> stream = 0;  // 0: the default stream, nullopt: unknown
  std::int64_t group = 0;                  // ncclGroupStart's; 0: none
  bool chosen = true;                      // by the filters of the command line

  bool collective() const { return numbered && bucket != Bucket::P2P; }
  // True if it moved data when it was called. A captured call does so when its graph is launched.
  bool executed() const { return !unfinished && !captured && !failed; }
  bool operator==(const Event&) const = default;
};

// A call that creates, ends or derives a communicator.
struct LifeCall {
  text::Kept name{};
  bool unfinished = false;
  bool grouped = false;
  bool group_ends = true;  // its group has ended, or it is in no group
  std::int64_t ts_ns = 0;
  std::int64_t dur_ns = 0;
  std::int64_t thread = 0;
  std::optional<std::int64_t> comm{};  // the one it was given, or created
  text::Kept id{};                     // of the created one; empty: none, or unknown
  std::uint64_t seq = 0;               // ordinal of a child
  std::int64_t nranks = 0;             // ranks that have to call it, 0: unknown
  std::optional<std::int64_t> rank{};  // in the created one
  std::uint64_t result = 0;

  bool failed() const { return !unfinished && !nccl_accepted(result); }
  bool operator==(const LifeCall&) const = default;
};

// Returns the process that the line at `offset` belongs to: the last one whose header precedes it,
// and its last lane if it has several. Null if the line precedes all headers.
const Process* owner_at(const Trace& trace, std::uint64_t offset);

// A line of an NVTX range, or of a scope of our own API.
struct Range {
  // closed: pushed and popped. open: not ended when the trace ended. started, ended: the two lines
  // of a range that was started rather than pushed, or popped out of order; both have its `id`.
  enum class Phase { closed, open, started, ended, mark };
  Phase phase = Phase::closed;
  std::string name;
  std::optional<std::string> domain;  // nullopt: the default domain, or an unknown one
  std::int64_t thread = 0;            // the thread that began it
  std::int64_t ts_ns = 0;
  std::int64_t dur_ns = 0;  // only for closed ranges
  std::string id{};
  std::int64_t category = 0;  // 0: no category, or one with a name
  std::string category_name{};
  std::string color{};                   // "#rrggbb"; empty: none
  std::optional<long double> payload{};  // 64-bit integers keep all digits on x86 and Arm
  std::uint64_t elements = 0;            // of a scope, 0: none
  std::uint64_t bytes = 0;
  std::string error{};  // type of the exception that left it; empty: none

  bool left_open() const { return phase == Phase::open && id.empty(); }  // pushed, not popped
};

// The device time of a call, or of several calls that were timed together.
struct DeviceTime {
  text::Kept name{};
  std::optional<std::int64_t> comm{};
  std::optional<std::uint64_t> seq{};    // number of the first call
  std::optional<std::int64_t> device{};  // only for copies
  bool launch = false;                   // a whole graph launch, with its computation
  bool computes = false;                 // a copy that BUSY includes
  std::int64_t ts_ns = 0;                // on the host's clock
  std::int64_t dur_ns = 0;
  std::int64_t queued_ns = 0;  // since the host's call began
  std::int64_t waited_ns = 0;  // threads waited for the device, since the previous timed call
  std::uint64_t calls = 1;
  std::int64_t thread = 0;  // the thread that made the call
  std::int64_t lane = 0;    // the lane of the stream
  bool chosen = true;       // by what its line has, which is no size

  bool operator==(const DeviceTime&) const = default;
};
DeviceTime device_time_of(const Fields& line);

// A damaged line may have a negative duration, which counts as 0.
inline std::uint64_t not_below_0(std::int64_t ns) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(ns, 0));
}

// Returns the amounts of one executed call and its time on the device. Calls of a group that share
// one time are assumed to be equal.
Amounts amounts_of(const Event& event, const DeviceTime* time = nullptr);

// Returns the call or graph launch of a line; nullopt for anything else.
std::optional<Event> call_of(const Fields& line);

// An interval in which a device computed, or may have computed. The contract says what the time
// between two of them means.
struct Busy {
  std::int64_t device = 0;
  std::int64_t ts_ns = 0;  // on the host's clock
  std::int64_t dur_ns = 0;
  bool unsure = false;  // it may have computed
  std::int64_t lane = 0;

  bool operator==(const Busy&) const = default;
};

// The name of a thread when it was first seen.
struct ThreadName {
  std::int64_t thread = 0;
  std::string name;
};

// The calls that the user asked for; empty: all. Readers still get all lines, since steps and times
// come from all of them, and look at `chosen` themselves.
struct Chosen {
  std::function<bool(const Process&, const Event&)> call{};
  std::function<bool(const Process&, const DeviceTime&)> time{};
  std::function<const Rows&(const Process&)> rows{};  // the chosen calls as ledger rows
};

struct LineReader {
  // Selects the processes whose lines are wanted. Empty: all.
  std::function<bool(const Process&)> wanted{};
  std::function<void(const Process&, const Event&)> event{};
  std::function<void(const Process&, const Event&)> launch{};
  // The last calls of a process (`tprof_last`), whether or not they have lines of their own.
  std::function<void(const Process&, const Event&)> last{};
  std::function<void(const Process&, const Range&)> range{};
  std::function<void(const Process&, const DeviceTime&)> device_time{};
  std::function<void(const Process&, const Busy&)> busy{};
  std::function<void(const Process&, const LifeCall&)> life{};
  // Called for each lane of the process.
  std::function<void(const Process&, const ThreadName&)> thread{};
  std::function<void(const Process&, const Line&)> metadata{};
  std::function<void(const Process&)> end{};  // after the last line
  Chosen chosen{};
};

// Reads all lines of a trace in order, in bounded memory. Throws BadInput with the line's offset.
void read_lines(const Trace& trace, const LineReader& reader);

}  // namespace tprof::read
