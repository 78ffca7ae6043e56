// All handlers of a run: each gets the same lines, and none waits long for another.
#pragma once

#include <poll.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <vector>

#include "live/handler.h"

namespace tprof::live {

class Handlers {
 public:
  // Starts them. Throws std::runtime_error.
  Handlers(const std::vector<std::string>& commands, const sigset_t& mask);

  void give(std::string_view line);
  // `line` makes the last line of a handler that has lost so many.
  void give_last(const std::function<std::string(std::uint64_t lost)>& line);

  // Waits until the handlers have room. Files can be read later, so a handler that reads fast
  // enough loses nothing. `wait` serves them for at most so long, and returns false if there is no
  // more time.
  using Wait = std::function<bool(std::chrono::nanoseconds most)>;
  void make_room(const Wait& wait);

  // Adds the descriptors to wait for until a handler takes more.
  void add_to(std::vector<pollfd>& from) const;
  // Writes what they take now, and checks which have ended.
  void serve();

  bool any_runs() const;
  void stop(int signal);
  // Prints a line on standard error for each handler that there is something to say about.
  void report() const;

 private:
  struct Served {
    Served(const std::string& command, const sigset_t& mask);
    Handler handler;
    bool slow = false;  // not worth waiting for
  };
  std::list<Served> handlers_;
};

}  // namespace tprof::live
