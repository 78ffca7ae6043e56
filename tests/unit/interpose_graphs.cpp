// The contents of CUDA graphs, and what their launches execute.
#include "catch2.h"
#include "interpose/record/graph_contents.h"
#include "interpose_world.h"

using namespace tprof;
using namespace tprof::test;

namespace {

LedgerKey::Words key(Fn fn, std::uint64_t bytes) {
  return key_words(static_cast<std::uint8_t>(fn), Bucket::H2D, kDtypeByte, Mode::captured,
                   bytes_class(bytes), 1, 0);
}

graphs::Call copy(std::uint64_t bytes) {
  return {key(Fn::cudaMemcpyAsync, bytes), bytes};
}

struct Moved {
  std::uint64_t calls = 0, bytes = 0;
  bool operator==(const Moved&) const = default;
};

Moved replayed() {
  Pages<Total> totals;
  collect_totals(World::view(), totals);
  Moved sums;
  for (const Total& t : totals) {
    if (t.key.mode != Mode::replayed) continue;
    sums.calls += t.values.calls;
    sums.bytes += t.values.count;
  }
  return sums;
}

// False: the ledger has no row for it, and its launches are counted as unknown.
bool launch(Thread& t, std::uint32_t entry, std::uint64_t times) {
  const LedgerKey::Words key = key_words(kMetaLaunch, Bucket{}, 0, Mode::direct, 0, 0, entry);
  if (find_own_row(t, key) == nullptr) return false;
  Transaction transaction(t);
  transaction.values(key).calls += times;
  return true;
}

struct Forget {
  ~Forget() { graph_contents::forget_all(); }
};

}  // namespace

TEST_CASE("replays are launches times what was executed, with as many executables as one likes") {
  World world;
  const Forget forget;
  Thread& t = world.thread(1, 64);
  Moved expected;
  for (std::uint64_t i = 1; i <= 20000; ++i) {
    const std::uint64_t bytes = 100 + i % 3;
    const graphs::Call calls[] = {copy(bytes), copy(2000)};
    const std::uint32_t entry = graph_contents::entry_of(t, calls, true);
    REQUIRE(entry != 0);
    launch(t, entry, 2);
    expected.calls += 4;
    expected.bytes += 2 * (bytes + 2000);
  }
  CHECK(replayed() == expected);
}

TEST_CASE("a new executable has an entry of its own, an updated one that of what it executes") {
  World world;
  const Forget forget;
  Thread& t = world.thread(1, 64);
  const graphs::Call small[] = {copy(10)};
  const graphs::Call large[] = {copy(1000), copy(10)};
  const std::uint32_t first = graph_contents::entry_of(t, small, true);
  CHECK(graph_contents::entry_of(t, small, true) != first);
  const std::uint32_t updated = graph_contents::entry_of(t, large, false);
  CHECK(updated != first);
  CHECK(graph_contents::entry_of(t, large, false) == updated);
}

TEST_CASE("more different graphs than there is room for are not counted, and none wrongly") {
  World world;
  const Forget forget;
  Thread& t = world.thread(1, 64);
  Moved expected;
  for (std::uint64_t bytes = 1;; ++bytes) {
    REQUIRE(bytes < 100000);
    const graphs::Call calls[] = {copy(bytes)};
    const std::uint32_t entry = graph_contents::entry_of(t, calls, true);
    if (entry == 0) break;
    if (!launch(t, entry, 1)) continue;
    expected.calls += 1;
    expected.bytes += bytes;
  }
  CHECK(expected.calls > 8000);
  CHECK(replayed() == expected);
}
