// Files and folders that are not whole yet, and go where the command is stopped by a signal.
#pragma once

#include <filesystem>

namespace tprof::trace_export {

// From here on SIGINT, SIGTERM, SIGHUP and SIGQUIT remove what is unfinished before they end the
// process. To be called before any thread is started.
void remove_unfinished_on_signals();

// One of them, while this lives. A folder has to come before the files in it.
class Unfinished {
 public:
  explicit Unfinished(std::filesystem::path path);
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  ~Unfinished();

 private:
  std::filesystem::path path_;
};

}  // namespace tprof::trace_export
