// emit/output.h: what is still in the rings when a process ends.
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "catch2.h"
#include "interpose/emit/output.h"
#include "interpose_world.h"

using namespace tprof;
using namespace tprof::test;

namespace {

// The writer's part, with a file of its own.
struct Closing {
  explicit Closing(const View& view) : output(view, fd, 0) {}
  ~Closing() {
    close(fd);
    unlink(path.c_str());
  }
  Closing(const Closing&) = delete;
  Closing& operator=(const Closing&) = delete;

  std::uint64_t event_lines() const {
    std::uint64_t n = 0;
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) n += line.find("\"ph\":\"X\"") != line.npos;
    return n;
  }
  std::uint64_t lost() const {
    const Progress& p = committed_block(World::view().head())->progress;
    return p.dropped[static_cast<std::size_t>(Dropped::write_error)];
  }

  std::string path = (std::filesystem::temp_directory_path() / "tprof-output-XXXXXX").string();
  int fd = mkstemp(path.data());
  Output output;
};

void reduce(Thread& t, ncclComm_t comm, std::uint64_t calls) {
  for (std::uint64_t i = 0; i < calls; ++i) all_reduce(t, comm, 10);
}

}  // namespace

TEST_CASE("all lines that wait at exit are written, however many") {
  World world;
  constexpr std::uint64_t kCalls = 1 << 19;
  Thread& t = world.thread(1, kCalls);
  ncclComm_t comm = world.communicator(2);
  reduce(t, comm, kCalls);
  Closing closing(World::view());
  closing.output.drain_rest(UINT64_MAX);
  CHECK(closing.output.end());
  CHECK(lseek(closing.fd, 0, SEEK_END) > (off_t{64} << 20));
  CHECK(closing.event_lines() == kCalls);
  CHECK(closing.lost() == 0);
}

TEST_CASE(
    "lines for which there is no time at exit are counted, and those behind them come later") {
  World world;
  Thread& t = world.thread(1, 1 << 16);
  ncclComm_t comm = world.communicator(2);
  reduce(t, comm, 20'000);
  Closing closing(World::view());
  closing.output.drain_batch();
  const std::uint64_t written = closing.event_lines();
  CHECK((written > 0 && written < 20'000));
  closing.output.drain_rest(0);
  CHECK(closing.output.end());
  CHECK(closing.event_lines() == written);
  CHECK(closing.lost() == 20'000 - written);
  // A static destructor's calls.
  reduce(t, comm, 100);
  closing.output.drain_rest(UINT64_MAX);
  CHECK(closing.output.end());
  CHECK(closing.event_lines() == written + 100);
  CHECK(closing.lost() == 20'000 - written);
}

TEST_CASE("a thread that goes on calling does not keep the exit waiting") {
  World world;
  constexpr std::uint32_t kRing = 1024;
  Thread& t = world.thread(1, kRing);
  ncclComm_t comm = world.communicator(2);
  reduce(t, comm, kRing);
  Closing closing(World::view());
  std::atomic<bool> stop{false};
  std::thread caller([&] {
    while (!stop) all_reduce(t, comm, 10);
  });
  closing.output.drain_rest(UINT64_MAX);
  stop = true;
  caller.join();
  CHECK(closing.event_lines() == kRing);
}
