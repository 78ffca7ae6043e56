// Waits until the preload's writer has taken all records, by looking at the ring file of this
// process. A client needs this to know that its next calls will find room.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>

#include "interpose/format/view.h"

namespace tprof::bench {

class RingWatch {
 public:
  // Call it after the first recorded call. Finds nothing if nothing is traced.
  void open() {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      if (line.ends_with(".ring")) path_ = line.substr(line.find('/'));
    }
    if (!path_.empty()) map();
  }

  bool tracing() const { return base_ != nullptr; }

  void wait_until_drained() {
    if (!tracing()) return;
    constexpr timespec kPause{0, 200'000};
    constexpr int kPauses = 150'000;  // 30 s
    for (int i = 0; i < kPauses; ++i) {
      if (drained()) return;
      nanosleep(&kPause, nullptr);
    }
    std::fprintf(stderr, "the writer does not keep up: %s\n", path_.c_str());
    std::exit(1);
  }

 private:
  // The file grows with the number of threads.
  void map() {
    const int fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    struct stat now {};
    fstat(fd, &now);
    if (base_ != nullptr) munmap(base_, size_);
    size_ = static_cast<std::size_t>(now.st_size);
    base_ = mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd, 0);
    if (base_ == MAP_FAILED) base_ = nullptr;
    close(fd);
  }

  bool drained() {
    View view(base_, size_);
    for (std::uint32_t i = 0; i < view.threads(); ++i) {
      const ThreadArea* t = view.thread(i);
      if (t == nullptr) {
        map();
        return false;
      }
      if (t->tail.load(std::memory_order_acquire) != t->head.load(std::memory_order_acquire)) {
        return false;
      }
    }
    return true;
  }

  std::filesystem::path path_;
  void* base_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace tprof::bench
