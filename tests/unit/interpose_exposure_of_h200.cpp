// device/: how much of NCCL's kernels was exposed, in timelines of an H200 as CUPTI recorded
// them.
//
// tests/unit/h200/*.txt: FSDP2 and DDP, one rank of two, bf16, under torch.profiler. One line a
// call of the host; times in 0.1 us: the call's begin since the call before, how long it took, the
// begin of its kernel since its end, and how long that ran.
//   L STREAM BEGIN TOOK KERNEL RAN   a launch or copy of the program
//   N STREAM BEGIN TOOK KERNEL RAN   a call of NCCL
//   W STREAM BEGIN                   the stream is made to wait for another
#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "catch2.h"
#include "interpose/device/exposure.h"
#include "interpose/device/pace.h"

using namespace tprof;
using namespace tprof::device;

namespace {

using Ns = std::uint64_t;
struct Span {
  Ns from = 0, to = 0;
};

// A call of the host, and when the device did it.
struct Call {
  char what = 0;
  std::uint64_t stream = 0;
  Span host, kernel;
};

std::vector<Call> timeline(const std::string& name) {
  std::ifstream in(std::string(TPROF_UNIT_DATA) + "/h200/" + name);
  std::vector<Call> calls;
  Ns at = 1'000'000'000;
  Call call;
  for (Ns begin = 0; in >> call.what >> call.stream >> begin; calls.push_back(call)) {
    at += 100 * begin;
    call.host = {at, at};
    if (call.what == 'W') continue;
    std::int64_t took = 0, kernel = 0, ran = 0;
    in >> took >> kernel >> ran;
    call.host.to = at + 100 * static_cast<Ns>(took);
    call.kernel.from = call.host.to + static_cast<Ns>(100 * kernel);
    call.kernel.to = call.kernel.from + static_cast<Ns>(100 * ran);
  }
  return calls;
}

// Events cost this host nothing: it was not kept by them. The device gets to one so much later.
constexpr Ns kLatencyNs = 2'000;
// A kernel that begins so long after its launch waited for something.
constexpr Ns kWaitedNs = 15'000;

// Follows the streams as busy.cpp does, on a device whose kernels are known.
class Device {
 public:
  void run(const std::vector<Call>& calls) {
    for (const Call& c : calls) {
      if (c.what == 'N') {
        follow(c.host.from);
        nccl.push_back(c.kernel);
        exposure.call({100 + c.stream, 0, c.kernel.from, c.kernel.to, {1, 1}, 1});
        continue;
      }
      Stream& s = streams_[c.stream];
      s.id = c.stream;
      if (c.what == 'L' && &s != last_) follow(c.host.from), last_ = &s;
      if (c.what == 'W') {
        if (s.open) mark(s, Mark::Kind::closes, c.host.from, s.done);
      } else {
        launch(c, s);
      }
    }
  }

  std::vector<Span> busy;  // a stream had something to do
  std::vector<Span> nccl;
  Exposure exposure;

 private:
  struct Stream {
    std::uint64_t id = 0;
    streams::Pace pace;
    bool open = false;
    Ns done = 0;  // when the device is through with all that is in it
  };

  void launch(const Call& c, Stream& s) {
    const Ns now = c.host.from;
    const bool late = s.open && s.pace.late(now);
    const bool empty = s.done <= now;
    if (s.open && s.pace.should_ask(now)) s.pace.answered(empty, now);
    const bool waited = c.kernel.from > c.host.to + kWaitedNs;
    const Ns ready = s.open || !waited ? s.done : c.kernel.from - kLatencyNs;
    const Ns begins = std::max(c.host.to + kLatencyNs, ready);
    busy.push_back({std::min(begins, c.kernel.from), c.kernel.to});
    if (!s.open || late) {
      const auto kind = !s.open || empty ? Mark::Kind::opens : Mark::Kind::passes;
      mark(s, kind, now, ready, late && empty);
    }
    s.pace.begins(now, false);
    s.done = std::max(s.done, c.kernel.to);
    s.pace.launched(c.host.to);
    const bool sample = s.pace.wants_sample();
    if (sample || s.pace.wants_mark(c.host.to)) {
      mark(s, Mark::Kind::passes, c.host.to, s.done, false, sample);
    }
  }

  // The host turns away from the stream that it launched on last.
  void follow(Ns now) {
    if (last_ == nullptr || !last_->open || last_->pace.idle_since_mark()) return;
    mark(*last_, Mark::Kind::passes, now, last_->done);
  }

  void mark(Stream& s, Mark::Kind kind, Ns now, Ns ready, bool empty = false, bool sample = false) {
    Mark mark{s.pace.fed()};
    mark.stream = s.id;
    mark.kind = kind;
    mark.empty = empty;
    mark.sample = sample;
    mark.enqueued_ns = mark.made_ns = now;
    mark.at_ns = std::max(mark.made_ns + kLatencyNs, ready);
    s.pace.marked(now);
    s.open = kind != Mark::Kind::closes;
    exposure.mark(mark);
  }

  std::map<std::uint64_t, Stream> streams_;
  Stream* last_ = nullptr;
};

// The part of `calls` in which none of `busy` ran.
double exposed_share(const std::vector<Span>& calls, std::vector<Span> busy) {
  std::sort(busy.begin(), busy.end(), [](Span a, Span b) { return a.from < b.from; });
  double all = 0, hidden = 0;
  for (const Span& call : calls) {
    all += static_cast<double>(call.to - call.from);
    Ns seen = call.from;
    for (const Span& b : busy) {
      const Ns from = std::max(b.from, seen), to = std::min(b.to, call.to);
      if (from >= to) continue;
      hidden += static_cast<double>(to - from);
      seen = to;
    }
  }
  return 1 - hidden / all;
}

}  // namespace

TEST_CASE("the exposed share of NCCL's kernels is that of what an H200 ran") {
  for (const char* job : {"fsdp2.txt", "ddp.txt"}) {
    INFO(job);
    const auto calls = timeline(job);
    REQUIRE(calls.size() > 2000);
    const auto device = std::make_unique<Device>();
    device->run(calls);
    double known = 0, exposed = 0;
    device->exposure.settle(true, [&](const Exposed& found) {
      if (!found.known) return;
      known += static_cast<double>(found.device_ns);
      exposed += static_cast<double>(found.exposed_ns);
    });
    const double truth = exposed_share(device->nccl, device->busy);
    CHECK(truth > 0.4);  // neither is trivial
    CHECK(truth < 0.7);
    CHECK(exposed / known == Approx(truth).margin(0.05));
  }
}

TEST_CASE(
    "a device is busy for as long as an H200 was, whose host launches a kernel in 20 to 50 us") {
  for (const char* job : {"fsdp2.txt", "ddp.txt"}) {
    INFO(job);
    const auto device = std::make_unique<Device>();
    device->run(timeline(job));
    const Ns from = device->busy.front().from, to = device->busy.back().to;
    Pages<Interval> found;
    device->exposure.computed(1, from, to, found);
    double ours = 0;  // readers take half of what is unsure
    for (const Interval& i : found)
      ours += static_cast<double>(i.to_ns - i.from_ns) / (i.unsure ? 2 : 1);
    const double truth = 1 - exposed_share({{from, to}}, device->busy);
    CHECK(truth < 0.75);
    CHECK(ours / static_cast<double>(to - from) == Approx(truth).margin(0.08));
  }
}
