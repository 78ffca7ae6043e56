#include "live/window_commands.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "live/shell.h"
#include "text/text.h"

namespace tprof::live {
namespace {

std::string with_path(std::string command, const std::filesystem::path& file) {
  constexpr std::string_view kPlaceholder = "{}";
  const std::string word = text::shell_word(file.string());
  for (std::size_t at = 0; (at = command.find(kPlaceholder, at)) != std::string::npos;
       at += word.size()) {
    command.replace(at, kPlaceholder.size(), word);
  }
  return command;
}

}  // namespace

void WindowCommands::add(const std::string& rank, const std::filesystem::path& file) {
  ++files_;
  if (keep_) here_[rank].push_back({file, command_.empty()});
  if (!command_.empty()) waiting_.emplace_back(rank, file);
  begin_next();
  delete_old();
}

void WindowCommands::begin_next() {
  while (child_ <= 0 && !waiting_.empty()) {
    const std::string command = with_path(command_, waiting_.front().second);
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    child_ = start_in_shell(command, nothing, mask_, Group::own);
    const int error = errno;
    if (nothing >= 0) close(nothing);
    if (child_ > 0) return;
    fmt::print(stderr, "tprof: --on-window {}: fork: {}\n", text::printable(command),
               std::strerror(error));
    first_ended(false);
  }
}

void WindowCommands::first_ended(bool well) {
  const auto [rank, path] = std::move(waiting_.front());
  waiting_.pop_front();
  std::deque<File>& files = here_[rank];
  const auto file = std::ranges::find(files, path, &File::path);
  if (file == files.end()) return;
  if (well) {
    file->done = true;
  } else {
    files.erase(file);  // it stays: nobody has what is in it
  }
}

void WindowCommands::look() {
  int status = 0;
  if (child_ <= 0 || waitpid(child_, &status, WNOHANG) != child_) return;
  child_ = -1;
  if (status != 0) {
    fmt::print(stderr, "tprof: --on-window {}: {}\n",
               text::printable(with_path(command_, waiting_.front().second)), how_it_ended(status));
  }
  first_ended(status == 0);
  begin_next();
  delete_old();
}

void WindowCommands::delete_old() {
  if (!keep_) return;
  for (auto& [rank, files] : here_) {
    for (; files.size() > *keep_ && files.front().done; files.pop_front()) {
      std::error_code error;
      if (std::filesystem::remove(files.front().path, error)) ++deleted_;
      if (error) {
        fmt::print(stderr, "tprof: --keep-windows: {}: {}\n",
                   text::printable(files.front().path.string()), error.message());
      }
    }
  }
}

void WindowCommands::stop(int signal) const {
  if (child_ > 0) kill(-child_, signal);
}

}  // namespace tprof::live
