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

namespace {

Moved amounts(std::uint64_t calls, std::uint64_t bytes) {
  const auto n = static_cast<double>(bytes);
  return {static_cast<double>(calls), n, n};
}

const Key kReduction{Bucket::ALLREDUCE, "ncclAllReduce", "float32", 2, 20};
const Key kGather{Bucket::ALLGATHER, "ncclAllGather", "float32", 2, 20};

}  // namespace

TEST_CASE("a call that a step lacks does not hide another of another type", "[budget]") {
  RankSteps steps{9};
  Key weights = kGather;
  weights.dtype = "bfloat16";
  weights.bytes_class = 21;
  for (std::size_t i = 0; i < 9; ++i) {
    const std::uint64_t calls = i == 7 ? 12 : 13;  // behind an evaluation the root is there already
    steps.add(i, weights, amounts(calls, calls << 21));
    if (i == 3 || i == 7) steps.add(i, kGather, amounts(1, 1 << 19));
  }
  const Usual u = usual_of(steps);
  REQUIRE(u.others.size() == 2);
  for (const auto& [i, more] : u.others) {
    Figures of;  // on communicators of any size
    for (const auto& [key, moved] : more) of[kind_of(key)] += moved;
    CHECK(of.at(kind_of(kGather)) == amounts(1, 1 << 19));
    CHECK(of.count(kind_of(weights)) == (i == 7 ? 1 : 0));
  }
}

TEST_CASE("where no step is usual, collectives are the mean without setup", "[budget]") {
  RankSteps steps{5};
  for (std::size_t i = 0; i < 5; ++i) steps.add(i, kReduction, amounts(1, 1000 * i));
  steps.add(0, kGather, amounts(9, 4096));
  const Usual u = usual_of(steps);
  CHECK_FALSE(u.usual);
  CHECK(u.left_out == 3);
  CHECK(u.steps == 2);
  CHECK(u.figures.at(kReduction).bytes == 3500);
  CHECK_FALSE(u.figures.contains(kGather));
  CHECK(u.others.empty());
}
