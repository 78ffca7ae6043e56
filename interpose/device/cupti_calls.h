// The calls that CUPTI is to time. The calling thread gives each an id, under which CUPTI records
// what the call makes the device do. The thread that reads CUPTI's records gives its place back.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>

#include "interpose/record/thread.h"

namespace tprof::device::cupti_calls {

// An id is the place's number and, in the bits above, how often the place was used. So late records
// of a call that was given up are not taken for the call that has the place now.
inline constexpr std::uint32_t kPlaceBits = 16;
inline constexpr std::uint32_t kPlaces = 1U << kPlaceBits;
constexpr std::uint32_t place_of(std::uint64_t id) {
  return static_cast<std::uint32_t>(id % kPlaces);
}

struct Call {
  std::atomic<std::uint64_t> id{0};  // 0: the place is free
  std::uint64_t uses = 0;
  Calls of{};
  CUstream stream = nullptr;
  std::uint64_t stream_id = 0;     // streams::id_of
  std::uint64_t number = 0;        // a later call of its stream has a larger one
  std::atomic<bool> whole{false};  // the call has returned, and the fields above are set
  std::uint32_t next = 0;          // the next free place (FreeList)
};

// True if a call that can't be timed counts as lost.
bool wanted();
TimedCall start(CUstream stream);
// False: the call has no time, as `why` says.
bool stop(const TimedCall& timed, const Calls& of, bool in_progress, TimingLost& why);
void drop(const TimedCall& timed);

// The thread that reads uses these. Places from made() on have not been used yet.
std::uint32_t made();
Call& call(std::uint32_t place);
void give_back(Call& call);

}  // namespace tprof::device::cupti_calls
