// Pairs of timing events, per context. They are made in advance, reused, and never destroyed:
// destroying one can wait for a hanging device. A context takes its events with it: see ContextsGo.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>

#include "interpose/base/free_list.h"
#include "interpose/base/gate.h"
#include "interpose/base/not_copied.h"
#include "interpose/device/exposure.h"
#include "interpose/device/timing.h"

namespace tprof::device {

// NCCL runs the calls of one communicator one after the other, even on several streams:
// ncclLaunchPrepare and ncclLaunchFinish make the streams wait for each other. The wait for the
// previous call is after our first event of the call, so the reader has to know which call that
// was.
struct InOrder {
  // `after` is kNone if the previous call was on the same stream, or if there was none.
  static constexpr std::uint64_t kNone = 0;
  static constexpr std::uint64_t kUnknown = UINT64_MAX;  // the previous call was not timed
  std::uint32_t comm = 0;                                // 0: no communicator
  std::uint64_t after = kNone;
};

namespace comm_order {

// True if the communicator was used on more than one stream.
bool on_several_streams(std::uint32_t comm);
// Notes that a call of `comm` was enqueued in `stream`, and returns the call before it. `number` is
// its pair's number, or kUnknown if it has no pair.
InOrder enqueued(std::uint32_t comm, std::uint64_t stream, std::uint64_t number);
void after_fork();

}  // namespace comm_order

// call: a call of the program. mark: a place in a computing stream; it has one event, `begin`.
// tail: an untimed call that precedes a timed one; it has one event, `end`. scope: a scope of the
// program.
enum class Kind : std::uint8_t { call, mark, tail, scope };

struct Pair {
  CUevent begin = nullptr;
  CUevent end = nullptr;
  CUstream stream = nullptr;
  std::uint32_t closings = 0;  // of the stream's gate when the pair was taken
  Kind kind = Kind::call;
  std::uint64_t number = 0;     // a later call or mark of its stream has a larger one
  std::uint64_t stream_id = 0;  // streams::id_of
  InOrder order{};              // call, tail
  Calls of{};                   // call
  Mark mark{};
  std::atomic<std::uint64_t> since_ns{0};  // when a call took the pair; 0: free
  std::atomic<bool> to_read{false};        // the fields above are set
  std::uint32_t pool = 0;
  std::uint32_t next = 0;  // the next free pair (FreeList)
};

class Pool {
 public:
  static constexpr std::uint32_t kStep = 256;  // pairs made at a time
  static constexpr std::uint32_t kMost = 8192;

  CUcontext context() const { return context_.load(std::memory_order_acquire); }
  bool claim(CUcontext context) {
    CUcontext nobody = nullptr;
    return context_.compare_exchange_strong(nobody, context);
  }
  int device() const { return device_; }  // -1: it has no events yet
  std::uint32_t made() const { return made_.load(std::memory_order_acquire); }
  // How many pairs have events.
  std::uint32_t events() const { return events_.load(std::memory_order_acquire); }
  Pair& pair(std::uint32_t i) { return pair_.load(std::memory_order_acquire)[i]; }
  // True if fewer than 2 * kStep pairs are free, and more can be made.
  bool wants_more() const;

  // Makes events in the calling thread's context. Several threads may do so at once. Returns false
  // if the driver refused.
  bool make_more();
  Pair* take();
  void give_back(Pair& pair);
  void forget();

 private:
  bool has_pairs();

  std::atomic<CUcontext> context_{nullptr};
  std::atomic<int> device_{-1};
  std::atomic<std::uint32_t> made_{0};
  std::atomic<std::uint32_t> events_{0};
  std::atomic<std::uint32_t> free_{0};
  FreeList<Pair> free_pairs_;
  // kMost pairs, zero at first: untouched memory costs nothing.
  std::atomic<Pair*> pair_{nullptr};
};

inline constexpr std::uint32_t kPools = 16;  // contexts of one process, usually one per device
extern constinit Pool g_pools[kPools];
inline std::uint32_t number_of(const Pool& pool) {
  return static_cast<std::uint32_t>(&pool - g_pools);
}
// Returns the pool of `context`, and claims one if needed. Null: there are too many.
Pool* pool_of(CUcontext context);

// Entered to read pairs. Closed while contexts may go, and for ever once one is gone: no event is
// used any more.
inline constinit Gate g_contexts{};

// Held around a program's call that destroys contexts (cudaDeviceReset and the like): our events go
// with them, and calls are not timed any more. No training program goes on after that. Meanwhile no
// thread of ours uses events, and no thread of the program puts a mark anywhere.
class [[nodiscard]] ContextsGo : NotCopied {
 public:
  // One context, or all of a device (-1: of the thread's current one). `surely`: they are destroyed
  // unless the call is refused, so finished calls are read first.
  ContextsGo(int device, CUcontext context, bool surely);
  ~ContextsGo();

  // They are gone, with the times not yet read.
  void gone();

 private:
  bool has_events_ = false;
  bool gone_ = false;
};

}  // namespace tprof::device
