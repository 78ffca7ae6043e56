// The state of a process, from folders that look like /proc.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "catch2.h"
#include "diagnose/process_state.h"

namespace {

namespace fs = std::filesystem;
using tprof::read::End;
using tprof::read::Process;

// The process 77 named "a) S b", which started 5 s after the boot.
struct FakeProc {
  fs::path root = fs::temp_directory_path() / ("tprof-proc-" + std::to_string(getpid()));

  explicit FakeProc(const std::string& state) {
    fs::create_directories(root / "sys/kernel/random");
    fs::create_directories(root / "77");
    std::ofstream(root / "sys/kernel/random/boot_id") << "boot-1\n";
    std::ofstream stat(root / "77/stat");
    stat << "77 (a) S b) " << state << " 1";
    for (int field = 5; field < 22; ++field) stat << " 0";
    stat << ' ' << 5 * sysconf(_SC_CLK_TCK) << " 0 0\n";
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
    CHECK(tprof::diagnose::state_here(process_77(), proc.root) == *state);
  }
}

TEST_CASE("process state: another process, another boot, or one that ended") {
  const FakeProc proc("T");
  Process p = process_77();
  p.header.start_ns += 1'000'000'000;  // its pid is another's now
  CHECK_FALSE(tprof::diagnose::state_here(p, proc.root));
  p = process_77();
  p.header.boot_id = "boot-2";
  CHECK_FALSE(tprof::diagnose::state_here(p, proc.root));
  p = process_77();
  p.header.pid = 78;
  CHECK_FALSE(tprof::diagnose::state_here(p, proc.root));
  p = process_77();
  p.end = End::recovered;
  CHECK_FALSE(tprof::diagnose::state_here(p, proc.root));
}

}  // namespace
