// steps/flow.h: where a stage of a pipeline has got an answer to all that it sent.
#include "catch2.h"
#include "steps/flow.h"

using namespace tprof;

namespace {

// A stage's messages, as letters: S and R to and from the next stage, s and r the one before;
// A is a small all-reduce, C a batch.
struct Stage {
  explicit Stage(std::string_view calls) {
    read::Comm& world = rank.comms[1];
    world.id = text::Kept("world");
    world.rank = 1;
    std::map<char, std::uint64_t> numbers;
    for (const char c : calls) {
      read::Event e;
      e.ts_ns = ++now;
      if (c == 'C') {
        e.bucket = Bucket::H2D;
        e.bytes = e.count = 4096;
      } else {
        e.comm = 1;
        e.numbered = true;
        e.count = c == 'A' ? 1 : 64;
        e.bytes = 4 * e.count;
        e.bucket = c == 'A' ? Bucket::ALLREDUCE : Bucket::P2P;
        e.name = text::Kept(c == 'A'               ? "ncclAllReduce"
                            : c == 'S' || c == 's' ? "ncclSend"
                                                   : "ncclRecv");
        if (c != 'A') e.peer = c == 'S' || c == 'R' ? 2 : 0;
        e.seq = numbers[c]++;
      }
      sequence.add(e);
    }
  }
  std::optional<steps::Flow> flow(bool closed = true) const {
    return steps::find_flow(sequence, rank, closed, now + 1);
  }

  read::Process rank;
  steps::Sequence sequence;
  std::int64_t now = 0;
};

std::string times(std::string_view what, int n) {
  std::string all;
  for (int i = 0; i < n; ++i) all += what;
  return all;
}

}  // namespace

TEST_CASE("a stage runs empty after each step, the last one after each micro-batch", "[flow]") {
  const auto first = Stage(times("CSCSCSRCSRRRA", 7)).flow();
  REQUIRE(first);
  CHECK(first->count() == 7);
  CHECK(first->several);
  CHECK(first->told);
  CHECK(first->at_ns == std::vector<std::int64_t>{1, 14, 27, 40, 53, 66, 79, 92});
  CHECK(first->sent == std::vector<std::uint64_t>{0, 4, 8, 12, 16, 20, 24, 28});
  CHECK(first->neighbours[0].leads);
  const auto last = Stage(times("rsrsrsrsA", 7)).flow();
  REQUIRE(last);
  CHECK(last->count() == 28);
  CHECK(!last->several);
  CHECK(!last->told);
  CHECK(!last->neighbours[0].leads);
}

TEST_CASE("one micro-batch of several tensors is not taken for several", "[flow]") {
  const auto tensors = Stage(times("SSSRRR", 7)).flow();
  REQUIRE(tensors);
  CHECK(tensors->count() == 7);
  CHECK(!tensors->several);
  const auto middle = Stage(times("rSrSRsRs", 7)).flow();
  REQUIRE(middle);
  CHECK(middle->several);
}

TEST_CASE("what is never answered is no flow, and what comes between steps is in none", "[flow]") {
  CHECK(!Stage(times("S", 50)).flow());
  CHECK(!Stage(times("rS", 50)).flow());  // forward passes
  CHECK(!Stage(times("C", 50)).flow());
  const auto evaluated = Stage(times("SSRSRRSSSS", 7)).flow();  // four more forward passes
  REQUIRE(evaluated);
  CHECK(evaluated->count() == 7);
}

TEST_CASE("a step in which the rank was killed does not count", "[flow]") {
  const auto killed = Stage(times("SSRSRR", 7) + "SSR").flow(false);
  REQUIRE(killed);
  CHECK(killed->count() == 7);
}
