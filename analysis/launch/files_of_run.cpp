#include "launch/files_of_run.h"

#include "read/error.h"
#include "read/load.h"
#include "read/ring_file.h"
#include "recover/recover.h"
#include "text/print.h"
#include "text/text.h"

namespace tprof::launch {

namespace fs = std::filesystem;

namespace {

// Completes rank files whose processes were killed, before this host's temporary folder goes.
void recover_dead(const fs::path& file, const std::string& run_id) {
  try {
    const std::optional<read::Header> header = file.extension() == ".ring"
                                                   ? read::load(file).processes.front().header
                                                   : read::beginning_of(file).header;
    if (header && header->run_id == run_id) recover::recover(file, false);
  } catch (const read::NotATrace&) {  // the summary says so
  } catch (const read::BadInput& e) {
    text::say("tprof: {}\n", text::printable(e.what()));
  }
}

// Frees abandoned memory of the node, silently, as it belongs to other jobs.
void give_back(const read::LeftRing& left) {
  try {
    if (left.alone || left.has_rank_file()) {
      recover::recover(left.alone ? left.ring : left.rank_file, false);
    } else {
      fs::remove(left.ring);
    }
  } catch (const std::exception&) {
  }
}

}  // namespace

FilesOfRun files_of_run(const fs::path& folder, const std::string& run_id) {
  FilesOfRun files;
  const std::string here = read::boot_id();
  for (const read::TraceFile& file : read::files_in(folder)) {
    const auto header = read::beginning_of(file.path).header;
    if (!header || header->run_id != run_id) {
      files.other_runs = files.other_runs || header;
      continue;
    }
    if (header->boot_id == here) {
      files.ours.push_back(file);
    } else {
      files.others = true;
    }
  }
  return files;
}

void finish_the_dead(const fs::path& folder, const std::string& run_id) {
  constexpr std::uint64_t kForgottenNs = 24 * 3'600'000'000'000;
  for (const read::LeftRing& left : read::left_rings(folder)) {
    if (left.silent_ns > kForgottenNs) {
      give_back(left);
    } else if ((left.alone || left.has_rank_file()) && left.is_of(folder)) {
      recover_dead(left.alone ? left.ring : left.rank_file, run_id);
    }
  }
}

void drop_lanes_of_no_rank(const fs::path& folder, const std::string& run_id) {
  if (!files_of_run(folder, run_id).ours.empty()) return;
  const std::string here = read::boot_id();
  std::vector<read::Skipped> skipped;
  for (const read::Trace& lanes : read::node_files_in(folder, skipped)) {
    const read::Header& h = lanes.processes.front().header;
    if (h.run_id == run_id && h.boot_id == here) fs::remove(lanes.source.file);
  }
}

}  // namespace tprof::launch
