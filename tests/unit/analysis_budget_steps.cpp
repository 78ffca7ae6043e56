// budget/measured.h: which steps of a run are measured, and how they are made of the found ones.
#include "budget/measured.h"
#include "catch2.h"

using namespace tprof;
using namespace tprof::budget;

TEST_CASE("setup ends with the last of three steps that does not come again", "[budget]") {
  CHECK(setup_steps({}) == 0);
  CHECK(setup_steps({1}) == 0);
  CHECK(setup_steps({1, 1, 1, 1}) == 0);
  CHECK(setup_steps({2, 1, 1, 1, 1}) == 1);
  CHECK(setup_steps({1, 2, 1, 1, 1}) == 2);
  CHECK(setup_steps({5, 6, 7, 1, 1}) == 3);
  CHECK(setup_steps({1, 2, 1, 2, 1, 2}) == 0);  // an evaluation every two steps
  CHECK(setup_steps({1, 1, 1, 1, 2, 1}) == 0);  // not at the beginning
  CHECK(setup_steps({5, 6, 7, 8, 1, 1}) == 3);
}

TEST_CASE("the usual step is what more than half of them are", "[budget]") {
  CHECK(usual_step({}) == std::nullopt);
  CHECK(usual_step({7}) == 7);
  CHECK(usual_step({1, 2}) == std::nullopt);
  CHECK(usual_step({1, 2, 1, 2, 1, 2}) == std::nullopt);
  CHECK(usual_step({5, 6, 1, 2, 1, 1, 1}) == 1);
}

TEST_CASE("steps are made of the found ones", "[budget]") {
  steps::Found found{.how = steps::How::period, .whole_steps = false, .steps = {1, 2, 3, 4, 5, 6}};
  CHECK(found_in_step(found, {.steps = 0, .micro_batches = 1}) == 1);
  CHECK(found_in_step(found, {.steps = 0, .micro_batches = 3}) == 3);
  CHECK(found_in_step(found, {.steps = 3, .micro_batches = 1}) == 2);
  CHECK(found_in_step(found, {.steps = 4, .micro_batches = 1}) == 0);
  CHECK(found_in_step(found, {.steps = 12, .micro_batches = 1}) == 0);
  found.whole_steps = true;
  CHECK(found_in_step(found, {.steps = 0, .micro_batches = 3}) == 1);
}
