// marks/walk.h against glibc's backtrace(). All of this program counts as the library's own, so
// what is looked at begins with the C library's frames that called back.
#include "interpose/marks/walk.h"

#include <execinfo.h>
#include <ucontext.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <span>
#include <thread>
#include <vector>

#include "catch2.h"

using namespace tprof;

namespace {

constexpr std::size_t kMost = 64;

struct Seen {
  std::vector<std::uintptr_t> ours;
  std::vector<std::uintptr_t> theirs;
  bool cut = false;
};
Seen g_seen;
std::size_t g_most = kMost;

const bool g_begun = native::begin();

[[gnu::noinline]] void look() {
  std::uintptr_t to[kMost];
  const native::Stack stack = native::walk(to, g_most);
  void* told[2 * kMost];
  const int n = backtrace(told, 2 * kMost);
  g_seen = {{to, to + stack.frames}, {}, stack.cut};
  for (int i = 0; i < n; ++i) g_seen.theirs.push_back(reinterpret_cast<std::uintptr_t>(told[i]));
}

// Returns backtrace()'s frames from where ours begin.
std::vector<std::uintptr_t> expected() {
  REQUIRE(!g_seen.ours.empty());
  const auto begin = std::ranges::find(g_seen.theirs, g_seen.ours[0]);
  return {begin, g_seen.theirs.end()};
}

int compare(const void* a, const void* b) {
  if (a != b) look();
  return 0;
}

void call_back() {
  int two[2] = {1, 2};
  std::qsort(two, 2, sizeof two[0], compare);
}

[[gnu::noinline]] void recursive(int left) {
  volatile int after = left;
  if (left == 0) {
    call_back();
  } else {
    recursive(left - 1);
  }
  after = after + 1;
}

[[gnu::noinline]] void with_room(std::size_t size) {
  auto* room = static_cast<volatile char*>(__builtin_alloca(size));
  room[size - 1] = 1;
  call_back();
  room[0] = 0;
}

}  // namespace

TEST_CASE("there is a key for walks") {
  CHECK(g_begun);
}

TEST_CASE("a walk sees what backtrace() sees, to the outermost frame") {
  for (int i = 0; i < 2; ++i) {  // the first learns, the second knows
    recursive(5);
    CHECK(g_seen.ours == expected());
    CHECK(!g_seen.cut);
  }
}

TEST_CASE("frames of any size are walked through") {
  for (const std::size_t size : {16, 100, 5000, 100'000}) {
    with_room(size);
    CHECK(g_seen.ours == expected());
  }
}

TEST_CASE("threads have stacks of their own") {
  std::thread([] { recursive(3); }).join();
  CHECK(g_seen.ours == expected());
  CHECK(!g_seen.cut);
}

TEST_CASE("of a deep stack there are the innermost frames, and it is said that there are more") {
  g_most = 7;
  recursive(20);
  g_most = kMost;
  CHECK(g_seen.cut);
  auto first = expected();
  REQUIRE(first.size() > 7);
  first.resize(7);
  CHECK(g_seen.ours == first);
}

TEST_CASE("what was forgotten is learnt again") {
  CHECK(!(native::forget_unloaded() && native::forget_unloaded()));
  recursive(5);
  CHECK(g_seen.ours == expected());
}

TEST_CASE("of a stack that is not the thread's own nothing is read") {
  static ucontext_t back, fiber;
  static char room[65536];
  REQUIRE(getcontext(&fiber) == 0);
  fiber.uc_stack = {room, 0, sizeof room};
  fiber.uc_link = &back;
  makecontext(&fiber, look, 0);
  REQUIRE(swapcontext(&back, &fiber) == 0);
  CHECK(g_seen.ours.empty());
  CHECK(g_seen.cut);
}

TEST_CASE("a stack ends where a signal came, and it is said that there is more") {
  const auto before = std::signal(SIGUSR1, [](int) { look(); });
  REQUIRE(std::raise(SIGUSR1) == 0);
  std::signal(SIGUSR1, before);
  CHECK(g_seen.cut);
  const auto all = expected();
  REQUIRE(all.size() > g_seen.ours.size());
  CHECK(std::ranges::equal(g_seen.ours, std::span(all).first(g_seen.ours.size())));
}
