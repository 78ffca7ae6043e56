#include "interpose/base/in_time.h"

#include <cstring>

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

void give_place_back() {
  g_state.store(free_place, std::memory_order_release);
  futex_wake(g_state);
}

void* work_late_or_not(void*) {
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

bool take_place() {
  const std::uint64_t until = now_ns() + kPatienceNs;
  std::uint32_t seen = free_place;
  while (!g_state.compare_exchange_strong(seen, taken)) {
    if (seen == given_up || !futex_sleep(g_state, seen, until)) return false;
    seen = free_place;
  }
  return true;
}

// Returns false if the caller has given up.
bool wait_until_done() {
  const std::uint64_t until = now_ns() + kPatienceNs;
  for (;;) {
    std::uint32_t seen = g_state.load(std::memory_order_acquire);
    if (seen == done) return true;
    if (!futex_sleep(g_state, seen, until) && g_state.compare_exchange_strong(seen, given_up))
      return false;
  }
}

}  // namespace

bool run(void* work, std::size_t size, bool (*f)(void*), void (*undo)(void*)) {
  if (!take_place()) return false;
  std::memcpy(g_place, work, size);
  g_run = f;
  g_undo = undo;
  if (!start_background_thread(work_late_or_not)) {
    g_succeeded = f(g_place);  // without another thread the process must still not lose counts
  } else if (!wait_until_done()) {
    return false;
  }
  const bool succeeded = g_succeeded;
  if (succeeded) std::memcpy(work, g_place, size);
  give_place_back();
  return succeeded;
}

void after_fork() {
  g_state.store(free_place, std::memory_order_relaxed);
}

}  // namespace tprof::in_time
