// The one file mapping of the process, as a range of addresses that grows by segments.
#pragma once

#include <cstdint>

#include "interpose/base/disk_space.h"
#include "interpose/base/file_systems.h"
#include "interpose/base/lock.h"
#include "interpose/base/own_memory.h"
#include "interpose/format/view.h"

namespace tprof {

// Address = base + file offset. All addresses are mapped at the start: the first part is the file,
// beyond its end too, the rest is memory for segments that the file has no room for. So growing
// makes the file longer, or a part of the rest writable, and needs no mapping of the kernel's: a
// process may have used up those that it is allowed. Allocating is slow (fallocate) and rare.
class Mapping {
 public:
  // Reserves addresses and creates the head in the file, which is in this folder. `fd` may be -1:
  // then everything is anonymous. Where the file is not in memory, it is given room in time or not
  // at all (base/in_time.h).
  bool open(int fd, const char* path = "", const RingFolder& in = {});
  // Returns the offset of `bytes` zeroed bytes, page-aligned; 0 when the address range is used up.
  std::uint64_t allocate(std::uint64_t bytes);
  // The same, or 0 if the bytes would not be in the file, since a kill would lose them.
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
  std::uint64_t file_part_ = 0;  // bytes of it, the first ones
  Reserve memory_;               // the rest
  OwnFile file_;
  const char* path_ = "";
  RingFolder in_{};
  Lock growing_{LockOrder::growing};  // segments join the file in the order of their offsets
};

}  // namespace tprof
