#include "interpose/record/communicators.h"

#include <cstring>

#include "interpose/base/own_memory.h"
#include "interpose/base/shared_map.h"
#include "interpose/record/tables.h"
#include "interpose/session/coverage.h"

namespace tprof::comms {

// Zero from the start. No process touches this before it has communicators, and they keep
// communicators that are made before this library's constructors run.
constinit State g_state[kMax + 1]{};

namespace {

constinit SharedMap<std::uint32_t> g_index{LockOrder::handles};

std::uint32_t append(const Communicator& entry, ncclComm_t handle) {
  return tables::append(session::mapping().head().comms, entry, kMax, [&](std::uint32_t i) {
    State& s = g_state[i];
    s.handle = handle;
    s.nranks = entry.nranks;
    s.rank = entry.rank;
    s.seq.store(0, std::memory_order_relaxed);
    for (auto& ordinal : s.children) ordinal.store(0, std::memory_order_relaxed);
    s.peers.store(nullptr, std::memory_order_relaxed);
  });
}

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
  const std::uint32_t index = append(entry, handle);
  if (index == 0) coverage::note(session::mapping().head(), Note::comm_shared, "ncclComm_t");
  if (index == 0 || !g_index.insert(handle, index)) return 0;
  g_switches.comm_epoch.fetch_add(1, std::memory_order_release);
  return index;
}

void remove(ncclComm_t handle) {
  g_index.erase(handle);
  g_switches.comm_epoch.fetch_add(1, std::memory_order_release);
}

void forget_all() {
  g_index.clear();
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

}  // namespace tprof::comms
