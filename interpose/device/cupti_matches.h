// Matches device work to our calls. CUPTI numbers the calls of the runtime and of the driver. Some
// records say that such a call was part of one of ours; others say when its work ran. They come in
// any order. This file knows nothing else of CUPTI.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "interpose/device/cupti_calls.h"

namespace tprof::device {

enum class Work : std::uint8_t { nccl, kernel, copy };
inline constexpr std::size_t kWorks = 3;

// The time from when the device began the work to when it had finished all of it. The types below
// are all zeros at first, so they can lie in pages that nobody has touched.
struct Ran {
  std::uint64_t start_ns;
  std::uint64_t end_ns;

  bool any() const { return end_ns != 0; }
  void add(const Ran& other) {
    if (!other.any()) return;
    start_ns = any() ? std::min(start_ns, other.start_ns) : other.start_ns;
    end_ns = std::max(end_ns, other.end_ns);
  }
};

struct Found {
  Ran ran[kWorks];
  bool impossible;  // some of its work has impossible times
  bool any;

  void add(const Found& other) {
    for (std::size_t i = 0; i < kWorks; ++i) ran[i].add(other.ran[i]);
    impossible = impossible || other.impossible;
    any = any || other.any;
  }
};

class Matches {
 public:
  // Notes that CUPTI's `call` is part of our call `id`.
  void is_part(std::uint32_t call, std::uint64_t id) {
    Entry* e = entry(call);
    if (e == nullptr) return;
    e->id = id;
    if (e->found.any) add(id, std::exchange(e->found, {}));
  }
  // Adds work of `call`.
  void ran(std::uint32_t call, const Found& found) {
    Entry* e = entry(call);
    if (e == nullptr) return;
    e->id == 0 ? e->found.add(found) : add(e->id, found);
  }

  // Returns the work that was found for the call so far.
  const Found& found_for(std::uint64_t id) {
    static constexpr Found kNothing{};
    const Place& p = place_[cupti_calls::place_of(id)];
    return p.id == id ? p.found : kNothing;
  }

 private:
  // The number of CUPTI's latest calls that are remembered.
  static constexpr std::uint32_t kCalls = 1U << 16;
  struct Entry {
    std::uint32_t call;
    std::uint64_t id;  // 0: not known
    Found found;       // work that came before the id was known
  };
  struct Place {
    std::uint64_t id;
    Found found;
  };

  // Null: a later call has its place.
  Entry* entry(std::uint32_t call) {
    Entry& e = entry_[call % kCalls];
    if (e.call == call) return &e;
    if (static_cast<std::int32_t>(call - e.call) < 0 && e.call != 0) return nullptr;
    e = {call, 0, {}};
    return &e;
  }
  void add(std::uint64_t id, const Found& found) {
    Place& p = place_[cupti_calls::place_of(id)];
    if (id < p.id) return;  // the call was given up, and another call has its place
    if (p.id != id) p = {id, {}};
    p.found.add(found);
  }

  Entry entry_[kCalls];
  Place place_[cupti_calls::kPlaces];
};

}  // namespace tprof::device
