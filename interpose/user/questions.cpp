#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string_view>

#include "interpose/base/clock.h"
#include "interpose/base/environment.h"
#include "interpose/base/held_signals.h"
#include "interpose/base/lock.h"
#include "interpose/base/own_memory.h"
#include "interpose/device/timing.h"
#include "interpose/record/thread.h"
#include "interpose/session/process.h"
#include "interpose/session/session.h"
#include "interpose/user/user.h"
#include "interpose/write/ledger_lines.h"
#include "interpose/write/scope_sums.h"
#include "interpose/write/writer.h"

namespace tprof::user {
namespace {

// The counts for a program: of executed calls per bucket, as in the contract, and of scopes.
constexpr const char* kCountNames[] = {"calls",   "count",     "elements",     "bytes",
                                       "host_ns", "device_ns", "device_timed", "failed"};
constexpr const char* kScopeNames[] = {"count",  "total_ns",  "elements",    "bytes",
                                       "errors", "device_ns", "device_timed"};

// The sums from which a program's totals are made, each since the trace began.
struct Counted {
  std::uint64_t bucket[kBucketCount][std::size(kCountNames)];
  std::uint64_t scope[kMaxScopes + 1][std::size(kScopeNames)];
};

// All counts at one moment. Made without our lock, since the thread may be preempted for long; its
// stack may be small.
struct Moment : NotCopied {
  Moment(std::uint32_t epoch, bool ends_epoch);
  ~Moment() {
    if (counted != nullptr) give_back_memory(counted, sizeof *counted);
  }

  bool traced;
  bool whole = true;  // false: memory was short
  Text ledger;        // if it ends an epoch
  Counted* counted = make_in_own_memory<Counted>();
};

[[gnu::cold]] void add_row(Counted& to, const View& view, const Total& t) {
  const LedgerKey& key = t.key;
  const auto bucket = static_cast<std::size_t>(key.bucket);
  if (key.function >= kMaxDataFunctions || bucket >= kBucketCount ||
      (key.mode != Mode::direct && key.mode != Mode::replayed)) {
    return;
  }
  const Amount moved = amount(view, key.function, key.bucket, key.dtype, key.comm, t.values.count);
  const std::uint64_t row[] = {t.values.calls,   t.values.count,  moved.elements, moved.bytes,
                               t.values.host_ns, t.timed.host_ns, t.timed.calls,  t.values.failed};
  for (std::size_t i = 0; i < std::size(row); ++i) to.bucket[bucket][i] += row[i];
}

Moment::Moment(std::uint32_t epoch, bool ends_epoch) : traced(session::started()) {
  whole = counted != nullptr;
  if (!traced || !whole) return;
  const View view = session::mapping().view();
  Sums sums;
  if (ends_epoch) {
    ledger_line(ledger, view, sums, now_ns(), epoch, "reset", false);
  } else {
    collect(view, sums, false);
  }
  for (const Total& t : sums.rows) add_row(*counted, view, t);
  Pages<Total> rows;
  scope_rows(sums.all, rows);
  whole = !sums.failed() && !rows.failed();
  each_scope(rows, [&](std::uint32_t scope, const ScopeSums& s, const Total*, const Total*) {
    const std::uint64_t row[] = {s.count,  s.total_ns,  s.elements,    s.bytes,
                                 s.errors, s.device_ns, s.device_timed};
    std::copy(std::begin(row), std::end(row), counted->scope[scope]);
  });
}

// The state of the totals: when they began, and whether the program has paused them.
struct Since {
  std::uint32_t epoch;  // of the trace; a reset before it ends none
  std::uint32_t changes;
  std::uint64_t realtime_ns;
  bool paused;
};
constinit Since g_since{};
// Untouched pages of these cost nothing.
constinit Counted g_before{};
constinit Counted g_paused{};   // at the beginning of the pause
Lock g_lock{LockOrder::since};  // guards all of these

Since since_now() {
  const LockGuard guard(g_lock);
  return g_since;
}

// Calls f(moment) under the lock. Takes the moment again if another thread ended an epoch, or
// paused, in between.
template <typename F>
auto at_moment(bool ends_epoch, F&& f) {
  const HeldSignals held_signals;
  const KeepErrno keep_errno;
  for (;;) {
    const Since since = since_now();
    const Moment now(since.epoch, ends_epoch);
    const LockGuard guard(g_lock);
    if (g_since.changes == since.changes) return f(now);
  }
}

template <std::size_t N>
void put(Text& out, const char* const (&names)[N], const std::uint64_t (&now)[N],
         const std::uint64_t (&before)[N]) {
  Comma comma;
  for (std::size_t i = 0; i < N; ++i) {
    out << comma.next() << '"' << names[i] << "\":" << now[i] - before[i];
  }
  out << '}';
}

// Writes the totals of now, or of the beginning of the pause.
[[gnu::cold]] void put_totals(Text& out, const Moment& moment) {
  if (!moment.whole) return out.fail();
  const Counted& now = g_since.paused ? g_paused : *moment.counted;
  out << "{\"rank\":" << rank() << ",\"epoch\":" << g_since.epoch
      << ",\"since_ns\":" << g_since.realtime_ns << ",\"buckets\":{";
  std::uint64_t all[std::size(kCountNames)] = {};
  constexpr std::uint64_t kNothing[std::size(all)] = {};
  for (std::size_t b = 0; b < kBucketCount; ++b) {
    const auto& before = g_before.bucket[b];
    const auto& counts = now.bucket[b];
    for (std::size_t i = 0; i < std::size(all); ++i) all[i] += counts[i] - before[i];
    if (std::equal(std::begin(counts), std::end(counts), before)) continue;
    out << '"' << kBuckets[b].name << "\":{";
    put(out, kCountNames, counts, before);
    out << ',';
  }
  out << "\"ALL\":{";
  put(out, kCountNames, all, kNothing);
  out << "},\"scopes\":[";
  Comma comma;
  const View view = session::mapping().view();
  for (std::uint32_t i = 1; i <= kMaxScopes; ++i) {
    if (now.scope[i][0] == 0) continue;  // scopes of earlier epochs stay, with a count of 0
    out << comma.next() << "{\"scope\":";
    out.string(scope_name(view, i)) << ",\"category\":";
    out.string(scope_category(view, i)) << ',';
    put(out, kScopeNames, now.scope[i], g_before.scope[i]);
  }
  out << "]}";
}

int rank_by_communicators(const View& view) {
  std::int32_t world = 0;
  std::int32_t rank = -1;
  const std::uint32_t comms = View::entries(view.head().comms);
  for (std::uint32_t i = 1; i <= comms; ++i) {
    const Communicator* larger = larger_comm(view, i, world);
    if (larger == nullptr) continue;
    world = larger->nranks;
    rank = larger->rank;
  }
  return rank;
}

// Copies the text with its NUL, or nothing if it does not fit. Returns the bytes needed; 0: memory
// was short.
std::size_t give(const Text& text, char* json, std::size_t size) {
  if (text.failed()) return 0;
  if (json != nullptr && text.size() < size) {
    std::memcpy(json, text.data(), text.size());
    json[text.size()] = '\0';
  }
  return text.size() + 1;
}

void begin_epoch(const Moment& end) {
  g_since.realtime_ns = clock_ns(CLOCK_REALTIME);
  if (!end.traced || !end.whole) return;
  g_before = *end.counted;
  if (g_since.paused) g_paused = g_before;
  ++g_since.epoch;
  ++g_since.changes;
  writer::end_epoch(end.ledger.failed() ? std::string_view() : end.ledger.view());
}

}  // namespace

int enabled() {
  return session::number() != session::kOff && !disabled_by_environment();
}

int rank() {
  if (!session::started()) {
    Process process{};
    describe_process(true, process);
    return static_cast<int>(process.rank);
  }
  const View view = session::mapping().view();
  return view.head().rank_known ? static_cast<int>(view.head().line_pid)
                                : rank_by_communicators(view);
}

std::size_t totals(char* json, std::size_t size) {
  Text text;
  at_moment(false, [&](const Moment& now) { put_totals(text, now); });
  return give(text, json, size);
}

std::size_t totals_and_reset(char* json, std::size_t size) {
  return at_moment(true, [&](const Moment& now) {
    Text text;
    put_totals(text, now);
    const std::size_t needed = give(text, json, size);
    if (json != nullptr && needed != 0 && needed <= size) begin_epoch(now);
    return needed;
  });
}

int reset() {
  at_moment(true, begin_epoch);
  return TPROF_OK;
}

int pause(int on) {
  at_moment(false, [&](const Moment& now) {
    if (g_since.paused == (on != 0) || !now.whole) return;
    g_since.paused = on != 0;
    ++g_since.changes;
    if (g_since.paused) {
      g_paused = *now.counted;
      return;
    }
    // Counts from the pause are treated as if made before.
    auto* before = reinterpret_cast<std::uint64_t*>(&g_before);
    const auto* paused = reinterpret_cast<const std::uint64_t*>(&g_paused);
    const auto* resumed = reinterpret_cast<const std::uint64_t*>(now.counted);
    for (std::size_t i = 0; i < sizeof(Counted) / sizeof *before; ++i) {
      before[i] += resumed[i] - paused[i];
    }
  });
  return TPROF_OK;
}

int flush(std::uint32_t timeout_ms) {
  if (!session::started() || session::closed()) return TPROF_OK;
  const KeepErrno keep_errno;
  return writer::flush(timeout_ms) ? TPROF_OK : TPROF_TIMED_OUT;
}

int flush_device(std::uint32_t timeout_ms) {
  if (!session::started() || session::closed()) return TPROF_OK;
  const KeepErrno keep_errno;
  return device::read_scopes(timeout_ms) ? TPROF_OK : TPROF_TIMED_OUT;
}

void forget_counts() {
  if (g_since.changes != 0 || g_since.realtime_ns != 0) {
    g_since = {};
    g_before = {};
  }
}

}  // namespace tprof::user
