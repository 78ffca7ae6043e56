// What a thread needs to record a call: its ring, its ledger, its open group.
#pragma once

#include <atomic>
#include <cstdint>

#include "interpose/base/clock.h"
#include "interpose/base/pages.h"
#include "interpose/format/ledger.h"
#include "interpose/format/ring_file.h"
#include "interpose/session/session.h"

struct CUstream_st;  // what a cudaStream_t points to

namespace tprof {

// A call inside ncclGroupStart/End: it enters the ledger with its group or not at all.
struct GroupedCall {
  Record* record;  // in the ring, or null if it has none
  Record call;
  LedgerKey::Words key;
  std::uint64_t name_hash;              // for the signature; 0: not a collective
  std::atomic<std::uint64_t>* counter;  // that its seq was taken from, or null
  std::uint32_t graph;                  // that it is captured into, or 0
};

inline constexpr std::uint32_t kNoSession = UINT32_MAX - 1;

// How many NVTX ranges are open on the thread: first those of which nothing is known, then those
// in its area, then those that had no room there.
struct RangeLevels {
  std::uint32_t unknown = 0;
  std::uint32_t known = 0;
  std::uint32_t beyond = 0;
  std::uint8_t waiting = 0;  // the known ones wait for an area, see ranges.cpp
  bool lane_named = false;
  std::uint64_t woken_at = UINT64_MAX;  // the ring's tail when ranges last woke the writer
};

struct Thread {
  static constexpr std::uint32_t kAtRest = 1U << 30;

  std::uint32_t session = kNoSession;  // number of the session that the rest belongs to
  // Of wrappers that the thread is in: calls that NCCL makes to itself do not count. Less than
  // kAtRest: the dynamic linker has not made this thread's variables yet.
  std::uint32_t depth = kAtRest;
  std::uint32_t group_depth = 0;
  std::uint32_t groups_of = kNoSession;  // the session that they are counted in
  std::uint32_t group = 0;               // its number, 0 until its first call
  std::int32_t device = 0;               // CUDA's default until cudaSetDevice
  bool shared = false;                   // the area is shared with other threads: take the lock
  bool late = false;     // the exit handlers have run: every call closes the file again
  int cancel_state = 0;  // to go back to, while it has the shared area's lock

  ThreadArea* area = nullptr;
  Record* ring = nullptr;
  std::uint64_t mask = 0;                 // of the ring as it is now
  std::uint64_t room_until = 0;           // records below this number have a place: see more_room()
  std::uint64_t refused_at = UINT64_MAX;  // the ring's tail when it could not grow

  Record own_spare{};  // where the area's is everybody's

  static constexpr std::uint32_t kCachedRows = 32;
  LedgerRow* row[kCachedRows] = {};

  std::uint64_t last_comm_epoch = 0;
  const void* last_comm = nullptr;
  std::uint32_t last_comm_index = 0;

  // The last captured call: its stream, and the only node that it came after.
  ::CUstream_st* captured_on = nullptr;
  const void* captured_before = nullptr;

  Pages<GroupedCall>* pending = nullptr;  // made at the first group, kept until the thread ends

  RangeLevels ranges;

  bool at_rest() const { return depth == kAtRest; }
};

extern thread_local constinit Thread t_thread __attribute__((tls_model("initial-exec")));

// Gives the calling thread its area, starting the session if need be. False: tracing is off.
[[gnu::cold, gnu::noinline]] bool attach(Thread& t);

// Of another session than this process's, if the thread's are.
[[gnu::cold, gnu::noinline]] void forget_groups(Thread& t);

void threads_after_fork();  // in the child

// The row of `key` in this thread's ledger. Never null: see the overflow row in thread.cpp.
[[gnu::cold, gnu::noinline]] LedgerRow& find_row(Thread& t, LedgerKey::Words key);

// Whether the ring has a place for the next record: sets `room_until` anew. Makes the ring larger
// where the thread has come to its end; wakes the writer where it is half full.
[[gnu::cold, gnu::noinline]] bool more_room(Thread& t);

// Twice the room. False: it stays as it is, for want of room or since a record would have to move.
[[gnu::cold, gnu::noinline]] bool grow_ring(Thread& t);

// On the writer's thread: the room that a ring will take next is there before its thread wants it.
// The kernel takes half a millisecond to make the last doubling.
void prepare_rings();

[[gnu::always_inline]] inline LedgerRow& row_of(Thread& t, LedgerKey::Words key) {
  LedgerRow*& cached = t.row[((key.low + key.high) * 0x9e3779b97f4a7c15ULL) >> 59];
  if (cached == nullptr || cached->key_low.load(std::memory_order_relaxed) != key.low ||
      cached->key_high != key.high) [[unlikely]] {
    cached = &find_row(t, key);
  }
  return *cached;
}
static_assert(Thread::kCachedRows == 32);

// Whether the calling wrapper is to record. Leaves no trace of itself where it is not.
inline Thread* recording_thread() {
  Thread& t = t_thread;
  const std::uint32_t number = session::number();
  if (!t.at_rest() || number == session::kOff) return nullptr;
  if (t.session != number) [[unlikely]] {
    if (!attach(t)) return nullptr;
  }
  return &t;
}

// The same for a call that counts nothing: it begins no session, as the exit handlers of a child
// that was forked from a traced process would, which destroys its parent's handles.
inline Thread* thread_in_session() {
  return session::started() ? recording_thread() : nullptr;
}

// A wrapper has passed a call on without recording it, though tracing is on: NCCL's to itself, or
// one that the coverage has to speak of. `from`: who made it.
[[gnu::cold, gnu::noinline]] void passed_on(const void* from);

// Makes `r` an open record that tells the calling thread's name.
[[gnu::cold]] void fill_thread_name(Record& r, std::uint32_t tid);

class [[nodiscard]] DepthGuard {
 public:
  explicit DepthGuard(Thread& t) : t_(t) { ++t_.depth; }
  ~DepthGuard() { --t_.depth; }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;

 private:
  Thread& t_;
};

// What readers of the running process go by has been stored (`committed`, `head`), with release:
// that orders it behind what came before. What follows, in places that it made old (the row's other
// slot, the record's place, the spare record), must not be seen before it: a reader that finds,
// behind an acquire fence, what it went by unchanged has then read nothing that is newer. By the
// C++ memory model: a store behind this fence that the reader has read makes the two fences
// synchronise, and so what was stored before this one is seen by what the reader loads behind its
// own. No instruction on x86-64, whose stores stay in order; `dmb ish` on aarch64.
[[gnu::always_inline]] inline void after_publishing() {
  std::atomic_thread_fence(std::memory_order_release);
}

// One change of this thread's ledger and records, true as a whole at commit().
class [[nodiscard]] Transaction {
 public:
  explicit Transaction(Thread& t) : t_(t) {
    if (t.shared || t.late) [[unlikely]]
      begin_special();
    number_ = t.area->committed.load(std::memory_order_relaxed) + 1;
    after_publishing();
  }
  ~Transaction() {
    t_.area->committed.store(number_, std::memory_order_release);
    if (t_.shared || t_.late) [[unlikely]]
      end_special();
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  std::uint64_t number() const { return number_; }
  [[gnu::always_inline]] LedgerValues& values(LedgerKey::Words key) {
    return open_slot(row_of(t_, key), number_);
  }
  void close(Record& r) {
    std::atomic_ref<std::uint64_t>(r.txn).store(number_, std::memory_order_release);
  }

 private:
  void begin_special();
  void end_special();

  Thread& t_;
  std::uint64_t number_;
};

// The place for the next record: in the ring, or the spare one if the ring is full or the call is
// to have no line. `in_ring` says which.
[[gnu::always_inline]] inline Record& next_record(Thread& t, bool wants_line, bool& in_ring) {
  ThreadArea& area = *t.area;
  const std::uint64_t head = area.head.load(std::memory_order_relaxed);
  in_ring = wants_line && (head < t.room_until || more_room(t));
  if (in_ring) {
    after_publishing();
    return t.ring[head & t.mask];
  }
  Record& spare = t.shared ? t.own_spare : area.spare;
  // Out of sight while it is filled: a kill in between must not leave half of one call and half of
  // the one before.
  spare.function = kMetaVoid;
  after_publishing();
  return spare;
}

// Makes an open record visible. It must be whole but for txn (0) and what the call will tell.
[[gnu::always_inline]] inline void publish(Thread& t, Record& r, std::uint8_t function,
                                           bool in_ring) {
  std::atomic_ref<std::uint8_t>(r.function).store(function, std::memory_order_release);
  if (!in_ring) return;
  ThreadArea& area = *t.area;
  const std::uint64_t head = area.head.load(std::memory_order_relaxed) + 1;
  area.head.store(head, std::memory_order_release);
}

}  // namespace tprof
