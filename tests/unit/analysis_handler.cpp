// live/: commands that get lines, and what a shell is told.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>

#include "analysis_traces.h"
#include "catch2.h"
#include "live/handler.h"
#include "live/shell.h"
#include "text/text.h"

using namespace tprof;
using namespace tprof::test;
using namespace std::chrono_literals;

namespace {

sigset_t no_signals() {
  sigset_t none;
  sigemptyset(&none);
  return none;
}

// A job that is over when the test says so, as the process beside it learns it.
class Job {
 public:
  Job() {
    // As in that process: a write to a command that has ended fails, and does no more.
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    sigprocmask(SIG_BLOCK, &pipe, nullptr);
    REQUIRE(pipe2(ends_, O_CLOEXEC) == 0);
  }
  ~Job() {
    close(ends_[0]);
    end();
  }
  int told() const { return ends_[0]; }
  void end() {
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }

 private:
  int ends_[2];
};

std::string content(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("a handler gets what is given, whole, however slowly it reads") {
  const Folder folder;
  Job job;
  const auto file = folder.path() / "got";
  live::Handler handler("cat > " + file.string(), 100s, job.told(), no_signals());
  std::string all;
  for (int i = 0; i < 20'000; ++i) {
    const std::string line = "line " + std::to_string(i) + "\n";
    CHECK(handler.give(line));
    all += line;
  }
  job.end();
  CHECK(handler.give("end\n"));
  CHECK(handler.end().empty());
  CHECK(content(file) == all + "end\n");
}

TEST_CASE("a handler that does not end is ended with all that it started") {
  const Folder folder;
  Job job;
  const auto ready = folder.path() / "ready";
  live::Handler handler("trap '' TERM; touch " + ready.string() + "; sleep 1000; true", 0s,
                        job.told(), no_signals());
  while (!std::filesystem::exists(ready)) poll(nullptr, 0, 1);
  job.end();
  CHECK(handler.end() == "it did not end with the job, and was ended by SIGKILL");
}

TEST_CASE("every placeholder of a command is filled in") {
  CHECK(live::filled_in("a {} b{}", "{}", "{}{}") == "a {}{} b{}{}");
  CHECK(live::filled_in("a", "{}", "x") == "a");
}

TEST_CASE("a word for a shell") {
  CHECK(text::shell_word("/a/b-1.json") == "/a/b-1.json");
  CHECK(text::shell_word("a b") == "'a b'");
  CHECK(text::shell_word("it's") == "'it'\\''s'");
  CHECK(text::shell_word("") == "''");
}
