#include "read/folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <atomic>
#include <optional>
#include <set>
#include <tuple>

#include "interpose/format/line_kinds.h"
#include "read/error.h"
#include "read/flight_recorder.h"
#include "read/json.h"
#include "read/lines.h"
#include "read/metadata.h"
#include "read/parallel.h"
#include "read/ring_file.h"
#include "read/window_files.h"
#include "team/archive.h"
#include "text/text.h"

namespace tprof::read {

namespace fs = std::filesystem;

namespace {

// Returns "rank-00003" for "rank-00003.json.gz"; nothing if the name is not that of a trace.
std::string stem_of(const fs::path& file) {
  std::string name = file.filename().string();
  for (const std::string_view ending : kPackedEndings) {
    if (name.ends_with(ending)) name.resize(name.size() - ending.size());
  }
  constexpr std::string_view kEnding = ".json";
  return name.ends_with(kEnding) ? name.substr(0, name.size() - kEnding.size()) : "";
}

// True for node7.node.json, node7.node.r1.json and the same with .gz. These are no rank files.
bool is_node_file(const fs::path& file) {
  std::string name = file.filename().string();
  const auto take = [&](std::string_view end) {
    const bool there = name.ends_with(end);
    if (there) name.resize(name.size() - end.size());
    return there;
  };
  for (const std::string_view ending : kPackedEndings) take(ending);
  if (!take(".json")) return false;
  const std::size_t digits = name.find_last_not_of("0123456789") + 1;
  if (digits != name.size() && name.substr(0, digits).ends_with(".r")) name.resize(digits - 2);
  return take(".node");
}

bool is_called_like_a_trace(const fs::path& path) {
  return !is_node_file(path) && (!stem_of(path).empty() || is_called_like_a_dump(path));
}

bool looks_like_trace(const fs::directory_entry& entry) {
  std::error_code ignored;  // such as links in a cycle; other files still count
  return is_called_like_a_trace(entry.path()) && entry.is_regular_file(ignored);
}

// Says that there are no rank files, and names subfolders that have some: the user may have given
// the folder of all runs.
std::string no_traces(const fs::path& folder) {
  constexpr std::size_t kMostNamed = 8;
  std::vector<std::string> runs;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!entry.is_directory()) continue;
    const bool run = std::ranges::any_of(fs::directory_iterator(entry), looks_like_trace);
    if (run) runs.push_back(entry.path().filename().string());
  }
  if (runs.empty()) return "expected rank files (*.json) in this folder, found none";
  std::ranges::sort(runs);
  const std::size_t more = runs.size() - std::min(runs.size(), kMostNamed);
  runs.resize(runs.size() - more);
  return fmt::format(
      "no rank files here, but in its subfolders {}{}: give one of them, or all those of one run",
      fmt::join(runs, ", "), more == 0 ? "" : fmt::format(" and {} more", more));
}

// A trace, or the reason why there is none.
struct Outcome {
  std::optional<Trace> trace{};
  std::optional<Skipped> skipped{};
  std::optional<std::string> error{};  // fatal unless the file can be skipped and another one read
};

Outcome left_out(const std::string& why, std::string_view behind, bool unreadable, bool fatal) {
  return {.skipped = Skipped{why + std::string(behind), unreadable},
          .error = fatal ? std::optional(why) : std::nullopt};
}

Outcome loaded(const TraceFile& file, Wanted wanted) {
  const std::string name = file.path.string();
  if (const std::string why = why_no_file(file.path); !why.empty()) {
    return left_out(name + ": " + why, "; left out", true, true);
  }
  try {
    Trace trace = load(file.path, file.named ? Merged::read : Merged::leave, wanted);
    if (!trace.merged || file.named) return {.trace = std::move(trace)};
    return left_out(name + ": a merged trace", ", left out", false, false);
  } catch (const NotATrace& e) {
    if (file.named && !e.cut_short()) return {.error = e.what()};
    return left_out(e.what(), ", left out", e.cut_short(), file.named);
  } catch (const BadInput& e) {
    return left_out(e.what(), "; left out", true, true);
  } catch (const std::exception& e) {
    return {.error = e.what()};
  }
}

// Returns 3 for "rank-00003.json.gz".
std::optional<std::int64_t> rank_in_name(const fs::path& file) {
  constexpr std::string_view kBefore = "rank-";
  const std::string name = file.filename().string();
  if (!name.starts_with(kBefore)) return std::nullopt;
  const std::size_t end = name.find_first_not_of("0123456789", kBefore.size());
  return text::number<std::int64_t>(
      std::string_view(name).substr(kBefore.size(), end - kBefore.size()));
}

Outcome load_one(const TraceFile& file, Wanted wanted) {
  Outcome outcome = loaded(file, wanted);
  if (outcome.skipped) outcome.skipped->rank = rank_in_name(file.path);
  return outcome;
}

// Loads files `first`, `first + step`, ...
std::vector<Outcome> load_some(const std::vector<TraceFile>& files, std::size_t first,
                               std::size_t step, Wanted wanted,
                               const std::function<void(std::size_t)>& progress) {
  std::vector<Outcome> outcomes((files.size() + step - 1 - first) / step);
  std::atomic<std::size_t> done{0};
  in_parallel(outcomes.size(), [&](std::size_t i) {
    outcomes[i] = load_one(files[first + i * step], wanted);
    progress(std::min(files.size(), ++done * step));
  });
  return outcomes;
}

// Drops windows' files whose rank file was given too, since that trace already has their lines.
void leave_out_windows(std::vector<Outcome>& outcomes) {
  std::set<std::tuple<std::string, std::int64_t, std::int64_t>> whole;
  const auto id = [](const Outcome& o) {
    const Header& h = o.trace->processes.front().header;
    return std::tuple(h.boot_id, h.pid, h.base_time_ns);
  };
  const auto is_window = [](const Outcome& o) {
    return !o.trace->processes.front().header.window_of.empty();
  };
  for (const Outcome& o : outcomes) {
    if (o.trace && !o.trace->merged && !is_window(o)) whole.insert(id(o));
  }
  for (Outcome& o : outcomes) {
    if (o.trace && !o.trace->merged && is_window(o) && whole.contains(id(o))) o.trace.reset();
  }
}

// Returns nullopt if the file was cut before it said what it is.
std::optional<Trace> node_file(const fs::path& file) {
  constexpr std::size_t kBeginning = 16U << 10;
  Trace trace{{file, Source{}.cut, {}}, {}, false};
  BlockReader reader(trace.source, kBeginning);
  Block block;
  if (!reader.next(block)) return std::nullopt;
  each_line(block, [&](const Line& line) {
    if (!trace.processes.empty() || is_line(line.text, LineKind::process_name)) return;
    try {
      if (!is_line(line.text, LineKind::node)) throw Malformed("expected a tprof_node line");
      simdjson::dom::parser parser;
      const Fields top = object_in(parser, line.text, true);
      Process& p = trace.processes.emplace_back();
      p.file = file.string();
      top.need("pid", p.line_pid);
      p.header.pid = p.line_pid;
      fill_origin(top.get<Fields>("args"), p.header);
    } catch (const Malformed& e) {
      throw BadInput(file, line.offset, e.what());
    }
  });
  return trace.processes.empty() ? std::nullopt : std::optional(std::move(trace));
}

}  // namespace

// An anonymous pipe (/dev/stdin, a shell's <(…)) has a writer, and no real path.
std::string why_no_file(const fs::path& path) {
  std::error_code error;
  switch (fs::status(path, error).type()) {
    case fs::file_type::directory:
      return "a folder, not a file";
    case fs::file_type::socket:
      return "a socket, not a file";
    case fs::file_type::not_found:
      return fs::is_symlink(fs::symlink_status(path, error)) ? "a broken link" : "";
    case fs::file_type::none:
    case fs::file_type::unknown:
      return error ? error.message() : "";
    case fs::file_type::fifo:
      return fs::canonical(path, error).empty() ? "" : "a pipe, not a file";
    default:
      return "";
  }
}

std::vector<TraceFile> files_in(const fs::path& folder) {
  std::vector<TraceFile> files;
  std::error_code none;
  if (fs::exists(folder, none)) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (looks_like_trace(entry)) files.push_back({entry.path(), false});
    }
  }
  // Windows' files are read with their rank file. Without one they are separate traces.
  std::set<std::string> stems;
  for (const TraceFile& file : files) stems.insert(stem_of(file.path));
  stems.erase("");
  std::erase_if(files, [&](const TraceFile& file) {
    return stems.contains(stem_of_rank_file(stem_of(file.path) + ".json"));
  });
  // A process that could not write its rank file yet is read from its ring file alone.
  for (const LeftRing& left : rings_of(folder)) {
    if (!left.alone || !left.is_of(folder)) continue;
    const auto same_name = std::ranges::find_if(files, [&](const TraceFile& file) {
      return file.path.filename() == left.rank_file.filename();
    });
    if (same_name != files.end()) {
      if (fs::file_size(same_name->path, none) < left.header_bytes) {
        files.erase(same_name);
      } else if (const auto ring = RingFile::open(left.ring); !ring || !ring->is_alone()) {
        continue;  // the rank file was written meanwhile, or is another process's
      }
    }
    files.push_back({left.ring, false});
  }
  std::ranges::sort(files, {}, &TraceFile::path);
  return files;
}

std::vector<TraceFile> trace_files(const std::vector<fs::path>& paths) {
  std::vector<TraceFile> files;
  std::error_code error;
  for (const fs::path& path : paths) {
    const auto type = fs::symlink_status(path, error).type();
    const bool missing = type == fs::file_type::not_found;
    if (!fs::is_directory(path, error) && !(missing && !files_in(path).empty())) {
      if (missing) throw BadInput(path, "no such file or folder");
      if (type == fs::file_type::none) throw BadInput(path, error.message());
      if (!is_node_file(path)) files.push_back({path, true});  // it is read with its rank files
      continue;
    }
    const std::vector<TraceFile> found = files_in(path);
    if (found.empty()) throw BadInput(path, no_traces(path));
    files.insert(files.end(), found.begin(), found.end());
    for (const auto& entry : fs::directory_iterator(path, error)) {
      if (is_called_like_a_trace(entry.path()) && !why_no_file(entry.path()).empty()) {
        files.push_back({entry.path(), false});
      }
    }
  }
  if (files.empty() && !paths.empty()) {
    throw BadInput(paths[0], "lanes of a node: give the rank files beside it");
  }
  return files;
}

Traces load_all(const std::vector<TraceFile>& files,
                const std::function<void(std::size_t)>& progress, Wanted wanted,
                const team::Shared& team) {
  const std::size_t processes = team ? team->size() : 1;
  for (std::size_t p = 1; p < processes; ++p) {
    team::ask(*team, p, team::Ask::files, team::packed(files, wanted));
  }
  std::vector<Outcome> outcomes(files.size());
  const auto take = [&](std::size_t by, std::vector<Outcome> its) {
    for (std::size_t i = 0; i < its.size(); ++i) {
      if (its[i].trace) its[i].trace->loaded_by = by;
      outcomes[by + i * processes] = std::move(its[i]);
    }
  };
  take(0, load_some(files, 0, processes, wanted, progress));
  for (std::size_t p = 1; p < processes; ++p) {
    std::vector<Outcome> its;
    team::unpack(team::answer(*team, p), its);
    take(p, std::move(its));
  }
  leave_out_windows(outcomes);
  Traces result;
  result.team = team;
  result.traces.reserve(files.size());
  std::optional<std::string> first_error;
  for (Outcome& outcome : outcomes) {
    if (outcome.error && !outcome.skipped) throw BadInput(*outcome.error);
    if (outcome.trace) result.traces.push_back(std::move(*outcome.trace));
    if (outcome.skipped) result.skipped.push_back(std::move(*outcome.skipped));
    if (!first_error) first_error = outcome.error;
  }
  leave_out_numbers_of_messages(result.traces);
  if (result.traces.empty()) {
    if (first_error) throw BadInput(*first_error);
    const std::string& first = result.skipped[0].reason;
    const std::size_t more = result.skipped.size() - 1;
    throw BadInput("expected rank files, found none: " + first +
                   (more == 0 ? "" : ", and " + std::to_string(more) + " more"));
  }
  return result;
}

std::string load_share(const team::Team& team, std::string_view asked, Traces& to) {
  std::vector<TraceFile> files;
  Wanted wanted{};
  team::unpack(asked, files, wanted);
  std::vector<Outcome> mine = load_some(files, team.rank(), team.size(), wanted, [](auto) {});
  std::string answer = team::packed(mine);
  to.traces.clear();
  for (Outcome& outcome : mine) {
    if (outcome.trace) to.traces.push_back(std::move(*outcome.trace));
  }
  return answer;
}

namespace fs = std::filesystem;

std::vector<Trace> node_files_in(const fs::path& folder, std::vector<Skipped>& skipped) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (is_node_file(entry.path()) && entry.is_regular_file(error)) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  std::vector<Trace> found;
  for (const fs::path& file : files) {
    try {
      if (auto trace = node_file(file)) found.push_back(std::move(*trace));
    } catch (const BadInput& e) {
      skipped.push_back({std::string(e.what()) + "; left out", true});
    }
  }
  return found;
}

std::vector<Trace> node_files_beside(const Traces& traces, std::vector<Skipped>& skipped) {
  std::set<fs::path> folders;
  for (const Trace& trace : traces.traces) {
    const fs::path folder = trace.source.file.parent_path();
    if (!trace.merged) folders.insert(folder.empty() ? fs::path(".") : folder);
  }
  std::vector<Trace> all;
  for (const fs::path& folder : folders) {
    std::ranges::move(node_files_in(folder, skipped), std::back_inserter(all));
  }
  return all;
}

}  // namespace tprof::read
