// The order of all locks in the traced process: a thread that holds one may take only locks below
// it. Debug and sanitizer builds check this, and that no thread waits for another thread while it
// holds one.
#pragma once

#include <cstdint>

namespace tprof {

// The name, which threads take it, and what is done under it. "calls": threads of the program, in
// calls off the hot path: the first of its kind, or one that makes or destroys something. "ours": a
// thread of the library, at nice 10. No lock is held during a write or a call of the CUDA driver
// unless the row says so.
#define TPROF_LOCKS(X)                                                                            \
  X(start)       /* calls, once: reads settings, makes the mapping, starts the writer */          \
  X(since)       /* tprof_totals, tprof_reset; ours, for `tprof ctl reset`: copies of 75 KiB */   \
  X(ended)       /* tprof_reset adds a line; ours takes them */                                   \
  X(windows)     /* cudaProfilerStart and Stop; ours, for `tprof ctl`: a few stores */            \
  X(objects)     /* calls, ours, and threads that fork: over the loader's list */                 \
  X(children)    /* calls: a communicator's first use */                                          \
  X(allocations) /* calls that allocate and free, with TPROF_MEMORY */                            \
  X(graphs)      /* calls: captures and their graphs */                                           \
  X(sites)       /* calls: the first from a place */                                              \
  X(scopes)      /* calls: the first scope of a name ends */                                      \
  X(tables)      /* calls: a communicator, graph or place is entered */                           \
  X(areas)       /* calls: the first of a thread */                                               \
  X(growing)     /* calls, and ours for device times: fallocate of the ring file, in memory or */ \
                 /* in time (in_time.h) */                                                        \
  X(range_names) /* NVTX's users, which register a name */                                        \
  X(handles)     /* calls: a handle is entered or leaves */                                       \
  X(coverage)    /* calls, ours: 48 names */                                                      \
  X(serving)     /* calls: a library's first */                                                   \
  X(callers)     /* the same */                                                                   \
  X(unwinding)   /* calls: a return address's first of a thread */                                \
  X(cupti)       /* ours, and threads that ask for CUPTI, 1 s at most. Over questions to CUPTI */ \
  X(host_memory) /* calls that allocate and free host memory */

enum class LockOrder : std::uint8_t {
#define X(name) name,
  TPROF_LOCKS(X)
#undef X
};
inline constexpr const char* kLockNames[] = {
#define X(name) #name,
    TPROF_LOCKS(X)
#undef X
};

// The locks that a thread holds.
class HeldLocks {
 public:
  // Returns the name of the innermost held lock that is `lock` or below it; null: `lock` may be
  // taken.
  constexpr const char* forbids(LockOrder lock) const {
    const std::uint32_t below = held_ >> static_cast<unsigned>(lock);
    if (below == 0) return nullptr;
    unsigned last = 31;
    while ((held_ >> last & 1) == 0) --last;
    return kLockNames[last];
  }
  constexpr void took(LockOrder lock) { held_ |= bit(lock); }
  constexpr void gave_back(LockOrder lock) { held_ &= ~bit(lock); }
  constexpr bool any() const { return held_ != 0; }

 private:
  static constexpr std::uint32_t bit(LockOrder lock) { return 1U << static_cast<unsigned>(lock); }
  std::uint32_t held_ = 0;
};

#if defined NDEBUG && !defined TPROF_CHECK_LOCKS
inline constexpr bool kLocksAreChecked = false;
#else
inline constexpr bool kLocksAreChecked = true;
#endif

}  // namespace tprof
