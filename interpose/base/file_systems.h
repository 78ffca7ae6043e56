// The folders in which a ring file may lie. A store to a mapped file must never wait, nor raise
// SIGBUS. This holds where allocated blocks stay in place.
#pragma once

#include <sys/vfs.h>

#include <array>
#include <cstdint>
#include <string_view>

namespace tprof {

struct FileSystem {
  unsigned long type;  // statfs(2) f_type
  std::string_view name;
  bool maps_safely = false;
};
inline constexpr unsigned long kTmpfs = 0x01021994;
// Only the types marked here are safe, and no unlisted type is. Where a write goes to a new block
// (btrfs, bcachefs, ZFS), a store can find the disk full despite the allocation. overlayfs does not
// reveal the file system below it. On network and user-space file systems a mapping is slow,
// incoherent, or raises SIGBUS when the server goes.
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

// Programs need shared memory: PyTorch's data loaders pass their batches through /dev/shm and die
// when it is full, and Docker gives it 64 MiB. A ring is made and grows there only while this much
// stays free: all rings of a node take a tenth of it.
inline constexpr std::uint64_t kStaysFree = std::uint64_t{1} << 30;

// On a disk a ring leaves room for the last lines of the rank file.
inline constexpr std::uint64_t kRoomToClose = std::uint64_t{128} << 10;

inline bool has_room(const struct statfs& fs, std::uint64_t bytes) {
  const bool limited = fs.f_blocks != 0;  // a tmpfs of size=0 reports none
  return !limited || std::uint64_t{fs.f_bavail} * static_cast<std::uint64_t>(fs.f_bsize) >= bytes;
}

struct RingFolder {
  const char* path;
  bool in_memory;
  std::uint64_t stays_free;  // bytes
};
struct RingPlace {
  const char* path;
  bool others_count_on_it;
  bool memory_only;
};

// Candidate folders for the ring file of a process that writes to `output`, the best first. If none
// is accepted, the ring is memory that is lost with the process. `chosen` is TPROF_RING_DIR and
// `temporary` is TMPDIR; null: not set.
//
// Memory comes before a disk. On a disk each writeback makes the ring's pages read-only again. The
// next store to such a page faults, and waits if the journal or the throttling of writers does:
// beside a checkpoint, up to milliseconds of a training thread. The snapshot survives what memory
// does not: the end of the container or node, or systemd's RemoveIPC when the user logs out.
inline std::array<RingPlace, 5> ring_places(const char* output, const char* chosen,
                                            const char* temporary) {
  return {{{chosen, false, false},
           {"/dev/shm", true, true},
           {output, false, false},
           {temporary, true, false},
           {"/tmp", true, false}}};
}

// Calls take(RingFolder) if the folder may hold a ring file of that size. Returns false if it was
// not taken.
template <typename F>
bool take_ring_folder(const RingPlace& place, std::uint64_t bytes, F&& take) {
  struct statfs fs;
  if (place.path == nullptr || place.path[0] != '/' || statfs(place.path, &fs) != 0) return false;
  const auto type = static_cast<unsigned long>(fs.f_type);
  const bool memory = type == kTmpfs;
  const std::uint64_t stays_free = memory && place.others_count_on_it ? kStaysFree : kRoomToClose;
  if (!file_system(type).maps_safely || (place.memory_only && !memory) ||
      !has_room(fs, bytes + stays_free)) {
    return false;
  }
  return take(RingFolder{place.path, memory, stays_free});
}

}  // namespace tprof
