// Work on files whose file system may have stopped answering: a thread of ours does it, and the
// caller waits for at most 50 ms.
#pragma once

#include <cstddef>
#include <type_traits>

namespace tprof {
namespace in_time {

inline constexpr std::size_t kRoom = 2048;

// See done_in_time(). `size`: bytes of `work`, at most kRoom.
[[gnu::cold]] bool run(void* work, std::size_t size, bool (*f)(void* work),
                       void (*undo)(void* work));

void after_fork();  // in the child: there is no such thread

}  // namespace in_time

// Runs work.run() on a thread of ours, on a copy of `work` that then replaces it. Returns false if
// it failed or was late, or if earlier work, perhaps for ever, has the only place for such a copy.
// If it succeeds late, work.undo() follows.
template <typename Work>
bool done_in_time(Work& work) {
  static_assert(std::is_trivially_copyable_v<Work> && sizeof(Work) <= in_time::kRoom);
  return in_time::run(
      &work, sizeof work, [](void* w) { return static_cast<Work*>(w)->run(); },
      [](void* w) { static_cast<Work*>(w)->undo(); });
}

}  // namespace tprof
