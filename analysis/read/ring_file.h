// The mapped file that a traced process keeps beside its rank file (interpose/format/ring_file.h).
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>

#include "interpose/format/view.h"
#include "read/process.h"

namespace tprof::read {

// Open, mapped, and of this version. Its bytes change while its process lives.
class RingFile {
 public:
  // Nothing where there is no such file. Throws BadInput for one that is not ours.
  static std::optional<RingFile> open(const std::filesystem::path& file);

  RingFile(RingFile&& other) noexcept;
  RingFile(const RingFile&) = delete;
  RingFile& operator=(const RingFile&) = delete;
  ~RingFile();

  const std::filesystem::path& path() const { return path_; }
  // Read only, whatever its types say.
  View view() const { return {base_, size_}; }
  bool belongs_to(const Header& header) const;

  // Whether its process lives. The process holds a lock on the file, which is seen from other
  // containers too; and on this host its pid tells, where it closed the file (closefrom(3)) or the
  // file system has no locks.
  bool running() const;
  // Keeps others from recovering the same process, until this object goes. False: somebody does so,
  // or has, and removed the file.
  bool lock();

 private:
  RingFile(std::filesystem::path path, int fd, void* base, std::size_t size);

  std::filesystem::path path_;
  int fd_ = -1;
  void* base_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace tprof::read
