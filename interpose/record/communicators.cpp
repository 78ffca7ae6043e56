#include "interpose/record/communicators.h"

#include <cstring>

#include "interpose/base/lock.h"
#include "interpose/base/own_memory.h"
#include "interpose/base/pages.h"
#include "interpose/base/shared_map.h"
#include "interpose/format/coverage.h"
#include "interpose/real/resolve.h"
#include "interpose/record/phases.h"
#include "interpose/record/tables.h"
#include "interpose/session/coverage.h"

namespace tprof::comms {

// Constant-initialized, so it works before this library's constructors run; not touched before the
// process has communicators.
constinit State g_state[kMax + 1]{};

namespace {

constinit SharedMap<std::uint32_t> g_index{LockOrder::handles};

Communicator* entry_of(std::uint32_t index) {
  return const_cast<Communicator*>(session::mapping().view().comm(index));
}

}  // namespace

void take_ordinal(std::uint32_t parent, ChildKind kind) {
  state(parent).children[static_cast<std::size_t>(kind)].fetch_add(1);
  if (Communicator* c = entry_of(parent)) {
    std::atomic_ref(c->children[static_cast<std::size_t>(kind) - 1]).fetch_add(1);
  }
}

void note_end(std::uint32_t index, Fn fn) {
  if (Communicator* c = entry_of(index)) {
    std::atomic_ref(c->ended).store(static_cast<std::uint32_t>(fn), std::memory_order_relaxed);
  }
}

std::uint64_t id_of(const ncclUniqueId& unique_id) {
  return mix64(fnv1a({unique_id.internal, sizeof unique_id.internal}));
}

std::uint64_t birth_of(ChildKind kind, std::uint32_t ordinal, std::int64_t colour) {
  const std::uint64_t h = mix64(static_cast<std::uint64_t>(kind) << 32 ^ ordinal);
  return mix64(h ^ static_cast<std::uint64_t>(colour));
}

Communicator identified(std::uint64_t id, const char* name, std::int32_t nranks, std::int32_t rank,
                        std::int32_t device) {
  Communicator entry{};
  entry.id = id;
  entry.nranks = nranks;
  entry.rank = rank;
  entry.device = device;
  entry.has_name = name != nullptr;
  if (name != nullptr) std::strncpy(entry.name, name, sizeof entry.name - 1);
  return entry;
}

std::uint32_t add(ncclComm_t handle, const Communicator& entry) {
  const auto prepare = [&](std::uint32_t i) {
    State& s = g_state[i];
    s.handle = handle;
    s.nranks = entry.nranks;
    s.rank = entry.rank;
    s.seq.store(0, std::memory_order_relaxed);
    for (auto& ordinal : s.children) ordinal.store(0, std::memory_order_relaxed);
    s.peers.store(nullptr, std::memory_order_relaxed);
  };
  const std::uint32_t index = tables::append(session::mapping().head().comms, entry, kMax, prepare);
  if (index == 0) coverage::note(Note::comm_shared, "ncclComm_t");
  if (index == 0 || !g_index.insert(handle, index)) return 0;
  g_switches.comm_epoch.fetch_add(1, std::memory_order_release);
  return index;
}

void remove(ncclComm_t handle) {
  g_index.erase(handle);
  g_switches.comm_epoch.fetch_add(1, std::memory_order_release);
}

std::uint32_t index_of(ncclComm_t handle) {
  return g_index.find(handle);
}

Counter* peer_counter(State& comm, std::int32_t peer, bool receive) {
  if (peer < 0 || peer >= comm.nranks) return nullptr;
  auto* counters = comm.peers.load(std::memory_order_acquire);
  if (counters == nullptr) {
    const std::size_t bytes = 2 * static_cast<std::size_t>(comm.nranks) * sizeof(Counter);
    auto* made = static_cast<Counter*>(take_memory(bytes));
    if (made == nullptr) return nullptr;
    if (comm.peers.compare_exchange_strong(counters, made, std::memory_order_acq_rel)) {
      counters = made;
    } else {
      give_back_memory(made, bytes);
    }
  }
  return &counters[2 * peer + (receive ? 1 : 0)];
}

namespace {

Lock g_lock{LockOrder::children};  // guards the expected children and first uses of handles

Pages<Child> g_expected;                       // children that have no handle yet
std::atomic<std::size_t> g_expected_count{0};  // the list's size, readable without the lock

// The caller holds the lock.
template <typename F>
void forget_if(F&& gone) {
  g_expected.erase_if(gone);
  g_expected_count = g_expected.size();
}

// Asks NCCL, if the communicator is ready: until then NCCL logs a warning for every query except
// that of its state (init.cc, ncclCommEnsureReady).
bool ask(const void* real, const char* name, ncclComm_t handle, std::int32_t& value) {
  using Query = ncclResult_t (*)(ncclComm_t, int*);
  const auto query = reinterpret_cast<Query>(resolve::sibling(real, name));
  int answer = -1;
  if (query == nullptr || query(handle, &answer) != ncclSuccess) return false;
  value = answer;
  return true;
}
bool ask(const void* real, ncclComm_t handle, Communicator& entry) {
  std::int32_t state = ncclInProgress;
  return ask(real, "ncclCommGetAsyncError", handle, state) && state == ncclSuccess &&
         ask(real, "ncclCommCount", handle, entry.nranks) &&
         ask(real, "ncclCommUserRank", handle, entry.rank) &&
         ask(real, "ncclCommCuDevice", handle, entry.device);
}

// Returns the child with that place, or whose place holds `handle`, or the only expected one; else
// null.
Child* expected_as(ncclComm_t handle, const ncclComm_t* place) {
  for (Child& child : g_expected) {
    if (place != nullptr ? place == child.place : holds(child.place, handle)) return &child;
  }
  return g_expected.size() == 1 ? g_expected.begin() : nullptr;
}

// Returns the index of a handle that the program uses for the first time: that of an expected
// child, or (`or_unknown`) of a communicator whose making we did not see, of which only the
// library's answers are known.
std::uint32_t add_on_first_use(ncclComm_t handle, const void* real, bool or_unknown,
                               const ncclComm_t* place = nullptr) {
  Communicator asked{};
  if (!ask(real, handle, asked)) return 0;
  const LockGuard guard(g_lock);
  // Another thread may have been first.
  if (const std::uint32_t index = index_of(handle)) return index;
  const Child* child = expected_as(handle, place);
  if (child == nullptr && !or_unknown) return 0;
  Communicator entry = child == nullptr ? Communicator{} : child->entry;
  entry.nranks = asked.nranks;
  entry.rank = asked.rank;
  entry.device = asked.device;
  const std::uint32_t index = add(handle, entry);
  if (index != 0 && child == nullptr) coverage::note(Note::comm_unknown, "ncclComm_t");
  if (index != 0) forget_if([&](const Child& any) { return &any == child; });
  return index;
}

}  // namespace

std::uint32_t find_slow(Thread& t, ncclComm_t handle, const void* real) {
  if (handle == nullptr) return 0;
  const std::uint32_t epoch = g_switches.comm_epoch.load(std::memory_order_acquire);
  std::uint32_t index = index_of(handle);
  if (index == 0) index = add_on_first_use(handle, real, true);
  if (g_going_on.load(std::memory_order_relaxed) != 0) {
    // The program may use a communicator without asking for its state.
    std::int32_t state = ncclInProgress;
    ask(real, "ncclCommGetAsyncError", handle, state);
    if (state != ncclInProgress) settle(t, handle, static_cast<ncclResult_t>(state));
  }
  t.last_comm = handle;
  t.last_comm_index = index;
  t.last_comm_epoch = index == 0 ? 0 : epoch;
  return index;
}

void end(ncclComm_t handle, const void* real) {
  // A child that was never used is a communicator, too, and is no longer expected.
  if (handle != nullptr && g_expected_count != 0 && index_of(handle) == 0 &&
      add_on_first_use(handle, real, false) == 0) {
    const LockGuard guard(g_lock);
    forget_if([&](const Child& child) { return holds(child.place, handle); });
  }
  remove(handle);
}

void add_child(const Child& child, bool ready, const void* real) {
  {
    const LockGuard guard(g_lock);
    g_expected.push_back(child);
    g_expected_count = g_expected.size();
  }
  if (ready && child.group == 0 && *child.place != nullptr) {
    add_on_first_use(*child.place, real, false, child.place);
  }
}

void add_children_of(std::uint32_t group, bool ready, const void* real) {
  // This thread added this group's children, so it sees them in the count.
  if (group == 0 || g_expected_count == 0) return;
  Pages<ncclComm_t*> made;
  {
    const LockGuard guard(g_lock);
    for (Child& child : g_expected) {
      if (child.group != group) continue;
      child.group = 0;
      made.push_back(child.place);  // still valid memory: its group ends in this call
    }
  }
  for (const ncclComm_t* place : made) {
    if (ready && *place != nullptr) add_on_first_use(*place, real, false, place);
  }
}

void forget_all() {
  g_index.clear();
  g_switches.comm_epoch.fetch_add(1, std::memory_order_release);
  g_expected.clear();
  g_expected_count = 0;
}

}  // namespace tprof::comms
