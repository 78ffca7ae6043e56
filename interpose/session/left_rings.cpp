#include "interpose/session/left_rings.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>

#include "interpose/base/background_thread.h"
#include "interpose/base/clock.h"
#include "interpose/base/disk_space.h"
#include "interpose/base/each_entry.h"
#include "interpose/format/file_names.h"

namespace tprof::left_rings {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kHour = 3600 * kSecond;
constexpr std::uint64_t kAgain = 600 * kSecond;
constexpr std::uint64_t kSettled = 60 * kSecond;  // until then it may be about to be recovered
constexpr std::uint64_t kForgotten = 24 * kHour;
constexpr std::uint64_t kLongestLook = 20 * kSecond;
constexpr std::uint64_t kMostBytes = std::uint64_t{512} << 20;

// Used by the writer's thread, and by ours while it runs.
char g_folder[sizeof RankFile::ring.path];
FileId g_mine;
Process g_process;
std::uint64_t g_due_ns = 0;  // 0: there is nothing to look for
std::atomic<bool> g_looking{false};
std::uint64_t g_until_ns = 0;
std::uint64_t g_bytes_left = 0;

class Opened : NotCopied {
 public:
  explicit Opened(OwnFile file) : file_(file) {}
  ~Opened() {
    if (file_.fd >= 0) close(file_.fd);
  }
  int fd() const { return file_.fd; }
  const FileId& id() const { return file_.id; }

 private:
  OwnFile file_;
};

struct Path {
  char text[1400];
};

// Reads the first part of a ring file's head: the facts about its process.
bool read_head(int fd, Head& left) {
  constexpr std::size_t kSize = offsetof(Head, thread);
  return pread(fd, &left, kSize, 0) == kSize &&
         std::memcmp(left.magic, kRingMagic, sizeof kRingMagic) == 0 &&
         left.layout == kRingLayout && left.head_size == sizeof(Head);
}

std::uint64_t silent_ns(const Head& left) {
  const std::uint64_t awake =
      left.alive_ns <= left.base_mono_ns ? 0 : left.alive_ns - left.base_mono_ns;
  const std::uint64_t now = clock_ns(CLOCK_REALTIME);
  return now - std::min(now, left.base_real_ns + awake);
}

bool is_visible(const Head& left) {
  return left.pid_namespace != 0 && left.pid_namespace == g_process.pid_namespace;
}

// Requires that the process does not hold the lock.
bool is_dead(const Head& left) {
  if (!is_visible(left)) return silent_ns(left) >= kHour;
  if (left.pid == g_process.pid && left.start_ticks == g_process.start_ticks) return false;
  return silent_ns(left) >= kSettled && !process_runs(left.pid, left.start_ticks);
}

// True if the rank file's header has the start time of the ring file's process.
bool belongs(int rank_file, const Head& left) {
  static char header[std::size_t{64} << 10];
  const std::size_t size = std::min<std::uint64_t>(left.header_bytes, sizeof header);
  const ssize_t n = pread(rank_file, header, size, 0);
  char began[48];
  FixedText key(began);
  (key << "\"base_time_ns\":").number(static_cast<std::int64_t>(left.base_real_ns));
  const std::string_view text(header, n > 0 ? static_cast<std::size_t>(n) : 0);
  const std::size_t at = text.find(key.view());
  if (at == std::string_view::npos) return false;
  const char behind = at + key.size() < text.size() ? text[at + key.size()] : '0';
  return behind < '0' || behind > '9';
}

bool write_block(int to, std::string_view block, std::uint64_t offset) {
  const bool any = std::any_of(block.begin(), block.end(), [](char c) { return c != 0; });
  return !any || write_all(to, block, offset);
}

// Blocks of zeros stay holes.
bool copy_all(int from, int to, std::uint64_t size) {
  static char block[std::size_t{64} << 10];
  if (!size_allowed(size) || ftruncate(to, static_cast<off_t>(size)) != 0) return false;
  for (std::uint64_t at = 0; at < size;) {
    const std::size_t wanted = std::min<std::uint64_t>(sizeof block, size - at);
    const ssize_t n = pread(from, block, wanted, static_cast<off_t>(at));
    if (n <= 0 || now_ns() > g_until_ns || g_bytes_left < static_cast<std::uint64_t>(n)) {
      return false;
    }
    g_bytes_left -= static_cast<std::uint64_t>(n);
    if (!write_block(to, {block, static_cast<std::size_t>(n)}, at)) return false;
    at += static_cast<std::uint64_t>(n);
  }
  return true;
}

// Returns true once it is beside its rank file, whole and on the disk.
bool copy_beside(int ring, const Head& left, std::uint64_t size) {
  Path beside;
  Path part;
  put_beside(FixedText(beside.text), left, ".", ".ring");
  put_beside(FixedText(part.text), left, ".", ".ring.part");
  unlink(part.text);  // left by a killed process: we have the ring's lock
  const Opened copy(create_file(part.text, 0666));
  if (copy.fd() < 0) return false;
  // If another ring file is there, its rank file is gone, so it is useless.
  if (copy_all(ring, copy.fd(), size) && fsync(copy.fd()) == 0 &&
      rename(part.text, beside.text) == 0) {
    return true;
  }
  unlink(part.text);
  return false;
}

// True if it is not needed any more.
bool is_done_with(int ring, const Head& left, std::uint64_t size) {
  if (left.rank_file_inode == 0) return false;  // not made yet: only recovery can
  Path path;
  put_beside(FixedText(path.text), left, "", ".json");
  const Opened rank_file(open_file(path.text, O_RDONLY));
  if (rank_file.fd() < 0 && errno != ENOENT) return false;
  const bool there = rank_file.fd() >= 0 && belongs(rank_file.fd(), left);
  return there ? copy_beside(ring, left, size) : silent_ns(left) >= kForgotten;
}

// Gives this thread its own table of descriptors, so that our files are never in the program's:
// they would change the numbers of its next files, and a child that it forks would inherit them.
// Returns false if the kernel can't (before Linux 5.9) or does not allow it; then nothing is
// opened.
bool leave_the_programs_descriptors() {
  constexpr long kCloseRange = 436;  // the same number everywhere
  constexpr unsigned kUnshare = 2;   // CLOSE_RANGE_UNSHARE
  return syscall(kCloseRange, 0U, ~0U, kUnshare) == 0;
}

bool is_ring(std::string_view name) {
  return name.starts_with(".tprof-") && name.ends_with(".ring");
}

void look_at(const char* path) {
  if (file_at(path) == g_mine) return;
  const Opened ring(open_file(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK));
  const FileFacts facts = facts_of(ring.fd());
  static Head left;
  if (ring.fd() < 0 || !facts.regular || facts.owner != geteuid() || !read_head(ring.fd(), left) ||
      bounded_text(left.boot_id) != g_process.boot_id || left.directory[0] != '/' ||
      stem_of(bounded_text(left.rank_file)).empty() || !lock_file(ring.fd()) || !is_dead(left)) {
    return;
  }
  if (file_at(path) == ring.id() && is_done_with(ring.fd(), left, facts.size)) unlink(path);
}

void* run(void*) {
  become_background("tprof-left");
  if (leave_the_programs_descriptors()) {
    g_until_ns = now_ns() + kLongestLook;
    g_bytes_left = kMostBytes;
    each_entry(g_folder, [](std::string_view name, std::uint64_t) {
      if (!is_ring(name) || now_ns() > g_until_ns) return;
      Path path;
      FixedText(path.text) << g_folder << "/" << name;
      look_at(path.text);
    });
  }
  g_looking.store(false, std::memory_order_release);
  return nullptr;
}

}  // namespace

void begin(const RankFile& mine, const Process& process) {
  g_looking.store(false, std::memory_order_relaxed);
  g_due_ns = 0;
  g_process = process;
  g_mine = mine.ring.id;
  const std::string_view path(mine.ring.path);
  copy_text(g_folder, prefix(path, path.size() - file_name(path).size()));
  if (mine.ring.fd >= 0 && mine.ring_elsewhere) g_due_ns = now_ns();
}

void look() {
  if (g_due_ns == 0 || now_ns() < g_due_ns || g_looking.exchange(true)) return;
  g_due_ns = now_ns() + kAgain;
  if (!start_background_thread(run)) g_looking.store(false);
}

}  // namespace tprof::left_rings
