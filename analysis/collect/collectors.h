// Collectors that several diagnoses share; one that a diagnosis has alone is in its own file.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collect/intervals.h"
#include "collect/lines.h"

namespace tprof::collect {

// The calls that returned, by communicator.
struct ReturnedCalls : Collector {
  using Collector::Collector;
  void call(const read::Event& e) override;
  const Intervals& collectives(std::int64_t comm) const;  // empty where there is no line
  void state(team::Archive& archive) override { archive(numbers); }

  std::map<std::int64_t, Intervals> numbers;  // of collectives that have a line
};

// Where a rank stood when its trace ended.
struct LastCalls : Collector {
  using Collector::Collector;
  void call(const read::Event& e) override;
  void launch(const read::Event& e) override { remember(e); }
  void last_call(const read::Event& e) override;
  void life(const read::LifeCall& c) override;
  void state(team::Archive& archive) override {
    archive(open, open_life, failed_life, last, begun, last_collective, from_ring_);
  }

  bool knows_last() const;  // the ring tells, or all that was called has a line

  std::vector<read::Event> open;               // calls that never returned
  std::vector<read::LifeCall> open_life;       // those of a communicator's life
  std::vector<read::LifeCall> failed_life;     // those that were refused, the first few
  std::optional<read::Event> last;             // the call, launch or such a call that began last
  std::map<std::int64_t, std::int64_t> begun;  // by communicator: when its first was called
  // They are of a process that did not close, by communicator.
  std::map<std::int64_t, read::Event> last_collective;

 private:
  void remember(const read::Event& e);
  bool from_ring_ = false;  // which tells what it did last, whatever has lines
};

// NVTX ranges that were pushed and not popped: of a thread outermost first.
struct OpenRanges : Collector {
  using Collector::Collector;
  void open_range(const read::Range& range) override;
  void state(team::Archive& archive) override { archive(ranges); }

  std::vector<read::Range> ranges;
};

// A ledger is cumulative: what it once said stays. A file in which it does not contradicts itself.
struct DecreasedLedgers : Collector {
  using Collector::Collector;
  void metadata(const read::Line& line, const read::Process& so_far) override;
  bool wants_metadata() const override { return true; }
  bool wants_so_far() const override { return true; }
  void end() override { before_.reset(); }
  void state(team::Archive& archive) override { archive(places); }

  struct Counted {
    std::string function{};  // empty: all collectives of the communicator
    std::string dtype{};
    std::int64_t comm = -1;  // -1: none
    std::int64_t bytes_class = 0;
    Mode mode = Mode::direct;

    // clang-tidy 14 takes the 0 of a rewritten comparison for a pointer.
    auto operator<=>(const Counted&) const = default;  // NOLINT(modernize-use-nullptr)
  };
  struct Place {
    std::uint64_t offset = 0;  // of the ledger
    Counted what{};
    std::uint64_t now = 0;
    std::uint64_t before = 0;
  };
  std::vector<Place> places;

 private:
  void compare(const read::Ledger& before, const read::Ledger& now, std::uint64_t offset);
  std::optional<read::Ledger> before_;
};

// Whether each call of the bucket gets a line, as far as there is room.
bool wants_lines(const read::Process& process, Bucket bucket);

}  // namespace tprof::collect
