#include "interpose/session/rank_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "interpose/base/clock.h"
#include "interpose/base/complain.h"
#include "interpose/base/environment.h"
#include "interpose/base/held_signals.h"
#include "interpose/base/in_time.h"
#include "interpose/format/file_names.h"
#include "interpose/format/output_folder.h"
#include "interpose/format/snapshot.h"

namespace tprof {
namespace {

// The folder in which the process started: programs may change it before their first call (Hydra).
constinit char g_start_folder[1024] = {};
[[gnu::constructor]] void note_start_folder() {
  const KeepErrno keep_errno;
  const bool known = g_start_folder[0] != '\0';  // calls may come before constructors
  if (!known && getcwd(g_start_folder, sizeof g_start_folder) == nullptr) g_start_folder[0] = '\0';
}

// A too long path stays cut, and open() refuses it.
void expand_directory(std::string_view pattern, const Process& p, FixedText& path) {
  note_start_folder();
  if (!pattern.starts_with('/')) path << g_start_folder << "/";
  each_part_of_folder(pattern, [&](char sign, std::string_view text) {
    if (sign == 'j') {
      path << (p.job_id[0] != '\0' ? std::string_view(p.job_id) : kNoJob);
    } else if (sign == 'h') {
      path << p.host;
    } else if (sign == 'p') {
      path.number(p.pid);
    } else if (sign == 'r') {
      p.rank >= 0 ? path.number(p.rank) : path << "norank";
    } else {
      path << text;
    }
  });
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

// Makes the ring file in a folder if that may hold one. Its name is unique everywhere: containers
// share folders, and may have the same pids and host names.
struct NewRing {
  RingPlace place;
  const char* output;
  char name[512];
  NamedFile ring;
  RingFolder in;

  bool run() {
    copy_text(ring.path, output);
    if (beside()) make_directory(ring.path);
    return take_ring_folder(place, sizeof(Head),
                            [this](const RingFolder& folder) { return create_in(folder); });
  }
  void undo() { drop_file(ring); }

 private:
  bool beside() const { return std::strcmp(place.path, output) == 0; }
  bool create_in(const RingFolder& folder) {
    FixedText(ring.path) << folder.path << "/" << name;
    in = folder;
    if (!create(ring, beside() ? 0666 : 0600)) return false;
    if (!grow_file(ring.fd, 0, sizeof(Head))) {
      drop_file(ring);
      return false;
    }
    lock_file(ring.fd);  // shows readers, also in other pid namespaces, that we live
    return true;
  }
};

// Creates a file of that name, or of the next free one (rank-00003.r1.json), and its folder if
// needed. Returns false with errno.
bool create_lines(const char* directory, char (&name)[256], NamedFile& file) {
  constexpr int kAttempts = 100000;
  char stem[sizeof name];
  copy_text(stem, stem_of(name));
  copy_text(file.path, directory);
  if (!make_directory(file.path)) return false;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (attempt > 0) (FixedText(name) << stem << ".r").number(attempt) << ".json";
    FixedText(file.path) << directory << "/" << name;
    if (create(file, 0666)) return true;
    if (errno != EEXIST) return false;
  }
  return false;
}

}  // namespace

void name_rank_file(const Config& config, const Process& p, RankFile& file) {
  FixedText directory(file.directory);
  expand_directory(config.output_dir, p, directory);
  FixedText name(file.name);
  p.rank >= 0 ? (name << "rank-").number(p.rank, 5) : (name << p.host << "-").number(p.pid);
  name << ".json";
}

void create_ring(const char* chosen, const Process& process, RankFile& file) {
  static char temporary[1024];  // it may still be read when the folder answers late
  const char* of_variable = environment_value("TMPDIR");
  copy_text(temporary, of_variable == nullptr ? "" : of_variable);
  static constinit NewRing made{};  // too large for a small stack
  made = {};
  made.output = file.directory;
  FixedText name(made.name);
  (name << ".tprof-" << process.host << "-").number(process.pid) << "-";
  name.number(static_cast<std::int64_t>(now_ns())) << "-" << stem_of(file.name) << ".ring";
  constexpr std::string_view kInMemory = "/dev/shm";  // a folder there never blocks
  file.ring = {};
  for (const RingPlace& place : ring_places(file.directory, chosen, temporary)) {
    if (place.path == nullptr || place.path[0] != '/') continue;
    made.place = place;
    const bool in_memory = std::string_view(place.path).starts_with(kInMemory);
    if (in_memory ? made.run() : done_in_time(made)) break;
    made.in.path = nullptr;
  }
  file.ring_in = made.in;
  if (made.in.path == nullptr) return;
  file.ring = made.ring;
  file.ring_elsewhere = std::strcmp(made.in.path, file.directory) != 0;
}

bool create_rank_file(RankFile& file, Head& head, std::string_view header) {
  // The name is in the head before the file exists, so a process killed in between has it.
  if (!create_lines(file.directory, head.rank_file, file.lines)) {
    char why[128];
    FixedText(why) << ": " << std::strerror(errno);
    complain(Trouble::start, "not tracing: cannot create a file in ", file.directory, why);
    return false;
  }
  head.rank_file_inode.store(file.lines.id.inode, std::memory_order_release);
  copy_text(file.name, head.rank_file);
  if (!write_all(file.lines.fd, header, 0)) {
    complain(Trouble::start, "not tracing: cannot write to ", file.directory);
    return false;
  }
  if (file.ring.fd >= 0 && !file.ring_elsewhere) return true;
  put_beside(FixedText(file.snapshot.path), head, ".", kSnapshotEnd);
  unlink(file.snapshot.path);  // left by an earlier rank file
  create(file.snapshot, 0666);
  return true;
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
