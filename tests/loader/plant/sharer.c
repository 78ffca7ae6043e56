/* A preload as those are that share a GPU (nvshare, HAMi, alnair): it stands in front of functions of NCCL and CUDA, and
 * of the dynamic linker's, and passes on what it gets. At the end it says how often each was called.
 *
 * DLSYM     has a dlsym that answers with its own functions, by their plain address
 * HIDDEN    ... or by functions that nobody else can stand for
 * ANY       ... whatever handle it is asked
 * FORGETS   ... and that gives no function twice to one that asks for the next
 * DLVSYM    has a dlvsym
 * DLOPEN    has a dlopen and a dlclose
 * ADDRESS   has a cuGetProcAddress that answers with its own functions
 * NEXT      takes the real functions by RTLD_NEXT, else from the library itself
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Integers and pointers, of which no function here has more. */
#define PARAMETERS long a, long b, long c, long d, long e, long f, long g, long h
#define ARGUMENTS a, b, c, d, e, f, g, h
#define DRIVER(X)                                                           \
  X(cuMemcpyHtoD_v2, "libcuda.so.1") X(cuMemcpyHtoDAsync_v2, "libcuda.so.1") \
  X(cuMemcpyDtoH_v2, "libcuda.so.1") X(cuMemcpy2D_v2, "libcuda.so.1")
#define FUNCTIONS(X)                                                                             \
  X(cudaMalloc, "libcudart.so.13") X(cudaMemcpy, "libcudart.so.13")                              \
  X(cudaMemcpyAsync, "libcudart.so.13") X(ncclAllGather, "libnccl.so.2")                         \
  X(ncclAllReduce, "libnccl.so.2") X(ncclCommDestroy, "libnccl.so.2") DRIVER(X)

typedef int (*any)(PARAMETERS);
typedef void* (*find)(void*, const char*);

static find next_dlsym(void) {
  static find found;
  if (!found) found = (find)dlvsym(RTLD_NEXT, "dlsym", VERSION);
  return found;
}

static any real(const char* library, const char* name) {
#ifdef NEXT
  return (any)next_dlsym()(RTLD_NEXT, name);
#else
  return (any)next_dlsym()(dlopen(library, RTLD_LAZY), name);
#endif
}

#define X(name, library)                            \
  static int calls_##name;                          \
  static int own_##name(PARAMETERS) {               \
    static any behind;                              \
    if (!behind) behind = real(library, #name);     \
    ++calls_##name;                                 \
    return behind ? behind(ARGUMENTS) : 999;        \
  }                                                 \
  int name(PARAMETERS) { return own_##name(ARGUMENTS); }
FUNCTIONS(X)
#ifdef ADDRESS
#define DRIVER_TOO(X) X(cuGetProcAddress, "libcuda.so.1") X(cuGetProcAddress_v2, "libcuda.so.1")
#undef X
#define X(name, library)                                                                        \
  static int calls_##name;                                                                      \
  static int own_##name(const char* asked, void** to, long version, long flags, void* status) { \
    static any behind;                                                                          \
    if (!behind) behind = real(library, #name);                                                 \
    ++calls_##name;                                                                             \
    if (!behind) return 999;                                                                    \
    const int result = behind((long)asked, (long)to, version, flags, (long)status, 0, 0, 0);    \
    if (!strcmp(asked, "cuMemcpyHtoD") && version >= 3020 && flags != 2) *to = (void*)&cuMemcpyHtoD_v2; \
    return result;                                                                              \
  }                                                                                             \
  int name(const char* asked, void** to, long version, long flags, void* status) {              \
    return own_##name(asked, to, version, flags, status);                                       \
  }
DRIVER_TOO(X)
#else
#define DRIVER_TOO(X)
#endif
#undef X

#ifdef DLSYM
void* dlsym(void* handle, const char* name) {
#ifdef FORGETS
  static void* told[512];
  if (handle == RTLD_NEXT) {
    void* found = next_dlsym()(handle, name);
    for (void** t = told; t != told + 511; ++t) {
      if (*t == found) return NULL;
      if (!*t) return *t = found;
    }
    return found;
  }
#endif
#ifndef ANY
  if (handle == RTLD_NEXT || handle == RTLD_DEFAULT) return next_dlsym()(handle, name);
#endif
#ifdef HIDDEN
#define X(function, library) if (!strcmp(name, #function)) return (void*)&own_##function;
#else
#define X(function, library) if (!strcmp(name, #function)) return (void*)&function;
#endif
  FUNCTIONS(X) DRIVER_TOO(X)
#undef X
  return next_dlsym()(handle, name);
}
#endif
#ifdef DLVSYM
void* dlvsym(void* handle, const char* name, const char* version) {
  static void* (*next)(void*, const char*, const char*);
  if (!next) next = dlsym(RTLD_NEXT, "dlvsym");
  return next(handle, name, version);
}
#endif
#ifdef DLOPEN
void* dlopen(const char* file, int flags) {
  static void* (*next)(const char*, int);
  if (!next) next = next_dlsym()(RTLD_NEXT, "dlopen");
  return next(file, flags & ~RTLD_NOLOAD);
}
int dlclose(void* handle) { return 0; }
#endif

__attribute__((destructor)) static void say(void) {
  char line[80];
#define X(name, library) \
  if (calls_##name) write(2, line, (size_t)sprintf(line, "%s %d\n", #name, calls_##name));
  FUNCTIONS(X) DRIVER_TOO(X)
}
