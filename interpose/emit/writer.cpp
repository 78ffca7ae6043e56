#include "interpose/emit/writer.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>

#include "interpose/base/background_thread.h"
#include "interpose/base/clock.h"
#include "interpose/base/held_signals.h"
#include "interpose/base/lock.h"
#include "interpose/emit/output.h"
#include "interpose/windows/windows.h"

namespace tprof::writer {
namespace {

// A half-full ring wakes us earlier. Requests (format/control.h) are done within 200 ms, and need a
// core, which may be busy.
constexpr std::uint32_t kSleepMs = 150;
// Used when windows depend on the step: this much of a step may pass before calls are timed. A
// warm-up step hides it.
constexpr std::uint32_t kSleepBetweenStepsMs = 20;
constexpr std::uint64_t kLinesAtExitNs = 5'000'000'000;  // a working disk takes a GiB in this time

std::atomic<std::uint32_t> g_wake{0};  // futex: counts calls of wake()
Lock g_lock{LockOrder::output};        // for the output

// The number of leaving threads that want the file to stay closed. One that goes on after all no
// longer counts.
std::atomic<std::uint32_t> g_leaving{0};
std::atomic<std::uint32_t> g_asked{0};     // how often somebody asked us to close it
std::atomic<std::uint32_t> g_answered{0};  // futex: how many of those are done
std::atomic<bool> g_closed{false};         // the last of them succeeded
std::atomic<std::uint32_t> g_flushes_asked{0};
std::atomic<std::uint32_t> g_flushes_done{0};  // futex: how many of those

alignas(Output) unsigned char g_storage[sizeof(Output)];  // never destroyed: threads outlive exit()
Output* g_output = nullptr;

// Holds the output, for one thread at a time. output() is null if it was not to be had in time.
class [[nodiscard]] Hold {
 public:
  explicit Hold(std::uint32_t timeout_ms) : start_cpu_ns_(clock_ns(CLOCK_THREAD_CPUTIME_ID)) {
    if (!g_lock.lock_until(now_ns() + std::uint64_t{timeout_ms} * 1'000'000)) return;
    output_ = g_output;
    if (output_ == nullptr) g_lock.unlock();
  }
  ~Hold() {
    if (output_ == nullptr) return;
    output_->add_cost(clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_cpu_ns_);
    g_lock.unlock();
  }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  Output* output() const { return output_; }

 private:
  Output* output_ = nullptr;
  std::uint64_t start_cpu_ns_;
};

// sched_setattr(2). glibc lacked this struct for a long time.
struct SchedulingAttributes {
  std::uint32_t size = sizeof(SchedulingAttributes);
  std::uint32_t policy = SCHED_OTHER;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime = 0;  // ns; since Linux 6.12: how soon it runs, and for how short a time
  std::uint64_t deadline = 0;
  std::uint64_t period = 0;
};

// The cores that the launcher gave the process (Slurm binds tasks so), as they were before the
// program pinned threads of its own.
constinit cpu_set_t g_cores{};
constinit bool g_cores_known = false;  // not on machines of more than 1,024 cores

[[gnu::constructor]] void note_cores() {
  g_cores_known = g_cores_known || sched_getaffinity(0, sizeof g_cores, &g_cores) == 0;
}

void step_back() {
  // Get out of the way of the program's threads, but not so far that its exit waits for us. To end,
  // a process needs each of its threads to run once more. On busy cores that takes half a second at
  // nice 19 (30 ms like this).
  SchedulingAttributes attributes;
  attributes.nice = kBackgroundNice;
  attributes.runtime = 100'000;
  if (syscall(SYS_sched_setattr, 0, &attributes, 0) != 0) {
    setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kBackgroundNice);
  }
  // The thread that starts us may be pinned to one core, where we would be in its way.
  if (g_cores_known) sched_setaffinity(0, sizeof g_cores, &g_cores);
  prctl(PR_SET_NAME, "tprof");  // last: whoever sees the name finds the rest done
}

bool close_held(Output& output) {
  output.drain_rest(now_ns() + kLinesAtExitNs);
  return output.end();
}

Duties g_duties{};

void close_as_asked() {
  const std::uint32_t asked = g_asked.load(std::memory_order_acquire);
  if (asked == g_answered.load(std::memory_order_relaxed)) return;
  g_duties.before_it_closes();
  const Hold hold(UINT32_MAX);
  if (hold.output() == nullptr) return;
  g_closed.store(close_held(*hold.output()), std::memory_order_relaxed);
  g_answered.store(asked, std::memory_order_release);
  futex_wake(g_answered);
}

void* run(void*) {
  step_back();
  for (;;) {
    const std::uint32_t seen = g_wake.load(std::memory_order_acquire);
    close_as_asked();
    g_duties.whenever_it_wakes();
    const std::uint32_t flushes = g_flushes_asked.load(std::memory_order_acquire);
    std::uint32_t due_ms = UINT32_MAX;
    for (bool more = true; more;) {
      const Hold hold(UINT32_MAX);
      // exit() can stop us anywhere: only the exiting thread may write over what it has closed.
      if (hold.output() == nullptr || g_leaving.load(std::memory_order_acquire) != 0) break;
      if (hold.output()->ended()) hold.output()->reopen();
      more = hold.output()->drain_batch();
      if (more) continue;
      hold.output()->tick();
      due_ms = hold.output()->sleep_ms();
      g_duties.when_all_is_written(*hold.output());
    }
    if (g_flushes_done.exchange(flushes, std::memory_order_release) != flushes) {
      futex_wake(g_flushes_done);
    }
    g_duties.before_it_sleeps();
    const std::uint32_t sleep_ms = windows::watch_steps() ? kSleepBetweenStepsMs : kSleepMs;
    futex_wait(g_wake, seen, std::min(sleep_ms, due_ms));
  }
}

}  // namespace

bool start(const View& view, int fd, std::uint64_t offset, int snapshot, const Duties& duties,
           const MetricsWanted& wanted) {
  note_cores();  // calls may come before constructors
  g_duties = duties;
  g_output = new (g_storage) Output(view, fd, offset, snapshot, wanted);
  return start_background_thread(run);
}

void wake() {
  g_wake.fetch_add(1, std::memory_order_release);
  futex_wake(g_wake);
}

bool close_file(std::uint32_t timeout_ms) {
  const NoSignals no_signals;
  const Hold hold(timeout_ms);
  if (hold.output() == nullptr) return false;
  g_leaving.fetch_add(1, std::memory_order_release);  // for good
  return close_held(*hold.output());
}

bool close_on_its_thread(std::uint32_t timeout_ms) {
  g_leaving.fetch_add(1, std::memory_order_release);
  const std::uint32_t mine = g_asked.fetch_add(1, std::memory_order_release) + 1;
  wake();
  return wait_until(g_answered, mine, timeout_ms) && g_closed.load(std::memory_order_relaxed);
}

bool flush(std::uint32_t timeout_ms) {
  const std::uint32_t mine = g_flushes_asked.fetch_add(1, std::memory_order_release) + 1;
  wake();
  return wait_until(g_flushes_done, mine, timeout_ms);
}

void end_epoch(std::string_view ledger) {
  if (g_output != nullptr) g_output->end_epoch(ledger);
}

void go_on() {
  g_leaving.fetch_sub(1, std::memory_order_release);
  wake();
}

void after_fork() {
  if (g_output != nullptr) g_output->leave();
  g_output = nullptr;
  for (auto* word : {&g_leaving, &g_asked, &g_answered, &g_flushes_asked, &g_flushes_done}) {
    word->store(0, std::memory_order_relaxed);
  }
}

}  // namespace tprof::writer
