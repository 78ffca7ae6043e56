// device/exposure.h: how much of calls was exposed, for schedules whose answer is arithmetic.
#include <algorithm>
#include <vector>

#include "catch2.h"
#include "interpose_exposure_job.h"

using namespace tprof;
using namespace tprof::test;

namespace {

// The last of so many launches was through at `last`; the stream was found empty at `at`, in ms.
void found_empty(Job& job, std::uint64_t last, std::uint64_t at, std::uint32_t launches = 1) {
  Mark& mark = job.mark(kCompute, Mark::Kind::opens, at);
  mark.last_ns = last * kMs;
  mark.enqueued_ns = mark.made_ns = mark.at_ns;
  mark.launches = launches;
  mark.empty = true;
}

// So many launches came, the first at `begins`, before a mark that was reached as it was made; in
// ms.
Mark& launched(Job& job, std::uint64_t begins, std::uint64_t at, std::uint32_t launches) {
  Mark& mark = job.mark(kCompute, Mark::Kind::closes, at);
  mark.begins_ns = begins * kMs;
  mark.last_ns = mark.enqueued_ns = mark.made_ns = mark.at_ns;
  mark.launches = launches;
  return mark;
}

}  // namespace

TEST_CASE("exposed is the part of a call from 10 to 30 in which no stream of its device computed") {
  struct Span {
    std::uint64_t stream, from, to;
    std::uint8_t device = 0;
  };
  const struct {
    const char* name;
    std::vector<Span> computes;
    std::uint64_t stream, exposed_ms, late;
  } rows[] = {
      {"one stream", {{kCompute, 0, 22}, {kCompute, 30, 50}}, kGather, 8, 1},
      {"it came in time", {{kCompute, 0, 50}}, kGather, 0, 0},
      {"moments in which two compute", {{kCompute, 0, 20}, {kOther, 15, 25}}, kGather, 5, 1},
      {"its own stream hides nothing", {{kCompute, 0, 10}, {kOther, 15, 20}}, kCompute, 15, 1},
      {"nor does another device", {{kCompute, 0, 5}, {kOther, 0, 50, 1}}, kGather, 20, 1},
  };
  for (const auto& row : rows) {
    INFO(row.name);
    Job job;
    for (const Span& span : row.computes) {
      job.mark(span.stream, Mark::Kind::opens, span.from).device = span.device;
      job.mark(span.stream, Mark::Kind::closes, span.to).device = span.device;
    }
    job.call(10, 30, row.stream);
    const auto found = job.end();
    CHECK(found.known == 1);
    CHECK(found.device_ns == 20 * kMs);
    CHECK(found.exposed_ns == row.exposed_ms * kMs);
    CHECK(found.late == row.late);
  }
}

TEST_CASE("what is not known has a reason") {
  for (const ExposureLost why : {ExposureLost::no_launch, ExposureLost::host_late,
                                 ExposureLost::no_pair, ExposureLost::unread}) {
    Job job;
    if (why == ExposureLost::host_late) {  // it ran dry at an unknown time
      job.mark(kCompute, Mark::Kind::opens, 0);
      found_empty(job, 5, 40);
      job.mark(kCompute, Mark::Kind::closes, 50);
    }
    if (why == ExposureLost::no_pair) {  // marks could not be made
      job.computes(kCompute, 0, 5);
      Mark& later = job.mark(kCompute, Mark::Kind::opens, 35);
      later.unseen_before = true;
      later.why = why;
      job.mark(kCompute, Mark::Kind::closes, 50);
    }
    if (why == ExposureLost::unread)
      job.mark(kCompute, Mark::Kind::opens, 15);  // nor what it did last
    job.call(10, 30);
    const auto found = job.end();
    CHECK(found.unknown == 1);
    CHECK(found.why == why);
  }
}

TEST_CASE("a call waits until its streams are known, and no longer") {
  Job job;
  job.exposure().begin_reading(100 * kMs);
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
  job.exposure().begin_reading(100 * kMs);
  job.stands(kCompute, 20);
  CHECK(job.settle(false).known == 0);
  job.exposure().begin_reading(100 * kMs);
  CHECK(job.settle(false).known == 1);
}

TEST_CASE("a stream may have run dry while the host was away in making a mark") {
  for (const std::uint64_t made_ms : {10, 16, 14}) {  // at once, and before and after `at`
    Job job;
    job.mark(kCompute, Mark::Kind::opens, 0);
    Mark& mark = job.mark(kCompute, Mark::Kind::closes, 15);
    mark.enqueued_ns = 10 * kMs;
    mark.made_ns = made_ms * kMs;
    job.call(12, 30);
    const auto found = job.end();
    CHECK(found.unknown == (made_ms == 16 ? 1 : 0));
    if (found.unknown == 0) CHECK(found.exposed_ns == 15 * kMs);
  }
}

TEST_CASE("half of a short doubt is taken for computation") {
  Job job;
  job.mark(kCompute, Mark::Kind::opens, 0);
  found_empty(job, 11, 12);
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

// Launches of 0.05 ms, each of which is a sample, one in each 0.1 ms from one time to the other.
static void samples(Job& job, std::uint64_t from, std::uint64_t to) {
  constexpr std::uint64_t kEach = kMs / 10;
  job.mark(kCompute, Mark::Kind::passes, from);
  for (std::uint64_t at = from * kMs; at < to * kMs; at += kEach) {
    Mark& mark = job.mark(kCompute, Mark::Kind::passes, 0);
    mark.begins_ns = mark.last_ns = mark.enqueued_ns = mark.made_ns = at;
    mark.at_ns = at + kEach / 2;
    mark.first_ns = kEach;
    mark.launches = 1;
    mark.sample = true;
  }
}

TEST_CASE("samples tell for how long a stream is idle between launches") {
  Job job;
  job.mark(kCompute, Mark::Kind::opens, 0);
  samples(job, 1, 10);
  // 100 launches, a tenth of a millisecond apart, without a mark between them.
  launched(job, 10, 20, 100).gaps[Mark::gap_kind(kMs / 10)] = 99;
  job.call(10, 30);
  const auto found = job.end();
  CHECK(found.known == 1);
  CHECK(found.exposed_ns == 10 * kMs + 99 * kMs / 20);
}

TEST_CASE("where the device has fallen behind its host, it is not idle") {
  Job job;
  job.mark(kCompute, Mark::Kind::opens, 0);
  samples(job, 1, 10);
  // The host made the same launches before 10, and the device reached the last mark then.
  job.mark(kCompute, Mark::Kind::passes, 10);
  Mark& mark = job.mark(kCompute, Mark::Kind::closes, 20);
  mark.begins_ns = 5 * kMs;
  mark.last_ns = mark.enqueued_ns = mark.made_ns = 9 * kMs;
  mark.launches = 100;
  mark.gaps[Mark::gap_kind(kMs / 10)] = 99;
  job.call(10, 30);
  CHECK(job.end().exposed_ns == 10 * kMs);
}

TEST_CASE("a sample of a device that has fallen behind its host does not count") {
  Job job;
  job.mark(kCompute, Mark::Kind::opens, 1);
  for (std::uint64_t i = 2; i < 100; ++i) {  // the host is done with them by 0.1 ms
    Mark& behind = job.mark(kCompute, Mark::Kind::passes, i);
    behind.begins_ns = behind.last_ns = behind.enqueued_ns = behind.made_ns = i * kMs / 1000;
    behind.first_ns = kMs / 1000;
    behind.launches = 1;
    behind.sample = true;
  }
  launched(job, 100, 200, 1000).gaps[0] = 999;
  job.call(110, 190);
  const auto found = job.end();
  CHECK(found.unknown == 1);
  CHECK(found.why == ExposureLost::host_late);
}

TEST_CASE("nor does one behind a launch that took long, whose kernel ran nobody knows when") {
  Job job;
  job.mark(kCompute, Mark::Kind::opens, 0);
  for (std::uint64_t ms = 1; ms < 100; ++ms) {
    Mark& slow = job.mark(kCompute, Mark::Kind::passes, ms);
    slow.begins_ns = slow.slow_from_ns = ms * kMs - kMs / 2;
    slow.enqueued_ns = slow.made_ns = ms * kMs;
    slow.first_ns = kMs;
    slow.launches = 1;
    slow.sample = true;
  }
  launched(job, 100, 200, 1000).gaps[0] = 999;
  job.call(110, 190);
  CHECK(job.end().unknown == 1);
}

TEST_CASE("a mark that is reached at once has found the stream empty") {
  for (const std::uint64_t tail : {0, 2}) {  // ms for which the host did nothing before the mark
    Job job;
    job.mark(kCompute, Mark::Kind::opens, 0);
    for (std::uint64_t ms = 1; ms < 10; ++ms) {  // launches of a millisecond
      Mark& mark = job.mark(kCompute, Mark::Kind::passes, ms);
      mark.launches = 2;
    }
    Mark& at_once = job.mark(kCompute, Mark::Kind::closes, 11 + tail);
    at_once.begins_ns = 9 * kMs;
    at_once.last_ns = 11 * kMs;
    at_once.enqueued_ns = at_once.made_ns = at_once.at_ns;
    at_once.launches = 4;
    job.call(9, 20);
    const auto found = job.end();
    CHECK(found.known == 1);
    // Four launches take half a millisecond each, so that none of the last one is left at 11; it
    // may be half of it, as nobody knows.
    CHECK(found.exposed_ns == 9 * kMs - (tail == 0 ? 0 : kMs / 4));
  }
}

TEST_CASE("without samples nobody knows how long a stream was idle between launches") {
  Job job;
  job.mark(kCompute, Mark::Kind::opens, 0);
  Mark& mark = job.mark(kCompute, Mark::Kind::closes, 10);
  mark.last_ns = mark.enqueued_ns = mark.made_ns = mark.at_ns;
  mark.launches = 4;
  mark.gaps[6] = 3;
  job.call(0, 20);
  CHECK(job.end().unknown == 1);
}

TEST_CASE("where it ran dry unseen, one launch may have taken eight times as long as usual") {
  Job job;
  for (std::uint64_t ms = 0; ms < 10; ++ms) {  // 10 launches each, of 0.1 ms
    Mark& mark = job.mark(kCompute, ms == 0 ? Mark::Kind::opens : Mark::Kind::passes, ms);
    mark.launches = 10;
  }
  found_empty(job, 9, 60, 2);
  job.mark(kCompute, Mark::Kind::closes, 61).begins_ns = UINT64_MAX;
  job.call(20, 30);
  Pages<Interval> computed;
  job.exposure().computed(1, 0, 60 * kMs, computed);
  REQUIRE(computed.size() == 2);
  CHECK(!computed.begin()->unsure);
  CHECK(computed.begin()->to_ns == 9 * kMs);
  // Twice as much as two launches usually take is unsure: half of that counts.
  CHECK((computed.begin() + 1)->unsure);
  CHECK((computed.begin() + 1)->to_ns == 9 * kMs + 2 * 2 * kMs / 10);
  const auto found = job.end();
  CHECK(found.known == 1);
  CHECK(found.exposed_ns == 10 * kMs);
}

TEST_CASE("hours of computation take no more room than what calls still need") {
  Job job;
  for (std::uint64_t ms = 0; ms < 400'000; ms += 2) {
    job.computes(kCompute, ms, ms + 1);
    if (ms % 1000 != 0) continue;
    job.call(ms, ms + 2);
    job.exposure().begin_reading((ms + 2) * kMs);
    const auto found = job.settle(false);
    CHECK(found.known == 1);
    CHECK(found.exposed_ns == kMs);
  }
}
