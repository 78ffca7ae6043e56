#include "counts.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace fault {
namespace {

constexpr std::uint32_t kMaxThreads = 4096;
struct File {
  std::uint64_t pid;
  std::atomic<std::uint64_t> threads;
  ThreadCounts thread[kMaxThreads];
};
File* g_file = nullptr;

[[noreturn]] void die(const char* what) {
  std::perror(what);
  std::abort();
}

}  // namespace

void open_counts() {
  const char* folder = std::getenv("FAULT_COUNTS");
  const std::string path =
      std::string(folder == nullptr ? "." : folder) + "/counts-" + std::to_string(getpid());
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL, 0666);
  if (fd < 0 || ftruncate(fd, sizeof(File)) != 0) die(path.c_str());
  void* memory = mmap(nullptr, sizeof(File), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) die("mmap");
  close(fd);
  g_file = static_cast<File*>(memory);
  g_file->pid = static_cast<std::uint64_t>(getpid());
}

ThreadCounts& thread_counts() {
  if (g_file == nullptr || g_file->pid != static_cast<std::uint64_t>(getpid())) open_counts();
  const std::uint64_t n = g_file->threads.fetch_add(1);
  if (n >= kMaxThreads) die("too many threads");
  g_file->thread[n].tid = static_cast<std::uint64_t>(gettid());
  return g_file->thread[n];
}

}  // namespace fault
