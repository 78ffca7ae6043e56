// device/exposure.h: when the devices of a job computed, and when nobody knows.
#include <string>

#include "catch2.h"
#include "interpose_exposure_job.h"

using namespace tprof;
using namespace tprof::test;

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
  Mark& again = job.mark(kCompute, Mark::Kind::opens, 30);
  again.last_ns = 5 * kMs;
  again.enqueued_ns = again.made_ns = again.at_ns;
  again.empty = true;
  job.mark(kCompute, Mark::Kind::closes, 50).begins_ns = 40 * kMs;
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
  job.exposure().begin_reading(100 * kMs);
  CHECK(job.exposure().known_until(1) == 100 * kMs);
  job.stands(kCompute, 70);
  CHECK(job.exposure().known_until(1) == 70 * kMs);
  CHECK(computed(job, 0, 100) == "0-5 5-35? 35-50 70-100?");
  job.exposure().no_room();
  CHECK(computed(job, 0, 100) == "0-5 5-35? 35-50 50-100?");
}
