// Layout of the mapped file that a traced process keeps beside its rank file: header, tables,
// per-thread ledgers and rings, and the two commit blocks that tie them to the rank file.
//
// The process maps it MAP_SHARED, so whatever the process wrote is in the page cache when it is
// killed. All references are offsets from the start of the file. An offset beyond the file's end
// stands for a segment that could not be allocated in it (disk full): it was anonymous memory and
// is lost with the process. `Head::volatile_segments` counts them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "interpose/format/control.h"
#include "interpose/format/ledger.h"
#include "interpose/format/memory.h"
#include "interpose/format/ranges.h"
#include "interpose/format/record.h"
#include "interpose/format/schema.h"
#include "interpose/format/scopes.h"
#include "interpose/format/sites.h"
#include "interpose/format/step_mark.h"
#include "interpose/format/windows.h"

namespace tprof {

inline constexpr std::uint32_t kMaxThreads = 1024;
inline constexpr std::uint32_t kSmallestRing = 64;  // records
inline constexpr std::uint32_t kTableChunks = 255;  // so that entry numbers fit into 16 bits
inline constexpr std::uint32_t kChunkEntries = 256;
inline constexpr std::uint32_t kLedgerLevels = 6;
inline constexpr std::uint32_t kMaxFunctions = 512;
inline constexpr std::uint32_t kMaxDataFunctions = 240;  // only the first have records
inline constexpr std::uint32_t kMaxLibraries = 24;
inline constexpr std::uint32_t kMaxStreams = 128;
inline constexpr std::uint32_t kMaxNotes = 48;
inline constexpr std::uint32_t kTimedDevices = 16;  // with figures of their own

// Rows in level n of a thread's ledger: 128, 512, 2048, ... Levels are hash tables that never move
// or grow; a key that finds no place within kLedgerProbe rows goes to the next level.
constexpr std::uint32_t ledger_level_rows(std::uint32_t level) {
  return 128U << (2 * level);
}
inline constexpr std::uint32_t kLedgerProbe = 8;
// A level that could not be allocated. It is not tried again, so that a key keeps its row.
inline constexpr std::uint64_t kNoLevel = 1;
// Rows after those of level 0, for calls that find no row of their own (find_row): enough for each
// bucket, data type and kind of row.
inline constexpr std::uint32_t kOtherRows = 144;
constexpr std::uint32_t ledger_rows_in(std::uint32_t level) {
  return ledger_level_rows(level) + (level == 0 ? kOtherRows : 0);
}

// How the contract's elements follow from an API function's `count`.
enum class Elements : std::uint8_t { count, count_times_ranks };

// The facts about a function of the API tables that readers need.
struct Function {
  char name[48];
  Elements elements;
  bool collective;       // takes part in seq and signature
  std::uint8_t library;  // 1-based index into Head::libraries, 0: never called
  std::uint8_t reserved[5];
  std::atomic<std::uint64_t> missed;  // calls that bypassed the wrappers, as far as known
};
static_assert(sizeof(Function) == 64);

struct Communicator {
  std::uint64_t id;      // equal on all its ranks, except for `alias`; 0: not known
  std::uint64_t alias;   // the id that some of its ranks use instead, 0: none (ncclCommGrow)
  std::uint64_t birth;   // of a child: id = mix64(parent's id ^ birth)
  std::uint32_t parent;  // communicator of this process, 0: none
  std::int32_t nranks;
  std::int32_t rank;
  std::int32_t device;
  std::uint32_t children[3];  // splits, shrinks and grows that this rank called
  std::uint32_t ended;        // the last function that ended it and returned, 0: none
  bool has_name;
  char name[87];
};
static_assert(sizeof(Communicator) == 144);

// A loaded object, or an environment variable, that affects what is seen.
struct NotedObject {
  std::uint8_t note;  // Note in coverage.h
  char path[255];
};

// content: what a launch executes, as the ledger's rows of Mode::in_graph. executable: an
// executable graph of such a content; it gets a new entry when it is changed.
enum class GraphKind : std::uint32_t { content, executable };
struct Graph {
  GraphKind kind;
  std::uint32_t source;                 // executable: the content
  std::uint64_t made_ns;                // CLOCK_MONOTONIC
  std::atomic<std::uint32_t> complete;  // 0: its rows are not yet in the ledger
  std::uint32_t reserved;
};

// A table that grows by chunks and never moves. `count` includes an entry only once it is whole.
struct Table {
  std::atomic<std::uint32_t> count;
  std::uint64_t chunk[kTableChunks];  // offsets, 0: not allocated
};

struct ThreadArea {
  // Written by the recording thread.
  alignas(64) std::atomic<std::uint64_t> committed;  // last whole transaction
  std::atomic<std::uint64_t> head;                   // records opened so far
  std::uint64_t ring;                                // offset
  std::uint64_t capacity;                            // records, a power of two
  // Offsets of ledger levels, 0: none yet, or kNoLevel. A level is zero when it appears.
  std::atomic<std::uint64_t> level[kLedgerLevels];
  std::atomic<std::uint32_t> tid;    // owner, 0: free for another thread of its kind
  ThreadKind kind;                   // the kind of every owner
  std::atomic<std::uint32_t> named;  // tid of the owner that the name belongs to
  char name[16];
  // Written by the lines' writer after a commit: the recording thread may reuse records below it.
  alignas(64) std::atomic<std::uint64_t> tail;
  // A call without a record in the ring (ring full, bucket without lines) is opened here, so that
  // it shows even if it never returns.
  alignas(64) Record outside_ring;
  // NVTX ranges that the thread has pushed and not popped, outermost first.
  alignas(64) OpenRange range[kMaxOpenRanges];
};

// The reasons why events have no line.
enum class Dropped : std::uint32_t { quota, window, ring, write_error, filter };
inline constexpr const char* kDroppedNames[] = {"quota", "window", "ring", "write_error", "filter"};
inline constexpr std::size_t kDroppedCount = 5;

// The reasons why calls have no device time though TPROF_TIMING asked for it. no_context: there is
// no context, or the stream captures. no_pair: no pair of events is free. mixed: the call is in one
// group or batch with calls of other kinds. in_progress: the call is still being enqueued
// (ncclInProgress). sync: the host waits for the call. unread: the device had not finished it at
// the end. device: the driver refused. no_record: CUPTI has no record of the call. impossible:
// CUPTI's record has impossible times. tool: the program took CUPTI for itself before the call was
// read. order (events): the previous call on its communicator was on another stream, and its end is
// not known.
enum class TimingLost : std::uint8_t {
  no_context,
  no_pair,
  mixed,
  in_progress,
  sync,
  unread,
  device,
  no_record,
  impossible,
  tool,
  order
};
inline constexpr const char* kTimingLostNames[] = {"no_context", "no_pair", "mixed",  "in_progress",
                                                   "sync",       "unread",  "device", "no_record",
                                                   "impossible", "tool",    "order"};
inline constexpr std::size_t kTimingLostCount = 11;

// The reasons why the exposed part of a timed call is not known. no_launch: no kernel of the
// program was seen on the device. host_late: the host was late with a launch, so a stream ran dry
// at an unknown time. no_pair: no event was free for a mark in a computing stream. unread: the last
// work of such a stream was not read by the end. no_room: there were too many streams or marks at a
// time. no_clock: the device's clock is not known.
enum class ExposureLost : std::uint8_t { no_launch, host_late, no_pair, unread, no_room, no_clock };
inline constexpr const char* kExposureLostNames[] = {"no_launch", "host_late", "no_pair",
                                                     "unread",    "no_room",   "no_clock"};
inline constexpr std::size_t kExposureLostCount = 6;

// An unfinished call of a communicator's life: it has not returned, or its group has not ended, or
// the state of its non-blocking communicator is not known yet.
inline constexpr std::uint32_t kPhases = 64;
struct alignas(64) Phase {
  Record record;
  // 0: free; otherwise the rest is valid. It also ends when its transaction is committed.
  std::atomic<std::uint64_t> began_ns;
  std::atomic<std::uint64_t> closer;  // offset of the area whose thread closes it, 0: none
  std::uint32_t tid;
};

// The files that lines go to: the rank file, and incomplete files of windows (TPROF_WINDOW_FILES).
// The file of the previous window may be incomplete, too, since calls may return after their
// window's end. Later lines go to the rank file.
inline constexpr std::size_t kRankFile = 0;
inline constexpr std::size_t kLineFiles = 3;

// The contents of one file so far.
struct FileLines {
  std::uint64_t offset;       // its bytes up to the last whole line
  std::uint64_t calls;        // lines of calls and launches
  std::uint64_t event_bytes;  // of event lines, against the quota
  std::uint64_t range_bytes;  // of ranges' lines, against their own quota
  // Numbers of table entries that have their line.
  std::uint32_t comms;
  std::uint32_t graphs;
  std::uint32_t sites;
  std::uint32_t streams;
  std::int32_t world;  // of the largest communicator named by a tprof_identity line
  // These are of a window's file only.
  std::uint32_t window;    // from 1; 0: none is being written here
  std::uint32_t attempt;   // the attempt in its name, if a file of that name existed
  std::uint32_t complete;  // 1: it has its end and its name, but no tprof_window line yet
  std::int64_t step;       // the window's first, -1: not by steps
  // One bit for each lane that has its name line.
  std::uint64_t stream_lane[kMaxStreams / 64 + 1];
  std::uint64_t device_lane[1];
  std::uint64_t thread_lane[kMaxThreads / 64];
  std::uint64_t range_lane[kMaxThreads / 64];
};

// The contents of all files. Lines that could not be written are not in it.
struct WrittenLines {
  FileLines file[kLineFiles];
  std::uint64_t calls;         // lines of calls and launches
  std::uint64_t ranges;        // NVTX ranges that have a line
  std::uint64_t steps;         // steps that have a line
  std::uint64_t step_bytes;    // of those lines, against their own quota
  std::uint64_t metric_bytes;  // of metrics' lines, against their own quota
  std::uint32_t windows;       // that have a line
  std::uint32_t window_files;  // that were begun
  std::uint64_t window_calls;  // lines of calls and launches in these
};

// Everything the writer knows, so that recovery goes on exactly where it stopped.
struct Progress {
  WrittenLines written;
  std::uint64_t dropped[kDroppedCount];             // `ring` is in the ledger: unused here
  std::uint64_t range_dropped[kRangeDroppedCount];  // `ring` and `open` are in the ledger
  std::uint64_t steps_dropped;                      // steps that ended without a line
  std::uint64_t self_ns;                            // CPU time of the writer
  std::uint32_t closed;                             // 1: ledger and footer are written
  std::uint32_t epoch;                              // of the next ledger
  std::uint32_t streams;           // numbered ones; kMaxStreams + 1: there were more
  std::uint32_t tid[kMaxThreads];  // thread of the records at `tail`
  std::uint64_t tail[kMaxThreads];
  std::uint64_t stream[kMaxStreams];  // handles; the number is the index + 1
};

// The two blocks are written in turn; the higher even generation is valid. Odd: being written.
struct CommitBlock {
  std::atomic<std::uint64_t> generation;
  Progress progress;
};

using ChoiceText = char[256];  // names or sizes of calls (setting_values.h)

enum class EventLines : std::uint32_t { off, on, all };

struct Head {
  char magic[8];
  std::uint32_t layout;
  std::uint32_t head_size;
  char version[16];
  // The process that the file belongs to.
  char boot_id[40];
  std::int32_t pid;
  std::uint32_t pid_namespace;  // inode of its /proc/self/ns/pid, 0: not known
  std::uint64_t start_ticks;    // /proc/<pid>/stat, field 22: detects a reused pid
  char directory[1024];         // of the rank file, absolute
  char rank_file[256];          // its name, or the intended one
  // 0: not made yet. Its directory may not answer for long, and the process counts meanwhile.
  std::atomic<std::uint64_t> rank_file_inode;
  // Needed to write lines.
  std::uint64_t header;  // offset of the rank file's header
  std::uint64_t header_bytes;
  std::uint64_t base_mono_ns;  // CLOCK_MONOTONIC at ts 0
  std::uint64_t base_real_ns;  // CLOCK_REALTIME at ts 0
  bool rank_known;             // from the launcher; else it comes from the largest communicator
  std::int64_t line_pid;       // Chrome pid: rank, or the OS pid while the rank is unknown
  std::uint64_t quota;         // bytes of event lines, 0: no limit
  EventLines events;
  ChoiceText ops;    // TPROF_OPS: calls that get lines; empty: all
  ChoiceText sizes;  // TPROF_SIZES
  std::uint32_t copy_element_size;
  char step_mark[kMaxStepMark + 1];  // TPROF_STEP
  Windows windows;
  Control control;
  // Allocations.
  std::atomic<std::uint64_t> used;  // bytes
  std::atomic<std::uint32_t> volatile_segments;
  std::atomic<std::uint32_t> threads;
  // CLOCK_MONOTONIC when the writer was last awake (at least five times a second). It shows how
  // long a process lived that was idle before it was killed. 0: not yet.
  std::atomic<std::uint64_t> alive_ns;
  std::atomic<std::uint32_t> exit_status;  // exit()'s or _exit()'s argument + 1; 0: none
  std::uint64_t thread[kMaxThreads];       // offsets of ThreadArea
  Table comms;
  Table graphs;
  Table sites;
  Table site_objects;
  Table scopes;
  std::uint32_t functions;
  std::atomic<std::uint32_t> libraries;
  Function function[kMaxFunctions];  // by function number
  char library[kMaxLibraries][256];  // paths
  std::atomic<std::uint32_t> notes;  // published after the entry is whole
  NotedObject note[kMaxNotes];
  std::atomic<std::uint64_t> timing_lost[kTimingLostCount];      // calls
  std::atomic<std::uint64_t> exposure_lost[kExposureLostCount];  // timed calls
  // The library's own time in a sample of the calls, and the number of these calls.
  std::atomic<std::uint64_t> own_ns;
  std::atomic<std::uint64_t> own_timed_calls;
  // How long each device was busy with kernels other than NCCL's, within the time below for which
  // CUPTI recorded kernels.
  std::atomic<std::uint64_t> compute[kTimedDevices];
  std::atomic<std::uint64_t> compute_window_ns;
  std::atomic<std::uint32_t> nccl_ranges;  // 1: NCCL's NVTX ranges arrive, so that missed is known
  RangeDomain range_domain[kMaxRangeDomains];
  std::atomic<std::uint32_t> range_categories;  // published after the entry is whole
  RangeCategory range_category[kMaxRangeCategories];
  OpenRange started_range[kMaxStartedRanges];  // by nvtxRangeStart, on any thread
  std::atomic<std::uint32_t> memory_known;     // 1: the values below are valid (TPROF_MEMORY)
  MemoryUse memory[kMemoryPlaces];
  Phase phase[kPhases];
  CommitBlock commit[2];
};

}  // namespace tprof
