// exposure/exposure.h: how much of calls was exposed, for schedules whose answer is arithmetic.
#include "interpose/exposure/exposure.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "catch2.h"

using namespace tprof;
using namespace tprof::timing;

namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kGather = 0x1000;
constexpr std::uint64_t kCompute = 0x2000;
constexpr std::uint64_t kOther = 0x3000;
constexpr LedgerKey::Words kKey{1, 1};

// A device; times in ms.
class Job {
 public:
  // The program computes on `stream` from one time to the other, far ahead of the device.
  void computes(std::uint64_t stream, std::uint64_t from, std::uint64_t to) {
    mark(stream, Mark::Kind::opens, from);
    mark(stream, Mark::Kind::closes, to);
  }
  Mark& mark(std::uint64_t stream, Mark::Kind kind, std::uint64_t at) {
    put();
    waiting_ = Mark{.stream = stream, .kind = kind, .at_ns = at * kMs};
    return *waiting_;
  }
  void call(std::uint64_t start, std::uint64_t end, std::uint64_t stream = kGather) {
    put();
    exposure_->call({stream, 0, start * kMs, end * kMs, kKey, 1});
  }
  Exposure& exposure() {
    put();
    return *exposure_;
  }

  struct Sum {
    std::uint64_t known = 0, exposed_ns = 0, device_ns = 0, late = 0, unknown = 0;
    ExposureLost why{};
  };
  Sum settle(bool last) {
    put();
    Sum sum;
    exposure_->settle(last, [&](const Exposed& found) {
      if (!found.known) {
        sum.unknown += found.calls;
        sum.why = found.why;
        return;
      }
      sum.known += found.calls;
      sum.device_ns += found.device_ns;
      sum.exposed_ns += found.exposed_ns;
      sum.late += found.late ? 1 : 0;
    });
    return sum;
  }
  Sum end() { return settle(true); }

 private:
  void put() {
    if (waiting_) exposure_->mark(*waiting_);
    waiting_.reset();
  }
  std::unique_ptr<Exposure> exposure_ = std::make_unique<Exposure>();
  std::optional<Mark> waiting_;
};

}  // namespace

TEST_CASE("exposed is the part of a call in which no stream of its device computed") {
  Job job;
  job.computes(kCompute, 0, 22);
  job.computes(kCompute, 30, 50);
  job.call(10, 30);
  const auto found = job.end();
  CHECK(found.known == 1);
  CHECK(found.device_ns == 20 * kMs);
  CHECK(found.exposed_ns == 8 * kMs);
  CHECK(found.late == 1);
}

TEST_CASE("a call that came in time is not late") {
  Job job;
  job.computes(kCompute, 0, 50);
  job.call(10, 30);
  const auto found = job.end();
  CHECK(found.known == 1);
  CHECK(found.exposed_ns == 0);
  CHECK(found.late == 0);
}

TEST_CASE("moments in which two streams compute hide a call once") {
  Job job;
  job.computes(kCompute, 0, 20);
  job.computes(kOther, 15, 25);
  job.call(10, 30);
  CHECK(job.end().exposed_ns == 5 * kMs);
}

TEST_CASE("a call on the stream that computes is hidden by other streams only") {
  Job job;
  job.computes(kCompute, 0, 10);
  job.computes(kOther, 15, 20);
  job.call(10, 30, kCompute);
  CHECK(job.end().exposed_ns == 15 * kMs);
}

TEST_CASE("other devices' computation hides nothing") {
  Job job;
  job.computes(kCompute, 0, 5);
  job.mark(kOther, Mark::Kind::opens, 0).device = 1;
  job.mark(kOther, Mark::Kind::closes, 50).device = 1;
  job.call(10, 30);
  CHECK(job.end().exposed_ns == 20 * kMs);
}

TEST_CASE("where no kernel was launched on the device nothing is known") {
  Job job;
  job.call(10, 30);
  const auto found = job.end();
  CHECK(found.unknown == 1);
  CHECK(found.why == ExposureLost::no_launch);
}

TEST_CASE("a call waits until its streams are known, and no longer") {
  Job job;
  job.exposure().begin_look(100 * kMs);
  job.mark(kCompute, Mark::Kind::opens, 5);
  job.call(10, 30);
  CHECK(job.settle(false).known == 0);
  job.mark(kCompute, Mark::Kind::passes, 20);
  CHECK(job.settle(false).known == 0);
  job.mark(kCompute, Mark::Kind::closes, 25);
  const auto found = job.settle(false);
  CHECK(found.known == 1);
  CHECK(found.exposed_ns == 5 * kMs);
}

TEST_CASE("a mark that is still to come holds back what began after it was put there") {
  Job job;
  job.computes(kCompute, 0, 5);
  job.call(10, 30);
  job.exposure().begin_look(100 * kMs);
  job.exposure().standing({.stream = kCompute, .enqueued_ns = 20 * kMs});
  CHECK(job.settle(false).known == 0);
  job.exposure().begin_look(100 * kMs);
  CHECK(job.settle(false).known == 1);
}

TEST_CASE("a stream that ran dry at an unknown time makes a call unknown by more than the error") {
  Job job;
  job.mark(kCompute, Mark::Kind::opens, 0);
  Mark& again = job.mark(kCompute, Mark::Kind::opens, 40);
  again.dry_from_ns = 5 * kMs;
  again.dry_to_ns = again.idle_to_ns = 40 * kMs;
  again.empty = true;
  job.mark(kCompute, Mark::Kind::closes, 50);
  job.call(10, 30);
  const auto found = job.end();
  CHECK(found.unknown == 1);
  CHECK(found.why == ExposureLost::host_late);
}

TEST_CASE("half of a short doubt is taken for computation") {
  Job job;
  job.mark(kCompute, Mark::Kind::opens, 0);
  Mark& again = job.mark(kCompute, Mark::Kind::opens, 12);
  again.dry_from_ns = 11 * kMs;
  again.dry_to_ns = again.idle_to_ns = 12 * kMs;
  again.empty = true;
  job.mark(kCompute, Mark::Kind::closes, 20);
  job.call(10, 30);
  const auto found = job.end();
  CHECK(found.known == 1);
  CHECK(found.exposed_ns == 10 * kMs + kMs / 2);
}

TEST_CASE("a stream that was marked behind its last work was idle from there on") {
  Job job;
  job.mark(kCompute, Mark::Kind::opens, 0);
  job.mark(kCompute, Mark::Kind::passes, 15);
  Mark& again = job.mark(kCompute, Mark::Kind::opens, 40);
  again.begins_ns = UINT64_MAX;
  again.empty = true;
  job.mark(kCompute, Mark::Kind::closes, 50);
  job.call(10, 30);
  const auto found = job.end();
  CHECK(found.known == 1);
  CHECK(found.exposed_ns == 15 * kMs);
}

TEST_CASE("a stream is idle from a mark until the launch behind it is through") {
  Job job;
  job.mark(kCompute, Mark::Kind::opens, 10);
  job.mark(kCompute, Mark::Kind::closes, 20).begins_ns = 14 * kMs;
  job.call(10, 30);
  CHECK(job.end().exposed_ns == 14 * kMs);
}

namespace {

// Launches of 0.05 ms, one in each ms, on a stream that is empty before each.
void sampled(Job& job, std::uint64_t from, std::uint64_t to) {
  for (std::uint64_t ms = from; ms < to; ++ms) {
    Mark& mark = job.mark(kCompute, Mark::Kind::passes, ms);
    mark.enqueued_ns = mark.at_ns - kMs / 20;
    mark.begins_ns = mark.enqueued_ns;
    mark.sample = true;
    mark.sampled = ms != from;
  }
}

// Samples up to 10; then `fed` launches from 19.2 to 20, where the stream was empty at both ends.
void samples_then_launches(Job& job, std::uint32_t fed) {
  job.mark(kCompute, Mark::Kind::opens, 0);
  sampled(job, 1, 10);
  Mark& found_empty = job.mark(kCompute, Mark::Kind::opens, 20);
  found_empty.dry_from_ns = found_empty.fed_from_ns = 19 * kMs + kMs / 5;
  found_empty.dry_to_ns = found_empty.idle_to_ns = 20 * kMs;
  found_empty.fed = fed;
  found_empty.empty = true;
}

}  // namespace

TEST_CASE("where the host is late, samples tell how much of the time the stream computed") {
  Job job;
  samples_then_launches(job, 4);
  job.mark(kCompute, Mark::Kind::closes, 21).begins_ns = UINT64_MAX;
  job.call(10, 30);
  const auto found = job.end();
  CHECK(found.known == 1);
  // It computed from 10 to 19.2, and in 0.8 ms four times 0.05 ms.
  CHECK(found.exposed_ns == 20 * kMs - (9 * kMs + kMs / 5) - kMs / 5);
}

TEST_CASE("a mark that the device reaches at once has found the stream empty") {
  Job job;
  job.mark(kCompute, Mark::Kind::opens, 0);
  sampled(job, 1, 10);
  Mark& at_once = job.mark(kCompute, Mark::Kind::passes, 10);
  at_once.launches = 3;
  at_once.enqueued_ns = at_once.at_ns;
  job.mark(kCompute, Mark::Kind::closes, 11).begins_ns = UINT64_MAX;
  job.call(9, 12);
  CHECK(job.end().exposed_ns == 3 * kMs - 3 * kMs / 20);
}

TEST_CASE("without samples a mark that is reached at once tells nothing of the time before") {
  Job job;
  job.mark(kCompute, Mark::Kind::opens, 0);
  Mark& at_once = job.mark(kCompute, Mark::Kind::closes, 10);
  at_once.launches = 3;
  at_once.enqueued_ns = at_once.at_ns;
  job.call(0, 20);
  CHECK(job.end().exposed_ns == 10 * kMs);
}

TEST_CASE(
    "where it ran dry unseen, launches are taken for eight times as long as they usually are") {
  Job job;
  for (std::uint64_t ms = 0; ms < 10; ++ms) {  // 10 launches each, of 0.1 ms
    Mark& mark = job.mark(kCompute, ms == 0 ? Mark::Kind::opens : Mark::Kind::passes, ms);
    mark.launches = 10;
  }
  Mark& found_empty = job.mark(kCompute, Mark::Kind::opens, 60);
  found_empty.launches = 2;
  found_empty.dry_from_ns = 9 * kMs;
  found_empty.dry_to_ns = found_empty.idle_to_ns = found_empty.fed_from_ns = 60 * kMs;
  found_empty.empty = true;
  job.mark(kCompute, Mark::Kind::closes, 61).begins_ns = UINT64_MAX;
  job.call(20, 30);
  const auto found = job.end();
  CHECK(found.known == 1);
  CHECK(found.exposed_ns == 10 * kMs);
  Pages<Interval> computed;
  job.exposure().computed(1, 0, 60 * kMs, computed);
  REQUIRE(computed.size() == 2);
  CHECK(!computed.begin()->unsure);
  CHECK(computed.begin()->to_ns == 9 * kMs);
  CHECK((computed.begin() + 1)->unsure);
  CHECK((computed.begin() + 1)->to_ns == 9 * kMs + 8 * 2 * kMs / 10);
}

TEST_CASE("half of what is unsure is what samples say") {
  for (const std::uint32_t fed : {4U, 12U}) {  // 0.2 and 0.6 ms of 0.8
    Job job;
    samples_then_launches(job, fed);
    Pages<Interval> computed;
    job.exposure().computed(1, 19 * kMs + kMs / 5, 20 * kMs, computed);
    std::uint64_t twice = 0;
    for (const Interval& i : computed) twice += (i.unsure ? 1 : 2) * (i.to_ns - i.from_ns);
    CHECK(twice == 2 * fed * kMs / 20);
  }
}

TEST_CASE("samples say nothing of long times") {
  Job job;
  job.mark(kCompute, Mark::Kind::opens, 0);
  sampled(job, 1, 10);
  Mark& found_empty = job.mark(kCompute, Mark::Kind::opens, 40);
  found_empty.dry_from_ns = found_empty.fed_from_ns = 10 * kMs;
  found_empty.dry_to_ns = found_empty.idle_to_ns = 40 * kMs;
  found_empty.fed = 4;
  found_empty.empty = true;
  job.mark(kCompute, Mark::Kind::closes, 41).begins_ns = UINT64_MAX;
  job.call(20, 30);
  CHECK(job.end().unknown == 1);
}

TEST_CASE("marks that could not be made leave doubt, and its reason") {
  Job job;
  job.computes(kCompute, 0, 5);
  Mark& later = job.mark(kCompute, Mark::Kind::opens, 35);
  later.unseen_before = true;
  later.why = ExposureLost::no_pair;
  job.mark(kCompute, Mark::Kind::closes, 50);
  job.call(10, 30);
  const auto found = job.end();
  CHECK(found.unknown == 1);
  CHECK(found.why == ExposureLost::no_pair);
}

TEST_CASE("what a stream did last is not known at the end") {
  Job job;
  job.mark(kCompute, Mark::Kind::opens, 15);
  job.call(10, 30);
  const auto found = job.end();
  CHECK(found.unknown == 1);
  CHECK(found.why == ExposureLost::unread);
}

TEST_CASE("hours of computation take no more room than what calls still need") {
  Job job;
  for (std::uint64_t ms = 0; ms < 400'000; ms += 2) {
    job.computes(kCompute, ms, ms + 1);
    if (ms % 1000 != 0) continue;
    job.call(ms, ms + 2);
    job.exposure().begin_look((ms + 2) * kMs);
    const auto found = job.settle(false);
    CHECK(found.known == 1);
    CHECK(found.exposed_ns == kMs);
  }
}

namespace {

// The computation of a job's first device from one ms to another: "0-10 10-20?" where ? is unsure.
std::string computed(Job& job, std::uint64_t from, std::uint64_t to, std::uint32_t devices = 1) {
  Pages<Interval> found;
  job.exposure().computed(devices, from * kMs, to * kMs, found);
  std::string words;
  for (const Interval& i : found) {
    words += (words.empty() ? "" : " ") + std::to_string(i.from_ns / kMs) + "-" +
             std::to_string(i.to_ns / kMs) + (i.unsure ? "?" : "");
  }
  return words;
}

}  // namespace

TEST_CASE("a device computes while any of its streams does") {
  Job job;
  job.computes(kCompute, 0, 20);
  job.computes(kOther, 15, 25);
  job.computes(kCompute, 40, 45);
  job.computes(kOther, 45, 50);
  job.mark(kGather, Mark::Kind::opens, 60).device = 1;
  job.mark(kGather, Mark::Kind::closes, 70).device = 1;
  CHECK(computed(job, 0, 100) == "0-25 40-50");
  CHECK(computed(job, 10, 42) == "10-25 40-42");
  CHECK(computed(job, 0, 100, 2) == "60-70");
  CHECK(computed(job, 0, 100, 3) == "0-25 40-50 60-70");  // contexts of one device
}

TEST_CASE("what a stream may have computed is unsure where no other one certainly did") {
  Job job;
  job.mark(kCompute, Mark::Kind::opens, 0);
  Mark& again = job.mark(kCompute, Mark::Kind::opens, 40);
  again.dry_from_ns = 5 * kMs;
  again.dry_to_ns = again.idle_to_ns = 30 * kMs;
  again.empty = true;
  job.mark(kCompute, Mark::Kind::closes, 50);
  CHECK(computed(job, 0, 60) == "0-5 5-30? 40-50");
  job.computes(kOther, 10, 20);
  CHECK(computed(job, 0, 60) == "0-5 5-10? 10-20 20-30? 40-50");
  CHECK(computed(job, 12, 25) == "12-20 20-25?");
}

TEST_CASE("what is not known of a stream is unsure, and never idle") {
  Job job;
  job.computes(kCompute, 0, 5);
  Mark& later = job.mark(kCompute, Mark::Kind::opens, 35);
  later.unseen_before = true;
  CHECK(computed(job, 0, 50) == "0-5 5-50?");  // and what follows the last mark
  job.mark(kCompute, Mark::Kind::closes, 50);
  CHECK(computed(job, 0, 60) == "0-5 5-35? 35-50");
  job.exposure().begin_look(100 * kMs);
  CHECK(job.exposure().known_until(1) == 100 * kMs);
  job.exposure().standing({.stream = kCompute, .enqueued_ns = 70 * kMs});
  CHECK(job.exposure().known_until(1) == 70 * kMs);
  CHECK(computed(job, 0, 100) == "0-5 5-35? 35-50 70-100?");
  job.exposure().no_room();
  CHECK(computed(job, 0, 100) == "0-5 5-35? 35-50 50-100?");
}

namespace {

// Keeps what intervals become: "0-10 15-20?", with "<12" where the device was idle from 12 on.
struct Lines {
  Intervals intervals;
  std::string words;
  bool full = false;  // there is no room

  auto put() {
    return [this](const Interval& i, std::uint64_t idle_from_ns) {
      if (full) return false;
      const auto us = [](std::uint64_t ns) { return std::to_string(ns / 1000); };
      words += (words.empty() ? "" : " ") + us(i.from_ns) + "-" + us(i.to_ns);
      if (i.unsure) words += "?";
      if (idle_from_ns != i.from_ns) words += "<" + us(idle_from_ns);
      return true;
    };
  }
  void add(std::uint64_t from_us, std::uint64_t to_us, bool unsure = false) {
    intervals.add({from_us * 1000, to_us * 1000, unsure}, put());
  }
  void known(std::uint64_t us) { intervals.known(us * 1000, put()); }
  void end(std::uint64_t us) { intervals.end(us * 1000, put()); }
};

}  // namespace

TEST_CASE("computation has one line until the device was idle, and no line before that is known") {
  Lines lines;
  lines.add(100, 200);
  lines.known(200);
  CHECK(lines.words.empty());
  lines.add(200, 300);
  lines.add(305, 400);  // kernels that follow each other
  lines.known(405);
  CHECK(lines.words.empty());
  lines.known(450);
  CHECK(lines.words == "100-400");
  lines.add(450, 500);
  lines.add(500, 600, true);
  lines.add(602, 603);  // too short for a line
  lines.add(603, 700);
  lines.end(900);
  CHECK(lines.words == "100-400 450-500<400 500-603? 603-700 900-900?<700");
  lines.add(1000, 1100);  // of what was between nothing is known
  lines.end(1100);
  CHECK(lines.words.ends_with("900-900?<700 1000-1100"));
}

TEST_CASE("computation that goes on is told in pieces that touch") {
  Lines lines;
  for (std::uint64_t ms = 0; ms < 500; ms += 10) {
    lines.add(ms * 1000, (ms + 10) * 1000);
    lines.known((ms + 10) * 1000);
  }
  lines.end(500'000);
  CHECK(lines.words == "0-200000 200000-400000 400000-500000");
}

TEST_CASE("where there was no room for a line the next one is unsure of all that was lost") {
  Lines lines;
  lines.add(100, 200);
  lines.known(300);
  lines.full = true;
  lines.add(300, 400);
  lines.add(500, 600);
  lines.known(700);
  lines.full = false;
  lines.add(800, 900);
  lines.known(1000);
  lines.add(1100, 1200);
  lines.end(1200);
  CHECK(lines.words == "100-200 300-1000?<200 1100-1200<1000");
}
