#include "recover/recover.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>

#include "interpose/base/not_copied.h"
#include "interpose/write/window_lines.h"
#include "read/error.h"
#include "read/load.h"
#include "read/ring_file.h"
#include "read/window_files.h"
#include "text/text.h"

namespace tprof::recover {
namespace fs = std::filesystem;

namespace {

class File : NotCopied {
 public:
  explicit File(const fs::path& path, int flags = 0)
      : path_(path), fd_(open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | flags, 0666)) {
    if (fd_ < 0) fail();
  }
  ~File() { close(fd_); }

  // Writes the text after the first `offset` bytes, and truncates the file there.
  void end_with(std::string_view text, std::uint64_t offset) {
    while (!text.empty()) {
      const ssize_t n = pwrite(fd_, text.data(), text.size(), static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) fail();
      offset += static_cast<std::uint64_t>(n);
      text.remove_prefix(static_cast<std::size_t>(n));
    }
    if (ftruncate(fd_, static_cast<off_t>(offset)) != 0 || fsync(fd_) != 0) fail();
  }

 private:
  [[noreturn]] void fail() const {
    throw read::BadInput(path_, std::string("cannot recover it: ") + std::strerror(errno) +
                                    "; the ring file still has the missing part");
  }

  fs::path path_;
  int fd_;
};

// True if the process ran on another host. Processes of an earlier boot of this machine are dead.
bool of_another_host(const read::Header& header) {
  if (header.boot_id == read::boot_id()) return false;
  char host[256] = {};
  return gethostname(host, sizeof host - 1) != 0 || header.host != host;
}

// Says that there is no ring file, and where it was.
std::string no_ring(const read::Header& header, const fs::path& ring) {
  if (header.ring.empty()) return "no ring file: it was memory that died with the process";
  const bool elsewhere =
      of_another_host(header) || (header.boot_id == read::boot_id() && header.pid_namespace != 0 &&
                                  header.pid_namespace != read::own_pid_namespace());
  if (!elsewhere) return fmt::format("no ring file: {} is gone", ring.string());
  return fmt::format("no ring file; on host {} it was {}: recover it there", header.host,
                     ring.string());
}

// Writes the windows' files first and names them last, since a final name means that the file is
// complete. So this can be repeated too.
void write_rest(const read::Source& source, File& rank_file) {
  for (const auto& [name, rest] : source.unfinished) {
    const fs::path part = source.file.parent_path() / (name + std::string(kUnfinishedFile));
    if (rest.cut != 0 && !fs::exists(part)) continue;  // it was removed
    File(part, rest.cut == 0 ? O_CREAT : 0).end_with(rest.rest, rest.cut);
  }
  rank_file.end_with(source.rest + "]\n", source.cut);
  read::name_window_files(source);
}

void remove_left(const fs::path& left) {
  std::error_code error;
  if (fs::exists(left, error) && !fs::remove(left, error) && error) {
    throw read::BadInput(left, "recovered, but cannot be removed: " + error.message());
  }
}

// Removes the process's ring, the original of a moved ring, and an unfinished copy.
void remove_rings(const fs::path& rank_file, const fs::path& ring, const read::Header& header) {
  const fs::path there = read::ring_path(rank_file, header);
  if (ring != there) {
    const auto left = read::RingFile::open(there);
    if (left && left->belongs_to(header)) remove_left(there);
  }
  remove_left(ring);
  const fs::path unfinished =
      rank_file.parent_path() / ("." + rank_file.stem().string() + ".ring.part");
  remove_left(unfinished);
}

// True for an empty file that nobody has open: its creator was killed before it noted the creation.
bool was_left(int fd) {
  struct stat file {};
  fcntl(fd, F_SETSIG, SIGURG);  // a harmless signal if somebody opens it meanwhile
  return fstat(fd, &file) == 0 && file.st_size == 0 && fcntl(fd, F_SETLEASE, F_WRLCK) == 0;
}

// Creates the rank file that a process could not create, or writes its first lines, and returns its
// path. Empty: the process lives.
fs::path made_for(const fs::path& path) {
  auto ring = read::RingFile::open(path);
  if (!ring) throw read::BadInput(path, "no such file");
  if (!ring->is_alone()) return ring->rank_file();
  if (!ring->lock() || ring->running()) return {};
  const Head& head = ring->view().head();
  fs::path file = ring->rank_file();
  if (head.rank_file_inode.load(std::memory_order_relaxed) == 0) {
    std::error_code error;
    fs::create_directories(file.parent_path(), error);
    const std::string stem = file.stem().string();
    int fd = open(file.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0 && !was_left(fd)) close(std::exchange(fd, -1));
    constexpr int kMade = O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC;
    for (int attempt = 0; fd < 0 && (fd = open(file.c_str(), kMade, 0666)) < 0;) {
      if (errno != EEXIST) throw read::BadInput(file, std::strerror(errno));
      file.replace_filename(fmt::format("{}.r{}.json", stem, ++attempt));
    }
    struct stat made {};
    fstat(fd, &made);
    close(fd);
    ring->note_rank_file(file.filename().string(), made.st_ino);
  }
  File(file).end_with(ring->view().header(), 0);
  return file;
}

}  // namespace

Result recover(const fs::path& path, bool force) {
  const fs::path rank_file = path.extension() == ".ring" ? made_for(path) : path;
  if (rank_file.empty())
    return {false, "still running, or being recovered by another tool: left alone"};
  const read::Trace trace = read::load(rank_file);
  if (trace.merged || trace.processes.empty()) return {true, "a merged trace"};
  const read::Process& process = trace.processes.front();
  if (!process.header.window_of.empty()) {
    return {true, "a window's file: its rank file is " + process.header.window_of};
  }
  const fs::path ring_path = read::ring_path(rank_file, process.header);

  const fs::path snapshot = read::snapshot_path(rank_file);
  if (process.forced) return {true, "nothing to recover"};
  if (process.snapshot) {
    if (!force) {
      return {false, fmt::format("{}, or with --force from its snapshot if pid {} is dead",
                                 no_ring(process.header, ring_path), process.header.pid)};
    }
    File file(rank_file);
    write_rest(trace.source, file);
    remove_left(snapshot);
    return {false, "recovered from its snapshot: the counts are as of then"};
  }
  if (process.end == read::End::running) {
    return {false, fmt::format("still running (pid {} on {}): left alone", process.header.pid,
                               process.header.host)};
  }
  if (process.end == read::End::lost) {
    const bool local = process.header.ring.starts_with('/');
    return {false, local ? no_ring(process.header, ring_path) + "; unwritten counts are lost"
                         : "no ring file: unwritten counts are lost"};
  }
  if (process.header.ring.empty()) return {true, "nothing to recover"};
  auto ring = read::ring_of(rank_file, process.header);
  if (!ring) return {true, "nothing to recover"};
  // A moved ring belongs to a process that is known to be dead.
  if (ring->path() == ring_path && of_another_host(process.header) && !force) {
    return {false, fmt::format("from host {}: recover it there, or with --force if pid {} is dead",
                               process.header.host, process.header.pid)};
  }
  File file(rank_file);
  if (!ring->lock() || ring->running()) {
    return {false, "still running, or being recovered by another tool: left alone"};
  }
  // The process, or an earlier recovery, may have died after it completed the file and before it
  // removed the ring.
  if (trace.source.cut == read::Source{}.cut) {
    read::name_window_files(trace.source);
    remove_rings(rank_file, ring->path(), process.header);
    remove_left(snapshot);
    return {true, "closed; its leftover ring file was removed"};
  }
  write_rest(trace.source, file);
  remove_rings(rank_file, ring->path(), process.header);
  remove_left(snapshot);
  const bool partial = process.end == read::End::partial;
  const auto lines = std::ranges::count(trace.source.rest, '\n');
  return {!partial,
          fmt::format("recovered: {} {} from the ring file{}", lines, lines == 1 ? "line" : "lines",
                      partial ? ", but not all counts fitted into it: they are lower bounds" : "")};
}

std::vector<std::string> free_useless(const fs::path& folder) {
  struct Freed {
    std::size_t rings = 0;
    std::uint64_t bytes = 0;
  };
  std::map<fs::path, Freed> freed;
  for (const read::LeftRing& left : read::left_rings(folder)) {
    if (!left.useless) continue;
    auto ring = read::RingFile::open(left.ring);
    std::error_code error;
    if (!ring || !ring->lock() || ring->running() || !fs::remove(left.ring, error)) continue;
    ++freed[left.folder].rings;
    freed[left.folder].bytes += left.bytes;
  }
  std::vector<std::string> lines;
  for (const auto& [from, what] : freed) {
    lines.push_back(fmt::format(
        "{}: the rank files are gone: {} of {} killed {} freed, {}; their counts are lost",
        from.string(), what.rings == 1 ? "the ring file" : "ring files", what.rings,
        what.rings == 1 ? "process is" : "processes are", text::bytes(what.bytes)));
  }
  return lines;
}

}  // namespace tprof::recover
