// A command of the user's that gets lines on its standard input while a job runs.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tprof::live {

// Nobody waits for it. Lines that it does not read wait in a queue. Lines without room there, and
// those that it left unread when it ended, are lost to it and counted.
class Handler {
 public:
  // Starts it with the shell, in a process group of its own and with the signal mask `mask`. Its
  // queue holds `most` bytes. Throws std::runtime_error.
  Handler(std::string command, std::size_t most, const sigset_t& mask);
  Handler(const Handler&) = delete;
  Handler& operator=(const Handler&) = delete;
  ~Handler();

  // Takes a line with its line break.
  void give(std::string_view line);
  // Takes the last line, for which there is always room. The command's standard input ends after
  // it.
  void give_last(std::string_view line);

  // Returns the descriptor to wait for until it takes more, or -1 if there is nothing that it could
  // take.
  int waits_at() const { return done_ < queue_.size() ? to_ : -1; }
  // Writes as much as it takes now.
  void write_more();

  // Checks whether it has ended.
  void look();
  bool runs() const { return !status_; }
  // Sends a signal to its process group.
  void stop(int signal);

  std::size_t room() const;
  std::uint64_t taken() const { return taken_; }  // bytes
  std::uint64_t given() const { return given_; }  // lines
  std::uint64_t lost() const { return lost_; }    // lines
  const std::string& command() const { return command_; }

  // Returns what there is to say about it when all is over, without its name. Empty if there is
  // nothing.
  std::string said() const;

 private:
  void close_pipe();
  std::uint64_t unread() const;

  const std::string command_;
  const std::size_t most_;
  pid_t pid_ = -1;
  int to_ = -1;    // the pipe's end for writing
  int left_ = -1;  // its other end, which tells what was not read
  std::string queue_;
  std::size_t done_ = 0;  // bytes of it that are written
  bool last_given_ = false;
  std::uint64_t taken_ = 0;
  std::uint64_t given_ = 0;
  std::uint64_t lost_ = 0;
  int stopped_by_ = 0;  // the last signal that we sent
  bool told_ = false;   // we told how it ended
  std::optional<int> status_;
};

}  // namespace tprof::live
