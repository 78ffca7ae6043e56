// The lines of calls (X and B) of a trace, and of ranges that are still open, one by one. Only what
// a line says: see the contract.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "read/json.h"
#include "read/load.h"

namespace tprof::read {

struct Event {
  std::string name;
  Bucket bucket = Bucket::ALLGATHER;
  bool unfinished = false;
  bool launch = false;  // of a graph: it has no bucket, and no figures
  bool captured = false;
  bool failed = false;  // refused or only simulated: it moved nothing, its seq was given back
  std::int64_t ts_ns = 0;
  std::int64_t dur_ns = 0;
  std::optional<std::int64_t> comm;
  bool numbered = false;  // has a seq: its communicator is not one that stands for many
  std::uint64_t seq = 0;
  std::uint64_t count = 0;
  std::string dtype;
  std::uint64_t bytes = 0;
  std::optional<std::int64_t> device;  // of a copy
  HostMemory host_memory = HostMemory::unknown;
  std::optional<std::int64_t> peer;
  std::int64_t thread = 0;
  std::string reduce;                      // empty: none
  std::int64_t site = 0;                   // 0: not known
  std::optional<std::int64_t> stream = 0;  // its number, 0: the default stream; nothing: not known

  bool collective() const { return numbered && bucket != Bucket::P2P; }
};

// The process that a line of the trace belongs to: the last whose header came before it; of lanes
// the last. Null: the line stands before all of them.
const Process* owner_at(const Trace& trace, std::uint64_t offset);

// One line of an NVTX range, or of a scope of the API.
struct Range {
  // closed: pushed and popped. open: not ended with the trace. started, ended: the two lines of
  // one that was started by itself, or popped from under another; both have its `id`.
  enum class Phase { closed, open, started, ended, mark };
  Phase phase = Phase::closed;
  std::string name;
  std::optional<std::string> domain;  // nothing: the default domain, or one that is not known
  std::int64_t thread = 0;            // that began it
  std::int64_t ts_ns = 0;
  std::int64_t dur_ns = 0;  // closed
  std::string id{};
  std::int64_t category = 0;  // 0: none, or it has a name
  std::string category_name{};
  std::string color{};                   // "#rrggbb"; empty: none
  std::optional<long double> payload{};  // of integers of 64 bits, with all digits on x86 and Arm
  std::uint64_t elements = 0;            // that a scope told, 0: none
  std::uint64_t bytes = 0;
  std::string error{};  // the type of the exception that left it; empty: none
};

// The device's time of a call, or of calls that have it together.
struct DeviceTime {
  std::string name;
  std::optional<std::int64_t> comm;
  std::optional<std::uint64_t> seq;    // of the first
  std::optional<std::int64_t> device;  // of a copy
  bool launch = false;                 // of a graph: all of it, computation too
  std::int64_t ts_ns = 0;              // on the host's clock
  std::int64_t dur_ns = 0;
  std::int64_t queued_ns = 0;  // since the call on the host began
  std::uint64_t calls = 1;
  std::int64_t thread = 0;  // that made the call
  std::int64_t lane = 0;    // of the stream
};
DeviceTime device_time_of(const object& line);

// What a thread was called when it was first seen.
struct ThreadName {
  std::int64_t thread = 0;
  std::string name;
};

struct LineReader {
  // Whose lines are wanted; empty: everybody's.
  std::function<bool(const Process&)> wanted{};
  std::function<void(const Process&, const Event&)> event{};
  std::string_view event_start{};  // what lines of wanted events begin with
  std::function<void(const Process&, const Event&)> launch{};
  // What a process did last, whether or not it has a line of its own (`tprof_last`).
  std::function<void(const Process&, const Event&)> last{};
  std::function<void(const Process&, const Range&)> range{};       // of any phase
  std::function<void(const Process&, const Range&)> open_range{};  // pushed, and not popped
  std::function<void(const Process&, const DeviceTime&)> device_time{};
  std::function<void(const Process&, const ThreadName&)> thread{};  // to all of its lanes
  std::function<void(const Line&)> metadata{};
  std::function<void(const Process&)> end{};  // behind its last line
};

// All lines of a trace in their order, in bounded memory. Throws BadInput with the line's offset.
void read_lines(const Trace& trace, const LineReader& reader);

}  // namespace tprof::read
