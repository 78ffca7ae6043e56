// The contents of a traced process's metadata lines.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "read/rows.h"
#include "text/kept.h"

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

using Variables = std::map<std::string, std::string>;

// Shares one copy among all ranks with the same variables.
class KeptVariables {
 public:
  KeptVariables() : KeptVariables(Variables{}) {}
  explicit KeptVariables(const Variables& all);

  operator const Variables&() const { return *all_; }  // NOLINT(google-explicit-constructor)
  const Variables& operator*() const { return *all_; }
  const Variables* operator->() const { return all_; }
  std::string_view get(std::string_view name, std::string_view absent = "") const {
    const auto variable = all_->find(std::string(name));
    return variable == all_->end() ? absent : variable->second;
  }

  template <typename Archive>
  void state(Archive& archive) {
    archive.kept(*this, *all_);
  }

 private:
  const Variables* all_;
};

struct Header {
  text::Kept version{};  // of libtprof.so; empty: unknown
  text::Kept run_id;     // empty: none
  std::optional<std::int64_t> rank;
  std::optional<std::int64_t> world_size;
  std::optional<std::int64_t> local_rank{};  // from the launcher
  bool identified = false;                   // rank and world size come from a tprof_identity line
  std::int64_t restart = 0;
  text::Kept host;
  text::Kept boot_id;
  std::uint64_t pid_namespace = 0;  // 0: unknown
  std::int64_t pid = 0;
  std::int64_t start_ns = 0;
  std::optional<ProcessId> forked_from;  // a traced process
  std::optional<Launcher> launcher;
  text::Kept rendezvous;  // equal for ranks with the same rendezvous address, empty: none
  text::Kept command;
  std::int64_t base_time_ns = 0;
  // CLOCK_MONOTONIC at ts 0; all processes of a boot share that clock. nullopt: unknown.
  std::optional<std::int64_t> monotonic_ns;
  std::vector<Anchor> clock;
  std::optional<std::int64_t> nccl_version;
  text::Kept nccl_path;
  std::optional<std::int64_t> cudart_version;
  text::Kept cudart_path;
  std::vector<std::int64_t> devices;
  KeptVariables config;
  KeptVariables env;
  std::string ring;        // path of the ring file, empty: none
  text::Kept window_of{};  // for a window's file the name of the rank file; else empty
};

struct Comm {
  static constexpr std::string_view kUnknown = "?";
  std::int64_t comm = 0;  // local to the process
  text::Kept id;          // equal on all ranks; kUnknown if it can't be matched
  text::Kept alias{};     // its id on some ranks (ncclCommGrow); empty: none
  text::Kept birth{};     // added to the parent's id to make this id; empty: not a child
  std::optional<text::Kept> name;
  std::int64_t nranks = 0;
  std::int64_t rank = 0;  // -1: stands for many communicators
  std::int64_t device = 0;
  std::optional<std::int64_t> parent;  // local to the process
  // How often this rank called split, shrink and grow on it.
  std::uint64_t splits = 0;
  std::uint64_t shrinks = 0;
  std::uint64_t grows = 0;
  text::Kept ended{};  // the last function that ended it and returned; empty: none

  bool known() const { return id != kUnknown; }
};

// Only compared for equality.
using Signature = std::uint64_t;

struct Collectives {
  std::int64_t comm = 0;
  std::uint64_t count = 0;
  Signature signature = 0;
  std::vector<Signature> marks{};
  // Only in a Flight Recorder dump, which has no signature:
  std::optional<std::uint64_t> ended{};  // ended on the device
  std::uint64_t started = 0;             // begun or ended, as far as PyTorch looked
  bool messages = false;                 // it also has sends or receives
  bool by_status = false;                // `count` is from the status, not from an entry
};

// Memory allocated by the program (TPROF_MEMORY).
struct MemoryUse {
  std::string kind;                    // the contract's name
  std::optional<std::int64_t> device;  // for kind "device"; nullopt: unknown
  std::uint64_t bytes = 0;
  std::uint64_t peak = 0;
};

// Calls of one function that creates or ends communicators.
struct LifeCalls {
  text::Kept name;
  std::uint64_t calls = 0;
  std::uint64_t failed = 0;
  std::uint64_t unfinished = 0;
  std::uint64_t host_ns = 0;
  std::uint64_t host_ns_max = 0;
};

// The counts of the whole run up to `ts_ns`.
struct Ledger {
  std::int64_t epoch = 0;  // the epoch of `ts_ns`
  bool ends_epoch = false;
  std::int64_t ts_ns = 0;
  Rows rows;
  std::vector<Collectives> collectives;
  std::vector<LifeCalls> life{};
  std::optional<std::vector<MemoryUse>> memory;  // nullopt: not requested
};

struct BoundFunction {
  text::Kept name;
  text::Kept library;
  std::uint64_t calls = 0;
};

// A library or variable in the process that affects what was seen.
struct Noted {
  text::Kept kind;
  text::Kept path;
  std::uint64_t calls = 0;  // known calls; 0: no number

  auto operator<=>(const Noted&) const = default;
};

// How long devices ran kernels other than NCCL's, and how long this was recorded. Both are sums
// over the devices that ran any.
struct Compute {
  std::uint64_t busy_ns = 0;
  std::uint64_t window_ns = 0;
};

// The drop reason of lines in a window's file that is not beside the rank file.
inline constexpr std::string_view kNotHere = "elsewhere";

struct Footer {
  std::map<std::string, std::uint64_t> dropped;         // by reason
  std::map<std::string, std::uint64_t> ranges_dropped;  // NVTX ranges, by reason
  std::map<std::string, std::uint64_t> timing_lost;     // calls without device time, by reason
  std::map<std::string, std::uint64_t> exposure_lost;   // timed calls without exposed time
  std::uint64_t steps_dropped = 0;                      // ended steps without a line
  std::uint64_t window_files = 0;                       // number of windows' files
  std::optional<Compute> compute;                       // nullopt: unknown
  std::uint64_t self_cost_ns = 0;                       // CPU time of the library's own threads
  std::uint64_t own_timed_calls = 0;  // a sample of calls, and the library's own time in them
  std::uint64_t own_ns = 0;
  std::optional<std::int64_t> base_time_ns;  // the header's, before any merge
  std::vector<BoundFunction> functions;
  // Calls that bypassed the wrappers, by NCCL function. nullopt: unknown.
  std::optional<std::map<std::string, std::uint64_t>> missed;
  std::vector<Noted> unseen;  // anything that can move data past the wrappers
  std::vector<Noted> tools;
  std::optional<std::uint64_t> exit_status;
  bool complete = false;
  bool partial = false;   // some counts were lost with the process's memory
  bool snapshot = false;  // written while the process lived: more may have followed
};

// How the lines of a process end.
enum class End {
  closed,     // footer: it closed normally
  recovered,  // no footer, process gone: the ring file has the rest
  partial,    // the same, but not all counts fitted (disk full): lower bounds
  running,    // no footer, process alive: as of now
  lost,       // no footer and no ring file: exact up to the last ledger line only
  dumped,     // a Flight Recorder dump: what came after it is unknown
};

struct Process {
  std::string file;
  std::uint64_t offset = 0;  // of its header
  std::int64_t line_pid = 0;
  text::Kept only{};  // the filters of the merge that wrote it; empty: none
  Header header;
  std::map<std::int64_t, Comm> comms;
  std::optional<Ledger> ledger;    // the last one; nullopt: unknown
  std::vector<Ledger> epoch_ends;  // the ledger at the end of each earlier epoch
  std::optional<Footer> footer;
  End end = End::lost;
  std::uint64_t ledgers = 0;          // how many were read
  std::uint64_t windows_missing = 0;  // missing windows' files
  bool cut = false;                   // the file's last line is truncated
  bool cut_short = false;             // the file's compressed data is truncated
  bool snapshot = false;              // running as of its last ledger; it may have ended since
  bool forced = false;                // recovered by force: its snapshot is in the rank file
  // A process that holds several ranks (ncclCommInitAll, one thread per GPU) becomes one Process
  // per rank, in a row. Each has its part of the counts and a copy of what belongs to the whole
  // process (header, clock, footer).
  std::size_t lane = 0;
  std::size_t lanes = 1;
  std::int64_t device = -1;  // only if there are several lanes
};

// Returns null if the process has no communicator of that number.
inline const Comm* comm_of(const Process& p, const std::optional<std::int64_t>& number) {
  const auto found = number ? p.comms.find(*number) : p.comms.end();
  return found == p.comms.end() ? nullptr : &found->second;
}

// Returns the rows of the last ledger; none if there is no ledger.
inline const Rows& rows_of(const Process& p) {
  static const Rows kNone;
  return p.ledger ? p.ledger->rows : kNone;
}
inline std::span<const Collectives> collectives_of(const Process& p) {
  return p.ledger ? std::span<const Collectives>(p.ledger->collectives)
                  : std::span<const Collectives>();
}

// True if calls of this bucket get lines, while there is room.
bool wants_lines(const Process& process, Bucket bucket);

// The setting by which no call of the process gets a line, such as "TPROF_EVENTS=off"; empty: none.
std::string_view no_lines_by(const Process& process);

// True if a rank forked the process and it is no rank itself, such as a data loader.
inline bool is_child(const Process& p) {
  return p.header.forked_from && p.header.rank && p.comms.empty();
}

// Splits a process into its ranks by the contract's rule. A process that is one rank is returned
// unchanged.
std::vector<Process> lanes_of(Process process);

// Returns the lane that a call belongs to: that of its communicator or of its device, else the
// first. `any`: one of the process's lanes, inside the trace.
const Process& lane_of_call(const Process& any, const std::optional<std::int64_t>& comm,
                            const std::optional<std::int64_t>& device);

}  // namespace tprof::read
