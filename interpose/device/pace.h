// Collects what the host knows about the launches in one stream since its last mark: when work
// began, how quickly launches followed each other, and where the stream may have run dry. The next
// mark carries it (see exposure.h). One thread at a time uses a Pace. Times are now_ns().
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "interpose/device/exposure.h"

namespace tprof::device::streams {

class Pace {
 public:
  // Before a launch after a longer gap the stream is queried, and gets a mark. For shorter gaps
  // samples tell how long it was idle.
  static constexpr std::uint64_t kLateNs = 500'000;
  // The stream is also queried this often, to know whether launches can be waiting for room.
  static constexpr std::uint64_t kAskNs = 1'000'000;
  // Exposure is known only up to the latest mark, so there is one this often: 2 us for the event.
  static constexpr std::uint64_t kPassNs = 1'000'000;
  // A launch takes less if its host has a core and does not wait. Under a profiler on an H200 it
  // took up to 40 us.
  static constexpr std::uint64_t kSlowNs = 50'000;
  // CUDA has room for 1,021 launches, copies and events in a stream (measured on an H200); another
  // launch waits. After fewer launches than kNoQueue it surely does not.
  static constexpr std::uint32_t kNoQueue = 256;
  static constexpr std::uint32_t kFullQueue = 1000;
  // One random launch of so many is a sample: 2 us for the event, so 40 ns per launch. The first
  // samples come more often.
  static constexpr std::uint32_t kSampleOf = 48;
  static constexpr std::uint32_t kFirstOf = 8;
  static constexpr std::uint32_t kFirst = 64;

  bool late(std::uint64_t now) const { return now - launched_ns_ >= kLateNs; }
  bool should_ask(std::uint64_t now) const { return late(now) || now - asked_ns_ >= kAskNs; }
  void answered(bool empty, std::uint64_t now) {
    if (empty) queued_ = 0;
    asked_ns_ = now;
  }

  // A launch begins. `waited`: a thread has waited for a device since the last launch.
  void begins(std::uint64_t now, bool waited) {
    begun_ns_ = now;
    queued_ = waited ? 1 : queued_ + 1;
  }

  void launched(std::uint64_t now) {
    const std::uint64_t took = now - begun_ns_;
    waited_ns_ = for_room(took);
    slow_ = waited_ns_ == 0 && took >= kSlowNs;
    if (idle_since_mark_) {
      fed_.begins_ns = slow_ ? begun_ns_ : now;
      fed_.first_ns = now - launched_ns_;
    } else if (!slow_) {
      ++fed_.gaps[LaunchesSinceMark::gap_kind(now - launched_ns_)];
    }
    slow_ ? fed_.slow_from_ns = begun_ns_ : fed_.last_ns = now;
    launched_ns_ = now;
    idle_since_mark_ = false;
    ++fed_.launches;
  }

  // Returns how long a call that took `took` waited for room in the stream.
  std::uint64_t for_room(std::uint64_t took) {
    if (queued_ > kNoQueue && took >= kSlowNs) queued_ = std::max(queued_, kFullQueue + 1);
    return queued_ > kFullQueue ? took : 0;
  }
  std::uint64_t waited_ns() const { return waited_ns_; }  // of the last launch

  // True if a sample should be taken after the launch.
  bool wants_sample() {
    if (until_sample_-- != 0) return false;
    if (random_ == 0) random_ = 2463534242;
    random_ ^= random_ << 13, random_ ^= random_ >> 17, random_ ^= random_ << 5;
    const std::uint32_t of = samples_ < kFirst ? kFirstOf : kSampleOf;
    samples_ += samples_ < kFirst ? 1 : 0;
    until_sample_ = of / 2 + random_ % of - 1;
    return true;
  }
  // True if the launch should get a mark anyway: it is unknown when its kernel began, or the last
  // mark is old.
  bool wants_mark(std::uint64_t now) const { return slow_ || now - marked_ns_ >= kPassNs; }

  bool idle_since_mark() const { return idle_since_mark_; }

  LaunchesSinceMark fed() const {
    LaunchesSinceMark fed = fed_;
    if (idle_since_mark_) fed.begins_ns = UINT64_MAX;
    return fed;
  }

  void marked(std::uint64_t now) {
    fed_ = {};
    idle_since_mark_ = true;
    marked_ns_ = now;
  }

 private:
  bool idle_since_mark_ = false;  // nothing was enqueued since the last mark
  bool slow_ = false;             // the last launch was slow without waiting for room
  std::uint32_t queued_ =
      0;  // launches since the stream was empty, or a thread waited for a device
  std::uint32_t until_sample_ = 0;  // all 0: a table of these takes no space in the file
  std::uint32_t samples_ = 0;
  std::uint32_t random_ = 0;  // xorshift: Marsaglia, https://doi.org/10.18637/jss.v008.i14
  LaunchesSinceMark fed_;
  std::uint64_t begun_ns_ = 0;     // when the last launch began
  std::uint64_t launched_ns_ = 0;  // and when it returned
  std::uint64_t waited_ns_ = 0;
  std::uint64_t asked_ns_ = 0;
  std::uint64_t marked_ns_ = 0;
};

}  // namespace tprof::device::streams
