// device/pace.h: what a stream's next mark says of how the host fed it.
#include "interpose/device/pace.h"

#include <numeric>

#include "catch2.h"

using tprof::device::Mark;
using tprof::device::streams::Pace;

namespace {

constexpr std::uint64_t kUs = 1'000;

struct Launcher {
  Pace pace{};
  std::uint64_t now = 10'000'000'000;

  void marked() { pace.marked(now); }
  // A launch that returns so long behind the last one.
  void launch(std::uint64_t behind = 20 * kUs, std::uint64_t takes = 5 * kUs) {
    now += behind - takes;
    pace.begins(now, false);
    now += takes;
    pace.launched(now);
  }
  Mark mark() {
    const Mark mark{pace.fed()};
    pace.marked(now);
    return mark;
  }
};

}  // namespace

TEST_CASE("a stream's work begins when the first launch behind a mark is through") {
  Launcher host;
  host.launch();
  host.marked();
  host.launch(30 * kUs);
  const Mark mark = host.mark();
  CHECK(mark.begins_ns == host.now);
  CHECK(mark.first_ns == 30 * kUs);
  CHECK(mark.last_ns == host.now);
  CHECK(mark.launches == 1);
  CHECK(std::accumulate(std::begin(mark.gaps), std::end(mark.gaps), 0U) == 0);
  CHECK(host.mark().begins_ns == UINT64_MAX);
}

TEST_CASE("launches but the first are counted by how long they came behind the one before") {
  Launcher host;
  host.marked();
  host.launch();
  for (int i = 0; i < 3; ++i) host.launch(10 * kUs);
  host.launch(300 * kUs);
  const Mark mark = host.mark();
  CHECK(mark.launches == 5);
  CHECK(mark.gaps[Mark::gap_kind(10 * kUs)] == 3);
  CHECK(mark.gaps[Mark::gap_kind(300 * kUs)] == 1);
}

TEST_CASE("nobody knows when in a launch that took long its kernel began") {
  for (const bool first : {true, false}) {
    Launcher host;
    host.marked();
    if (!first) host.launch();
    const std::uint64_t before = host.now;
    host.launch(710 * kUs, 700 * kUs);
    CHECK(host.pace.wants_mark(host.now));
    const Mark mark = host.mark();
    CHECK(mark.slow_from_ns == host.now - 700 * kUs);
    CHECK(mark.begins_ns == (first ? mark.slow_from_ns : before));
    CHECK(mark.last_ns == (first ? 0 : before));
    CHECK(host.mark().slow_from_ns == 0);
  }
}

TEST_CASE("a stream that is launched on gets a mark in each millisecond") {
  Launcher host;
  host.launch();
  host.marked();
  host.launch(900 * kUs);
  CHECK(!host.pace.wants_mark(host.now));
  host.launch(900 * kUs);
  CHECK(host.pace.wants_mark(host.now));
  host.marked();
  host.launch(900 * kUs);
  CHECK(!host.pace.wants_mark(host.now));
}

TEST_CASE("one of 48 launches is a sample, at no regular distance, and one of 8 at first") {
  Launcher host;
  int launches = 0;
  for (int samples = 0; samples < 64; ++launches) {
    host.launch();
    samples += host.pace.wants_sample() ? 1 : 0;
  }
  CHECK(launches > 64 * 6);
  CHECK(launches < 64 * 10);
  std::vector<int> distances;
  for (int i = 0, last = 0; i < 48'000; ++i) {
    host.launch();
    if (!host.pace.wants_sample()) continue;
    distances.push_back(i - last);
    last = i;
  }
  CHECK(distances.size() > 960);
  CHECK(distances.size() < 1040);
  const auto [least, most] = std::minmax_element(distances.begin() + 1, distances.end());
  CHECK(*least == 24);
  CHECK(*most == 71);
}

TEST_CASE("a launch behind a thousand others waits for room") {
  Launcher host;
  host.marked();
  for (int i = 0; i < 1000; ++i) {
    host.launch();
    REQUIRE(host.pace.waited_ns() == 0);
  }
  host.launch();
  CHECK(host.pace.waited_ns() == 5 * kUs);
  host.pace.answered(true, host.now);
  host.launch();
  CHECK(host.pace.waited_ns() == 0);
}

TEST_CASE("events and copies take room too, so that a long launch may wait behind fewer") {
  Launcher host;
  host.marked();
  for (int i = 0; i < 300; ++i) host.launch();
  host.launch(30'000 * kUs, 29'000 * kUs);
  CHECK(host.pace.waited_ns() == 29'000 * kUs);
  host.marked();
  CHECK(!host.pace.wants_mark(host.now));
  // It is full from here on.
  host.launch();
  CHECK(host.pace.waited_ns() == 5 * kUs);
}
