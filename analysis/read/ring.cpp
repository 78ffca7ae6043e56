#include "read/ring.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string_view>

#include "format/drain.h"
#include "read/error.h"

namespace tprof::read {
namespace {

// The file's bytes, which a live process goes on changing. Read only, whatever View's types say.
class Mapping {
 public:
  Mapping(int fd, std::size_t size)
      : size_(size), base_(mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0)) {}
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (base_ != MAP_FAILED) munmap(base_, size_);
  }
  bool ok() const { return base_ != MAP_FAILED; }
  void* base() const { return base_; }
  std::size_t size() const { return size_; }

 private:
  std::size_t size_;
  void* base_;
};

template <std::size_t N>
std::string_view bounded(const char (&field)[N]) {
  return {field, strnlen(field, N)};
}

// A pid alone is not enough: it may have been given to another process since.
bool alive(const Head& head) {
  std::string boot_id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot_id;
  if (boot_id != bounded(head.boot_id)) return false;
  std::ifstream file("/proc/" + std::to_string(head.pid) + "/stat");
  const std::string stat((std::istreambuf_iterator<char>(file)), {});
  const std::size_t name_end = stat.rfind(')');  // the name may hold spaces and brackets
  if (name_end == std::string::npos) return false;
  std::istringstream fields(stat.substr(name_end + 1));
  std::string state;
  fields >> state;
  if (state == "Z" || state == "X") return false;
  std::string field;
  for (int n = 4; n <= 22 && fields >> field; ++n) {
  }
  return field == std::to_string(head.start_ticks);
}

void check(const std::filesystem::path& ring, const Mapping& map) {
  const auto& head = *static_cast<const Head*>(map.base());
  if (std::memcmp(head.magic, kRingMagic, sizeof kRingMagic) != 0) {
    throw BadInput(ring, "not a tprof ring file");
  }
  if (head.layout != kRingLayout || head.head_size != sizeof(Head)) {
    throw BadInput(ring, "ring file of tprof " + std::string(bounded(head.version)) + ", layout " +
                             std::to_string(head.layout) + "; this is tprof " + kVersion +
                             ", layout " + std::to_string(kRingLayout) +
                             ": use the tprof that belongs to the library");
  }
}

// The state in force, whole: the writer of a live process may be replacing it.
std::unique_ptr<Progress> committed_progress(const std::filesystem::path& ring, Head& head) {
  auto progress = std::make_unique<Progress>();
  for (;;) {
    const CommitBlock* block = committed_block(head);
    if (block == nullptr) throw BadInput(ring, "no commit block is whole");
    const std::uint64_t generation = block->generation.load(std::memory_order_acquire);
    std::memcpy(progress.get(), &block->progress, sizeof *progress);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (block->generation.load(std::memory_order_relaxed) == generation) return progress;
  }
}

std::uint64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(t.tv_nsec);
}

// When a process that is gone was last heard of: the end of its latest closed call.
std::uint64_t last_ns(const View& view) {
  std::uint64_t last = view.head().base_mono_ns;
  for (std::uint32_t i = 0; i < view.threads(); ++i) {
    const ThreadArea* t = view.thread(i);
    const Record* ring = t == nullptr ? nullptr : view.ring(*t);
    if (ring == nullptr) continue;
    for (std::uint64_t n = 0; n < t->capacity; ++n) {
      if (ring[n].function == kMetaThread || ring[n].start_ns == 0) continue;
      last = std::max(last, ring[n].start_ns + ring[n].dur_ns);
    }
  }
  return last;
}

}  // namespace

std::optional<Replay> replay(const std::filesystem::path& ring, const Header& owner) {
  const int fd = open(ring.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    if (errno == ENOENT) return std::nullopt;
    throw BadInput(ring, std::strerror(errno));
  }
  struct stat st {};
  fstat(fd, &st);
  const auto size = static_cast<std::size_t>(st.st_size);
  if (size < sizeof(Head)) {
    close(fd);
    throw BadInput(ring, "not a tprof ring file");
  }
  const Mapping map(fd, size);
  close(fd);
  if (!map.ok()) throw BadInput(ring, std::strerror(errno));
  check(ring, map);

  const View view(map.base(), map.size());
  const Head& head = view.head();
  if (head.pid != owner.pid || bounded(head.boot_id) != owner.boot_id) return std::nullopt;
  Replay result;
  result.running = alive(head);
  result.partial = head.volatile_segments.load(std::memory_order_relaxed) != 0;
  const auto progress = committed_progress(ring, view.head());
  result.cut = progress->offset;

  Drain drain(view);
  Text text;
  std::uint64_t events = 0;
  bool more = true;
  while (more) {
    more = !drain.run(text, *progress, events);
    result.lines.append(text.view());
    text.clear();
  }
  Sums sums;
  if (!result.running) drain.open_calls(text, *progress);
  ledger_line(text, view, sums, result.running ? now_ns() : last_ns(view),
              result.running ? "interval" : "close", !result.running);
  footer_line(text, view, sums, *progress, false);
  result.lines.append(text.view());
  return result;
}

}  // namespace tprof::read
