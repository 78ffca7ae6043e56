// Runs what the user wants beside the command of `tprof run`, each in a process of its own. The
// command's signals and its end don't affect these processes, and their failures don't affect us.
#pragma once

#include <csignal>
#include <functional>
#include <string>
#include <vector>

#include "children/child.h"
#include "cli/commands.h"
#include "launch/environment.h"

namespace tprof::cli {

// Does nothing in a run without handlers, --on-window and --keep-windows.
class Feeding {
 public:
  // Begins. The command must not have begun yet.
  Feeding(const Options& o, const fs::path& folder, const std::string& run_id,
          const launch::Launch& launch);
  Feeding(const Feeding&) = delete;
  Feeding& operator=(const Feeding&) = delete;
  ~Feeding();

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

}  // namespace tprof::cli
