#include "interpose/device/cupti_library.h"

#include <dlfcn.h>
#include <link.h>

#include <charconv>
#include <string_view>

#include "interpose/base/library_functions.h"
#include "interpose/base/loaded_objects.h"
#include "interpose/base/mapped_symbols.h"
#include "interpose/base/text.h"

namespace tprof::cupti {
namespace {

constexpr int kOldest = 11;
constexpr int kNewest = 13;
constexpr int kReleasesOf11 = 8;  // each has a soname of its own

struct Runtime {
  int major = 0;  // 0: no shared one
  char folder[1024] = "";
};

Runtime find_runtime() {
  Runtime runtime;
  each_loaded_object([&](const dl_phdr_info& object) {
    const std::string_view path(object.dlpi_name);
    const std::string_view file = file_name(path);
    const std::size_t number = file.find(".so.");
    if (!file.starts_with("libcudart") || number == std::string_view::npos) return false;
    std::from_chars(file.data() + number + 4, file.data() + file.size(), runtime.major);
    copy_text(runtime.folder, prefix(path, path.size() - file.size()));
    return true;
  });
  return runtime;
}

void* open_mapped(const char* soname) {
  return loader::dlopen(soname, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD | RTLD_NODELETE);
}

// Looks beside the runtime: as in a wheel of CUDA 13, in one of CUDA 11 or 12, in a toolkit. Then
// looks wherever the loader does.
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

// A runtime that is linked in does not tell its version. Then we take a libcupti that is mapped, or
// else the newest.
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

}  // namespace

bool load(Library& library) {
  LibraryFunctions functions(open_library(), loader::dlsym);
  functions.find(library.subscribe, "cuptiSubscribe");
  functions.find(library.unsubscribe, "cuptiUnsubscribe");
  functions.find(library.register_callbacks, "cuptiActivityRegisterCallbacks");
  functions.find(library.enable, "cuptiActivityEnable");
  functions.find(library.disable, "cuptiActivityDisable");
  functions.find(library.flush, "cuptiActivityFlushAll");
  functions.find(library.next, "cuptiActivityGetNextRecord");
  functions.find(library.push, "cuptiActivityPushExternalCorrelationId");
  functions.find(library.pop, "cuptiActivityPopExternalCorrelationId");
  functions.find(library.time, "cuptiGetTimestamp");
  return functions.whole();
}

}  // namespace tprof::cupti
