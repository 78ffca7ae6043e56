// The functions of tprof.h, which documents them, and the table by which programs find them.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "interpose/base/text.h"
#include "interpose/device/timing.h"
#include "interpose/format/ranges.h"
#include "interpose/marks/range_names.h"
#include "interpose/marks/ranges.h"
#include "interpose/record/thread.h"
#include "interpose/user/user.h"

namespace tprof::user {
namespace {

// Begins the session if needed, as a call that counts does.
bool recording() {
  return recording_thread() != nullptr;
}

// Converts a time on CLOCK_REALTIME; 0 means now, and stays 0. Limits the result to the time from
// the trace's beginning until now.
std::uint64_t monotonic(std::uint64_t realtime_ns) {
  if (realtime_ns == 0) return 0;
  const Head& head = session::mapping().head();
  // Readers convert in the same way, so differences are preserved.
  if (realtime_ns <= head.base_real_ns) return head.base_mono_ns;
  return std::min(head.base_mono_ns + (realtime_ns - head.base_real_ns), now_ns());
}

std::uint8_t domain() {
  static constinit std::atomic<std::uint8_t> known{kDefaultDomain};
  std::uint8_t d = known.load(std::memory_order_relaxed);
  if (d != kDefaultDomain) return d;
  d = range_names::domain(kScopeDomain);
  known.store(d, std::memory_order_relaxed);
  return d;
}

RangeAmounts amounts_of(const tprof_with* with) {
  return with == nullptr ? RangeAmounts{} : RangeAmounts{with->elements, with->bytes};
}

void add_category(marks::Attributes& to, const char* categories) {
  if (categories == nullptr || *categories == '\0') return;
  const std::uint32_t number = range_names::category_number(domain(), categories);
  if (number == 0) return;
  to.given |= kGivenCategory;
  to.values.category = number;
}

marks::Attributes attributes_of(const tprof_with* with) {
  marks::Attributes a;
  a.counts = true;
  if (with == nullptr) return a;
  add_category(a, with->categories);
  a.amounts = amounts_of(with);
  if (a.amounts.elements != 0 || a.amounts.bytes != 0) a.given |= kGivenAmounts;
  a.at_ns = monotonic(with->time_ns);
  return a;
}

marks::End end_of(const char* name, const tprof_with* with) {
  marks::End e;
  if (name != nullptr) e.name = range_names::cut(name);
  if (with == nullptr) return e;
  e.amounts = amounts_of(with);
  if (with->error != nullptr) e.error = range_names::cut(with->error);
  e.at_ns = monotonic(with->time_ns);
  return e;
}

// The current step's range (0: none) and number.
constinit std::atomic<std::uint64_t> g_step{0};
constinit std::atomic<std::int64_t> g_step_number{0};

constexpr std::string_view kPhases[] = {"load", "forward", "backward", "optimizer"};
thread_local constinit std::string_view t_phase __attribute__((tls_model("initial-exec")));

bool is_name(const char* name) {
  return name != nullptr && *name != '\0';
}

marks::Attributes on(void* stream, marks::Attributes a) {
  a.on_stream = true;
  a.stream = static_cast<CUstream>(stream);
  return a;
}

// Ends a scope with `close(end)`. Returns its duration.
template <typename F>
std::int64_t ended(const char* name, const tprof_with* with, F&& close) {
  if (!recording()) return 0;
  std::uint64_t took_ns = 0;
  marks::End end = end_of(name, with);
  end.took_ns = &took_ns;
  return close(end) ? static_cast<std::int64_t>(took_ns) : TPROF_NOT_OPEN;
}

int push(const char* name, const tprof_with* with) {
  if (!is_name(name)) return TPROF_BAD_ARGUMENT;
  if (recording()) marks::push(domain(), range_names::cut(name), attributes_of(with));
  return TPROF_OK;
}

int push_on(const char* name, const tprof_with* with, void* stream) {
  if (!is_name(name)) return TPROF_BAD_ARGUMENT;
  if (recording()) marks::push(domain(), range_names::cut(name), on(stream, attributes_of(with)));
  return TPROF_OK;
}

std::int64_t pop_timed(const char* name, const tprof_with* with) {
  return ended(name, with, [](const marks::End& end) { return marks::pop(domain(), end); });
}

int pop(const char* name, const tprof_with* with) {
  return pop_timed(name, with) < 0 ? TPROF_NOT_OPEN : TPROF_OK;
}

std::uint64_t start(const char* name, const tprof_with* with) {
  if (!is_name(name) || !recording()) return 0;
  return marks::start(domain(), range_names::cut(name), attributes_of(with));
}

std::uint64_t start_on(const char* name, const tprof_with* with, void* stream) {
  if (!is_name(name) || !recording()) return 0;
  return marks::start(domain(), range_names::cut(name), on(stream, attributes_of(with)));
}

int times_on_device() {
  return device::on() && device::in_streams();
}

std::int64_t end_timed(std::uint64_t id, const tprof_with* with) {
  return ended(nullptr, with, [&](const marks::End& end) { return marks::end(id, end); });
}

int end(std::uint64_t id, const tprof_with* with) {
  return end_timed(id, with) < 0 ? TPROF_NOT_OPEN : TPROF_OK;
}

int instant(const char* name, const tprof_with* with) {
  if (!is_name(name)) return TPROF_BAD_ARGUMENT;
  if (!recording()) return TPROF_OK;
  marks::Attributes a = attributes_of(with);
  a.counts = false;  // a mark has no duration
  marks::mark(domain(), range_names::cut(name), a);
  return TPROF_OK;
}

// Appends a name with its NUL. Returns false if there is no room.
bool add_name(Counter& to, const char* name) {
  const std::size_t size = strnlen(name, kMaxCounterNames) + 1;
  if (to.length + size > kMaxCounterNames) return false;
  std::memcpy(to.names + to.length, name, size);
  to.length += static_cast<std::uint32_t>(size);
  return true;
}

int counter(const char* name, const char* const* keys, const double* values, std::size_t n,
            std::uint64_t time_ns) {
  if (name == nullptr || keys == nullptr || values == nullptr || n == 0 || n > kMaxCounterValues) {
    return TPROF_BAD_ARGUMENT;
  }
  Counter c{};
  c.values = static_cast<std::uint32_t>(n);
  if (!add_name(c, name)) return TPROF_BAD_ARGUMENT;
  for (std::size_t i = 0; i < n; ++i) {
    const auto same = [&](const char* key) { return std::strcmp(key, keys[i]) == 0; };
    if (keys[i] == nullptr || std::any_of(keys, keys + i, same) || !add_name(c, keys[i])) {
      return TPROF_BAD_ARGUMENT;
    }
    c.value[kMaxCounterValues - n + i] = values[i];
  }
  if (recording_thread() == nullptr) return TPROF_OK;
  const std::uint64_t at_ns = monotonic(time_ns);
  marks::count(c, at_ns != 0 ? at_ns : now_ns());
  return TPROF_OK;
}

// A step is a range with a number, like the usual names of steps, so that `live` and readers find
// it.
int step(std::int64_t number) {
  if (number < TPROF_NO_STEP) return TPROF_BAD_ARGUMENT;
  if (!recording()) return TPROF_OK;
  marks::Attributes at;
  at.at_ns = now_ns();
  const bool ends = number == TPROF_NO_STEP;
  const std::int64_t next =
      number == TPROF_NEXT_STEP ? g_step_number.load(std::memory_order_relaxed) + 1 : number;
  marks::end(g_step.exchange(0, std::memory_order_acq_rel), {.at_ns = at.at_ns});
  if (ends) return TPROF_OK;
  g_step_number.store(next, std::memory_order_relaxed);
  char name[32];
  FixedText text(name);
  text << kScopeStep << " ";
  text.number(next);
  const std::uint64_t before =
      g_step.exchange(marks::start(domain(), text.view(), at), std::memory_order_acq_rel);
  marks::end(before, {.at_ns = at.at_ns});  // another thread has begun a step
  return TPROF_OK;
}

int phase(const char* name) {
  std::string_view next;
  for (const std::string_view known : kPhases) {
    if (name != nullptr && known == name) next = known;
  }
  if (name != nullptr && next.empty()) return TPROF_BAD_ARGUMENT;
  if (!recording()) return TPROF_OK;
  if (!t_phase.empty()) marks::pop(domain(), {.name = t_phase});
  t_phase = next;
  if (next.empty()) return TPROF_OK;
  marks::Attributes a;
  a.counts = true;
  add_category(a, kScopePhase.data());
  marks::push(domain(), next, a);
  return TPROF_OK;
}

}  // namespace

void forget_step() {
  g_step.store(0, std::memory_order_relaxed);
}

}  // namespace tprof::user

// The library's only exported data.
extern "C" {
[[gnu::visibility("default")]] extern const tprof_functions tprof_functions_v1;
}

using namespace tprof::user;
const tprof_functions tprof_functions_v1 = {sizeof(tprof_functions),
                                            push,
                                            pop,
                                            start,
                                            end,
                                            instant,
                                            counter,
                                            step,
                                            phase,
                                            reset,
                                            flush,
                                            enabled,
                                            rank,
                                            totals,
                                            totals_and_reset,
                                            pop_timed,
                                            end_timed,
                                            pause,
                                            push_on,
                                            start_on,
                                            times_on_device,
                                            flush_device};
