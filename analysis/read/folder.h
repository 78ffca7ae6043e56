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
  bool named = false;  // by the user, not found in a folder
};

// Returns the *.json and *.json.gz of a folder in the order of their names. Leaves out windows'
// files whose rank file is there.
std::vector<TraceFile> files_in(const std::filesystem::path& folder);

// Returns the trace files that PATHs name: a file stands for itself, a folder for its files_in(),
// and for what is called like one and can't be read, such as a folder or a pipe. Throws BadInput
// for a path that does not exist, and for a folder without trace files.
std::vector<TraceFile> trace_files(const std::vector<std::filesystem::path>& paths);

// Returns why what is there is no file that can be read, such as a folder or a pipe that nobody may
// ever write to; or nothing.
std::string why_no_file(const std::filesystem::path& path);

// A file that is left out, and why. `unreadable`: it may have been a rank file.
struct Skipped {
  std::string reason;
  bool unreadable = false;
  std::optional<std::int64_t> rank{};  // by the file's name
};

struct Traces {
  std::vector<Trace> traces;  // in the order of the files
  std::vector<Skipped> skipped;
  team::Shared team{};  // the processes that loaded a share of them; null: there are no others
};

// Leaves out files that can't be read. Throws BadInput for a named file that is not a trace, and if
// no file is one. `progress` gets the number of files done, from any thread.
Traces load_all(const std::vector<TraceFile>& files,
                const std::function<void(std::size_t)>& progress, Wanted wanted = Wanted::lines,
                const team::Shared& team = {});
// Loads another process's share of the files that the first one of the team asks for, and returns
// the answer: they come in this order into `to`.
std::string load_share(const team::Team& team, std::string_view asked, Traces& to);

// Returns the files in which tprof-node leaves lanes of a host and its GPUs, HOST.node.json, of a
// folder in the order of their names. Each is a trace whose only
// process is the program that wrote it: its header has host, boot_id, run_id and the base of the
// times. A file that can't be read becomes one of `skipped`.
std::vector<Trace> node_files_in(const std::filesystem::path& folder,
                                 std::vector<Skipped>& skipped);
// Returns those of all folders that traces come from. Merged traces have these lanes already.
std::vector<Trace> node_files_beside(const Traces& traces, std::vector<Skipped>& skipped);

}  // namespace tprof::read
