#include "interpose/marks/counters.h"

#include "interpose/marks/recording.h"

namespace tprof::marks {

void count(const Counter& counter, std::uint64_t at_ns) {
  if (within_a_call()) return;
  Thread* t = present();
  if (t == nullptr) return;
  const DepthGuard guard(*t);
  if (session::mapping().head().events == EventLines::off) return;
  if (!t->shared) name_lane(*t);
  const std::uint32_t records = counter_records(counter);
  Transaction transaction(*t);
  if (t->shared || !has_room(*t, records)) return count_drop(transaction, RangeDropped::ring);
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
