// The one file mapping of the process, as a range of addresses that grows by segments.
#pragma once

#include <cstdint>

#include "interpose/base/disk_space.h"
#include "interpose/base/lock.h"
#include "interpose/format/view.h"

namespace tprof {

// Address = base + file offset, for segments in the file and for those that had to be anonymous
// memory because the file could not grow: the first of those ends the file. Allocating is slow
// (fallocate, mmap) and rare.
class Mapping {
 public:
  // Reserves addresses and creates the head. `fd` may be -1: then everything is anonymous.
  // `keeps_room`: the file may take memory only while kSpareRoom of it stays free.
  bool open(int fd, bool keeps_room);
  // Returns the offset of `bytes` zeroed bytes, page-aligned; 0 when the address range is used up.
  std::uint64_t allocate(std::uint64_t bytes);
  // The same, or 0 if the bytes would not be in the file, since a kill would lose them. Takes
  // addresses for `most` bytes; those behind the first `bytes` must not be touched before back().
  std::uint64_t allocate_in_file(std::uint64_t bytes, std::uint64_t most);
  // Makes [from, to) of a segment usable, which is usable up to `from`. False: the file has no
  // room. Takes no lock: the writer's thread, which others may keep from running, does it too.
  bool back(std::uint64_t from, std::uint64_t to);
  void close();

  Head& head() const { return *reinterpret_cast<Head*>(base_); }
  View view() const { return {base_, size_}; }
  template <typename T>
  T* at(std::uint64_t offset) const {
    return reinterpret_cast<T*>(static_cast<std::byte*>(base_) + offset);
  }
  bool in_file() const { return file_.fd >= 0; }

 private:
  bool room_to_take() const;
  bool map_file(std::uint64_t offset, std::uint64_t bytes);
  bool back_by_file(std::uint64_t offset, std::uint64_t bytes);
  bool back_by_memory(std::uint64_t offset, std::uint64_t bytes);

  void* base_ = nullptr;
  std::uint64_t size_ = 0;  // of the address range
  OwnFile file_;
  bool keeps_room_ = false;
  bool file_ended_ = false;
  Lock growing_{LockOrder::growing};  // segments join the file in the order of their offsets
};

}  // namespace tprof
