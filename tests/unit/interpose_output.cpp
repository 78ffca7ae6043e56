// write/output.h: what is still in the rings when a process ends.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include "catch2.h"
#include "interpose/format/commit.h"
#include "interpose/write/output.h"
#include "interpose_world.h"

using namespace tprof;
using namespace tprof::test;

namespace {

// The writer's part, with a file of its own.
struct Closing {
  explicit Closing(const View& view) : output(view) { output.begin(fd); }
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

// A process with windows that have files, in a folder of its own.
struct InWindows {
  InWindows() {
    Head& head = World::view().head();
    copy_text(head.directory, folder);
    copy_text(head.rank_file, "rank-00000.json");
    copy_text(head.windows.schedule, "profiler");
    head.windows.files = true;
    std::ofstream(folder + "/rank-00000.json") << kHeader;
    head.header = World::mapping().allocate(kHeader.size());
    kHeader.copy(World::mapping().at<char>(head.header), kHeader.size());
    head.header_bytes = kHeader.size();
    fd = open((folder + "/rank-00000.json").c_str(), O_RDWR);
    output.emplace(World::view());
    output->begin(fd);
  }
  ~InWindows() {
    close(fd);
    std::filesystem::remove_all(folder);
  }
  InWindows(const InWindows&) = delete;
  InWindows& operator=(const InWindows&) = delete;

  static void begin(std::int64_t step) {
    open_window(World::view().head().windows, now_ns(), step);
  }
  static void end() { last_window(World::view().head().windows)->to_ns = now_ns(); }

  // Returns the number of lines of calls; -1 if there is no such file.
  int calls_in(const std::string& name) const {
    std::ifstream in(folder + "/" + name);
    if (!in) return -1;
    int n = 0;
    for (std::string line; std::getline(in, line);) n += line.find("\"ph\":\"X\"") != line.npos;
    return n;
  }

  static constexpr std::string_view kHeader =
      "[\n{\"name\":\"tprof_header\",\"args\":{\"rank\":0}},\n";
  std::string folder =
      mkdtemp((std::filesystem::temp_directory_path() / "tprof-windows-XXXXXX").string().data());
  int fd = -1;
  std::optional<Output> output;
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
  // A static destructor makes more calls.
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

TEST_CASE("a call that returns when its window's file is complete has its line in the rank file") {
  World world;
  Thread& t = world.thread(1, 1024);
  Thread& late = world.thread(2, 1024);
  ncclComm_t comm = world.communicator(2);
  InWindows files;
  InWindows::begin(5);
  reduce(t, comm, 3);
  all_reduce(late, comm, 10, ncclFloat32, ncclSum, [&] {
    InWindows::end();
    files.output->drain_batch();
    CHECK(files.calls_in("rank-00000.step-5.json.part") == 3);
    // Steps are numbered anew, so the name is taken. Only the third window needs a place.
    for (const std::int64_t step : {5, 9}) {
      InWindows::begin(step);
      reduce(t, comm, 2);
      InWindows::end();
    }
    while (files.output->drain_batch()) {
    }
    CHECK(files.calls_in("rank-00000.step-5.json") == 3);
    CHECK(files.calls_in("rank-00000.step-5.r1.json.part") == 2);
    return ncclSuccess;
  });
  files.output->drain_rest(UINT64_MAX);
  CHECK(files.output->end());
  CHECK(files.calls_in("rank-00000.step-5.json") == 3);
  CHECK(files.calls_in("rank-00000.step-5.r1.json") == 2);
  CHECK(files.calls_in("rank-00000.step-9.json") == 2);
  CHECK(files.calls_in("rank-00000.json") == 1);
}
