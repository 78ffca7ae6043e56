// Streams and events: ordered device work that runs behind the caller's back.
//
// Every piece of work has a Completion. A stream is a queue of work with one thread that sleeps
// until there is some; an event is the Completion of a marker; waiting for anything is waiting for
// a Completion. Work only ever waits for work that was submitted before it, so nothing deadlocks.
//
// On the device's time line, work begins once it has been submitted, the work before it in its
// stream has ended, and everything else that it waits for has ended. Work that takes a modelled
// time ends that much later, to the nanosecond, however late its thread is woken on a busy machine.
// All other work ends when it has really ended. Nobody is told of an end before it has happened.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/tally.h"

namespace standin {

class Completion {
 public:
  // Both are out of line: libstdc++ keeps the waiters of an atomic in a table of its own, of which
  // a library that exports nothing else has a private copy.
  void finish(int64_t end_ns);
  void wait() const;
  bool done() const { return done_.load(std::memory_order_acquire) != 0; }
  int64_t end_ns() const { return end_ns_; }  // once done

 private:
  int64_t end_ns_ = 0;
  std::atomic<uint32_t> done_{0};
};
using Mark = std::shared_ptr<Completion>;  // null: nothing to wait for

// Work of one communicator runs in the order in which it was submitted, whatever the streams.
struct Order {
  Mark last;
};

// A counted call inside a graph, for counting each launch.
struct Counted {
  tally::Key key;
  uint64_t count, bytes;
};

// A box of bytes on each side; a plain copy has one row.
struct Region {
  void* dst;
  const void* src;
  size_t width;  // bytes
  size_t height = 1, depth = 1;
  size_t dst_pitch = 0, src_pitch = 0;  // from row to row
  size_t dst_slice = 0, src_slice = 0;  // from plane to plane

  size_t bytes() const { return width * height * depth; }
};

struct Op {
  // Runs on the stream's thread; may run many times when captured. Empty: a marker.
  std::function<cudaError_t()> run;
  std::chrono::nanoseconds takes{};  // modelled time, spent before it runs
  bool meets = false;                // waits for other processes: `takes` is a minimum
  cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
  std::vector<Mark> after;
  std::shared_ptr<Order> order;
  std::vector<Counted> counted;
  // The driver reports these for a node that is a copy or a kernel.
  Region copied{};
  cudaMemcpyKind kind = cudaMemcpyDefault;
  const char* kernel = "_Z6kernelv";
  uint32_t correlation = 0;  // the call that it came from, if observed (activity.h)
  int64_t submitted_ns = 0;  // 0: now
  bool in_graph = false;     // a graph's launch executes it
  Mark graph_began;          // in the end marker of a graph launch: the start marker
};

struct Capture {
  unsigned long long id;
  cudaStreamCaptureMode mode;
  cudaStream_t origin;
  cudaGraph_t graph;
  bool owns_graph;
  uint32_t thread;
  int lanes = 1;
  bool invalidated = false;
};

}  // namespace standin

// The handles of the API are these objects; no table translates between them.
struct CUstream_st : std::enable_shared_from_this<CUstream_st> {
  int device;
  unsigned flags;
  int priority;
  unsigned long long id;

  // Guarded by standin::engine_mutex().
  standin::Mark tail;
  std::shared_ptr<standin::Capture> capture;
  std::vector<cudaGraphNode_t> frontier;  // the next captured node comes after these
  int lane = 0;

  // The queue, shared with the worker.
  struct Work {
    standin::Op op;
    standin::Mark mark;
  };
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<Work> queue;
  bool started = false, closed = false;
};

struct CUevent_st {
  unsigned flags;
  int device;
  // Guarded by standin::engine_mutex().
  standin::Mark mark;
  std::shared_ptr<standin::Capture> capture;
  std::vector<cudaGraphNode_t> captured;
};

namespace standin {

// One lock guards the state of all handles, so that work submitted together is ordered together.
std::recursive_mutex& engine_mutex();

using StreamRef = std::shared_ptr<CUstream_st>;

StreamRef create_stream(int device, unsigned flags, int priority);
// Also takes 0, cudaStreamLegacy and cudaStreamPerThread, of the current device or another. Returns
// null if there is no such stream.
StreamRef find_stream(cudaStream_t handle);
StreamRef find_stream(cudaStream_t handle, int device);
bool destroy_stream(cudaStream_t handle);

// Runs `op` after everything before it in the stream (or captures it: the result is then null).
Mark submit(CUstream_st& stream, Op op);
// The end of all work that is in the stream now.
Mark tail_of(CUstream_st& stream);
std::vector<Mark> tails_of_device(int device);
bool is_legacy(const CUstream_st& stream);
std::vector<StreamRef> all_streams();

// The first error of work that ran in the background; sticky, as a broken context is.
cudaError_t device_error();
void set_device_error(cudaError_t error);

int64_t now_ns();

}  // namespace standin
