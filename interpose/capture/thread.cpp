#include "interpose/capture/thread.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "interpose/base/complain.h"
#include "interpose/base/keep_errno.h"
#include "interpose/base/lock.h"
#include "interpose/nvtx/ranges.h"
#include "interpose/resolve/binding.h"
#include "interpose/resolve/resolve.h"
#include "interpose/session/coverage.h"

namespace tprof {

thread_local constinit Thread t_thread;

namespace {

// Threads for which no area of their own could be made share one, without a ring.
struct Shared {
  Lock lock;
  std::uint64_t area = 0;
  std::uint32_t session = 0;
};
Shared g_shared;
Lock g_shared_calls;
Lock g_list_lock;      // of the list of areas
Lock g_exit_key_lock;  // of making the key

constexpr std::uint64_t kLevelBytes = ledger_level_rows(0) * sizeof(LedgerRow);

// Where the beginning of a ring has no room in the file the smallest does nearly as well: on such a
// disk there will be no lines, and the counts have to outlive the process.
std::uint64_t allocate_area(std::uint32_t ring_records) {
  Mapping& m = session::mapping();
  const auto bytes = [](std::uint32_t records) {
    return sizeof(ThreadArea) + 64 + kLevelBytes + std::uint64_t{records} * sizeof(Record);
  };
  std::uint32_t records = ring_records < kFirstRing ? ring_records : kFirstRing;
  std::uint64_t offset = m.allocate_in_file(bytes(records), bytes(ring_records));
  if (offset == 0 && m.in_file() && ring_records > kSmallestRing) {
    offset = m.allocate_in_file(bytes(kSmallestRing), bytes(kSmallestRing));
    if (offset != 0) {
      complain(Trouble::room, "no room for the ring: lines may be missing, counting goes on");
      records = ring_records = kSmallestRing;
    }
  }
  if (offset == 0) {
    // Memory that nobody has touched costs nothing.
    offset = m.allocate(bytes(ring_records));
    records = ring_records;
  }
  if (offset == 0) return 0;
  auto& area = *m.at<ThreadArea>(offset);
  area.level[0] = offset + ((sizeof(ThreadArea) + 63) & ~std::uint64_t{63});
  area.ring = ring_records == 0 ? 0 : area.level[0] + kLevelBytes;
  area.capacity.store(records, std::memory_order_relaxed);
  area.most = ring_records;
  return offset;
}

// Room for as many records again behind the first `capacity`.
bool back_next(ThreadArea& area, std::uint64_t capacity) {
  if (area.backed.load(std::memory_order_acquire) >= 2 * capacity) return true;
  const std::uint64_t end = area.ring + capacity * sizeof(Record);
  if (!session::mapping().back(end, end + capacity * sizeof(Record))) return false;
  area.backed.store(2 * capacity, std::memory_order_release);
  return true;
}

}  // namespace

bool grow_ring(Thread& t) {
  ThreadArea& area = *t.area;
  const std::uint64_t capacity = t.mask + 1;
  if (capacity >= area.most) return false;
  // The places of those in the ring stay what they are in the first round, and where one of odd
  // number begins.
  const std::uint64_t head = area.head.load(std::memory_order_relaxed);
  if (head > capacity && (head & (2 * capacity - 1)) != capacity) return false;
  // No system call for each call that is dropped: again when the writer has made way.
  const std::uint64_t tail = area.tail.load(std::memory_order_relaxed);
  if (tail == t.refused_at) return false;
  if (!back_next(area, capacity)) {
    t.refused_at = tail;  // nothing is said before something is lost: that is counted
    return false;
  }
  area.capacity.store(2 * capacity, std::memory_order_release);
  t.mask = 2 * capacity - 1;
  return true;
}

void prepare_rings() {
  const Mapping& m = session::mapping();
  const std::uint32_t n = m.head().threads.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < n; ++i) {
    auto& area = *m.at<ThreadArea>(m.head().thread[i]);
    const std::uint64_t capacity = area.capacity.load(std::memory_order_acquire);
    const bool soon = area.head.load(std::memory_order_relaxed) >= capacity / 2;
    if (area.ring != 0 && capacity < area.most && soon) back_next(area, capacity);
  }
}

namespace {

// The list's last place is the shared area's.
constexpr std::uint32_t kOwnAreas = kMaxThreads - 1;

// Enters a whole area into the list that readers go through, if it is shorter than `limit`.
bool enlist(std::uint64_t offset, std::uint32_t limit) {
  Head& head = session::mapping().head();
  const LockGuard guard(g_list_lock);
  const std::uint32_t n = head.threads.load(std::memory_order_relaxed);
  if (n >= limit) return false;
  head.thread[n] = offset;
  head.threads.store(n + 1, std::memory_order_release);
  return true;
}

std::uint32_t thread_id() {
  return static_cast<std::uint32_t>(syscall(SYS_gettid));
}

// An area that a finished thread left: its ledger goes on, its unread records stay in the ring. Not
// one whose ring is full: it has no place for the marker that tells whose records follow.
ThreadArea* adopt_area(std::uint32_t tid) {
  const Mapping& m = session::mapping();
  const std::uint32_t n = m.head().threads.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < n; ++i) {
    auto* area = m.at<ThreadArea>(m.head().thread[i]);
    std::uint32_t free = 0;
    if (area->ring == 0 || !area->tid.compare_exchange_strong(free, tid)) continue;
    if (area->head.load(std::memory_order_relaxed) - area->tail.load(std::memory_order_acquire) >=
        area->capacity.load(std::memory_order_relaxed)) {
      area->tid.store(0, std::memory_order_release);
      continue;
    }
    // What the last owner wrote without committing (it was cancelled in a call) must not be
    // taken for part of our first transaction.
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

ThreadArea* shared_area() {
  const std::uint32_t number = session::number();
  const LockGuard guard(g_shared.lock);
  if (g_shared.session != number) {
    g_shared.area = allocate_area(0);
    if (g_shared.area != 0 && !enlist(g_shared.area, kMaxThreads)) g_shared.area = 0;
    g_shared.session = number;
  }
  return g_shared.area == 0 ? nullptr : session::mapping().at<ThreadArea>(g_shared.area);
}

// Tells readers whose records follow.
void push_thread_marker(Thread& t, std::uint32_t tid) {
  bool in_ring = false;
  Record& r = next_record(t, true, in_ring);
  if (!in_ring) return;
  fill_thread_name(r, tid);
  publish(t, r, kMetaThread, true);
  Transaction transaction(t);
  transaction.close(r);
}

pthread_key_t g_exit_key;
std::atomic<bool> g_exit_key_made{false};

void unmap_pending(Thread& t) {
  t.pending->release();
  munmap(t.pending, sizeof *t.pending);
  t.pending = nullptr;
}

// The thread ends: its area is free for another one.
void leave(void* area) {
  Thread& t = t_thread;
  if (t.area != area || t.session != session::number()) return;
  // A thread cancelled within a call or a group keeps its area: those calls stay unfinished.
  const bool at_rest = t.at_rest() && (t.pending == nullptr || t.pending->size() == 0);
  if (t.pending != nullptr) unmap_pending(t);
  t.session = kNoSession;
  if (!t.shared && at_rest) t.area->tid.store(0, std::memory_order_release);
  t.area = nullptr;
}

void leave_at_exit(ThreadArea* area) {
  {
    const LockGuard guard(g_exit_key_lock);
    if (!g_exit_key_made.load(std::memory_order_relaxed)) {
      if (pthread_key_create(&g_exit_key, leave) != 0) return;
      g_exit_key_made.store(true, std::memory_order_release);
    }
  }
  pthread_setspecific(g_exit_key, area);
}

}  // namespace

bool attach(Thread& t) {
  const HeldSignals held_signals;
  const KeepErrno keep_errno;
  const DepthGuard guard(t);  // nothing that starting calls is to be recorded
  // By a signal handler, just before they were held.
  if (t.area != nullptr && t.session == session::number()) return true;
  if (session::closed() && !session::in_exiting_thread()) return false;
  if (!session::start()) return false;
  const std::uint32_t tid = thread_id();
  const Mapping& m = session::mapping();
  t.shared = false;
  t.late = session::closed();
  t.area = adopt_area(tid);
  if (t.area == nullptr && m.head().threads.load(std::memory_order_relaxed) < kOwnAreas) {
    if (const std::uint64_t offset = allocate_area(session::config().ring_records)) {
      m.at<ThreadArea>(offset)->tid.store(tid, std::memory_order_relaxed);
      if (enlist(offset, kOwnAreas)) t.area = m.at<ThreadArea>(offset);
    }
  }
  if (t.area == nullptr) {
    t.area = shared_area();
    t.shared = true;
  }
  if (t.area == nullptr) return false;
  t.ring = t.area->ring == 0 ? nullptr : m.at<Record>(t.area->ring);
  t.mask = t.ring == nullptr ? 0 : t.area->capacity.load(std::memory_order_relaxed) - 1;
  t.room_until = 0;
  t.refused_at = UINT64_MAX;
  std::memset(t.row, 0, sizeof t.row);
  t.last_comm = nullptr;
  ranges::enter_area(t);
  forget_groups(t);
  t.session = session::number();
  if (!t.shared) push_thread_marker(t, tid);
  leave_at_exit(t.area);
  return true;
}

bool more_room(Thread& t) {
  if (t.ring == nullptr) return false;
  const ThreadArea& area = *t.area;
  const std::uint64_t head = area.head.load(std::memory_order_relaxed);
  if (head != 0 && (head & t.mask) == 0) grow_ring(t);
  const std::uint64_t capacity = t.mask + 1;
  const std::uint64_t tail = area.tail.load(std::memory_order_acquire);
  const bool half_full = head - tail >= capacity / 2;
  std::uint64_t until = tail + (half_full ? capacity : capacity / 2);
  if (half_full && head < until) session::wake_writer();
  if (capacity < area.most) until = std::min(until, (head / capacity + 1) * capacity);
  t.room_until = until;
  return head < until;
}

void forget_groups(Thread& t) {
  session::begin();
  if (t.groups_of == session::number()) return;
  t.groups_of = session::number();
  t.group_depth = t.group = 0;
  if (t.pending != nullptr) t.pending->clear();
}

void fill_thread_name(Record& r, std::uint32_t tid) {
  char name[kThreadNameBytes] = {};
  prctl(PR_GET_NAME, name);
  r = {};
  r.count = tid;
  std::memcpy(&r.stream, name, sizeof name);
}

void passed_on(const void* from) {
  if (t_thread.depth < Thread::kAtRest) {
    coverage::passed_on(Note::early, from);
  } else if (!resolve::is_ours(from) && !resolve::serves(from)) {
    coverage::passed_on(Note::nested, from);
  }
}

void threads_after_fork() {
  // Other threads may have held them; here there are no other threads.
  for (Lock* lock : {&g_shared.lock, &g_shared_calls, &g_list_lock, &g_exit_key_lock}) {
    lock->unlock();
  }
}

LedgerRow& find_row(Thread& t, LedgerKey::Words key) {
  const Mapping& m = session::mapping();
  const auto [low, high] = key;
  const std::uint64_t hash = mix64(low ^ mix64(high));
  LedgerRow* last = m.at<LedgerRow>(t.area->level[0]);  // every area has its first level
  for (std::uint32_t level = 0; level < kLedgerLevels; ++level) {
    const std::uint32_t rows = ledger_level_rows(level);
    if (t.area->level[level] == 0) {
      t.area->level[level] = session::mapping().allocate(rows * sizeof(LedgerRow));
      if (t.area->level[level] == 0) break;
    }
    auto* table = m.at<LedgerRow>(t.area->level[level]);
    for (std::uint32_t n = 0; n < kLedgerProbe; ++n) {
      LedgerRow& row = table[(hash + n) % rows];
      const std::uint64_t at = row.key_low.load(std::memory_order_relaxed);
      if (at == low && row.key_high == high) return row;
      if (at == 0) {
        row.key_high = high;
        row.key_low.store(low, std::memory_order_release);
        return row;
      }
      last = &row;
    }
  }
  // 170,000 different keys on one thread, or no memory at all: count under another key rather
  // than not at all. The totals over all rows stay exact.
  return *last;
}

void Transaction::begin_special() {
  if (!t_.shared) return;
  // Signals need not wait: the calls of a handler that interrupts this one are not recorded.
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &t_.cancel_state);
  g_shared_calls.lock();
}
void Transaction::end_special() {
  if (t_.shared) {
    g_shared_calls.unlock();
    pthread_setcancelstate(t_.cancel_state, nullptr);
  }
  if (t_.late) session::late_call();
}

}  // namespace tprof
