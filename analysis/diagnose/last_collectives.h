// The collectives that a rank called last, in the order in which it called them.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "collect/lines.h"

namespace tprof::diagnose {

// A collective that a rank called, on a communicator that has this number in its process.
struct Called {
  static constexpr std::int64_t kNoStream = -1;

  text::Kept function{};
  std::int64_t comm = 0;
  std::uint64_t seq = 0;
  std::int64_t ts_ns = 0;
  std::int64_t thread = 0;
  std::int64_t stream = kNoStream;  // 0: the default stream
  bool grouped = false;             // in a group, whose End enqueued it
};

// Keeps the last collectives of a process that did not close and has two communicators with
// collectives: one alone has no order to compare.
struct LastCollectives : collect::Collector {
  using Collector::Collector;
  void call(const read::Event& e) override;
  void last_call(const read::Event& e) override;
  void device_time(const read::DeviceTime& t) override;
  bool wants_times() const override { return true; }
  void end() override;
  void state(team::Archive& archive) override { archive(all, through); }

  // True if the device is through with it, as far as its times tell.
  bool is_through(std::int64_t comm, std::uint64_t seq) const;
  // True if the device's times tell that it is not: it is through with what came before.
  bool is_not_through(std::int64_t comm, std::uint64_t seq) const;

  std::vector<Called> all;  // in the order of time
  // By communicator, the number behind the last that has a time: they run one after the other.
  std::map<std::int64_t, std::uint64_t> through;

 private:
  std::vector<Called> of_ring_;  // they may have lines of their own, which say more
  std::size_t oldest_ = 0;       // in `all`, once that is full
};

}  // namespace tprof::diagnose
