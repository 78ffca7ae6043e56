// What the metadata lines of one traced process say.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "interpose/format/buckets.h"
#include "interpose/format/ledger.h"

namespace tprof::read {

struct Anchor {
  std::int64_t ts_ns = 0;
  std::int64_t realtime_ns = 0;
  std::int64_t bracket_ns = 0;
};

struct ProcessId {
  std::int64_t pid = 0;
  std::int64_t start_ns = 0;
};

// The process that started another, on the same host.
struct Launcher {
  std::int64_t pid = 0;
  std::int64_t start_ticks = 0;

  auto operator<=>(const Launcher&) const = default;  // NOLINT(modernize-use-nullptr)
};

struct Header {
  std::string run_id;  // empty: none
  std::optional<std::int64_t> rank;
  std::optional<std::int64_t> world_size;
  bool identified = false;  // rank and world size are not the launcher's: a tprof_identity line's
  std::int64_t restart = 0;
  std::string host;
  std::string boot_id;
  std::int64_t pid = 0;
  std::int64_t start_ns = 0;
  std::optional<ProcessId> forked_from;  // a traced process
  std::optional<Launcher> launcher;
  std::string rendezvous;  // equal for ranks that meet at one address, empty: none
  std::string command;
  std::int64_t base_time_ns = 0;
  // CLOCK_MONOTONIC at ts 0, which all processes of a boot share. Nothing: not known.
  std::optional<std::int64_t> monotonic_ns;
  std::vector<Anchor> clock;
  std::optional<std::int64_t> nccl_version;
  std::string nccl_path;
  std::optional<std::int64_t> cudart_version;
  std::string cudart_path;
  std::vector<std::int64_t> devices;
  std::map<std::string, std::string> config;
  std::map<std::string, std::string> env;
  std::string ring;         // path of the ring file, empty: none
  std::string window_of{};  // of a window's file: name of the rank file; empty: it is that
};

struct Comm {
  static constexpr std::string_view kUnknown = "?";
  std::int64_t comm = 0;  // local to the process
  std::string id;         // equal on all ranks; or kUnknown: it can't be told which it is of theirs
  std::string alias{};    // the id that some of them know it by (ncclCommGrow), empty: none
  std::string birth{};    // with the parent's id it makes the id of a child, empty: none
  std::optional<std::string> name;
  std::int64_t nranks = 0;
  std::int64_t rank = 0;  // -1: stands for many
  std::int64_t device = 0;
  std::optional<std::int64_t> parent;  // local to the process

  bool known() const { return id != kUnknown; }
};

// A sum that would be larger stays at this: a total that is too low must not look like one that is
// right (see Amounts::saturated).
inline constexpr std::uint64_t kSaturated = std::numeric_limits<std::uint64_t>::max();
std::uint64_t saturated_sum(std::uint64_t a, std::uint64_t b);

// Sums of calls that went the same way. The names are the contract's.
struct Amounts {
  std::uint64_t calls = 0;
  std::uint64_t count = 0;
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;
  std::uint64_t host_ns = 0;
  std::uint64_t host_ns_max = 0;
  std::uint64_t device_ns = 0;
  std::uint64_t device_ns_max = 0;
  std::uint64_t device_timed = 0;  // of `calls`: those that the three others speak of
  std::uint64_t device_bytes = 0;
  std::uint64_t waited = 0;      // of those: calls that somebody was seen to wait for,
  std::uint64_t waited_ns = 0;   // their device time,
  std::uint64_t exposed_ns = 0;  // the part of it in which computation stood still
  std::uint64_t exposed_ns_max = 0;
  std::uint64_t late = 0;  // of `waited`: calls that were not through when they were wanted
  std::uint64_t failed = 0;
  std::uint64_t unfinished = 0;
  std::uint64_t replayed = 0;  // of `calls`: by graph launches, so without host time of their own

  Amounts& operator+=(const Amounts& other);
  bool saturated() const;  // a sum of it is only a lower bound
};

struct Row {
  Bucket bucket = Bucket::ALLGATHER;
  std::string name;
  std::string dtype;
  std::optional<std::int64_t> comm;
  std::optional<std::int64_t> device;            // of a copy
  HostMemory host_memory = HostMemory::unknown;  // of one between host and device
  std::int64_t bytes_class = -1;
  Mode mode = Mode::direct;
  ThreadKind thread = ThreadKind::other;  // whose calls they are; of replays it is not known
  Amounts amounts;
};

struct Collectives {
  std::int64_t comm = 0;
  std::uint64_t count = 0;
  std::string signature;
  std::vector<std::string> marks;
};

// What the program had allocated (TPROF_MEMORY).
struct MemoryUse {
  std::string kind;                    // the contract's
  std::optional<std::int64_t> device;  // of kind device; nothing: not known
  std::uint64_t bytes = 0;
  std::uint64_t peak = 0;
};

// Of the whole run up to `ts_ns`.
struct Ledger {
  std::int64_t epoch = 0;  // in which that is
  bool ends_epoch = false;
  std::int64_t ts_ns = 0;
  std::vector<Row> rows;
  std::vector<Collectives> collectives;
  std::optional<std::vector<MemoryUse>> memory;  // nothing: nobody asked for it
};

struct BoundFunction {
  std::string name;
  std::string library;
  std::uint64_t calls = 0;
};

// A library or a variable in the process that bears on what was seen.
struct Noted {
  std::string kind;
  std::string path;

  auto operator<=>(const Noted&) const = default;
};

// How long devices were busy with kernels that are not NCCL's, and in how much time: of each device
// that had any.
struct Compute {
  std::uint64_t busy_ns = 0;
  std::uint64_t window_ns = 0;
};

// Why there is no line where one was written: the window's file is not beside the rank file.
inline constexpr std::string_view kNotHere = "elsewhere";

struct Footer {
  std::map<std::string, std::uint64_t> dropped;         // by reason
  std::map<std::string, std::uint64_t> ranges_dropped;  // NVTX ranges, by reason
  std::uint64_t steps_dropped = 0;                      // that ended and have no line
  std::uint64_t window_files = 0;                       // that windows have of their own
  std::optional<Compute> compute;                       // nothing: not known
  std::optional<std::int64_t> base_time_ns;             // the header's, before any merge
  std::vector<BoundFunction> functions;
  // NCCL's functions, with the calls of each that passed the wrappers by; nothing: not known.
  std::optional<std::map<std::string, std::uint64_t>> missed;
  std::vector<Noted> unseen;  // what can move data past the wrappers
  std::vector<Noted> tools;
  bool complete = false;
  bool partial = false;  // some counts were in memory that died with the process
};

// How the lines of a process end.
enum class End {
  closed,     // footer: it left in order
  recovered,  // no footer, process gone: the ring file gave what was not written
  partial,    // the same, but the file could not hold all counts (disk full): lower bounds
  running,    // no footer, process alive: as of now
  lost,       // no footer and no ring file: exact up to the last ledger line only
};

struct Process {
  std::string file;
  std::uint64_t offset = 0;  // of its header
  std::int64_t line_pid = 0;
  Header header;
  std::map<std::int64_t, Comm> comms;
  std::optional<Ledger> ledger;    // the last; nothing: not known
  std::vector<Ledger> epoch_ends;  // as it was where each but the last epoch ended
  std::optional<Footer> footer;
  End end = End::lost;
  std::uint64_t windows_missing = 0;  // files of windows that are not here
  bool cut = false;                   // the last line of the file is not whole
  bool snapshot = false;  // End::running as of its last ledger: whether it still does is not known
  // A process that holds several ranks (ncclCommInitAll, one thread a GPU) is as many of these, one
  // behind the other, each with its part of the counts. What is the whole process's (header, clock,
  // footer) stands in each.
  std::size_t lane = 0;
  std::size_t lanes = 1;
  std::int64_t device = -1;  // where there are several
};

// Null: it has none of that number.
inline const Comm* comm_of(const Process& p, const std::optional<std::int64_t>& number) {
  const auto found = number ? p.comms.find(*number) : p.comms.end();
  return found == p.comms.end() ? nullptr : &found->second;
}

// What its last ledger has; nothing where none is known.
inline std::span<const Row> rows_of(const Process& p) {
  return p.ledger ? std::span<const Row>(p.ledger->rows) : std::span<const Row>();
}
inline std::span<const Collectives> collectives_of(const Process& p) {
  return p.ledger ? std::span<const Collectives>(p.ledger->collectives)
                  : std::span<const Collectives>();
}

// One that a rank has forked and that is none itself: a data loader, say.
inline bool is_child(const Process& p) {
  return p.header.forked_from && p.header.rank && p.comms.empty();
}

// The ranks of a process by the contract's rule, in their order; the process itself where it is one
// rank.
std::vector<Process> lanes_of(Process process);

// Of the lanes of a process the one that a call belongs to: its communicator's, or its device's;
// the first where neither tells. `any`: one of them, in its place in the trace.
const Process& lane_of_call(const Process& any, const std::optional<std::int64_t>& comm,
                            const std::optional<std::int64_t>& device);

}  // namespace tprof::read
