#include "engine/stream.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "engine/activity.h"
#include "engine/device.h"
#include "engine/graph.h"
#include "engine/model.h"
#include "engine/schedule.h"

namespace standin {

constinit std::atomic<const activity::Observer*> activity::observer{nullptr};

namespace {

struct Engine {
  std::recursive_mutex mutex;
  std::map<cudaStream_t, StreamRef> streams;
  std::map<int, StreamRef> legacy;
  unsigned long long next_id = 1;
  std::atomic<int> error{0};
};

// Leaked on purpose: workers and the program's threads outlive static destructors.
Engine& engine() {
  static auto& e = *new Engine;
  return e;
}

bool pending(const Mark& mark) {
  return mark && !mark->done();
}

void sleep_until(int64_t ns) {
  while (ns - now_ns() < spin_time().count()) {
    if (now_ns() >= ns) return;
  }
  const timespec t{.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr) == EINTR) {
  }
}

// Returns the schedule's name for the work. `names` holds the joined names of a group's functions.
const char* name_of(const Op& op, std::string& names) {
  std::set<std::string> functions;
  for (const Counted& c : op.counted) functions.insert(c.key.function);
  for (const std::string& f : functions) names += (names.empty() ? "" : "+") + f;
  if (!names.empty()) return names.c_str();
  if (op.graph_began) return "graph";
  if (!op.run && op.takes.count() == 0) return "marker";
  switch (op.type) {
    case cudaGraphNodeTypeKernel:
      return "kernel";
    case cudaGraphNodeTypeMemcpy:
      return "copies";
    case cudaGraphNodeTypeMemset:
      return "memset";
    case cudaGraphNodeTypeHost:
      return "host";
    default:
      return "other";
  }
}

const char* way_of(const Op& op) {
  const tally::Kind kind = op.counted.empty() ? tally::Kind::kNone : op.counted[0].key.kind;
  switch (kind) {
    case tally::Kind::kH2H:
      return "H2H";
    case tally::Kind::kH2D:
      return "H2D";
    case tally::Kind::kD2H:
      return "D2H";
    case tally::Kind::kD2D:
      return "D2D";
    case tally::Kind::kManaged:
      return "MANAGED";
    case tally::Kind::kNone:
      break;
  }
  return "-";
}

void write_down(const CUstream_st& stream, const Op& op, int64_t reached_ns, int64_t began_ns,
                int64_t ended_ns) {
  std::string names;
  schedule::ran({.stream = stream.id,
                 .what = name_of(op, names),
                 .reached_ns = reached_ns,
                 .began_ns = op.graph_began ? op.graph_began->end_ns() : began_ns,
                 .ended_ns = ended_ns,
                 .device = stream.device,
                 .calls = op.counted.size(),
                 .in_graph = op.in_graph,
                 .way = way_of(op)});
}

// Waits for work without sleeping, for a while.
void watch(CUstream_st& stream) {
  const int64_t until = now_ns() + spin_time().count();
  while (now_ns() < until) {
    const std::lock_guard lock(stream.mutex);
    if (stream.closed || !stream.queue.empty()) return;
  }
}

void work(const StreamRef& stream) {
  pthread_setname_np(pthread_self(), "standin-stream");
  prctl(PR_SET_TIMERSLACK, 1UL);  // else a kernel of 5 us is done after 60
  int64_t before_ended_ns = 0;
  for (;;) {
    CUstream_st::Work next;
    watch(*stream);
    {
      std::unique_lock lock(stream->mutex);
      stream->wake.wait(lock, [&] { return stream->closed || !stream->queue.empty(); });
      if (stream->queue.empty()) return;
      next = std::move(stream->queue.front());
      stream->queue.pop_front();
    }
    const int64_t reached_ns = std::max(next.op.submitted_ns, before_ended_ns);
    int64_t began_ns = reached_ns;
    for (const Mark& mark : next.op.after) {
      mark->wait();
      began_ns = std::max(began_ns, mark->end_ns());
    }
    int64_t ended_ns = began_ns + next.op.takes.count();
    if (next.op.takes.count() > 0) sleep_until(ended_ns);
    if (next.op.run) {
      const cudaError_t error = next.op.run();
      if (error != cudaSuccess) set_device_error(error);
      if (next.op.takes.count() == 0 || next.op.meets) ended_ns = now_ns();
    }
    before_ended_ns = ended_ns;
    activity::ran(next.op, *stream, began_ns, ended_ns);
    // Written before any waiter is woken, since a waiter may end the process.
    if (schedule::wanted()) write_down(*stream, next.op, reached_ns, began_ns, ended_ns);
    next.mark->finish(ended_ns);
  }
}

// Signals are the program's: none is ever delivered to a worker.
void start_worker(CUstream_st& stream) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread(work, stream.shared_from_this()).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  stream.started = true;
}

// The legacy stream waits for all blocking streams of its device, and they for it.
void add_implicit_order(CUstream_st& stream, std::vector<Mark>& after) {
  if (is_legacy(stream)) {
    for (const auto& [handle, other] : engine().streams) {
      const bool blocking = !(other->flags & cudaStreamNonBlocking);
      if (other->device == stream.device && blocking && handle != &stream) {
        after.push_back(other->tail);
      }
    }
  } else if (!(stream.flags & cudaStreamNonBlocking)) {
    auto legacy = engine().legacy.find(stream.device);
    if (legacy != engine().legacy.end()) after.push_back(legacy->second->tail);
  }
}

StreamRef legacy_stream(int device) {
  StreamRef& stream = engine().legacy[device];
  if (!stream) stream = create_stream(device, cudaStreamDefault, 0);
  return stream;
}

StreamRef per_thread_stream(int device) {
  thread_local std::map<int, StreamRef> mine;
  StreamRef& stream = mine[device];
  if (!stream) stream = create_stream(device, cudaStreamDefault, 0);
  return stream;
}

}  // namespace

int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

void Completion::finish(int64_t end_ns) {
  end_ns_ = end_ns;
  done_.store(1, std::memory_order_release);
  done_.notify_all();
}

void Completion::wait() const {
  const int before = errno;  // a caller's errno must not depend on how long this took
  done_.wait(0, std::memory_order_acquire);
  errno = before;
}

std::recursive_mutex& engine_mutex() {
  return engine().mutex;
}

cudaError_t device_error() {
  return static_cast<cudaError_t>(engine().error.load());
}
void set_device_error(cudaError_t error) {
  int none = 0;
  engine().error.compare_exchange_strong(none, error);
}

StreamRef create_stream(int device, unsigned flags, int priority) {
  const std::lock_guard lock(engine_mutex());
  auto stream = std::make_shared<CUstream_st>();
  stream->device = device;
  stream->flags = flags;
  stream->priority = priority;
  stream->id = engine().next_id++;
  engine().streams[stream.get()] = stream;
  return stream;
}

StreamRef find_stream(cudaStream_t handle) {
  return find_stream(handle, current_device());
}
StreamRef find_stream(cudaStream_t handle, int device) {
  const std::lock_guard lock(engine_mutex());
  if (!handle || handle == cudaStreamLegacy) return legacy_stream(device);
  if (handle == cudaStreamPerThread) return per_thread_stream(device);
  auto found = engine().streams.find(handle);
  return found == engine().streams.end() ? nullptr : found->second;
}

bool destroy_stream(cudaStream_t handle) {
  const std::lock_guard lock(engine_mutex());
  auto found = engine().streams.find(handle);
  if (found == engine().streams.end()) return false;
  const StreamRef stream = std::move(found->second);
  engine().streams.erase(found);
  // The worker finishes what is queued and goes.
  const std::lock_guard queue_lock(stream->mutex);
  stream->closed = true;
  stream->wake.notify_all();
  return true;
}

bool is_legacy(const CUstream_st& stream) {
  const std::lock_guard lock(engine_mutex());
  auto found = engine().legacy.find(stream.device);
  return found != engine().legacy.end() && found->second.get() == &stream;
}

std::vector<StreamRef> all_streams() {
  const std::lock_guard lock(engine_mutex());
  std::vector<StreamRef> all;
  for (const auto& [handle, stream] : engine().streams) all.push_back(stream);
  return all;
}

Mark submit(CUstream_st& stream, Op op) {
  const std::lock_guard lock(engine_mutex());
  if (stream.capture) {
    Capture& capture = *stream.capture;
    stream.frontier = {add_node(*capture.graph, std::move(op), stream.frontier, stream.lane)};
    return nullptr;
  }
  if (op.order) op.after.push_back(op.order->last);
  add_implicit_order(stream, op.after);
  std::erase_if(op.after, [](const Mark& mark) { return !pending(mark); });

  if (op.submitted_ns == 0) op.submitted_ns = now_ns();
  auto mark = std::make_shared<Completion>();
  if (op.order) op.order->last = mark;
  const bool idle = !pending(stream.tail);
  const int64_t tail_ns = idle && stream.tail ? stream.tail->end_ns() : 0;
  stream.tail = mark;
  if (!op.run && op.takes.count() == 0 && op.after.empty() && idle) {
    // Nothing to do and nothing to wait for: no need to wake a thread.
    const int64_t at = std::max(op.submitted_ns, tail_ns);
    if (schedule::wanted()) write_down(stream, op, at, at, at);
    mark->finish(at);
    return mark;
  }
  const bool copies = op.type == cudaGraphNodeTypeMemcpy;
  const bool observed =
      (op.run || op.takes.count() > 0) && (copies || op.type == cudaGraphNodeTypeKernel);
  if (observed && op.correlation == 0) op.correlation = activity::called();
  if (!stream.started) start_worker(stream);
  const std::lock_guard queue_lock(stream.mutex);
  stream.queue.push_back({std::move(op), mark});
  stream.wake.notify_one();
  return mark;
}

Mark tail_of(CUstream_st& stream) {
  const std::lock_guard lock(engine_mutex());
  if (!is_legacy(stream)) return stream.tail;
  return submit(stream, {});  // a marker after all blocking streams
}

std::vector<Mark> tails_of_device(int device) {
  const std::lock_guard lock(engine_mutex());
  std::vector<Mark> tails;
  for (const StreamRef& stream : all_streams()) {
    if (stream->device == device && stream->tail) tails.push_back(stream->tail);
  }
  return tails;
}

}  // namespace standin
