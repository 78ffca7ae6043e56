#include "live/handler.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "live/shell.h"
#include "text/text.h"

namespace tprof::live {
namespace {

std::string how(int wait_status) {
  constexpr int kNotFound = 127;  // a shell's
  const bool not_found = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == kNotFound;
  return how_it_ended(wait_status) + (not_found ? ": there is no such command" : "");
}

std::uint64_t lines_in(std::string_view text) {
  return static_cast<std::uint64_t>(std::ranges::count(text, '\n'));
}

}  // namespace

// The pipe's other end stays open here, so that what is left in it when the command has ended can
// be counted. It is opened anew, so that O_NONBLOCK holds for our reading only.
Handler::Handler(std::string command, std::size_t most, const sigset_t& mask)
    : command_(std::move(command)), most_(most) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    throw std::runtime_error(fmt::format("pipe: {}", std::strerror(errno)));
  }
  to_ = ends[1];
  fcntl(to_, F_SETFL, O_NONBLOCK);
  left_ = open(fmt::format("/proc/self/fd/{}", ends[0]).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  pid_ = start_in_shell(command_, ends[0], mask, Group::own);
  const int error = errno;
  close(ends[0]);
  if (pid_ > 0) return;
  status_ = 0;
  close_pipe();
  throw std::runtime_error(fmt::format("fork: {}", std::strerror(error)));
}

Handler::~Handler() {
  close_pipe();
}

void Handler::close_pipe() {
  for (int* fd : {&to_, &left_}) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
  }
}

std::size_t Handler::room() const {
  const std::size_t used = queue_.size() - done_;
  return most_ - std::min(used, most_);
}

void Handler::give(std::string_view line) {
  ++given_;
  if (!runs() || line.size() > room()) {
    ++lost_;
  } else {
    queue_.append(line);
  }
}

void Handler::give_last(std::string_view line) {
  ++given_;
  last_given_ = true;
  if (!runs()) {
    ++lost_;
    return;
  }
  queue_.append(line);
  write_more();
}

void Handler::write_more() {
  constexpr std::size_t kKept = std::size_t{1} << 20;  // written bytes, before the rest moves
  while (to_ >= 0 && done_ < queue_.size()) {
    const ssize_t n = write(to_, queue_.data() + done_, queue_.size() - done_);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done_ += static_cast<std::size_t>(n);
    taken_ += static_cast<std::uint64_t>(n);
  }
  if (done_ == queue_.size() || done_ > kKept) {
    queue_.erase(0, done_);
    done_ = 0;
  }
  if (last_given_ && queue_.empty() && to_ >= 0) {
    close(to_);
    to_ = -1;
  }
}

std::uint64_t Handler::unread() const {
  std::uint64_t lines = 0;
  char part[4096];
  for (;;) {
    const ssize_t n = left_ < 0 ? 0 : ::read(left_, part, sizeof part);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return lines;
    lines += lines_in({part, static_cast<std::size_t>(n)});
  }
}

void Handler::look() {
  int status = 0;
  if (!runs() || waitpid(pid_, &status, WNOHANG) != pid_) return;
  status_ = status;
  lost_ += unread() + lines_in(std::string_view(queue_).substr(done_));
  queue_.clear();
  done_ = 0;
  close_pipe();
  if (last_given_ || stopped_by_ != 0 || status == 0) return;
  told_ = true;
  fmt::print(stderr, "tprof: --handler {}: {}; it gets no more lines\n", text::printable(command_),
             how(status));
}

void Handler::stop(int signal) {
  if (!runs()) return;
  stopped_by_ = signal;
  kill(-pid_, signal);
}

std::string Handler::said() const {
  std::string said;
  const auto add = [&](const std::string& part) { said += (said.empty() ? "" : "; ") + part; };
  if (stopped_by_ != 0) {
    add(fmt::format("it did not end with the job, and was ended by {}",
                    stopped_by_ == SIGKILL ? "SIGKILL" : "SIGTERM"));
  } else if (status_ && *status_ != 0 && !told_) {
    add(how(*status_));
  }
  if (lost_ != 0) {
    add(fmt::format("{} of {} lines did not reach it", text::thousands(lost_),
                    text::thousands(given_)));
  }
  return said;
}

}  // namespace tprof::live
