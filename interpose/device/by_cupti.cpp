// TPROF_TIMING=cupti: CUPTI records what each call has the device do. device/cupti_reader.cpp reads
// it.
#include <cstdlib>

#include "interpose/base/background_thread.h"
#include "interpose/base/complain.h"
#include "interpose/device/cupti_calls.h"
#include "interpose/device/cupti_client.h"
#include "interpose/device/cupti_reader.h"
#include "interpose/device/mode.h"
#include "interpose/device/timing.h"

namespace tprof::device {
namespace by_cupti {
namespace {

std::atomic<std::uint32_t> g_tried{0};  // futex; 1: we are CUPTI's client, or never will be

// Runs after the program's own handlers of exit(), and before libcupti shuts down.
void at_exit() {
  constexpr std::uint32_t kPatienceMs = 1000;
  own_thread::last_read(kPatienceMs);
  cupti::close();
}

void enter() {
  if (const char* why = cupti_reader::enter(window_open())) {
    g_on.store(false, std::memory_order_relaxed);
    complain(Trouble::timing, "TPROF_TIMING=cupti is not in force: ", why,
             ". Calls have the host's times only");
  } else {
    std::atexit(at_exit);
  }
  g_tried.store(1, std::memory_order_release);
  futex_wake(g_tried);
}

// The first look makes us CUPTI's client.
std::uint32_t read(bool ending) {
  constexpr std::uint32_t kFlushMs = 200;
  constexpr std::uint32_t kNeverMs = 1U << 30;
  if (g_tried.load(std::memory_order_relaxed) == 0) enter();
  const bool looks =
      cupti_reader::read(ending, window_open()) && cupti::state() == cupti::State::in;
  return looks ? kFlushMs : kNeverMs;
}

void settle_in() {
  constexpr std::uint32_t kPatienceMs = 1000;
  if (g_tried.load(std::memory_order_acquire) == 0) futex_wait(g_tried, 0, kPatienceMs);
}

void stop(const TimedCall& timed, const Calls& of, bool in_progress) {
  TimingLost why{};
  if (!cupti_calls::stop(timed, of, in_progress, why)) lose(why, of);
}

void after_fork() {
  cupti::after_fork();
  g_tried.store(0, std::memory_order_relaxed);
  cupti_reader::after_fork();
}

}  // namespace
}  // namespace by_cupti

extern const Mode cupti_mode;
constinit const Mode cupti_mode{
    .read = by_cupti::read,
    .set_window = [](bool) { own_thread::wake(); },
    .settle_in = by_cupti::settle_in,
    .start = cupti_calls::start,
    .stop = by_cupti::stop,
    .drop = cupti_calls::drop,
    .wanted = cupti_calls::wanted,
    .after_fork = by_cupti::after_fork,
};

void make_way() {
  constexpr std::uint32_t kPatienceMs = 200;
  if (!cupti::leave([] { own_thread::last_read(kPatienceMs); })) return;
  complain(Trouble::timing, "calls are not timed any more: the program uses CUPTI itself");
}

}  // namespace tprof::device
