#include "read/error.h"

#include <cerrno>
#include <cstring>

namespace tprof::read {
namespace fs = std::filesystem;

CantWrite not_written(const fs::path& given, int error) {
  std::error_code ignored;
  const fs::path folder = fs::absolute(given, ignored).parent_path();
  if (error == ENOENT && !fs::exists(folder, ignored)) {
    return {given, "can't be written: there is no folder " + folder.string() +
                       ": make it, or give another name"};
  }
  if (error == EEXIST) return {given, "exists, and is not replaced: give another name"};
  const bool room_elsewhere =
      error == ENOENT || error == EACCES || error == EPERM || error == EROFS || error == ENOTDIR;
  return {given, std::string("can't be written: ") + std::strerror(error) +
                     (room_elsewhere ? ": give a name in a writable folder" : "")};
}

}  // namespace tprof::read
