// Runs commands of `tprof` in this process on files of a folder of its own, and holds what they say
// against what every command promises.
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

// Aborts when the command breaks a promise: an exit code of the contract; of bad input one line
// that begins with "tprof: "; nothing that a terminal would obey; JSON that is JSON.
Outcome run_tool(const std::vector<std::string>& arguments);

// Every command that reads traces, on `path`; and the merged trace has the totals of its parts.
void run_all_readers(const std::filesystem::path& path);

}  // namespace tprof::fuzz
