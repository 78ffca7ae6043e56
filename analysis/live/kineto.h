// The daemon that PyTorch's profiler (libkineto) asks for work if KINETO_USE_DAEMON is set. Its
// messages are those of dynolog's IPC fabric, as datagrams over a socket in a folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace tprof::live {

// A process's request for work.
struct KinetoRequest {
  std::int32_t pid = 0;
  bool may_trace = false;  // it is not tracing already
};

// Returns the request in a message's bytes, or nullopt if they are anything else.
std::optional<KinetoRequest> kineto_request(std::string_view message);
std::string kineto_answer(std::string_view config);

class KinetoDaemon {
 public:
  // Makes the socket in `folder`, which KINETO_IPC_SOCKET_DIR names. That name has to be short,
  // since libkineto copies it without a check. `config` says what a process shall do; empty:
  // nothing. Throws std::system_error.
  KinetoDaemon(const std::filesystem::path& folder,
               std::function<std::string(const KinetoRequest&)> config);
  KinetoDaemon(const KinetoDaemon&) = delete;
  KinetoDaemon& operator=(const KinetoDaemon&) = delete;
  ~KinetoDaemon();

  // Waits for a message and answers it.
  void answer();

 private:
  int socket_ = -1;
  std::function<std::string(const KinetoRequest&)> config_;
};

}  // namespace tprof::live
