// Finds what `tprof run` needs in its environment: the library, the launcher, a folder for the run.
// Runs its command as if we were not there, as to its signals and its exit.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "doctor/ask.h"

namespace tprof::launch {

// Looks up an environment variable; empty text if it is not set.
using Env = std::function<std::string(const char*)>;
std::string process_env(const char* name);

// The launcher that started us, as far as its variables tell.
struct Launch {
  std::string run_id;                // empty: none
  std::optional<std::int64_t> task;  // which of many parallel `tprof run` this is
};
Launch launch_of(const Env& env);

// Returns libtprof.so beside this binary or in ../lib. Throws BadInput that says where it was
// looked for.
std::filesystem::path find_library();

// That of the script, where Python or what launches it runs one; else that of the program.
std::string name_of_run(const std::vector<std::string>& command);

// Makes a folder of our own: <parent>/<name>-<date>-<n>, with the first n that is free. Parallel
// tasks of one launch have to find the same folder, so they get <parent>/<name>-<run id>.
std::filesystem::path make_run_folder(const std::filesystem::path& parent,
                                      const std::vector<std::string>& command,
                                      const Launch& launch);

// The folder of a pattern as in TPROF_OUTPUT_DIR, of this job and host. Throws BadInput if
// processes of one host would have folders of their own.
std::filesystem::path folder_of(const std::string& pattern, const Env& env);

std::string host_name();
std::string random_id();

// Runs `command` with `settings` added to the environment, passes on to it the signals that come
// to us, and returns its wait status.
int run_child(const std::vector<std::string>& command, const doctor::Settings& settings);

// Exits as the command did: with its exit code, or by the same signal.
[[noreturn]] void exit_like(int wait_status);

// Makes a write of ours past RLIMIT_FSIZE fail, with a message, instead of ending us by SIGXFSZ.
// Must not be called before a command is started, which would inherit it.
void let_writes_fail();

}  // namespace tprof::launch
