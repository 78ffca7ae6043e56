// Where a ring file may lie. A store to a mapped file must never wait, and never be a SIGBUS: that
// holds where blocks that were allocated stay where they are.
#pragma once

#include <sys/vfs.h>

#include <cstdint>
#include <string_view>

namespace tprof {

struct FileSystem {
  unsigned long type;  // statfs(2) f_type
  std::string_view name;
  bool maps_safely = false;
};
inline constexpr unsigned long kTmpfs = 0x01021994;
// A list of the safe ones: what is not in it, or unknown, is not. Of those that write a block anew
// elsewhere (btrfs, bcachefs, ZFS) a store can find the disk full, whatever was allocated;
// overlayfs does not tell what it lies over; on network and user-space ones a mapping is slow,
// incoherent, or a SIGBUS when the server goes.
inline constexpr FileSystem kFileSystems[] = {
    {kTmpfs, "tmpfs", true},   {0xef53, "ext2/ext3/ext4", true},
    {0x58465342, "XFS", true}, {0x9123683e, "btrfs"},
    {0xca451a4e, "bcachefs"},  {0x2fc12fc1, "ZFS"},
    {0xf2f52010, "F2FS"},      {0x794c7630, "overlayfs"},
    {0x6969, "NFS"},           {0xff534d42, "CIFS"},
    {0xfe534d42, "SMB2"},      {0x0bd00bd0, "Lustre"},
    {0x47504653, "GPFS"},      {0x19830326, "BeeGFS"},
    {0x00c36400, "Ceph"},      {0x65735546, "FUSE"},
    {0x01021997, "9p"},        {0x5346414f, "AFS"}};

inline constexpr FileSystem kUnknownFileSystem{0, "an unknown file system"};
constexpr const FileSystem& file_system(unsigned long type) {
  for (const FileSystem& fs : kFileSystems) {
    if (fs.type == type) return fs;
  }
  return kUnknownFileSystem;
}

// A tmpfs is memory that others count on: PyTorch's data loaders pass their batches through
// /dev/shm and die of a full one, and Docker gives 64 MiB. A ring goes there, and grows there, only
// while this much stays free: all rings of a node take a tenth of it.
inline constexpr std::uint64_t kSpareRoom = std::uint64_t{1} << 30;

inline bool has_spare_room(const struct statfs& fs) {
  const bool limited = fs.f_blocks != 0;  // a tmpfs of size=0 tells none
  return !limited ||
         std::uint64_t{fs.f_bavail} * static_cast<std::uint64_t>(fs.f_bsize) >= kSpareRoom;
}

// Whether a ring file may lie in a folder that others use as well.
inline bool takes_rings(const char* folder) {
  struct statfs fs;
  if (statfs(folder, &fs) != 0) return false;
  const auto type = static_cast<unsigned long>(fs.f_type);
  return file_system(type).maps_safely && (type != kTmpfs || has_spare_room(fs));
}

// Calls take(folder) for each folder that may hold the ring file of a process that writes to
// `output`, the best first, until it returns true. False: there is none, so that the ring is memory
// which dies with the process. `temporary`: TMPDIR, or null.
template <typename F>
bool each_ring_folder(const char* output, const char* temporary, F&& take) {
  struct statfs fs;
  const unsigned long type = statfs(output, &fs) == 0 ? static_cast<unsigned long>(fs.f_type) : 0;
  if (file_system(type).maps_safely && take(output)) return true;
  for (const char* folder : {temporary, "/tmp", "/dev/shm"}) {
    if (folder != nullptr && folder[0] == '/' && takes_rings(folder) && take(folder)) return true;
  }
  return false;
}

}  // namespace tprof
