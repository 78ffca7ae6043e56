#include "live/shell.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace tprof::live {

children::Child start_in_shell(const std::string& command, int input, const sigset_t& mask,
                               Group group) {
  children::Child child([&] {
    if (group == Group::own) setpgid(0, 0);
    sigprocmask(SIG_SETMASK, &mask, nullptr);
    dup2(input, STDIN_FILENO);
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    return 127;
  });
  if (child.pid() < 0) throw std::runtime_error(fmt::format("fork: {}", std::strerror(errno)));
  // Done here too, so that the group is there before anybody kills it, whichever process comes
  // first.
  if (group == Group::own) setpgid(child.pid(), child.pid());
  return child;
}

int run_in_shell(const std::string& command, int input, const sigset_t& mask, Group group) {
  return start_in_shell(command, input, mask, group).wait();
}

std::string filled_in(std::string command, std::string_view placeholder, std::string_view by) {
  for (std::size_t at = 0; (at = command.find(placeholder, at)) != std::string::npos;
       at += by.size()) {
    command.replace(at, placeholder.size(), by);
  }
  return command;
}

std::string how_it_ended(int wait_status) {
  if (WIFEXITED(wait_status)) return fmt::format("exited with {}", WEXITSTATUS(wait_status));
  const int signal = WTERMSIG(wait_status);
  return fmt::format("was ended by signal {} ({})", signal, strsignal(signal));
}

}  // namespace tprof::live
