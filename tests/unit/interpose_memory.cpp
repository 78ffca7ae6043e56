// calls/memory.h: what kind of host memory an address is.
#include <atomic>
#include <map>
#include <random>
#include <thread>

#include "catch2.h"
#include "interpose/calls/memory.h"

using namespace tprof;

namespace {

void* at(std::uint64_t address) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): never dereferenced
  return reinterpret_cast<void*>(0x100000 + address);
}

}  // namespace

TEST_CASE("an address has the kind of the range that holds it") {
  struct Range {
    std::uint64_t bytes;
    HostMemory kind;
  };
  std::map<std::uint64_t, Range> expected;
  std::mt19937 random(4);
  for (int step = 0; step < 20000; ++step) {
    const std::uint64_t place = random() % 500;
    const std::uint64_t begin = place * 100;
    if (random() % 2 == 0) {
      if (expected.contains(begin)) continue;
      const Range r{1 + random() % 100, random() % 2 ? HostMemory::pinned : HostMemory::managed};
      expected[begin] = r;
      memory::add(at(begin), r.bytes, r.kind);
    } else {
      expected.erase(begin);
      memory::remove(at(begin));
    }
    const std::uint64_t probe = random() % 50100;
    const auto next = expected.upper_bound(probe);
    HostMemory kind = HostMemory::unknown;
    if (next != expected.begin()) {
      const auto& [first, range] = *std::prev(next);
      if (probe < first + range.bytes) kind = range.kind;
    }
    REQUIRE(memory::kind_of(at(probe)) == kind);
  }
  for (const auto& [begin, range] : expected) memory::remove(at(begin));
  CHECK(memory::kind_of(at(0)) == HostMemory::unknown);
}

TEST_CASE("a reader never sees the kind of another range while the table changes") {
  memory::add(at(50'000), 100, HostMemory::pinned);
  std::atomic<bool> done{false};
  std::atomic<int> wrong{0};
  std::thread reader([&] {
    while (!done) {
      const HostMemory inside = memory::kind_of(at(50'050));
      if (inside != HostMemory::pinned && inside != HostMemory::unknown) ++wrong;
      if (memory::kind_of(at(60'000)) != HostMemory::unknown) ++wrong;
    }
  });
  for (int i = 0; i < 20000; ++i) {
    memory::add(at(10), 100, HostMemory::managed);
    memory::add(at(70'000), 100, HostMemory::managed);
    memory::remove(at(10));
    memory::remove(at(70'000));
  }
  done = true;
  reader.join();
  CHECK(wrong == 0);
  memory::remove(at(50'000));
}
