#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <set>

#include "cli/child.h"
#include "cli/commands.h"
#include "read/error.h"
#include "read/folder.h"
#include "recover/recover.h"
#include "report/text.h"

namespace tprof::cli {
namespace fs = std::filesystem;

namespace {

constexpr const char* kExamples = R"(
Examples:
  tprof recover tprof-traces/train-20260101-120000-0
  tprof recover rank-00003.json
tprof run does this by itself when its command has ended. Without it summary, merge and check read
ring files as they are; recovering makes rank files that can be copied and kept.
Exit code: 0 every rank file is closed, 1 some were left as they are, 2 unreadable input.)";

struct Options {
  std::vector<fs::path> paths;
  bool force = false;
};

int code_of(recover::Outcome outcome) {
  using enum recover::Outcome;
  return outcome == closed || outcome == recovered ? kOk : kFinding;
}

// One file's trouble does not keep the others from being recovered.
int recover_one(const fs::path& file, bool force) {
  try {
    const recover::Result result = recover::recover(file, force);
    fmt::print("{}\n", report::printable(file.string() + ": " + result.text));
    return code_of(result.outcome);
  } catch (const read::BadInput& e) {
    fmt::print(stderr, "tprof: {}\n", report::printable(e.what()));
    return kBadUsage;
  }
}

int recover_all(const Options& o) {
  int worst = kOk;
  let_writes_fail();
  for (const read::TraceFile& file : read::trace_files(o.paths)) {
    worst = std::max(worst, recover_one(file.path, o.force));
  }
  return worst;
}

}  // namespace

Run add_recover(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("recover", "Closes the rank files of processes that were killed");
  command->footer(kExamples);
  command->add_option("PATH", o->paths, "folder of rank files, or rank files")->required();
  command->add_flag("--force", o->force, "processes of other hosts are dead");
  return [o, command] { return command->parsed() ? recover_all(*o) : -1; };
}

}  // namespace tprof::cli
