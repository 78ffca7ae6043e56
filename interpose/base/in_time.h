// Work on files whose file system may have stopped answering: a thread of ours does it, and the
// caller waits for at most 50 ms.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <type_traits>

namespace tprof {
namespace in_time {

inline constexpr std::size_t kRoom = 2048;

// Takes the only place for such work, and gives it back. Null: other work occupies it, perhaps for
// ever.
[[gnu::cold]] void* take_place();
void give_place_back();
// Runs f(work) for the work in the place. Returns false if it did not succeed in time; nothing in
// the place may then be touched. If it succeeds later, undo(work) follows.
[[gnu::cold]] bool run(bool (*f)(void* work), void (*undo)(void* work));

void after_fork();  // in the child: there is no such thread

}  // namespace in_time

// Runs work.run() on a thread of ours, on a copy of `work` that then replaces it. Returns false if
// it failed or was late. If it succeeds late, work.undo() follows.
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
