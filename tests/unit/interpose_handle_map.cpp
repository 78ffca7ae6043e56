// base/handle_map.h against std::unordered_map.
#include <memory>
#include <random>
#include <unordered_map>

#include "catch2.h"
#include "interpose/base/handle_map.h"

using namespace tprof;

namespace {

const void* handle(std::uint64_t n) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): never dereferenced
  return reinterpret_cast<const void*>(0x7f0000000000 + 16 * n);
}

}  // namespace

TEST_CASE("a handle map answers as std::unordered_map does, whatever the order of operations") {
  HandleMap<256> map{};
  std::unordered_map<std::uint64_t, std::uint32_t> expected;
  std::mt19937 random(3);
  for (std::uint32_t step = 1; step <= 200000; ++step) {
    const std::uint64_t n = random() % 400;
    switch (random() % 4) {
      case 0:
      case 1:
        if (expected.size() < 200 || expected.contains(n)) {
          REQUIRE(map.insert(handle(n), step));
          expected[n] = step;
        }
        break;
      case 2:
        map.erase(handle(n));
        expected.erase(n);
        break;
      default:
        REQUIRE(map.find(handle(n)) == (expected.contains(n) ? expected[n] : 0));
    }
  }
}

TEST_CASE("a full handle map says so and forgets nothing") {
  HandleMap<64> map{};
  for (std::uint32_t n = 0; n < 64; ++n) REQUIRE(map.insert(handle(n), n + 1));
  CHECK_FALSE(map.insert(handle(64), 65));
  for (std::uint32_t n = 0; n < 64; ++n) CHECK(map.find(handle(n)) == n + 1);
  CHECK(map.find(handle(64)) == 0);
  map.erase(handle(7));
  CHECK(map.insert(handle(64), 65));
  CHECK(map.find(handle(64)) == 65);
  CHECK(map.find(handle(7)) == 0);
}

TEST_CASE("clearing empties a handle map and frees the lock that a fork copied") {
  HandleMap<64> map{};
  map.insert(handle(1), 1);
  map.clear();
  CHECK(map.find(handle(1)) == 0);
  CHECK(map.insert(handle(2), 2));
}
