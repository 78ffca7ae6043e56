// Uses CUPTI for a part of its life, as PyTorch does while its profiler runs. It copies before,
// during and after, and prints how many of the copies it got records of.
//
// cupti_user when how: `when` is first (before the first copy) or later; `how` is linked (by the
// name, as PyTorch does) or dlsym.
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

// Declares these as cupti.h does, which not every build has.
extern "C" {
[[gnu::weak]] int cuptiSubscribe(void** subscriber, void* callback, void* data);
[[gnu::weak]] int cuptiActivityRegisterCallbacks(void* requested, void* completed);
}

namespace {

constexpr std::uint32_t kMemcpy = 1;
constexpr std::size_t kSize = 1 << 16;
int copies_seen = 0;
int foreign = 0;
void* library;

template <typename Function>
Function* named(const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

struct Own {
  std::uint8_t* buffer;
  bool out;
} own[64];

void requested(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, kSize));
  *size = kSize;
  *most = 0;
  for (Own& o : own) {
    if (o.out) continue;
    o = {*buffer, true};
    return;
  }
}

void completed(void*, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  bool mine = false;
  for (Own& o : own) {
    if (!o.out || o.buffer != buffer) continue;
    mine = true;
    o.out = false;
  }
  if (!mine) {
    ++foreign;
    return;
  }
  std::uint32_t* record = nullptr;
  auto* next =
      named<int(std::uint8_t*, std::size_t, std::uint32_t**)>("cuptiActivityGetNextRecord");
  while (next(buffer, valid, &record) == 0) copies_seen += *record == kMemcpy ? 1 : 0;
  std::free(buffer);
}

void copy(int times) {
  static char host[4096];
  static void* device = nullptr;
  if (device == nullptr) cudaMalloc(&device, sizeof host);
  for (int i = 0; i < times; ++i) {
    cudaMemcpyAsync(device, host, sizeof host, cudaMemcpyHostToDevice, nullptr);
  }
  cudaDeviceSynchronize();
}

void callback(void*, int, std::uint32_t, const void*) {}

}  // namespace

int main(int, char** argv) {
  const bool first = std::strcmp(argv[1], "first") == 0;
  const bool linked = std::strcmp(argv[2], "linked") == 0;
  library = dlopen("libcupti.so.13", RTLD_NOW | (linked ? RTLD_GLOBAL : RTLD_LOCAL));
  if (library == nullptr) return 1;
  using Subscribe = int(void**, void*, void*);
  using Register = int(void*, void*);
  auto* subscribe = linked ? cuptiSubscribe : named<Subscribe>("cuptiSubscribe");
  auto* register_callbacks =
      linked ? cuptiActivityRegisterCallbacks : named<Register>("cuptiActivityRegisterCallbacks");
  auto* enable = named<int(std::uint32_t)>("cuptiActivityEnable");
  auto* disable = named<int(std::uint32_t)>("cuptiActivityDisable");
  auto* flush = named<int(std::uint32_t)>("cuptiActivityFlushAll");
  auto* unsubscribe = named<int(void*)>("cuptiUnsubscribe");
  if (subscribe == nullptr) subscribe = named<Subscribe>("cuptiSubscribe");
  if (register_callbacks == nullptr) {
    register_callbacks = named<Register>("cuptiActivityRegisterCallbacks");
  }

  if (!first) copy(5);
  void* me = nullptr;
  const int got = subscribe(&me, reinterpret_cast<void*>(callback), nullptr);
  register_callbacks(reinterpret_cast<void*>(requested), reinterpret_cast<void*>(completed));
  enable(kMemcpy);
  copy(7);
  flush(0);
  disable(kMemcpy);
  if (me != nullptr) unsubscribe(me);
  copy(3);
  std::printf("subscribed %d, saw %d copies, %d buffers of others\n", got, copies_seen, foreign);
}
