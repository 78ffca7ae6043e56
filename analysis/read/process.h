// What the metadata lines of one traced process say.
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

// Of which there is one copy for all ranks that have the same.
class KeptVariables {
 public:
  KeptVariables() : KeptVariables(Variables{}) {}
  explicit KeptVariables(const Variables& all);

  operator const Variables&() const { return *all_; }  // NOLINT(google-explicit-constructor)
  const Variables& operator*() const { return *all_; }
  const Variables* operator->() const { return all_; }

 private:
  const Variables* all_;
};

struct Header {
  text::Kept run_id;  // empty: none
  std::optional<std::int64_t> rank;
  std::optional<std::int64_t> world_size;
  bool identified = false;  // rank and world size are not the launcher's: a tprof_identity line's
  std::int64_t restart = 0;
  text::Kept host;
  text::Kept boot_id;
  std::int64_t pid = 0;
  std::int64_t start_ns = 0;
  std::optional<ProcessId> forked_from;  // a traced process
  std::optional<Launcher> launcher;
  text::Kept rendezvous;  // equal for ranks that meet at one address, empty: none
  text::Kept command;
  std::int64_t base_time_ns = 0;
  // CLOCK_MONOTONIC at ts 0, which all processes of a boot share. Nothing: not known.
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
  text::Kept window_of{};  // of a window's file: name of the rank file; empty: it is that
};

struct Comm {
  static constexpr std::string_view kUnknown = "?";
  std::int64_t comm = 0;  // local to the process
  text::Kept id;          // equal on all ranks; or kUnknown: it can't be told which it is of theirs
  std::string alias{};    // the id that some of them know it by (ncclCommGrow), empty: none
  std::string birth{};    // with the parent's id it makes the id of a child, empty: none
  std::optional<std::string> name;
  std::int64_t nranks = 0;
  std::int64_t rank = 0;  // -1: stands for many
  std::int64_t device = 0;
  std::optional<std::int64_t> parent;  // local to the process

  bool known() const { return id != kUnknown; }
};

// What is compared and no more: the number that its digits are.
using Signature = std::uint64_t;

struct Collectives {
  std::int64_t comm = 0;
  std::uint64_t count = 0;
  Signature signature = 0;
  std::vector<Signature> marks;
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
  Rows rows;
  std::vector<Collectives> collectives;
  std::optional<std::vector<MemoryUse>> memory;  // nothing: nobody asked for it
};

struct BoundFunction {
  text::Kept name;
  text::Kept library;
  std::uint64_t calls = 0;
};

// A library or a variable in the process that bears on what was seen.
struct Noted {
  text::Kept kind;
  text::Kept path;

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
  std::map<std::string, std::uint64_t> timing_lost;     // calls without device time, by reason
  std::map<std::string, std::uint64_t> exposure_lost;   // timed calls without exposed time
  std::uint64_t steps_dropped = 0;                      // that ended and have no line
  std::uint64_t window_files = 0;                       // that windows have of their own
  std::optional<Compute> compute;                       // nothing: not known
  std::uint64_t self_cost_ns = 0;                       // CPU time of the library's own threads
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
inline const Rows& rows_of(const Process& p) {
  static const Rows kNone;
  return p.ledger ? p.ledger->rows : kNone;
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
