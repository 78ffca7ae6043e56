#include "interpose/session/rank_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "interpose/base/clock.h"
#include "interpose/base/complain.h"
#include "interpose/base/environment.h"
#include "interpose/base/file_systems.h"
#include "interpose/base/text.h"

namespace tprof {
namespace {

// A path that is too long stays cut, and open() refuses it.
void expand_directory(std::string_view pattern, const Process& p, FixedText& path) {
  char cwd[1024];
  if (!pattern.starts_with('/') && getcwd(cwd, sizeof cwd) != nullptr) path << cwd << "/";
  for (; !pattern.empty(); pattern.remove_prefix(1)) {
    const std::string_view sign = prefix(pattern, 2);
    if (sign == "%j") {
      path << (p.job_id[0] != '\0' ? p.job_id : "nojob");
    } else if (sign == "%h") {
      path << p.host;
    } else if (sign == "%p") {
      path.number(p.pid);
    } else if (sign == "%r") {
      p.rank >= 0 ? path.number(p.rank) : path << "norank";
    } else {
      path << prefix(pattern, 1);
      if (sign != "%%") continue;
    }
    pattern.remove_prefix(1);
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

bool create(NamedFile& file, mode_t mode) {
  static_cast<OwnFile&>(file) = create_file(file.path, mode);
  return file.fd >= 0;
}

// rank-00003.json, rank-00003.r1.json, ...; node7-4711.json where the rank is unknown.
void name_file(const Process& p, int attempt, FixedText name) {
  p.rank >= 0 ? (name << "rank-").number(p.rank, 5) : (name << p.host << "-").number(p.pid);
  if (attempt > 0) (name << ".r").number(attempt);
  name << ".json";
}

bool create_in_directory(const Process& process, RankFile& file) {
  constexpr int kAttempts = 100000;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    name_file(process, attempt, FixedText(file.name));
    FixedText(file.lines.path) << file.directory << "/" << file.name;
    if (create(file.lines, 0666)) return true;
    if (errno != EEXIST) return false;
  }
  return false;
}

std::string_view stem_of(const RankFile& file) {
  return {file.name, std::strlen(file.name) - std::strlen(".json")};
}

// ".rank-00003.ring" beside the rank file, or with a longer name in a folder of the node.
bool create_ring_in(const RingFolder& folder, const Process& process, RankFile& file) {
  FixedText path(file.ring.path);
  path << folder.path << "/.";
  file.ring_elsewhere = std::strcmp(folder.path, file.directory) != 0;
  file.ring_keeps_room = folder.keeps_room;
  if (file.ring_elsewhere) {
    // Other containers share the folder, with processes of the same number on hosts of the same
    // name.
    (path << "tprof-" << process.host << "-").number(process.pid) << "-";
    path.number(static_cast<std::int64_t>(now_ns())) << "-";
  }
  path << stem_of(file) << ".ring";
  return create(file.ring, file.ring_elsewhere ? 0600 : 0666);
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
    file.ring.path[0] = '\0';
    return;
  }
  if (chosen != nullptr && in != chosen) {
    say("no ring file can be in ", chosen, " (TPROF_RING_DIR): choosing another folder");
  }
  // The lock tells readers that we live, in other pid namespaces too. The kernel releases it when
  // we die.
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  fcntl(file.ring.fd, F_SETLK, &whole);
}

}  // namespace

bool create_rank_file(const Config& config, const Process& process, RankFile& file) {
  FixedText directory(file.directory);
  expand_directory(config.output_dir, process, directory);
  if (!make_directory(file.directory) || !create_in_directory(process, file)) {
    char why[128];
    FixedText(why) << ": " << std::strerror(errno);
    complain(Trouble::start, "not tracing: cannot create a file in ", file.directory, why);
    return false;
  }
  create_ring(config.ring_dir[0] != '\0' ? config.ring_dir : nullptr, process, file);
  return true;
}

void create_snapshot(RankFile& file) {
  if (file.ring.fd >= 0 && !file.ring_elsewhere) return;
  FixedText(file.snapshot.path) << file.directory << "/." << stem_of(file) << ".snapshot";
  unlink(file.snapshot.path);  // left by a rank file that is gone
  create(file.snapshot, 0666);
}

void leave_files(RankFile& file) {
  for (NamedFile* f : {&file.lines, &file.ring, &file.snapshot}) {
    if (f->still_ours()) close(f->fd);
    f->fd = -1;
  }
}

void drop_file(NamedFile& file) {
  if (file.fd < 0) return;
  unlink(file.path);
  close(file.fd);
  file.path[0] = '\0';
  file.fd = -1;
}

}  // namespace tprof
