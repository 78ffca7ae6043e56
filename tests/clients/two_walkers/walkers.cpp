// A preload that walks the stack of each call twice, with marks/walk.h (nongnu.org's libunwind) and
// with LLVM's, and writes into WALKS_TO/<pid> how many walks and frames there were, how many walks
// differed, and how many ours cut short. The first difference goes to standard error.
#include <dlfcn.h>
#include <fcntl.h>
#include <libunwind.h>
#include <nccl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "interpose/marks/walk.h"
#include "interpose/real/binding.h"

namespace {

constexpr std::size_t kMost = 512;

struct Walk {
  std::uintptr_t frame[kMost];
  std::size_t frames = 0;
  bool cut = false;
};

struct Counts {
  std::size_t walks = 0, frames = 0, differ = 0, cut = 0;
};
std::mutex g_lock;
Counts g_counts;

// Walks to the outermost frame, without the frames of this library at the inner end.
[[gnu::noinline]] void by_libunwind(Walk& walk) {
  unw_context_t registers;
  unw_cursor_t cursor;
  unw_getcontext(&registers);
  unw_init_local(&cursor, &registers);
  while (walk.frames < kMost && unw_step(&cursor) > 0) {
    unw_word_t code = 0;
    unw_get_reg(&cursor, UNW_REG_IP, &code);
    if (code == 0) break;
    const auto* call = reinterpret_cast<const void*>(code - 1);
    if (walk.frames == 0 && tprof::resolve::is_ours(call)) continue;
    walk.frame[walk.frames++] = code;
  }
}

void print(const char* whose, const Walk& walk) {
  for (std::size_t i = 0; i < walk.frames; ++i) {
    Dl_info in{};
    const auto* at = reinterpret_cast<const void*>(walk.frame[i] - 1);
    const bool known = dladdr(at, &in) != 0;
    std::fprintf(stderr, "%s %zu %#zx %s %s\n", whose, i, walk.frame[i], known ? in.dli_fname : "?",
                 in.dli_sname != nullptr ? in.dli_sname : "?");
  }
}

void write_down() {
  const char* folder = std::getenv("WALKS_TO");
  if (folder == nullptr) return;
  char path[4096], text[128];
  std::snprintf(path, sizeof path, "%s/%d", folder, getpid());
  const int size = std::snprintf(text, sizeof text, "%zu %zu %zu %zu\n", g_counts.walks,
                                 g_counts.frames, g_counts.differ, g_counts.cut);
  const int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0 || pwrite(file, text, static_cast<std::size_t>(size), 0) != size) std::abort();
  close(file);
}

[[gnu::noinline]] void compare() {
  Walk ours, theirs;
  static const bool begun = tprof::native::begin();
  if (!begun) std::abort();
  tprof::native::forget_unloaded();
  const tprof::native::Stack stack = tprof::native::walk(ours.frame, kMost);
  ours.frames = stack.frames;
  by_libunwind(theirs);
  const std::lock_guard guard(g_lock);
  const bool same = ours.frames == theirs.frames &&
                    std::equal(ours.frame, ours.frame + ours.frames, theirs.frame);
  if (!same && g_counts.differ == 0) print("ours", ours), print("theirs", theirs);
  ++g_counts.walks;
  g_counts.frames += theirs.frames;
  g_counts.differ += same ? 0 : 1;
  g_counts.cut += stack.cut ? 1 : 0;
  write_down();
}

template <typename F>
F* real(const char* name, const char* library) {
  void* at = dlsym(RTLD_NEXT, name);
  if (void* loaded = at == nullptr ? dlopen(library, RTLD_NOW | RTLD_NOLOAD) : nullptr) {
    at = dlsym(loaded, name);
  }
  if (at == nullptr) std::abort();
  return reinterpret_cast<F*>(at);
}

}  // namespace

#define WALKED(result, library, name, types, arguments)           \
  extern "C" [[gnu::visibility("default")]] result name types {   \
    static auto* const next = real<result types>(#name, library); \
    compare();                                                    \
    return next arguments;                                        \
  }

#define NCCL "libnccl.so.2"
WALKED(ncclResult_t, NCCL, ncclAllGather,
       (const void* from, void* to, size_t n, ncclDataType_t type, ncclComm_t comm, cudaStream_t s),
       (from, to, n, type, comm, s))
WALKED(ncclResult_t, NCCL, ncclReduceScatter,
       (const void* from, void* to, size_t n, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
        cudaStream_t s),
       (from, to, n, type, op, comm, s))
WALKED(ncclResult_t, NCCL, ncclAllReduce,
       (const void* from, void* to, size_t n, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
        cudaStream_t s),
       (from, to, n, type, op, comm, s))
WALKED(cudaError_t, "libcudart.so.13", cudaMemcpyAsync,
       (void* to, const void* from, size_t n, cudaMemcpyKind kind, cudaStream_t s),
       (to, from, n, kind, s))
WALKED(cudaError_t, "libcudart.so.13", cudaStreamWaitEvent,
       (cudaStream_t s, cudaEvent_t event, unsigned flags), (s, event, flags))
WALKED(cudaError_t, "libcudart.so.13", cudaEventQuery, (cudaEvent_t event), (event))
