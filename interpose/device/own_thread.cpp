#include "interpose/device/own_thread.h"

#include "interpose/base/background_thread.h"

namespace tprof::device::own_thread {
namespace {

std::atomic<std::uint32_t> g_wake{0};      // futex: counts calls of wake()
std::atomic<std::uint32_t> g_asked{0};     // how often a look was asked for
std::atomic<std::uint32_t> g_answered{0};  // futex: how many of them were taken
std::atomic<bool> g_ending{false};         // it is the last
std::uint32_t (*g_read)(bool ending);

void* run(void*) {
  become_background("tprof-timing");
  for (;;) {
    const std::uint32_t seen = g_wake.load(std::memory_order_acquire);
    const std::uint32_t asked = g_asked.load(std::memory_order_acquire);
    const bool wanted = asked != g_answered.load(std::memory_order_relaxed);
    const std::uint32_t pause_ms = g_read(wanted && g_ending.load());
    if (wanted) {
      g_answered.store(asked, std::memory_order_release);
      futex_wake(g_answered);
    }
    futex_wait(g_wake, seen, pause_ms);
  }
}

}  // namespace

bool begin(std::uint32_t (*read)(bool ending)) {
  g_read = read;
  return start_background_thread(run);
}

void wake() {
  g_wake.fetch_add(1, std::memory_order_release);
  futex_wake(g_wake);
}

void read_now(std::uint32_t timeout_ms) {
  const std::uint32_t mine = g_asked.fetch_add(1, std::memory_order_release) + 1;
  wake();
  wait_until(g_answered, mine, timeout_ms);
}

void last_read(std::uint32_t timeout_ms) {
  g_ending.store(true);
  read_now(timeout_ms);
  g_ending.store(false);
}

}  // namespace tprof::device::own_thread
