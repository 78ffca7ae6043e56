// Keeps what is known, from the host alone, of how one stream was fed since its last mark: when its
// work began, and where it may have run dry. A mark takes it along (exposure.h says what follows
// from it). One thread at a time uses a Feed. Times are now_ns().
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "interpose/exposure/exposure.h"

namespace tprof::timing::busy {

class Feed {
 public:
  // If the host launches again within this time, we assume that the stream stayed busy.
  static constexpr std::uint64_t kGapNs = 20'000;
  // While a stream is launched on, two queries whether it is empty are at least kAskNs and at most
  // kAskAnywayNs apart.
  static constexpr std::uint64_t kAskNs = 50'000;
  static constexpr std::uint64_t kAskAnywayNs = 250'000;
  // One launch on an empty stream in this time gets a mark behind it, which tells how long
  // its kernel ran: 2 us for the event, 0.2 % of the host's time.
  static constexpr std::uint64_t kSampleNs = 1'000'000;
  // A launch waits for room behind a thousand others. Behind fewer than kNoQueue it does not.
  static constexpr std::uint32_t kNoQueue = 256;
  static constexpr std::uint32_t kFullQueue = 1000;

  // True if it should be queried now: the host was slow to feed it. Before a launch (`launches`)
  // also if kAskAnywayNs have gone by, however fast launches come, and for samples.
  bool should_ask(std::uint64_t now, bool launches) const {
    const std::uint64_t since = now - asked_ns_;
    if (now - launched_ns_ >= kGapNs && since >= kAskNs) return true;
    const bool samples = sampling_ || now - sampled_ns_ >= kSampleNs;
    return launches && (since >= kAskAnywayNs || samples);
  }

  void answered(bool empty, std::uint64_t now) {
    if (empty) {
      found_empty(now);
      dried_ns_ = now;
      queued_ = 0;
    }
    asked(now, empty);
  }

  // A launch begins. `waited`: a thread has waited for a device since the last one.
  void begins(std::uint64_t now, bool waited) {
    begun_ns_ = now;
    queued_ = waited ? 1 : queued_ + 1;
  }

  // The launch has found the stream `empty` or not, or nobody asked.
  void launches(bool empty) {
    on_empty_ = empty;
    sampled_ = std::exchange(sampling_, false) && empty;
  }

  // The launch is through. `open`: the stream's marks are being made.
  void launched(std::uint64_t now, bool open) {
    // On an empty stream a kernel begins when its launch is through.
    waited_ns_ = queued_ > kFullQueue ? now - begun_ns_ : 0;
    if (idle_since_mark_) {
      begins_ns_ = now;
    } else if (on_empty_) {
      idle_to_ns_ = now;
    }
    if (open) note_slow(now);
    launched_ns_ = now;
    idle_since_mark_ = false;
    ++done_;
  }

  // How long that launch took, if it waited for room in the stream; else 0.
  std::uint64_t waited_ns() const { return waited_ns_; }

  // True if that launch should get a sample behind it. Whether or not, the next one is in a while.
  bool wants_sample(std::uint64_t now) {
    const bool wants = on_empty_ && now - sampled_ns_ >= kSampleNs;
    if (asked_ns_ >= begun_ns_) sampled_ns_ = now;
    return wants;
  }

  // True if it was found busy by this launch, and empty a moment ago.
  bool busy_again(std::uint64_t now) const {
    constexpr std::uint64_t kMomentNs = 1'000'000;
    return asked_ns_ == now && now - dried_ns_ < kMomentNs;
  }

  bool idle_since_mark() const { return idle_since_mark_; }

  void put_into(Mark& mark, bool sample) {
    mark.begins_ns = idle_since_mark_ ? UINT64_MAX : begins_ns_;
    mark.dry_from_ns = dry_from_ns_;
    mark.dry_to_ns = dry_to_ns_;
    mark.idle_to_ns = idle_to_ns_;
    mark.launches = done_ - marked_done_;
    mark.fed_from_ns = fed_from_ns_;
    mark.fed = fed_;
    mark.sampled = std::exchange(sampled_, false);
    mark.sample = sampling_ = sample;
  }

  void marked(std::uint64_t now) {
    marked_done_ = done_;
    idle_since_mark_ = true;
    dry_to_ns_ = 0;
    asked(now, true);
  }

 private:
  void asked(std::uint64_t now, bool clean) {
    asked_ns_ = now;
    asked_done_ = done_;
    asked_clean_ = clean;
  }

  void found_empty(std::uint64_t now) {
    if (idle_since_mark_) return;
    if (dry_to_ns_ == 0) {
      // Launches close to each other may have found it empty before the last one.
      const bool earlier = asked_clean_ || now - launched_ns_ < kGapNs;
      dry_from_ns_ = earlier ? std::min(asked_ns_, launched_ns_) : launched_ns_;
      fed_from_ns_ = dry_from_ns_;
      fed_ = 0;
    }
    // Equal: a slow launch, whose work came behind idle_to_ns_.
    if (dry_to_ns_ == 0 || launched_ns_ >= idle_to_ns_) {
      asked_clean_ ? fed_ += done_ - asked_done_ : fed_ = 0;
      if (!asked_clean_) fed_from_ns_ = now;
      dry_to_ns_ = now;
    }
    idle_to_ns_ = now;
  }

  // A launch took long although it did not wait for room behind others: the host had no core, or
  // the driver loaded the kernel's module first. The stream may have run dry meanwhile, and its
  // kernel may have begun long before the launch was through.
  void note_slow(std::uint64_t now) {
    const bool first = idle_since_mark_;
    if (now - begun_ns_ < (first ? kGapNs : kAskNs) || queued_ > kNoQueue) return;
    if (first) begins_ns_ = begun_ns_;
    if (dry_to_ns_ == 0) dry_from_ns_ = first ? begun_ns_ : launched_ns_;
    dry_to_ns_ = idle_to_ns_ = fed_from_ns_ = now;
    fed_ = 0;
  }

  bool idle_since_mark_ = false;  // nothing was put into it since the last mark
  bool on_empty_ = false;         // the launch that goes on found the stream empty
  bool sampling_ = false;         // the last mark is a sample, and nothing was launched since
  bool sampled_ = false;          // that sample's launch was through before the next came
  // It was empty at asked_ns_, or got a mark: all before is accounted for.
  bool asked_clean_ = false;
  std::uint32_t done_ = 0;         // launches that have returned
  std::uint32_t marked_done_ = 0;  // `done_` at the last mark
  std::uint32_t asked_done_ = 0;   // and at asked_ns_
  std::uint32_t fed_ = 0;          // launches from fed_from_ns_ to dry_to_ns_
  std::uint32_t queued_ = 0;       // launches since it was empty, or a thread waited for a device
  std::uint64_t begins_ns_ = 0;    // these five: see Mark
  std::uint64_t dry_from_ns_ = 0;
  std::uint64_t dry_to_ns_ = 0;
  std::uint64_t idle_to_ns_ = 0;
  std::uint64_t fed_from_ns_ = 0;
  std::uint64_t begun_ns_ = 0;     // when the last launch began
  std::uint64_t launched_ns_ = 0;  // and when it returned
  std::uint64_t waited_ns_ = 0;
  std::uint64_t asked_ns_ = 0;    // when it was last known to be busy or empty
  std::uint64_t dried_ns_ = 0;    // when it was last found empty
  std::uint64_t sampled_ns_ = 0;  // when a sample was last looked for
};

}  // namespace tprof::timing::busy
