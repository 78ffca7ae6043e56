// exposure/feed.h: what a stream's next mark says of how the host fed it.
#include "interpose/exposure/feed.h"

#include "catch2.h"

using tprof::timing::Mark;
using tprof::timing::busy::Feed;

namespace {

constexpr std::uint64_t kUs = 1'000;

struct Host {
  Feed feed{};
  std::uint64_t now = 10'000'000'000;

  void marked() { feed.marked(now); }
  // A launch, 60 us after the one before, which finds the stream so.
  void launch(bool empty, std::uint64_t takes = 5 * kUs) {
    now += 60 * kUs;
    REQUIRE(feed.should_ask(now, true));
    feed.begins(now, false);
    feed.answered(empty, now);
    feed.launches(empty);
    now += takes;
    feed.launched(now, true);
  }
  Mark mark(bool sample = false) {
    Mark mark;
    feed.put_into(mark, sample);
    feed.marked(now);
    return mark;
  }
};

}  // namespace

TEST_CASE("a stream's work begins when the first launch behind a mark is through") {
  Host host;
  host.marked();
  host.launch(true);
  const Mark mark = host.mark();
  CHECK(mark.begins_ns == host.now);
  CHECK(mark.launches == 1);
  CHECK(mark.dry_to_ns == 0);
  CHECK(host.mark().begins_ns == UINT64_MAX);
}

TEST_CASE("nobody knows when in a launch that took long its kernel began") {
  for (const bool first : {true, false}) {
    Host host;
    host.marked();
    if (!first) host.launch(true);
    const std::uint64_t before = host.now;
    host.launch(true, 700 * kUs);
    const Mark mark = host.mark();
    CHECK(mark.dry_from_ns == (first ? host.now - 700 * kUs : before - 5 * kUs));
    CHECK((!first || mark.begins_ns == mark.dry_from_ns));
    CHECK(mark.dry_to_ns == host.now);
    CHECK(mark.idle_to_ns == host.now);
    CHECK(mark.fed == 0);
  }
}

TEST_CASE("between two moments at which the stream was empty all launches are counted") {
  Host host;
  host.marked();
  host.launch(true);
  const std::uint64_t first = host.now;
  host.launch(true);
  host.launch(true);
  const Mark mark = host.mark();
  CHECK(mark.launches == 3);
  CHECK(mark.fed == 2);
  CHECK(mark.fed_from_ns == first - 5 * kUs);
  CHECK(mark.dry_to_ns == host.now - 5 * kUs);
  CHECK(mark.idle_to_ns == host.now);
}

TEST_CASE("behind a moment at which it was busy nobody knows when it ran dry") {
  Host host;
  host.marked();
  host.launch(true);
  host.launch(false);
  const std::uint64_t busy = host.now;
  host.launch(true);
  const Mark mark = host.mark();
  CHECK(mark.dry_from_ns == busy);
  CHECK(mark.dry_to_ns == host.now - 5 * kUs);
  CHECK(mark.fed_from_ns == mark.dry_to_ns);
  CHECK(mark.fed == 0);
}

TEST_CASE("a sample counts if its launch was through before the next one") {
  for (const bool through : {true, false}) {
    Host host;
    host.marked();
    host.launch(true);
    host.launch(true);
    CHECK(host.feed.wants_sample(host.now));
    CHECK(host.mark(true).sample);
    host.launch(through);
    CHECK(!host.feed.wants_sample(host.now));
    const Mark mark = host.mark();
    CHECK(mark.sampled == through);
    CHECK(!mark.sample);
  }
}

TEST_CASE("a launch behind a thousand others waits for room") {
  Feed feed;
  std::uint64_t now = 10'000'000'000;
  const auto launch = [&](std::uint64_t takes) {
    feed.begins(now, false);
    feed.launches(false);
    feed.launched(now += takes, true);
    return feed.waited_ns();
  };
  feed.marked(now);
  for (int i = 0; i < 1000; ++i) REQUIRE(launch(4 * kUs) == 0);
  CHECK(launch(8 * kUs) == 8 * kUs);
  feed.answered(true, now);
  CHECK(launch(8 * kUs) == 0);
}
