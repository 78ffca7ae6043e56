#include "interpose/device/cupti_reader.h"

#include <bit>
#include <cstring>
#include <type_traits>

#include "interpose/base/clock.h"
#include "interpose/base/shared_map.h"
#include "interpose/device/compute.h"
#include "interpose/device/cupti_buffers.h"
#include "interpose/device/cupti_calls.h"
#include "interpose/device/cupti_client.h"
#include "interpose/device/cupti_clock.h"
#include "interpose/device/cupti_matches.h"
#include "interpose/device/mode.h"
#include "interpose/device/results.h"
#include "interpose/session/session.h"

namespace tprof::device::cupti_reader {
namespace {

// How far off CUPTI may be when it converts a device's clock to the host's; it does not say.
constexpr std::uint64_t kSlackNs = 100'000;
constexpr std::uint64_t kReportedNs = 1'000'000'000;  // by then CUPTI has reported what began
constexpr std::uint64_t kSoonNs = 400'000'000;    // wait for the rest of a call that it reported
constexpr std::uint64_t kLateNs = 5'000'000'000;  // wait for a call that it did not report at all
constexpr std::uint64_t kLingerNs = 1'000'000'000;
constexpr std::uint64_t kTellEveryNs = 4'000'000'000;

// Matches ncclDevKernel_AllGather_RING_LL and the like, mangled or not, and ncclSymkDevKernel_ of
// symmetric memory.
bool is_nccl(const char* name) {
  const char* at = name == nullptr ? nullptr : std::strstr(name, "nccl");
  return at != nullptr && std::strstr(at, "Kernel") != nullptr;
}

// The last call of each stream that is known to have begun on the device. Streams count from 0.
constinit SharedMap<std::uint64_t> g_newest{LockOrder::handles};
constexpr std::uint64_t kFirstKey = 2;

std::uint64_t newest(std::uint64_t stream) {
  std::uint64_t number = 0;
  return g_newest.find(stream + kFirstKey, number) ? number : 0;
}

class CuptiReader {
 public:
  // The object lies in zeroed memory.
  void begin(Compute* compute) { compute_ = compute; }

  void read(bool ending, bool window_open) {
    open(window_open);
    if (!clock_.ask() && clock_.at_ns() == 0) return;
    cupti::flush();
    read_buffers();
    const std::uint64_t now = now_ns();
    const bool closing = closed_ns_ != 0 && now >= closed_ns_ + kLingerNs;
    const std::uint32_t places = cupti_calls::made();
    for (std::uint32_t i = 0; i < places; ++i) note_begun(cupti_calls::call(i));
    for (std::uint32_t i = 0; i < places; ++i) settle(cupti_calls::call(i), ending || closing);
    const std::uint64_t until_ns = now - (ending || closing ? 0 : kReportedNs);
    compute_->settle(until_ns, session::mapping().head(), results::add_busy);
    tell_known(until_ns, ending, closing);
    if (closed_ns_ == 0) count_window(until_ns);
    if (closing) close();
    if (cupti::state() != cupti::State::in) counted_until_ns_ = 0;
    tell_clock();
  }

 private:
  // Records continue for a while after a window's end: calls made in it may still have to run.
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

  // At the end CUPTI may not have handed over the last kernels.
  void tell_known(std::uint64_t until_ns, bool ending, bool closing) {
    const std::uint64_t known_ns = closed_ns_ == 0 ? until_ns : std::min(until_ns, closed_ns_);
    compute_->known(known_ns, ending && closed_ns_ == 0, ending || closing, results::add_busy);
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
    cupti::Buffer buffer;
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
        return ran(k, is_nccl(k.name) ? Work::nccl : Work::kernel);
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

  static bool is_whole(const cupti_calls::Call& call, std::uint64_t& id) {
    id = call.id.load(std::memory_order_acquire);
    return id != 0 && call.whole.load(std::memory_order_acquire);
  }

  void note_begun(const cupti_calls::Call& call) {
    std::uint64_t id = 0;
    if (!is_whole(call, id) || !matches_.found_for(id).any) return;
    if (call.number > newest(call.stream_id)) {
      g_newest.insert(call.stream_id + kFirstKey, call.number);
    }
  }

  // A call may have several kernels, so it is over only when a later call on its stream has begun.
  // CUPTI may report the later call first: it holds a buffer back as long as something in it runs.
  void settle(cupti_calls::Call& call, bool ending) {
    std::uint64_t id = 0;
    if (!is_whole(call, id)) return;
    const Found& found = matches_.found_for(id);
    const bool over = newest(call.stream_id) > call.number;
    const std::uint64_t known_ns = found.any ? ended(found) + kSoonNs : call.of.host_ns + kLateNs;
    if ((!over || now_ns() < known_ns) && !ending) return;
    count(call, found);
    cupti_calls::give_back(call);
  }

  static std::uint64_t ended(const Found& found) {
    std::uint64_t latest = 0;
    for (const Ran& ran : found.ran) latest = std::max(latest, ran.end_ns);
    return latest;
  }

  void count(const cupti_calls::Call& call, const Found& found) {
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
    // Within the clock's error a kernel may seem to begin before its call.
    const std::uint64_t start_ns = std::max(ran.start_ns, call.of.host_ns);
    results::add(call.of, call.stream, start_ns, ran.end_ns - ran.start_ns);
  }

  // If a NCCL call has a kernel, its copies (as when it connects the ranks) do not count.
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
  std::uint64_t closed_ns_;       // when the window closed, while records still come; 0: otherwise
  bool recorded_;                 // records have come before
  std::uint32_t devices_;         // devices that had records, a bit each
  std::uint32_t clocks_written_;  // for these devices
  std::uint64_t tell_again_ns_;
};

CuptiReader* g_cupti_reader = nullptr;

}  // namespace

const char* enter(bool window_open) {
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

bool read(bool ending, bool window_open) {
  if (g_cupti_reader != nullptr) g_cupti_reader->read(ending, window_open);
  return g_cupti_reader != nullptr;
}

void after_fork() {
  g_cupti_reader = nullptr;
}

}  // namespace tprof::device::cupti_reader
