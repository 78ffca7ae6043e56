#include "cupti/records.h"

#include <time.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/activity.h"
#include "engine/memory.h"
#include "engine/model.h"

namespace standin::cupti {
namespace {

struct State {
  std::mutex mutex;
  bool subscribed = std::getenv("STANDIN_CUPTI_TAKEN") != nullptr;
  bool kind[CUPTI_ACTIVITY_KIND_COUNT] = {};
  CUpti_BuffersCallbackRequestFunc request = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete = nullptr;
  CUpti_TimestampCallbackFunc clock = nullptr;  // the clock of records' times; null: ours
  int64_t clock_since[2] = {};                  // our time and the client's when it set its clock
  uint8_t* buffer = nullptr;
  std::size_t size = 0, valid = 0, dropped = 0;
  uint32_t correlation = 0;
  std::condition_variable called;  // correlation has grown
  uint64_t records = 0;            // number of records of device work
};
State& state() {
  static auto& s = *new State;
  return s;
}

thread_local std::map<CUpti_ExternalCorrelationKind, std::vector<uint64_t>> external;

// Hands the buffer to the client. The caller holds the state's lock.
void hand_over(State& s) {
  if (s.buffer == nullptr || s.complete == nullptr) return;
  uint8_t* const buffer = s.buffer;
  const std::size_t size = s.size, valid = s.valid;
  s.buffer = nullptr;
  s.complete(nullptr, 0, buffer, size, valid);
}

template <typename Record>
void write(State& s, const Record& record) {
  if (s.buffer != nullptr && s.size - s.valid < sizeof record) hand_over(s);
  if (s.buffer == nullptr && s.request != nullptr) {
    std::size_t most = 0;
    s.size = s.valid = 0;
    s.request(&s.buffer, &s.size, &most);
  }
  if (s.buffer == nullptr || s.size - s.valid < sizeof record) {
    ++s.dropped;
    return;
  }
  std::memcpy(s.buffer + s.valid, &record, sizeof record);
  s.valid += sizeof record;
}

int64_t clock(clockid_t which) {
  timespec t;
  clock_gettime(which, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

// Takes the shortest of many looks, since one may be interrupted in the middle.
int64_t realtime_ahead() {
  int64_t best = 0, shortest = INT64_MAX;
  for (int i = 0; i < 32; ++i) {
    const int64_t before = clock(CLOCK_MONOTONIC), real = clock(CLOCK_REALTIME);
    const int64_t took = clock(CLOCK_MONOTONIC) - before;
    if (took >= shortest) continue;
    shortest = took;
    best = real - (before + took / 2);
  }
  return best;
}

// Converts a time to the client's clock, which may tick in another unit. The rate comes from two
// looks at both clocks, as far apart as they can be.
uint64_t time_for_client(const State& s, int64_t real_ns) {
  if (s.clock == nullptr) return static_cast<uint64_t>(real_ns);
  const int64_t now_ns = clock(CLOCK_REALTIME), theirs = static_cast<int64_t>(s.clock());
  const double ticks_per_ns = static_cast<double>(theirs - s.clock_since[1]) /
                              static_cast<double>(now_ns - s.clock_since[0]);
  return static_cast<uint64_t>(
      theirs - static_cast<int64_t>(static_cast<double>(now_ns - real_ns) * ticks_per_ns));
}

uint32_t called() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const uint32_t correlation = ++s.correlation;
  s.called.notify_all();
  if (!s.kind[CUPTI_ACTIVITY_KIND_RUNTIME] && !s.kind[CUPTI_ACTIVITY_KIND_DRIVER]) {
    return correlation;
  }
  // Writes the innermost id of each kind, and then the record of the call itself.
  for (const auto& [kind, ids] : external) {
    if (ids.empty() || !s.kind[CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION]) continue;
    CUpti_ActivityExternalCorrelation r{};
    r.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
    r.externalKind = kind;
    r.externalId = ids.back();
    r.correlationId = correlation;
    write(s, r);
  }
  CUpti_ActivityAPI r{};
  r.kind = s.kind[CUPTI_ACTIVITY_KIND_RUNTIME] ? CUPTI_ACTIVITY_KIND_RUNTIME
                                               : CUPTI_ACTIVITY_KIND_DRIVER;
  r.start = r.end = time_for_client(s, clock(CLOCK_REALTIME));
  r.processId = static_cast<uint32_t>(getpid());
  r.threadId = static_cast<uint32_t>(gettid());
  r.correlationId = correlation;
  write(s, r);
  return correlation;
}

// STANDIN_CUPTI_IMPOSSIBLE=N: one of every N records gets impossible times, in five ways in turn.
template <typename Record>
void spoil(State& s, Record& r) {
  static const char* const every = std::getenv("STANDIN_CUPTI_IMPOSSIBLE");
  if (every == nullptr) return;
  const auto n = static_cast<uint64_t>(std::atoi(every));
  if (s.records % n != 0) return;
  const uint64_t start = r.start;
  switch (s.records / n % 5) {
    case 0:
      r.start = r.end = 0;
      break;
    case 1:
      r.end = 0;
      break;
    case 2:
      r.start = r.end;
      r.end = start;
      break;
    case 3:  // an hour before the call
      r.start -= 3'600'000'000'000;
      r.end -= 3'600'000'000'000;
      break;
    default:  // an hour from now
      r.start += 3'600'000'000'000;
      r.end += 3'600'000'000'000;
  }
}

template <typename Record>
void fill(State& s, Record& r, const Op& op, const CUstream_st& stream, int64_t began_ns,
          int64_t ended_ns) {
  static const int64_t offset = realtime_ahead();
  r.start = time_for_client(s, began_ns + offset);
  r.end = time_for_client(s, ended_ns + offset);
  r.deviceId = static_cast<uint32_t>(stream.device);
  r.contextId = static_cast<uint32_t>(stream.device) + 1;
  r.streamId = static_cast<uint32_t>(stream.id);
  r.correlationId = op.correlation;
  ++s.records;
  spoil(s, r);
  write(s, r);
}

uint8_t memory_of(const void* pointer) {
  const auto there = find_allocation(pointer);
  if (!there) return CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE;
  return there->type == cudaMemoryTypeHost      ? CUPTI_ACTIVITY_MEMORY_KIND_PINNED
         : there->type == cudaMemoryTypeManaged ? CUPTI_ACTIVITY_MEMORY_KIND_MANAGED
                                                : CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
}

void ran(const Op& op, const CUstream_st& stream, int64_t began_ns, int64_t ended_ns) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (op.type == cudaGraphNodeTypeMemcpy && s.kind[CUPTI_ACTIVITY_KIND_MEMCPY]) {
    CUpti_ActivityMemcpy6 r{};
    r.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
    r.bytes = op.copied.bytes();
    r.copyKind = op.kind == cudaMemcpyHostToDevice   ? CUPTI_ACTIVITY_MEMCPY_KIND_HTOD
                 : op.kind == cudaMemcpyDeviceToHost ? CUPTI_ACTIVITY_MEMCPY_KIND_DTOH
                                                     : CUPTI_ACTIVITY_MEMCPY_KIND_DTOD;
    r.srcKind = memory_of(op.copied.src);
    r.dstKind = memory_of(op.copied.dst);
    fill(s, r, op, stream, began_ns, ended_ns);
  }
  if (op.type == cudaGraphNodeTypeKernel && s.kind[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL]) {
    CUpti_ActivityKernel10 r{};
    r.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    r.name = op.kernel;
    fill(s, r, op, stream, began_ns, ended_ns);
  }
}

constexpr activity::Observer kObserver = {called, ran};

CUpti_SubscriberHandle handle_of(State& s) {
  return reinterpret_cast<CUpti_SubscriberHandle>(&s);
}

}  // namespace

bool subscribe(CUpti_SubscriberHandle* handle) {
  State& s = state();
  std::unique_lock lock(s.mutex);
  if (s.subscribed) return false;
  if (const char* const calls = std::getenv("STANDIN_CUPTI_SUBSCRIBE_AFTER")) {
    const auto wanted = static_cast<uint32_t>(std::atoi(calls));
    activity::observer = &kObserver;
    s.called.wait_for(lock, std::chrono::seconds(20), [&] { return s.correlation >= wanted; });
  }
  s.subscribed = true;
  *handle = handle_of(s);
  return true;
}

bool unsubscribe(CUpti_SubscriberHandle handle) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (!s.subscribed || handle != handle_of(s)) return false;
  s.subscribed = false;
  return true;
}

void callbacks(CUpti_BuffersCallbackRequestFunc request,
               CUpti_BuffersCallbackCompleteFunc complete) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.request = request;
  s.complete = complete;
}

void client_clock(CUpti_TimestampCallbackFunc callback) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.clock = callback;
  if (callback == nullptr) return;
  s.clock_since[0] = clock(CLOCK_REALTIME);
  s.clock_since[1] = static_cast<int64_t>(callback());
}

bool enable(CUpti_ActivityKind kind, bool on) {
  if (kind <= CUPTI_ACTIVITY_KIND_INVALID || kind >= CUPTI_ACTIVITY_KIND_COUNT) return false;
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.kind[kind] = on;
  activity::observer = &kObserver;
  return true;
}

void flush() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  hand_over(s);
}

std::size_t take_dropped() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  return std::exchange(s.dropped, 0);
}

void push(CUpti_ExternalCorrelationKind kind, uint64_t id) {
  external[kind].push_back(id);
}

bool pop(CUpti_ExternalCorrelationKind kind, uint64_t* id) {
  auto& ids = external[kind];
  if (ids.empty()) return false;
  if (id != nullptr) *id = ids.back();
  ids.pop_back();
  return true;
}

std::size_t size_of(const CUpti_Activity& record) {
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
      return sizeof(CUpti_ActivityExternalCorrelation);
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
      return sizeof(CUpti_ActivityAPI);
    default:
      return 0;
  }
}

}  // namespace standin::cupti
