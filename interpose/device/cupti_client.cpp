#include "interpose/device/cupti_client.h"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <string_view>

#include "interpose/base/background_thread.h"
#include "interpose/base/free_list.h"
#include "interpose/base/library_functions.h"
#include "interpose/base/loaded_objects.h"
#include "interpose/base/lock.h"
#include "interpose/base/mapped_symbols.h"
#include "interpose/base/own_memory.h"
#include "interpose/base/text.h"
#include "interpose/real/resolve.h"

namespace tprof::cupti {
namespace buffers {
namespace {

// Small, so that each returns soon: CUPTI keeps a buffer as long as one of its kernels runs.
constexpr std::size_t kSize = std::size_t{256} << 10;
constexpr std::uint32_t kCount = 256;

struct Place {
  std::uint32_t next;
  std::size_t valid;
};
constinit Place g_place[kCount]{};
constinit FreeList<Place> g_free{};
constinit FreeList<Place> g_came{};  // places with returned buffers
constinit std::atomic<std::uint32_t> g_out{0};
constinit std::atomic<std::uint8_t*> g_memory{nullptr};

}  // namespace

void requested(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
  Place* place = g_free.take(g_place);
  *buffer = place == nullptr ? nullptr
                             : g_memory.load(std::memory_order_relaxed) +
                                   static_cast<std::size_t>(place - g_place) * kSize;
  *size = place == nullptr ? 0 : kSize;
  *most_records = 0;
  if (place != nullptr) g_out.fetch_add(1, std::memory_order_relaxed);
}

void completed(void*, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  if (!is_ours(buffer)) return;
  const auto index = static_cast<std::uint32_t>(
      static_cast<std::size_t>(buffer - g_memory.load(std::memory_order_relaxed)) / kSize);
  g_place[index].valid = valid;
  g_came.give_back(g_place, g_place[index]);
  g_out.fetch_sub(1, std::memory_order_relaxed);
}

bool is_ours(const std::uint8_t* buffer) {
  const std::uint8_t* memory = g_memory.load(std::memory_order_relaxed);
  return memory != nullptr && buffer >= memory && buffer < memory + kSize * kCount;
}

bool any_out() {
  return g_out.load(std::memory_order_relaxed) != 0;
}

bool next(Buffer& buffer) {
  const Place* place = g_came.take(g_place);
  if (place == nullptr) return false;
  buffer = {
      g_memory.load(std::memory_order_relaxed) + static_cast<std::size_t>(place - g_place) * kSize,
      place->valid};
  return true;
}

void give_back(const Buffer& buffer) {
  const auto at = static_cast<std::size_t>(buffer.data - g_memory.load(std::memory_order_relaxed));
  g_free.give_back(g_place, g_place[at / kSize]);
}

bool begin() {
  void* pages = take_memory(kSize * kCount);
  if (pages == nullptr) return false;
  g_memory.store(static_cast<std::uint8_t*>(pages), std::memory_order_relaxed);
  for (std::uint32_t i = kCount; i-- != 0;) g_free.give_back(g_place, g_place[i]);
  return true;
}

}  // namespace buffers

namespace {

// The libcupti of the process's CUDA. We load it if it is not mapped yet.
#define FUNCTIONS(X)                                                                              \
  X(subscribe, "cuptiSubscribe", (void** subscriber, void* callback, void* data))                 \
  X(unsubscribe, "cuptiUnsubscribe", (void* subscriber))                                          \
  X(register_callbacks, "cuptiActivityRegisterCallbacks", (Requested given, Completed completed)) \
  X(enable, "cuptiActivityEnable", (ActivityKind kind))                                           \
  X(disable, "cuptiActivityDisable", (ActivityKind kind))                                         \
  X(flush, "cuptiActivityFlushAll", (std::uint32_t flag))                                         \
  X(next, "cuptiActivityGetNextRecord",                                                           \
    (std::uint8_t * buffer, std::size_t valid, Record * *record))                                 \
  X(push, "cuptiActivityPushExternalCorrelationId", (std::uint32_t whose, std::uint64_t id))      \
  X(pop, "cuptiActivityPopExternalCorrelationId", (std::uint32_t whose, std::uint64_t * id))      \
  X(time, "cuptiGetTimestamp", (std::uint64_t * ns))
struct Library {
#define X(function, name, parameters) Result(*function) parameters;
  FUNCTIONS(X)
#undef X
};

constexpr int kOldest = 11;
constexpr int kNewest = 13;
constexpr int kReleasesOf11 = 8;  // each with its own soname

struct Runtime {
  int major = 0;  // 0: no shared runtime
  char folder[1024] = "";
};

Runtime find_runtime() {
  Runtime runtime;
  each_loaded_object([&](const dl_phdr_info& object) {
    const std::string_view path(object.dlpi_name);
    const std::string_view file = file_name(path);
    runtime.major = resolve::runtime_named(file);
    if (runtime.major == 0) return false;
    copy_text(runtime.folder, prefix(path, path.size() - file.size()));
    return true;
  });
  return runtime;
}

void* open_mapped(const char* soname) {
  return loader::dlopen(soname, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD | RTLD_NODELETE);
}

// Tries the folders beside the runtime, as in a wheel of CUDA 13, one of CUDA 11 or 12, and a
// toolkit, then the loader's search path.
void* open_new(const Runtime& runtime, const char* soname) {
  constexpr int kHow = RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE;
  if (runtime.folder[0] == '/') {
    for (const char* folder : {"", "../../cuda_cupti/lib/", "../extras/CUPTI/lib64/"}) {
      char path[1280];
      const std::string_view made = (FixedText(path) << runtime.folder << folder << soname).view();
      if (made.size() + 1 >= sizeof path) continue;
      if (void* handle = loader::dlopen(made.data(), kHow)) return handle;
    }
  }
  return loader::dlopen(soname, kHow);
}

template <typename Open>
void* open_of(int major, Open&& open) {
  char soname[32];
  if (major != kOldest) {
    (FixedText(soname) << "libcupti.so.").number(major);
    return open(soname);
  }
  for (int release = kReleasesOf11; release >= 0; --release) {
    (FixedText(soname) << "libcupti.so.11.").number(release);
    if (void* handle = open(soname)) return handle;
  }
  return nullptr;
}

// The version of a linked-in runtime is unknown: then we take a mapped libcupti, or else the
// newest.
void* open_library() {
  const Runtime runtime = find_runtime();
  for (const bool mapped : {true, false}) {
    for (int major = kNewest; major >= kOldest; --major) {
      if (runtime.major != 0 && major != runtime.major) continue;
      void* handle = open_of(major, [&](const char* soname) {
        return mapped ? open_mapped(soname) : open_new(runtime, soname);
      });
      if (handle != nullptr) return handle;
    }
  }
  return nullptr;
}

// Call this without holding a lock of ours, since the loader takes its own. Returns false if there
// is no libcupti, or it lacks something. It stays mapped.
bool load(Library& library) {
  LibraryFunctions functions(open_library(), loader::dlsym);
#define X(function, name, parameters) functions.find(library.function, name);
  FUNCTIONS(X)
#undef X
  return functions.whole();
}

constinit std::atomic<State> g_state{State::before};
constinit std::atomic<bool> g_recording{false};
constinit bool g_forked = false;  // from a process that was CUPTI's client
constinit Library g_cupti{};
constinit Lock g_changing{LockOrder::cupti};
void* g_subscriber = nullptr;
std::atomic<std::uint32_t> g_left{0};  // futex; 1: leaving is done

// `external` records come only with records of runtime or driver calls: NCCL calls the driver,
// PyTorch the runtime.
constexpr ActivityKind kKinds[] = {ActivityKind::external,    ActivityKind::runtime,
                                   ActivityKind::driver,      ActivityKind::memcpy,
                                   ActivityKind::peer_memcpy, ActivityKind::kernel};

void nothing(void*, std::uint32_t, std::uint32_t, const void*) {}

bool in() {
  return g_state.load(std::memory_order_acquire) == State::in;
}

// Returns the reason for a failure, or null.
const char* subscribe() {
  if (!buffers::begin()) return "no memory";
  void* callback = reinterpret_cast<void*>(nothing);
  const Result result = g_cupti.subscribe(&g_subscriber, callback, nullptr);
  if (result == kTaken) return "another tool is using CUPTI";
  if (result != kSuccess) return "CUPTI refuses";
  if (g_cupti.register_callbacks(buffers::requested, buffers::completed) != kSuccess) {
    g_cupti.unsubscribe(g_subscriber);
    return "CUPTI refuses our buffers";
  }
  return nullptr;
}

}  // namespace

State state() {
  return g_state.load(std::memory_order_acquire);
}

bool recording() {
  return g_recording.load(std::memory_order_acquire);
}

const char* enter() {
  if (state() == State::before && !load(g_cupti)) {
    return "there is no libcupti of the process's CUDA";
  }
  const LockGuard guard(g_changing);
  if (state() != State::before) {
    return g_forked ? "the process was forked from one that uses CUPTI"
                    : "the program has asked CUPTI for its own records";
  }
  g_state.store(State::entering, std::memory_order_relaxed);
  const char* why_not = subscribe();
  g_state.store(why_not == nullptr ? State::in : State::out, std::memory_order_release);
  return why_not;
}

bool start_records() {
  const LockGuard guard(g_changing);
  if (!in()) return false;
  for (const ActivityKind kind : kKinds) {
    // A CUPTI without a kind for copies between devices records them as other copies.
    if (g_cupti.enable(kind) != kSuccess && kind != ActivityKind::peer_memcpy) {
      for (const ActivityKind other : kKinds) g_cupti.disable(other);
      return false;
    }
  }
  g_recording.store(true, std::memory_order_release);
  return true;
}

void stop_records() {
  const LockGuard guard(g_changing);
  g_recording.store(false, std::memory_order_release);
  if (!in()) return;
  for (const ActivityKind kind : kKinds) g_cupti.disable(kind);
}

void flush() {
  const State s = state();
  if (s == State::in || s == State::leaving) g_cupti.flush(0);
}

Record* next(std::uint8_t* buffer, std::size_t valid, Record* before) {
  const State s = state();
  if (s != State::in && s != State::leaving) return nullptr;
  Record* record = before;
  return g_cupti.next(buffer, valid, &record) == kSuccess ? record : nullptr;
}

bool push(std::uint64_t id) {
  return in() && g_cupti.push(kOurs, id) == kSuccess;
}

void pop() {
  g_cupti.pop(kOurs, nullptr);
}

bool time(std::uint64_t& ns) {
  return in() && g_cupti.time(&ns) == kSuccess;
}

void close() {
  State expected = State::in;
  g_recording.store(false, std::memory_order_release);
  g_state.compare_exchange_strong(expected, State::over);
}

bool leave(void (*last_read)()) {
  const State now = state();
  if (now == State::entering || now == State::out || now == State::over) return false;
  const HeldSignals held_signals;
  // The lock's owner may be waiting, in CUPTI, for a lock of the loader that our caller holds.
  constexpr std::uint32_t kPatienceMs = 1000;
  if (!g_changing.lock_until(now_ns() + std::uint64_t{kPatienceMs} * 1'000'000)) return false;
  const State before = state();
  if (before == State::in) {
    g_recording.store(false, std::memory_order_release);
    g_state.store(State::leaving, std::memory_order_release);
    for (const ActivityKind kind : kKinds) g_cupti.disable(kind);
  } else if (before == State::before) {
    g_state.store(State::out, std::memory_order_release);
  }
  g_changing.unlock();
  if (before == State::leaving) wait_until(g_left, 1, kPatienceMs);
  if (before != State::in) return false;
  // After the unlock, since the reading thread may be about to take the lock. From here on no other
  // thread changes the state.
  last_read();
  g_state.store(State::out, std::memory_order_release);
  g_cupti.unsubscribe(g_subscriber);
  g_left.store(1, std::memory_order_release);
  futex_wake(g_left);
  return true;
}

void after_fork() {
  if (state() == State::before) return;
  g_forked = state() != State::out;
  g_recording.store(false, std::memory_order_relaxed);
  g_state.store(State::out, std::memory_order_relaxed);
  g_left.store(1, std::memory_order_relaxed);
}

}  // namespace tprof::cupti
