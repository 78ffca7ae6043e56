#include "export/new_output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "read/error.h"

namespace tprof::trace_export {
namespace fs = std::filesystem;

namespace {

constexpr const char* kThere = "is there, and is not replaced: give another name";

bool is_empty_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(fs::symlink_status(path, error)) && fs::is_empty(path, error);
}

// Also works on a file system without RENAME_NOREPLACE. There a file that gets the name just before
// the rename is replaced.
bool rename_to_new(const fs::path& from, const fs::path& to) {
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return true;
  if (errno == EEXIST && is_empty_folder(to)) return rename(from.c_str(), to.c_str()) == 0;
  if (errno != EINVAL && errno != ENOSYS) return false;
  struct stat there;
  if (lstat(to.c_str(), &there) == 0 && !is_empty_folder(to)) {
    errno = EEXIST;
    return false;
  }
  return rename(from.c_str(), to.c_str()) == 0;
}

int make_file(const fs::path& path) {
  return open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

}  // namespace

NewOutput::NewOutput(const fs::path& name, Kind kind)
    : name_(name.has_filename() ? name : name.parent_path()), part_(name_.string() + ".part") {
  std::error_code error;
  const bool exists = fs::exists(fs::symlink_status(name_, error));
  if (exists && !(kind == Kind::folder && is_empty_folder(name_))) {
    throw read::BadInput(name_, kThere);
  }
  const int made = unfinished_.add_made(
      part_, [&] { return kind == Kind::folder ? mkdir(part_.c_str(), 0777) : make_file(part_); });
  if (made < 0) {
    if (errno != EEXIST) throw read::not_written(name_, errno);
    throw read::BadInput(part_,
                         "is there: another export writes it, or was killed and it can be deleted");
  }
  if (kind == Kind::file) close(made);
}

int NewOutput::file(const std::string& in_folder) {
  const fs::path path = part_ / in_folder;
  return unfinished_.add_made(path, [&] { return make_file(path); });
}

void NewOutput::folder(const std::string& in_folder) {
  fs::path path = part_;
  for (const fs::path& name : fs::path(in_folder)) {
    path /= name;
    const int made = unfinished_.add_made(path, [&] { return mkdir(path.c_str(), 0777); });
    if (made < 0 && errno != EEXIST) throw read::BadInput(path, std::strerror(errno));
  }
}

void NewOutput::publish() {
  if (!rename_to_new(part_, name_)) {
    throw read::BadInput(name_,
                         errno == EEXIST || errno == ENOTEMPTY ? kThere : std::strerror(errno));
  }
  unfinished_.keep();
}

}  // namespace tprof::trace_export
