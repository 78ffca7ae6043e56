#include "interpose/capture/communicators.h"

#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstring>

#include "interpose/base/handle_map.h"
#include "interpose/base/pages.h"
#include "interpose/capture/tables.h"
#include "interpose/resolve/resolve.h"
#include "interpose/session/coverage.h"

namespace tprof::comms {

// Zero from the start: 2 MiB that no process touches before it has communicators, and that keep
// those which are made before the constructors of this library.
constinit State g_state[kMax + 1]{};
std::atomic<std::uint64_t> g_epoch{1};

namespace {

HandleMap<32768> g_index;
Lock g_lock;         // of the list of expected children, and of first uses of a handle
Lock g_shared_lock;  // of the entries that stand for many

// A child without a handle yet.
struct Expected {
  Child child;
  char name[sizeof Communicator::name];  // child.name points into the caller's configuration
};
Pages<Expected> g_expected;
std::atomic<std::size_t> g_expected_count{0};  // the same without the lock

void expect(const Child& child) {
  Expected e{child, {}};
  if (child.name != nullptr) std::strncpy(e.name, child.name, sizeof e.name - 1);
  const LockGuard guard(g_lock);
  g_expected.push_back(e);
  g_expected_count = g_expected.size();
}

void forget(Expected& e) {
  e = g_expected.end()[-1];
  g_expected.cut(g_expected.size() - 1);
  g_expected_count = g_expected.size();
}

// Whether `place` holds `handle`: the program's memory may be gone by now, so it is not touched.
bool holds(ncclComm_t* place, ncclComm_t handle) {
  constexpr std::size_t kBytes = sizeof(void*);
  ncclComm_t value = nullptr;
  const iovec to{&value, kBytes};
  const iovec from{place, kBytes};
  return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == static_cast<ssize_t>(kBytes) &&
         value == handle;
}

// Asks the library itself, where the handle's communicator is ready: of other questions than for
// its state NCCL warns (init.cc, ncclCommEnsureReady).
bool ask(const void* real, ncclComm_t handle, Identity& identity) {
  using Query = ncclResult_t (*)(ncclComm_t, int*);
  const auto get = [&](const char* name, std::int32_t& value) {
    const auto query = reinterpret_cast<Query>(resolve::sibling(real, name));
    int answer = -1;
    if (query == nullptr || query(handle, &answer) != ncclSuccess) return false;
    value = answer;
    return true;
  };
  std::int32_t state = ncclInProgress;
  return get("ncclCommGetAsyncError", state) && state == ncclSuccess &&
         get("ncclCommCount", identity.nranks) && get("ncclCommUserRank", identity.rank) &&
         get("ncclCommCuDevice", identity.device);
}

std::uint32_t take_in(const Child& child, ncclComm_t handle, const void* real) {
  Identity identity{child.ids, 0, 0, 0, child.name};
  return ask(real, handle, identity) ? add(handle, identity) : 0;
}

// The child whose place holds `handle`, or the only one that we wait for; else null.
Expected* expected_as(ncclComm_t handle) {
  for (Expected& e : g_expected) {
    if (holds(e.child.place, handle)) return &e;
  }
  return g_expected.size() == 1 ? g_expected.begin() : nullptr;
}

// The index of a handle that the program uses for the first time: of a child that we wait for, or
// (`or_unknown`) of a communicator made before we could see it, or by a function that we do not
// wrap: then only the library's answers are known of it.
std::uint32_t take_in_late(ncclComm_t handle, const void* real, bool or_unknown) {
  Identity identity{};
  if (!ask(real, handle, identity)) return 0;
  const LockGuard guard(g_lock);
  // Another thread's first use may have come before.
  if (const std::uint32_t index = g_index.find(handle)) return index;
  if (Expected* e = expected_as(handle)) {
    identity.ids = e->child.ids;
    if (e->child.name != nullptr) identity.name = e->name;
    const std::uint32_t index = add(handle, identity);
    if (index != 0) forget(*e);
    return index;
  }
  if (!or_unknown) return 0;
  coverage::note(session::mapping().head(), Note::comm_unknown, "ncclComm_t");
  return add(handle, identity);
}

// One that ends before it could be asked.
void forget_place_of(ncclComm_t handle) {
  const LockGuard guard(g_lock);
  for (std::size_t i = g_expected.size(); i-- != 0;) {
    Expected& e = g_expected.begin()[i];
    if (holds(e.child.place, handle)) forget(e);
  }
}

// A child of this group, taken from those that we wait for.
bool take_from_group(std::uint32_t group, Expected& taken) {
  const LockGuard guard(g_lock);
  for (Expected& e : g_expected) {
    if (e.child.group != group) continue;
    taken = e;
    forget(e);
    return true;
  }
  return false;
}

std::uint32_t append(const Communicator& entry, ncclComm_t handle, std::uint32_t limit) {
  return tables::append(
      session::mapping().head().comms, entry,
      [&](std::uint32_t i) {
        State& s = g_state[i];
        s.handle = handle;
        s.nranks = entry.nranks;
        s.rank = entry.rank;
        s.seq.store(0, std::memory_order_relaxed);
        for (auto& ordinal : s.children) ordinal.store(0, std::memory_order_relaxed);
        s.peers.store(nullptr, std::memory_order_relaxed);
      },
      limit);
}

// The entry of all communicators of this size that found the table full.
std::uint32_t share(std::int32_t nranks) {
  const View view = session::mapping().view();
  const std::uint32_t at_first = View::entries(view.head().comms);
  if (at_first < kOwnComms) return 0;  // not full: there was no memory
  coverage::note(view.head(), Note::comm_shared, "ncclComm_t");
  const LockGuard guard(g_shared_lock);
  const std::uint32_t entries = View::entries(view.head().comms);
  for (std::uint32_t i = kOwnComms + 1; i <= entries; ++i) {
    if (view.comm(i)->nranks == nranks) return i;
  }
  Communicator entry{};
  entry.nranks = nranks;
  entry.rank = entry.device = -1;
  return append(entry, nullptr, kMax);
}

}  // namespace

std::uint64_t id_of(const ncclUniqueId& unique_id) {
  // FNV-1a over the 128 bytes, then mixed: equal wherever the bytes are.
  std::uint64_t h = 0xcbf29ce484222325ULL;
  for (const char c : unique_id.internal) {
    h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  }
  return mix64(h);
}

std::uint64_t birth_of(ChildKind kind, std::uint32_t ordinal, std::int64_t colour) {
  const std::uint64_t h = mix64(static_cast<std::uint64_t>(kind) << 32 ^ ordinal);
  return mix64(h ^ static_cast<std::uint64_t>(colour));
}

std::uint32_t add(ncclComm_t handle, const Identity& identity) {
  Communicator entry{};
  entry.id = identity.ids.id;
  entry.alias = identity.ids.alias;
  entry.birth = identity.ids.birth;
  entry.parent = identity.ids.parent;
  entry.nranks = identity.nranks;
  entry.rank = identity.rank;
  entry.device = identity.device;
  if (identity.name != nullptr) {
    entry.has_name = true;
    std::strncpy(entry.name, identity.name, sizeof entry.name - 1);
  }
  std::uint32_t index = append(entry, handle, kOwnComms);
  if (index == 0) index = share(identity.nranks);
  if (index == 0 || !g_index.insert(handle, index)) return 0;
  g_epoch.fetch_add(1, std::memory_order_release);
  return index;
}

void remove(ncclComm_t handle, const void* real) {
  // A child that was never used is one of its communicators too; its place is free for others.
  if (handle != nullptr && g_expected_count != 0 && g_index.find(handle) == 0 &&
      take_in_late(handle, real, false) == 0) {
    forget_place_of(handle);
  }
  g_index.erase(handle);
  g_epoch.fetch_add(1, std::memory_order_release);
}

void forget_all() {
  g_index.clear();
  g_lock.unlock();
  g_shared_lock.unlock();
  g_expected.clear();
  g_expected_count = 0;
  g_epoch.fetch_add(1, std::memory_order_release);
}

std::uint32_t find_slow(Thread& t, ncclComm_t handle, const void* real) {
  if (handle == nullptr) return 0;
  const std::uint64_t epoch = g_epoch.load(std::memory_order_acquire);
  std::uint32_t index = g_index.find(handle);
  if (index == 0) index = take_in_late(handle, real, true);
  t.last_comm = handle;
  t.last_comm_index = index;
  t.last_comm_epoch = index == 0 ? 0 : epoch;
  return index;
}

void add_child(const Child& child, bool ready, const void* real) {
  if (ready && child.group == 0 && *child.place != nullptr &&
      take_in(child, *child.place, real) != 0) {
    return;
  }
  expect(child);
}

void add_children_of(std::uint32_t group, bool ready, const void* real) {
  // Those of this group were added by this thread.
  if (group == 0 || g_expected_count == 0) return;
  Expected e;
  while (take_from_group(group, e)) {
    e.child.group = 0;
    if (e.child.name != nullptr) e.child.name = e.name;
    ncclComm_t handle = *e.child.place;  // still the program's: its group ends in this call
    if (!ready || handle == nullptr || take_in(e.child, handle, real) == 0) expect(e.child);
  }
}

Counter* peer_counter(State& comm, std::int32_t peer, bool receive) {
  if (peer < 0 || peer >= comm.nranks) return nullptr;
  auto* counters = comm.peers.load(std::memory_order_acquire);
  if (counters == nullptr) {
    const std::size_t bytes = 2 * static_cast<std::size_t>(comm.nranks) * sizeof(Counter);
    void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return nullptr;
    auto* made = static_cast<Counter*>(pages);
    if (comm.peers.compare_exchange_strong(counters, made, std::memory_order_acq_rel)) {
      counters = made;
    } else {
      munmap(pages, bytes);
    }
  }
  return &counters[2 * peer + (receive ? 1 : 0)];
}

}  // namespace tprof::comms
