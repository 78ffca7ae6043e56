// Work on files whose file system may have stopped answering: a thread of ours does it, and who
// needs it waits for 50 ms at most.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <type_traits>

namespace tprof {
namespace in_time {

inline constexpr std::size_t kRoom = 2048;

// Takes the only place for such work, and gives it back. Null: other work stands there, perhaps for
// ever.
[[gnu::cold]] void* take_place();
void give_place_back();
// Runs f(work), for what is in the place. False: it did not succeed in time, and nothing in the
// place may be touched. If it succeeds later, undo(work) follows.
[[gnu::cold]] bool run(bool (*f)(void* work), void (*undo)(void* work));

void after_fork();  // in the child: there is no such thread

}  // namespace in_time

// Runs work.run() on a thread of ours, on a copy of `work` that replaces it then. False: it failed,
// or was not done in time. Then work.undo() follows there when it has succeeded after all.
template <typename Work>
bool done_in_time(Work& work) {
  static_assert(std::is_trivially_copyable_v<Work> && sizeof(Work) <= in_time::kRoom);
  void* place = in_time::take_place();
  if (place == nullptr) return false;
  auto* const copy = new (place) Work(work);
  if (!in_time::run([](void* w) { return static_cast<Work*>(w)->run(); },
                    [](void* w) { static_cast<Work*>(w)->undo(); })) {
    return false;
  }
  work = *copy;
  in_time::give_place_back();
  return true;
}

}  // namespace tprof
