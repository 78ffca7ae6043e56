// Feeds what the user runs beside the command of `tprof run`: handlers, which get the lines of its
// ranks, and a command for each window's file. Each has a process of its own. The command's signals
// and its end don't affect these processes, and their failures don't affect us.
#pragma once

#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "children/child.h"
#include "launch/environment.h"

namespace tprof::launch {

// The commands that are fed; none: nothing is done.
struct Fed {
  std::vector<std::string> handlers;
  std::chrono::nanoseconds wait{};  // that handlers have to end behind the job
  std::string on_window;            // empty: none
  int keep_windows = -1;            // the last ones of a rank; -1: all
  bool quiet = false;
};

class Feeding {
 public:
  // Begins. The command must not have begun yet.
  Feeding(const Fed& fed, const std::filesystem::path& folder, const std::string& run_id,
          const Launch& launch);
  Feeding(const Feeding&) = delete;
  Feeding& operator=(const Feeding&) = delete;
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
