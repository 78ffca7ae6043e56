// Pairs of timing events, per context. They are made before they are needed, used again and again,
// and never destroyed: destroying one can wait for a device that hangs. They go with their context,
// and then the pair is there without them.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>

#include "interpose/base/free_list.h"
#include "interpose/base/gate.h"
#include "interpose/device/exposure.h"
#include "interpose/device/timing.h"

namespace tprof::device {

// NCCL runs the calls of one communicator one after the other, whatever their streams. It makes the
// streams wait for each other in ncclLaunchPrepare and ncclLaunchFinish, so a call does not begin
// before the previous one has ended. This wait is within the call, after our first event, so the
// reader has to know which call came before.
struct InOrder {
  // `after` is kNone if the previous call was on the same stream, or if there was none.
  static constexpr std::uint64_t kNone = 0;
  static constexpr std::uint64_t kUnknown = UINT64_MAX;  // the previous call was not timed
  std::uint32_t comm = 0;                                // 0: no communicator
  std::uint64_t after = kNone;
};

namespace comm_order {

// True if calls of the communicator were seen on more than one stream.
bool on_several_streams(std::uint32_t comm);
// Notes that a call of `comm` was put into `stream`, and returns which call it comes after.
// `number` is its pair's number, or kUnknown if it has no pair.
InOrder enqueued(std::uint32_t comm, std::uint64_t stream, std::uint64_t number);
void after_fork();

}  // namespace comm_order

// A call is a call of the program. A mark is a place in a stream that computes; it has one event,
// `begin`. A tail is an untimed call that a timed one comes after; it has one event, `end`. A scope
// is one of the program's, which begins and ends there.
enum class Kind : std::uint8_t { call, mark, tail, scope };

struct Pair {
  CUevent begin = nullptr;
  CUevent end = nullptr;
  CUstream stream = nullptr;
  std::uint32_t closings = 0;  // of the stream's gate when the pair was taken
  Kind kind = Kind::call;
  std::uint64_t number = 0;       // a later call or mark of its stream has a larger one
  std::uint64_t stream_id = 0;    // streams::id_of
  std::uint64_t enqueued_ns = 0;  // when the host put `begin` into the stream
  InOrder order{};                // call, tail
  Calls of{};                     // call
  Mark mark{};
  std::atomic<std::uint64_t> since_ns{0};  // when a call took the pair; 0: no call has it
  std::atomic<bool> to_read{false};        // the fields above are set
  std::uint32_t pool = 0;
  std::uint32_t next = 0;  // the next free pair (FreeList)
};

class Pool {
 public:
  static constexpr std::uint32_t kStep = 256;  // pairs that are made at a time
  static constexpr std::uint32_t kMost = 8192;
  static constexpr int kNotKnown = -1;  // a device

  CUcontext context() const { return context_.load(std::memory_order_acquire); }
  bool claim(CUcontext context) {
    CUcontext nobody = nullptr;
    return context_.compare_exchange_strong(nobody, context);
  }
  // Known before the first event is made.
  int device() const { return device_; }
  Gate& gate() { return gate_; }  // of whoever reads pairs; closed while the context may go
  std::uint32_t made() const { return made_.load(std::memory_order_acquire); }
  // How many pairs have events.
  std::uint32_t events() const { return events_.load(std::memory_order_acquire); }
  Pair& pair(std::uint32_t i) { return pair_.load(std::memory_order_acquire)[i]; }
  // True if fewer than two steps of pairs are free, and more can be made.
  bool wants_more() const;

  // Makes events in the calling thread's context. Several threads may do so. False: the driver
  // refused.
  bool make_more();
  Pair* take();
  void give_back(Pair& pair);
  // Its context is gone, and its gate stays closed: a new one takes its place.
  void abandon();
  void forget();

 private:
  bool has_pairs();

  std::atomic<CUcontext> context_{nullptr};
  std::atomic<int> device_{kNotKnown};
  Gate gate_;
  std::atomic<std::uint32_t> made_{0};
  std::atomic<std::uint32_t> events_{0};
  std::atomic<std::uint32_t> free_{0};
  FreeList<Pair> free_pairs_;
  // kMost of them, all zeros at first: memory that nobody has touched costs nothing.
  std::atomic<Pair*> pair_{nullptr};
};

inline constexpr std::uint32_t kPools =
    16;  // contexts of one process: one for each device, as a rule
extern constinit Pool g_pools[kPools];
inline std::uint32_t number_of(const Pool& pool) {
  return static_cast<std::uint32_t>(&pool - g_pools);
}
// Returns the pool of `context`, and claims one if it has none yet. Null: there are too many.
Pool* pool_of(CUcontext context);

}  // namespace tprof::device
