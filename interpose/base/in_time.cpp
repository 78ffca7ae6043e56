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
};  // given_up: the caller has stopped waiting
// Its futex is waited for also under the mapping's lock, since the thread takes no lock.
std::atomic<std::uint32_t> g_state{free_place};
alignas(std::max_align_t) unsigned char g_place[kRoom];
bool (*g_run)(void*);
void (*g_undo)(void*);
bool g_succeeded;

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
    if (seen == given_up || (seen != free_place && !futex_sleep(g_state, seen, until)))
      return nullptr;
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
    if (!futex_sleep(g_state, seen, until) && g_state.compare_exchange_strong(seen, given_up))
      return false;
  }
  if (!g_succeeded) give_place_back();
  return g_succeeded;
}

void after_fork() {
  g_state.store(free_place, std::memory_order_relaxed);
}

}  // namespace tprof::in_time
