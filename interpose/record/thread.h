// The calling thread, as far as recording goes: whether it is to record, and where its ring, its
// ledger and its open group are.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "interpose/base/clock.h"
#include "interpose/base/held_signals.h"
#include "interpose/base/pages.h"
#include "interpose/format/ring_file.h"
#include "interpose/real/binding.h"
#include "interpose/session/session.h"

namespace tprof {

struct GroupedCall;  // record/held_call.h

// The call that a thread is in, or those that its group issues together, as device/ times it.
namespace device {

// Calls of one ledger row that have one time together. Most often it is one call. `mixed`: calls of
// several rows, as a group may have; the key is that of the first, and no row gets their time.
struct Calls {
  LedgerKey::Words key;
  std::uint64_t calls;
  std::uint64_t count;          // sum of the API's counts
  std::uint64_t seq;            // of the first call
  std::uint64_t host_ns;        // when that call began
  std::uint32_t tid;            // the thread that made it
  bool computes = false;        // a graph, or a copy in a stream that computes
  std::uint64_t waited_ns = 0;  // for devices, since the last call that was timed: set by stop()
  bool mixed = false;           // a group of several kinds of calls
};

}  // namespace device

struct TimedCall {
  void* held = nullptr;  // what the mode of timing holds for it; null: not timed
  bool lost = false;     // it was to be timed and is not, as `why` says
  TimingLost why{};
  bool computes = false;  // work of a stream that computes: a graph, or a copy there
};

inline constexpr std::uint32_t kNoSession = UINT32_MAX - 1;

// The number of NVTX ranges that are open on the thread: first those of which nothing is known,
// then those in its area, then those that had no room there.
struct RangeLevels {
  std::uint32_t unknown = 0;
  std::uint32_t known = 0;
  std::uint32_t beyond = 0;
  std::uint32_t areas = 0;  // Thread::areas when they were counted
  bool lane_named = false;
  std::uint64_t woken_at = UINT64_MAX;  // the ring's tail when ranges last woke the writer
};

// The fields that every call reads come first: two cache lines, next to the rows that it uses.
struct alignas(64) Thread {
  static constexpr std::uint32_t kAtRest = 1U << 30;

  std::uint32_t session = kNoSession;  // number of the session that the rest belongs to
  // How many wrappers the thread is in, above kAtRest: calls that NCCL makes to itself do not
  // count. Less than kAtRest: the dynamic linker has not made this thread's variables yet.
  std::uint32_t depth = kAtRest;
  std::uint32_t group_depth = 0;
  std::uint32_t group = 0;  // its number, 0 until its first call
  std::int32_t device = 0;  // CUDA's default until cudaSetDevice
  bool late = false;        // the exit handlers have run: each transaction closes the file again
  bool allocating = false;  // in a call that allocates or frees (record/allocation_calls.h)
  // No usual number of calls in a step is a multiple of it.
  static constexpr std::uint32_t kOwnTimeEvery = 61;
  std::uint32_t until_own_time = kOwnTimeEvery;  // calls (calls/open_call.cpp)
  ThreadArea* area = nullptr;
  Record* ring = nullptr;
  std::uint64_t mask = 0;        // of the ring as it is now
  std::uint64_t room_until = 0;  // records below this number have a place: see more_room()

  resolve::Bound bound;
  std::uint32_t last_comm_index = 0;
  std::uint32_t last_comm_epoch = 0;
  const void* last_comm = nullptr;
  // As in the area, which nobody else changes while the thread has it.
  std::uint64_t head = 0;
  std::uint64_t committed = 0;

  static constexpr std::uint32_t kCachedRows = 32;
  LedgerRow* row[kCachedRows] = {};

  std::uint32_t groups_of = kNoSession;  // the session that groups are counted in
  std::uint32_t areas = 0;               // how many it has been given so far

  TimedCall timed;  // the call that it is in

  Pages<GroupedCall>* pending = nullptr;  // made at the first group, kept until the thread ends

  RangeLevels ranges;

  bool at_rest() const { return depth == kAtRest; }
};

static_assert(offsetof(Thread, bound) == 64);  // hook/thunks.cpp

extern thread_local constinit Thread t_thread __attribute__((tls_model("initial-exec")));

// Gives the calling thread its area, starting the session if need be. False: tracing is off.
[[gnu::cold, gnu::noinline]] bool attach(Thread& t);

// Makes an area for a thread of the library's own, which makes no calls.
bool attach_own(Thread& t);

// Forgets the thread's groups if they are of another session than this process's.
[[gnu::cold, gnu::noinline]] void forget_groups(Thread& t);

// Returns the thread if the calling wrapper is to record, else null, and then leaves no trace of
// itself.
inline Thread* recording_thread() {
  Thread& t = t_thread;
  const std::uint32_t number = session::number();
  if (t.session == number && t.at_rest()) [[likely]]
    return &t;
  return t.at_rest() && number != session::kOff && attach(t) ? &t : nullptr;
}

// The same for a call that counts nothing, and so begins no session. Otherwise the exit handlers of
// a child that was forked from a traced process would begin one, by destroying its parent's
// handles.
inline Thread* thread_in_session() {
  return session::started() ? recording_thread() : nullptr;
}

// Called when a wrapper has passed a call on without recording it, though tracing is on. It is
// NCCL's call to itself, or one that the coverage has to report. `from`: the call's caller.
[[gnu::cold, gnu::noinline]] void passed_on(const void* from);

class [[nodiscard]] DepthGuard : NotCopied {
 public:
  explicit DepthGuard(Thread& t) : t_(t) { ++t_.depth; }
  ~DepthGuard() { --t_.depth; }

 private:
  Thread& t_;
};

}  // namespace tprof
