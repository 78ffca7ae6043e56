// A device and its calls, whose schedule is arithmetic.
#pragma once

#include <memory>
#include <optional>

#include "interpose/device/exposure.h"

namespace tprof::test {

using namespace tprof::device;

inline constexpr std::uint64_t kMs = 1'000'000;
inline constexpr std::uint64_t kGather = 0x1000;
inline constexpr std::uint64_t kCompute = 0x2000;
inline constexpr std::uint64_t kOther = 0x3000;
inline constexpr LedgerKey::Words kKey{1, 1};

// A device; times in ms.
class Job {
 public:
  // The program computes on `stream` from one time to the other, far ahead of the device.
  void computes(std::uint64_t stream, std::uint64_t from, std::uint64_t to) {
    mark(stream, Mark::Kind::opens, from);
    mark(stream, Mark::Kind::closes, to);
  }
  Mark& mark(std::uint64_t stream, Mark::Kind kind, std::uint64_t at) {
    put();
    Mark& mark = waiting_.emplace();
    mark.stream = stream;
    mark.kind = kind;
    mark.at_ns = at * kMs;
    return mark;
  }
  void call(std::uint64_t start, std::uint64_t end, std::uint64_t stream = kGather) {
    put();
    exposure_->call({stream, 0, start * kMs, end * kMs, kKey, 1});
  }
  // The device has not come to a mark that was put into the stream then.
  void stands(std::uint64_t stream, std::uint64_t since) {
    Mark mark;
    mark.stream = stream;
    mark.enqueued_ns = since * kMs;
    exposure().standing(mark);
  }
  Exposure& exposure() {
    put();
    return *exposure_;
  }

  struct Sum {
    std::uint64_t known = 0, exposed_ns = 0, device_ns = 0, late = 0, unknown = 0;
    ExposureLost why{};
  };
  Sum settle(bool last) {
    put();
    Sum sum;
    exposure_->settle(last, [&](const Exposed& found) {
      if (!found.known) {
        sum.unknown += found.calls;
        sum.why = found.why;
        return;
      }
      sum.known += found.calls;
      sum.device_ns += found.device_ns;
      sum.exposed_ns += found.exposed_ns;
      sum.late += found.late ? 1 : 0;
    });
    return sum;
  }
  Sum end() { return settle(true); }

 private:
  void put() {
    if (waiting_) exposure_->mark(*waiting_);
    waiting_.reset();
  }
  std::unique_ptr<Exposure> exposure_ = std::make_unique<Exposure>();
  std::optional<Mark> waiting_;
};

}  // namespace tprof::test
