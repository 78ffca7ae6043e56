#include "engine/memory_books.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

namespace standin::memory_books {
namespace {

// tests/lib/memory_books.py reads exactly this layout.
constexpr size_t kDevices = 64, kPinned = 64, kManaged = 65, kPlaces = 66;
struct File {
  char magic[8];
  int64_t pid;
  int64_t now[kPlaces], peak[kPlaces];
};

File* create() {
  const char* folder = std::getenv("STANDIN_MEMORY");
  if (!folder || !*folder) return nullptr;
  const std::string path = std::string(folder) + "/memory-" + std::to_string(getpid());
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0 || posix_fallocate(fd, 0, sizeof(File)) != 0) {
    std::fprintf(stderr, "standin: %s\n", path.c_str());
    std::abort();
  }
  void* memory = mmap(nullptr, sizeof(File), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  auto* file = static_cast<File*>(memory);
  file->pid = getpid();
  std::memcpy(file->magic, "standmem", sizeof file->magic);
  return file;
}

}  // namespace

void add(cudaMemoryType type, int device, int64_t bytes) {
  static auto& mutex = *new std::mutex;
  static File* file = nullptr;
  static pid_t made_by = 0;
  const std::lock_guard lock(mutex);
  if (made_by != getpid()) {  // a forked child counts in a file of its own
    made_by = getpid();
    file = create();
  }
  if (!file) return;
  const size_t place = type == cudaMemoryTypeHost      ? kPinned
                       : type == cudaMemoryTypeManaged ? kManaged
                                                       : static_cast<size_t>(device) % kDevices;
  const int64_t now = file->now[place] + bytes;
  file->peak[place] = std::max(file->peak[place], now);
  file->now[place] = now;
}

}  // namespace standin::memory_books
