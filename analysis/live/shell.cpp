#include "live/shell.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "text/print.h"
#include "text/text.h"

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

bool WindowCommands::run(const std::filesystem::path& file) const {
  if (command_.empty()) return true;
  const std::string command = filled_in(command_, "{}", text::shell_word(file.string()));
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int status = run_in_shell(command, nothing, mask_, Group::own);
  if (nothing >= 0) close(nothing);
  if (status != 0) {
    text::say("tprof: --on-window {}: {}\n", text::printable(command), how_it_ended(status));
  }
  return status == 0;
}

void WindowCommands::take(const std::string& rank, const std::filesystem::path& file) {
  ++files_;
  if (!run(file) || !keep_) return;  // nobody has yet what is in a file that it failed for
  std::deque<std::filesystem::path>& files = here_[rank];
  for (files.push_back(file); files.size() > *keep_; files.pop_front()) {
    std::error_code error;
    if (std::filesystem::remove(files.front(), error)) ++deleted_;
    if (error) {
      text::say("tprof: --keep-windows: {}: {}\n", text::printable(files.front().string()),
                error.message());
    }
  }
}

}  // namespace tprof::live
