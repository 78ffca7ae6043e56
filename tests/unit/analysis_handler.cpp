// live/: commands that get lines, and those for windows' files.
#include <poll.h>
#include <sys/stat.h>

#include <csignal>
#include <fstream>

#include "analysis_traces.h"
#include "catch2.h"
#include "live/handler.h"
#include "live/window_commands.h"
#include "text/text.h"

using namespace tprof;
using namespace tprof::test;

namespace {

sigset_t no_signals() {
  sigset_t none;
  sigemptyset(&none);
  return none;
}

void wait_for(live::Handler& handler) {
  while (handler.runs()) {
    handler.write_more();
    handler.look();
    poll(nullptr, 0, 1);
  }
}

void wait_for(live::WindowCommands& windows) {
  while (windows.busy()) {
    windows.look();
    poll(nullptr, 0, 1);
  }
}

std::string content(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("a handler gets what is given, whole, however slowly its pipe takes it") {
  const Folder folder;
  const auto file = folder.path() / "got";
  live::Handler handler("cat > " + file.string(), std::size_t{1} << 24, no_signals());
  std::string all;
  for (int i = 0; i < 20'000; ++i) {
    const std::string line = "line " + std::to_string(i) + "\n";
    handler.give(line);
    all += line;
  }
  handler.give_last("end\n");
  wait_for(handler);
  CHECK(content(file) == all + "end\n");
  CHECK(handler.lost() == 0);
  CHECK(handler.taken() == all.size() + 4);
  CHECK(handler.said().empty());
}

TEST_CASE("what a handler does not read is lost to it, to the line") {
  live::Handler handler("read -r a; read -r b; exit 3", 1000, no_signals());
  constexpr std::uint64_t kLines = 100'000;
  for (std::uint64_t i = 0; i < kLines; ++i) {
    handler.give("a line of it\n");
    handler.write_more();
  }
  wait_for(handler);
  CHECK(handler.given() == kLines);
  CHECK(handler.lost() == kLines - 2);
  handler.give_last("end\n");
  CHECK(handler.said() == "99,999 of 100,001 lines did not reach it");
}

TEST_CASE("a queue is bounded, and whole lines are lost only") {
  const Folder folder;
  const auto file = folder.path() / "got";
  const auto gate = folder.path() / "gate";
  REQUIRE(mkfifo(gate.c_str(), 0600) == 0);
  live::Handler handler("read -r go < " + gate.string() + "; cat > " + file.string(), 1000,
                        no_signals());
  constexpr std::uint64_t kLines = 10'000;
  const std::string line(99, 'x');
  for (std::uint64_t i = 0; i < kLines; ++i) {
    handler.give(line + "\n");
    handler.write_more();
  }
  CHECK(handler.room() < 100);
  const std::uint64_t lost = handler.lost();
  CHECK(lost > 0);
  handler.give_last("end\n");
  std::ofstream(gate) << "go\n";
  wait_for(handler);
  CHECK(handler.lost() == lost);
  CHECK(content(file).size() == (kLines - lost) * 100 + 4);
}

TEST_CASE("a handler that does not end is ended with all that it started") {
  const Folder folder;
  const auto ready = folder.path() / "ready";
  live::Handler handler("touch " + ready.string() + "; sleep 1000; true", 1000, no_signals());
  while (!std::filesystem::exists(ready)) poll(nullptr, 0, 1);
  handler.give("a\n");
  handler.give_last("end\n");
  handler.stop(SIGTERM);
  wait_for(handler);
  CHECK(handler.said() ==
        "it did not end with the job, and was ended by SIGTERM; 2 of 2 lines did not reach it");
}

TEST_CASE("windows' files stay until their command has ended well") {
  const Folder folder;
  const auto file = [&](int n) { return folder.path() / ("a window's " + std::to_string(n)); };
  const auto log = folder.path() / "log";
  live::WindowCommands windows(
      "echo {} >> " + log.string() + "; test {} != " + text::shell_word(file(2).string()), 1,
      no_signals());
  std::string all;
  for (int i = 1; i <= 5; ++i) {
    std::ofstream(file(i)) << i;
    windows.add(i == 5 ? "1" : "0", file(i));
    all += file(i).string() + "\n";
  }
  CHECK(std::filesystem::exists(file(1)));
  wait_for(windows);
  CHECK(content(log) == all);
  CHECK_FALSE(std::filesystem::exists(file(1)));
  CHECK(std::filesystem::exists(file(2)));  // the command failed for it
  CHECK_FALSE(std::filesystem::exists(file(3)));
  CHECK(std::filesystem::exists(file(4)));
  CHECK(std::filesystem::exists(file(5)));  // another rank's
  CHECK(windows.deleted() == 2);
  CHECK(windows.files() == 5);
}

TEST_CASE("a word for a shell") {
  CHECK(text::shell_word("/a/b-1.json") == "/a/b-1.json");
  CHECK(text::shell_word("a b") == "'a b'");
  CHECK(text::shell_word("it's") == "'it'\\''s'");
  CHECK(text::shell_word("") == "''");
}
