// Has a program sample the host and its GPUs while the command of `tprof run` runs. Both ask for
// more than a static program can have (NVML), and for more than a training process should do.
#pragma once

#include <filesystem>
#include <string>

#include "doctor/ask.h"

namespace tprof::launch {

class NodeLanes {
 public:
  // Starts tprof-node, which is beside the library, if TPROF_METRICS asks for lanes. `settings` go
  // before our environment. It ends with this process, however that ends.
  NodeLanes(const std::filesystem::path& library, const std::filesystem::path& folder,
            const std::string& run_id, const doctor::Settings& settings);
  NodeLanes(const NodeLanes&) = delete;
  NodeLanes& operator=(const NodeLanes&) = delete;
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

}  // namespace tprof::launch
