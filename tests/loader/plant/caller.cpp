// Opens the libraries that it is given, then makes one copy and one collective. A library with
// plant_gather() makes its own collective; "late:LIBRARY" is opened after the calls, before a
// communicator is made; "kill" ends the process with SIGKILL instead of an exit.
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <nccl.h>

#include <csignal>
#include <cstdio>
#include <string_view>

namespace {

bool open_library(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "plant_caller: %s\n", dlerror());
    return false;
  }
  if (void* gather = dlsym(library, "plant_gather")) reinterpret_cast<void (*)()>(gather)();
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr std::string_view kLate = "late:";
  const char* late = nullptr;
  bool kill = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument(argv[i]);
    if (argument == "kill") {
      kill = true;
    } else if (argument.starts_with(kLate)) {
      late = argv[i] + kLate.size();
    } else if (!open_library(argv[i])) {
      return 1;
    }
  }
  char buffer[2] = {};
  cudaMemcpy(buffer, buffer + 1, 1, cudaMemcpyHostToDevice);
  if (late != nullptr && !open_library(late)) return 1;
  ncclUniqueId id;
  ncclComm_t comm = nullptr;
  ncclGetUniqueId(&id);
  ncclCommInitRank(&comm, 1, id, 0);
  ncclAllGather(buffer, buffer, 1, ncclInt8, comm, nullptr);
  if (kill) std::raise(SIGKILL);
  ncclCommDestroy(comm);
}
