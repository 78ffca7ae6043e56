// Runs beside the command of `tprof run`: lanes of the node, a watch over its ranks, handlers.
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

// Has a program sample the host and its GPUs. Both ask for more than a static program can have
// (NVML), and for more than a training process should do.
class NodeLanes : NotCopied {
 public:
  // Starts tprof-node, which is beside the library, if TPROF_METRICS asks for lanes. `settings` go
  // before our environment. It ends with this process, however that ends.
  NodeLanes(const std::filesystem::path& library, const std::filesystem::path& folder,
            const std::string& run_id, const doctor::Settings& settings);
  ~NodeLanes() { end(); }

  // True if the lanes of GPUs are taken care of; of_processes() is then what TPROF_METRICS should
  // be for the processes.
  bool with_gpus() const { return with_gpus_; }
  const std::string& of_processes() const { return of_processes_; }

  // Has it close its file, and passes on what it said. Waits for 2 s at most, since a driver may
  // hang. Returns whether it had been started.
  bool end();

 private:
  bool with_gpus_ = false;
  std::string of_processes_;
  int told_ = -1;  // a socket: its end is the end of lanes, and it speaks there
};

// Watches over the command's processes, in a process of its own, which their signals and their ends
// don't affect, until it is destroyed. Runs `command` for ranks that hang; does nothing if that is
// empty.
class StuckWatch {
 public:
  StuckWatch(const std::string& command, std::chrono::nanoseconds stuck_after,
             const std::filesystem::path& folder, const std::string& run_id);

 private:
  children::Child child_;
};

// Feeds what the user runs beside the command of `tprof run`: handlers, which get the lines of its
// ranks, and a command for each window's file. Each has a process of its own. The command's signals
// and its end don't affect these processes, and their failures don't affect us.

// The commands that are fed; none: nothing is done.
struct Fed {
  std::vector<std::string> handlers;
  std::chrono::nanoseconds wait{};  // that handlers have to end behind the job
  std::string on_window;            // empty: none
  int keep_windows = -1;            // the last ones of a rank; -1: all
  bool quiet = false;
};

class Feeding : NotCopied {
 public:
  // Begins. The command must not have begun yet.
  Feeding(const Fed& fed, const std::filesystem::path& folder, const std::string& run_id,
          const Launch& launch);
  ~Feeding() { end(); }

  // Has to be called when the command has ended and the files of its dead processes are whole.
  // Waits until the commands for windows have ended, and then until handlers have.
  void end();

 private:
  struct Feeder {
    children::Child process;
    int tells;  // a socket to it, whose end it waits for
  };
  using Work = std::function<void(int told, const sigset_t& mask)>;
  void start(std::vector<Feeder>& feeders, const Work& work);

  std::vector<Feeder> handlers_;
  std::vector<Feeder> windows_;  // one, or none
};

}  // namespace tprof::launch
