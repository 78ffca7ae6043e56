#include "interpose/device/results.h"

#include <algorithm>
#include <bit>

#include "interpose/device/mode.h"
#include "interpose/record/transaction.h"

namespace tprof::device::results {
namespace {

constinit Thread g_own{};  // has its own ledger and records

// Commits results to the ledger, together with `fill`'s record if the ring has room.
template <typename Fill>
bool close_record(Transaction& transaction, std::uint8_t function, Fill&& fill) {
  bool in_ring = false;
  Record& r = next_record(g_own, true, in_ring);
  if (!in_ring) return false;
  r = {};
  fill(r);
  publish(g_own, r, function, true);
  transaction.close(r);
  return true;
}

}  // namespace

bool begin() {
  return attach_own(g_own);
}

void add(const Calls& of, CUstream stream, std::uint64_t start_ns, std::uint64_t ns) {
  if (of.mixed) device::lose(TimingLost::mixed, of);  // the rows' shares are unknown
  if (of.mixed && start_ns == 0) return;
  Transaction transaction(g_own);
  if (!of.mixed) {
    std::uint64_t count = of.count;
    LedgerValues& v = transaction.values(timed(of.key), count);
    v.calls += of.calls;
    v.count += count;
    v.host_ns += ns;
    v.host_ns_max = std::max(v.host_ns_max, ns / of.calls);
  }
  if (start_ns == 0) return;
  close_record(transaction, kMetaDevice, [&](Record& r) {
    const auto key = std::bit_cast<LedgerKey>(of.key);
    r.start_ns = start_ns;
    set_outcome(r, ns, 0);
    r.stream = reinterpret_cast<std::uintptr_t>(stream);
    r.seq = of.seq;
    set_comm(r, key.function == kMetaLaunch ? key.graph : key.comm);
    r.bucket = key.bucket;
    const std::uint8_t function = of.mixed ? std::uint8_t{kMetaGroup} : key.function;
    set_timed_call(r, function, of.calls, of.host_ns, of.tid, of.computes);
    set_waited(r, of.waited_ns);
  });
}

void add_clock(int device, std::uint64_t at_ns, std::uint64_t error_ns, std::int64_t drift_ppb) {
  Transaction transaction(g_own);
  close_record(transaction, kMetaDeviceClock, [&](Record& r) {
    r.start_ns = at_ns;
    set_outcome(r, error_ns, 0);
    r.count = static_cast<std::uint64_t>(drift_ppb);
    set_comm(r, static_cast<std::uint32_t>(device) + 1);
  });
}

bool add_busy(int device, const Interval& interval, std::uint64_t idle_from_ns) {
  constexpr std::uint64_t kMostNs = (std::uint64_t{1} << 48) - 1;  // 78 hours
  Interval rest = interval;
  do {
    Transaction transaction(g_own);
    const std::uint64_t to_ns = std::min(rest.to_ns, rest.from_ns + kMostNs);
    const bool written = close_record(transaction, kMetaBusy, [&](Record& r) {
      r.start_ns = rest.from_ns;
      set_outcome(r, to_ns - rest.from_ns, 0);
      set_comm(r, static_cast<std::uint32_t>(device) + 1);
      set_busy(r, std::min(idle_from_ns, rest.from_ns), rest.unsure);
    });
    if (!written) return false;
    rest.from_ns = idle_from_ns = to_ns;
  } while (rest.from_ns < rest.to_ns);
  return true;
}

void add(const Exposed& found) {
  Transaction transaction(g_own);
  LedgerValues& v = transaction.values(beside(found.key, RowKind::exposed));
  v.calls += found.calls;
  v.count += found.device_ns;
  v.host_ns += found.exposed_ns;
  v.host_ns_max = std::max(v.host_ns_max, found.exposed_ns / found.calls);
  v.failed += found.late ? found.calls : 0;
}

void lose(ExposureLost why, std::uint64_t calls) {
  session::mapping().head().exposure_lost[static_cast<std::size_t>(why)].fetch_add(
      calls, std::memory_order_relaxed);
}

}  // namespace tprof::device::results
