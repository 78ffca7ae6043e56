// cuGetProcAddress finds the driver's functions by name and by the version that the caller wants.
#include <dlfcn.h>

#include <map>
#include <string>

#include "driver/entry.h"

#undef cuGetProcAddress
extern "C" CUresult cuGetProcAddress(const char* name, void** function, int version,
                                     cuuint64_t flags);

namespace {

std::map<std::string, void*>& entry_points() {
  static auto& all = *new std::map<std::string, void*>;
  return all;
}

// A newer version of a function has a suffix in the library. The table says which CUDA version
// introduced it, but only where a caller of today may ask for an older one.
struct Newer {
  const char* name;
  int since;
  const char* suffix;
};
constexpr Newer kNewer[] = {
    {"cuStreamGetCaptureInfo", 12030, "_v3"},
    {"cuStreamGetCaptureInfo", 11030, "_v2"},
    {"cuMemcpyBatchAsync", 13000, "_v2"},
    {"cuMemPrefetchAsync", 12020, "_v2"},
    {"cuMemAdvise", 13000, "_v2"},
    {"cuGetProcAddress", 12000, "_v2"},
    {"cuEventElapsedTime", 12080, "_v2"},
};

void* find(const std::string& name) {
  const auto known = entry_points().find(name);
  if (known != entry_points().end()) return known->second;
  static void* const self = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return dlsym(self, name.c_str());
}

// Finds a name in the library, with the suffix of its twin if `per_thread` and there is one.
void* find(const std::string& name, bool per_thread) {
  void* found = nullptr;
  if (per_thread) found = find(name + "_ptsz");
  if (per_thread && !found) found = find(name + "_ptds");
  return found ? found : find(name);
}

void* find(const std::string& name, int version, bool per_thread) {
  bool listed = false;
  for (const Newer& newer : kNewer) {
    if (name != newer.name) continue;
    listed = true;
    if (version >= newer.since) return find(name + newer.suffix, per_thread);
  }
  void* second = listed ? nullptr : find(name + "_v2", per_thread);
  return second ? second : find(name, per_thread);
}

}  // namespace

standin::EntryPoint::EntryPoint(const char* exported, void* function) {
  entry_points()[exported] = function;
}

extern "C" {

CUresult cuGetProcAddress_v2(const char* name, void** function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
  *function = find(name, version, (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0);
  if (status) {
    *status = *function ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
CUresult cuGetProcAddress(const char* name, void** function, int version, cuuint64_t flags) {
  return cuGetProcAddress_v2(name, function, version, flags, nullptr);
}

}  // extern "C"
