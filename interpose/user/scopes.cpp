#include <atomic>
#include <cstdint>
#include <string_view>

#include "interpose/base/text.h"
#include "interpose/device/timing.h"
#include "interpose/format/ranges.h"
#include "interpose/marks/range_names.h"
#include "interpose/marks/ranges.h"
#include "interpose/record/thread.h"
#include "interpose/user/user.h"
#include "interpose/user/when.h"

namespace tprof::user {
namespace {

// The first of these calls begins the session, as a call that counts does.
bool recording() {
  return recording_thread() != nullptr;
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

// The range of the step that goes on (0: none), and the step's number.
constinit std::atomic<std::uint64_t> g_step{0};
constinit std::atomic<std::int64_t> g_step_number{0};

constexpr std::string_view kPhases[] = {"load", "forward", "backward", "optimizer"};
thread_local constinit std::string_view t_phase __attribute__((tls_model("initial-exec")));

}  // namespace

int push(const char* name, const tprof_with* with) {
  if (name == nullptr || *name == '\0') return TPROF_BAD_ARGUMENT;
  if (recording()) marks::push(domain(), range_names::cut(name), attributes_of(with));
  return TPROF_OK;
}

int push_on(const char* name, const tprof_with* with, void* stream) {
  if (name == nullptr || *name == '\0') return TPROF_BAD_ARGUMENT;
  if (!recording()) return TPROF_OK;
  marks::Attributes a = attributes_of(with);
  a.on_stream = true;
  a.stream = static_cast<CUstream>(stream);
  marks::push(domain(), range_names::cut(name), a);
  return TPROF_OK;
}

std::int64_t pop_timed(const char* name, const tprof_with* with) {
  if (!recording()) return 0;
  std::uint64_t took_ns = 0;
  marks::End end = end_of(name, with);
  end.took_ns = &took_ns;
  if (!marks::pop(domain(), end)) return TPROF_NOT_OPEN;
  return static_cast<std::int64_t>(took_ns);
}

int pop(const char* name, const tprof_with* with) {
  return pop_timed(name, with) < 0 ? TPROF_NOT_OPEN : TPROF_OK;
}

std::uint64_t start(const char* name, const tprof_with* with) {
  if (name == nullptr || *name == '\0' || !recording()) return 0;
  return marks::start(domain(), range_names::cut(name), attributes_of(with));
}

std::uint64_t start_on(const char* name, const tprof_with* with, void* stream) {
  if (name == nullptr || *name == '\0' || !recording()) return 0;
  marks::Attributes a = attributes_of(with);
  a.on_stream = true;
  a.stream = static_cast<CUstream>(stream);
  return marks::start(domain(), range_names::cut(name), a);
}

int times_on_device() {
  return device::on() && device::in_streams();
}

std::int64_t end_timed(std::uint64_t id, const tprof_with* with) {
  if (!recording()) return 0;
  std::uint64_t took_ns = 0;
  marks::End end = end_of(nullptr, with);
  end.took_ns = &took_ns;
  if (!marks::end(id, end)) return TPROF_NOT_OPEN;
  return static_cast<std::int64_t>(took_ns);
}

int end(std::uint64_t id, const tprof_with* with) {
  return end_timed(id, with) < 0 ? TPROF_NOT_OPEN : TPROF_OK;
}

int instant(const char* name, const tprof_with* with) {
  if (name == nullptr || *name == '\0') return TPROF_BAD_ARGUMENT;
  if (!recording()) return TPROF_OK;
  marks::Attributes a = attributes_of(with);
  a.counts = false;  // it takes no time
  marks::mark(domain(), range_names::cut(name), a);
  return TPROF_OK;
}

// A step is a range with a number, like the usual names of steps. So it is found live and by
// readers.
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
  marks::end(before, {.at_ns = at.at_ns});  // another thread began a step meanwhile
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

void forget_step() {
  g_step.store(0, std::memory_order_relaxed);
}

}  // namespace tprof::user
