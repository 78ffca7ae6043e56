#include "nccl/segment.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "engine/model.h"

namespace standin {

struct alignas(64) Segment::Header {
  std::atomic<uint32_t> joined, arrived, generation, votes_bell, aborted;
};
struct alignas(64) Segment::Rank {
  std::atomic<uint32_t> pid, barriers, bell;
};

namespace {

void futex_wait(std::atomic<uint32_t>& word, uint32_t value, std::chrono::seconds limit) {
  const timespec timeout{limit.count(), 0};
  syscall(SYS_futex, &word, FUTEX_WAIT, value, &timeout, nullptr, 0);
}
void futex_wake(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}
void bump(std::atomic<uint32_t>& word) {
  word.fetch_add(1);
  futex_wake(word);
}

// After a peer died, the others give up after this time, as a watchdog would make them.
constexpr std::chrono::seconds kDeadPeer{5};

std::string folder() {
  const char* tmp = std::getenv("TMPDIR");
  std::string path = tmp && *tmp ? tmp : "/tmp";
  path += "/standin-" + std::to_string(getuid());
  mkdir(path.c_str(), 0700);
  return path;
}

// Removes old files of jobs that were killed before all their ranks had come.
void remove_leftovers(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(1);
  for (const auto& file : fs::directory_iterator(path, ignored)) {
    const auto written = file.last_write_time(ignored);
    if (!ignored && written < old) fs::remove(file.path(), ignored);
  }
}

[[noreturn]] void die(const std::string& what) {
  std::perror(("standin: " + what).c_str());
  std::abort();
}

}  // namespace

Segment::Segment(uint64_t id, int nranks, int rank) : nranks_(nranks), rank_(rank) {
  const int before = errno;  // other jobs' files here are no matter of the caller
  char name[32];
  std::snprintf(name, sizeof name, "/%016llx", static_cast<unsigned long long>(id));
  std::string in;
  const auto n = static_cast<size_t>(nranks);
  size_ = sizeof(Header) + n * sizeof(Rank) + 2 * n * sizeof(SplitVote);
  size_ = (size_ + 4095) / 4096 * 4096 + 2 * n * kWindow + n * n * sizeof(Mailbox);
  int fd = -1;
  for (int tries = 0; fd < 0 && tries < 1000; ++tries) {  // whoever empties the folder removes it
    in = folder();
    path_ = in + name;
    fd = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 && errno != ENOENT) break;
  }
  remove_leftovers(in);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(size_)) != 0) die(path_);
  void* memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (memory == MAP_FAILED) die(path_);
  base_ = static_cast<char*>(memory);
  rank_of(rank).pid = static_cast<uint32_t>(getpid());
  auto& header = *reinterpret_cast<Header*>(base_);
  if (header.joined.fetch_add(1) + 1 == static_cast<uint32_t>(nranks)) {
    unlink(path_.c_str());
    rmdir(in.c_str());
  }
  futex_wake(header.joined);
  errno = before;
}

Segment::~Segment() {
  munmap(base_, size_);
}

Segment::Rank& Segment::rank_of(int rank) const {
  return reinterpret_cast<Rank*>(base_ + sizeof(Header))[rank];
}
SplitVote* Segment::votes() const {
  return reinterpret_cast<SplitVote*>(&rank_of(nranks_));
}

char* Segment::window(int rank, uint64_t round) {
  char* windows = base_ + size_ -
                  static_cast<size_t>(nranks_) * static_cast<size_t>(nranks_) * sizeof(Mailbox) -
                  2 * static_cast<size_t>(nranks_) * kWindow;
  return windows + (static_cast<size_t>(rank) * 2 + round % 2) * kWindow;
}
Mailbox& Segment::mailbox(int from, int to) {
  auto* end = reinterpret_cast<Mailbox*>(base_ + size_);
  return end[-1 - (from * nranks_ + to)];
}

bool Segment::dead(int rank) const {
  const uint32_t pid = rank_of(rank).pid;
  if (pid == 0) return false;  // has not come yet
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string text((std::istreambuf_iterator<char>(stat)), {});
  const size_t state = text.rfind(')');
  return state == text.npos || text[state + 2] == 'Z' || text[state + 2] == 'X';
}

bool Segment::wait(std::atomic<uint32_t>& word, const std::function<bool()>& ready,
                   const std::function<bool(int)>& waits_for) {
  const auto start = std::chrono::steady_clock::now();
  auto limit = peer_timeout();
  for (;;) {
    const uint32_t seen = word.load();
    if (ready()) return true;
    if (aborted_) return false;
    futex_wait(word, seen, std::chrono::seconds(1));
    if (word.load() != seen) continue;
    if (reinterpret_cast<Header*>(base_)->aborted) broken_ = true;
    for (int r = 0; r < nranks_; ++r) {
      if (r == rank_ || !waits_for(r) || !dead(r) || broken_) continue;
      broken_ = true;
      limit = std::min(limit, std::chrono::duration_cast<std::chrono::seconds>(
                                  std::chrono::steady_clock::now() - start + kDeadPeer));
    }
    if (std::chrono::steady_clock::now() - start > limit) {
      broken_ = true;
      std::fprintf(stderr, "standin: rank %d of %d gave up waiting for its peers\n", rank_,
                   nranks_);
      return false;
    }
  }
}

bool Segment::all_joined() const {
  return reinterpret_cast<Header*>(base_)->joined >= static_cast<uint32_t>(nranks_);
}
bool Segment::wait_joined() {
  auto& header = *reinterpret_cast<Header*>(base_);
  const bool here = wait(
      header.joined, [&] { return all_joined(); }, [](int) { return true; });
  if (!here) unlink(path_.c_str());
  return here;
}

bool Segment::barrier() {
  auto& header = *reinterpret_cast<Header*>(base_);
  rank_of(rank_).barriers = ++barriers_;
  const uint32_t generation = header.generation;
  if (header.arrived.fetch_add(1) + 1 == static_cast<uint32_t>(nranks_)) {
    header.arrived = 0;
    bump(header.generation);
    return true;
  }
  return wait(
      header.generation, [&] { return header.generation != generation; },
      [&](int r) { return rank_of(r).barriers < barriers_; });
}

uint32_t Segment::bell() const {
  return rank_of(rank_).bell;
}
void Segment::ring(int rank) {
  bump(rank_of(rank).bell);
}
bool Segment::wait_bell(uint32_t before, const std::function<bool(int)>& waits_for) {
  auto& word = rank_of(rank_).bell;
  return wait(
      word, [&] { return word != before; }, waits_for);
}

void Segment::vote(uint32_t ordinal, int colour, int key) {
  SplitVote& mine = votes()[static_cast<int>(ordinal % 2) * nranks_ + rank_];
  mine.colour = colour;
  mine.key = key;
  mine.ordinal = ordinal;
  bump(reinterpret_cast<Header*>(base_)->votes_bell);
}
const SplitVote& Segment::vote_of(int rank, uint32_t ordinal) {
  return votes()[static_cast<int>(ordinal % 2) * nranks_ + rank];
}
bool Segment::wait_votes(uint32_t ordinal) {
  const auto missing = [&](int r) { return vote_of(r, ordinal).ordinal != ordinal; };
  const auto all_here = [&] {
    for (int r = 0; r < nranks_; ++r) {
      if (missing(r)) return false;
    }
    return true;
  };
  return wait(reinterpret_cast<Header*>(base_)->votes_bell, all_here, missing);
}

void Segment::abort() {
  auto& header = *reinterpret_cast<Header*>(base_);
  aborted_ = true;
  header.aborted = 1;
  for (auto* word :
       {&header.joined, &header.generation, &header.votes_bell, &rank_of(rank_).bell}) {
    futex_wake(*word);
  }
}

}  // namespace standin
