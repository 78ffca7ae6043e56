// Runs alongside the command of `tprof run`: lanes of the node, a watch over its ranks, handlers.
#pragma once

#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "children/child.h"
#include "doctor/ask.h"
#include "interpose/base/not_copied.h"
#include "launch/environment.h"

namespace tprof::launch {

// Samples the host and its GPUs in a separate program, since NVML can't be loaded by a static one,
// and a training process should not do it.
class NodeLanes : NotCopied {
 public:
  // Starts tprof-node, which is beside the library, if TPROF_METRICS asks for lanes. `settings`
  // override our environment. It ends with this process in any case.
  NodeLanes(const std::filesystem::path& library, const std::filesystem::path& folder,
            const std::string& run_id, const doctor::Settings& settings);
  ~NodeLanes() { end(); }

  // True if it draws lanes of GPUs; of_processes() is then the value of TPROF_METRICS for the
  // processes.
  bool with_gpus() const { return with_gpus_; }
  const std::string& of_processes() const { return of_processes_; }

  // Makes it close its file, and passes on its messages. Waits for at most 2 s, since a driver may
  // hang. Returns whether it had been started.
  bool end();

 private:
  bool with_gpus_ = false;
  std::string of_processes_;
  int told_ = -1;  // a socket for its messages; closing it ends the lanes
};

// Watches the command's processes while the returned process lives, which their signals and ends
// don't affect. Runs `command` for ranks that hang; does nothing if that is empty.
children::Child watch_for_stuck(const std::string& command, std::chrono::nanoseconds stuck_after,
                                const std::filesystem::path& folder, const std::string& run_id);

// Feeds the user's programs alongside the command of `tprof run`: handlers, which get the lines of
// its ranks, and a command for each window's file. Each has its own process, unaffected by the
// command's signals and end, and their failures don't affect us.

// The user's programs.
struct UserPrograms {
  std::vector<std::string> handlers;
  std::chrono::nanoseconds wait{};  // how long handlers may run after the job
  std::string on_window;            // empty: none
  int keep_windows = -1;            // how many of a rank are kept; -1: all
  bool quiet = false;
};

class UserProcesses : NotCopied {
 public:
  // Create it before the command starts.
  UserProcesses(const UserPrograms& programs, const std::filesystem::path& folder,
                const std::string& run_id, const Launch& launch);
  ~UserProcesses() { end(); }

  // Call this when the command has ended and the files of its dead processes are complete. Waits
  // for the commands for windows, then for the handlers.
  void end();

 private:
  struct UserProcess {
    children::Child process;
    int tells;  // a socket; closing it tells the process that the job is over
  };
  using Work = std::function<void(int told, const sigset_t& mask)>;
  void start(std::vector<UserProcess>& processes, const Work& work);

  std::vector<UserProcess> handlers_;
  std::vector<UserProcess> windows_;  // one, or none
};

}  // namespace tprof::launch
