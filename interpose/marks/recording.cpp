#include "interpose/marks/recording.h"

#include <cstring>
#include <new>

#include "interpose/base/held_signals.h"
#include "interpose/marks/counters.h"

namespace tprof::marks {
namespace {

// Forgets the known ranges, whose area no longer belongs to the thread.
void forget(RangeLevels& levels) {
  levels.unknown += levels.known + levels.beyond;
  levels.known = levels.beyond = 0;
}

// The thread has a new area, which may contain ranges that an earlier thread left open.
[[gnu::cold, gnu::noinline]] void begin_in_area(Thread& t) {
  t.ranges.areas = t.areas;
  t.ranges.lane_named = false;
  forget(t.ranges);
  for (OpenRange& range : t.area->range) {
    shared(range.start_ns).store(0, std::memory_order_relaxed);
  }
}

void publish(Thread& t, std::uint32_t records) {
  ThreadArea& area = *t.area;
  t.head += records;
  area.head.store(t.head, std::memory_order_release);
  const std::uint64_t tail = area.tail.load(std::memory_order_relaxed);
  if (t.head - tail < area.capacity / 4 || tail == t.ranges.woken_at) return;
  t.ranges.woken_at = tail;
  session::wake_writer();
}

}  // namespace

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

bool has_room(const Thread& t, std::uint32_t records) {
  const std::uint64_t used = t.head - t.area->tail.load(std::memory_order_acquire) + records;
  return used <= (t.mask + 1) / 2;
}

void name_lane(Thread& t) {
  if (t.ranges.lane_named || !has_room(t, 1)) return;
  const KeepErrno keep_errno;
  after_publishing();
  Record& r = t.ring[t.head & t.mask];
  fill_thread_name(r, t.area->tid.load(std::memory_order_relaxed));
  r.function = kMetaRangeLane;
  publish(t, 1);
  Transaction transaction(t);
  transaction.close(r);
  t.ranges.lane_named = true;
}

void write_records(Thread& t, const RangeRecord& first, const char* bytes, std::uint32_t records) {
  for (std::uint32_t i = 0; i < records; ++i) {
    // Constructed in place: a copy would wait 15 ns for the stores of its parts.
    auto* to = new (&t.ring[(t.head + i) & t.mask]) RangeRecord(first);
    if (i != 0) to->function = kMetaRangeMore;
    std::memcpy(to->bytes, bytes + i * RangeRecord::kBytes, RangeRecord::kBytes);
  }
  publish(t, records);
}

void count_drop(Transaction& transaction, RangeDropped reason) {
  ++transaction
        .values(key_words(kMetaRangeDropped, Bucket{}, 0, Mode::direct,
                          static_cast<std::int8_t>(reason), 0, 0))
        .calls;
}

void drop(Thread& t, RangeDropped reason) {
  Transaction transaction(t);
  count_drop(transaction, reason);
}

void count(const Counter& counter, std::uint64_t at_ns) {
  if (within_a_call()) return;
  Thread* t = present();
  if (t == nullptr) return;
  const DepthGuard guard(*t);
  if (session::mapping().head().events == EventLines::off) return;
  name_lane(*t);
  const std::uint32_t records = counter_records(counter);
  Transaction transaction(*t);
  if (!has_room(*t, records)) return count_drop(transaction, RangeDropped::ring);
  RangeRecord r{};
  r.start_ns = at_ns;
  r.txn = transaction.number();
  r.length = counter.length;
  r.kind = static_cast<std::uint8_t>(counter.values);
  r.tid = t->area->tid.load(std::memory_order_relaxed);
  r.function = kMetaCounter;
  r.device = static_cast<std::uint8_t>(t->device);
  write_records(*t, r, reinterpret_cast<const char*>(&counter) + counter_bytes_at(counter.values),
                records);
}

}  // namespace tprof::marks
