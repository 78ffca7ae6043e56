#include "interpose/nvtx/ranges.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "interpose/base/keep_errno.h"
#include "interpose/capture/thread.h"
#include "interpose/nvtx/range_names.h"

namespace tprof::ranges {
namespace {

// Within a wrapper or in a signal handler that interrupts one, ranges are not the program's own.
bool within_a_call() {
  return !t_thread.at_rest();
}

// Before the session there is no mapped file: what the first threads push waits here for it. Pages
// of it exist once they are written to.
struct Waiting {
  std::atomic<bool> taken;
  OpenRange range[kMaxOpenRanges];
};
constexpr std::uint8_t kWaiting = 8;
constinit Waiting g_waiting[kWaiting]{};

OpenRange* waiting_stack(RangeLevels& levels) {
  if (session::number() == session::kOff || session::closed()) return nullptr;
  for (std::uint8_t i = 0; levels.waiting == 0 && i < kWaiting; ++i) {
    if (!g_waiting[i].taken.exchange(true, std::memory_order_acquire)) levels.waiting = i + 1;
  }
  return levels.waiting == 0 ? nullptr : g_waiting[levels.waiting - 1].range;
}

void stop_waiting(RangeLevels& levels) {
  if (levels.waiting == 0) return;
  g_waiting[levels.waiting - 1].taken.store(false, std::memory_order_release);
  levels.waiting = 0;
}

// They are in an area that is no longer the thread's.
void forget(RangeLevels& levels) {
  levels.unknown += levels.known + levels.beyond;
  levels.known = levels.beyond = 0;
}

// The calling thread, if what it does now can be recorded.
Thread* present() {
  Thread& t = t_thread;
  const std::uint32_t number = session::number();
  if (number == session::kOff) return nullptr;
  if (t.session != number) [[unlikely]] {
    if (!session::started() || session::closed() || !attach(t)) {
      if (t.ranges.waiting == 0) forget(t.ranges);
      return nullptr;
    }
  }
  return &t;
}

void publish_domain(std::uint8_t domain) {
  if (domain == kDefaultDomain || domain == kUnknownDomain) return;
  RangeDomain& to = session::mapping().head().range_domain[domain];
  if (to.known.load(std::memory_order_relaxed) != 0) [[likely]]
    return;
  // Another thread may do the same: both write the same bytes.
  const std::string_view name = range_names::domain_name(domain);
  std::memcpy(to.name, name.data(), std::min(name.size(), sizeof to.name - 1));
  to.known.store(1, std::memory_order_release);
}

// Its fields that readers go by.
std::atomic_ref<std::uint64_t> shared(std::uint64_t& field) {
  return std::atomic_ref(field);
}

bool is_open(const OpenRange& range) {
  return range.start_ns != 0 && range.closed == 0;
}

void fill(OpenRange& range, std::uint32_t tid, std::int32_t device, std::uint8_t domain,
          std::string_view name) {
  shared(range.start_ns).store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  range.closed = 0;
  range.tid = tid;
  range.domain = domain;
  range.device = static_cast<std::uint8_t>(device);
  range.length = static_cast<std::uint8_t>(name.size());
  std::memcpy(range.name, name.data(), name.size());
  shared(range.start_ns).store(now_ns(), std::memory_order_release);
}

void fill(OpenRange& range, const Thread& t, std::uint8_t domain, std::string_view name) {
  publish_domain(domain);
  fill(range, t.area->tid.load(std::memory_order_relaxed), t.device, domain, name);
}

// Ranges leave half of the ring to calls, and wake the writer when they have a quarter.
bool has_room(Thread& t, std::uint32_t records) {
  if (t.ring == nullptr) return false;
  const std::uint64_t head = t.area->head.load(std::memory_order_relaxed);
  const std::uint64_t used = head - t.area->tail.load(std::memory_order_acquire) + records;
  const auto fits = [&] { return used <= (t.mask + 1) / 2; };
  while ((!fits() || head + records > t.mask + 1) && grow_ring(t)) {
  }
  return fits();
}

void publish_records(Thread& t, std::uint32_t records) {
  ThreadArea& area = *t.area;
  const std::uint64_t head = area.head.load(std::memory_order_relaxed) + records;
  area.head.store(head, std::memory_order_release);
  const std::uint64_t tail = area.tail.load(std::memory_order_relaxed);
  if (head - tail < area.capacity / 4 || tail == t.ranges.woken_at) return;
  t.ranges.woken_at = tail;
  session::wake_writer();
}

// Tells readers the name of the lane, before its first range.
void name_lane(Thread& t) {
  if (t.ranges.lane_named || !has_room(t, 1)) return;
  const KeepErrno keep_errno;
  after_publishing();
  Record& r = t.ring[t.area->head.load(std::memory_order_relaxed) & t.mask];
  fill_thread_name(r, t.area->tid.load(std::memory_order_relaxed));
  r.function = kMetaRangeLane;
  publish_records(t, 1);
  Transaction transaction(t);
  transaction.close(r);
  t.ranges.lane_named = true;
}

void count_drop(Transaction& transaction, RangeDropped reason) {
  ++transaction
        .values(key_words(kMetaRangeDropped, Bucket{}, 0, Mode::direct,
                          static_cast<std::int8_t>(reason), 0, 0))
        .calls;
}

void write_records(Thread& t, const OpenRange& range, RangeKind kind, std::uint64_t dur_ns,
                   std::uint64_t transaction) {
  const std::uint32_t records = range_records(range.length);
  const std::uint64_t head = t.area->head.load(std::memory_order_relaxed);
  RangeRecord r;
  r.start_ns = range.start_ns;
  r.txn = transaction;
  r.dur_ns = dur_ns & ((std::uint64_t{1} << 48) - 1);
  r.length = range.length;
  r.kind = static_cast<std::uint8_t>(kind);
  r.tid = range.tid;
  r.domain = range.domain;
  r.device = range.device;
  r.reserved = 0;
  for (std::uint32_t i = 0; i < records; ++i) {
    r.function = i == 0 ? kMetaRange : kMetaRangeName;
    std::memcpy(r.name, range.name + i * RangeRecord::kNameBytes, RangeRecord::kNameBytes);
    std::memcpy(&t.ring[(head + i) & t.mask], &r, sizeof r);
  }
  publish_records(t, records);
}

// The range has its records and is no longer open, or neither.
void close(Thread& t, OpenRange& range, RangeKind kind, std::uint64_t end_ns) {
  const bool lines =
      session::mapping().head().events != static_cast<std::uint32_t>(EventLines::off);
  Transaction transaction(t);
  if (lines && has_room(t, range_records(range.length))) {
    write_records(t, range, kind, end_ns - range.start_ns, transaction.number());
  } else if (lines) {
    count_drop(transaction, RangeDropped::ring);
  }
  shared(range.closed).store(transaction.number(), std::memory_order_release);
}

void drop(Thread& t, RangeDropped reason) {
  Transaction transaction(t);
  count_drop(transaction, reason);
}

// The innermost open range of `domain`, kMaxOpenRanges where there is none.
std::uint32_t innermost(const OpenRange* stack, std::uint32_t known, std::uint8_t domain) {
  for (std::uint32_t i = known; i > 0; --i) {
    const OpenRange& range = stack[i - 1];
    if (range.domain == domain && is_open(range)) return i - 1;
  }
  return kMaxOpenRanges;
}

// A number holds the session's, so that what a parent has started is not ended in its child.
constexpr std::uint64_t number_of(std::uint32_t session, std::uint32_t generation,
                                  std::uint32_t place) {
  return std::uint64_t{session} << 40 | std::uint64_t{generation} << 8 | (place + 1);
}

// The number of the range in each place; 0: free, 1: being filled or ended.
std::atomic<std::uint64_t> g_started[kMaxStartedRanges];
std::atomic<std::uint32_t> g_generation{0};

}  // namespace

void push(std::uint8_t domain, std::string_view name) {
  if (within_a_call()) return;
  const bool recorded = present() != nullptr;
  Thread& t = t_thread;
  const DepthGuard guard(t);
  RangeLevels& levels = t.ranges;
  OpenRange* stack = recorded ? t.area->range : waiting_stack(levels);
  if (stack == nullptr) {
    ++levels.unknown;
  } else if (levels.known == kMaxOpenRanges || (recorded && t.shared)) {
    ++levels.beyond;
  } else if (!recorded) {
    fill(stack[levels.known++], 0, t.device, domain, name);
  } else {
    name_lane(t);
    fill(stack[levels.known++], t, domain, name);
  }
}

void pop(std::uint8_t domain) {
  if (within_a_call()) return;
  const std::uint64_t now = now_ns();
  const bool recorded = present() != nullptr;
  Thread& t = t_thread;
  const DepthGuard guard(t);
  RangeLevels& levels = t.ranges;
  if (levels.beyond != 0) {
    --levels.beyond;
    if (recorded) drop(t, RangeDropped::open);
    return;
  }
  OpenRange* stack = levels.known == 0 ? nullptr
                     : recorded        ? t.area->range
                                       : g_waiting[levels.waiting - 1].range;
  const std::uint32_t at = innermost(stack, levels.known, domain);
  if (at == kMaxOpenRanges) {
    if (levels.unknown != 0) --levels.unknown;
    return;
  }
  if (recorded) {
    const bool on_top = at + 1 == levels.known;
    close(t, stack[at], on_top ? RangeKind::nested : RangeKind::free, now);
  } else {
    stack[at].closed = 1;
  }
  while (levels.known != 0 && !is_open(stack[levels.known - 1])) --levels.known;
  if (levels.known == 0) stop_waiting(levels);
}

std::uint64_t start(std::uint8_t domain, std::string_view name) {
  if (within_a_call()) return 0;
  Thread* t = present();
  if (t == nullptr) return 0;
  const DepthGuard guard(*t);
  for (std::uint32_t i = 0; i < kMaxStartedRanges; ++i) {
    std::uint64_t free = 0;
    if (!g_started[i].compare_exchange_strong(free, 1, std::memory_order_acquire)) continue;
    OpenRange& range = session::mapping().head().started_range[i];
    range.closer = 0;
    fill(range, *t, domain, name);
    const std::uint64_t number =
        number_of(t->session, g_generation.fetch_add(1, std::memory_order_relaxed), i);
    g_started[i].store(number, std::memory_order_release);
    return number;
  }
  drop(*t, RangeDropped::open);
  return 0;
}

void end(std::uint64_t number) {
  if (number == 0 || within_a_call()) return;
  const std::uint64_t now = now_ns();
  Thread* t = present();
  const std::uint64_t place = (number & 0xff) - 1;
  if (t == nullptr || number >> 40 != t->session || place >= kMaxStartedRanges) return;
  const DepthGuard guard(*t);
  if (!g_started[place].compare_exchange_strong(number, 1, std::memory_order_acquire)) return;
  name_lane(*t);
  Head& head = session::mapping().head();
  OpenRange& range = head.started_range[place];
  range.closer = static_cast<std::uint64_t>(reinterpret_cast<const char*>(t->area) -
                                            reinterpret_cast<const char*>(&head));
  close(*t, range, RangeKind::free, now);
  g_started[place].store(0, std::memory_order_release);
}

void mark(std::uint8_t domain, std::string_view name) {
  if (within_a_call()) return;
  Thread* t = present();
  if (t == nullptr) return;
  const DepthGuard guard(*t);
  if (t->shared) {
    drop(*t, RangeDropped::ring);
    return;
  }
  name_lane(*t);
  OpenRange range{};
  fill(range, *t, domain, name);
  close(*t, range, RangeKind::mark, range.start_ns);
}

void enter_area(Thread& t) {
  RangeLevels& levels = t.ranges;
  levels.lane_named = false;
  if (levels.waiting == 0 || t.shared) forget(levels);
  if (!t.shared) {
    for (OpenRange& range : t.area->range) {
      shared(range.start_ns).store(0, std::memory_order_relaxed);
    }
    for (std::uint32_t i = 0; i < levels.known; ++i) {
      OpenRange range = g_waiting[levels.waiting - 1].range[i];
      if (!is_open(range)) continue;
      const std::uint64_t start_ns = range.start_ns;
      range.start_ns = 0;
      range.tid = t.area->tid.load(std::memory_order_relaxed);
      publish_domain(range.domain);
      t.area->range[i] = range;
      shared(t.area->range[i].start_ns).store(start_ns, std::memory_order_release);
    }
  }
  stop_waiting(levels);
}

void after_fork() {
  for (auto& started : g_started) started.store(0, std::memory_order_relaxed);
  for (std::uint8_t i = 0; i < kWaiting; ++i) {
    if (i + 1 != t_thread.ranges.waiting) {
      g_waiting[i].taken.store(false, std::memory_order_relaxed);
    }
  }
}

}  // namespace tprof::ranges
