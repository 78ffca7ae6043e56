#include "live/http.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <string_view>
#include <thread>

#include "read/error.h"

namespace tprof::live {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view kPath = "/metrics";
constexpr std::size_t kLongestRequest = 8192;

// Accepts no host names, since a static program can't resolve them.
sockaddr_storage address_of(const std::string& text, socklen_t& size) {
  const std::size_t colon = text.rfind(':');
  std::string host = colon == std::string::npos ? "" : text.substr(0, colon);
  const std::string digits = text.substr(colon == std::string::npos ? 0 : colon + 1);
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  bool known = error == std::errc() && end == digits.data() + digits.size();
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.empty() || host == "localhost") host = "127.0.0.1";
  sockaddr_storage storage{};
  auto* v4 = reinterpret_cast<sockaddr_in*>(&storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&storage);
  if (inet_pton(AF_INET, host.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    size = sizeof *v4;
  } else if (inet_pton(AF_INET6, host.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    size = sizeof *v6;
  } else {
    known = false;
  }
  if (!known)
    throw read::BadInput("--listen: expected 9464, 127.0.0.1:9464 or [::1]:9464, found '" + text +
                         "'");
  return storage;
}

// Returns the numeric URL that it is bound to.
std::string url_of(int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size);
  char host[INET6_ADDRSTRLEN] = "";
  if (storage.ss_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&storage);
    inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
    return fmt::format("http://[{}]:{}{}", host, ntohs(v6->sin6_port), kPath);
  }
  const auto* v4 = reinterpret_cast<const sockaddr_in*>(&storage);
  inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host);
  return fmt::format("http://{}:{}{}", host, ntohs(v4->sin_port), kPath);
}

// A client with its deadline.
struct Visitor {
  int fd;
  Clock::time_point until = Clock::now() + std::chrono::seconds(5);

  bool ready(short what) const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd wanted{fd, what, 0};
    return left > 0 && poll(&wanted, 1, static_cast<int>(left)) == 1;
  }

  // Returns the request up to the empty line; empty if none came.
  std::string request() const {
    std::string text;
    while (text.find("\r\n\r\n") == std::string::npos) {
      char bytes[1024];
      const ssize_t n = ready(POLLIN) ? recv(fd, bytes, sizeof bytes, 0) : 0;
      if (n <= 0 || text.size() > kLongestRequest) return "";
      text.append(bytes, static_cast<std::size_t>(n));
    }
    return text;
  }

  void send(std::string_view text) const {
    while (!text.empty() && ready(POLLOUT)) {
      const ssize_t n = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n < 0 && errno != EAGAIN && errno != EINTR) return;
      text.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    }
  }
};

std::string answer_to(std::string_view request, const std::function<std::string()>& metrics) {
  const std::string_view method = request.substr(0, request.find(' '));
  request.remove_prefix(std::min(method.size() + 1, request.size()));
  std::string_view path = request.substr(0, request.find_first_of(" ?"));
  const bool known = method == "GET" || method == "HEAD";
  const char* status = !known          ? "405 Method Not Allowed"
                       : path != kPath ? "404 Not Found"
                                       : "200 OK";
  const std::string body =
      known && path == kPath ? metrics() : fmt::format("expected GET {}\n", kPath);
  return fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
      "Content-Length: {}\r\nConnection: close\r\n\r\n{}",
      status, body.size(), method == "HEAD" ? "" : body);
}

}  // namespace

Http::Http(const std::string& address) {
  socklen_t size = 0;
  const sockaddr_storage to = address_of(address, size);
  fd_ = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int on = 1;
  const bool bound = fd_ >= 0 && setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
                     bind(fd_, reinterpret_cast<const sockaddr*>(&to), size) == 0 &&
                     listen(fd_, 16) == 0;
  if (!bound) {
    const int error = errno;
    close(fd_);
    throw read::BadInput("--listen " + address + ": " + std::strerror(error));
  }
  url_ = url_of(fd_);
  spare_ = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

Http::~Http() {
  close(fd_);
  if (spare_ >= 0) close(spare_);
}

// Accepts and closes: a waiting client would wake us up again and again.
void Http::turn_away() {
  if (spare_ >= 0) close(spare_);
  const int fd = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
  if (fd >= 0) close(fd);
  spare_ = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (fd < 0 || spare_ < 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));
}

void Http::answer(const std::function<std::string()>& metrics) {
  const int fd = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
  if (fd < 0) {
    const bool full = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    if (full) turn_away();
    return;
  }
  const Visitor visitor{fd};
  if (const std::string request = visitor.request(); !request.empty()) {
    visitor.send(answer_to(request, metrics));
  }
  close(fd);
}

}  // namespace tprof::live
