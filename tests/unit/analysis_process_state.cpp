// The state of a process, from folders that look like /proc.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "catch2.h"
#include "check/ends.h"
#include "read/ring_file.h"

namespace {

namespace fs = std::filesystem;
using tprof::read::End;
using tprof::read::Process;

const long kStarted = 5 * sysconf(_SC_CLK_TCK);  // in ticks

// The process 77 named "a) S b", which started 5 s after the boot.
struct FakeProc {
  fs::path root = fs::temp_directory_path() / ("tprof-proc-" + std::to_string(getpid()));

  explicit FakeProc(const std::string& state) {
    fs::create_directories(root / "sys/kernel/random");
    fs::create_directories(root / "77");
    std::ofstream(root / "sys/kernel/random/boot_id") << "boot-1\n";
    stat(root / "77", state, 0);
  }
  static void stat(const fs::path& folder, const std::string& state, int flags) {
    std::ofstream stat(folder / "stat");
    stat << "77 (a) S b) " << state << " 1";
    for (int field = 5; field < 22; ++field) stat << ' ' << (field == 9 ? flags : 0);
    stat << ' ' << kStarted << " 0 0\n";
  }
  void thread(int number, const std::string& state, int flags) const {
    const fs::path folder = root / "77/task" / std::to_string(number);
    fs::create_directories(folder);
    stat(folder, state, flags);
    if (number == 77) stat(root / "77", state, flags);
  }
  FakeProc(const FakeProc&) = delete;
  FakeProc& operator=(const FakeProc&) = delete;
  ~FakeProc() { fs::remove_all(root); }
};

Process process_77() {
  Process p;
  p.end = End::running;
  p.header.boot_id = "boot-1";
  p.header.pid = 77;
  p.header.base_time_ns = 1'000'000'000'000;
  p.header.monotonic_ns = 8'000'000'000;
  p.header.start_ns = 997'000'000'000;
  return p;
}

TEST_CASE("process state: a process that runs here") {
  for (const char* state : {"R", "S", "D", "T", "t", "Z"}) {
    const FakeProc proc(state);
    CHECK(tprof::check::state_here(process_77(), proc.root) == *state);
  }
}

TEST_CASE("process state: another process, another boot, or one that ended") {
  const FakeProc proc("T");
  Process p = process_77();
  p.header.start_ns += 1'000'000'000;  // its pid is another's now
  CHECK_FALSE(tprof::check::state_here(p, proc.root));
  p = process_77();
  p.header.boot_id = "boot-2";
  CHECK_FALSE(tprof::check::state_here(p, proc.root));
  p = process_77();
  p.header.pid = 78;
  CHECK_FALSE(tprof::check::state_here(p, proc.root));
  p = process_77();
  p.end = End::recovered;
  CHECK_FALSE(tprof::check::state_here(p, proc.root));
}

TEST_CASE(
    "process state: a process exits when all of its threads do, and not its main thread alone") {
  const int exiting = 0x40840c;  // as Linux had it while the thread gave back its memory
  const int working = 0x400000;
  const FakeProc proc("R");
  const auto exits = [&](int pid = 77, long started = kStarted) {
    return tprof::read::exits(pid, static_cast<std::uint64_t>(started), proc.root);
  };
  proc.thread(77, "R", working);
  CHECK_FALSE(exits());
  proc.thread(77, "R", exiting);
  CHECK(exits());
  proc.thread(77, "Z", exiting);
  CHECK(exits());
  CHECK_FALSE(exits(77, kStarted + 1));  // another process has the pid
  CHECK_FALSE(exits(78));
  proc.thread(78, "R", exiting);
  CHECK(exits());
  proc.thread(79, "S", working);
  CHECK_FALSE(exits());
}

}  // namespace
