#include "interpose/base/in_time.h"

#include <fcntl.h>

#include <string_view>

#include "interpose/base/background_thread.h"
#include "interpose/base/text.h"

namespace tprof::in_time {
namespace {

constexpr std::uint64_t kPatienceNs = 10'000'000;    // a disk may take some ms to give room
constexpr std::uint64_t kSchedulersNs = 50'000'000;  // for a thread that waits for a core only

// given_up: nobody waits any more.
enum : std::uint32_t { free_place, taken, begun, done, given_up };
std::atomic<std::uint32_t> g_state{free_place};  // futex
std::atomic<std::uint64_t> g_began_ns{0};
std::atomic<std::int64_t> g_thread{0};
alignas(std::max_align_t) unsigned char g_place[kRoom];
bool (*g_run)(void*);
void (*g_undo)(void*);
bool g_succeeded;

// Waits as background_thread.h does, for callers that may hold the lock of the mapping: the thread
// takes none.
void sleep(std::uint32_t seen, std::uint64_t ns) {
  const timespec timeout{0, static_cast<long>(ns)};
  syscall(SYS_futex, &g_state, FUTEX_WAIT_PRIVATE, seen, &timeout, nullptr, 0);
}

// True if the thread waits for nothing but a core.
bool wants_a_core() {
  char text[128];
  (FixedText(text) << "/proc/self/task/").number(g_thread.load(std::memory_order_relaxed))
      << "/stat";
  const int fd = open(text, O_RDONLY | O_CLOEXEC);
  const ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text);
  if (fd >= 0) ::close(fd);
  const std::string_view stat(text, n > 0 ? static_cast<std::size_t>(n) : 0);
  return stat.find(") R ") != std::string_view::npos;
}

void* work(void*) {
  prctl(PR_SET_NAME, "tprof-ring");
  g_thread.store(syscall(SYS_gettid), std::memory_order_relaxed);
  g_began_ns.store(now_ns(), std::memory_order_relaxed);
  std::uint32_t expected = taken;
  bool wanted = g_state.compare_exchange_strong(expected, begun);
  if (wanted) {
    g_succeeded = g_run(g_place);
    expected = begun;
    wanted = g_state.compare_exchange_strong(expected, done);
    if (!wanted && g_succeeded) g_undo(g_place);
  }
  if (!wanted) give_place_back();
  futex_wake(g_state);
  return nullptr;
}

}  // namespace

void* take_place() {
  const std::uint64_t until = now_ns() + kPatienceNs;
  std::uint32_t seen = free_place;
  while (!g_state.compare_exchange_strong(seen, taken)) {
    const std::uint64_t now = now_ns();
    if (seen == given_up || now >= until) return nullptr;
    if (seen != free_place) sleep(seen, until - now);
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
    // A process that can have no thread any more shall lose no count by it.
    const bool succeeded = f(g_place);
    if (!succeeded) give_place_back();
    return succeeded;
  }
  const std::uint64_t last_ns = now_ns() + kSchedulersNs;
  std::uint32_t seen = taken;
  while ((seen = g_state.load(std::memory_order_acquire)) != done) {
    const std::uint64_t began_ns = g_began_ns.load(std::memory_order_relaxed);
    const std::uint64_t now = now_ns();
    const std::uint64_t until = seen == begun ? began_ns + kPatienceNs : last_ns;
    if (now < until) {
      sleep(seen, until - now);
    } else if (seen == begun && now < last_ns && wants_a_core()) {
      sleep(seen, kPatienceNs);
    } else if (g_state.compare_exchange_strong(seen, given_up)) {
      return false;
    }
  }
  if (!g_succeeded) give_place_back();
  return g_succeeded;
}

void after_fork() {
  g_state.store(free_place, std::memory_order_relaxed);
}

}  // namespace tprof::in_time
