#include "interpose/real/driver.h"

#include <atomic>

#include "interpose/real/resolve.h"
#include "interpose/real/stream_gates.h"

namespace tprof::driver {
namespace {

using resolve::DriverFunction;

// These exist since CUDA 10.1, and their names keep their meaning: newer versions get a suffix.
constinit DriverFunction<int(CUstream, int*)> g_is_capturing("cuStreamIsCapturing");
constinit DriverFunction<int(CUstream, CUcontext*)> g_context_of("cuStreamGetCtx");
constinit DriverFunction<int(CUcontext*)> g_current("cuCtxGetCurrent");
constinit DriverFunction<int(CUcontext)> g_enter("cuCtxSetCurrent");
constinit DriverFunction<int(int*)> g_exchange_mode("cuThreadExchangeStreamCaptureMode");
constinit DriverFunction<int(CUevent*, unsigned)> g_make("cuEventCreate");
constinit DriverFunction<int(CUstream*, unsigned)> g_make_stream("cuStreamCreate");
constinit DriverFunction<int(CUdevice*)> g_device("cuCtxGetDevice");
constinit DriverFunction<int(CUdevice, unsigned*, int*)> g_primary_state(
    "cuDevicePrimaryCtxGetState");
constinit DriverFunction<int(CUevent, CUstream)> g_record("cuEventRecord");
constinit DriverFunction<int(CUstream)> g_stream_query("cuStreamQuery");
constinit DriverFunction<int(CUevent)> g_query("cuEventQuery");
constinit DriverFunction<int(int*)> g_devices("cuDeviceGetCount");
constinit DriverFunction<int(CUcontext*, CUdevice)> g_retain("cuDevicePrimaryCtxRetain");
constinit DriverFunction<int(CUdevice)> g_release("cuDevicePrimaryCtxRelease_v2");
constinit DriverFunction<int()> g_start_profiler("cuProfilerStart");
constinit DriverFunction<int()> g_stop_profiler("cuProfilerStop");
constinit DriverFunction<int(float*, CUevent, CUevent)> g_elapsed("cuEventElapsedTime");
constinit DriverFunction<int(unsigned, const CUpointer_attribute*, void**, std::uintptr_t)>
    g_attributes("cuPointerGetAttributes");

// Asks for the type of memory and for one more attribute. Both answers are 0 for memory that CUDA
// does not know: the program's own host memory.
template <typename T>
bool ask(const void* address, CUpointer_attribute attribute, unsigned& type, T& answer) {
  const CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, attribute};
  void* answers[] = {&type, &answer};
  return g_attributes(2U, attributes, answers, reinterpret_cast<std::uintptr_t>(address)) == 0;
}

struct Kind {
  bool device = false;
  bool managed = false;
  HostMemory host = HostMemory::unknown;  // if it is not device memory
};

Kind kind_of(const void* address) {
  if (address == nullptr) return {true, false};
  unsigned type = 0;
  unsigned managed = 0;
  if (!ask(address, CU_POINTER_ATTRIBUTE_IS_MANAGED, type, managed)) return {};
  Kind kind{type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_ARRAY,
            managed != 0 || type == CU_MEMORYTYPE_UNIFIED};
  if (kind.managed) {
    kind.host = HostMemory::managed;
  } else if (type == CU_MEMORYTYPE_HOST) {
    kind.host = HostMemory::pinned;
  } else if (type == 0) {
    kind.host = HostMemory::pageable;
  }
  return kind;
}

}  // namespace

bool device(int& ordinal) {
  return g_device(&ordinal) == 0;
}

int current_device(int otherwise) {
  int ordinal = 0;
  return device(ordinal) ? ordinal : otherwise;
}

Direction direction(const void* dst, const void* src) {
  const auto to = kind_of(dst);
  const auto from = kind_of(src);
  if (to.managed || from.managed) return {Bucket::MANAGED};
  if (to.device == from.device) return {to.device ? Bucket::D2D : Bucket::H2H};
  if (to.device) return {Bucket::H2D, from.host};
  return {Bucket::D2H, to.host};
}

HostMemory host_memory(const void* address) {
  // A runtime loads the driver at its first call, so if copies find no driver there will be none.
  // Looking for it takes the loader's lock, so we give up after kTries.
  constexpr unsigned kTries = 16;
  static constinit std::atomic<unsigned> in_vain{0};
  if (in_vain.load(std::memory_order_relaxed) >= kTries) return HostMemory::unknown;
  if (g_attributes.get() == nullptr) in_vain.fetch_add(1, std::memory_order_relaxed);
  return kind_of(address).host;
}

int device_of(const void* address, int otherwise) {
  unsigned type = 0;
  int device = otherwise;
  const bool known = ask(address, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, type, device);
  return known && type != 0 ? device : otherwise;
}

CUcontext context_to_time_in(CUstream stream) {
  int status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUcontext context = nullptr;
  if (g_is_capturing(stream, &status) != 0 || status != CU_STREAM_CAPTURE_STATUS_NONE) {
    return nullptr;
  }
  return g_context_of(stream, &context) == 0 ? context : nullptr;
}

bool is_in(CUcontext context) {
  CUcontext current = nullptr;
  return g_current(&current) == 0 && current == context;
}

bool enter(CUcontext context) {
  return g_enter(context) == 0;
}

void stay_out_of_captures() {
  int mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
  g_exchange_mode(&mode);
}

bool is_empty(CUstream stream) {
  const stream_gates::Use use(stream);
  if (!use) return false;
  int status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (g_is_capturing(stream, &status) != 0 || status != CU_STREAM_CAPTURE_STATUS_NONE) {
    return false;
  }
  // In another mode the query would invalidate another thread's capture
  // (cudaStreamCaptureModeGlobal).
  int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  if (g_exchange_mode(&mode) != 0) return false;
  const bool empty = g_stream_query(stream) == 0;
  g_exchange_mode(&mode);
  return empty;
}

bool make(CUevent& event) {
  return g_make(&event, unsigned{CU_EVENT_DEFAULT}) == 0;
}

bool record(CUevent event, CUstream stream) {
  return g_record(event, stream) == 0;
}

Reached reached(CUevent event) {
  const int answer = g_query(event);
  return answer == 0                      ? Reached::yes
         : answer == CUDA_ERROR_NOT_READY ? Reached::not_yet
                                          : Reached::never;
}

bool elapsed(CUevent from, CUevent to, double& ns) {
  float ms = 0;
  if (g_elapsed(&ms, from, to) != 0 || ms != ms) return false;
  ns = static_cast<double>(ms) * 1e6;
  return true;
}

bool make(CUstream& stream) {
  return g_make_stream(&stream, unsigned{CU_STREAM_NON_BLOCKING}) == 0;
}

bool has_primary_context(int device) {
  unsigned flags = 0;
  int active = 0;
  return g_primary_state(CUdevice{device}, &flags, &active) == 0 && active != 0;
}

void switch_profilers(bool on) {
  int count = 0;
  if (g_devices(&count) != 0) return;
  for (CUdevice device = 0; device < count; ++device) {
    CUcontext context = nullptr;
    if (!has_primary_context(device) || g_retain(&context, device) != 0) continue;
    if (enter(context)) (on ? g_start_profiler : g_stop_profiler)();
    enter(nullptr);
    g_release(device);
  }
}

}  // namespace tprof::driver
