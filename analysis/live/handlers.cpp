#include "live/handlers.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/text.h"

namespace tprof::live {
namespace {

constexpr std::size_t kQueue = std::size_t{16} << 20;      // for each handler
constexpr std::size_t kMostAtOnce = std::size_t{4} << 20;  // what a file gives at a time
// A handler that takes less than so much in that time does not keep the others waiting.
constexpr std::chrono::seconds kPatience{1};
constexpr std::uint64_t kEnough = std::uint64_t{1} << 20;

}  // namespace

Handlers::Served::Served(const std::string& command, const sigset_t& mask)
    : handler(command, kQueue, mask) {}

Handlers::Handlers(const std::vector<std::string>& commands, const sigset_t& mask) {
  for (const std::string& command : commands) handlers_.emplace_back(command, mask);
}

void Handlers::give(std::string_view line) {
  for (Served& served : handlers_) served.handler.give(line);
}

void Handlers::give_last(const std::function<std::string(std::uint64_t lost)>& line) {
  for (Served& served : handlers_) served.handler.give_last(line(served.handler.lost()));
}

void Handlers::make_room(const Wait& wait) {
  using Clock = std::chrono::steady_clock;
  for (Served& served : handlers_) {
    Handler& handler = served.handler;
    const auto full = [&] { return handler.runs() && handler.room() < kMostAtOnce; };
    served.slow = served.slow && handler.room() < kQueue / 2;
    while (full() && !served.slow) {
      const auto until = Clock::now() + kPatience;
      const std::uint64_t taken = handler.taken();
      bool time = true;
      while (time && full() && Clock::now() < until) time = wait(until - Clock::now());
      served.slow = full() && (!time || handler.taken() - taken < kEnough);
    }
  }
}

void Handlers::add_to(std::vector<pollfd>& from) const {
  for (const Served& served : handlers_) from.push_back({served.handler.waits_at(), POLLOUT, 0});
}

void Handlers::serve() {
  for (Served& served : handlers_) {
    served.handler.write_more();
    served.handler.look();
  }
}

bool Handlers::any_runs() const {
  return std::ranges::any_of(handlers_, [](const Served& s) { return s.handler.runs(); });
}

void Handlers::stop(int signal) {
  for (Served& served : handlers_) served.handler.stop(signal);
}

void Handlers::report() const {
  for (const Served& served : handlers_) {
    const std::string said = served.handler.said();
    if (said.empty()) continue;
    fmt::print(stderr, "tprof: --handler {}: {}\n", text::printable(served.handler.command()),
               said);
  }
}

}  // namespace tprof::live
