// exposure/exposure.h: how much of calls was exposed, for schedules whose answer is arithmetic.
#include <algorithm>

#include "catch2.h"
#include "interpose_exposure_job.h"

using namespace tprof;
using namespace tprof::test;

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
