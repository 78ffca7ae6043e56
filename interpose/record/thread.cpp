#include "interpose/record/thread.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <new>

#include "interpose/base/complain.h"
#include "interpose/base/held_signals.h"
#include "interpose/base/lock.h"
#include "interpose/real/resolve.h"
#include "interpose/record/groups.h"
#include "interpose/record/transaction.h"
#include "interpose/session/coverage.h"

namespace tprof {

thread_local constinit Thread t_thread;

namespace {

Lock g_lock{LockOrder::areas};  // for the list of areas, and for making the key

// Adds a complete area to the readers' list, if it has a place.
bool enlist(std::uint64_t offset) {
  Head& head = session::mapping().head();
  const LockGuard guard(g_lock);
  const std::uint32_t n = head.threads.load(std::memory_order_relaxed);
  if (n == kMaxThreads) return false;
  head.thread[n] = offset;
  head.threads.store(n + 1, std::memory_order_release);
  return true;
}

std::uint32_t thread_id() {
  return static_cast<std::uint32_t>(syscall(SYS_gettid));
}

// From its current name: threads are named before they do anything.
ThreadKind kind_of_this_thread() {
  char name[kThreadNameBytes] = {};
  prctl(PR_GET_NAME, name);
  return thread_kind(name);
}

// Takes over an area from a finished thread: the ledger continues, unread records stay in the ring.
// Skips an area with a full ring, which has no place for the marker of the new thread.
ThreadArea* adopt_area(std::uint32_t tid, ThreadKind kind) {
  const Mapping& m = session::mapping();
  const std::uint32_t n = m.head().threads.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < n; ++i) {
    auto* area = m.at<ThreadArea>(m.head().thread[i]);
    std::uint32_t free = 0;
    if (area->kind != kind) continue;
    if (!area->tid.compare_exchange_strong(free, tid)) continue;
    if (area->head.load(std::memory_order_relaxed) - area->tail.load(std::memory_order_acquire) >=
        area->capacity) {
      area->tid.store(0, std::memory_order_release);
      continue;
    }
    // Uncommitted changes of the last owner (cancelled in a call) must not become part of our first
    // transaction.
    const std::uint64_t committed = area->committed.load(std::memory_order_relaxed);
    m.view().each_row_of(*area, [&](const LedgerRow& row) {
      for (LedgerSlot& slot : const_cast<LedgerRow&>(row).slot) {
        if (slot.txn > committed) slot.txn = 0;
      }
    });
    return area;
  }
  return nullptr;
}

// Returns the offset of a new area with its ledger's first level and a ring; 0: no memory.
// If the file has no room for a ring, the smallest one is enough: a full disk takes no lines
// anyway, and only the counts must survive the process.
std::uint64_t allocate_area(std::uint32_t ring_records) {
  constexpr std::uint64_t kLevelBytes = ledger_rows_in(0) * sizeof(LedgerRow);
  Mapping& m = session::mapping();
  const auto bytes = [](std::uint32_t records) {
    return sizeof(ThreadArea) + 64 + kLevelBytes + std::uint64_t{records} * sizeof(Record);
  };
  std::uint32_t records = ring_records;
  std::uint64_t offset = m.allocate_in_file(bytes(records));
  if (offset == 0 && m.in_file() && records > kSmallestRing) {
    records = kSmallestRing;
    offset = m.allocate_in_file(bytes(records));
    if (offset != 0) {
      complain(Trouble::room, "no room for the ring: lines may be missing, counting goes on");
    }
  }
  if (offset == 0) {
    records = ring_records;  // untouched memory costs nothing
    offset = m.allocate(bytes(records));
  }
  if (offset == 0) return 0;
  auto& area = *m.at<ThreadArea>(offset);
  area.level[0] = offset + ((sizeof(ThreadArea) + 63) & ~std::uint64_t{63});
  area.ring = area.level[0] + kLevelBytes;
  area.capacity = records;
  return offset;
}

// Makes an area for the thread `tid`; null: there is no memory, or there are kMaxThreads already.
ThreadArea* new_area(std::uint32_t tid, ThreadKind kind) {
  const Mapping& m = session::mapping();
  if (m.head().threads.load(std::memory_order_relaxed) == kMaxThreads) return nullptr;
  const std::uint64_t offset = allocate_area(session::config().ring);
  if (offset == 0) return nullptr;
  auto* area = m.at<ThreadArea>(offset);
  area->tid.store(tid, std::memory_order_relaxed);
  area->kind = kind;
  return enlist(offset) ? area : nullptr;
}

// Marks for readers that this thread's records follow.
void push_thread_marker(Thread& t, std::uint32_t tid) {
  bool in_ring = false;
  Record& r = next_record(t, true, in_ring);
  if (!in_ring) return;
  fill_thread_name(r, tid);
  t.area->named.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  std::memcpy(t.area->name, &r.stream, sizeof t.area->name);
  t.area->named.store(tid, std::memory_order_release);
  publish(t, r, kMetaThread, true);
  Transaction transaction(t);
  transaction.close(r);
}

pthread_key_t g_exit_key;
std::atomic<bool> g_exit_key_made{false};

void unmap_pending(Thread& t) {
  t.pending->release();
  give_back_memory(t.pending, sizeof *t.pending);
  t.pending = nullptr;
}

// Called when the thread ends: frees its area for another one.
void leave(void* area) {
  Thread& t = t_thread;
  if (t.area != area || t.session != session::number()) return;
  // A thread cancelled within a call or a group keeps its area: those calls stay unfinished.
  const bool at_rest = t.at_rest() && (t.pending == nullptr || t.pending->size() == 0);
  if (t.pending != nullptr) unmap_pending(t);
  t.session = kNoSession;
  if (at_rest) t.area->tid.store(0, std::memory_order_release);
  t.area = nullptr;
}

void leave_at_exit(ThreadArea* area) {
  {
    const LockGuard guard(g_lock);
    if (!g_exit_key_made.load(std::memory_order_relaxed)) {
      if (pthread_key_create(&g_exit_key, leave) != 0) return;
      g_exit_key_made.store(true, std::memory_order_release);
    }
  }
  pthread_setspecific(g_exit_key, area);
}

void take_area(Thread& t, ThreadArea* area) {
  t.area = area;
  t.ring = session::mapping().at<Record>(area->ring);
  t.mask = area->capacity - 1;
  t.room_until = 0;
  t.head = area->head.load(std::memory_order_relaxed);
  t.committed = area->committed.load(std::memory_order_relaxed);
  std::memset(t.row, 0, sizeof t.row);
  t.session = session::number();
}

}  // namespace

bool attach(Thread& t) {
  const HeldSignals held_signals;
  const KeepErrno keep_errno;
  const DepthGuard guard(t);  // calls made while starting are not recorded
  // A signal handler may have attached it just before signals were held.
  if (t.area != nullptr && t.session == session::number()) return true;
  if (session::closed() && !session::in_exiting_thread()) return false;
  if (!session::start()) return false;
  const std::uint32_t tid = thread_id();
  const ThreadKind kind = kind_of_this_thread();
  t.area = adopt_area(tid, kind);
  if (t.area == nullptr) t.area = new_area(tid, kind);
  if (t.area == nullptr) {
    coverage::note(Note::threads, "pthread_t");
    return false;
  }
  t.late = session::closed();
  take_area(t, t.area);
  t.last_comm = nullptr;
  ++t.areas;
  forget_groups(t);
  push_thread_marker(t, tid);
  leave_at_exit(t.area);
  return true;
}

// With this tid the area is never free for another thread, and is not a thread in lines.
bool attach_own(Thread& t) {
  ThreadArea* area = new_area(UINT32_MAX, ThreadKind::other);
  if (area == nullptr) return false;
  t = {};
  take_area(t, area);
  return true;
}

void forget_groups(Thread& t) {
  session::begin();
  if (t.groups_of == session::number()) return;
  t.groups_of = session::number();
  t.group_depth = t.group = 0;
  if (t.pending != nullptr) t.pending->clear();
}

void passed_on(const void* from) {
  const bool linked = t_thread.depth >= Thread::kAtRest;
  if (linked && !resolve::is_ours(from) && !resolve::serves(from)) coverage::passed_on(from);
}

}  // namespace tprof
