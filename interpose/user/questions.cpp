#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string_view>

#include "interpose/base/clock.h"
#include "interpose/base/environment.h"
#include "interpose/base/held_signals.h"
#include "interpose/base/lock.h"
#include "interpose/emit/writer.h"
#include "interpose/lines/ledger_lines.h"
#include "interpose/session/process.h"
#include "interpose/session/session.h"
#include "interpose/thread/thread.h"
#include "interpose/user/user.h"

namespace tprof::user {
namespace {

// Of calls that were executed, as the contract counts them.
struct Counts {
  std::uint64_t calls, count, elements, bytes, host_ns, device_ns, device_timed, failed;
};
constexpr std::uint64_t Counts::*kCounts[] = {
    &Counts::calls,   &Counts::count,     &Counts::elements,     &Counts::bytes,
    &Counts::host_ns, &Counts::device_ns, &Counts::device_timed, &Counts::failed};
constexpr const char* kCountNames[] = {"calls",   "count",     "elements",     "bytes",
                                       "host_ns", "device_ns", "device_timed", "failed"};

struct Buckets {
  Counts of[kBucketCount];
};

void add_row(Buckets& to, const View& view, const Total& t) {
  const LedgerKey& key = t.key;
  const auto bucket = static_cast<std::size_t>(key.bucket);
  if (key.function >= kMaxDataFunctions || view.function(key.function) == nullptr ||
      bucket >= kBucketCount || (key.mode != Mode::direct && key.mode != Mode::replayed)) {
    return;
  }
  const Amount moved = amount(view, key.function, key.bucket, key.dtype, key.comm, t.values.count);
  const Counts row = {t.values.calls,   t.values.count,  moved.elements, moved.bytes,
                      t.values.host_ns, t.timed.host_ns, t.timed.calls,  t.values.failed};
  for (const auto member : kCounts) to.of[bucket].*member += row.*member;
}

Buckets add_up(const View& view, const Sums& sums) {
  Buckets all{};
  for (const Total& t : sums.rows) add_row(all, view, t);
  return all;
}

Buckets counts_now() {
  const View view = session::mapping().view();
  Sums sums;
  collect(view, sums, false);
  return add_up(view, sums);
}

// As of the last reset.
struct Since {
  Buckets before;
  std::uint32_t epoch;  // of the trace: resets before that begins end none
  std::uint64_t realtime_ns;
};
constinit Since g_since{};
Lock g_lock{LockOrder::since};  // of it

void put(Text& out, std::string_view name, const Counts& now) {
  out << '"' << name << "\":{";
  Comma comma;
  for (std::size_t i = 0; i < std::size(kCounts); ++i) {
    out << comma.next() << '"' << kCountNames[i] << "\":" << now.*kCounts[i];
  }
  out << '}';
}

void put(Text& out, const Buckets& now, const Since& since) {
  out << "{\"rank\":" << rank() << ",\"epoch\":" << since.epoch
      << ",\"since_ns\":" << since.realtime_ns << ",\"buckets\":{";
  Counts all{};
  for (std::size_t b = 0; b < kBucketCount; ++b) {
    Counts counts{};
    for (const auto member : kCounts) {
      counts.*member = now.of[b].*member - since.before.of[b].*member;
      all.*member += counts.*member;
    }
    if (counts.calls + counts.failed == 0) continue;
    put(out, kBuckets[b].name, counts);
    out << ',';
  }
  put(out, "ALL", all);
  out << "}}";
}

int rank_by_communicators(const View& view) {
  std::int32_t world = 0;
  std::int32_t rank = -1;
  const std::uint32_t comms = View::entries(view.head().comms);
  for (std::uint32_t i = 1; i <= comms; ++i) {
    const Communicator* larger = larger_own_comm(view, i, world);
    if (larger == nullptr) continue;
    world = larger->nranks;
    rank = larger->rank;
  }
  return rank;
}

// With its NUL; where there is less room nothing.
std::size_t give(const Text& text, char* json, std::size_t size) {
  if (text.failed()) return 0;
  if (json != nullptr && text.size() < size) {
    std::memcpy(json, text.data(), text.size());
    json[text.size()] = '\0';
  }
  return text.size() + 1;
}

// The ledger of a moment, and its sums.
struct EpochsEnd {
  explicit EpochsEnd(std::uint32_t epoch) : traced(session::started()) {
    if (!traced) return;
    const View view = session::mapping().view();
    Sums sums;
    ledger_line(ledger, view, sums, now_ns(), epoch, "reset", false);
    counts = add_up(view, sums);
  }
  bool traced;
  Text ledger;
  Buckets counts{};
};

Since since_now() {
  const LockGuard guard(g_lock);
  return g_since;
}

// f(end) under the lock. The counts are added up without it, on threads that may be kept from
// running, and once more where an epoch ended meanwhile.
template <typename F>
void end_epoch(F&& f) {
  for (;;) {
    const std::uint32_t epoch = since_now().epoch;
    const EpochsEnd end(epoch);
    const LockGuard guard(g_lock);
    if (g_since.epoch == epoch) return f(end);
  }
}

void begin_epoch(const EpochsEnd& end) {
  g_since.realtime_ns = clock_ns(CLOCK_REALTIME);
  if (!end.traced) return;
  g_since.before = end.counts;
  ++g_since.epoch;
  writer::end_epoch(end.ledger.failed() ? std::string_view() : end.ledger.view());
}

}  // namespace

int enabled() {
  return session::number() != session::kOff && !disabled_by_environment();
}

int rank() {
  if (!session::started()) return static_cast<int>(describe_process(true).rank);
  const View view = session::mapping().view();
  return view.head().rank_known ? static_cast<int>(view.head().line_pid)
                                : rank_by_communicators(view);
}

std::size_t totals(char* json, std::size_t size) {
  const HeldSignals held_signals;
  const KeepErrno keep_errno;
  const Since since = since_now();  // before the counts, which only grow
  Text text;
  put(text, session::started() ? counts_now() : Buckets{}, since);
  return give(text, json, size);
}

std::size_t totals_and_reset(char* json, std::size_t size) {
  const HeldSignals held_signals;
  const KeepErrno keep_errno;
  std::size_t needed = 0;
  end_epoch([&](const EpochsEnd& end) {
    Text text;
    put(text, end.counts, g_since);
    needed = give(text, json, size);
    if (json != nullptr && needed != 0 && needed <= size) begin_epoch(end);
  });
  return needed;
}

int reset() {
  const HeldSignals held_signals;
  const KeepErrno keep_errno;
  end_epoch(begin_epoch);
  return TPROF_OK;
}

int flush(std::uint32_t timeout_ms) {
  if (!session::started() || session::closed()) return TPROF_OK;
  const KeepErrno keep_errno;
  return writer::flush(timeout_ms) ? TPROF_OK : TPROF_TIMED_OUT;
}

void forget_counts() {
  g_since = {};
}

}  // namespace tprof::user
