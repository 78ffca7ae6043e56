// Finds what `tprof run` needs in its environment: the library, the launcher, a folder for the run.
// Runs the command transparently with respect to signals and exit status.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "doctor/ask.h"

namespace tprof::launch {

// Looks up an environment variable; "" if it is not set.
using Env = std::function<std::string(const char*)>;
std::string process_env(const char* name);

// The facts in the launcher's variables.
struct Launch {
  std::string run_id;                // empty: none
  std::optional<std::int64_t> task;  // number of this one of many parallel `tprof run`
};
Launch launch_of(const Env& env);

// Returns libtprof.so beside this binary or in ../lib. Throws BadInput with the places searched.
std::filesystem::path find_library();

// Returns the name of the script, if Python or a launcher of it runs one; else that of the program.
std::string name_of_run(const std::vector<std::string>& command);

// Makes a new folder <parent>/<name>-<date>-<n> with the first free n. Parallel tasks of one launch
// need the same folder, so they get <parent>/<name>-<run id>.
std::filesystem::path make_run_folder(const std::filesystem::path& parent,
                                      const std::vector<std::string>& command,
                                      const Launch& launch);

// Returns the folder of a TPROF_OUTPUT_DIR pattern for this job and host. Throws BadInput if
// processes of a host would have different folders.
std::filesystem::path folder_of(const std::string& pattern, const Env& env);

std::string host_name();
std::string random_id();

// Runs `command` with `settings` added to the environment, passes on signals to it, and returns its
// wait status.
int run_child(const std::vector<std::string>& command, const doctor::Settings& settings);

// Exits as the command did: with its exit code, or by the same signal.
[[noreturn]] void exit_like(int wait_status);

// Makes writes past RLIMIT_FSIZE fail instead of killing us by SIGXFSZ. Call it after starting a
// command, which would inherit it.
void let_writes_fail();

}  // namespace tprof::launch
