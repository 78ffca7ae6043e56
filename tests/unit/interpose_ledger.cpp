// format/ledger.h and calls/: transactions over one and several rows, seen at any moment.
#include <atomic>
#include <cstring>
#include <map>
#include <random>
#include <thread>

#include "catch2.h"
#include "interpose_world.h"

using namespace tprof;
using namespace tprof::test;

namespace {

LedgerKey::Words key(std::uint32_t comm) {
  return key_words(1, Bucket::ALLGATHER, 7, Mode::direct, 3, comm, 0);
}

// A copy of the memory made now, and what a reader finds of a communicator in it.
struct Copy {
  std::vector<std::byte> bytes;
  explicit Copy(const View& view)
      : bytes(reinterpret_cast<std::byte*>(&view.head()),
              reinterpret_cast<std::byte*>(&view.head()) + view.head().used.load()) {}
  LedgerValues of(std::uint32_t comm) {
    LedgerValues found{};
    View(bytes.data(), bytes.size()).each_row([&](const LedgerRow& row, const ThreadArea& t) {
      if (key_of(row).comm == comm) found = read_row(row, t.committed);
    });
    return found;
  }
};

}  // namespace

TEST_CASE("a ledger key is the same as a struct, as words and in a row") {
  LedgerKey k{};
  k.function = 9;
  k.bucket = Bucket::H2D;
  k.dtype = kDtypeByte;
  k.mode = Mode::captured;
  k.bytes_class = -1;
  k.host_memory = HostMemory::pageable;
  k.comm = 0xfedcba98;
  k.graph = 0x12345678;
  const auto words = key_words(k.function, k.bucket, k.dtype, k.mode, k.bytes_class, k.comm,
                               k.graph, k.host_memory);
  CHECK(words.low == k.low());
  CHECK(words.high == k.high());
  LedgerRow row{};
  row.key_low = words.low;
  row.key_high = words.high;
  CHECK(std::memcmp(&k, std::addressof(static_cast<const LedgerKey&>(key_of(row))), sizeof k) == 0);
}

TEST_CASE("bytes_class is the floor of log2, and -1 for nothing") {
  CHECK(bytes_class(0) == -1);
  for (int bit = 0; bit < 64; ++bit) {
    const std::uint64_t power = std::uint64_t{1} << bit;
    CHECK(bytes_class(power) == bit);
    CHECK(bytes_class(power | (power - 1)) == bit);
  }
}

TEST_CASE("a transaction is not there until it ends, and then it is there whole") {
  World world;
  Thread& t = world.thread(1, 64);
  for (std::uint64_t n = 1; n <= 5; ++n) {
    {
      Transaction transaction(t);
      for (const std::uint32_t comm : {1U, 2U, 3U}) {
        LedgerValues& v = transaction.values(key(comm));
        ++v.calls;
        v.count += 10 * n;
        Copy killed(world.view());
        CHECK(killed.of(1).calls == n - 1);
        CHECK(killed.of(2).calls == n - 1);
        CHECK(killed.of(3).calls == n - 1);
      }
      transaction.values(key(1)).failed += 2;  // the same row again
    }
    Copy killed(world.view());
    for (const std::uint32_t comm : {1U, 2U, 3U}) {
      CHECK(killed.of(comm).calls == n);
      CHECK(killed.of(comm).count == 5 * n * (n + 1));
    }
    CHECK(killed.of(1).failed == 2 * n);
    CHECK(killed.of(2).failed == 0);
  }
}

TEST_CASE("any keys in any order add up as a map does, over all levels of the table") {
  World world;
  Thread& t = world.thread(1, 64);
  std::map<std::uint32_t, std::uint64_t> expected;
  std::mt19937 random(5);
  for (int i = 0; i < 60000; ++i) {
    const std::uint32_t comm = 1 + random() % 6000;
    Transaction transaction(t);
    transaction.values(key(comm)).count += static_cast<std::uint64_t>(i);
    transaction.values(key(comm)).calls += 1;
    expected[comm] += static_cast<std::uint64_t>(i);
  }
  std::map<std::uint32_t, std::uint64_t> found;
  world.view().each_row([&](const LedgerRow& row, const ThreadArea& area) {
    found[key_of(row).comm] += read_row(row, area.committed).count;
  });
  CHECK(found == expected);
}

TEST_CASE("a reader sees no half transaction while the thread goes on") {
  World world;
  Thread& t = world.thread(1, 64);
  { Transaction(t).values(key(1)); }
  std::uint64_t count = 1;
  const LedgerRow* row = &row_of(t, key(1), count);
  std::atomic<bool> done{false};
  std::uint64_t wrong = 0;
  std::thread reader([&] {
    std::uint64_t last = 0;
    while (!done) {
      const LedgerValues v = read_row(*row, t.area->committed);
      wrong += v.count != 3 * v.calls || v.host_ns != 5 * v.calls || v.failed != 7 * v.calls;
      wrong += v.calls < last;
      last = v.calls;
    }
  });
  constexpr std::uint64_t kCalls = 300000;
  for (std::uint64_t i = 0; i < kCalls; ++i) {
    Transaction transaction(t);
    LedgerValues& v = transaction.values(key(1));
    v.calls += 1, v.count += 3, v.host_ns += 5, v.failed += 7;
  }
  done = true;
  reader.join();
  CHECK(wrong == 0);
  CHECK(read_row(*row, t.area->committed).calls == kCalls);
}
