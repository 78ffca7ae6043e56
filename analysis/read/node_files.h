// The files in which tprof-node leaves lanes of a host and its GPUs, HOST.node.json.
#pragma once

#include <filesystem>
#include <vector>

#include "read/folder.h"

namespace tprof::read {

// True for node7.node.json, node7.node.r1.json and the same with .gz. Whatever reads rank files
// leaves these aside.
bool is_node_file(const std::filesystem::path& file);

// Returns the node files of a folder in the order of their names. Each is a trace whose only
// process is the program that wrote it: its header has host, boot_id, run_id and the base of the
// times. A file that can't be read becomes one of `skipped`.
std::vector<Trace> node_files_in(const std::filesystem::path& folder,
                                 std::vector<Skipped>& skipped);
// Returns those of all folders that traces come from. Merged traces have these lanes already.
std::vector<Trace> node_files_beside(const Traces& traces, std::vector<Skipped>& skipped);

}  // namespace tprof::read
