// The process's mapped file: a range of addresses that grows by segments.
#pragma once

#include <cstdint>

#include "interpose/base/disk_space.h"
#include "interpose/base/file_systems.h"
#include "interpose/base/lock.h"
#include "interpose/format/view.h"

namespace tprof {

// Address = base + file offset. All addresses are mapped at the start: the first part is the file
// and space beyond its end, the rest is memory for segments that don't fit in the file. Growing
// makes the file longer, or a part of the rest writable. Allocating is slow (fallocate) and rare.
class Mapping {
 public:
  // Reserves addresses and creates the head in the file, which is in folder `in`. With `fd` -1
  // everything is anonymous memory. A file on a disk is allocated in time or not at all
  // (base/in_time.h).
  bool open(int fd, const RingFolder& in = {});
  // Returns the offset of `bytes` zeroed bytes, page-aligned; 0 if the address range is used up.
  std::uint64_t allocate(std::uint64_t bytes);
  // The same; 0 if the bytes would not be in the file, where they survive a kill.
  std::uint64_t allocate_in_file(std::uint64_t bytes);
  void close();

  Head& head() const { return *reinterpret_cast<Head*>(base_); }
  View view() const { return {base_, size_}; }
  template <typename T>
  T* at(std::uint64_t offset) const {
    return reinterpret_cast<T*>(base_ + offset);
  }
  bool in_file() const { return file_.fd >= 0; }

 private:
  bool give_room(std::uint64_t offset, std::uint64_t bytes);
  bool map_file();
  void touch(std::uint64_t from, std::uint64_t bytes);

  std::byte* base_ = nullptr;
  std::uint64_t size_ = 0;       // of the address range
  std::uint64_t file_part_ = 0;  // its first bytes, which are the file
  std::uint64_t memory_ = 0;     // offset of the next unused memory in the rest
  OwnFile file_;
  RingFolder in_{};
  Lock growing_{LockOrder::growing};  // segments join the file in the order of their offsets
};

}  // namespace tprof
