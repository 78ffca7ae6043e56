#include "interpose/marks/ranges.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <new>

#include "interpose/base/hash.h"
#include "interpose/base/held_signals.h"
#include "interpose/base/lock.h"
#include "interpose/base/shared_map.h"
#include "interpose/base/text.h"
#include "interpose/device/timing.h"
#include "interpose/format/ranges.h"
#include "interpose/format/scopes.h"
#include "interpose/marks/range_names.h"
#include "interpose/record/tables.h"
#include "interpose/record/transaction.h"

namespace tprof::marks {
namespace {

// Within a wrapper, or a signal handler that interrupts one, ranges are not the program's.
bool within_a_call() {
  return !t_thread.at_rest();
}

// Gives atomic access to a field that readers check.
std::atomic_ref<std::uint64_t> shared(std::uint64_t& field) {
  return std::atomic_ref(field);
}

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

// Returns the calling thread if it can record now, else null.
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

// Ranges leave half of the ring to calls.
bool has_room(const Thread& t, std::uint32_t records) {
  const std::uint64_t used = t.head - t.area->tail.load(std::memory_order_acquire) + records;
  return used <= (t.mask + 1) / 2;
}

// Names the lane for readers, before its first range.
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

// Writes consecutive records, for which there must be room: each is `first` with its part of
// `bytes`. Wakes the writer when ranges fill a quarter of the ring.
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

// The numbers of scopes, by a hash of name and category: 64 bits, since equal hashes count as equal
// names.
constinit SharedMap<std::uint32_t> g_scopes{LockOrder::handles};
Lock g_adding{LockOrder::scopes};

std::uint32_t category_of(const OpenRange& range) {
  return (range.given & kGivenCategory) != 0 ? range.attributes.category : 0;
}

// At least a whole word is readable after the last byte of `text`.
std::uint64_t hash_of(std::string_view text, std::uint32_t category) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15ULL;
  std::uint64_t h = fold_product(~text.size() ^ std::uint64_t{category} << 32, kOdd);
  for (std::size_t i = 0; i < text.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + i, sizeof word);
    const std::size_t left = text.size() - i;
    if (left < 8) word &= (std::uint64_t{1} << (8 * left)) - 1;
    h = fold_product(h ^ word, kOdd);
  }
  return h;
}

[[gnu::cold, gnu::noinline]] std::uint32_t add(const OpenRange& range, std::string_view name,
                                               std::uint64_t hash) {
  const LockGuard guard(g_adding);
  std::uint32_t number = 0;
  if (g_scopes.find(hash, number)) return number;
  ScopeName entry{};
  entry.category = category_of(range);
  entry.length = static_cast<std::uint32_t>(name.size());
  std::memcpy(entry.text, name.data(), name.size());
  number = tables::append(session::mapping().head().scopes, entry, kMaxScopes - 1);
  if (number == 0) return kMaxScopes;
  g_scopes.insert(hash, number);
  return number;
}

// Returns the number of the scope's name and category. Called before the scope's end is known.
// kMaxScopes: there is no room.
std::uint32_t scope_number(const OpenRange& range) {
  const std::string_view name = range_text(range);
  const std::uint64_t hash = hash_of(name, category_of(range));
  std::uint32_t number = 0;
  return g_scopes.find(hash, number) ? number : add(range, name, hash);
}

void add_totals(Transaction& transaction, const OpenRange& range, std::uint32_t scope,
                std::uint64_t dur_ns) {
  const std::uint64_t ns = std::min(dur_ns, kLongestScope);
  LedgerValues& times = transaction.values(scope_key(scope, ScopeRow::times, scope_bin(ns)));
  ++times.calls;
  times.host_ns += ns;
  times.host_ns_max = std::max(times.host_ns_max, ns);
  if ((range.given & (kGivenAmounts | kGivenError)) == 0) [[likely]]
    return;
  if ((range.given & kGivenError) != 0) ++times.failed;
  if ((range.given & kGivenAmounts) == 0) return;
  LedgerValues& amounts = transaction.values(scope_key(scope, ScopeRow::amounts, 0));
  ++amounts.calls;
  amounts.count += range.amounts.elements;
  amounts.host_ns += range.amounts.bytes;
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
  range.counts = attributes.counts;
  if (attributes.given != 0) range.attributes = attributes.values;
  if ((attributes.given & kGivenAmounts) != 0) range.amounts = attributes.amounts;
  std::memcpy(range.name, name.data(), name.size());
  shared(range.start_ns)
      .store(attributes.at_ns != 0 ? attributes.at_ns : now_ns(), std::memory_order_release);
}

// Adds what is known at the range's end. Readers of an open range may see a part of it.
[[gnu::cold, gnu::noinline]] void complete(OpenRange& range, const End& end) {
  if (end.amounts.elements != 0 || end.amounts.bytes != 0) {
    if (range.given == 0) range.attributes = {};
    if ((range.given & kGivenAmounts) == 0) range.amounts = {};
    range.given |= kGivenAmounts;
    range.amounts.elements += end.amounts.elements;
    range.amounts.bytes += end.amounts.bytes;
  }
  if (end.error.empty()) return;
  if (range.given == 0) range.attributes = {};
  const std::string_view error = prefix(end.error, kMaxRangeError);
  const std::size_t name =
      range_names::cut({range.name, range.length}, kMaxRangeName - 1 - error.size());
  range.name[name] = '\0';
  std::memcpy(range.name + name + 1, error.data(), error.size());
  range.length = static_cast<std::uint8_t>(name + 1 + error.size());
  range.given |= kGivenError;
}

void write_range(Thread& t, const OpenRange& range, RangeKind kind, std::uint64_t dur_ns,
                 std::uint64_t transaction) {
  RangeRecord r;
  r.start_ns = range.start_ns;
  r.txn = transaction;
  r.dur_ns = dur_ns & ((std::uint64_t{1} << 48) - 1);
  r.length = range.length;
  r.kind = static_cast<std::uint8_t>(kind);
  r.tid = range.tid;
  r.function = kMetaRange;
  r.domain = range.domain;
  r.device = range.device;
  r.given = range.given;
  write_records(t, r, reinterpret_cast<const char*>(&range) + range_bytes_at(range),
                range_records(range));
}

// True if the range marks a step: its end is then recorded even without lines.
bool marks_step(const Head& head, std::string_view name) {
  StepMark mark;
  std::int64_t number = 0;
  return parse_step_mark(bounded_text(head.step_mark), mark) && is_step(mark, name, number);
}

std::uint64_t moment_of(const End& end) {
  return end.at_ns != 0 ? end.at_ns : now_ns();
}

// Ends a range in one transaction: it is written and no longer open, or neither.
void close(Thread& t, OpenRange& range, RangeKind kind, const End& end, std::uint64_t at_ns) {
  const Head& head = session::mapping().head();
  const bool more = end.amounts.elements != 0 || end.amounts.bytes != 0 || !end.error.empty();
  const std::uint32_t scope = range.counts ? scope_number(range) : 0;
  if (more) [[unlikely]]
    complete(range, end);
  const bool lines = head.events != EventLines::off || marks_step(head, range_name(range));
  const std::uint64_t end_ns = std::max(at_ns, range.start_ns);
  if (end.took_ns != nullptr) *end.took_ns = end_ns - range.start_ns;
  Transaction transaction(t);
  if (scope != 0) add_totals(transaction, range, scope, end_ns - range.start_ns);
  if (lines && has_room(t, range_records(range))) {
    write_range(t, range, kind, end_ns - range.start_ns, transaction.number());
  } else if (lines) {
    count_drop(transaction, RangeDropped::ring);
  }
  shared(range.closed).store(transaction.number(), std::memory_order_release);
}

// Returns the innermost open range of `domain`, and of `name` if not empty. kMaxOpenRanges: there
// is none.
std::uint32_t innermost(const Thread& t, std::uint8_t domain, std::string_view name) {
  for (std::uint32_t i = t.ranges.known; i > 0; --i) {
    const OpenRange& range = t.area->range[i - 1];
    if (range.domain != domain || !is_open(range)) continue;
    if (name.empty() || range_name(range) == name) return i - 1;
  }
  return kMaxOpenRanges;
}

// A range's number contains the session's, so that a child does not end its parent's ranges.
constexpr std::uint64_t number_of(std::uint32_t session, std::uint32_t generation,
                                  std::uint32_t place) {
  return std::uint64_t{session} << 40 | std::uint64_t{generation} << 8 | (place + 1);
}

// The events around open scopes: by level for pushed scopes, by place for started ones.
thread_local constinit device::Pair* t_pushed[kMaxOpenRanges]
    __attribute__((tls_model("initial-exec")));
device::Pair* g_started_pair[kMaxStartedRanges];

device::Pair* begin_on_device(const Attributes& attributes) {
  const bool timed = attributes.on_stream && device::on();
  return timed ? device::begin_scope(attributes.stream) : nullptr;
}

void end_on_device(device::Pair*& pair, const OpenRange& range) {
  if (pair == nullptr) [[likely]]
    return;
  device::end_scope(*pair, scope_key(scope_number(range), ScopeRow::times, 0));
  pair = nullptr;
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
  if (levels.known == kMaxOpenRanges) {
    ++levels.beyond;
    return;
  }
  name_lane(*t);
  t_pushed[levels.known] = begin_on_device(attributes);
  fill(t->area->range[levels.known++], *t, domain, name, attributes);
}

bool pop(std::uint8_t domain, const End& end) {
  if (within_a_call()) return true;
  const std::uint64_t at_ns = moment_of(end);
  Thread* t = present();
  RangeLevels& levels = t_thread.ranges;
  const DepthGuard guard(t_thread);
  if (levels.beyond != 0) {
    --levels.beyond;
    if (t != nullptr) drop(*t, RangeDropped::open);
    return true;
  }
  const std::uint32_t popped = t == nullptr ? kMaxOpenRanges : innermost(*t, domain, end.name);
  if (popped == kMaxOpenRanges) {
    if (levels.unknown == 0) return false;
    --levels.unknown;
    return true;
  }
  OpenRange* stack = t->area->range;
  const bool on_top = popped + 1 == levels.known;
  end_on_device(t_pushed[popped], stack[popped]);
  close(*t, stack[popped], on_top ? RangeKind::nested : RangeKind::free, end, at_ns);
  while (levels.known != 0 && !is_open(stack[levels.known - 1])) --levels.known;
  return true;
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
    g_started_pair[i] = begin_on_device(attributes);
    fill(range, *t, domain, name, attributes);
    const std::uint64_t number =
        number_of(t->session, g_generation.fetch_add(1, std::memory_order_relaxed), i);
    g_started[i].store(number, std::memory_order_release);
    return number;
  }
  drop(*t, RangeDropped::open);
  return 0;
}

bool end(std::uint64_t number, const End& end) {
  if (number == 0 || within_a_call()) return true;
  const std::uint64_t at_ns = moment_of(end);
  Thread* t = present();
  const std::uint64_t session = number >> 40;  // from 1
  if (t == nullptr || (session != 0 && session != t->session)) return true;
  const std::uint64_t place = (number & 0xff) - 1;
  if (session == 0 || place >= kMaxStartedRanges) return false;
  const DepthGuard guard(*t);
  if (!g_started[place].compare_exchange_strong(number, 1, std::memory_order_acquire)) return false;
  name_lane(*t);
  Head& head = session::mapping().head();
  OpenRange& range = head.started_range[place];
  end_on_device(g_started_pair[place], range);
  range.closer = static_cast<std::uint64_t>(reinterpret_cast<const char*>(t->area) -
                                            reinterpret_cast<const char*>(&head));
  close(*t, range, RangeKind::free, end, at_ns);
  g_started[place].store(0, std::memory_order_release);
  return true;
}

void mark(std::uint8_t domain, std::string_view name, const Attributes& attributes) {
  if (within_a_call()) return;
  Thread* t = present();
  if (t == nullptr) return;
  const DepthGuard guard(*t);
  name_lane(*t);
  OpenRange range{};
  fill(range, *t, domain, name, attributes);
  close(*t, range, RangeKind::mark, {}, range.start_ns);
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

void after_fork() {
  g_scopes.clear();
  for (auto& pair : g_started_pair) pair = nullptr;
  for (auto& started : g_started) started.store(0, std::memory_order_relaxed);
}

}  // namespace tprof::marks
