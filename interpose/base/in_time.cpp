#include "interpose/base/in_time.h"

#include "interpose/base/background_thread.h"

namespace tprof::in_time {
namespace {

// A disk may need some milliseconds to allocate, and our thread some to get a core.
constexpr std::uint64_t kPatienceNs = 50'000'000;

enum : std::uint32_t {
  free_place,
  taken,
  done,
  given_up
};                                               // given_up: the caller has stopped waiting
std::atomic<std::uint32_t> g_state{free_place};  // futex
alignas(std::max_align_t) unsigned char g_place[kRoom];
bool (*g_run)(void*);
void (*g_undo)(void*);
bool g_succeeded;

// Waits as background_thread.h does, for callers that may hold the mapping's lock, since the thread
// takes no lock. Returns false on a timeout.
bool sleep_until(std::uint32_t seen, std::uint64_t until_ns) {
  const std::uint64_t now = now_ns();
  if (now >= until_ns) return false;
  const timespec timeout{0, static_cast<long>(until_ns - now)};
  syscall(SYS_futex, &g_state, FUTEX_WAIT_PRIVATE, seen, &timeout, nullptr, 0);
  return true;
}

void* work(void*) {
  prctl(PR_SET_NAME, "tprof-ring");
  g_succeeded = g_run(g_place);
  std::uint32_t waits = taken;
  if (g_state.compare_exchange_strong(waits, done)) {
    futex_wake(g_state);
  } else {
    if (g_succeeded) g_undo(g_place);
    give_place_back();
  }
  return nullptr;
}

}  // namespace

void* take_place() {
  const std::uint64_t until = now_ns() + kPatienceNs;
  std::uint32_t seen = free_place;
  while (!g_state.compare_exchange_strong(seen, taken)) {
    if (seen == given_up || (seen != free_place && !sleep_until(seen, until))) return nullptr;
    seen = free_place;
  }
  return g_place;
}

void give_place_back() {
  g_state.store(free_place, std::memory_order_release);
  futex_wake(g_state);
}

bool run(bool (*f)(void*), void (*undo)(void*)) {
  g_run = f;
  g_undo = undo;
  if (!start_background_thread(work)) {
    // Without another thread the process must still not lose counts.
    const bool succeeded = f(g_place);
    if (!succeeded) give_place_back();
    return succeeded;
  }
  const std::uint64_t until = now_ns() + kPatienceNs;
  for (;;) {
    std::uint32_t seen = g_state.load(std::memory_order_acquire);
    if (seen == done) break;
    if (!sleep_until(seen, until) && g_state.compare_exchange_strong(seen, given_up)) return false;
  }
  if (!g_succeeded) give_place_back();
  return g_succeeded;
}

void after_fork() {
  g_state.store(free_place, std::memory_order_relaxed);
}

}  // namespace tprof::in_time
