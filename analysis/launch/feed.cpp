#include "launch/feed.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "diagnose/names.h"
#include "live/handler.h"
#include "live/told.h"
#include "live/window_commands.h"
#include "read/error.h"
#include "read/lines.h"
#include "read/window_files.h"
#include "text/print.h"
#include "text/text.h"

namespace tprof::launch {
namespace {

namespace fs = std::filesystem;

// Calls f(file, lines) for what the run's files have gained, until the job is over or it returns
// false.
template <typename F>
void follow(const RunFiles& run, int told, F&& f) {
  constexpr std::chrono::milliseconds kBetweenLooks{200};  // as often as writers write
  live::FolderLines files(run.folder, true, run.chosen);
  bool more = true;
  for (bool over = false; more && !over;) {
    over = live::at_end(told, kBetweenLooks);
    files.look(live::Format::jsonl, [&](const live::RankLines& file, const std::string& lines) {
      more = more && f(file, lines);
    });
  }
}

// Calls f(line), with its line break.
template <typename F>
void each_line(std::string_view lines, F&& f) {
  for (std::size_t end = 0; !lines.empty(); lines.remove_prefix(end)) {
    end = std::min(lines.find('\n'), lines.size() - 1) + 1;
    f(lines.substr(0, end));
  }
}

// A window's file that a line names. The line is written when the file has its final name.
struct Window {
  fs::path file;
  std::optional<read::Source> lines{};  // nullopt: it was deleted
};
std::optional<Window> window_in(std::string_view line, const live::RankLines& file) {
  const auto named = read::named_window(line);
  if (!named) return std::nullopt;
  read::Source rank_file{file.path(), read::Source{}.cut, {}};
  rank_file.windows_of = file.process()->header.base_time_ns;
  Window window{file.path().parent_path() / named->file,
                read::window_source(rank_file, named->file)};
  if (window.lines && window.lines->file != window.file) return std::nullopt;  // it is not whole
  return window;
}

// Returns a line of ours between those of the files; live/README.md describes it.
std::string event_line(const char* what, const std::vector<fs::path>& files) {
  nlohmann::ordered_json line = {{"handler", what}, {"files", nlohmann::ordered_json::array()}};
  for (const auto& file : files) line["files"].push_back(file.string());
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

// A handler, and what it was told of.
class FedHandler {
 public:
  FedHandler(const std::string& command, std::chrono::nanoseconds wait, int told,
             const sigset_t& mask)
      : handler_(command, wait, told, mask) {}

  // Returns false if it takes no more.
  bool take(const live::RankLines& file, const std::string& lines) {
    std::string given;
    const auto give = [&] {
      takes_more_ = takes_more_ && handler_.give(given);
      given.clear();
    };
    if (files_.insert(file.path()).second) given += event_line("open", {file.path()});
    each_line(lines, [&](std::string_view line) {
      given += line;
      const auto window = window_in(line, file);
      if (!window || !takes_more_) return;
      files_.insert(window->file);
      if (!window->lines) ++deleted_;
      if (window->lines) add_lines(*window->lines, given, give);
      given += event_line("window", {window->file});
    });
    give();
    return takes_more_;
  }

  // Returns what there is to say about it.
  std::string end() {
    std::vector<fs::path> here;
    std::ranges::copy_if(files_, std::back_inserter(here), [](const fs::path& file) {
      std::error_code error;
      return fs::exists(file, error);
    });
    if (takes_more_) handler_.give(event_line("close", here));
    std::string said = handler_.end();
    if (deleted_ == 0) return said;
    return said + fmt::format("{}{} of windows {} deleted before it read {} lines",
                              said.empty() ? "" : "; ", diagnose::counted(deleted_, "file"),
                              deleted_ == 1 ? "was" : "were", deleted_ == 1 ? "its" : "their");
  }

 private:
  // Adds the lines that only the window's file has.
  template <typename Give>
  static void add_lines(const read::Source& source, std::string& given, Give&& give) try {
    read::BlockReader reader(source);
    for (read::Block block; reader.next(block); give()) {
      read::leave_events(block);
      read::each_line(block, [&](const read::Line& line) { (given += line.text) += '\n'; });
    }
  } catch (const read::BadInput& e) {
    text::say("tprof: a handler does not get the lines of a window: {}\n",
              text::printable(e.what()));
  }

  live::Handler handler_;
  bool takes_more_ = true;
  std::set<fs::path> files_;
  std::uint64_t deleted_ = 0;
};

}  // namespace

void feed_handler(const RunFiles& run, const std::string& command, std::chrono::nanoseconds wait,
                  int told, const sigset_t& mask) {
  FedHandler handler(command, wait, told, mask);
  follow(run, told, [&](const live::RankLines& file, const std::string& lines) {
    return handler.take(file, lines);
  });
  const std::string said = handler.end();
  if (said.empty()) return;
  text::say("tprof: --handler {}: {}\n", text::printable(command), said);
}

void feed_window_commands(const RunFiles& run, const std::string& command,
                          std::optional<std::uint64_t> keep, bool quiet, int told,
                          const sigset_t& mask) {
  live::WindowCommands windows(command, keep, mask);
  bool any_line = false;
  follow(run, told, [&](const live::RankLines& file, const std::string& lines) {
    const auto& rank = file.process()->header.rank;
    each_line(lines, [&](std::string_view line) {
      const auto window = window_in(line, file);
      if (!window || !window->lines) return;
      windows.take(rank ? std::to_string(*rank) : file.path().string(), window->file);
    });
    return any_line = true;
  });
  if (windows.files() == 0 && any_line) {
    text::say(
        "tprof: no window had a file: TPROF_WINDOW_FILES=1 and TPROF_SCHEDULE ask for them\n");
  }
  if (windows.deleted() != 0 && !quiet) {
    text::say("tprof: --keep-windows: {} of windows {} deleted\n",
              diagnose::counted(windows.deleted(), "older file"),
              windows.deleted() == 1 ? "was" : "were");
  }
}

}  // namespace tprof::launch
