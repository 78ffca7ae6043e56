// write/step_repeats.h: the operation that ends each step, where nobody marks it.
#include <vector>

#include "catch2.h"
#include "interpose/write/step_repeats.h"

using namespace tprof;

namespace {

constexpr std::uint64_t kMiB = 1 << 20;

// A program's operations, one after the other; `ended` has the number of operations after which
// each step was found to end.
struct Program {
  Repeats repeats;
  std::size_t made = 0;
  std::vector<std::size_t> ended{};

  void make(const Operation& op) {
    ++made;
    if (repeats.ends_step(op)) ended.push_back(made);
  }
  void copy(std::uint64_t bytes) { make({0, bytes, made, false, false, false}); }
  void gather(std::uint64_t count, bool forward) {
    make({count, count, made, true, false, !forward});
  }
  void reduce(std::uint64_t count) { make({~count, count, made, true, true, true}); }

  // FSDP's operations: layers are alike, the root differs, and each reduction has a metadata copy.
  void forward(int layers) {
    gather(3 * kMiB, true);
    for (int i = 0; i < layers; ++i) gather(kMiB, true);
  }
  void backward(int layers) {
    for (int i = 0; i < layers; ++i) {
      gather(kMiB, false);
      copy(256);
      reduce(kMiB);
    }
    reduce(3 * kMiB);
  }
};

}  // namespace

TEST_CASE("A step of many equal layers is found as a whole, and always at the same place",
          "[repeats]") {
  for (const int layers : {1, 3, 32, 100}) {
    CAPTURE(layers);
    Program p;
    std::size_t of_step = 0;
    for (int step = 0; step < 30; ++step) {
      const std::size_t before = p.made;
      p.copy(64 << 10);
      p.forward(layers);
      p.backward(layers);
      of_step = p.made - before;
    }
    REQUIRE(p.ended.size() >= 15);
    for (const std::size_t at : p.ended) CHECK(at % of_step == 0);
  }
}

TEST_CASE("An evaluation between steps and a rare checkpoint move no step's end", "[repeats]") {
  Program p;
  std::vector<std::size_t> truth;
  for (int step = 0; step < 60; ++step) {
    p.copy(64 << 10);
    p.forward(8);
    p.backward(8);
    truth.push_back(p.made);
    if (step % 5 == 4) p.forward(8);
    if (step == 40) {
      for (std::uint64_t i = 0; i < 9; ++i) p.gather(5 * kMiB + i, true);
    }
  }
  REQUIRE(p.ended.size() >= 40);
  const std::vector last(truth.end() - static_cast<std::ptrdiff_t>(p.ended.size()), truth.end());
  CHECK(p.ended == last);
}

TEST_CASE("Where nothing repeats, or nothing comes in, no step is found", "[repeats]") {
  Program varied;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    varied.copy(64 << 10);
    varied.reduce(kMiB + i);
  }
  CHECK(varied.ended.empty());
  Program alone;
  for (int i = 0; i < 2000; ++i) alone.reduce(kMiB);
  CHECK(alone.ended.empty());
}

TEST_CASE("A program that goes on otherwise is looked at again", "[repeats]") {
  Program p;
  for (int step = 0; step < 20; ++step) {
    p.copy(64 << 10);
    p.forward(4);
    p.backward(4);
  }
  REQUIRE(p.repeats.found());
  for (std::uint64_t i = 0; i < 200; ++i) p.gather(7 * kMiB + i, true);
  CHECK_FALSE(p.repeats.found());
  const std::size_t then = p.made;
  p.ended.clear();
  for (int step = 0; step < 60; ++step) {
    p.copy(64 << 10);
    p.gather(9 * kMiB, true);
    p.reduce(2 * kMiB);
    p.reduce(4 * kMiB);
  }
  REQUIRE(p.ended.size() >= 10);
  for (const std::size_t at : p.ended) CHECK((at - then) % 4 == 0);
}
