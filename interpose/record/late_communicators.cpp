#include "interpose/record/late_communicators.h"

#include <cstring>

#include "interpose/base/lock.h"
#include "interpose/base/pages.h"
#include "interpose/format/coverage.h"
#include "interpose/real/resolve.h"
#include "interpose/record/phases.h"
#include "interpose/session/coverage.h"

namespace tprof::comms {
namespace {

Lock g_lock{
    LockOrder::children};  // of the list of expected children, and of first uses of a handle

// A child without a handle yet.
struct Expected {
  Child child;
  char name[sizeof Communicator::name];  // child.name points into the caller's configuration
};
Pages<Expected> g_expected;
std::atomic<std::size_t> g_expected_count{0};  // its size, readable without the lock

void expect(const Child& child) {
  Expected e{child, {}};
  if (child.name != nullptr) std::strncpy(e.name, child.name, sizeof e.name - 1);
  const LockGuard guard(g_lock);
  g_expected.push_back(e);
  g_expected_count = g_expected.size();
}

// The caller holds the lock.
template <typename F>
void forget_if(F&& gone) {
  g_expected.erase_if(gone);
  g_expected_count = g_expected.size();
}

// Asks the library itself, if the handle's communicator is ready. Before that NCCL warns of every
// question but the one for its state (init.cc, ncclCommEnsureReady).
bool ask(const void* real, const char* name, ncclComm_t handle, std::int32_t& value) {
  using Query = ncclResult_t (*)(ncclComm_t, int*);
  const auto query = reinterpret_cast<Query>(resolve::sibling(real, name));
  int answer = -1;
  if (query == nullptr || query(handle, &answer) != ncclSuccess) return false;
  value = answer;
  return true;
}
bool ask(const void* real, ncclComm_t handle, Identity& identity) {
  std::int32_t state = ncclInProgress;
  return ask(real, "ncclCommGetAsyncError", handle, state) && state == ncclSuccess &&
         ask(real, "ncclCommCount", handle, identity.nranks) &&
         ask(real, "ncclCommUserRank", handle, identity.rank) &&
         ask(real, "ncclCommCuDevice", handle, identity.device);
}

std::uint32_t add_asked(const Child& child, ncclComm_t handle, const void* real) {
  Identity identity{child.ids, 0, 0, 0, child.name};
  return ask(real, handle, identity) ? add(handle, identity) : 0;
}

// Returns the child whose place holds `handle`, or the only one that we wait for; else null.
Expected* expected_as(ncclComm_t handle) {
  for (Expected& e : g_expected) {
    if (holds(e.child.place, handle)) return &e;
  }
  return g_expected.size() == 1 ? g_expected.begin() : nullptr;
}

// Returns the index of a handle that the program uses for the first time. It is a child that we
// wait for. Or (`or_unknown`) its communicator was made before we could see it, or by a function
// that we do not wrap: then only the library's answers about it are known.
std::uint32_t add_on_first_use(ncclComm_t handle, const void* real, bool or_unknown) {
  Identity identity{};
  if (!ask(real, handle, identity)) return 0;
  const LockGuard guard(g_lock);
  // Another thread's first use may have come before.
  if (const std::uint32_t index = index_of(handle)) return index;
  if (Expected* e = expected_as(handle)) {
    identity.ids = e->child.ids;
    if (e->child.name != nullptr) identity.name = e->name;
    const std::uint32_t index = add(handle, identity);
    if (index != 0) forget_if([&](const Expected& any) { return &any == e; });
    return index;
  }
  if (!or_unknown) return 0;
  const std::uint32_t index = add(handle, identity);
  if (index != 0) coverage::note(session::mapping().head(), Note::comm_unknown, "ncclComm_t");
  return index;
}

}  // namespace

std::uint32_t find_slow(Thread& t, ncclComm_t handle, const void* real) {
  if (handle == nullptr) return 0;
  const std::uint32_t epoch = g_switches.comm_epoch.load(std::memory_order_acquire);
  std::uint32_t index = index_of(handle);
  if (index == 0) index = add_on_first_use(handle, real, true);
  if (g_going_on.load(std::memory_order_relaxed) != 0) {
    // Nobody may have asked for the state of a communicator that is used.
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
  // A child that was never used counts as a communicator too, and is no longer waited for.
  if (handle != nullptr && g_expected_count != 0 && index_of(handle) == 0 &&
      add_on_first_use(handle, real, false) == 0) {
    const LockGuard guard(g_lock);
    forget_if([&](const Expected& e) { return holds(e.child.place, handle); });
  }
  remove(handle);
}

void forget_children() {
  g_expected.clear();
  g_expected_count = 0;
}

void add_child(const Child& child, bool ready, const void* real) {
  if (ready && child.group == 0 && *child.place != nullptr &&
      add_asked(child, *child.place, real) != 0) {
    return;
  }
  expect(child);
}

void add_children_of(std::uint32_t group, bool ready, const void* real) {
  // This thread added the children of this group, so it sees them in the count.
  if (group == 0 || g_expected_count == 0) return;
  Pages<Expected> ended;
  {
    const LockGuard guard(g_lock);
    forget_if([&](const Expected& e) {
      if (e.child.group == group) ended.push_back(e);
      return e.child.group == group;
    });
  }
  for (Expected& e : ended) {
    e.child.group = 0;
    if (e.child.name != nullptr) e.child.name = e.name;
    ncclComm_t handle = *e.child.place;  // still the program's: its group ends in this call
    if (!ready || handle == nullptr || add_asked(e.child, handle, real) == 0) expect(e.child);
  }
}

}  // namespace tprof::comms
