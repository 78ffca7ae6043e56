// marks/walk.h against glibc's backtrace(). All of this program counts as the library's own, so
// what is looked at begins with the C library's frames that called back.
#include "interpose/marks/walk.h"

#include <execinfo.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
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
bool g_compared = true;  // backtrace() can't be asked about a stack that was written over

int first_free_file() {
  const int file = dup(STDIN_FILENO);
  close(file);
  return file;
}

const int g_free_before = first_free_file();
const bool g_begun = native::begin();
const int g_free_after = first_free_file();

[[gnu::noinline]] void look() {
  std::uintptr_t to[kMost];
  const native::Stack stack = native::walk(to, kMost);
  g_seen = {{to, to + stack.frames}, {}, stack.cut};
  if (!g_compared) return;
  void* told[2 * kMost];
  const int n = backtrace(told, 2 * kMost);
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

// Writes over what the caller left of its frame, while `f` runs.
[[gnu::noinline]] void smashed(std::uintptr_t garbage, std::size_t words, void (*f)()) {
  auto* frame = static_cast<volatile std::uintptr_t*>(__builtin_frame_address(0));
  std::uintptr_t before[16];
  for (std::size_t i = 0; i < words; ++i) {
    before[i] = frame[i];
    frame[i] = garbage;
  }
  f();
  for (std::size_t i = 0; i < words; ++i) frame[i] = before[i];
}

#if defined(__x86_64__)
constexpr std::size_t kSmashed[] = {1, 2, 3, 16};
#else
constexpr std::size_t kSmashed[] = {1, 2};  // above them lies the function's own frame
#endif

std::vector<std::uintptr_t> garbage() {
  static const std::uintptr_t data[2] = {1, 2};
  const auto own = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  void* closed = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return {0,
          1,
          0x4001,
          own,
          own + 4,
          own + (1 << 20),
          own - 4096,
          ~std::uintptr_t{0},
          ~std::uintptr_t{0} - 15,
          std::uintptr_t{1} << 47,
          0xdead'beef'dead'beef,
          reinterpret_cast<std::uintptr_t>(data),
          reinterpret_cast<std::uintptr_t>(closed),
          reinterpret_cast<std::uintptr_t>(&std::qsort),
          reinterpret_cast<std::uintptr_t>(&std::qsort) + 40};
}

#if defined(__x86_64__)
// Functions that call f() with a frame pointer that is not theirs: their tables find the frame's
// end from it, or from what it points to.
asm(R"(
.macro misleading name, rule:vararg
.type \name, @function
\name:
  .cfi_startproc
  push %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset %rbp, -16
  mov %rdi, %rbp
  \rule
  call *%rsi
  pop %rbp
  .cfi_def_cfa %rsp, 8
  .cfi_restore %rbp
  ret
  .cfi_endproc
.endm
misleading walk_by_frame, .cfi_def_cfa %rbp, 16
misleading walk_by_word, .cfi_escape 0x0f, 3, 0x76, 0x78, 0x06
misleading walk_by_half, .cfi_escape 0x0f, 4, 0x76, 0x78, 0x94, 0x04
)");
extern "C" void walk_by_frame(std::uintptr_t garbage, void (*f)());
extern "C" void walk_by_word(std::uintptr_t garbage, void (*f)());
extern "C" void walk_by_half(std::uintptr_t garbage, void (*f)());
#endif

std::size_t mapped_bytes() {
  std::size_t bytes = 0, begin = 0, end = 0;
  std::FILE* file = std::fopen("/proc/self/maps", "r");
  while (std::fscanf(file, "%zx-%zx%*[^\n]", &begin, &end) == 2) bytes += end - begin;
  std::fclose(file);
  return bytes;
}

}  // namespace

TEST_CASE("walks need no open file") {
  CHECK(g_begun);
  CHECK(g_free_after == g_free_before);
}

TEST_CASE("a walk sees what backtrace() sees, to the outermost frame") {
  for (int i = 0; i < 2; ++i) {  // the first learns, the second knows
    recursive(5);
    CHECK(g_seen.ours == expected());
    CHECK(!g_seen.cut);
  }
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

TEST_CASE("a stack that was written over is read no further than it is there") {
  g_compared = false;
  for (const std::uintptr_t word : garbage()) {
    for (const std::size_t words : kSmashed) {
      INFO(word << ", " << words << " times");
      for (int i = 0; i < 2; ++i) {
        smashed(word, words, call_back);
        CHECK(!g_seen.ours.empty());
      }
      // In a thread that has walked through it before, as in one that has not.
      std::thread([&] { smashed(word, words, call_back); }).join();
    }
  }
  g_compared = true;
  std::thread([] { recursive(5); }).join();
  CHECK(g_seen.ours == expected());
}

#if defined(__x86_64__)
TEST_CASE("a frame pointer that was overwritten ends the walk") {
  g_compared = false;
  for (const auto call : {walk_by_frame, walk_by_word, walk_by_half}) {
    for (const std::uintptr_t word : garbage()) {
      INFO(word);
      std::thread([&] { call(word, call_back); }).join();
      CHECK(g_seen.cut);
    }
  }
  g_compared = true;
}

TEST_CASE("a walk ends at code without tables, and it is said that there is more") {
  // sub $8, %rsp; call *%rdi; add $8, %rsp; ret
  constexpr unsigned char kCode[] = {0x48, 0x83, 0xec, 8, 0xff, 0xd7, 0x48, 0x83, 0xc4, 8, 0xc3};
  void* made =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(made != MAP_FAILED);
  std::memcpy(made, kCode, sizeof kCode);
  g_compared = false;
  reinterpret_cast<void (*)(void (*)())>(made)(call_back);
  g_compared = true;
  CHECK(g_seen.cut);
  CHECK(g_seen.ours.back() == reinterpret_cast<std::uintptr_t>(made) + 6);
}
#endif

TEST_CASE("what a thread knows of the code goes with it") {
  const auto walk_in_threads = [](int threads) {
    for (int i = 0; i < threads; ++i) std::thread(call_back).join();
    return mapped_bytes();
  };
  const std::size_t before = walk_in_threads(10);
  CHECK(walk_in_threads(100) < before + 100 * (std::size_t{64} << 10));
}

TEST_CASE("a walk leaves errno alone, and no file open") {
  const int before = first_free_file();
  std::thread([] {
    errno = 77;
    call_back();
    CHECK(errno == 77);
  }).join();
  CHECK(first_free_file() == before);
}
