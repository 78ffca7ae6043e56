#include "interpose/write/writer.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <new>

#include "interpose/base/background_thread.h"
#include "interpose/base/clock.h"
#include "interpose/session/coverage.h"
#include "interpose/session/left_rings.h"
#include "interpose/session/session.h"
#include "interpose/write/output.h"
#include "interpose/write/windows.h"

namespace tprof::writer {
namespace {

// A half-full ring wakes us earlier. Requests (format/control.h) are served within 200 ms, which
// includes waiting for a core.
constexpr std::uint32_t kSleepMs = 150;
// Used when windows depend on steps: so much of a step may pass before calls are timed. A warm-up
// step hides it.
constexpr std::uint32_t kSleepBetweenStepsMs = 20;
constexpr std::uint64_t kLinesAtExitNs = 3'000'000'000;  // a working disk takes 64 MiB in this time

std::atomic<std::uint32_t> g_wake{0};  // futex: counts calls of wake()

std::atomic<std::uint32_t> g_asked{0};       // requests to close the file, since the process ends
std::atomic<std::uint32_t> g_answered{0};    // futex: requests done
std::atomic<std::uint32_t> g_files_made{0};  // futex
std::atomic<std::uint32_t> g_flushes_asked{0};
std::atomic<std::uint32_t> g_flushes_done{0};  // futex: flushes done

// The value of a counter above when no thread is left to serve requests.
constexpr std::uint32_t kNobodyLeft = 1U << 30;

alignas(Output) unsigned char g_storage[sizeof(Output)];  // never destroyed: threads outlive exit()
Output* g_output = nullptr;  // only for this thread, except in end_epoch()

// The cores that the launcher gave the process (as Slurm does), before the program pinned its
// threads.
constinit cpu_set_t g_cores{};
constinit bool g_cores_known = false;  // not on machines with more than 1,024 cores

[[gnu::constructor]] void note_cores() {
  g_cores_known = g_cores_known || sched_getaffinity(0, sizeof g_cores, &g_cores) == 0;
}

// The thread that starts us may be pinned to one core, which we should leave to it.
void step_back() {
  if (g_cores_known) sched_setaffinity(0, sizeof g_cores, &g_cores);
  become_background("tprof");
}

Duties g_duties{};
MetricsWanted g_wanted{};
std::uint32_t g_delay_ms = 0;

void answer(std::atomic<std::uint32_t>& done, std::uint32_t asked) {
  if (done.exchange(asked, std::memory_order_release) != asked) futex_wake(done);
}

void close_as_asked() {
  const std::uint32_t asked = g_asked.load(std::memory_order_acquire);
  if (asked == g_answered.load(std::memory_order_relaxed)) return;
  coverage::note_mapped();
  g_output->cost(clock_ns(CLOCK_THREAD_CPUTIME_ID));
  g_output->drain_rest(now_ns() + kLinesAtExitNs);
  if (g_output->end()) g_duties.when_it_has_closed();
  answer(g_answered, asked);
}

// Writes everything recorded before. Returns the time until more is due.
std::uint32_t write() {
  // exit() can stop us anywhere, so a closed file stays closed.
  do {
    if (g_asked.load(std::memory_order_acquire) != 0) return UINT32_MAX;
  } while (g_output->drain_batch());
  g_output->tick();
  g_duties.when_all_is_written(*g_output);
  return g_output->sleep_ms();
}

void* run(void*) {
  const std::uint64_t until = now_ns() + std::uint64_t{g_delay_ms} * 1'000'000;
  while (g_wake.load(std::memory_order_acquire) == 0 && now_ns() < until) {
    futex_wait(g_wake, 0, static_cast<std::uint32_t>((until - now_ns()) / 1'000'000));
  }
  Files files{};
  if (!g_duties.makes_files(files)) {
    answer(g_answered, kNobodyLeft);
    answer(g_flushes_done, kNobodyLeft);
    return nullptr;
  }
  answer(g_files_made, 1);
  step_back();
  g_output->begin(files.lines, files.snapshot, g_wanted);
  for (;;) {
    const std::uint32_t seen = g_wake.load(std::memory_order_acquire);
    close_as_asked();
    left_rings::look();
    const std::uint32_t flushes = g_flushes_asked.load(std::memory_order_acquire);
    const std::uint32_t due_ms = write();
    answer(g_flushes_done, flushes);
    windows::follow();
    g_output->cost(clock_ns(CLOCK_THREAD_CPUTIME_ID));
    const std::uint32_t sleep_ms = windows::watch_steps() ? kSleepBetweenStepsMs : kSleepMs;
    futex_wait(g_wake, seen, std::min(sleep_ms, due_ms));
  }
}

}  // namespace

bool start(const View& view, const Duties& duties, const MetricsWanted& wanted,
           std::uint32_t delay_ms) {
  note_cores();  // calls may come before constructors
  g_duties = duties;
  g_wanted = wanted;
  g_delay_ms = delay_ms;
  g_output = new (g_storage) Output(view);
  return start_background_thread(run);
}

void wait_for_files() {
  constexpr std::uint32_t kPatienceMs = 1;
  futex_wait(g_files_made, 0, kPatienceMs);
}

void wake() {
  g_wake.fetch_add(1, std::memory_order_release);
  futex_wake(g_wake);
}

void close(std::uint64_t until_ns) {
  const std::uint32_t mine = g_asked.fetch_add(1, std::memory_order_release) + 1;
  wake();
  const std::uint64_t now = now_ns();
  if (now < until_ns) {
    wait_until(g_answered, mine, static_cast<std::uint32_t>((until_ns - now) / 1'000'000));
  }
}

bool flush(std::uint32_t timeout_ms) {
  const std::uint32_t mine = g_flushes_asked.fetch_add(1, std::memory_order_release) + 1;
  wake();
  return wait_until(g_flushes_done, mine, timeout_ms);
}

void end_epoch(std::string_view ledger) {
  if (g_output != nullptr) g_output->end_epoch(ledger);
}

void after_fork() {
  if (g_output != nullptr) g_output->leave();
  g_output = nullptr;
  for (auto* word :
       {&g_wake, &g_files_made, &g_asked, &g_answered, &g_flushes_asked, &g_flushes_done}) {
    word->store(0, std::memory_order_relaxed);
  }
}

}  // namespace tprof::writer
