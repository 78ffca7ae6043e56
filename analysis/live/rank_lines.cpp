#include "live/rank_lines.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <fstream>

#include "diagnose/calls.h"
#include "diagnose/names.h"
#include "interpose/format/line_kinds.h"
#include "read/error.h"
#include "read/events.h"
#include "read/json.h"
#include "read/ring_file.h"
#include "read/told_lines.h"
#include "report/words.h"
#include "text/text.h"

namespace tprof::live {
namespace {

using read::Line;
using read::Process;

template <typename F>
void each_line_of(const std::string& lines, F&& f) {
  read::Block block;
  block.text.reserve(lines.size() + simdjson::SIMDJSON_PADDING);
  block.text = lines;
  read::each_line(block, f);
}

// Returns the rank of a process that was told none, by its largest communicator so far.
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

// Replaces the line's own pid: within a string these quotes would be escaped.
void add_with_pid(std::string_view line, std::int64_t pid, std::string& out) {
  constexpr std::string_view kKey = ",\"pid\":";
  const std::size_t at = std::min(line.find(kKey), line.size());
  const std::size_t number = std::min(at + kKey.size(), line.size());
  const std::size_t end = std::min(line.find_first_not_of("-0123456789", number), line.size());
  out.append(line.substr(0, number));
  if (number != line.size()) out += std::to_string(pid);
  out.append(line.substr(end)).append("\n");
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

// Returns how many bytes of the file stay as they are. Lines that the process has written but
// not committed are taken back if it is killed now. They are then written once more, perhaps in
// another order.
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
  each_line_of(lines, [&](const Line& line) {
    auto& rank = process_->header.rank;
    if (const auto told = identity_in(line)) rank = told;
    add_with_pid(line.text, rank.value_or(process_->line_pid), out);
  });
}

void RankLines::add_table(const std::string& lines, std::string& out) const {
  const Process& p = *process_;
  const auto row = [&](std::int64_t ts_ns, const std::string& what) {
    out += text::printable(fmt::format("{}  {}: {}", diagnose::utc(p.header.base_time_ns + ts_ns),
                                       diagnose::name_of_rank(p), what)) +
           '\n';
  };
  read::Trace part{{file_.path(), 0, lines}, {p}, false};
  part.processes[0].offset = 0;
  const auto call = [&](const Process&, const read::Event& e) {
    std::string what = report::sentence(diagnose::fact_of(e));
    if (e.collective()) what += fmt::format(", collective {} of communicator {}", e.seq, *e.comm);
    row(e.ts_ns, what + (e.unfinished ? ", which has not returned"
                                      : ", took " + diagnose::duration(e.dur_ns)));
  };
  read::read_lines(part, {.event = call, .launch = call, .metadata = [&](const Line& line) {
                            if (!is_line(line.text, LineKind::step)) return;
                            const auto step = read::told_in<read::StepLine>(line, file_.path());
                            row(step.to_ns,
                                fmt::format("step {} ended, took {}", step.step,
                                            diagnose::duration(step.to_ns - step.from_ns)));
                          }});
}

}  // namespace tprof::live
