#include "interpose/device/streams.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <iterator>
#include <new>
#include <utility>

#include "interpose/base/clock.h"
#include "interpose/base/hash.h"
#include "interpose/device/exposure.h"
#include "interpose/device/mode.h"
#include "interpose/device/pace.h"
#include "interpose/device/timing.h"
#include "interpose/real/driver.h"
#include "interpose/real/stream_gates.h"
#include "interpose/record/switches.h"
#include "interpose/record/thread.h"

namespace tprof::device::streams {
namespace {

// follow() marks the end of what was launched so far, at most every kFollowNs.
constexpr std::uint64_t kFollowNs = 20'000;
constexpr std::uint64_t kComputesNs = 10'000'000'000;

struct Stream {
  std::atomic<std::uint64_t> id;         // 0: the entry is free
  std::atomic<bool> taken;               // a thread uses the fields below
  std::atomic<bool> missed;              // a thread gave up waiting for `taken`
  std::atomic<bool> gone;                // destroyed by the program, until the next launch on it
  std::atomic<std::uint32_t> launching;  // threads in a launch
  std::uint32_t epoch;
  CUstream handle;
  bool open;         // it got work since the last wait
  bool unseen;       // it may have got work outside marks
  ExposureLost why;  // the reason for `unseen`
  Pace pace;
  std::uint64_t kernel_ns;  // when the last launch of a kernel or graph began
  std::uint64_t passed_ns;  // when follow() last marked it
  std::uint32_t waits;      // g_waits at the last launch
};

// Not a SharedMap: entries are made during launches, which take no lock and no memory.
constexpr std::uint32_t kStreams = 256;
constinit Stream g_stream[kStreams]{};
constinit std::atomic<std::uint64_t> g_open[kStreams / 64]{};
constinit std::atomic<bool> g_no_room{false};
constinit std::atomic<std::uint32_t> g_epoch{1};
constinit std::atomic<std::uint32_t> g_waits{0};
// The stream that the thread launched on last.
thread_local constinit Stream* t_last __attribute__((tls_model("initial-exec"))) = nullptr;

// Handles stay in the table: programs have few streams, and a reused handle counts as the same
// stream.
Stream* find(std::uint64_t id, bool make = false) {
  const std::uint64_t first = mix64(id);
  for (std::uint32_t n = 0; n < kStreams; ++n) {
    Stream& s = g_stream[(first + n) % kStreams];
    std::uint64_t there = s.id.load(std::memory_order_acquire);
    if (there == 0 && (!make || s.id.compare_exchange_strong(there, id)))
      return make ? &s : nullptr;
    if (there == id) return &s;
  }
  if (make) g_no_room.store(true, std::memory_order_relaxed);
  return nullptr;
}

bool is_current(const Stream& s) {
  return s.epoch == g_epoch.load(std::memory_order_relaxed);
}

void set_open(Stream& s, bool open) {
  const auto at = static_cast<std::size_t>(&s - g_stream);
  const std::uint64_t bit = std::uint64_t{1} << at % 64;
  s.open = open;
  open ? g_open[at / 64].fetch_or(bit) : g_open[at / 64].fetch_and(~bit);
}

// Lets one thread at a time use a stream's fields. A thread that fails to get them within
// microseconds sets `missed` and goes on.
class [[nodiscard]] Taken : NotCopied {
 public:
  explicit Taken(Stream& s) : s_(s) {
    for (int tries = 0; tries < 1000 && !well_; ++tries) well_ = !s.taken.exchange(true);
    if (!well_) s.missed.store(true, std::memory_order_relaxed);
  }
  ~Taken() {
    if (well_) s_.taken.store(false, std::memory_order_release);
  }
  explicit operator bool() const { return well_; }

 private:
  Stream& s_;
  bool well_ = false;
};

// Resets a stream last used in an earlier epoch, whose work is unknown. A new stream in a process
// followed from its start has done no work before.
void refresh(Stream& s, CUstream handle) {
  s.handle = handle;
  if (s.gone.exchange(false) && s.open) {
    s.unseen = true;
    set_open(s, false);
  }
  if (is_current(s)) return;
  const std::uint32_t epoch = g_epoch.load(std::memory_order_relaxed);
  set_open(s, false);
  s.unseen = s.epoch != 0 || epoch > 1;
  s.why = ExposureLost::unread;
  s.pace = {};
  s.epoch = epoch;
}

// Returns false if the stream captures, so that nothing may be recorded in it.
bool put_mark(Stream& s, Mark::Kind kind, std::uint64_t now, bool empty = false,
              bool sample = false) {
  Mark mark{s.pace.fed()};
  mark.stream = s.id.load(std::memory_order_relaxed);
  mark.kind = kind;
  mark.unseen_before = s.missed.exchange(false, std::memory_order_relaxed) || s.unseen;
  mark.why = s.why;
  mark.sample = sample;
  mark.empty = empty;
  mark.enqueued_ns = now;
  const Marked marked = put_into(s.handle, mark);
  if (marked == Marked::captures) return false;
  s.unseen = marked == Marked::lost;
  s.why = ExposureLost::no_pair;
  s.pace.marked(now);
  set_open(s, kind != Mark::Kind::closes);
  return true;
}

// Marks a stream without a current call of this thread on it, if it can't be destroyed meanwhile.
void mark_from_outside(Stream& s, Mark::Kind kind, std::uint64_t now) {
  const stream_gates::Use use(s.handle);
  if (use && !s.gone.load()) {
    put_mark(s, kind, now);
  } else {
    s.missed.store(true, std::memory_order_relaxed);
  }
}

// Marks the end of the work enqueued in the stream so far.
void follow(Stream& s) {
  const Taken taken(s);
  if (!taken || !s.open || s.pace.idle_since_mark() || !is_current(s) || s.launching.load() != 0)
    return;
  const std::uint64_t now = now_ns();
  if (now - s.passed_ns < kFollowNs) return;
  s.passed_ns = now;
  mark_from_outside(s, Mark::Kind::passes, now);
}

void close(Stream& s) {
  const Taken taken(s);
  if (!taken || !s.open || !is_current(s) || s.launching.load() != 0) return;
  mark_from_outside(s, Mark::Kind::closes, now_ns());
}

void close_all() {
  for (std::size_t word = 0; word < std::size(g_open); ++word) {
    for (std::uint64_t open = g_open[word].load(); open != 0; open &= open - 1) {
      close(g_stream[word * 64 + static_cast<std::size_t>(std::countr_zero(open))]);
    }
  }
}

}  // namespace

bool on() {
  return device::on() && device::in_streams() && device::window_open();
}

std::uint64_t id_of(cudaStream_t stream) {
  constexpr std::uint64_t kLegacy = 1;
  constexpr std::uint64_t kPerThread = 2;
  const auto handle = reinterpret_cast<std::uintptr_t>(stream);
  if (handle > kPerThread) return handle;
  const Thread& t = t_thread;
  const auto device = static_cast<std::uint64_t>(t.device) << 8;
  if (handle != kPerThread) return kLegacy | device;
  const std::uint64_t tid = t.area == nullptr ? 0 : t.area->tid.load(std::memory_order_relaxed);
  return kPerThread | device | tid << 24;
}

void launches(cudaStream_t stream, Work work) {
  Stream* s = find(id_of(stream), true);
  if (s == nullptr) return;
  if (t_last != nullptr && t_last != s) follow(*t_last);
  t_last = s;
  s->launching.fetch_add(1);
  const Taken taken(*s);
  if (!taken) return;
  refresh(*s, stream);
  std::uint64_t now = now_ns();
  const bool late = s->open && s->pace.late(now);
  bool empty = false;
  if (s->open && s->pace.should_ask(now)) {
    empty = driver::is_empty(s->handle);
    s->pace.answered(empty, now);
  }
  if (!s->open || late) {
    put_mark(*s, !s->open || empty ? Mark::Kind::opens : Mark::Kind::passes, now, empty);
    now = now_ns();  // leaves the mark out of the launch's time
  }
  const std::uint32_t waits = g_waits.load(std::memory_order_relaxed);
  s->pace.begins(now, std::exchange(s->waits, waits) != waits);
  if (work == Work::kernel) s->kernel_ns = now;
}

void launched(cudaStream_t stream) {
  Stream* s = find(id_of(stream));
  if (s == nullptr) return;
  {
    const Taken taken(*s);
    const std::uint64_t now = now_ns();
    if (taken) {
      s->pace.launched(now);
      device::add_wait(s->pace.waited_ns());
      const bool sample = s->pace.wants_sample();
      if (s->open && (sample || s->pace.wants_mark(now))) {
        put_mark(*s, Mark::Kind::passes, now, false, sample);
      }
    }
  }
  s->launching.fetch_sub(1);
}

bool computes(cudaStream_t stream) {
  const Stream* s = find(id_of(stream));
  return s != nullptr && is_current(*s) && now_ns() - s->kernel_ns < kComputesNs;
}

// The legacy default stream and all streams that are not non-blocking wait for each other.
bool is_legacy(cudaStream_t stream) {
  return stream == nullptr || stream == cudaStreamLegacy;
}

void waits(cudaStream_t stream) {
  if (is_legacy(stream)) return close_all();
  Stream* s = find(id_of(stream));
  if (s != nullptr) close(*s);
}

void host_waits() {
  g_waits.fetch_add(1, std::memory_order_relaxed);
  close_all();
}

void recorded(cudaStream_t stream) {
  Stream* s = find(id_of(stream));
  if (s != nullptr) follow(*s);
}

void turns_away() {
  if (t_last != nullptr) follow(*t_last);
}

void destroying(cudaStream_t stream) {
  Stream* s = find(id_of(stream));
  if (s == nullptr) return;
  close(*s);
  s->gone.store(true);
}

void begin_epoch() {
  g_epoch.fetch_add(1);
}

void unseen() {
  if (!g_switches.timing.load(std::memory_order_relaxed) &&
      g_epoch.load(std::memory_order_relaxed) == 1)
    g_epoch.store(2);
}

void after_fork() {
  for (Stream& s : g_stream) s.~Stream(), new (&s) Stream{};
  for (auto& word : g_open) word.store(0);
  g_epoch.store(1);
}

bool at_rest() {
  for (const Stream& s : g_stream) {
    if (s.id.load() != 0 && s.taken.load()) return false;
  }
  return true;
}

bool no_room() {
  return g_no_room.load(std::memory_order_relaxed);
}

}  // namespace tprof::device::streams
