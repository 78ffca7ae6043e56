// The calls whose times CUPTI is to tell. A call's thread gives it an id, under which CUPTI knows
// what the call makes the device do, and the thread that reads CUPTI's records gives its place
// back.
#pragma once

#include <atomic>
#include <cstdint>

#include "interpose/timing/timing.h"

namespace tprof::timing::cupti_calls {

// A number of the place, and above how often it was used: what was not waited for any more is not
// taken for what has the place now.
inline constexpr std::uint32_t kPlaceBits = 16;
inline constexpr std::uint32_t kPlaces = 1U << kPlaceBits;
constexpr std::uint32_t place_of(std::uint64_t id) {
  return static_cast<std::uint32_t>(id % kPlaces);
}

struct Call {
  std::atomic<std::uint64_t> id{0};  // 0: nobody's, or given up
  std::uint64_t uses = 0;
  Calls of{};
  CUstream stream = nullptr;
  std::uint64_t stream_id = 0;     // busy::id_of
  std::uint64_t number = 0;        // a later call of its stream has a larger one
  std::atomic<bool> whole{false};  // what is above is; the call has returned
  std::uint32_t next = 0;          // of those that are free (FreeList)
};

// Whether a call that is not timed counts as that.
bool wanted();
TimedCall start(CUstream stream);
void stop(std::uint64_t id, const Calls& of, bool in_progress);
void drop(std::uint64_t id);

// For the thread that reads. Places from made() on have not been used yet.
std::uint32_t made();
Call& call(std::uint32_t place);
void give_back(Call& call);

}  // namespace tprof::timing::cupti_calls
