#include "control/asked.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "read/error.h"
#include "read/ring_file.h"

namespace tprof::control {
namespace {

void check(const std::filesystem::path& path) {
  const auto file = read::RingFile::open(path);
  if (!file) throw read::BadInput(path, "there is no such file: the process has ended");
  if (!file->running()) throw read::BadInput(path, "the process is gone: tprof recover closes it");
}

}  // namespace

StepsSeen steps_seen(const std::filesystem::path& ring) {
  check(ring);
  const int fd = open(ring.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  struct stat now {};
  const bool whole =
      fd >= 0 && fstat(fd, &now) == 0 && now.st_size >= static_cast<off_t>(sizeof(Head));
  void* base = whole ? mmap(nullptr, sizeof(Head), PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
  if (fd >= 0) close(fd);
  if (base == MAP_FAILED) throw read::BadInput(ring, "expected a ring file");
  const StepsBegun& begun = static_cast<const Head*>(base)->windows.begun;
  StepsSeen seen;
  if (begun.marked.load(std::memory_order_relaxed) != 0) {
    seen = {begun.count.load(std::memory_order_acquire),
            begun.last_ns.load(std::memory_order_relaxed),
            begun.took_ns.load(std::memory_order_relaxed)};
  }
  munmap(base, sizeof(Head));
  return seen;
}

Asked::Asked(const std::filesystem::path& ring, Command command, std::string_view argument) {
  check(ring);
  const auto fail = [&](std::string_view what) {
    if (head_ != nullptr) munmap(head_, sizeof(Head));
    if (fd_ >= 0) close(fd_);
    throw read::BadInput(ring, std::string(what));
  };
  fd_ = open(ring.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  struct stat now {};
  if (fd_ < 0) fail(std::strerror(errno));
  if (fstat(fd_, &now) != 0 || now.st_size < static_cast<off_t>(sizeof(Head))) {
    fail("expected a ring file");
  }
  void* base = mmap(nullptr, sizeof(Head), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (base == MAP_FAILED) fail(std::strerror(errno));
  head_ = static_cast<Head*>(base);
  Control& control = head_->control;
  const std::uint32_t last = control.asked.load(std::memory_order_acquire);
  if (flock(fd_, LOCK_EX | LOCK_NB) != 0 ||
      last != control.answered.load(std::memory_order_acquire)) {
    fail("another tprof ctl waits for the process's answer");
  }
  control.command = command;
  std::memset(control.argument, 0, sizeof control.argument);
  std::memcpy(control.argument, argument.data(),
              std::min(argument.size(), sizeof control.argument - 1));
  number_ = last + 1;
  control.asked.store(number_, std::memory_order_release);
}

Asked::~Asked() {
  munmap(head_, sizeof(Head));
  close(fd_);  // this releases the lock
}

bool Asked::answered() const {
  return head_->control.answered.load(std::memory_order_acquire) == number_;
}
Obeyed Asked::answer() const {
  return head_->control.result;
}

}  // namespace tprof::control
