#include "interpose/thread/transaction.h"

#include "interpose/base/lock.h"

namespace tprof {
namespace {

Lock g_shared_calls{LockOrder::shared_calls};  // for the threads that share an area

}  // namespace

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
  t_.cancellation.hold();
  g_shared_calls.lock();
}
void Transaction::end_special() {
  if (t_.shared) {
    g_shared_calls.unlock();
    t_.cancellation.let_go();
  }
  if (t_.late) session::late_call();
}

}  // namespace tprof
