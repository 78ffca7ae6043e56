#include "read/ring_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <utility>

#include "interpose/format/coverage.h"
#include "interpose/format/settings.h"
#include "read/error.h"

namespace tprof::read {

namespace {

// True if the process has the ring mapped, which ends with execve. Also true if its mappings are
// hidden from us.
bool maps(const std::string& process, ino_t ring) {
  std::ifstream file(process + "/maps");
  std::string line;
  bool any = false;
  while (std::getline(file, line)) {
    any = true;
    std::istringstream fields(line);
    std::string field;
    for (int n = 1; n <= 5; ++n) fields >> field;  // address, permissions, offset, device, inode
    if (field == std::to_string(ring)) return true;
  }
  return !any;
}

bool is_here(const Head& head) {
  return boot_id() == bounded_text(head.boot_id);
}

bool pid_lives(const Head& head, ino_t ring) {
  return is_here(head) && process_lives(head.pid, head.start_ticks) &&
         maps("/proc/" + std::to_string(head.pid), ring);
}

void check_version(const std::filesystem::path& file, const Head& head) {
  if (std::memcmp(head.magic, kRingMagic, sizeof kRingMagic) != 0) {
    throw BadInput(file, "not a tprof ring file");
  }
  if (head.layout != kRingLayout || head.head_size != sizeof(Head)) {
    throw BadInput(file, "ring file of tprof " + std::string(bounded_text(head.version)) +
                             ", layout " + std::to_string(head.layout) + "; this is tprof " +
                             kVersion + ", layout " + std::to_string(kRingLayout) +
                             ": use the tprof that belongs to the library");
  }
}

// Returns the size of all parts within the file. Parts beyond its end were in memory, and are lost.
std::uint64_t bytes_of_parts(const View& view) {
  std::uint64_t bytes = sizeof(Head);
  const auto add = [&](const auto* part, std::uint64_t n) {
    if (part != nullptr) bytes += n * sizeof *part;
  };
  for (std::uint32_t i = 0; i < view.threads(); ++i) {
    const ThreadArea* t = view.thread(i);
    if (t == nullptr) continue;
    add(t, 1);
    const std::uint64_t capacity = t->capacity;
    add(view.at<Record>(t->ring, capacity), capacity);
    for (std::uint32_t level = 0; level < kLedgerLevels; ++level) {
      const std::uint32_t rows = ledger_rows_in(level);
      add(view.at<LedgerRow>(t->level[level], rows), rows);
    }
  }
  for (std::uint32_t i = 0; i < kTableChunks; ++i) {
    add(view.at<Communicator>(view.head().comms.chunk[i], kChunkEntries), kChunkEntries);
    add(view.at<Graph>(view.head().graphs.chunk[i], kChunkEntries), kChunkEntries);
  }
  return bytes;
}

// View keeps every access within the file. This check bounds time and memory by the file's size,
// since a small file could refer to the same rows a thousand times. It also checks function names,
// which are copied into lines.
void check_contents(const std::filesystem::path& file, const View& view) {
  if (bytes_of_parts(view) > view.size()) {
    throw BadInput(file, "its parts are larger than it: not a ring file, or damaged");
  }
  for (std::uint32_t i = 0; i < view.functions(); ++i) {
    const auto is_of_a_name = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
    if (!std::ranges::all_of(bounded_text(view.head().function[i].name), is_of_a_name)) {
      throw BadInput(file, "function " + std::to_string(i) +
                               " has an invalid function name: not a ring file, or damaged");
    }
  }
}

constexpr std::uint64_t kExiting = 0x4;  // PF_EXITING of Linux

std::optional<ProcStat> stat_of(const std::filesystem::path& folder) {
  std::ostringstream text;
  text << std::ifstream(folder / "stat").rdbuf();  // sets failbit if the process ends meanwhile
  const std::string stat = text.str();
  const std::size_t name_end = stat.rfind(')');  // the name may hold spaces and brackets
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(stat.substr(name_end + 1));
  ProcStat found;
  fields >> found.state >> found.parent;
  std::string skipped;
  for (int field = 5; field < 9; ++field) fields >> skipped;
  fields >> found.flags;
  for (int field = 10; field < 22; ++field) fields >> skipped;
  if (!(fields >> found.start_ticks)) return std::nullopt;
  return found;
}

bool has_ended(const ProcStat& thread) {
  return thread.state == 'Z' || thread.state == 'X' || (thread.flags & kExiting) != 0;
}

// Returns the folders where a process that writes to `folder` may keep its ring file.
std::set<fs::path> ring_folders(const fs::path& folder) {
  std::set<fs::path> folders = {folder, "/tmp", "/dev/shm"};
  for (const char* name : {"TMPDIR", info(Setting::ring_dir).name.data()}) {
    if (const char* place = std::getenv(name)) folders.insert(place);
  }
  return folders;
}

// As in interpose/session/left_rings.cpp.
constexpr std::uint64_t kDeadNs = 3'600'000'000'000;
constexpr std::uint64_t kForgottenNs = 24 * kDeadNs;

// Another user could truncate a file that we have mapped, and root would write to that user's
// files.
bool is_ours(const fs::path& path) {
  struct stat file {};
  return lstat(path.c_str(), &file) == 0 && file.st_uid == geteuid();
}

std::uint64_t silent_ns(const Head& head) {
  const std::uint64_t alive_ns = head.alive_ns.load(std::memory_order_relaxed);
  const std::uint64_t awake_ns =
      head.base_real_ns + (alive_ns == 0 ? 0 : alive_ns - head.base_mono_ns);
  const auto now_ns = static_cast<std::uint64_t>(
      std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count());
  return now_ns - std::min(now_ns, awake_ns);
}

}  // namespace

std::string boot_id() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

std::uint32_t own_pid_namespace() {
  struct stat ns {};
  return stat("/proc/self/ns/pid", &ns) == 0 ? static_cast<std::uint32_t>(ns.st_ino) : 0;
}

bool process_lives(std::int64_t pid, std::uint64_t start_ticks) {
  const auto stat = proc_stat(pid);
  return stat && stat->start_ticks == start_ticks && !exits(pid, start_ticks);
}

RingFile::Opened::~Opened() {
  if (base != nullptr) munmap(base, size);
  if (writable != nullptr) munmap(writable, sizeof(Head));
  if (fd >= 0) close(fd);
}

std::optional<RingFile> RingFile::open(const std::filesystem::path& file) {
  // Opened for writing if allowed, since a lock needs it; the mapping is read-only. O_NONBLOCK,
  // since it may be a pipe without a writer.
  constexpr int kFlags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  RingFile ring(file);
  auto& [fd, base, size, writable] = *ring.opened_;
  fd = ::open(file.c_str(), O_RDWR | kFlags);
  if (fd < 0 && errno != ENOENT) fd = ::open(file.c_str(), O_RDONLY | kFlags);
  if (fd < 0 && errno == ENOENT) return std::nullopt;
  if (fd < 0) throw BadInput(file, std::strerror(errno));
  struct stat st {};
  if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) ||
      static_cast<std::size_t>(st.st_size) < sizeof(Head)) {
    throw BadInput(file, "not a tprof ring file");
  }
  size = static_cast<std::size_t>(st.st_size);
  void* mapped = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) throw BadInput(file, std::strerror(errno));
  base = mapped;
  check_version(file, ring.view().head());
  check_contents(file, ring.view());
  return ring;
}

bool RingFile::belongs_to(const Header& header) const {
  const Head& head = view().head();
  return head.pid == header.pid && bounded_text(head.boot_id) == header.boot_id &&
         head.base_real_ns == static_cast<std::uint64_t>(header.base_time_ns);
}

std::filesystem::path RingFile::rank_file() const {
  const Head& head = view().head();
  return std::filesystem::path(bounded_text(head.directory)) /
         std::filesystem::path(bounded_text(head.rank_file)).filename();
}

bool RingFile::is_alone() const {
  const std::uint64_t inode = view().head().rank_file_inode.load(std::memory_order_acquire);
  struct stat file {};
  if (view().header().empty() || inode == 0) return inode == 0 && !view().header().empty();
  return stat(rank_file().c_str(), &file) == 0 && file.st_ino == inode &&
         static_cast<std::uint64_t>(file.st_size) < view().header().size();
}

std::optional<RingFile> ring_of(const std::filesystem::path& rank_file, const Header& header) {
  if (header.ring.empty()) return std::nullopt;
  const auto there = ring_path(rank_file, header);
  const auto beside = rank_file.parent_path() / ("." + rank_file.stem().string() + ".ring");
  for (const auto& path : {beside, there, beside}) {  // it may be moved meanwhile
    auto ring = RingFile::open(path);
    if (ring && ring->belongs_to(header)) return ring;
  }
  return std::nullopt;
}

bool RingFile::running() const {
  struct flock held {};
  held.l_type = F_RDLCK;
  held.l_whence = SEEK_SET;
  const bool locked = fcntl(opened_->fd, F_GETLK, &held) == 0 && held.l_type != F_UNLCK;
  const Head& head = view().head();
  // When a process is killed, the kernel releases its lock after its memory.
  if (locked) return held.l_pid != head.pid || !is_here(head) || !exits(head.pid, head.start_ticks);
  // A program that closes all its descriptors releases the lock.
  struct stat ring {};
  return fstat(opened_->fd, &ring) == 0 && pid_lives(head, ring.st_ino);
}

bool RingFile::lock() {
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  struct stat opened {};
  struct stat named {};
  return fcntl(opened_->fd, F_SETLK, &whole) == 0 && fstat(opened_->fd, &opened) == 0 &&
         stat(path_.c_str(), &named) == 0 && opened.st_ino == named.st_ino &&
         opened.st_dev == named.st_dev;
}

Control* RingFile::lock_control() {
  auto& [fd, base, size, writable] = *opened_;
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) return nullptr;  // released when the program ends
  void* head = mmap(nullptr, sizeof(Head), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (head == MAP_FAILED) throw BadInput(path_, std::strerror(errno));
  writable = head;
  return &static_cast<Head*>(head)->control;
}

void RingFile::note_rank_file(const std::string& name, std::uint64_t inode) {
  char field[sizeof Head::rank_file] = {};
  copy_text(field, name);
  const auto note = [&](const void* bytes, std::size_t size, std::size_t at) {
    if (pwrite(opened_->fd, bytes, size, static_cast<off_t>(at)) != static_cast<ssize_t>(size)) {
      throw BadInput(path_, std::strerror(errno));
    }
  };
  note(field, sizeof field, offsetof(Head, rank_file));
  note(&inode, sizeof inode, offsetof(Head, rank_file_inode));
}

std::optional<ProcStat> proc_stat(std::int64_t pid, const std::filesystem::path& proc) {
  return stat_of(proc / std::to_string(pid));
}

bool exits(std::int64_t pid, std::uint64_t start_ticks, const std::filesystem::path& proc) {
  const auto main_thread = proc_stat(pid, proc);
  if (!main_thread || main_thread->start_ticks != start_ticks) return false;
  if (!has_ended(*main_thread)) return false;
  std::error_code gone;  // as when its parent has reaped it
  std::filesystem::directory_iterator thread(proc / std::to_string(pid) / "task", gone);
  for (; !gone && thread != std::filesystem::directory_iterator(); thread.increment(gone)) {
    const auto stat = stat_of(thread->path());
    if (stat && !has_ended(*stat)) return false;
  }
  return true;
}

namespace fs = std::filesystem;

bool LeftRing::has_rank_file() const {
  std::error_code error;
  return !alone && fs::exists(rank_file, error);
}

bool LeftRing::is_of(const fs::path& of) const {
  std::error_code error;
  return fs::equivalent(folder, of, error) ||
         fs::weakly_canonical(folder, error) == fs::weakly_canonical(of, error);
}

std::vector<LeftRing> rings_of(const fs::path& folder) {
  std::vector<LeftRing> found;
  const std::string here = boot_id();
  const auto look_at = [&](const fs::path& path) {
    struct stat file {};
    const auto ring = RingFile::open(path);
    if (!ring || stat(path.c_str(), &file) != 0) return;
    const Head& head = ring->view().head();
    if (bounded_text(head.boot_id) != here) return;
    LeftRing left{.ring = path,
                  .folder = ring->rank_file().parent_path(),
                  .rank_file = ring->rank_file(),
                  .alone = ring->is_alone(),
                  .running = ring->running(),
                  .header_bytes = ring->view().header().size(),
                  .silent_ns = silent_ns(head),
                  .bytes = static_cast<std::uint64_t>(file.st_blocks) * 512};
    // In another pid namespace only silence shows that the process is dead.
    const bool dead =
        !left.running && (head.pid_namespace == own_pid_namespace() || left.silent_ns >= kDeadNs);
    left.useless = !left.alone && dead && !left.has_rank_file() && left.silent_ns >= kForgottenNs;
    found.push_back(std::move(left));
  };
  for (const fs::path& place : ring_folders(folder)) {
    std::error_code error;
    for (auto entry = fs::directory_iterator(place, error);
         !error && entry != fs::directory_iterator(); entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      if (!name.starts_with('.') || !name.ends_with(".ring") || !is_ours(entry->path())) continue;
      try {
        look_at(entry->path());
      } catch (const BadInput&) {  // damaged or of another version: reported with its rank file
      }
    }
  }
  std::ranges::sort(found, {}, &LeftRing::rank_file);
  return found;
}

std::vector<LeftRing> left_rings(const fs::path& folder) {
  std::vector<LeftRing> found = rings_of(folder);
  std::erase_if(found, std::mem_fn(&LeftRing::running));
  return found;
}

}  // namespace tprof::read
