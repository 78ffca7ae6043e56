#include "read/window_files.h"

#include <algorithm>
#include <fstream>
#include <map>

#include "interpose/format/ledger.h"
#include "interpose/format/line_kinds.h"
#include "interpose/format/settings.h"
#include "interpose/write/window_lines.h"
#include "read/error.h"
#include "read/events.h"
#include "read/json.h"
#include "read/metadata.h"

namespace tprof::read {
namespace fs = std::filesystem;

namespace {

constexpr std::string_view kFile = ",\"file\":\"";
constexpr std::string_view kEnd = ".json";

// Removes `from` and the number after it from the end of the name. False if the name does not end
// like that.
bool take_number(std::string_view& name, std::string_view from) {
  const std::size_t at = name.rfind(from);
  if (at == std::string_view::npos || at + from.size() == name.size()) return false;
  const std::string_view number = name.substr(at + from.size());
  if (number.find_first_not_of("0123456789") != std::string_view::npos) return false;
  name = name.substr(0, at);
  return true;
}

// The name is not enough: the file's own header has to belong to this process.
bool is_of(const Source& source, std::int64_t base_time_ns) {
  const std::optional<Header> header = beginning_of(source.file).header;
  return header && !header->window_of.empty() && header->base_time_ns == base_time_ns;
}

// Calls f(window, line) for each window that has a file.
template <typename F>
void each_named_window(const Source& rank_file, F&& f) {
  const Source lines{rank_file.file, rank_file.cut, rank_file.rest};  // without windows' files
  BlockReader reader(lines);
  for (Block block; reader.next(block);) {
    each_line(block, [&](const Line& line) {
      if (const auto window = named_window(line.text)) f(*window, line.text);
    });
  }
}

}  // namespace

bool has_window_files(const Header& header) {
  return header.window_of.empty() && is_on(header.config.get(info(Setting::window_files).name));
}

std::optional<NamedWindow> named_window(std::string_view line) {
  if (!is_line(line, LineKind::window) || line.find(kFile) == line.npos) return std::nullopt;
  line = line.substr(0, line.rfind('}') + 1);  // without the comma
  simdjson::dom::parser parser;
  NamedWindow window;
  try {
    const auto args = Fields(object_in(parser, line)).get<Fields>("args");
    args.need("file", window.file);
    args.may("lines", window.lines);
  } catch (const Malformed&) {
    return std::nullopt;
  }
  if (stem_of_rank_file(window.file).empty() || window.file.find('/') != std::string::npos) {
    return std::nullopt;
  }
  constexpr std::string_view kLines = ",\"lines\":";
  const std::size_t begin = line.find(kFile);
  std::size_t end = line.find('"', begin + kFile.size()) + 1;
  if (line.substr(end).starts_with(kLines)) {
    end = line.find_first_not_of("0123456789", end + kLines.size());
  }
  window.said = line.substr(begin, end - begin);
  return window;
}

std::optional<Source> window_source(const Source& rank_file, const std::string& name) {
  const fs::path whole = rank_file.file.parent_path() / name;
  const auto left = rank_file.unfinished.find(name);
  const bool unwritten = left != rank_file.unfinished.end();
  if (unwritten && left->second.cut == 0) return Source{whole, 0, left->second.rest};
  std::error_code error;
  for (const std::string_view end :
       {std::string_view(), kUnfinishedFile, std::string_view(".gz")}) {
    Source source{whole.string() + std::string(end), Source{}.cut, {}};
    if (!fs::is_regular_file(source.file, error) || !is_of(source, *rank_file.windows_of)) continue;
    if (unwritten) {
      source.cut = left->second.cut;
      source.rest = left->second.rest;
    }
    return source;
  }
  return std::nullopt;
}

// Overwrites the other lines with line breaks, so that offsets stay the same.
void leave_events(Block& block) {
  std::string& text = block.text;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    const bool group = is_line(line, LineKind::group);
    const bool other = line.starts_with("{\"name\":\"process_") ||
                       is_line(line, LineKind::thread_name) || !line.starts_with('{');
    if (!group && (other || is_metadata(line)))
      std::fill_n(text.begin() + static_cast<std::ptrdiff_t>(begin), end - begin, '\n');
    begin = end + 1;
  }
}

void count_missing_windows(const Source& rank_file, Process& process) {
  std::uint64_t lines = 0;
  each_named_window(rank_file, [&](const NamedWindow& window, std::string_view) {
    if (window_source(rank_file, window.file)) return;
    ++process.windows_missing;
    lines = saturated_sum(lines, window.lines);
  });
  if (process.windows_missing != 0 && process.footer) {
    process.footer->dropped[std::string(kNotHere)] += lines;
  }
}

void count_lines_of_window(Trace& trace) {
  std::map<RowKey, Amounts> rows;
  std::map<std::int64_t, ThreadKind> threads;
  std::map<std::int64_t, std::uint64_t> collectives;  // by communicator
  Ledger ledger;
  const auto count = [&](const Process&, const Event& e) {
    const auto thread = threads.find(e.thread);
    Amounts& a = rows[{.bucket = e.bucket,
                       .name = e.name,
                       .dtype = e.dtype,
                       .comm = e.comm,
                       .device = e.device,
                       .bytes_class = tprof::bytes_class(e.bytes),
                       .mode = e.captured ? Mode::captured : Mode::direct,
                       .thread = thread == threads.end() ? ThreadKind::other : thread->second}];
    ledger.ts_ns = std::max(ledger.ts_ns, e.ts_ns + e.dur_ns);
    if (e.unfinished || e.failed) return void(e.unfinished ? ++a.unfinished : ++a.failed);
    if (e.collective()) ++collectives[*e.comm];
    a += amounts_of(e);
  };
  read_lines(trace, {.event = count, .thread = [&](const Process&, const ThreadName& t) {
                       threads[t.thread] = thread_kind(t.name);
                     }});
  for (const auto& [key, amounts] : rows) ledger.rows.push_back({key, amounts});
  for (const auto& [comm, n] : collectives) ledger.collectives.push_back({comm, n, {}, {}});
  Process& process = trace.processes.front();
  process.ledger = std::move(ledger);
  process.footer.emplace();
  process.footer->complete = !process.cut;
  process.footer->dropped["window"] = 0;  // its file does not tell how many
  process.end = End::closed;
}

std::string stem_of_rank_file(std::string_view name) {
  if (!name.ends_with(kEnd)) return {};
  name.remove_suffix(kEnd.size());
  take_number(name, ".r");
  const bool window = take_number(name, ".step-") || take_number(name, ".window-");
  return window ? std::string(name) : std::string();
}

void name_window_files(const Source& rank_file) {
  if (!rank_file.windows_of) return;
  each_named_window(rank_file, [&](const NamedWindow& window, std::string_view line) {
    const fs::path whole = rank_file.file.parent_path() / window.file;
    const fs::path part = whole.string() + std::string(kUnfinishedFile);
    std::error_code error;
    if (fs::exists(whole, error) || !fs::exists(part, error)) return;
    if (!is_of({part, Source{}.cut, {}}, *rank_file.windows_of)) return;
    std::fstream file(part, std::ios::in | std::ios::out | std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    if (!text.ends_with("\n]\n")) {
      const std::size_t lines = text.rfind('\n') + 1;
      std::string end(line);
      const std::string_view said = window.said;
      end.erase(static_cast<std::size_t>(said.data() - line.data()), said.size()) += "\n]\n";
      file.clear();
      file.seekp(static_cast<std::streamoff>(lines));
      file << end;
      file.close();
      if (!file) throw BadInput(part, "cannot write its end");
      fs::resize_file(part, lines + end.size(), error);
    }
    fs::rename(part, whole, error);
    if (error) throw BadInput(part, "cannot be renamed: " + error.message());
  });
}

}  // namespace tprof::read
