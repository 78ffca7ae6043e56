// Network and user-space file systems, on which a shared mapping is slow, incoherent or a SIGBUS
// when the server goes: ring files lie elsewhere.
#pragma once

#include <string_view>

namespace tprof {

struct RemoteFileSystem {
  unsigned long type;  // statfs(2) f_type
  std::string_view name;
};
inline constexpr RemoteFileSystem kRemoteFileSystems[] = {
    {0x6969, "NFS"},      {0xff534d42, "CIFS"},   {0xfe534d42, "SMB2"}, {0x0bd00bd0, "Lustre"},
    {0x47504653, "GPFS"}, {0x19830326, "BeeGFS"}, {0x00c36400, "Ceph"}, {0x65735546, "FUSE"},
    {0x01021997, "9p"},   {0x5346414f, "AFS"}};

// Empty for one that maps safely.
constexpr std::string_view remote_file_system(unsigned long type) {
  for (const RemoteFileSystem& fs : kRemoteFileSystems) {
    if (fs.type == type) return fs.name;
  }
  return {};
}

}  // namespace tprof
