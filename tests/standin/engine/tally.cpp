#include "engine/tally.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <unordered_map>

namespace standin::tally {

// tests/lib/tally.py reads exactly this layout.
struct Slot {
  uint64_t returned, failed, count, bytes;
};
struct Row {
  char function[48];
  uint32_t thread;
  int32_t comm;
  uint8_t dtype, kind, mode, device, memory, unused[3];
  std::atomic<uint32_t> active;  // the valid slot; one store makes a whole update visible
  std::atomic<uint64_t> entered;
  Slot slots[2];
};
static_assert(sizeof(Row) == 144);

struct Comm {
  uint64_t id;
  int32_t nranks, rank, device, unused;
  char name[32];  // empty: it has none
};
static_assert(sizeof(Comm) == 56);

struct File {  // then `max_comms` of Comm, and `max_rows` of Row
  char magic[8];
  uint32_t pid, max_comms, max_rows, unused;
  std::atomic<uint32_t> comms, rows;
  Comm& comm(uint32_t n) { return reinterpret_cast<Comm*>(this + 1)[n]; }
  Row& row(uint32_t n) { return reinterpret_cast<Row*>(&comm(max_comms))[n]; }
};

namespace {

// Leaked on purpose: threads of the program still count while static destructors run.
std::mutex& mutex() {
  static auto& m = *new std::mutex;
  return m;
}
File* file = nullptr;
int32_t last_ordinal = 0;
std::atomic<uint32_t> generation{1};  // a forked child counts in a file of its own

[[noreturn]] void die(const char* what) {
  std::fprintf(stderr, "standin: tally: %s\n", what);
  std::abort();
}

// STANDIN_TALLY_COMMS: room for so many communicators.
const uint32_t max_comms = [] {
  const char* wanted = std::getenv("STANDIN_TALLY_COMMS");
  return wanted ? static_cast<uint32_t>(std::atoi(wanted)) : 16896U;
}();
const uint32_t max_rows = max_comms + 512;
const size_t file_size = sizeof(File) + max_comms * sizeof(Comm) + max_rows * sizeof(Row);

File* create(const char* folder) {
  const std::string path = std::string(folder) + "/tally-" + std::to_string(getpid());
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) die(path.c_str());
  // Allocated, not sparse: a full disk must fail here and not as SIGBUS at some later call.
  if (posix_fallocate(fd, 0, static_cast<off_t>(file_size)) != 0) die("no space");
  void* memory = mmap(nullptr, file_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (memory == MAP_FAILED) die("mmap");
  auto* made = static_cast<File*>(memory);
  made->pid = static_cast<uint32_t>(getpid());
  made->max_comms = max_comms;
  made->max_rows = max_rows;
  std::memcpy(made->magic, "standin1", sizeof made->magic);
  return made;
}

// The lock is held.
File* current() {
  static const char* folder = std::getenv("STANDIN_TALLY");
  static const int registered = pthread_atfork([] { mutex().lock(); }, [] { mutex().unlock(); },
                                               [] {
                                                 if (file) munmap(file, file_size);
                                                 file = nullptr;
                                                 last_ordinal = 0;
                                                 generation.fetch_add(1);
                                                 mutex().unlock();
                                               });
  (void)registered;
  if (!file && folder && *folder) file = create(folder);
  return file;
}

Row* add_row(const Key& key) {
  const std::lock_guard lock(mutex());
  File* f = current();
  if (!f) return nullptr;
  const uint32_t n = f->rows.load();
  if (n == max_rows) die("too many rows");
  Row& row = f->row(n);
  std::snprintf(row.function, sizeof row.function, "%s", key.function);
  row.thread = static_cast<uint32_t>(gettid());
  row.comm = key.comm;
  row.dtype = key.dtype;
  row.kind = static_cast<uint8_t>(key.kind);
  row.mode = static_cast<uint8_t>(key.mode);
  row.device = key.device;
  row.memory = static_cast<uint8_t>(key.memory);
  f->rows.store(n + 1, std::memory_order_release);
  return &row;
}

struct KeyHash {
  size_t operator()(const Key& k) const {
    return std::hash<const void*>()(k.function) ^ (size_t{k.dtype} << 3) ^
           (static_cast<size_t>(k.kind) << 11) ^ (static_cast<size_t>(k.mode) << 19) ^
           (static_cast<size_t>(k.comm) << 21) ^ (size_t{k.device} << 40) ^
           (static_cast<size_t>(k.memory) << 48);
  }
};

struct ThreadRows {
  uint32_t generation = 0;
  std::unordered_map<Key, Row*, KeyHash> rows;
};

// Per thread, so that every row has one writer and needs no lock.
ThreadRows& thread_rows() {
  thread_local ThreadRows rows;
  if (rows.generation != generation.load(std::memory_order_relaxed)) {
    rows.rows.clear();
    rows.generation = generation.load(std::memory_order_relaxed);
  }
  return rows;
}

template <class Change>
void update(Row* row, Change change) {
  if (!row) return;
  const uint32_t now = row->active.load(std::memory_order_relaxed);
  Slot next = row->slots[now];
  change(next);
  row->slots[now ^ 1] = next;
  row->active.store(now ^ 1, std::memory_order_release);
}

}  // namespace

Row* enter(const Key& key) {
  ThreadRows& mine = thread_rows();
  auto found = mine.rows.find(key);
  if (found == mine.rows.end()) found = mine.rows.emplace(key, add_row(key)).first;
  Row* row = found->second;
  if (row) row->entered.store(row->entered.load(std::memory_order_relaxed) + 1);
  return row;
}

void returned(Row* row, uint64_t count, uint64_t bytes) {
  update(row, [&](Slot& s) {
    ++s.returned;
    s.count += count;
    s.bytes += bytes;
  });
}

void failed(Row* row) {
  update(row, [](Slot& s) { ++s.failed; });
}

int32_t communicator(uint64_t id, int nranks, int rank, int device, const char* name) {
  const std::lock_guard lock(mutex());
  if (File* f = current()) {
    const uint32_t n = f->comms.load();
    if (n == max_comms) die("too many communicators");
    f->comm(n) = {.id = id, .nranks = nranks, .rank = rank, .device = device};
    std::snprintf(f->comm(n).name, sizeof f->comm(n).name, "%s", name ? name : "");
    f->comms.store(n + 1, std::memory_order_release);
  }
  return ++last_ordinal;
}

}  // namespace standin::tally
