// The wrappers of NCCL's groups and of a communicator's life.
#include <algorithm>
#include <cstddef>

#include "interpose/api/results.h"
#include "interpose/device/group_times.h"
#include "interpose/hook/wrapper.h"
#include "interpose/record/communicators.h"
#include "interpose/record/phases.h"
#include "interpose/session/coverage.h"

using tprof::accepted;
using tprof::DepthGuard;
using tprof::Fn;
using tprof::Thread;
namespace comms = tprof::comms;

namespace {

// ncclConfig_t has commName since 2.27; a program built with an older nccl.h passes a shorter one,
// as its `size` says.
const char* config_name([[maybe_unused]] const ncclConfig_t* config) {
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
  if (config == nullptr) return nullptr;
  constexpr std::size_t kEnd = offsetof(ncclConfig_t, commName) + sizeof config->commName;
  return config->size >= kEnd ? config->commName : nullptr;
#else
  return nullptr;
#endif
}

// Runs `real` and adds the new communicator if the library accepted. NCCL uses the calling thread's
// current device.
template <typename F>
ncclResult_t init_rank(Thread& t, Fn fn, ncclComm_t* comm, int nranks, int rank,
                       const ncclUniqueId& unique_id, const char* name, F&& real) {
  const DepthGuard guard(t);
  const std::uint64_t id = comms::id_of(unique_id);
  comms::OpenPhase phase(t, {.fn = fn, .id = id, .nranks = nranks, .rank = rank});
  const ncclResult_t result = real();
  ncclComm_t handle = accepted(result) && comm != nullptr ? *comm : nullptr;
  std::uint32_t made = 0;
  if (handle != nullptr) {
    made = comms::add(handle, comms::identified(id, name, nranks, rank, t.device));
    // Other libraries that move data are probably loaded by now.
    tprof::coverage::note_objects();
  }
  phase.returned(result, made, handle);
  return result;
}

// How a communicator is made from another: split, shrink or grow, with the color or the excluded
// ranks.
struct Birth {
  Fn fn;
  comms::ChildKind kind;
  std::int64_t colour;
  std::int32_t nranks;  // ranks of the child; 0 or less: the parent's number, less so many
  ncclComm_t* place;    // for the child's handle; null: this rank gets none
  const ncclConfig_t* config;
  const ncclUniqueId* unique_id = nullptr;  // identifies it for ranks outside the parent
};

template <typename F>
ncclResult_t make_child(Thread& t, ncclComm_t comm, const Birth& birth, const void* real_address,
                        F&& real) {
  const DepthGuard guard(t);
  const std::uint32_t parent = comms::find(t, comm, real_address);
  // All ranks of the parent call it, even those that get no child, so the ordinal is the same.
  const std::uint32_t ordinal = parent == 0 ? 0 : comms::next_ordinal(parent, birth.kind);
  tprof::Communicator child = comms::identified(0, config_name(birth.config));
  child.birth = comms::birth_of(birth.kind, ordinal, birth.colour);
  child.parent = parent;
  if (birth.unique_id != nullptr) child.alias = comms::id_of(*birth.unique_id);
  const auto* entry = tprof::session::mapping().view().comm(parent);
  if (entry != nullptr && entry->id != 0) {
    child.id = comms::child_id(entry->id, child.birth);
  } else {
    std::swap(child.id, child.alias);  // the id that new ranks use, if there is one
  }
  const std::int32_t of_parent = birth.nranks > 0 || parent == 0 ? 0 : comms::state(parent).nranks;
  comms::OpenPhase phase(t, {.fn = birth.fn,
                             .comm = parent,
                             .id = birth.place == nullptr ? 0 : child.id,
                             .seq = ordinal,
                             .nranks = std::max(of_parent + birth.nranks, 0)});
  const ncclResult_t result = real();
  if (accepted(result) && parent != 0) {
    comms::take_ordinal(parent, birth.kind);
    if (birth.place != nullptr) {
      comms::add_child({birth.place, child, t.group}, result == ncclSuccess, real_address);
    }
  }
  phase.returned(result, 0, comm, birth.place);
  return result;
}

template <typename F>
ncclResult_t end_group(Thread& t, const void* real_address, bool simulated, F&& real) {
  const DepthGuard guard(t);
  if (tprof::inner_group_ended(t)) return real();
  tprof::GroupTimes times;
  if (!simulated) times.start(t);
  comms::phases_end(t);
  const std::uint64_t start = tprof::now_ns();
  const ncclResult_t result = real();
  const std::uint64_t dur = tprof::now_ns() - start;
  times.stop(t, result);
  if (accepted(result)) comms::add_children_of(t.group, result == ncclSuccess, real_address);
  comms::phases_ended(t, result);
  tprof::group_ended(t, start, dur, result, simulated);
  return result;
}

template <typename F>
ncclResult_t end_of_life(Thread& t, Fn fn, ncclComm_t comm, const void* real_address, F&& real) {
  const DepthGuard guard(t);
  comms::settle(t, comm, ncclInProgress);  // its state will not be asked for any more
  const std::uint32_t index = comms::index_of(comm);
  comms::OpenPhase phase(t, {.fn = fn, .comm = index});
  const bool goes = fn == Fn::ncclCommDestroy || fn == Fn::ncclCommAbort;
  // Removed before the library can hand out the same address again.
  if (goes) comms::end(comm, real_address);
  const ncclResult_t result = real();
  if (accepted(result)) comms::note_end(index, fn);
  phase.returned(result, 0, goes ? nullptr : comm);
  return result;
}

}  // namespace

// Defines a wrapper whose body uses `t` and `call`, the real call. If `thread` returns null, it
// only passes the call on.
#define WRAPPER(function, parameters, arguments, thread, ...)                   \
  TPROF_TYPED(ncclResult_t, function, parameters, {                             \
    const auto call = [&] { return real arguments; };                           \
    [[maybe_unused]] constexpr Fn fn = Fn::function;                            \
    [[maybe_unused]] const auto* address = reinterpret_cast<const void*>(real); \
    Thread* const t = thread;                                                   \
    if (t == nullptr) return call();                                            \
    __VA_ARGS__                                                                 \
  })

WRAPPER(ncclGroupStart, (), (), tprof::grouping_thread(), {
  const DepthGuard guard(*t);
  const ncclResult_t result = call();
  if (accepted(result)) tprof::group_started(*t);
  return result;
})

WRAPPER(ncclGroupEnd, (), (), tprof::grouping_thread(),
        { return end_group(*t, address, false, call); })

WRAPPER(ncclGroupSimulateEnd, (ncclSimInfo_t * info), (info), tprof::grouping_thread(),
        { return end_group(*t, address, true, call); })

WRAPPER(ncclCommInitRank, (ncclComm_t * comm, int nranks, ncclUniqueId id, int rank),
        (comm, nranks, id, rank), tprof::recording_thread(),
        { return init_rank(*t, fn, comm, nranks, rank, id, nullptr, call); })

WRAPPER(ncclCommInitRankConfig,
        (ncclComm_t * comm, int nranks, ncclUniqueId id, int rank, ncclConfig_t* config),
        (comm, nranks, id, rank, config), tprof::recording_thread(),
        { return init_rank(*t, fn, comm, nranks, rank, id, config_name(config), call); })

WRAPPER(ncclCommInitRankScalable,
        (ncclComm_t * comm, int nranks, int rank, int nids, ncclUniqueId* ids,
         ncclConfig_t* config),
        (comm, nranks, rank, nids, ids, config), tprof::recording_thread(), {
          if (nids < 1 || ids == nullptr) return call();
          return init_rank(*t, fn, comm, nranks, rank, ids[0], config_name(config), call);
        })

WRAPPER(ncclCommInitAll, (ncclComm_t * comm, int ndev, const int* devlist), (comm, ndev, devlist),
        tprof::recording_thread(), {
          const DepthGuard guard(*t);
          // The unique id stays inside NCCL. All ranks are in this process, so any id will do that
          // no other process has.
          ncclUniqueId own{};
          static std::atomic<std::uint64_t> ordinal{0};
          const tprof::Head& head = tprof::session::mapping().head();
          const std::uint64_t words[] = {head.base_real_ns, static_cast<std::uint64_t>(head.pid),
                                         ordinal.fetch_add(1)};
          std::memcpy(own.internal, words, sizeof words);
          const std::uint64_t id = comms::id_of(own);
          comms::OpenPhase phase(*t, {.fn = fn, .id = id, .nranks = ndev});
          const ncclResult_t result = call();
          for (int i = 0; accepted(result) && comm != nullptr && i < ndev; ++i) {
            const int device = devlist == nullptr ? i : devlist[i];
            comms::add(comm[i], comms::identified(id, nullptr, ndev, i, device));
          }
          phase.returned(result);
          return result;
        })

WRAPPER(ncclCommSplit,
        (ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t* config),
        (comm, color, key, newcomm, config), tprof::recording_thread(), {
          ncclComm_t* place = color == NCCL_SPLIT_NOCOLOR ? nullptr : newcomm;
          const Birth birth{fn, comms::ChildKind::split, color, 0, place, config};
          return make_child(*t, comm, birth, address, call);
        })

// Called by the remaining ranks, with the same list.
WRAPPER(ncclCommShrink,
        (ncclComm_t comm, int* excluded, int n, ncclComm_t* newcomm, ncclConfig_t* config,
         int flags),
        (comm, excluded, n, newcomm, config, flags), tprof::recording_thread(), {
          std::uint64_t without = 0;  // independent of the list's order
          for (int i = 0; excluded != nullptr && i < n; ++i) {
            without += tprof::mix64(static_cast<std::uint64_t>(excluded[i]));
          }
          const auto colour = static_cast<std::int64_t>(without);
          const Birth birth{fn, comms::ChildKind::shrink, colour, -n, newcomm, config};
          return make_child(*t, comm, birth, address, call);
        })

// Ranks of the parent pass the communicator, new ranks the id, and the root both.
WRAPPER(ncclCommGrow,
        (ncclComm_t comm, int nranks, const ncclUniqueId* id, int rank, ncclComm_t* newcomm,
         ncclConfig_t* config),
        (comm, nranks, id, rank, newcomm, config), tprof::recording_thread(), {
          if (comm != nullptr) {
            const Birth birth{fn, comms::ChildKind::grow, 0, nranks, newcomm, config, id};
            return make_child(*t, comm, birth, address, call);
          }
          const DepthGuard guard(*t);
          const std::uint64_t alias = id == nullptr ? 0 : comms::id_of(*id);
          comms::OpenPhase phase(*t, {.fn = fn, .id = alias, .nranks = nranks, .rank = rank});
          const ncclResult_t result = call();
          if (accepted(result) && newcomm != nullptr && id != nullptr) {
            const tprof::Communicator entry = comms::identified(alias, config_name(config));
            comms::add_child({newcomm, entry, t->group}, result == ncclSuccess, address);
            tprof::coverage::note_objects();
          }
          phase.returned(result, 0, nullptr, newcomm);
          return result;
        })

#define END_OF_LIFE(function, parameters, arguments)                                               \
  WRAPPER(function, parameters, arguments, comm == nullptr ? nullptr : tprof::thread_in_session(), \
          { return end_of_life(*t, fn, comm, address, call); })
END_OF_LIFE(ncclCommFinalize, (ncclComm_t comm), (comm))
END_OF_LIFE(ncclCommDestroy, (ncclComm_t comm), (comm))
END_OF_LIFE(ncclCommAbort, (ncclComm_t comm), (comm))
END_OF_LIFE(ncclCommRevoke, (ncclComm_t comm, int flags), (comm, flags))
#undef END_OF_LIFE
#undef WRAPPER

// Shows when a non-blocking communicator is ready.
TPROF_TYPED(ncclResult_t, ncclCommGetAsyncError, (ncclComm_t comm, ncclResult_t* state), {
  const ncclResult_t result = real(comm, state);
  if (comms::g_going_on.load(std::memory_order_relaxed) == 0) [[likely]]
    return result;
  Thread* t = tprof::thread_in_session();
  if (t == nullptr || result != ncclSuccess || state == nullptr || *state == ncclInProgress) {
    return result;
  }
  const DepthGuard guard(*t);
  comms::settle(*t, comm, *state);
  return result;
})
