// format/step_mark.h and steps/: what marks a step, and which step a moment is in.
#include "interpose/write/steps.h"

#include "catch2.h"
#include "interpose/format/step_mark.h"
#include "interpose/write/step_intervals.h"
#include "interpose_world.h"

using namespace tprof;
using namespace tprof::test;

TEST_CASE("TPROF_STEP says a range, a call, nothing, or is refused", "[steps]") {
  StepMark mark;
  REQUIRE(parse_step_mark("nvtx:my step", mark));
  CHECK((mark.by == StepBy::range && mark.name == "my step"));
  REQUIRE(parse_step_mark("call:ncclReduceScatter@128", mark));
  CHECK((mark.by == StepBy::call && mark.name == "ncclReduceScatter" && mark.count == 128));
  REQUIRE(parse_step_mark("call:ncclAllReduce", mark));
  CHECK(mark.count == 0);
  REQUIRE(parse_step_mark("off", mark));
  CHECK(mark.by == StepBy::off);
  for (const char* bad : {"", "on", "nvtx:", "call:", "call:foo", "call:ncclSend@",
                          "call:ncclSend@0", "call:ncclSend@1x", "call:ncclSend@-1"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_step_mark(bad, mark));
  }
  CHECK_FALSE(parse_step_mark("nvtx:" + std::string(kMaxStepMark, 'x'), mark));
}

TEST_CASE("Usual names of steps are known by their number", "[steps]") {
  std::int64_t number = -1;
  CHECK(step_name("ProfilerStep#7", number) == "profilerstep");
  CHECK(number == 7);
  CHECK(step_name("Train Step: 12", number) == "trainstep");
  CHECK(number == 12);
  for (const char* other : {"step", "optimizer step 3", "stepper 3", "block 3", "3", "", "step 3 a",
                            "step 99999999999999999999"}) {
    CAPTURE(other);
    CHECK(step_name(other, number).empty());
  }
  StepMark mark;
  parse_step_mark("nvtx:loop ", mark);
  CHECK((is_step(mark, "loop 4", number) && number == 4));
  CHECK((is_step(mark, "loop ", number) && number == -1));
  CHECK_FALSE(is_step(mark, "loop 4b", number));
}

TEST_CASE("A schedule counts each marked step, and those whose marks were lost", "[steps]") {
  StepIntervals steps;
  steps.add(40, 100, 200);
  steps.add(41, 200, 300);
  steps.add(44, 500, 600, true);  // the marks of two were lost
  steps.add(43, 400, 500);        // on another thread
  steps.add(0, 700, 800);         // an epoch's numbers begin again
  steps.add(1, 800, 900);
  const auto ordinal = [&](std::uint64_t ns) { return steps.at(ns)->ordinal; };
  CHECK(ordinal(150) == 0);
  CHECK(ordinal(250) == 1);
  CHECK(ordinal(450) == 3);
  CHECK(ordinal(550) == 4);
  CHECK(ordinal(750) == 5);
  CHECK(ordinal(850) == 6);
}

TEST_CASE("A program may mark every tenth step only", "[steps]") {
  StepIntervals steps;
  steps.add(0, 100, 200);
  steps.add(10, 200, 300);
  steps.add(20, 300, 400);
  CHECK(steps.at(350)->ordinal == 2);
  steps.add(50, 600, 700, true);  // the marks of two were lost
  CHECK(steps.at(650)->ordinal == 5);
}
