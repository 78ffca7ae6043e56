// format/step_mark.h and steps/: what marks a step, and which step a moment is in.
#include "interpose/write/steps.h"

#include <memory>

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

TEST_CASE("A step that ended gives way to the next before its end is known", "[steps]") {
  StepIntervals steps;
  steps.add(0, 100, StepInterval::kOpen);
  steps.forget_seen();
  steps.add(1, 300, StepInterval::kOpen);  // open now; the end of the first is still in a ring
  steps.add(0, 100, 250);
  steps.drop_unseen();
  REQUIRE(steps.at(249) != nullptr);
  CHECK(steps.at(249)->step == 0);
  CHECK(steps.at(250) == nullptr);  // between two
  CHECK(steps.at(10'000)->step == 1);
  StepInterval taken;
  CHECK_FALSE(steps.take(249, taken));
  REQUIRE(steps.take(250, taken));
  CHECK((taken.step == 0 && taken.from_ns == 100 && taken.to_ns == 250));
  steps.add(0, 100, 250);  // looked at again
  CHECK(steps.at(200) == nullptr);
}

TEST_CASE("A range within a step is none, and one whose end was lost is forgotten", "[steps]") {
  StepIntervals steps;
  steps.add(5, 100, 500);
  steps.add(6, 200, 300);
  CHECK(steps.at(250)->step == 5);
  steps.add(7, 600, StepInterval::kOpen);
  steps.forget_seen();
  steps.drop_unseen();
  REQUIRE(steps.at(700) != nullptr);  // on its way from the open ranges into a ring
  steps.forget_seen();
  steps.drop_unseen();
  CHECK(steps.at(700) == nullptr);
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

TEST_CASE("Each call that ends a step begins the next", "[steps]") {
  StepIntervals steps;
  steps.add(-1, 0, StepInterval::kOpen);
  for (const std::uint64_t end : {100U, 200U, 200U, 300U}) steps.cut(-1, end);
  CHECK(steps.at(99)->step == 1);
  CHECK(steps.at(100)->step == 2);
  CHECK(steps.at(299)->step == 3);
  CHECK(steps.at(1'000)->step == 4);
  StepInterval taken;
  REQUIRE(steps.take(150, taken));
  steps.cut(-1, 100);  // looked at again
  CHECK(steps.at(150)->step == 2);
}

TEST_CASE("A call that returns while marks are looked for is drained when its mark was seen",
          "[steps]") {
  World world;
  Thread& t = world.thread(1, 64);
  copy_text(World::view().head().step_mark, "call:cudaMemcpyAsync@4");
  const auto steps = std::make_unique<Steps>(World::view());
  const auto progress = std::make_unique<Progress>();
  const std::uint64_t* until = nullptr;
  copy_to_device(t, 8);
  copy_call<Fn::cudaMemcpyAsync>(t,
                                 {.dst = nullptr,
                                  .src = &t,
                                  .bytes = 4,
                                  .kind = cudaMemcpyHostToDevice,
                                  .stream = nullptr,
                                  .sync = false},
                                 [&] {
                                   until = steps->begin(*progress, nullptr);
                                   return cudaSuccess;
                                 });
  CHECK(until[0] == 1);
  CHECK(steps->begin(*progress, nullptr)[0] == 2);
}
