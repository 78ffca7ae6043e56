// One call, as the thread that makes it writes it into its ring: 64 bytes, one cache line.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "interpose/format/buckets.h"
#include "interpose/format/host_memory.h"

namespace tprof {

// Reduction operators, numbered as ncclRedOp_t + 1; handles made by ncclRedOpCreatePreMulSum are
// "custom".
enum class Reduce : std::uint8_t { none, sum, prod, max, min, avg, custom };
inline constexpr const char* kReduceNames[] = {"none", "sum", "prod",  "max",
                                               "min",  "avg", "custom"};

inline constexpr std::int32_t kNoPeer = -1;

// True if the library accepted a call that returned `result`. The call then counts, even if it is
// still in progress on a non-blocking communicator (ncclInProgress).
constexpr bool nccl_accepted(std::uint64_t result) {
  constexpr std::uint64_t kInProgress = 7;
  return result == 0 || result == kInProgress;
}
constexpr bool accepted(Bucket bucket, std::uint64_t result) {
  return is_copy(bucket) ? result == 0 : nccl_accepted(result);
}

// Function numbers of records that are not calls of the API table (ring_file.h, Function), above
// kMaxDataFunctions.
enum MetaFunction : std::uint8_t {
  kMetaVoid = 0,            // the call moved nothing (simulated group): no line
  kMetaLife = 241,          // a call of a communicator's life: see set_life
  kMetaBusy = 242,          // a device computed: see set_busy
  kMetaScope = 243,         // ledger rows only: see scopes.h
  kMetaCounter = 244,       // a counter's values: see counters.h
  kMetaDeviceClock = 245,   // an anchor of a device's clock: count = drift, dur_ns = error
  kMetaDevice = 246,        // the device's time of a call: see set_timed_call
  kMetaRange = 247,         // an NVTX range or mark: see ranges.h
  kMetaRangeMore = 248,     // its next bytes
  kMetaRangeLane = 249,     // ranges of the ring's thread follow: count = tid, name as below
  kMetaThread = 250,        // the ring's thread from here on: count = tid, name in stream and seq
  kMetaGroup = 251,         // an outermost ncclGroupEnd: count = calls
  kMetaLaunch = 252,        // a graph launch: comm = executable graph
  kMetaSignature = 253,     // ledger rows only: see ledger.h
  kMetaDropped = 254,       // ledger rows only: events that found the ring full
  kMetaRangeDropped = 255,  // ledger rows only: ranges, bytes_class = RangeDropped
};

struct Record {
  std::uint64_t start_ns;  // CLOCK_MONOTONIC
  // Transaction that closed the record (ledger.h); 0 while the call is open. The record is closed
  // when its thread's `committed` has reached it, together with everything it added to the ledger.
  std::uint64_t txn;
  std::uint64_t dur_ns : 48;
  std::uint64_t result : 16;  // ncclResult_t or cudaError_t
  std::uint64_t count;        // API argument; copies: bytes
  std::uint64_t stream;       // kMetaThread: stream and seq are the 16 bytes of the thread's name
  std::uint64_t seq;
  std::int32_t peer;    // root or peer
  std::uint32_t group;  // 0: none
  std::uint16_t comm;   // communicator, 1-based; copies: device + 1; kMetaLaunch: graph
  std::uint16_t site;   // call site, 0: not known, or not asked for
  std::uint8_t function;
  Bucket bucket;
  std::uint8_t dtype;
  std::uint8_t captured : 1;
  std::uint8_t in_place : 1;
  std::uint8_t sync : 1;
  std::uint8_t host_memory : 2;  // HostMemory
  std::uint8_t reduce : 3;       // Reduce
};
// Lanes of devices' streams, above all threads' and ranges' lanes: this + the stream's number.
inline constexpr std::uint32_t kDeviceLane = 1U << 23;
inline constexpr std::string_view kDeviceCategory = "DEVICE";
// The name of a group's device time if its calls belong to several rows of the ledger.
inline constexpr std::string_view kGroupName = "ncclGroupEnd";
// Lanes of what devices computed, above their streams' lanes: this + the device's ordinal.
inline constexpr std::uint32_t kBusyLane = 3U << 22;
inline constexpr std::string_view kBusyCategory = "BUSY";
// Arrows, lanes and counters that only merged traces have.
inline constexpr std::string_view kFlowCategory = "FLOW";
inline constexpr std::string_view kLaneCategory = "LANE";
inline constexpr std::size_t kThreadNameBytes = 16;  // PR_GET_NAME

static_assert(offsetof(Record, site) == offsetof(Record, comm) + 2);
static_assert(offsetof(Record, seq) == offsetof(Record, stream) + 8);
// These set packed fields with one store each: assigning bit-fields one by one would read, change
// and write the word each time.
inline void set_outcome(Record& r, std::uint64_t dur_ns, std::uint64_t result) {
  const std::uint64_t packed = (dur_ns & ((std::uint64_t{1} << 48) - 1)) | result << 48;
  std::memcpy(reinterpret_cast<char*>(&r) + 2 * sizeof packed, &packed, sizeof packed);
}
inline void set_comm(Record& r, std::uint32_t comm) {  // clears the site
  std::memcpy(&r.comm, &comm, sizeof comm);
}
inline void set_flags(Record& r, bool captured, bool in_place, bool sync, HostMemory host,
                      Reduce reduce) {
  const auto packed = static_cast<unsigned char>(
      unsigned{captured} | unsigned{in_place} << 1 | unsigned{sync} << 2 |
      static_cast<unsigned>(host) << 3 | static_cast<unsigned>(reduce) << 5);
  std::memcpy(reinterpret_cast<char*>(&r) + sizeof(Record) - 1, &packed, sizeof packed);
}

// kMetaDevice: start and duration are the device's, on the host's clock; `seq`, `comm`, `stream`
// and `bucket` are the call's. This sets the fields for the call's function, count and thread. The
// function is kMetaGroup for calls of a group that belong to several rows of the ledger.
inline void set_timed_call(Record& r, std::uint8_t function, std::uint64_t calls,
                           std::uint64_t host_ns, std::uint32_t tid, bool computes) {
  r.dtype = function;
  r.captured = computes ? 1 : 0;                // for a copy's line
  r.group = static_cast<std::uint32_t>(calls);  // calls that share this time
  r.count = host_ns;                            // when the first of them began
  r.peer = static_cast<std::int32_t>(tid);      // the thread that made them
}

// kMetaDevice: how long threads had waited for the device (device/timing.h), at most 70 minutes.
inline void set_waited(Record& r, std::uint64_t ns) {
  const std::uint64_t us = std::min<std::uint64_t>(ns / 1000, UINT32_MAX);
  r.result = us >> 16;
  r.site = static_cast<std::uint16_t>(us & 0xffff);
}
inline std::uint64_t waited_ns(const Record& r) {
  return ((std::uint64_t{r.result} << 16) | r.site) * 1000;
}

// kMetaLife: `comm` is the argument or the new communicator; `seq` is the child's ordinal and
// `peer` the rank in the new one, if known. `sync`: the End of the call's group was called. This
// sets the function, the id of the communicator to be made (0: none, or not known) and its number
// of ranks (0: not known).
inline void set_life(Record& r, std::uint8_t function, std::uint64_t id, std::uint64_t ranks) {
  r.dtype = function;
  r.count = id;
  r.stream = ranks;
}

// kMetaBusy: `comm` is the device + 1, and start and duration are on the host's clock.
inline void set_busy(Record& r, std::uint64_t idle_from_ns, bool unsure) {
  r.count = idle_from_ns;  // the device was idle from then until the start
  r.captured = unsure ? 1 : 0;
}

static_assert(sizeof(Record) == 64 && std::is_trivially_copyable_v<Record>);

}  // namespace tprof
