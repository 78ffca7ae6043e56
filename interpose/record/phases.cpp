#include "interpose/record/phases.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "interpose/api/results.h"
#include "interpose/record/transaction.h"

namespace tprof::comms {

std::atomic<std::uint32_t> g_going_on{0};

namespace {

// The event that a phase in the mapped file waits for. Any thread may learn the state of a
// communicator: the one that changes `goes_on` to `taken` ends the phase.
enum class Wait : std::uint32_t { free, taken, goes_on };
struct Held {
  std::atomic<Wait> wait;
  std::uint32_t group;  // waits for the End of this group, 0: for a state
  ncclComm_t handle;
  ncclComm_t* place;
};
constinit Held g_held[kPhases]{};
constexpr std::uint32_t kNoSlot = kPhases;

std::uint32_t free_slot() {
  for (std::uint32_t i = 0; i < kPhases; ++i) {
    Wait free = Wait::free;
    if (g_held[i].wait.compare_exchange_strong(free, Wait::taken)) return i;
  }
  return kNoSlot;
}

Phase& phase(std::uint32_t slot) {
  return session::mapping().head().phase[slot];
}

// Counts a phase that has ended, and closes its record. `timed`: its time counts, since it is not
// shared with another phase that counts it.
void finish(Thread& t, Record r, std::uint32_t slot, ncclResult_t result, bool timed) {
  set_outcome(r, now_ns() - r.start_ns, static_cast<std::uint16_t>(result));
  {
    Transaction transaction(t);
    LedgerValues& v =
        transaction.values(key_words(kMetaLife, Bucket{}, r.dtype, Mode::direct, 0, 0, 0));
    ++(accepted(result) ? v.calls : v.failed);
    if (timed) {
      v.host_ns += r.dur_ns;
      v.host_ns_max = std::max<std::uint64_t>(v.host_ns_max, r.dur_ns);
    }
    bool in_ring = false;
    Record& line = next_record(t, true, in_ring);
    if (in_ring) {
      line = r;
      publish(t, line, kMetaLife, true);
      transaction.close(line);
    }
    if (slot != kNoSlot) {
      const auto* head = reinterpret_cast<const char*>(&session::mapping().head());
      const auto offset = reinterpret_cast<const char*>(t.area) - head;
      phase(slot).closer.store(static_cast<std::uint64_t>(offset), std::memory_order_release);
      transaction.close(phase(slot).record);
    }
  }
  if (slot == kNoSlot) return;
  phase(slot).began_ns.store(0, std::memory_order_release);
  g_held[slot].wait.store(Wait::free, std::memory_order_release);
}

// Takes each ongoing phase for which `ours` is true, and calls f(slot) for it.
template <typename Ours, typename F>
void each_that_goes_on(Ours&& ours, F&& f) {
  for (std::uint32_t i = 0; i < kPhases; ++i) {
    Held& held = g_held[i];
    Wait seen = Wait::goes_on;
    if (held.wait.load(std::memory_order_acquire) != seen || !ours(held)) continue;
    if (!held.wait.compare_exchange_strong(seen, Wait::taken)) continue;
    g_going_on.fetch_sub(1);
    f(i);
  }
}

void go_on(std::uint32_t slot) {
  g_going_on.fetch_add(1);
  g_held[slot].wait.store(Wait::goes_on, std::memory_order_release);
}

}  // namespace

OpenPhase::OpenPhase(Thread& t, const LifeCall& call) : thread_(t), slot_(free_slot()) {
  record_.start_ns = now_ns();
  set_life(record_, number(call.fn), call.id, static_cast<std::uint64_t>(call.nranks));
  set_comm(record_, call.comm);
  record_.seq = call.seq;
  record_.peer = call.rank;
  record_.group = t.group;
  record_.function = kMetaLife;
  if (slot_ == kNoSlot) return;  // it shows only when it has ended
  Phase& open = phase(slot_);
  open.record = record_;
  open.closer.store(0, std::memory_order_relaxed);
  open.tid = t.area->tid.load(std::memory_order_relaxed);
  open.began_ns.store(record_.start_ns, std::memory_order_release);
}

void OpenPhase::returned(ncclResult_t result, std::uint32_t made, ncclComm_t handle,
                         ncclComm_t* place) {
  if (made != 0) set_comm(record_, made);
  const bool grouped = thread_.group_depth != 0;
  if (slot_ == kNoSlot || !accepted(result) || (!grouped && result != ncclInProgress) ||
      (handle == nullptr && place == nullptr && !grouped)) {
    return finish(thread_, record_, slot_, result, true);
  }
  Held& held = g_held[slot_];
  held.group = thread_.group_depth != 0 ? thread_.group : 0;
  held.handle = handle;
  held.place = place;
  record_.result = static_cast<std::uint16_t>(result);
  phase(slot_).record = record_;
  go_on(slot_);
}

void phases_end(const Thread& t) {
  if (g_going_on.load(std::memory_order_relaxed) == 0) return;
  for (std::uint32_t i = 0; i < kPhases; ++i) {
    const bool ours = g_held[i].wait.load(std::memory_order_acquire) == Wait::goes_on;
    if (ours && g_held[i].group == t.group) phase(i).record.sync = 1;
  }
}

void phases_ended(Thread& t, ncclResult_t result) {
  if (g_going_on.load(std::memory_order_relaxed) == 0) return;
  bool first = true;  // phases of a group end together: count their time once
  each_that_goes_on(
      [&](const Held& held) { return held.group == t.group; },
      [&](std::uint32_t slot) {
        Held& held = g_held[slot];
        if (result == ncclInProgress && (held.handle != nullptr || held.place != nullptr)) {
          held.group = 0;
          return go_on(slot);
        }
        finish(t, phase(slot).record, slot, result, std::exchange(first, false));
      });
}

void settle_slow(Thread& t, ncclComm_t handle, ncclResult_t state) {
  const auto ours = [&](const Held& held) {
    return held.group == 0 &&
           (held.handle == handle || (held.place != nullptr && holds(held.place, handle)));
  };
  each_that_goes_on(ours,
                    [&](std::uint32_t slot) { finish(t, phase(slot).record, slot, state, true); });
}

bool holds(ncclComm_t* place, ncclComm_t handle) {
  constexpr std::size_t kBytes = sizeof(void*);
  ncclComm_t value = nullptr;
  const iovec to{&value, kBytes};
  const iovec from{place, kBytes};
  return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == static_cast<ssize_t>(kBytes) &&
         value == handle;
}

void forget_phases() {
  for (Held& held : g_held) held.wait.store(Wait::free, std::memory_order_relaxed);
  g_going_on = 0;
}

}  // namespace tprof::comms
