// TPROF_TIMING=cupti: reads CUPTI's records of each call's work on the device: times of calls, and
// how long the device was busy with kernels.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <type_traits>
#include <utility>

#include "interpose/base/background_thread.h"
#include "interpose/base/clock.h"
#include "interpose/base/complain.h"
#include "interpose/base/free_list.h"
#include "interpose/base/shared_map.h"
#include "interpose/device/cupti_client.h"
#include "interpose/device/intervals.h"
#include "interpose/device/mode.h"
#include "interpose/device/results.h"
#include "interpose/device/streams.h"
#include "interpose/device/timing.h"
#include "interpose/real/driver_graphs.h"
#include "interpose/session/session.h"

namespace tprof::device {
namespace by_cupti {
namespace {

// The assumed error of CUPTI's conversion from a device's clock to the host's, which it does not
// document.
constexpr std::uint64_t kSlackNs = 100'000;
constexpr std::uint64_t kReportedNs = 1'000'000'000;  // CUPTI reports work within this time
constexpr std::uint64_t kSoonNs = 400'000'000;        // waits for the rest of a reported call
constexpr std::uint64_t kLateNs = 5'000'000'000;      // waits for a call without any report
constexpr std::uint64_t kLingerNs = 1'000'000'000;
constexpr std::uint64_t kTellEveryNs = 4'000'000'000;

// Converts CUPTI's times to the host's clock. CUPTI returns the current time of its records' clock,
// which runs like CLOCK_REALTIME. That may be set and slewed, so CUPTI is asked repeatedly. Its
// error for a device's clock is unknown.
class CuptiClock {
 public:
  // Takes the best of a few readings. Returns false, and keeps the last one, if CUPTI does not
  // answer.
  bool ask() {
    constexpr int kLooks = 4;
    bool any = false;
    for (int i = 0; i < kLooks; ++i) {
      const std::uint64_t before = now_ns();
      std::uint64_t theirs = 0;
      if (!cupti::time(theirs)) break;
      const std::uint64_t error = (now_ns() - before) / 2 + 1;
      if (any && error >= error_ns_) continue;
      any = true;
      at_ns_ = before + error;
      error_ns_ = error;
      ahead_ = theirs - at_ns_;  // modulo 2^64
    }
    return any;
  }

  std::uint64_t on_host(std::uint64_t theirs) const { return theirs - ahead_; }
  std::uint64_t at_ns() const { return at_ns_; }
  std::uint64_t error_ns() const { return error_ns_; }

 private:
  std::uint64_t at_ns_;
  std::uint64_t error_ns_;
  std::uint64_t ahead_;
};

enum class Work : std::uint8_t { nccl, kernel, copy };
constexpr std::size_t kWorks = 3;

// From the beginning of the first work on the device to the end of the last.
struct Ran {
  std::uint64_t start_ns;
  std::uint64_t end_ns;

  bool any() const { return end_ns != 0; }
  void add(const Ran& other) {
    if (!other.any()) return;
    start_ns = any() ? std::min(start_ns, other.start_ns) : other.start_ns;
    end_ns = std::max(end_ns, other.end_ns);
  }
};

struct Found {
  Ran ran[kWorks];
  bool impossible;  // some of its work has impossible times
  bool any;

  void add(const Found& other) {
    for (std::size_t i = 0; i < kWorks; ++i) ran[i].add(other.ran[i]);
    impossible = impossible || other.impossible;
    any = any || other.any;
  }
};

// The calls that CUPTI times. The calling thread gives each an id, under which CUPTI records its
// work on the device. The thread that reads CUPTI's records frees the place.
//
// An id is the place's number and, in the bits above, how often the place was used, so that late
// records of an abandoned call are not taken for the place's next call.
constexpr std::uint32_t kPlaceBits = 16;
constexpr std::uint32_t kPlaces = 1U << kPlaceBits;
struct Call {
  std::atomic<std::uint64_t> id{0};  // 0: the place is free
  std::uint64_t uses = 0;
  Calls of{};
  CUstream stream = nullptr;
  std::uint64_t stream_id = 0;     // streams::id_of
  std::uint64_t number = 0;        // a later call of its stream has a larger one
  std::atomic<bool> whole{false};  // the call has returned; the fields above are set
  std::uint32_t next = 0;          // the next free place (FreeList)
  // For the reader: its work so far, and the call's id.
  Found found{};
  std::uint64_t found_for = 0;
};
constinit Call g_call[kPlaces]{};  // untouched memory costs nothing
constinit FreeList<Call> g_free{};
constinit std::atomic<std::uint32_t> g_made{0};  // later places have not been used yet
constinit std::atomic<std::uint64_t> g_number{0};

Call* take() {
  if (Call* call = g_free.take(g_call)) return call;
  if (g_made.load(std::memory_order_relaxed) >= kPlaces) return nullptr;
  const std::uint32_t place = g_made.fetch_add(1, std::memory_order_acq_rel);
  return place < kPlaces ? &g_call[place] : nullptr;
}

void give_back(Call& call) {
  call.whole.store(false, std::memory_order_relaxed);
  call.id.store(0, std::memory_order_release);
  g_free.give_back(g_call, call);
}

// Returns the work found for the call so far. Null: it was abandoned, and another call has its
// place.
Found* found_for(std::uint64_t id) {
  Call& call = g_call[id % kPlaces];
  if (id < call.found_for) return nullptr;
  if (id != call.found_for) call.found = {};
  call.found_for = id;
  return &call.found;
}

// Matches device work to our calls. CUPTI numbers runtime and driver calls. Some records say which
// of our calls one belongs to, others when its work ran; they come in any order. All zero at first,
// so untouched pages cost nothing.
class Matches {
 public:
  // Notes that CUPTI's `call` is part of our call `id`.
  void is_part(std::uint32_t call, std::uint64_t id) {
    Entry* e = entry(call);
    if (e == nullptr) return;
    e->id = id;
    if (e->found.any) add(id, std::exchange(e->found, {}));
  }
  // Adds work of `call`.
  void ran(std::uint32_t call, const Found& found) {
    Entry* e = entry(call);
    if (e == nullptr) return;
    e->id == 0 ? e->found.add(found) : add(e->id, found);
  }

 private:
  // How many of CUPTI's latest calls are kept.
  static constexpr std::uint32_t kCalls = 1U << 16;
  struct Entry {
    std::uint32_t call;
    std::uint64_t id;  // 0: not known
    Found found;       // work reported before the id
  };

  // Null: a later call has its place.
  Entry* entry(std::uint32_t call) {
    Entry& e = entry_[call % kCalls];
    if (e.call == call) return &e;
    if (static_cast<std::int32_t>(call - e.call) < 0 && e.call != 0) return nullptr;
    e = {call, 0, {}};
    return &e;
  }
  static void add(std::uint64_t id, const Found& found) {
    if (Found* of_call = found_for(id)) of_call->add(found);
  }

  Entry entry_[kCalls];
};

// The latest call of each stream that is known to have begun on the device. Stream ids start at 0.
constinit SharedMap<std::uint64_t> g_newest{LockOrder::handles};
constexpr std::uint64_t kFirstKey = 2;

std::uint64_t newest(std::uint64_t stream) {
  std::uint64_t number = 0;
  return g_newest.find(stream + kFirstKey, number) ? number : 0;
}

// Determines when and how long each device ran one or more kernels other than NCCL's.
class Compute {
  static auto put_of(std::uint32_t device) {
    return [device](const Interval& i, std::uint64_t idle_from_ns) {
      return results::add_busy(static_cast<int>(device), i, idle_from_ns);
    };
  }

 public:
  void ran(std::uint32_t device, std::uint64_t start_ns, std::uint64_t end_ns) {
    if (device < kTimedDevices) kernels_.push_back({start_ns, end_ns, device});
  }

  // Kernels are known from here on. `others`: earlier kernels may still run, until the first known
  // one.
  void begins(std::uint64_t since_ns, bool others) {
    for (std::uint64_t& unsure : unsure_from_) unsure = others ? since_ns : 0;
  }

  // Counts the known kernels that began by `until_ns`, and writes when they ran. A kernel reported
  // late is not counted if it ran before counted ones.
  void settle(std::uint64_t until_ns) {
    Head& head = session::mapping().head();
    std::sort(kernels_.begin(), kernels_.end(),
              [](const Kernel& a, const Kernel& b) { return a.start_ns < b.start_ns; });
    kernels_.erase_if([&](const Kernel& k) {
      if (k.start_ns > until_ns) return false;
      std::uint64_t& covered = covered_until_[k.device];
      const std::uint64_t from = std::max(k.start_ns, covered);
      if (k.end_ns <= from) return true;
      head.compute[k.device].fetch_add(k.end_ns - from, std::memory_order_relaxed);
      const std::uint64_t unsure_from = std::exchange(unsure_from_[k.device], 0);
      const auto put_here = put_of(k.device);
      if (unsure_from != 0 && unsure_from < from) {
        lines_[k.device].add({unsure_from, from, true}, put_here);
      }
      lines_[k.device].add({from, k.end_ns, false}, put_here);
      covered = k.end_ns;
      return true;
    });
  }

  // There are no more kernels that began before `until_ns`; with `some_missing`, except after the
  // last known one. `ends`: nothing is known of what comes next.
  void known(std::uint64_t until_ns, bool some_missing, bool ends) {
    for (std::uint32_t i = 0; i < kTimedDevices; ++i) {
      if (covered_until_[i] == 0) continue;
      const std::uint64_t from_ns = std::max(covered_until_[i], known_until_[i]);
      if (some_missing && from_ns < until_ns) lines_[i].add({from_ns, until_ns, true}, put_of(i));
      known_until_[i] = std::max(known_until_[i], until_ns);
      ends ? lines_[i].end(until_ns, put_of(i)) : lines_[i].known(until_ns, put_of(i));
    }
  }

 private:
  struct Kernel {
    std::uint64_t start_ns;
    std::uint64_t end_ns;
    std::uint32_t device;
  };
  Pages<Kernel> kernels_;
  std::uint64_t covered_until_[kTimedDevices] = {};
  std::uint64_t known_until_[kTimedDevices] = {};
  std::uint64_t unsure_from_[kTimedDevices] = {};  // 0: all is known
  Intervals lines_[kTimedDevices];
};

class CuptiReader {
 public:
  // The object is in zeroed memory.
  void begin(Compute* compute) { compute_ = compute; }

  void read(bool ending, bool window_open) {
    open(window_open);
    if (!clock_.ask() && clock_.at_ns() == 0) return;
    cupti::flush();
    read_buffers();
    const std::uint64_t now = now_ns();
    const bool closing = closed_ns_ != 0 && now >= closed_ns_ + kLingerNs;
    const std::span calls(g_call, std::min(g_made.load(std::memory_order_acquire), kPlaces));
    for (const Call& call : calls) note_begun(call);
    for (Call& call : calls) settle(call, ending || closing);
    const std::uint64_t until_ns = now - (ending || closing ? 0 : kReportedNs);
    compute_->settle(until_ns);
    tell_known(until_ns, ending, closing);
    if (closed_ns_ == 0) count_window(until_ns);
    if (closing) close();
    if (cupti::state() != cupti::State::in) counted_until_ns_ = 0;
    tell_clock();
  }

 private:
  // Records continue for a while after a window's end, since its calls may not have run yet.
  void open(bool window_open) {
    if (cupti::state() != cupti::State::in) return;
    const std::uint64_t now = now_ns();
    if (!window_open) {
      if (!cupti::recording() || closed_ns_ != 0) return;
      closed_ns_ = now;
      return count_window(now);
    }
    if (cupti::recording() && closed_ns_ == 0) return;
    closed_ns_ = 0;
    if (!cupti::recording() && !cupti::start_records()) return;
    counted_until_ns_ = now;
    compute_->begins(now, recorded_);
    recorded_ = true;
  }
  void close() {
    closed_ns_ = 0;
    counted_until_ns_ = 0;
    cupti::stop_records();
  }

  void count_window(std::uint64_t until_ns) {
    if (counted_until_ns_ == 0 || until_ns <= counted_until_ns_) return;
    session::mapping().head().compute_window_ns.fetch_add(until_ns - counted_until_ns_,
                                                          std::memory_order_relaxed);
    counted_until_ns_ = until_ns;
  }

  // At the end CUPTI may not have delivered the last kernels.
  void tell_known(std::uint64_t until_ns, bool ending, bool closing) {
    const std::uint64_t known_ns = closed_ns_ == 0 ? until_ns : std::min(until_ns, closed_ns_);
    compute_->known(known_ns, ending && closed_ns_ == 0, ending || closing);
  }

  // CUPTI has one clock for all devices.
  void tell_clock() {
    const std::uint64_t now = now_ns();
    if (devices_ == clocks_written_ && now < tell_again_ns_) return;
    for (std::uint32_t i = 0; i < kTimedDevices; ++i) {
      if ((devices_ >> i & 1) == 0) continue;
      results::add_clock(static_cast<int>(i), clock_.at_ns(), clock_.error_ns(), 0);
    }
    clocks_written_ = devices_;
    tell_again_ns_ = now + kTellEveryNs;
  }

  void read_buffers() {
    cupti::buffers::Buffer buffer;
    while (cupti::buffers::next(buffer)) {
      cupti::Record* r = nullptr;
      while ((r = cupti::next(buffer.data, buffer.valid, r)) != nullptr) read(*r);
      cupti::buffers::give_back(buffer);
    }
  }

  void read(const cupti::Record& r) {
    using cupti::ActivityKind;
    switch (r.kind) {
      case ActivityKind::external: {
        const auto& e = reinterpret_cast<const cupti::External&>(r);
        if (e.whose == cupti::kOurs) matches_.is_part(e.call, e.id);
        break;
      }
      case ActivityKind::memcpy:
        return ran(reinterpret_cast<const cupti::Copy&>(r), Work::copy);
      case ActivityKind::peer_memcpy:
        return ran(reinterpret_cast<const cupti::PeerCopy&>(r), Work::copy);
      case ActivityKind::kernel: {
        const auto& k = reinterpret_cast<const cupti::Kernel&>(r);
        return ran(
            k, k.name != nullptr && graph_driver::is_of_nccl(k.name) ? Work::nccl : Work::kernel);
      }
      default:
        break;
    }
  }

  template <typename R>
  void ran(const R& r, Work work) {
    Found found{};
    found.any = true;
    if (r.device < kTimedDevices) devices_ |= 1U << r.device;
    const std::uint64_t start_ns = clock_.on_host(r.start);
    const std::uint64_t end_ns = clock_.on_host(r.end);
    found.impossible = r.start == 0 || r.start >= r.end || end_ns > now_ns() + kSlackNs;
    if (!found.impossible) {
      found.ran[static_cast<std::size_t>(work)] = {start_ns, end_ns};
      const std::uint64_t until_ns = closed_ns_ == 0 ? end_ns : std::min(end_ns, closed_ns_);
      const bool in_window = until_ns > start_ns;
      if (work == Work::kernel && in_window) compute_->ran(r.device, start_ns, until_ns);
    }
    matches_.ran(r.call, found);
  }

  static bool is_whole(const Call& call, std::uint64_t& id) {
    id = call.id.load(std::memory_order_acquire);
    return id != 0 && call.whole.load(std::memory_order_acquire);
  }

  static void note_begun(const Call& call) {
    std::uint64_t id = 0;
    if (!is_whole(call, id) || !found_for(id)->any) return;
    if (call.number > newest(call.stream_id)) {
      g_newest.insert(call.stream_id + kFirstKey, call.number);
    }
  }

  // A call may have several kernels, so it is complete only when a later call on its stream has
  // begun. CUPTI may report the later call first: it keeps a buffer as long as something in it
  // runs.
  static void settle(Call& call, bool ending) {
    std::uint64_t id = 0;
    if (!is_whole(call, id)) return;
    const Found& found = *found_for(id);
    const bool over = newest(call.stream_id) > call.number;
    const std::uint64_t known_ns = found.any ? ended(found) + kSoonNs : call.of.host_ns + kLateNs;
    if ((!over || now_ns() < known_ns) && !ending) return;
    count(call, found);
    give_back(call);
  }

  static std::uint64_t ended(const Found& found) {
    std::uint64_t latest = 0;
    for (const Ran& ran : found.ran) latest = std::max(latest, ran.end_ns);
    return latest;
  }

  static void count(const Call& call, const Found& found) {
    const cupti::State state = cupti::state();
    const bool left = state == cupti::State::leaving || state == cupti::State::out;
    const Ran ran = time_of(std::bit_cast<LedgerKey>(call.of.key), found);
    if (found.impossible || (ran.any() && ran.start_ns + kSlackNs < call.of.host_ns)) {
      return lose(TimingLost::impossible, call.of);
    }
    if (!ran.any()) {
      const bool over = newest(call.stream_id) > call.number;
      const TimingLost unread = left ? TimingLost::tool : TimingLost::unread;
      return lose(over ? TimingLost::no_record : unread, call.of);
    }
    // By the clock's error a kernel may seem to begin before its call.
    const std::uint64_t start_ns = std::max(ran.start_ns, call.of.host_ns);
    results::add(call.of, call.stream, start_ns, ran.end_ns - ran.start_ns);
  }

  // If an NCCL call has a kernel, its copies (as for connecting ranks) do not count.
  static Ran time_of(const LedgerKey& key, const Found& found) {
    const auto ran_of = [&](Work work) { return found.ran[static_cast<std::size_t>(work)]; };
    Ran all{};
    for (const Ran& ran : found.ran) all.add(ran);
    if (key.function == kMetaLaunch) return all;
    const Work mine = is_copy(key.bucket) ? Work::copy : Work::nccl;
    if (ran_of(mine).any()) return ran_of(mine);
    return mine == Work::nccl && ran_of(Work::copy).any() ? ran_of(Work::copy) : all;
  }

  Matches matches_;
  CuptiClock clock_;
  Compute* compute_;
  std::uint64_t counted_until_ns_;  // in the open window; 0: no window is open
  std::uint64_t closed_ns_;         // when the window closed, while records still come; otherwise 0
  bool recorded_;                   // records have come before
  std::uint32_t devices_;           // a bit for each device with records
  std::uint32_t clocks_written_;    // for these devices
  std::uint64_t tell_again_ns_;
};

CuptiReader* g_cupti_reader = nullptr;

// Makes us CUPTI's client. Returns the reason for a failure, or null.
const char* begin_reading(bool window_open) {
  static_assert(std::is_trivial_v<CuptiReader>);
  auto* reader = static_cast<CuptiReader*>(take_memory(sizeof(CuptiReader)));
  auto* compute = make_in_own_memory<Compute>();
  if (reader == nullptr || compute == nullptr) return "no memory";
  if (const char* why = cupti::enter()) return why;
  g_newest.clear();
  g_cupti_reader = reader;
  g_cupti_reader->begin(compute);
  g_cupti_reader->read(false, window_open);
  if (cupti::recording() || !window_open || cupti::state() == cupti::State::out) return nullptr;
  g_cupti_reader = nullptr;
  cupti::leave([] {});
  return "CUPTI refuses";
}

std::atomic<std::uint32_t> g_tried{0};  // futex; 1: we are CUPTI's client, or never will be

// Runs after the program's own handlers of exit(), and before libcupti shuts down.
void at_exit() {
  constexpr std::uint32_t kPatienceMs = 1000;
  own_thread::last_read(kPatienceMs);
  cupti::close();
}

void enter() {
  if (const char* why = begin_reading(window_open())) {
    g_on.store(false, std::memory_order_relaxed);
    complain(Trouble::timing, "TPROF_TIMING=cupti has no effect: ", why,
             ". Calls have the host's times only");
  } else {
    std::atexit(at_exit);
  }
  g_tried.store(1, std::memory_order_release);
  futex_wake(g_tried);
}

// The first reading makes us CUPTI's client.
std::uint32_t read(bool ending) {
  constexpr std::uint32_t kFlushMs = 200;
  constexpr std::uint32_t kNeverMs = 1U << 30;
  if (g_tried.load(std::memory_order_relaxed) == 0) enter();
  if (g_cupti_reader == nullptr) return kNeverMs;
  g_cupti_reader->read(ending, window_open());
  return cupti::state() == cupti::State::in ? kFlushMs : kNeverMs;
}

void settle_in() {
  constexpr std::uint32_t kPatienceMs = 1000;
  if (g_tried.load(std::memory_order_acquire) == 0) futex_wait(g_tried, 0, kPatienceMs);
}

// True if a call that can't be timed counts as lost. Includes calls before CUPTI is ready, of
// threads that do not wait or whose wait timed out.
bool wanted() {
  const cupti::State state = cupti::state();
  return state != cupti::State::leaving && state != cupti::State::out;
}

TimedCall start(CUstream stream) {
  if (!wanted()) return {};
  if (cupti::state() == cupti::State::over) return {nullptr, true, TimingLost::unread};
  if (!cupti::recording()) return {nullptr, true, TimingLost::no_record};
  Call* call = take();
  if (call == nullptr) return {nullptr, true, TimingLost::no_pair};
  const auto place = static_cast<std::uint64_t>(call - g_call);
  const std::uint64_t id = ++call->uses << kPlaceBits | place;
  call->stream = stream;
  call->stream_id = streams::id_of(stream);
  call->number = g_number.fetch_add(1, std::memory_order_relaxed) + 1;
  call->id.store(id, std::memory_order_release);
  if (cupti::push(id)) return {call};
  give_back(*call);
  return {nullptr, true, TimingLost::device};
}

void drop(const TimedCall& timed) {
  cupti::pop();
  give_back(*static_cast<Call*>(timed.held));
}

void stop(const TimedCall& timed, const Calls& of, bool in_progress) {
  auto& call = *static_cast<Call*>(timed.held);
  const cupti::State state = cupti::state();
  if (in_progress || state != cupti::State::in) {
    lose(in_progress                   ? TimingLost::in_progress
         : state == cupti::State::over ? TimingLost::unread
                                       : TimingLost::tool,
         of);
    return drop(timed);
  }
  cupti::pop();
  call.of = of;
  call.of.key = of_thread(of.key, t_thread.area->kind);
  call.whole.store(true, std::memory_order_release);
}

void after_fork() {
  cupti::after_fork();
  g_tried.store(0, std::memory_order_relaxed);
  g_cupti_reader = nullptr;
}

}  // namespace
}  // namespace by_cupti

extern const Mode cupti_mode;
constinit const Mode cupti_mode{
    .read = by_cupti::read,
    .set_window = [](bool) { own_thread::wake(); },
    .settle_in = by_cupti::settle_in,
    .start = by_cupti::start,
    .stop = by_cupti::stop,
    .drop = by_cupti::drop,
    .wanted = by_cupti::wanted,
    .after_fork = by_cupti::after_fork,
};

void make_way() {
  constexpr std::uint32_t kPatienceMs = 200;
  if (!cupti::leave([] { own_thread::last_read(kPatienceMs); })) return;
  complain(Trouble::timing, "calls are not timed any more: the program uses CUPTI itself");
}

}  // namespace tprof::device
