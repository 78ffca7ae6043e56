#include "interpose/session/rank_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "interpose/base/clock.h"
#include "interpose/base/complain.h"
#include "interpose/base/environment.h"
#include "interpose/base/file_systems.h"

namespace tprof {
namespace {

// Appends to a fixed buffer; too long a path stays cut and open() refuses it.
struct Path {
  char* to;
  std::size_t size;
  std::size_t used = 0;
  Path(char* t, std::size_t n) : to(t), size(n) { to[0] = '\0'; }
  Path& operator<<(std::string_view s) {
    const std::size_t n = s.size() < size - 1 - used ? s.size() : size - 1 - used;
    std::memcpy(to + used, s.data(), n);
    used += n;
    to[used] = '\0';
    return *this;
  }
  Path& number(std::int64_t v, int width = 0) {
    char digits[32];
    const int n = std::snprintf(digits, sizeof digits, "%0*lld", width, static_cast<long long>(v));
    return *this << std::string_view(digits, static_cast<std::size_t>(n));
  }
};

void expand_directory(const char* pattern, const Process& p, Path& path) {
  if (pattern[0] != '/') {
    char cwd[1024];
    if (getcwd(cwd, sizeof cwd) != nullptr) path << cwd << "/";
  }
  for (const char* c = pattern; *c != '\0'; ++c) {
    if (*c != '%') {
      path << std::string_view(c, 1);
      continue;
    }
    switch (*++c) {
      case 'j':
        path << (p.job_id[0] != '\0' ? p.job_id : "nojob");
        break;
      case 'h':
        path << p.host;
        break;
      case 'p':
        path.number(p.pid);
        break;
      case 'r':
        if (p.rank >= 0) {
          path.number(p.rank);
        } else {
          path << "norank";
        }
        break;
      case '%':
        path << "%";
        break;
      case '\0':
        path << "%";
        return;
      default:
        path << "%" << std::string_view(c, 1);
    }
  }
}

// mkdir -p.
bool make_directory(char* path) {
  for (char* c = path + 1; *c != '\0'; ++c) {
    if (*c != '/') continue;
    *c = '\0';
    mkdir(path, 0777);
    *c = '/';
  }
  return mkdir(path, 0777) == 0 || errno == EEXIST;
}

// The lowest numbers are the program's: one that has closed its standard input expects 0 from its
// next open(), and scripts count on 3 and 4. Not far above them either: from 64 on the kernel has
// to make the table of files larger, which takes a process with threads 10 ms.
int out_of_the_way(int fd) {
  constexpr int kAboveThePrograms = 40;
  for (const int lowest : {kAboveThePrograms, STDERR_FILENO + 1}) {
    const int high = fcntl(fd, F_DUPFD_CLOEXEC, lowest);
    if (high < 0) continue;
    close(fd);
    return high;
  }
  if (fd > STDERR_FILENO) return fd;
  close(fd);
  errno = EMFILE;
  return -1;
}

// A file that was not there before.
int create(const char* path, mode_t mode) {
  const int fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC, mode);
  if (fd < 0) return fd;
  const int high = out_of_the_way(fd);
  if (high < 0) unlink(path);
  return high;
}

// rank-00003.json, rank-00003.r1.json, ...; node7-4711.json where the rank is unknown.
void file_name(const Process& p, int attempt, char* to, std::size_t size) {
  Path name(to, size);
  if (p.rank >= 0) {
    (name << "rank-").number(p.rank, 5);
  } else {
    (name << p.host << "-").number(p.pid);
  }
  if (attempt > 0) (name << ".r").number(attempt);
  name << ".json";
}

bool create_in_directory(const Process& process, RankFile& file) {
  constexpr int kAttempts = 100000;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    file_name(process, attempt, file.name, sizeof file.name);
    char path[sizeof file.directory + sizeof file.name + 2];
    Path(path, sizeof path) << file.directory << "/" << file.name;
    file.fd = create(path, 0666);
    if (file.fd >= 0) return true;
    if (errno != EEXIST) return false;
  }
  return false;
}

std::string_view stem_of(const RankFile& file) {
  return {file.name, std::strlen(file.name) - std::strlen(".json")};
}

// ".rank-00003.ring" beside the rank file, or with a longer name in a folder of the node.
bool create_ring_in(const RingFolder& folder, const Process& process, RankFile& file) {
  Path path(file.ring_path, sizeof file.ring_path);
  path << folder.path << "/.";
  file.ring_elsewhere = std::strcmp(folder.path, file.directory) != 0;
  file.ring_keeps_room = folder.keeps_room;
  if (file.ring_elsewhere) {
    // Other containers share it, with processes of the same number on hosts of the same name.
    (path << "tprof-" << process.host << "-").number(process.pid) << "-";
    path.number(static_cast<std::int64_t>(now_ns())) << "-";
  }
  path << stem_of(file) << ".ring";
  file.ring_fd = create(file.ring_path, file.ring_elsewhere ? 0600 : 0666);
  return file.ring_fd >= 0;
}

void create_ring(const char* chosen, const Process& process, RankFile& file) {
  const char* in = nullptr;
  each_ring_folder(file.directory, chosen, environment_value("TMPDIR"),
                   [&](const RingFolder& folder) {
                     const bool made = create_ring_in(folder, process, file);
                     if (made) in = folder.path;
                     return made;
                   });
  if (in == nullptr) {
    file.ring_path[0] = '\0';
    return;
  }
  if (chosen != nullptr && in != chosen) {
    say("no ring file can be in ", chosen, " (TPROF_RING_DIR): choosing another folder");
  }
  file.ring_id = file_of(file.ring_fd);
  // Tells readers that we live, in other pid namespaces too. The kernel gives it back when we die.
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  fcntl(file.ring_fd, F_SETLK, &whole);
}

}  // namespace

bool create_rank_file(const Config& config, const Process& process, RankFile& file) {
  Path directory(file.directory, sizeof file.directory);
  expand_directory(config.output_dir, process, directory);
  if (!make_directory(file.directory) || !create_in_directory(process, file)) {
    char why[128] = ": ";
    std::strncat(why, std::strerror(errno), sizeof why - 3);
    complain(Trouble::start, "not tracing: cannot create a file in ", file.directory, why);
    return false;
  }
  file.id = file_of(file.fd);
  create_ring(config.ring_dir[0] != '\0' ? config.ring_dir : nullptr, process, file);
  return true;
}

void create_snapshot(RankFile& file) {
  if (file.ring_fd >= 0 && !file.ring_elsewhere) return;
  Path path(file.snapshot_path, sizeof file.snapshot_path);
  path << file.directory << "/." << stem_of(file) << ".snapshot";
  unlink(file.snapshot_path);  // of a rank file that was here and is gone
  file.snapshot_fd = create(file.snapshot_path, 0666);
  if (file.snapshot_fd >= 0) file.snapshot_id = file_of(file.snapshot_fd);
}

void leave_files(RankFile& file) {
  if (file.fd >= 0 && file_of(file.fd) == file.id) close(file.fd);
  if (file.ring_fd >= 0 && file_of(file.ring_fd) == file.ring_id) close(file.ring_fd);
  if (file.snapshot_fd >= 0 && file_of(file.snapshot_fd) == file.snapshot_id) {
    close(file.snapshot_fd);
  }
  file.fd = file.ring_fd = file.snapshot_fd = -1;
}

void drop_snapshot(RankFile& file) {
  if (file.snapshot_fd < 0) return;
  unlink(file.snapshot_path);
  if (file_of(file.snapshot_fd) == file.snapshot_id) close(file.snapshot_fd);
  file.snapshot_fd = -1;
}

void drop_ring_file(RankFile& file) {
  if (file.ring_fd < 0) return;
  unlink(file.ring_path);
  close(file.ring_fd);
  file.ring_path[0] = '\0';
  file.ring_fd = -1;
}

void drop_rank_file(RankFile& file) {
  char path[sizeof file.directory + sizeof file.name + 2];
  Path(path, sizeof path) << file.directory << "/" << file.name;
  unlink(path);
  close(file.fd);
  file.fd = -1;
}

}  // namespace tprof
