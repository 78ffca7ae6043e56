#include "live/window_commands.h"

#include <fcntl.h>
#include <unistd.h>

#include "live/shell.h"
#include "text/print.h"
#include "text/text.h"

namespace tprof::live {

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
