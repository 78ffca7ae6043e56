// Finds the trace files of folders, and loads them all.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "read/load.h"
#include "team/team.h"

namespace tprof::read {

struct TraceFile {
  std::filesystem::path path;
  bool named = false;  // by the user, rather than found in a folder
};

// Returns the *.json and *.json.gz of a folder, sorted by name, without windows' files whose rank
// file is there.
std::vector<TraceFile> files_in(const std::filesystem::path& folder);

// Returns the trace files that PATHs name: a file stands for itself, a folder for its files_in()
// and for anything else with such a name, such as a folder or a pipe. Throws BadInput for a path
// that does not exist, and for a folder without trace files.
std::vector<TraceFile> trace_files(const std::vector<std::filesystem::path>& paths);

// Returns why the path is no readable file, such as a folder or a pipe without a writer; empty
// if it is one.
std::string why_no_file(const std::filesystem::path& path);

// A skipped file, and why. `unreadable`: it may have been a rank file.
struct Skipped {
  std::string reason;
  bool unreadable = false;
  std::optional<std::int64_t> rank{};  // from the file's name
};

struct Traces {
  std::vector<Trace> traces;  // in the order of the files
  std::vector<Skipped> skipped;
  team::Shared team{};  // the processes that loaded a share of the files; null: this one alone
};

// Skips files that can't be read. Throws BadInput for a named file that is not a trace, and if no
// file is one. `progress` gets the number of finished files, from any thread.
Traces load_all(const std::vector<TraceFile>& files,
                const std::function<void(std::size_t)>& progress, Wanted wanted = Wanted::lines,
                const team::Shared& team = {});
// Loads this process's share of the files that the team's first process asks for into `to`, in the
// same order, and returns the answer.
std::string load_share(const team::Team& team, std::string_view asked, Traces& to);

// Returns a folder's HOST.node.json, in which tprof-node writes lanes of a host and its GPUs,
// sorted by name. Each is a trace whose only process is tprof-node: its header has host, boot_id,
// run_id and the base of the times. A file that can't be read is added to `skipped`.
std::vector<Trace> node_files_in(const std::filesystem::path& folder,
                                 std::vector<Skipped>& skipped);
// Returns those in all folders of the traces. Merged traces already have these lanes.
std::vector<Trace> node_files_beside(const Traces& traces, std::vector<Skipped>& skipped);

}  // namespace tprof::read
