#include "launch/feed.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "interpose/format/line_kinds.h"
#include "read/error.h"
#include "read/lines.h"
#include "read/window_files.h"
#include "text/text.h"

namespace tprof::launch {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr milliseconds kBetweenLines{200};  // as often as writers write

// Returns a line of ours between those of the files; the contract's page describes it.
std::string event_line(const char* what, const std::vector<std::filesystem::path>& files,
                       std::optional<std::uint64_t> lost = std::nullopt) {
  nlohmann::ordered_json line = {{"handler", what}, {"files", nlohmann::ordered_json::array()}};
  for (const auto& file : files) line["files"].push_back(file.string());
  if (lost) line["lost"] = *lost;
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

// True for lines of a window's file that explain its events and are in the rank file as well.
bool of_rank_file_too(std::string_view line) {
  return std::ranges::any_of(kLineKinds, [&](const LineKindInfo& kind) {
    return kind.explains && line.starts_with(kind.start);
  });
}

}  // namespace

Feed::Feed(const Fed& fed, int told, const sigset_t& mask)
    : fed_(fed),
      told_(told),
      lines_(fed.folder, true, fed.chosen),
      handlers_(fed.handlers, mask),
      windows_(fed.on_window, fed.keep_windows, mask) {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  ended_ = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
  if (ended_ < 0) throw std::runtime_error(fmt::format("signalfd: {}", std::strerror(errno)));
}

Feed::~Feed() {
  close(ended_);
}

void Feed::until_the_end() {
  try {
    for (bool last = false; !left_alone_;) {
      look();
      if (last) break;
      const auto next = Clock::now() + kBetweenLines;
      while (!over_ && !left_alone_ && Clock::now() < next) serve(next - Clock::now());
      last = over_.has_value();
    }
    while (windows_.busy() && !left_alone_) serve(std::chrono::seconds(1));
  } catch (const std::exception& e) {
    fmt::print(stderr, "tprof: handlers get no more lines: {}\n", text::printable(e.what()));
  }
  end_handlers();
}

void Feed::look() {
  lines_.look(live::Format::jsonl,
              [&](const live::RankLines& file, const std::string& lines) { take(file, lines); });
}

void Feed::take(const live::RankLines& file, const std::string& lines) {
  if (files_.insert(file.path()).second) handlers_.give(event_line("open", {file.path()}));
  for (std::size_t begin = 0; begin < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', begin), lines.size() - 1) + 1;
    const std::string line = lines.substr(begin, end - begin);
    handlers_.give(line);
    look_for_window(file, std::string_view(line).substr(0, line.size() - 1));
    begin = end;
  }
  make_room();
}

void Feed::make_room() {
  handlers_.make_room([&](nanoseconds most) {
    serve(most);
    return !left_alone_ && (!over_ || Clock::now() - *over_ < fed_.handler_wait);
  });
}

// Gives handlers the events that only this file has.
void Feed::give_window(const std::filesystem::path& file) try {
  const read::Source source{
      file, read::Source{}.cut, {}};  // the reader refers to it, so it has to outlive it
  read::BlockReader reader(source);
  for (read::Block block; reader.next(block); make_room()) {
    read::each_line(block, [&](const read::Line& line) {
      if (!of_rank_file_too(line.text)) handlers_.give(std::string(line.text) + "\n");
    });
  }
} catch (const read::BadInput& e) {
  fmt::print(stderr, "tprof: handlers do not get the lines of a window: {}\n",
             text::printable(e.what()));
}

// Looks for the line of a window. It is written when the window's file has its final name.
void Feed::look_for_window(const live::RankLines& file, std::string_view line) {
  const auto named = read::named_window(line);
  if (!named) return;
  const read::Header& header = file.process()->header;
  read::Source rank_file{file.path(), read::Source{}.cut, {}};
  rank_file.windows_of = header.base_time_ns;
  const auto whole = file.path().parent_path() / named->file;
  const auto source = read::window_source(rank_file, named->file);
  if (!source || source->file != whole) return;
  files_.insert(whole);
  if (handlers_.any_runs()) give_window(whole);
  handlers_.give(event_line("window", {whole}));
  windows_.add(header.rank ? std::to_string(*header.rank) : file.path().string(), whole);
}

// Does what there is to do until something happens, or the time is over.
void Feed::serve(nanoseconds most) {
  std::vector<pollfd> from = {{left_alone_ ? -1 : told_, POLLIN, 0}, {ended_, POLLIN, 0}};
  handlers_.serve();
  handlers_.add_to(from);
  const auto left =
      std::clamp<std::int64_t>(std::chrono::ceil<milliseconds>(most).count(), 0, 60'000);
  poll(from.data(), from.size(), static_cast<int>(left));
  char byte = 0;
  if (from[0].revents != 0) {
    if (::read(told_, &byte, 1) == 1) {
      over_ = Clock::now();
    } else {
      left_alone_ = true;
    }
  }
  signalfd_siginfo ended{};
  while (::read(ended_, &ended, sizeof ended) == sizeof ended) {
  }
  handlers_.serve();
  windows_.look();
}

void Feed::wait_for_handlers(nanoseconds most) {
  const auto until = Clock::now() + most;
  while (handlers_.any_runs() && Clock::now() < until) serve(until - Clock::now());
}

void Feed::end_handlers() {
  const nanoseconds wait = fed_.handler_wait;
  const nanoseconds little = std::min<nanoseconds>(std::chrono::seconds(2), wait);
  std::vector<std::filesystem::path> here;
  std::ranges::copy_if(files_, std::back_inserter(here), [](const std::filesystem::path& file) {
    std::error_code error;
    return std::filesystem::exists(file, error);
  });
  handlers_.give_last([&](std::uint64_t lost) { return event_line("close", here, lost); });
  wait_for_handlers(left_alone_ ? little : wait);
  stop(SIGTERM);
  wait_for_handlers(little);
  stop(SIGKILL);
  wait_for_handlers(std::chrono::seconds(10));  // they are bound to end
}

void Feed::stop(int signal) {
  handlers_.stop(signal);
  if (left_alone_) windows_.stop(signal);
}

void Feed::report(bool quiet) const {
  handlers_.report();
  const bool asked = !fed_.on_window.empty() || fed_.keep_windows;
  if (asked && windows_.files() == 0 && !files_.empty()) {
    fmt::print(
        stderr,
        "tprof: no window had a file: TPROF_WINDOW_FILES=1 and TPROF_SCHEDULE ask for them\n");
  }
  if (windows_.deleted() != 0 && !quiet) {
    fmt::print(stderr, "tprof: --keep-windows: {} older files of windows were deleted\n",
               text::thousands(windows_.deleted()));
  }
}

}  // namespace tprof::launch
