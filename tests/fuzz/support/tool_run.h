// Runs commands of `tprof` in this process, on files of a folder of its own, and checks that they
// keep the promises of every command.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tprof::fuzz {

// The folder of this process, in memory where there is /dev/shm; removed at its end.
const std::filesystem::path& folder();
std::filesystem::path write_file(std::string_view name, std::string_view bytes);

struct Outcome {
  int code = 0;
  std::string out;
  std::string err;
};

// Aborts if the command breaks a promise. The exit code must be one of the contract's, and bad
// input must give one line that begins with "tprof: ". Output must have nothing that a terminal
// would obey, and JSON output must be JSON.
Outcome run_tool(const std::vector<std::string>& arguments);

// Runs the commands that read traces on `path`, and checks that the merged trace has the totals of
// its parts.
void run_all_readers(const std::filesystem::path& path);

}  // namespace tprof::fuzz
