// A file of lines on its disk: the rank file, or a window's. Blocks are reserved in advance. One
// caller at a time.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "interpose/base/disk_space.h"

namespace tprof {

class LineFile {
 public:
  void open(OwnFile file) {
    *this = {};
    file_ = file;
  }
  void close() {
    if (file_.still_ours()) ::close(file_.fd);
    *this = {};
  }

  // False if the program has closed our descriptor.
  bool still_ours() const { return file_.still_ours(); }
  // Reserves blocks for the file up to `until`; it is written up to `from`. Returns false if there
  // is no room; true also if that can't be known before the write.
  bool reserve(std::uint64_t from, std::uint64_t until) {
    constexpr std::uint64_t kStep = 256 << 10;  // one system call for 1,200 lines
    if (!reserves_ || until <= reserved_) return true;
    for (const std::uint64_t more : {kStep, std::uint64_t{0}}) {
      const Reserved answer = reserve_blocks(file_.fd, from, until + more - from);
      if (answer == Reserved::no) continue;
      reserves_ = answer == Reserved::yes;
      reserved_ = until + more;
      return true;
    }
    return false;
  }
  bool write(std::string_view text, std::uint64_t at) { return write_all(file_.fd, text, at); }
  // Cuts the file, written or reserved, to `size` bytes.
  bool cut(std::uint64_t size) {
    reserved_ = size;
    return ftruncate(file_.fd, static_cast<off_t>(size)) == 0;
  }

  // True if the file was removed.
  bool nameless() const {
    const FileFacts facts = facts_of(file_.fd);
    return still_ours() && facts.known && facts.names == 0;
  }

 private:
  OwnFile file_;
  std::uint64_t reserved_ = 0;  // blocks are reserved up to here
  bool reserves_ = true;        // the file system can reserve blocks
};

}  // namespace tprof
