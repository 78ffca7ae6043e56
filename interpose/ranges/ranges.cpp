#include "interpose/ranges/ranges.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "interpose/base/held_signals.h"
#include "interpose/ranges/range_names.h"
#include "interpose/thread/ring.h"
#include "interpose/thread/thread.h"

namespace tprof::ranges {
namespace {

// Within a wrapper or in a signal handler that interrupts one, ranges are not the program's own.
bool within_a_call() {
  return !t_thread.at_rest();
}

// Its fields that readers go by.
std::atomic_ref<std::uint64_t> shared(std::uint64_t& field) {
  return std::atomic_ref(field);
}

// They are in an area that is no longer the thread's.
void forget(RangeLevels& levels) {
  levels.unknown += levels.known + levels.beyond;
  levels.known = levels.beyond = 0;
}

// The thread has another area, in which may be what an earlier thread left open.
[[gnu::cold, gnu::noinline]] void begin_in_area(Thread& t) {
  t.ranges.areas = t.areas;
  t.ranges.lane_named = false;
  forget(t.ranges);
  if (t.shared) return;
  for (OpenRange& range : t.area->range) {
    shared(range.start_ns).store(0, std::memory_order_relaxed);
  }
}

// The calling thread, if what it does now can be recorded.
Thread* present() {
  Thread& t = t_thread;
  const std::uint32_t number = session::number();
  if (number == session::kOff) return nullptr;
  if (t.session != number) [[unlikely]] {
    if (!session::started() || session::closed() || !attach(t)) {
      forget(t.ranges);
      return nullptr;
    }
  }
  if (t.ranges.areas != t.areas) [[unlikely]]
    begin_in_area(t);
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

void publish_categories() {
  Head& head = session::mapping().head();
  std::uint32_t known = head.range_categories.load(std::memory_order_relaxed);
  std::uint32_t named = known;
  // Another thread may do the same: both write the same bytes.
  for (RangeCategory next; range_names::category(named, next); ++named) {
    head.range_category[named] = next;
  }
  while (known < named && !head.range_categories.compare_exchange_weak(known, named)) {
  }
}

bool is_open(const OpenRange& range) {
  return range.start_ns != 0 && range.closed == 0;
}

void fill(OpenRange& range, const Thread& t, std::uint8_t domain, std::string_view name,
          const Attributes& attributes) {
  publish_domain(domain);
  if ((attributes.given & kGivenCategory) != 0) publish_categories();
  shared(range.start_ns).store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  range.closed = 0;
  range.tid = t.area->tid.load(std::memory_order_relaxed);
  range.domain = domain;
  range.device = static_cast<std::uint8_t>(t.device);
  range.length = static_cast<std::uint8_t>(name.size());
  range.given = attributes.given;
  if (attributes.given != 0) range.attributes = attributes.values;
  std::memcpy(range.name, name.data(), name.size());
  shared(range.start_ns).store(now_ns(), std::memory_order_release);
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
  const std::uint32_t records = range_records(range);
  const char* bytes = reinterpret_cast<const char*>(&range) + range_bytes_at(range);
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
  r.given = range.given;
  for (std::uint32_t i = 0; i < records; ++i) {
    r.function = i == 0 ? kMetaRange : kMetaRangeMore;
    std::memcpy(r.bytes, bytes + i * RangeRecord::kBytes, RangeRecord::kBytes);
    std::memcpy(&t.ring[(head + i) & t.mask], &r, sizeof r);
  }
  publish_records(t, records);
}

// Where nobody wants lines, the end of a step is wanted all the same.
bool marks_step(const Head& head, std::string_view name) {
  StepMark mark;
  std::int64_t number = 0;
  return parse_step_mark(bounded_text(head.step_mark), mark) && is_step(mark, name, number);
}

// The range has its records and is no longer open, or neither.
void close(Thread& t, OpenRange& range, RangeKind kind, std::uint64_t end_ns) {
  const Head& head = session::mapping().head();
  const bool lines = head.events != static_cast<std::uint32_t>(EventLines::off) ||
                     marks_step(head, {range.name, range.length});
  Transaction transaction(t);
  if (lines && has_room(t, range_records(range))) {
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
std::uint32_t innermost(const Thread& t, std::uint8_t domain) {
  for (std::uint32_t i = t.ranges.known; i > 0; --i) {
    const OpenRange& range = t.area->range[i - 1];
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

void push(std::uint8_t domain, std::string_view name, const Attributes& attributes) {
  if (within_a_call()) return;
  Thread* t = present();
  RangeLevels& levels = t_thread.ranges;
  if (t == nullptr) {
    ++levels.unknown;
    return;
  }
  const DepthGuard guard(*t);
  if (levels.known == kMaxOpenRanges || t->shared) {
    ++levels.beyond;
    return;
  }
  name_lane(*t);
  fill(t->area->range[levels.known++], *t, domain, name, attributes);
}

void pop(std::uint8_t domain) {
  if (within_a_call()) return;
  const std::uint64_t now = now_ns();
  Thread* t = present();
  RangeLevels& levels = t_thread.ranges;
  const DepthGuard guard(t_thread);
  if (levels.beyond != 0) {
    --levels.beyond;
    if (t != nullptr) drop(*t, RangeDropped::open);
    return;
  }
  const std::uint32_t popped = t == nullptr ? kMaxOpenRanges : innermost(*t, domain);
  if (popped == kMaxOpenRanges) {
    if (levels.unknown != 0) --levels.unknown;
    return;
  }
  OpenRange* stack = t->area->range;
  const bool on_top = popped + 1 == levels.known;
  close(*t, stack[popped], on_top ? RangeKind::nested : RangeKind::free, now);
  while (levels.known != 0 && !is_open(stack[levels.known - 1])) --levels.known;
}

std::uint64_t start(std::uint8_t domain, std::string_view name, const Attributes& attributes) {
  if (within_a_call()) return 0;
  Thread* t = present();
  if (t == nullptr) return 0;
  const DepthGuard guard(*t);
  for (std::uint32_t i = 0; i < kMaxStartedRanges; ++i) {
    std::uint64_t free = 0;
    if (!g_started[i].compare_exchange_strong(free, 1, std::memory_order_acquire)) continue;
    OpenRange& range = session::mapping().head().started_range[i];
    range.closer = 0;
    fill(range, *t, domain, name, attributes);
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

void mark(std::uint8_t domain, std::string_view name, const Attributes& attributes) {
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
  fill(range, *t, domain, name, attributes);
  close(*t, range, RangeKind::mark, range.start_ns);
}

void after_fork() {
  for (auto& started : g_started) started.store(0, std::memory_order_relaxed);
}

}  // namespace tprof::ranges
