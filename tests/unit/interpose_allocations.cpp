// record/: what is allocated, against a model that shares nothing with it; base/shared_map.h.
#include <algorithm>
#include <map>
#include <memory>
#include <random>

#include "catch2.h"
#include "interpose/base/shared_map.h"
#include "interpose/format/ring_file.h"
#include "interpose/record/allocations.h"

using namespace tprof;

namespace {

std::uint64_t at(std::uint64_t address) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): never dereferenced
  return allocations::key_of(reinterpret_cast<const void*>(0x7f0000000000 + 64 * address));
}

// The count belongs to the process, so each test begins as the child of a fork does.
struct Counted {
  Counted() { allocations::after_fork(); }
  ~Counted() { allocations::after_fork(); }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

  std::uint64_t bytes(std::uint8_t place) const { return head->memory[place].bytes; }
  std::uint64_t peak(std::uint8_t place) const { return head->memory[place].peak; }

  std::unique_ptr<Head> head = std::make_unique<Head>();
};

}  // namespace

TEST_CASE("a map is a map, whatever comes and goes") {
  SharedMap<std::uint64_t> map(LockOrder::handles);
  std::map<std::uint64_t, std::uint64_t> model;
  std::mt19937_64 random(7);
  for (int i = 0; i < 200'000; ++i) {
    const std::uint64_t key = (1 + random() % 3000) << 20;
    const auto known = model.find(key);
    std::uint64_t found = 0;
    REQUIRE(map.find(key, found) == (known != model.end()));
    if (known == model.end()) {
      REQUIRE(map.insert(key, model[key] = random()));
      continue;
    }
    REQUIRE(found == known->second);
    if (random() % 3 == 0) continue;
    map.erase(key);
    model.erase(known);
  }
  map.each([&](std::uint64_t key, std::uint64_t) {
    if ((key >> 20 & 1) != 0) map.erase(key);
  });
  std::erase_if(model, [](const auto& entry) { return entry.first >> 20 & 1; });
  std::size_t left = 0;
  map.each([&](std::uint64_t key, std::uint64_t value) { left += model.at(key) == value ? 1 : 0; });
  CHECK(left == model.size());
  std::uint64_t value = 0;
  for (const auto& [key, known] : model) CHECK((map.find(key, value) && value == known));
  map.clear();
  CHECK_FALSE(map.find(model.begin()->first, value));
}

TEST_CASE("allocations and frees add up, refused frees and lost ones too") {
  const Counted b;
  allocations::publish(*b.head);
  struct Memory {
    std::uint64_t bytes;
    std::uint8_t place;
  };
  std::map<std::uint64_t, Memory> model;
  std::map<std::uint8_t, std::uint64_t> now, peak;
  std::mt19937 random(3);
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t address = 1 + random() % 2000;
    const auto known = model.find(address);
    if (known == model.end() || random() % 50 == 0) {  // sometimes over one that nobody freed
      const std::uint8_t places[] = {0, 1, kOtherDevice, kPinnedMemory, kManagedMemory};
      const Memory m{random() % 5000, places[random() % 5]};
      if (known != model.end()) now[known->second.place] -= known->second.bytes;
      model[address] = m;
      now[m.place] += m.bytes;
      peak[m.place] = std::max(peak[m.place], now[m.place]);
      allocations::allocated(at(address), m.bytes, m.place, 0);
    } else {
      const allocations::Taken taken = allocations::take(at(address));
      REQUIRE(taken.entry.bytes == known->second.bytes);
      if (random() % 4 == 0) {
        allocations::put_back(taken);
      } else {
        now[known->second.place] -= known->second.bytes;
        model.erase(known);
      }
    }
    REQUIRE(allocations::take(at(3000)).key == 0);
  }
  for (const auto& [place, bytes] : now) {
    CHECK(b.bytes(place) == bytes);
    CHECK(b.peak(place) == peak[place]);
  }
  CHECK(b.head->memory_known == 1);
}

TEST_CASE("what was counted before the session is in it, and a reset frees a device's") {
  const Counted b;
  allocations::allocated(at(1), 100, 0, 0);
  allocations::allocated(at(2), 200, 1, 1);
  allocations::allocated(at(3), 400, kPinnedMemory, 1);
  allocations::allocated(at(4), 800, 1, 1);
  allocations::take(at(1));
  allocations::publish(*b.head);
  CHECK((b.bytes(0) == 0 && b.peak(0) == 100));
  allocations::device_was_reset(1);
  CHECK((b.bytes(1) == 0 && b.peak(1) == 1000));
  CHECK((b.bytes(kPinnedMemory) == 0 && b.peak(kPinnedMemory) == 400));
}

TEST_CASE("physical memory is there until its last handle is released") {
  const Counted b;
  allocations::publish(*b.head);
  struct Block {
    std::uint64_t bytes;
    int handles;
  };
  std::map<std::uint64_t, Block> model;  // by handle
  std::uint64_t now = 0, peak = 0, next = 1;
  std::mt19937 random(11);
  for (int i = 0; i < 50'000; ++i) {
    if (model.size() < 20 || random() % 6 == 0) {
      const std::uint64_t bytes = 1 + random() % 1000;
      allocations::allocated(allocations::key_of_handle(next), bytes, 2, -1);
      model[next++] = {bytes, 1};
      peak = std::max(peak, now += bytes);
    }
    auto chosen = model.begin();
    std::advance(chosen, static_cast<std::ptrdiff_t>(random() % model.size()));
    auto& [handle, block] = *chosen;
    if (random() % 3 == 0) {
      allocations::retained(allocations::key_of_handle(handle));
      ++block.handles;
    } else {
      const allocations::Taken taken = allocations::take(allocations::key_of_handle(handle));
      if (random() % 4 == 0) {
        allocations::put_back(taken);
      } else if (--block.handles == 0) {
        now -= block.bytes;
        model.erase(handle);
      }
    }
    allocations::device_was_reset(2);  // leaves it alone
    REQUIRE(b.bytes(2) == now);
  }
  CHECK(b.peak(2) == peak);
}
