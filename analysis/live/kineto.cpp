#include "live/kineto.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace tprof::live {
namespace {

// Precedes each message: how long the rest is, and what it is.
struct Head {
  std::uint64_t size = 0;
  char type[32] = {};
};
// The rest of a request. After it come pids: the process's own, then those of the processes that
// started it.
struct Request {
  std::int32_t type = 0;
  std::int32_t pids = 0;
  std::int64_t job = 0;
};
constexpr std::string_view kRequest = "req";
constexpr std::string_view kDaemon = "dynolog";
constexpr std::int32_t kMayTrace = 2;  // a bit of its type
constexpr std::size_t kLongest = 65536;

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

std::optional<KinetoRequest> kineto_request(std::string_view message) {
  Head head;
  Request request;
  KinetoRequest asked;
  if (message.size() < sizeof head + sizeof request + sizeof asked.pid) return std::nullopt;
  std::memcpy(&head, message.data(), sizeof head);
  message.remove_prefix(sizeof head);
  const std::string_view type(head.type, strnlen(head.type, sizeof head.type));
  if (type != kRequest || head.size != message.size()) return std::nullopt;
  std::memcpy(&request, message.data(), sizeof request);
  std::memcpy(&asked.pid, message.data() + sizeof request, sizeof asked.pid);
  if (request.pids < 1) return std::nullopt;
  asked.may_trace = (request.type & kMayTrace) != 0;
  return asked;
}

std::string kineto_answer(std::string_view config) {
  Head head{config.size(), {}};
  std::memcpy(head.type, kRequest.data(), kRequest.size());
  std::string message(reinterpret_cast<const char*>(&head), sizeof head);
  message += config;
  return message;
}

KinetoDaemon::KinetoDaemon(const std::filesystem::path& folder,
                           std::function<std::string(const KinetoRequest&)> config)
    : config_(std::move(config)) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const std::string path = folder / kDaemon;
  if (path.size() >= sizeof name.sun_path) {
    errno = ENAMETOOLONG;
    fail("socket");
  }
  std::memcpy(name.sun_path, path.c_str(), path.size() + 1);
  socket_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket_ < 0) fail("socket");
  if (bind(socket_, reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0) {
    const int error = errno;
    close(socket_);
    errno = error;
    fail("bind");
  }
}

KinetoDaemon::~KinetoDaemon() {
  close(socket_);
}

void KinetoDaemon::answer() {
  std::string message(kLongest, '\0');
  sockaddr_un from{};
  socklen_t from_size = sizeof from;
  auto* sender = reinterpret_cast<sockaddr*>(&from);
  const ssize_t n = recvfrom(socket_, message.data(), message.size(), 0, sender, &from_size);
  if (n < 0 && errno != EINTR) fail("recvfrom");
  if (n <= 0) return;
  message.resize(static_cast<std::size_t>(n));
  const auto asked = kineto_request(message);
  if (!asked) return;
  const std::string answer = kineto_answer(config_(*asked));
  // The process may be gone. If it is not, it asks again.
  sendto(socket_, answer.data(), answer.size(), MSG_DONTWAIT | MSG_NOSIGNAL, sender, from_size);
}

}  // namespace tprof::live
