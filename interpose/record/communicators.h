// The communicators of the process: their identity, which is equal on all ranks, and their
// counters.
#pragma once

#include <nccl.h>

#include <atomic>
#include <cstdint>
#include <string_view>

#include "interpose/api/functions.h"
#include "interpose/record/switches.h"
#include "interpose/record/thread.h"

namespace tprof::comms {

// The part of a communicator that calls need; the rest is in the mapped file (format/ring_file.h).
struct alignas(64) State {
  ncclComm_t handle;
  std::int32_t nranks;
  std::int32_t rank;
  std::atomic<std::atomic<std::uint64_t>*> peers;  // 2 counters per peer: sends, receives
  std::atomic<std::uint64_t> seq;                  // collectives issued
  std::atomic<std::uint32_t> children[4];          // by ChildKind: ordinal of the next
};
static_assert(sizeof(State) == 64);  // threads that take turns share one cache line

inline constexpr std::uint32_t kMax = kTableChunks * kChunkEntries;
extern State g_state[kMax + 1];

inline State& state(std::uint32_t index) {
  return g_state[index];
}

// Kinds of children, part of their identity.
enum class ChildKind : std::uint64_t { split = 1, shrink, grow };
inline std::uint32_t next_ordinal(std::uint32_t parent, ChildKind kind) {
  return state(parent).children[static_cast<std::size_t>(kind)].load();
}
void take_ordinal(std::uint32_t parent, ChildKind kind);
// Records that a function that ends a communicator's life has returned.
void note_end(std::uint32_t index, Fn fn);

std::uint64_t id_of(const ncclUniqueId& unique_id);
// Returns the birth of a child, a hash of its kind, ordinal and color (or the excluded ranks). Its
// id follows from the birth and the parent's id, so a reader who learns another id of the parent
// also knows the child's.
std::uint64_t birth_of(ChildKind kind, std::uint32_t ordinal, std::int64_t colour);
inline std::uint64_t child_id(std::uint64_t parent, std::uint64_t birth) {
  return mix64(parent ^ birth);
}

// `name`: commName, or null.
Communicator identified(std::uint64_t id, const char* name, std::int32_t nranks = 0,
                        std::int32_t rank = 0, std::int32_t device = 0);
// Adds a new communicator. Returns its index; 0 if the table is full or there is no memory, which
// the coverage then reports.
std::uint32_t add(ncclComm_t handle, const Communicator& entry);
// Removes a communicator that is gone.
void remove(ncclComm_t handle);
// Returns the index of a known handle, or 0.
std::uint32_t index_of(ncclComm_t handle);
void forget_all();  // in the child of a fork

// Sequence numbers. Collectives are counted per communicator, Send and Recv per peer and direction
// (null for a peer that does not exist, or if there is no memory).
using Counter = std::atomic<std::uint64_t>;
Counter* peer_counter(State& comm, std::int32_t peer, bool receive);

// No atomic increment, which would take 13 ns of a call's 80: NCCL allows one thread at a time on a
// communicator (its user guide, "Thread Safety"), so the program orders the calls of its threads.
// If it does not, a number may come twice; the ledger does not depend on it.
inline std::uint64_t take(Counter* counter) {
  if (counter == nullptr) return 0;
  const std::uint64_t seq = counter->load(std::memory_order_relaxed);
  counter->store(seq + 1, std::memory_order_relaxed);
  return seq;
}
// Takes back the number of a refused call, unless another thread has taken the next one: ranks must
// not differ because of a call that never happened.
inline void give_back(Counter* counter, std::uint64_t seq) {
  if (counter == nullptr) return;
  std::uint64_t next = seq + 1;
  counter->compare_exchange_strong(next, seq, std::memory_order_relaxed);
}

// Some communicators become known later than they are made: children, and those made before we
// could see it.

// Returns the index of a handle, or 0. `real` is a function of the library that owns the handle:
// through it we ask about a communicator whose making we did not see. The id of such a communicator
// stays unknown.
std::uint32_t find_slow(Thread& t, ncclComm_t handle, const void* real);
inline std::uint32_t find(Thread& t, ncclComm_t handle, const void* real) {
  const std::uint32_t epoch = g_switches.comm_epoch.load(std::memory_order_acquire);
  if (t.last_comm == handle && t.last_comm_epoch == epoch) [[likely]]
    return t.last_comm_index;
  return find_slow(t, handle, real);
}

// A communicator made by ncclCommSplit, Shrink or Grow. NCCL puts its handle at `place`: at once,
// when the group ends, or (non-blocking) later. `group`: the thread's group, 0: none.
struct Child {
  ncclComm_t* place;
  Communicator entry;  // without ranks and device, which NCCL tells once it has a handle
  std::uint32_t group;
};
// `ready`: NCCL returned ncclSuccess. While it is ncclInProgress, NCCL must not be asked about it.
void add_child(const Child& child, bool ready, const void* real);
// Adds the children of a group that has ended.
void add_children_of(std::uint32_t group, bool ready, const void* real);

// Called when the program destroys or aborts it.
void end(ncclComm_t handle, const void* real);

}  // namespace tprof::comms
