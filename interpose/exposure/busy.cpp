#include "interpose/exposure/busy.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <iterator>
#include <new>
#include <utility>

#include "interpose/base/clock.h"
#include "interpose/base/hash.h"
#include "interpose/driver/events.h"
#include "interpose/exposure/exposure.h"
#include "interpose/thread/extras.h"
#include "interpose/thread/thread.h"

namespace tprof::timing::busy {
namespace {

// If the host launches again within this time, we assume that the stream stayed busy.
constexpr std::uint64_t kGapNs = 20'000;
// While a stream is launched on, two queries whether it is empty are at least kAskNs and at most
// kAskAnywayNs apart.
constexpr std::uint64_t kAskNs = 50'000;
constexpr std::uint64_t kAskAnywayNs = 250'000;
// follow() marks the end of what was launched so far, at most every kFollowNs. launched() makes a
// mark if none was made for kPassNs, because calls can be judged only up to the latest mark.
constexpr std::uint64_t kFollowNs = 20'000;
constexpr std::uint64_t kPassNs = 10'000'000;
// A stream that ran dry is marked again at most this often.
constexpr std::uint64_t kAgainNs = 200'000;
constexpr std::uint64_t kComputesNs = 10'000'000'000;
// Of launches on an empty stream, one in this time gets a mark behind it, which tells how long its
// kernel ran: 2 us for the event, 0.2 % of the host's time.
constexpr std::uint64_t kSampleNs = 1'000'000;
// If the host was late this long ago, it is expected to be late again.
constexpr std::uint64_t kLateNs = 1'000'000;
// A launch waits for room behind a thousand others. Behind fewer than kNoQueue it does not.
constexpr std::uint32_t kNoQueue = 256;

struct Stream {
  std::atomic<std::uint64_t> id;         // 0: the entry is free
  std::atomic<bool> taken;               // a thread uses the fields below
  std::atomic<bool> missed;              // a thread gave up waiting for `taken`
  std::atomic<std::uint32_t> launching;  // threads that are in a launch
  std::uint32_t epoch;
  CUstream handle;
  bool open;                // it was given work since the last wait
  bool unseen;              // it may have got work that no mark accounts for
  ExposureLost why;         // the reason for `unseen`
  bool idle_since_mark;     // nothing was put into it since the last mark
  std::uint64_t begins_ns;  // this and the next seven go into the next Mark
  std::uint64_t dry_from_ns;
  std::uint64_t dry_to_ns;
  std::uint64_t idle_to_ns;
  std::uint64_t fed_from_ns;
  std::uint32_t fed;          // launches from fed_from_ns to dry_to_ns
  bool sampled;               // the last mark's sample was through before the next launch
  bool sampling;              // the last mark is a sample, and nothing was launched since
  std::uint32_t done;         // launches that have returned
  std::uint32_t marked_done;  // `done` at marked_ns
  std::uint32_t asked_done;   // `done` at asked_ns
  bool asked_clean;          // it was empty at asked_ns, or got a mark: all before is accounted for
  std::uint64_t dried_ns;    // when it was last found empty
  bool on_empty;             // the launch that goes on found the stream empty
  std::uint64_t sampled_ns;  // when the last sample was taken
  std::uint64_t begun_ns;    // when the last launch began
  std::uint64_t kernel_ns;   // when the last launch of a kernel or graph began
  std::uint64_t launched_ns;  // when the last launch returned
  std::uint64_t asked_ns;     // when it was last known to be busy or empty
  std::uint64_t marked_ns;
  std::uint64_t passed_ns;  // when follow() last marked it
  std::uint32_t launches;   // since the stream was empty, or a thread waited for a device
  std::uint32_t waits;      // g_waits at the last launch
};

constexpr std::uint32_t kStreams = 256;
constinit Stream g_stream[kStreams]{};
constinit std::atomic<std::uint64_t> g_open[kStreams / 64]{};
constinit std::atomic<bool> g_no_room{false};
constinit std::atomic<std::uint32_t> g_epoch{1};
constinit std::atomic<bool> g_window{true};
constinit std::atomic<std::uint32_t> g_waits{0};
constinit std::atomic<Put> g_put{nullptr};  // null: nothing is followed
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

// Lets one thread at a time use a stream's fields. A thread that does not get in within
// microseconds sets `missed` and goes on.
class [[nodiscard]] Taken {
 public:
  explicit Taken(Stream& s) : s_(s) {
    for (int tries = 0; tries < 1000 && !well_; ++tries) well_ = !s.taken.exchange(true);
    if (!well_) s.missed.store(true, std::memory_order_relaxed);
  }
  ~Taken() {
    if (well_) s_.taken.store(false, std::memory_order_release);
  }
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;
  explicit operator bool() const { return well_; }

 private:
  Stream& s_;
  bool well_ = false;
};

// Resets a stream that was last used in an earlier epoch, whose work is not known. A stream first
// seen in a process that was followed from its start has done no work before.
void refresh(Stream& s, CUstream handle) {
  s.handle = handle;
  if (is_current(s)) return;
  const std::uint32_t epoch = g_epoch.load(std::memory_order_relaxed);
  set_open(s, false);
  s.unseen = s.epoch != 0 || epoch > 1;
  s.why = ExposureLost::unread;
  s.dry_to_ns = 0;
  s.epoch = epoch;
}

void asked(Stream& s, std::uint64_t now, bool clean) {
  s.asked_ns = now;
  s.asked_done = s.done;
  s.asked_clean = clean;
}

// False: the stream is capturing, and nothing may be recorded in it.
bool put_mark(Stream& s, Mark::Kind kind, std::uint64_t now, bool empty, bool sample = false) {
  Mark mark;
  mark.stream = s.id.load(std::memory_order_relaxed);
  mark.kind = kind;
  mark.unseen_before = s.missed.exchange(false, std::memory_order_relaxed) || s.unseen;
  mark.why = s.why;
  mark.dry_from_ns = s.dry_from_ns;
  mark.dry_to_ns = s.dry_to_ns;
  mark.idle_to_ns = s.idle_to_ns;
  mark.begins_ns = s.idle_since_mark ? UINT64_MAX : s.begins_ns;
  mark.launches = s.done - s.marked_done;
  mark.fed_from_ns = s.fed_from_ns;
  mark.fed = s.fed;
  mark.sampled = std::exchange(s.sampled, false);
  mark.sample = s.sampling = sample;
  mark.empty = empty;
  mark.enqueued_ns = now;
  const Marked marked = g_put.load(std::memory_order_relaxed)(s.handle, mark);
  if (marked == Marked::captures) return false;
  s.unseen = marked == Marked::lost;
  s.why = ExposureLost::no_pair;
  s.marked_ns = now;
  s.marked_done = s.done;
  asked(s, now, true);
  s.idle_since_mark = true;
  s.dry_to_ns = 0;
  set_open(s, kind != Mark::Kind::closes);
  return true;
}

// Notes that the stream is empty now, `gap` behind the last launch.
void found_empty(Stream& s, std::uint64_t now, std::uint64_t gap) {
  if (s.idle_since_mark) return;
  const bool fed = s.asked_clean;
  if (s.dry_to_ns == 0) {
    // Launches close to each other may have found it empty before the last one.
    const bool earlier = fed || gap < kGapNs;
    s.dry_from_ns = earlier ? std::min(s.asked_ns, s.launched_ns) : s.launched_ns;
    s.fed_from_ns = s.dry_from_ns;
    s.fed = 0;
  }
  if (s.dry_to_ns == 0 || s.launched_ns >= s.idle_to_ns) {  // equal: a slow launch's work came last
    if (!fed) s.fed_from_ns = now, s.fed = 0;
    if (fed) s.fed += s.done - s.asked_done;
    s.dry_to_ns = now;
  }
  s.idle_to_ns = now;
}

// True if the stream is empty now. It is queried only if the host was slow to feed it. Before a
// launch (`launches`) it is also queried if kAskAnywayNs have gone by, however fast launches come,
// and for samples.
bool is_empty(Stream& s, std::uint64_t now, bool launches = false) {
  const std::uint64_t gap = now - s.launched_ns;
  const std::uint64_t since = now - s.asked_ns;
  const bool slow = gap >= kGapNs && since >= kAskNs;
  const bool samples = s.sampling || now - s.sampled_ns >= kSampleNs;
  const bool anyway = launches && (since >= kAskAnywayNs || samples);
  if (!slow && !anyway) return false;
  const bool empty = event_driver::is_empty(s.handle);
  if (empty) found_empty(s, now, gap), s.dried_ns = now, s.launches = 0;
  asked(s, now, empty);
  return empty;
}

// Notes a launch that took long although it did not wait for room behind others: the host had no
// core, or the driver loaded the kernel's module first. The stream may have run dry meanwhile.
void note_slow_launch(Stream& s, std::uint64_t now) {
  if (now - s.begun_ns < kAskNs || s.launches > kNoQueue) return;
  if (s.dry_to_ns == 0) s.dry_from_ns = s.launched_ns;
  s.dry_to_ns = s.idle_to_ns = s.fed_from_ns = now;
  s.fed = 0;
}

// Marks the end of the work that was put into the stream so far.
void follow(Stream& s) {
  const Taken taken(s);
  if (!taken || !s.open || s.idle_since_mark || !is_current(s) || s.launching.load() != 0) return;
  const std::uint64_t now = now_ns();
  if (now - s.passed_ns < kFollowNs) return;
  s.passed_ns = now;
  const bool empty = is_empty(s, now);
  put_mark(s, Mark::Kind::passes, now, empty);
}

void close(Stream& s) {
  const Taken taken(s);
  if (!taken || !s.open || !is_current(s) || s.launching.load() != 0) return;
  const std::uint64_t now = now_ns();
  const bool empty = is_empty(s, now);
  put_mark(s, Mark::Kind::closes, now, empty);
}

}  // namespace

bool on() {
  return g_extras.timing.load(std::memory_order_relaxed) &&
         g_put.load(std::memory_order_relaxed) != nullptr &&
         g_window.load(std::memory_order_relaxed);
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
  const std::uint64_t now = now_ns();
  s->begun_ns = now;
  const std::uint32_t waits = g_waits.load(std::memory_order_relaxed);
  s->launches = std::exchange(s->waits, waits) == waits ? s->launches + 1 : 1;
  if (work == Work::kernel) s->kernel_ns = now;
  s->on_empty = s->open && is_empty(*s, now, true);
  s->sampled = s->sampling && s->on_empty;
  s->sampling = false;
  // Where the host is late now and then, the end of what is there is marked, too.
  const bool late = s->open && (s->on_empty || (s->asked_ns == now && now - s->dried_ns < kLateNs));
  if (!s->open || (late && now - s->marked_ns >= kAgainNs)) {
    const auto kind = s->open && !s->on_empty ? Mark::Kind::passes : Mark::Kind::opens;
    put_mark(*s, kind, now, s->on_empty);
  }
}

void launched(cudaStream_t stream) {
  Stream* s = find(id_of(stream));
  if (s == nullptr) return;
  {
    const Taken taken(*s);
    const std::uint64_t now = now_ns();
    // On an empty stream a kernel begins when its launch is through.
    if (s->idle_since_mark) {
      s->begins_ns = now;
    } else if (s->on_empty) {
      s->idle_to_ns = now;
    } else if (taken && s->open) {
      note_slow_launch(*s, now);
    }
    s->launched_ns = now;
    s->idle_since_mark = false;
    ++s->done;
    const bool sample = s->on_empty && now - s->sampled_ns >= kSampleNs;
    if (s->asked_ns >= s->begun_ns) s->sampled_ns = now;
    if (taken && s->open && (sample || now - s->marked_ns >= kPassNs)) {
      put_mark(*s, Mark::Kind::passes, now, false, sample);
    }
  }
  s->launching.fetch_sub(1);
}

bool computes(cudaStream_t stream) {
  const Stream* s = find(id_of(stream));
  return s != nullptr && is_current(*s) && now_ns() - s->kernel_ns < kComputesNs;
}

// Streams wait for the legacy default stream, and it for them, unless they were created as
// non-blocking.
bool is_legacy(cudaStream_t stream) {
  return stream == nullptr || stream == cudaStreamLegacy;
}

void waits(cudaStream_t stream) {
  if (is_legacy(stream)) return host_waits();
  Stream* s = find(id_of(stream));
  if (s != nullptr) close(*s);
}

void host_waits() {
  g_waits.fetch_add(1, std::memory_order_relaxed);
  for (std::size_t word = 0; word < std::size(g_open); ++word) {
    for (std::uint64_t open = g_open[word].load(); open != 0; open &= open - 1) {
      close(g_stream[word * 64 + static_cast<std::size_t>(std::countr_zero(open))]);
    }
  }
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
  while (s->taken.exchange(true)) {
  }
  if (s->open) s->unseen = true;
  set_open(*s, false);
  s->taken.store(false, std::memory_order_release);
}

void begin(Put put) {
  g_put.store(put, std::memory_order_relaxed);
}

void set_window(bool open) {
  if (!g_window.exchange(open) && open) begin_epoch();
}

void begin_epoch() {
  g_epoch.fetch_add(1);
}

void unseen() {
  if (!g_extras.timing.load(std::memory_order_relaxed) &&
      g_epoch.load(std::memory_order_relaxed) == 1)
    g_epoch.store(2);
}

void after_fork() {
  for (Stream& s : g_stream) s.~Stream(), new (&s) Stream{};
  for (auto& word : g_open) word.store(0);
  g_epoch.store(1);
  g_window.store(true);
  g_put.store(nullptr);
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

}  // namespace tprof::timing::busy
