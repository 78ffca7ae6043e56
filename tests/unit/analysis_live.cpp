// live/: rates and totals between looks, and files that grow while they are read.
#include <fstream>

#include "analysis_traces.h"
#include "catch2.h"
#include "live/follow.h"
#include "live/table.h"

using namespace tprof;
using namespace tprof::test;

namespace {

constexpr auto kAllGather = static_cast<std::size_t>(Bucket::ALLGATHER);

read::Process running(const char* file) {
  read::Process process;
  process.file = file;
  process.end = read::End::running;
  return process;
}

// Returns a rank as of one look, with so many calls of 8 bytes each.
live::Rank rank_of(const read::Process& process, std::int64_t as_of_ns, std::uint64_t calls) {
  live::Rank rank{.process = &process, .as_of_ns = as_of_ns};
  rank.all = rank.buckets[kAllGather] = {.calls = calls, .bytes = 8 * calls};
  return rank;
}

}  // namespace

TEST_CASE("a rate is what came between two looks, by the process's own clock") {
  const read::Process process = running("r.json");
  live::History history;
  const live::Rank first = rank_of(process, 1'000'000'000, 100);
  history.look({first});
  CHECK(!history.rate(first, kAllGather));  // it was not there before
  const live::Rank second = rank_of(process, 3'500'000'000, 350);
  history.look({second});
  CHECK(history.rate(second, kAllGather)->calls == 100);
  CHECK(history.rate(second, live::kAllBuckets)->bytes == 800);
  CHECK(history.rate(second, 1)->calls == 0);
  CHECK(history.total(second, kAllGather).calls == 350);

  history.reset();
  const live::Rank third = rank_of(process, 4'500'000'000, 360);
  history.look({third});
  CHECK(history.rate(third, kAllGather)->calls == 10);
  CHECK(history.total(third, kAllGather).calls == 10);
  // A process that comes after the reset is counted from its beginning.
  const read::Process restarted = running("r.r1.json");
  const live::Rank other = rank_of(restarted, 1, 7);
  history.look({third, other});
  CHECK(history.total(other, kAllGather).calls == 7);
  CHECK(!history.rate(third, kAllGather));  // no time has gone by
}

TEST_CASE("what does not run, and what only a snapshot tells of, has no rate") {
  read::Process process = running("r.json");
  process.snapshot = true;
  live::History history;
  history.look({rank_of(process, 1, 1)});
  const live::Rank later = rank_of(process, 10, 5);
  history.look({later});
  CHECK(!history.rate(later, kAllGather));
  process.snapshot = false;
  process.end = read::End::closed;
  CHECK(!history.rate(later, kAllGather));
}

TEST_CASE("lines of a file that grows come whole, once, and in their order") {
  const Folder folder;
  const auto path = folder.write("r.json", "one\ntw");
  live::FollowedFile all(path, 0);
  live::FollowedFile later(path, 5);  // within the second line
  const auto read = [](live::FollowedFile& file) {
    std::string lines;
    while (file.next(lines)) {
    }
    return lines;
  };
  CHECK(read(all) == "one\n");
  CHECK(read(later).empty());
  std::ofstream(path, std::ios::app) << "o\nthree\nfo";
  CHECK(read(all) == "two\nthree\n");
  CHECK(read(later) == "three\n");
  CHECK(read(all).empty());
  std::ofstream(path, std::ios::app) << "ur\n";
  CHECK(read(all) == "four\n");
  CHECK(read(later) == "four\n");
}

TEST_CASE("of a followed file whole lines are given, as far as it is settled") {
  const Folder folder;
  const auto path = folder.path() / "rank-00000.json";
  std::ofstream(path) << "[\none\ntwo\nthr";
  live::FollowedFile file(path, 0);
  std::string lines;
  CHECK(file.has_grown());
  CHECK(file.next(lines, 6));
  CHECK(lines == "[\none\n");
  CHECK(file.has_grown());
  CHECK_FALSE(file.next(lines, 6));
  // The rest of the file may be written anew.
  std::ofstream(path) << "[\none\nTWO\nTHREE\n";
  lines.clear();
  CHECK(file.next(lines));
  CHECK(lines == "TWO\nTHREE\n");
  CHECK_FALSE(file.has_grown());
}
