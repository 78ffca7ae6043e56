// format/ledger.h and calls/: transactions over one and several rows, seen at any moment.
#include <atomic>
#include <cstring>
#include <map>
#include <random>
#include <set>
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

TEST_CASE("accepted calls count, refused ones are failed and nothing else") {
  World world;
  Thread& t = world.thread(1, 64);
  ncclComm_t comm = world.communicator(4);
  constexpr auto kInProgress = static_cast<ncclResult_t>(7);
  CHECK(all_gather(t, comm, 100) == ncclSuccess);
  CHECK(all_gather(t, comm, 10, kInProgress) == kInProgress);
  CHECK(all_gather(t, comm, 1000, ncclInvalidArgument) == ncclInvalidArgument);
  const LedgerValues v = total_of(world.view(), Fn::ncclAllGather);
  CHECK(v.calls == 2);
  CHECK(v.count == 110);
  CHECK(v.failed == 1);
  CHECK(copy_to_device(t, 408) == cudaSuccess);
  CHECK(copy_to_device(t, 4, cudaErrorInvalidValue) == cudaErrorInvalidValue);
  const LedgerValues copies = total_of(world.view(), Fn::cudaMemcpyAsync);
  CHECK(copies.calls == 1);
  CHECK(copies.count == 408);
  CHECK(copies.failed == 1);
}

TEST_CASE("a group's calls enter the ledger when its outermost end succeeds, all at once") {
  World world;
  Thread& t = world.thread(1, 64);
  ncclComm_t comm = world.communicator(2);
  group_started(t);
  all_reduce(t, comm, 1);
  group_started(t);
  all_gather(t, comm, 2);
  CHECK(inner_group_ended(t));
  broadcast(t, comm, 3, 0);
  CHECK(total_of(world.view(), Fn::ncclAllReduce).calls == 0);
  CHECK(total_of(world.view(), Fn::ncclAllGather).calls == 0);
  std::size_t open = 0;
  each_open_call(world.view(), [&](const Record&, const ThreadArea&) { ++open; });
  CHECK(open == 3);
  CHECK(t.group_depth == 1);
  group_ended(t, 0, 10, ncclSuccess, false);
  CHECK(total_of(world.view(), Fn::ncclAllReduce).calls == 1);
  CHECK(total_of(world.view(), Fn::ncclAllGather).count == 2);
  CHECK(total_of(world.view(), Fn::ncclBroadcast).count == 3);
}

TEST_CASE("a group that fails or is only simulated leaves failed calls and its numbers") {
  World world;
  Thread& t = world.thread(1, 64);
  ncclComm_t comm = world.communicator(2);
  comms::State& state = comms::state(comms::find(t, comm, nullptr));
  for (const bool simulated : {false, true}) {
    group_started(t);
    all_reduce(t, comm, 1);
    all_gather(t, comm, 2);
    CHECK(state.seq == 2);
    group_ended(t, 0, 10, simulated ? ncclSuccess : ncclInternalError, simulated);
    CHECK(state.seq == 0);
  }
  const LedgerValues v = total_of(world.view(), Fn::ncclAllReduce);
  CHECK(v.calls == 0);
  CHECK(v.failed == 2);
  Pages<Total> totals;
  collect_totals(world.view(), totals);
  for (const Total& total : totals) CHECK(total.key.function != kMetaSignature);
}

TEST_CASE("calls that find the ring full are counted and counted as dropped") {
  World world;
  Thread& t = world.thread(1, 64);
  ncclComm_t comm = world.communicator(2);
  for (int i = 0; i < 100; ++i) all_reduce(t, comm, 1);
  group_started(t);
  for (int i = 0; i < 5; ++i) all_gather(t, comm, 1);
  group_ended(t, 0, 0, ncclSuccess, false);
  CHECK(total_of(world.view(), Fn::ncclAllReduce).calls == 100);
  CHECK(total_of(world.view(), Fn::ncclAllGather).calls == 5);
  CHECK(drops(world.view()) == 100 - 64 + 5);
}

TEST_CASE("calls on communicators that find the table full are counted without one") {
  World world;
  Thread& t = world.thread(1, 64);
  constexpr std::uint32_t kRoom = kTableChunks * kChunkEntries;
  constexpr std::uint32_t kMore = 20;
  for (std::uint32_t i = 1; i <= kRoom + kMore; ++i) {
    ncclComm_t comm = world.communicator(3);
    REQUIRE(comms::find(t, comm, nullptr) == (i <= kRoom ? i : 0));
    if (i % 1000 == 0 || i > kRoom) all_reduce(t, comm, 1);
  }
  CHECK(total_of(world.view(), Fn::ncclAllReduce).calls == kMore + kRoom / 1000);
}
