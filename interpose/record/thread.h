// The calling thread's state for recording: whether it records, and its ring, ledger and open
// group.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "interpose/base/clock.h"
#include "interpose/base/held_signals.h"
#include "interpose/base/pages.h"
#include "interpose/format/ring_file.h"
#include "interpose/real/resolve.h"
#include "interpose/session/session.h"

namespace tprof {

struct GroupedCall;  // record/groups.h

// A thread's current call, or its group's calls, as timed by device/.
namespace device {

// Calls of one ledger row that are timed together, usually one call. `mixed`: a group with calls of
// several rows; the key is that of the first, and no row gets the time.
struct Calls {
  LedgerKey::Words key;
  std::uint64_t calls;
  std::uint64_t count;          // sum of the API's counts
  std::uint64_t seq;            // of the first call
  std::uint64_t host_ns;        // when the first call began
  std::uint32_t tid;            // the thread that made it
  bool computes = false;        // a graph, or a copy in a stream that computes
  std::uint64_t waited_ns = 0;  // for devices, since the last timed call: set by stop()
  bool mixed = false;           // a group with several kinds of calls
};

}  // namespace device

struct TimedCall {
  void* held = nullptr;  // the timing mode's state of it; null: not timed
  bool lost = false;     // could not be timed, for the reason `why`
  TimingLost why{};
  bool computes = false;  // a graph, or a copy in a stream that computes
};

inline constexpr std::uint32_t kNoSession = UINT32_MAX - 1;

// The thread's open NVTX ranges: how many unknown ones, then how many in its area, then how many
// that did not fit there.
struct RangeLevels {
  std::uint32_t unknown = 0;
  std::uint32_t known = 0;
  std::uint32_t beyond = 0;
  std::uint32_t areas = 0;  // Thread::areas when they were counted
  bool lane_named = false;
  std::uint64_t woken_at = UINT64_MAX;  // the ring's tail when a range last woke the writer
};

// The fields that every call reads come first: two cache lines.
struct alignas(64) Thread {
  static constexpr std::uint32_t kAtRest = 1U << 30;

  std::uint32_t session = kNoSession;  // the session that the rest belongs to
  // kAtRest + the number of nested wrappers: NCCL's calls of itself do not count. Below kAtRest:
  // the dynamic linker has not made this thread's variables yet.
  std::uint32_t depth = kAtRest;
  std::uint32_t group_depth = 0;
  std::uint32_t group = 0;  // its number, 0 until its first call
  std::int32_t device = 0;  // CUDA's default until cudaSetDevice
  bool late = false;        // after the exit handlers: each transaction closes the file again
  bool allocating = false;  // in a call that allocates or frees (hook/memory.cpp)
  // A prime, so that a usual number of calls per step is not a multiple.
  static constexpr std::uint32_t kOwnTimeEvery = 61;
  std::uint32_t until_own_time = kOwnTimeEvery;  // calls (calls/open_call.cpp)
  ThreadArea* area = nullptr;
  Record* ring = nullptr;
  std::uint64_t mask = 0;        // of the current ring
  std::uint64_t room_until = 0;  // records below this number fit: see more_room()

  resolve::Bound bound;
  std::uint32_t last_comm_index = 0;
  std::uint32_t last_comm_epoch = 0;
  const void* last_comm = nullptr;
  // Copies of the area's values, which only this thread changes.
  std::uint64_t head = 0;
  std::uint64_t committed = 0;

  static constexpr std::uint32_t kCachedRows = 32;
  LedgerRow* row[kCachedRows] = {};

  std::uint32_t groups_of = kNoSession;  // the session of the groups
  std::uint32_t areas = 0;               // how many it has had so far

  TimedCall timed;  // the call that it is in

  Pages<GroupedCall>* pending = nullptr;  // made for the first group, kept until the thread ends

  RangeLevels ranges;

  bool at_rest() const { return depth == kAtRest; }
};

static_assert(offsetof(Thread, bound) == 64);  // hook/thunks.cpp

extern thread_local constinit Thread t_thread __attribute__((tls_model("initial-exec")));

// Gives the calling thread its area, and starts the session if needed. Returns false if tracing is
// off.
[[gnu::cold, gnu::noinline]] bool attach(Thread& t);

// Makes an area for a thread of the library, which makes no calls.
bool attach_own(Thread& t);

// Forgets the thread's groups if they belong to an earlier session.
[[gnu::cold, gnu::noinline]] void forget_groups(Thread& t);

// Returns the thread if the calling wrapper is to record, else null; then it changes nothing.
inline Thread* recording_thread() {
  Thread& t = t_thread;
  const std::uint32_t number = session::number();
  if (t.session == number && t.at_rest()) [[likely]]
    return &t;
  return t.at_rest() && number != session::kOff && attach(t) ? &t : nullptr;
}

// The same for a call that counts nothing, and so begins no session: the exit handlers of a forked
// child, which destroy its parent's handles, must not begin one.
inline Thread* thread_in_session() {
  return session::started() ? recording_thread() : nullptr;
}

// Called when a wrapper passes a call on unrecorded although tracing is on: either NCCL's call of
// itself, or one for the coverage to report. `from`: the caller.
[[gnu::cold, gnu::noinline]] void passed_on(const void* from);

class [[nodiscard]] DepthGuard : NotCopied {
 public:
  explicit DepthGuard(Thread& t) : t_(t) { ++t_.depth; }
  ~DepthGuard() { --t_.depth; }

 private:
  Thread& t_;
};

}  // namespace tprof
