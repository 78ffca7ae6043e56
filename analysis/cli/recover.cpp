#include <filesystem>
#include <set>

#include "cli/commands.h"
#include "read/error.h"
#include "read/folder.h"
#include "recover/recover.h"
#include "text/print.h"
#include "text/text.h"

namespace tprof::cli {

namespace {

// One file's trouble does not keep the others from being recovered.
int recover_one(const fs::path& file, bool force) {
  try {
    if (const std::string why = read::why_no_file(file); !why.empty()) {
      throw read::BadInput(file, why);
    }
    const recover::Result result = recover::recover(file, force);
    text::print("{}\n", text::printable(file.string() + ": " + result.text));
    return result.closed ? kOk : kFinding;
  } catch (const read::BadInput& e) {
    text::say("tprof: {}\n", text::printable(e.what()));
    return kBadUsage;
  }
}

}  // namespace

int recover(const Options& o) {
  int worst = kOk;
  for (const fs::path& path : o.paths) {
    for (const std::string& line : recover::free_removed(path)) {
      text::print("{}\n", text::printable(line));
    }
  }
  for (const read::TraceFile& file : read::trace_files(o.paths)) {
    if (!file.named && !read::why_no_file(file.path).empty()) continue;
    worst = std::max(worst, recover_one(file.path, o.force));
  }
  return worst;
}

}  // namespace tprof::cli
