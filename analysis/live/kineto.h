// The daemon that PyTorch's profiler (libkineto) asks for work where KINETO_USE_DAEMON is set: its
// messages, as dynolog's IPC fabric has them, over datagrams of a socket in a folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace tprof::live {

// What a process asks: what it shall do now.
struct KinetoRequest {
  std::int32_t pid = 0;
  bool may_trace = false;  // it is not tracing already
};

// Of a message's bytes; nothing: it is another one, or none of these.
std::optional<KinetoRequest> kineto_request(std::string_view message);
std::string kineto_answer(std::string_view config);

class KinetoDaemon {
 public:
  // In `folder`, which KINETO_IPC_SOCKET_DIR names; a short name, since libkineto copies it without
  // looking. `config` says what a process shall do; empty:
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
