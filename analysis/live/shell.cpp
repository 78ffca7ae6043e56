#include "live/shell.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>

namespace tprof::live {

pid_t start_in_shell(const std::string& command, int input, const sigset_t& mask, Group group) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error(fmt::format("fork: {}", std::strerror(errno)));
  if (child == 0) {
    if (group == Group::own) setpgid(0, 0);
    sigprocmask(SIG_SETMASK, &mask, nullptr);
    dup2(input, STDIN_FILENO);
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  // Done here too, so that the group is there before anybody kills it, whichever process comes
  // first.
  if (group == Group::own) setpgid(child, child);
  return child;
}

int run_in_shell(const std::string& command, int input, const sigset_t& mask, Group group) {
  const pid_t child = start_in_shell(command, input, mask, group);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

std::string filled_in(std::string command, std::string_view placeholder, std::string_view by) {
  for (std::size_t at = 0; (at = command.find(placeholder, at)) != std::string::npos;
       at += by.size()) {
    command.replace(at, placeholder.size(), by);
  }
  return command;
}

std::string how_it_ended(int wait_status) {
  return WIFEXITED(wait_status) ? fmt::format("exited with {}", WEXITSTATUS(wait_status))
                                : fmt::format("was ended by signal {}", WTERMSIG(wait_status));
}

}  // namespace tprof::live
