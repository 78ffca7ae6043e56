#include "collect/kept_lines.h"

#include <algorithm>
#include <utility>

#include "collect/known.h"

namespace tprof::collect {
namespace {

// Short files have hardly two lines that are alike, and are soon read again.
constexpr std::size_t kMostBytesOfLine = 32;

std::int64_t signed_of(const std::optional<std::uint64_t>& n) {
  return static_cast<std::int64_t>(n.value_or(0));
}

}  // namespace

template <typename Line>
std::size_t KeptLines::Shapes<Line>::number_of(const Line& shape, std::uint64_t hash) {
  if (places.empty()) places.resize(64);
  std::uint32_t& place = places[hash % 64];
  if (place < all.size() && all[place] == shape) return place;
  if (!whole()) return 0;
  place = static_cast<std::uint32_t>(std::ranges::find(all, shape) - all.begin());
  if (place == all.size()) all.push_back(shape);
  return place;
}

void KeptLines::put(std::uint64_t n) {
  for (; n >= 128; n >>= 7) text_.push_back(static_cast<char>(n | 128));
  text_.push_back(static_cast<char>(n));
}

void KeptLines::put_signed(std::int64_t n) {
  put((static_cast<std::uint64_t>(n) << 1) ^ (n < 0 ? ~std::uint64_t{0} : 0));
}

void KeptLines::put_change(std::int64_t& before, std::int64_t now) {
  // Without overflow, whatever a damaged file says.
  put_signed(static_cast<std::int64_t>(static_cast<std::uint64_t>(now) -
                                       static_cast<std::uint64_t>(std::exchange(before, now))));
}

void KeptLines::begin(Kind kind, std::size_t number) {
  put(number * 8 + static_cast<std::uint64_t>(kind));
  ++lines_;
}

void KeptLines::add(Kind kind, const read::Event& e) {
  read::Event shape = e;
  shape.ts_ns = shape.dur_ns = 0;
  shape.seq = 0;
  shape.group = e.group == 0 ? 0 : 1;
  begin(kind, calls_.number_of(shape, hash_of(e.name, e.comm.value_or(-1), signed_of(e.bytes),
                                              e.thread, e.site)));
  put_change(call_.ts_ns, e.ts_ns);
  put_signed(e.dur_ns);
  put_change(call_.seq, signed_of(e.seq));
  if (e.group != 0) put_change(call_.group, e.group);
}

void KeptLines::add(const read::DeviceTime& t) {
  read::DeviceTime shape = t;
  shape.ts_ns = shape.dur_ns = shape.queued_ns = 0;
  if (shape.seq) shape.seq = 0;
  begin(Kind::device_time, times_.number_of(shape, hash_of(t.name, t.comm.value_or(-1), t.thread,
                                                           t.lane, signed_of(t.calls))));
  put_change(time_.ts_ns, t.ts_ns);
  put_signed(t.dur_ns);
  put_signed(t.queued_ns);
  put_change(time_.seq, signed_of(t.seq));
}

void KeptLines::add(const read::Busy& b) {
  begin(Kind::busy, b.unsure ? 1 : 0);
  put_signed(b.device);
  put_change(busy_ns_, b.ts_ns);
  put_signed(b.dur_ns);
}

void KeptLines::add(const read::ThreadName& t) {
  begin(Kind::thread, threads_.size());
  threads_.push_back(t);
  bytes_of_threads_ += sizeof t + t.name.size();
}

void KeptLines::show(const Wanting& to) const {
  const char* at = text_.data();
  const auto take = [&at] {
    std::uint64_t n = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(*at++);
      n |= std::uint64_t{byte & 127U} << shift;
      if (byte < 128) return n;
    }
  };
  const auto take_signed = [&] {
    const std::uint64_t n = take();
    return static_cast<std::int64_t>((n >> 1) ^ (~(n & 1) + 1));
  };
  const auto change = [&](std::int64_t& before) {
    return before = static_cast<std::int64_t>(static_cast<std::uint64_t>(before) +
                                              static_cast<std::uint64_t>(take_signed()));
  };
  const auto show_each = [](const std::vector<Collector*>& those, auto see, const auto& line) {
    for (Collector* c : those) (c->*see)(line);
  };
  Before call;
  Before time;
  std::int64_t busy_ns = 0;
  while (at != text_.data() + text_.size()) {
    const std::uint64_t begin = take();
    const std::size_t number = begin / 8;
    switch (const auto kind = static_cast<Kind>(begin % 8)) {
      case Kind::call:
      case Kind::launch:
      case Kind::last_call: {
        read::Event e = calls_.all[number];
        e.ts_ns = change(call.ts_ns);
        e.dur_ns = take_signed();
        e.seq = static_cast<std::uint64_t>(change(call.seq));
        if (e.group != 0) e.group = change(call.group);
        show_each(to.all,
                  kind == Kind::call     ? &Collector::call
                  : kind == Kind::launch ? &Collector::launch
                                         : &Collector::last_call,
                  e);
        break;
      }
      case Kind::device_time: {
        read::DeviceTime t = times_.all[number];
        t.ts_ns = change(time.ts_ns);
        t.dur_ns = take_signed();
        t.queued_ns = take_signed();
        const std::int64_t seq = change(time.seq);
        if (t.seq) t.seq = static_cast<std::uint64_t>(seq);
        show_each(to.times, &Collector::device_time, t);
        break;
      }
      case Kind::busy: {
        read::Busy b{.device = take_signed()};
        b.ts_ns = change(busy_ns);
        b.dur_ns = take_signed();
        b.unsure = number == 1;
        show_each(to.busy, &Collector::busy, b);
        break;
      }
      case Kind::thread:
        show_each(to.all, &Collector::thread, threads_[number]);
        break;
    }
  }
}

void KeptLines::shrink_to_fit() {
  text_.shrink_to_fit();
  calls_.all.shrink_to_fit();
  times_.all.shrink_to_fit();
}

std::size_t KeptLines::bytes() const {
  return text_.capacity() + calls_.all.capacity() * sizeof(read::Event) +
         times_.all.capacity() * sizeof(read::DeviceTime) + bytes_of_threads_ + sizeof(KeptLines);
}

class KeptOfJob::Keeper : public Collector {
 public:
  Keeper(const read::Process& rank, KeptOfJob& to) : Collector(rank), to_(to) {}

  void call(const read::Event& e) override { add(KeptLines::Kind::call, e); }
  void launch(const read::Event& e) override { add(KeptLines::Kind::launch, e); }
  void last_call(const read::Event& e) override { add(KeptLines::Kind::last_call, e); }
  void device_time(const read::DeviceTime& t) override { add(t); }
  bool wants_times() const override { return true; }
  void busy(const read::Busy& b) override { add(b); }
  bool wants_busy() const override { return true; }
  void thread(const read::ThreadName& t) override { add(t); }
  void open_range(const read::Range& /*not kept*/) override { let_go(); }

  void end() override {
    auto lines = std::exchange(lines_, nullptr);
    if (!lines || !lines->whole()) return;
    lines->shrink_to_fit();
    const std::size_t bytes = lines->bytes();
    if (bytes > kMostBytesOfLine * lines->lines()) return;
    const std::scoped_lock lock(to_.mutex_);
    if (to_.bytes_ + bytes > kMostBytes) return;
    to_.bytes_ += bytes;
    to_.ranks_[&rank_] = std::move(lines);
  }
  void state(team::Archive& /*what is kept is for this process*/) override {}
  bool is_done() const override { return true; }

 private:
  template <typename... Line>
  void add(const Line&... line) {
    if (let_go_) return;
    if (!lines_) lines_ = std::make_unique<KeptLines>();
    lines_->add(line...);
    if (lines_->lines() % 4096 != 0) return;
    if (!lines_->whole() || to_.bytes_ + lines_->bytes() > kMostBytes) let_go();
  }
  void let_go() {
    let_go_ = true;
    lines_.reset();
  }

  KeptOfJob& to_;
  std::unique_ptr<KeptLines> lines_;
  bool let_go_ = false;
};

void KeptOfJob::want(const read::Process& rank, Collectors& all) {
  collect::want<Keeper>(rank, all, *this);
}

const KeptLines* KeptOfJob::of(const read::Process& rank) const {
  const std::scoped_lock lock(mutex_);
  const auto found = ranks_.find(&rank);
  return found == ranks_.end() ? nullptr : found->second.get();
}

void KeptOfJob::let_go(const read::Process& rank) {
  const std::scoped_lock lock(mutex_);
  const auto found = ranks_.find(&rank);
  if (found == ranks_.end()) return;
  bytes_ -= found->second->bytes();
  ranks_.erase(found);
}

}  // namespace tprof::collect
