#include "doctor/ask.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>

namespace tprof::doctor {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kPatience{20};
constexpr std::size_t kMaxText = std::size_t{4} << 20;

// Until the pipe is closed. False: it took too long, or said too much.
bool read_all(int fd, std::string& text) {
  const auto until = Clock::now() + kPatience;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    pollfd waiting{fd, POLLIN, 0};
    if (left.count() <= 0 || text.size() > kMaxText) return false;
    if (poll(&waiting, 1, static_cast<int>(left.count())) <= 0) {
      if (errno == EINTR) continue;
      return false;
    }
    char buffer[65536];
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return true;
    text.append(buffer, static_cast<std::size_t>(n));
  }
}

}  // namespace

Answer ask(const std::vector<std::string>& command,
           const std::vector<std::pair<std::string, std::string>>& settings) {
  Answer answer;
  std::vector<char*> argv;
  argv.reserve(command.size() + 1);
  for (const std::string& arg : command) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return answer;
  const pid_t child = fork();
  if (child == 0) {
    for (const auto& [name, value] : settings) {
      if (value.empty()) {
        unsetenv(name.c_str());
      } else {
        setenv(name.c_str(), value.c_str(), 1);
      }
    }
    const int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, STDIN_FILENO);
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    execvp(argv[0], argv.data());
    _exit(127);
  }
  close(ends[1]);
  if (child > 0) {
    if (!read_all(ends[0], answer.text)) kill(child, SIGKILL);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) != 127) answer.code = WEXITSTATUS(status);
  }
  close(ends[0]);
  return answer;
}

}  // namespace tprof::doctor
