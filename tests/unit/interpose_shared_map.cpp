// base/shared_map.h against std::unordered_map.
#include <atomic>
#include <fstream>
#include <random>
#include <thread>
#include <unordered_map>
#include <vector>

#include "catch2.h"
#include "interpose/base/shared_map.h"

using namespace tprof;

namespace {

const void* handle(std::uint64_t n) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): never dereferenced
  return reinterpret_cast<const void*>(n);
}
const void* object(std::uint64_t n) {
  return handle(0x7f0000000000 + 16 * n);
}
long pages() {
  long n = 0;
  std::ifstream("/proc/self/statm") >> n;
  return n;
}

}  // namespace

TEST_CASE("a shared map answers as std::unordered_map does, whatever the order of operations") {
  const std::uint32_t most = GENERATE(10U, 200U, 5000U);
  SharedMap<std::uint32_t> map{LockOrder::handles};
  std::unordered_map<std::uint64_t, std::uint32_t> expected;
  std::mt19937 random(3);
  for (std::uint32_t step = 1; step <= 200000; ++step) {
    const std::uint64_t n = random() % (2 * most);
    switch (random() % 4) {
      case 0:
      case 1:
        if (expected.size() < most || expected.contains(n)) {
          REQUIRE(map.insert(object(n), step));
          expected[n] = step;
        }
        break;
      case 2:
        map.erase(object(n));
        expected.erase(n);
        break;
      default:
        REQUIRE(map.find(object(n)) == (expected.contains(n) ? expected[n] : 0));
    }
  }
  map.clear();
  for (std::uint64_t n = 0; n < 2 * most; ++n) REQUIRE(map.find(object(n)) == 0);
}

TEST_CASE("a handle that is nobody's is not known, whatever came and went") {
  const std::uint64_t nobody = GENERATE(std::uint64_t{0}, std::uint64_t{1});
  SharedMap<std::uint32_t> map{LockOrder::handles};
  CHECK(map.find(handle(nobody)) == 0);
  for (std::uint32_t n = 0; n < 100; ++n) map.insert(object(n), n + 1);
  for (std::uint32_t n = 0; n < 100; n += 2) map.erase(object(n));
  CHECK_FALSE(map.insert(handle(nobody), 7));
  map.erase(handle(nobody));
  CHECK(map.find(handle(nobody)) == 0);
  for (std::uint32_t n = 0; n < 100; ++n) CHECK(map.find(object(n)) == (n % 2 == 0 ? 0 : n + 1));
}

TEST_CASE("handles at the ends of the address space are handles like others") {
  SharedMap<std::uint32_t> map{LockOrder::handles};
  for (const std::uint64_t n : {std::uint64_t{2}, ~std::uint64_t{0}, ~std::uint64_t{0} - 1}) {
    CHECK(map.find(handle(n)) == 0);
    CHECK(map.insert(handle(n), 5));
    CHECK(map.find(handle(n)) == 5);
  }
}

TEST_CASE("handles that come and go for ever take no more and more memory") {
  SharedMap<std::uint32_t> map{LockOrder::handles};
  const long before = pages();
  std::uint64_t oldest = 0;
  for (std::uint64_t n = 0; n < 1'000'000; ++n) {
    REQUIRE(map.insert(object(n), 1));
    if (n >= 100) map.erase(object(oldest++));
  }
  CHECK(pages() - before < 64);
}

TEST_CASE("a shared map's readers see each entry while it grows and others come and go") {
  SharedMap<std::uint64_t> map{LockOrder::handles};
  for (std::uint64_t n = 0; n < 50; ++n) map.insert(object(n), n + 1);
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> wrong{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      while (!over) {
        for (std::uint64_t n = 0; n < 50; ++n) wrong += map.find(object(n)) != n + 1 ? 1 : 0;
        for (std::uint64_t n = 50; n < 20'000; ++n) {
          const std::uint64_t found = map.find(object(n));
          wrong += found != 0 && found != n + 1 ? 1 : 0;
        }
      }
    });
  }
  for (int round = 0; round < 5; ++round) {
    for (std::uint64_t n = 50; n < 20'000; ++n) map.insert(object(n), n + 1);
    for (std::uint64_t n = 50; n < 20'000; ++n) map.erase(object(n));
  }
  over = true;
  for (std::thread& reader : readers) reader.join();
  CHECK(wrong == 0);
}
