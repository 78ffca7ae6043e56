#include "live/follow.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <fstream>

#include "check/calls.h"
#include "check/names.h"
#include "interpose/format/line_kinds.h"
#include "read/error.h"
#include "read/events.h"
#include "read/folder.h"
#include "read/json.h"
#include "read/ring_file.h"
#include "read/told_lines.h"
#include "report/words.h"
#include "text/print.h"
#include "text/text.h"

namespace tprof::live {

FollowedFile::FollowedFile(std::filesystem::path path, std::uint64_t from)
    : path_(std::move(path)), at_(from == 0 ? 0 : from - 1), within_line_(from != 0) {}

bool FollowedFile::has_grown() const {
  std::error_code error;
  const std::uint64_t size = std::filesystem::file_size(path_, error);
  return !error && size > at_;
}

bool FollowedFile::next(std::string& lines, std::uint64_t upto) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 20;
  constexpr std::size_t kLongestLine = std::size_t{64} << 20;
  std::error_code error;
  const std::uint64_t size = std::min(upto, std::filesystem::file_size(path_, error));
  if (error || size <= at_) return false;
  std::ifstream in(path_, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(at_));
  const std::size_t had = carry_.size();
  carry_.resize(had + std::min(size - at_, kMost));
  in.read(carry_.data() + had, static_cast<std::streamsize>(carry_.size() - had));
  const auto got = static_cast<std::size_t>(std::max<std::streamsize>(in.gcount(), 0));
  carry_.resize(had + got);
  at_ += got;
  if (within_line_) {
    const std::size_t end = carry_.find('\n');
    within_line_ = end == std::string::npos;
    carry_.erase(0, within_line_ ? end : end + 1);
  }
  const std::size_t end = carry_.rfind('\n') + 1;
  lines.append(carry_, 0, end);
  carry_.erase(0, end);
  if (carry_.size() > kLongestLine) {
    throw read::BadInput(path_, at_, "expected a line break: not a tprof trace, or damaged");
  }
  return got != 0;
}

namespace {

using read::Line;
using read::Process;

// Returns the rank in a process's largest communicator so far, if it got none from its launcher.
std::optional<std::int64_t> identity_in(const Line& line) {
  if (!is_line(line.text, LineKind::identity)) return std::nullopt;
  simdjson::dom::parser parser;
  const read::Fields top = read::object_in(parser, line.text);
  return top.get<read::Fields>("args").get_or<std::optional<std::int64_t>>("rank");
}

bool is_closed(const std::filesystem::path& file) {
  constexpr std::string_view kEnd = "\n]\n";
  std::ifstream in(file, std::ios::binary);
  in.seekg(-static_cast<std::streamoff>(kEnd.size()), std::ios::end);
  std::string end(kEnd.size(), '\0');
  in.read(end.data(), static_cast<std::streamsize>(end.size()));
  return in && end == kEnd;
}

// Replaces the line's own pid. It can't be within a string, where the quotes would be escaped.
void add_with_pid(std::string_view line, std::int64_t pid, std::string& out) {
  constexpr std::string_view kKey = ",\"pid\":";
  const std::size_t at = std::min(line.find(kKey), line.size());
  const std::size_t number = std::min(at + kKey.size(), line.size());
  const std::size_t end = std::min(line.find_first_not_of("-0123456789", number), line.size());
  out.append(line.substr(0, number));
  if (number != line.size()) out += std::to_string(pid);
  out.append(line.substr(end)).append("\n");
}

// How far before the end to begin reading an existing file. That contains the last step, unless it
// has thousands of calls; then the next step is shown.
constexpr std::uint64_t kLookedBack = std::uint64_t{1} << 20;

std::uint64_t begin_of(const std::filesystem::path& file) {
  std::error_code error;
  const std::uint64_t size = std::filesystem::file_size(file, error);
  return error || size < kLookedBack ? 0 : size - kLookedBack;
}

std::optional<Step> last_step(const std::string& lines) {
  constexpr std::string_view kStart = info_of(LineKind::step).start;
  const std::size_t begin = lines.rfind(kStart);
  if (begin == std::string::npos || (begin != 0 && lines[begin - 1] != '\n')) return std::nullopt;
  std::string_view line = std::string_view(lines).substr(begin);
  line = line.substr(0, line.find('\n'));
  line = line.substr(0, line.rfind('}') + 1);  // without the comma
  try {
    const auto step = read::parsed_line<read::StepLine>({line, 0}, "");
    return Step{step.step, step.to_ns - step.from_ns};
  } catch (const read::BadInput&) {  // tprof check reports it
    return std::nullopt;
  }
}

}  // namespace

bool RankLines::knows_process() {
  if (process_ || other_) return process_.has_value();
  try {
    const read::Trace trace = read::load(file_.path(), read::Merged::leave, read::Wanted::counts);
    other_ = trace.merged || !trace.processes.front().header.window_of.empty();
    if (!other_) process_ = trace.processes.front();
  } catch (const read::NotATrace& e) {
    other_ = !e.cut_short();
  }
  return process_.has_value();
}

// Returns how many bytes of the file are final. If the process is killed now, its uncommitted lines
// are removed and written again, perhaps in another order.
std::uint64_t RankLines::settled() const {
  const read::Header& header = process_->header;
  if (header.ring.empty() || is_closed(file_.path())) return UINT64_MAX;
  try {
    if (const auto ring = read::ring_of(file_.path(), header)) return read::committed_bytes(*ring);
  } catch (const read::BadInput&) {  // of another user, or of another version
  }
  return UINT64_MAX;
}

bool RankLines::next(Format format, std::string& out) {
  std::string lines;
  if (!knows_process() || !file_.has_grown() || !file_.next(lines, settled())) return false;
  try {
    format == Format::jsonl ? add_jsonl(lines, out) : add_table(lines, out);
  } catch (const read::Malformed& e) {
    throw read::BadInput(file_.path(), e.what());
  }
  return true;
}

void RankLines::add_jsonl(const std::string& lines, std::string& out) {
  read::Block block;
  block.text.reserve(lines.size() + simdjson::SIMDJSON_PADDING);
  block.text = lines;
  read::each_line(block, [&](const Line& line) {
    auto& rank = process_->header.rank;
    if (const auto told = identity_in(line)) rank = told;
    add_with_pid(line.text, rank.value_or(process_->line_pid), out);
  });
}

void RankLines::add_table(const std::string& lines, std::string& out) const {
  const Process& p = *process_;
  const auto row = [&](std::int64_t ts_ns, const std::string& what) {
    out += text::printable(fmt::format("{}  {}: {}", check::utc(p.header.base_time_ns + ts_ns),
                                       check::name_of_rank(p), what)) +
           '\n';
  };
  read::Trace part{{file_.path(), 0, lines}, {p}, false};
  part.processes[0].offset = 0;
  const auto call = [&](const Process&, const read::Event& e) {
    std::string what = report::sentence(check::fact_of(e));
    if (e.collective()) what += fmt::format(", collective {} of communicator {}", e.seq, *e.comm);
    row(e.ts_ns,
        what + (e.unfinished ? ", which has not returned" : ", took " + check::duration(e.dur_ns)));
  };
  read::read_lines(
      part, {.event = call, .launch = call, .metadata = [&](const Process&, const Line& line) {
               if (!is_line(line.text, LineKind::step)) return;
               const auto step = read::parsed_line<read::StepLine>(line, file_.path());
               row(step.to_ns, fmt::format("step {} ended, took {}", step.step,
                                           check::duration(step.to_ns - step.from_ns)));
             }});
}

void FolderLines::find_files() {
  for (const read::TraceFile& file : read::files_in(folder_)) {
    if (files_.contains(file.path)) continue;
    if (chosen_) {
      const auto header = read::beginning_of(file.path).header;
      if (!header) continue;  // it may still come
      if (!chosen_(file.path, *header)) {
        files_.emplace(file.path, std::nullopt);
        continue;
      }
    }
    const bool all = from_start_ || !first_;
    std::error_code gone;
    const std::uint64_t from = all ? 0 : std::filesystem::file_size(file.path, gone);
    if (!gone) files_.emplace(file.path, RankLines(file.path, from));
  }
  first_ = false;
}

void FolderLines::look(Format format, const Take& take) {
  find_files();
  for (auto& [path, file] : files_) {
    if (!file) continue;
    try {
      for (std::string lines; file->next(format, lines); lines.clear()) take(*file, lines);
    } catch (const read::BadInput& e) {
      text::say("tprof: {}; left out from here on\n", text::printable(e.what()));
      file.reset();
    }
  }
}

void StepFiles::look(std::vector<Rank>& ranks) {
  for (Rank& rank : ranks) {
    const std::string& path = rank.process->file;
    auto known = files_.find(path);
    if (known == files_.end()) {
      known = files_.emplace(path, Followed{FollowedFile(path, begin_of(path))}).first;
    }
    Followed& followed = known->second;
    for (std::string lines; followed.file.next(lines); lines.clear()) {
      if (auto step = last_step(lines)) followed.last = step;
    }
    rank.step = followed.last;
  }
}

}  // namespace tprof::live
