#include "interpose/device/timing.h"

#include <bit>
#include <iterator>
#include <utility>

#include "interpose/base/background_thread.h"
#include "interpose/base/clock.h"
#include "interpose/base/complain.h"
#include "interpose/base/hash.h"
#include "interpose/device/mode.h"
#include "interpose/device/results.h"
#include "interpose/device/streams.h"
#include "interpose/session/session.h"

namespace tprof::device {
namespace own_thread {
namespace {

std::atomic<std::uint32_t> g_wake{0};      // futex: counts calls of wake()
std::atomic<std::uint32_t> g_asked{0};     // readings requested
std::atomic<std::uint32_t> g_answered{0};  // futex: readings done
std::atomic<bool> g_ending{false};         // the next reading is the last
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

}  // namespace own_thread

#define X(name, ...) extern const Mode name##_mode;
TPROF_TIMERS(X)
#undef X
constinit const Mode host_mode{.switches = true};

namespace {

// The table of modes, in the order of Timer.
constexpr const Mode* kModes[] = {
#define X(name, ...) &name##_mode,
    TPROF_TIMERS(X)
#undef X
};

constinit std::atomic<const Mode*> g_mode{&host_mode};
std::atomic<std::uint32_t> g_every{1};
std::atomic<std::uint64_t> g_number{0};
std::atomic<bool> g_window{true};
// Streams are followed from here on, until g_until_ns.
std::atomic<std::uint64_t> g_since_ns{0};
std::atomic<std::uint64_t> g_until_ns{0};  // UINT64_MAX: they still are
std::atomic<bool> g_switched_off{false};   // by `tprof ctl`; begun calls are still read

// Call this after a change of g_on or g_window, with a time before it.
void note_followed(std::uint64_t before_ns) {
  const bool follows = g_on.load() && g_window.load();
  if (follows == (g_until_ns.load() == UINT64_MAX)) return;
  if (follows) g_since_ns.store(before_ns);
  g_until_ns.store(follows ? UINT64_MAX : before_ns);
}

void start_mode(const Mode& wanted, std::uint32_t every) {
  const std::uint64_t before_ns = now_ns();
  if (wanted.read == nullptr || !results::begin() || !own_thread::begin(wanted.read)) return;
  g_every.store(every, std::memory_order_relaxed);
  g_mode.store(&wanted, std::memory_order_relaxed);
  g_on.store(true, std::memory_order_relaxed);
  note_followed(before_ns);
}

}  // namespace

const Mode& mode() {
  return *g_mode.load(std::memory_order_relaxed);
}

bool window_open() {
  return g_window.load(std::memory_order_relaxed);
}

Followed when_followed() {
  const std::uint64_t until_ns = g_until_ns.load();
  return {g_since_ns.load(), until_ns};
}

bool in_streams() {
  return mode().in_streams;
}

void lose(TimingLost why, const Calls& of) {
  if (std::bit_cast<LedgerKey>(of.key).function == kMetaLaunch) return;
  session::mapping().head().timing_lost[static_cast<std::size_t>(why)].fetch_add(
      of.calls, std::memory_order_relaxed);
}

void give_up(const char* why) {
  const std::uint64_t before_ns = now_ns();
  if (!g_on.exchange(false)) return;
  note_followed(before_ns);
  complain(Trouble::timing, "calls are not timed any more: ", why);
}

std::uint64_t next_number() {
  return g_number.fetch_add(1, std::memory_order_relaxed) + 1;
}

TimedCall start(CUstream stream, std::uint64_t number) {
  if (!window_open()) return {};
  const std::uint32_t every = g_every.load(std::memory_order_relaxed);
  if (every > 1 && mix64(number == kNoNumber ? next_number() : number) % every != 0) return {};
  return mode().start(stream);
}

void stop(const TimedCall& timed, CUstream stream, const Calls& of, bool in_progress) {
  const Mode& m = mode();
  if (timed.held != nullptr) {
    Calls calls = of;
    calls.waited_ns = take_waits();
    return m.stop(timed, calls, in_progress);
  }
  m.pass_by(stream, of);
  if (timed.lost && window_open() && m.wanted()) lose(timed.why, of);
}

void drop(const TimedCall& timed) {
  if (timed.held != nullptr) mode().drop(timed);
}

void set_window(bool open) {
  const std::uint64_t before_ns = now_ns();
  if (g_window.exchange(open) == open) return;
  for (const Mode* m : kModes) m->set_window(open);
  note_followed(before_ns);
}

void begin(const Timing& timing) {
  const auto by = static_cast<std::size_t>(timing.by);
  if (const char* why = kModes[by]->disturbs()) {
    char words[64];
    const std::string_view name =
        (FixedText(words) << "TPROF_TIMING=" << kTimers[by].name << " has no effect: ").view();
    return say(name, why);
  }
  start_mode(*kModes[by], timing.every);
}

Obeyed change(const Timing& timing) {
  const std::uint64_t before_ns = now_ns();
  const Mode& now = mode();
  const Mode& wanted = *kModes[static_cast<std::size_t>(timing.by)];
  if (!wanted.switches || !now.switches) {
    return &wanted == &now ? Obeyed::already : Obeyed::no_timer;
  }
  if (&wanted == &host_mode) {
    if (!g_on.exchange(false)) return Obeyed::already;
    note_followed(before_ns);
    g_switched_off.store(true, std::memory_order_relaxed);
    return Obeyed::done;
  }
  if (&now != &host_mode && &now != &wanted) return Obeyed::no_timer;
  if (wanted.disturbs() != nullptr) return Obeyed::ordered;
  const bool new_share = g_every.exchange(timing.every) != timing.every;
  wanted.set_window(true);
  if (&now == &host_mode) {
    start_mode(wanted, timing.every);
    return on() ? Obeyed::done : Obeyed::failed;
  }
  const bool was_on = g_on.exchange(true);
  note_followed(before_ns);
  g_switched_off.store(false, std::memory_order_relaxed);
  return was_on && !new_share ? Obeyed::already : Obeyed::done;
}

void settle_in() {
  mode().settle_in();
}

void end(std::uint32_t timeout_ms) {
  const std::uint64_t before_ns = now_ns();
  const bool was_on = g_on.exchange(false);
  note_followed(before_ns);
  if (was_on || g_switched_off.load(std::memory_order_relaxed)) {
    own_thread::last_read(timeout_ms);
  }
}

void after_fork() {
  g_on.store(false, std::memory_order_relaxed);
  g_since_ns.store(0, std::memory_order_relaxed);
  g_until_ns.store(0, std::memory_order_relaxed);
  g_mode.store(&host_mode, std::memory_order_relaxed);
  g_window.store(true, std::memory_order_relaxed);
  g_switched_off.store(false, std::memory_order_relaxed);
  for (const Mode* m : kModes) m->after_fork();
}

}  // namespace tprof::device

namespace tprof {
namespace {

// Calls of a group are issued by its End, and timed there. Copies are executed at once, even within
// a group.
bool waits_for_group(const Thread& t, const Record& r, std::uint8_t function) {
  return t.group_depth != 0 && function != kMetaLaunch && !is_copy(r.bucket);
}

// Reports the call's effect on its stream to device/streams.h. True: it is work of a computing
// stream.
bool follow(const Record& r, std::uint8_t function) {
  namespace streams = device::streams;
  cudaStream_t stream = stream_of(r);
  if (r.sync) {
    streams::host_waits();
  } else if (function == kMetaLaunch) {
    streams::launches(stream);
    return true;
  } else if (is_copy(r.bucket) && streams::computes(stream)) {
    streams::launches(stream, streams::Work::copy);
    return true;
  } else {
    if (!is_copy(r.bucket) || streams::is_legacy(stream)) streams::waits(stream);
    streams::turns_away();
  }
  return false;
}

}  // namespace

void start_timing(Thread& t, const Record& r, std::uint8_t function) {
  t.timed = {};
  if (r.captured || waits_for_group(t, r, function)) return;  // not executed now
  const bool computes = device::streams::on() && follow(r, function);
  if (r.sync && device::in_streams()) {
    t.timed = {nullptr, true,
               TimingLost::sync};  // the host waits, so the host's time is the call's time
    return;
  }
  const bool numbered = function != kMetaLaunch && !is_copy(r.bucket);
  t.timed = device::start(stream_of(r), numbered ? r.seq : device::kNoNumber);
  t.timed.computes = computes;
}

void stop_timing(Thread& t, const Record& r, LedgerKey::Words key, bool ok) {
  const TimedCall timed = std::exchange(t.timed, {});
  if (timed.computes) device::streams::launched(stream_of(r));
  // A copy from or to pageable memory returns when it has finished; the stream is then empty.
  if (timed.computes && r.host_memory == static_cast<std::uint8_t>(HostMemory::pageable)) {
    device::streams::recorded(stream_of(r));
  }
  if (r.captured) return;
  if (!ok) return device::drop(timed);
  const std::uint32_t tid = t.area->tid.load(std::memory_order_relaxed);
  const device::Calls of{key, 1, r.count, r.seq, r.start_ns, tid, timed.computes};
  device::stop(timed, stream_of(r), of, r.result != 0);
}

}  // namespace tprof
