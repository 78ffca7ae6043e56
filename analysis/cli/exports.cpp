#include <fmt/format.h>
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "check/names.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/screen.h"
#include "export/anonymizer.h"
#include "export/formats.h"
#include "export/merged.h"
#include "export/output.h"
#include "export/placement.h"
#include "interpose/format/settings.h"
#include "read/error.h"
#include "read/folder.h"
#include "read/json.h"
#include "report/report.h"
#include "steps/found.h"
#include "text/print.h"
#include "text/text.h"

namespace tprof::cli {

namespace {

// ui.perfetto.dev opens no more text, due to the browser's memory; larger plain files are hard to
// pass around.
constexpr std::uint64_t kMostText = std::uint64_t{2} << 30;
constexpr std::uint64_t kMostPlain = std::uint64_t{1} << 30;

std::uint64_t most_bytes(const Options& o, bool gzip) {
  if (o.max_size.empty()) return gzip ? kMostText : kMostPlain;
  std::uint64_t most = 0;
  if (parse_bytes(o.max_size, most) && most != 0) return most;
  throw read::BadInput(
      fmt::format("--max-size: expected a size such as 500M or 4G, found '{}'", o.max_size));
}

// By how much names, arrows and lanes make the lines larger at most, measured with device times.
constexpr double kGrowth = 2.25;

bool fits_with_arrows(std::uint64_t bytes, std::uint64_t most) {
  return static_cast<double>(bytes) * kGrowth <= static_cast<double>(most);
}

void require_size(std::uint64_t bytes, const filter::Selection& asked, std::uint64_t most,
                  bool gzip) {
  if (bytes <= most) return;
  const std::vector<std::int64_t>& ranks = asked.job().ranks;
  const auto fit = static_cast<std::size_t>(static_cast<double>(ranks.size()) *
                                            static_cast<double>(most) / static_cast<double>(bytes));
  std::string less = ranks.size() < 2 ? "" : "--ranks " + std::to_string(ranks.front());
  if (!less.empty() && fit > 1) less += "-" + std::to_string(ranks[fit - 1]);
  if (!asked.filter().steps) less += less.empty() ? "--steps 10-12" : " or --steps 10-12";
  throw read::BadInput(
      fmt::format("about {} of lines, judging by the rank files, but {} is the limit{}: "
                  "{}{}--max-size or --force writes it anyway",
                  text::bytes(bytes), text::bytes(most),
                  gzip ? " that ui.perfetto.dev opens, compressed or not" : "",
                  less.empty() ? "" : "merge less with " + less + "; ",
                  gzip ? "" : "-o FILE.gz may be larger; "));
}

void require_replaceable(const fs::path& file) {
  if (read::beginning_of(file).merged) return;
  throw read::BadInput(file, "is no merged trace, so it is not replaced: give another name");
}

// Returns null for a format that has a file for each rank.
std::unique_ptr<trace_export::TableWriter> writer_of(const Options& o) {
  using trace_export::TableWriter;
  if ((o.kineto || o.inspector) != !o.output.empty()) {
    throw read::BadInput("-o DIR goes with --kineto and --inspector, which need it");
  }
  if (!o.output.empty()) return nullptr;
  if (!o.sqlite.empty()) return std::make_unique<TableWriter>(o.sqlite, TableWriter::Kind::sqlite);
  if (!o.csv.empty()) return std::make_unique<TableWriter>(o.csv, TableWriter::Kind::csv);
  return std::make_unique<TableWriter>(o.parquet, TableWriter::Kind::parquet);
}

// Writes a file for each rank that has calls timed on the device.
void write_ranks(const Options& o, trace_export::Exported& of) {
  trace_export::NewOutput output(o.output, trace_export::NewOutput::Kind::folder);
  const trace_export::RankFormat format =
      o.kineto ? trace_export::kineto_traces(of) : trace_export::inspector_logs(of);
  std::map<std::optional<std::int64_t>, trace_export::RankFormat::Processes> ranks;
  for (const read::Process* p : of.processes) ranks[p->header.rank].push_back(p);
  const std::size_t without_rank = ranks[std::nullopt].size();
  ranks.erase(std::nullopt);
  of.processes.clear();
  std::vector<std::int64_t> untimed;
  Progress progress("exporting", ranks.size());
  std::size_t done = 0;
  for (const auto& [rank, processes] : ranks) {
    const std::string name = format.file_name(processes);
    trace_export::Output file(output.part() / name, name.ends_with(".gz"));
    if (format.write(processes, file) == 0) {
      untimed.push_back(*rank);
    } else {
      file.close();
      of.processes.insert(of.processes.end(), processes.begin(), processes.end());
    }
    progress(++done);
  }
  if (of.processes.empty()) {
    throw read::BadInput(
        fmt::format("no {} has a time on the device (TPROF_TIMING=events), which {} needs",
                    o.kineto ? "call" : "ungrouped collective",
                    o.kineto ? "HTA and TensorBoard" : "the Inspector's tools"));
  }
  output.publish();
  if (!untimed.empty()) {
    text::say("note: {} without a file: no call has a time on the device\n",
              check::names_of(text::Ranks(untimed)));
  }
  if (without_rank != 0) {
    text::say("note: {} left out: rank unknown\n", check::counted(without_rank, "process"));
  }
  if (o.kineto) {
    text::say(
        "note: computation has no events here: the time between calls and copies is not idle time, "
        "whatever a tool calls it\n");
  }
}

// Returns the name of a copy. The library's own names, such as rank-00003.json, are kept. Other
// names are the user's or contain a host, and get a pseudonym.
std::string name_for(const read::Trace& trace, bool of_node, trace_export::Anonymizer& anonymizer,
                     std::set<std::string>& used) {
  const std::string original = trace.source.file.filename().string();
  const std::string end = original.ends_with(".gz") ? ".json.gz" : ".json";
  const read::Header& header = trace.processes[0].header;
  const std::string stem = of_node        ? anonymizer.host(header.host) + ".node"
                           : trace.merged ? "trace"
                           : header.rank  ? fmt::format("rank-{:05}", *header.rank)
                                          : "process";
  std::string name = stem + end;
  if (!of_node && trace_export::is_rank_file_name(original)) name = original;
  for (int n = 1; !used.insert(name).second; ++n) name = fmt::format("{}.r{}{}", stem, n, end);
  return name;
}

// Returns how many bytes were written.
std::uint64_t write_copy(const read::Trace& trace, bool closed, const fs::path& file,
                         trace_export::Anonymizer& anonymizer, std::uint64_t& left_out,
                         const std::function<void(std::uint64_t)>& progress) {
  trace_export::Output output(file, file.extension() == ".gz");
  std::string text = "[\n";
  bool first = true;
  read::BlockReader reader(trace.source);
  for (read::Block block; reader.next(block);) {
    progress(block.text.size());
    read::each_line(block, [&](const read::Line& line) {
      const std::size_t before = text.size();
      if (!first) text += ",\n";
      try {
        if (anonymizer.edit(line, text)) {
          first = false;
          return;
        }
      } catch (const read::Malformed& e) {
        throw read::BadInput(block.file, line.offset, e.what());
      }
      text.resize(before);
      ++left_out;
    });
    output.put(std::exchange(text, {}));
  }
  // An unclosed or truncated file stays so in the copy.
  output.put(text + (closed ? "\n]\n" : trace.processes.back().cut ? ",\n{" : ",\n"));
  output.close();
  return output.size();
}

// Notes which processes still run: readers of the output can't see that.
void note_running(const read::Trace& trace) {
  for (const read::Process& p : trace.processes) {
    if (p.end != read::End::running || p.forced || p.lane != 0) continue;
    text::say("note: {} of {} is still running: its counts are as of now\n",
              p.header.rank ? fmt::format("rank {}", *p.header.rank)
                            : fmt::format("pid {}", p.header.pid),
              text::printable(trace.source.file.string()));
  }
}

}  // namespace

int merge(const Options& o) {
  const bool gzip = o.output.extension() == ".gz";
  const std::uint64_t most = most_bytes(o, gzip);
  trace_export::remove_unfinished_on_signals();
  std::vector<read::TraceFile> files = read::trace_files(o.paths);
  std::error_code ignored;
  std::erase_if(files, [&](const read::TraceFile& file) {
    return !file.named && std::filesystem::equivalent(file.path, o.output, ignored);
  });
  if (files.empty()) throw read::BadInput(o.paths[0], "no rank files except the output itself");
  Input in(o, files);
  // All ranks determine the clocks, whichever are written.
  const trace_export::TimeAxis axis(in.lines, clock_of(o));
  // A process with several ranks is written as a whole, as its header and ledger cover all its
  // ranks.
  const filter::Selection asked(in.lines, in.only,
                                {.counts = false,
                                 .device_times = true,
                                 .ranks = filter::Comes::with_lanes,
                                 .left_out = true});
  std::vector<const read::Process*> chosen = asked.job().processes;
  std::vector<trace_export::OtherFile> others =
      trace_export::other_files(o.with, chosen, in.lines, in.traces.skipped);
  trace_export::leave_out_unreadable(in.lines, chosen, in.traces.skipped);
  std::erase_if(others, [&](const trace_export::OtherFile& other) {
    return std::ranges::count(chosen, other.process) == 0;
  });
  const std::vector<read::Trace> nodes = read::node_files_beside(in.traces, in.traces.skipped);
  const std::uint64_t bytes = trace_export::estimated_bytes(in.traces, chosen, asked);
  if (!o.force) require_size(bytes, asked, most, gzip);
  const bool arrows = o.force || fits_with_arrows(bytes, most);
  trace_export::Members members = trace_export::placements(asked, in.job, axis, chosen, others);
  const trace_export::Timeline timeline(members, asked, arrows);
  if (o.positions) {
    for (auto& [process, member] : members) member.positions = &timeline.found();
  }
  filter::Words told = in.only.words;
  if (!told.comms.empty()) told.comms = "some";
  const trace_export::Merged merged{trace_export::parts_of(in.traces, nodes, members), others,
                                    members, axis.clocks(), told.sentence("")};
  trace_export::Output output(o.output, gzip, require_replaceable);
  {
    std::uint64_t all = 0;
    for (const trace_export::Part& part : merged.parts) {
      all += fs::file_size(part.trace->source.file, ignored);
    }
    Progress progress("merging", all, Of::bytes);
    trace_export::write_merged(merged, timeline, gzip, output,
                               [&](std::uint64_t done) { progress(done); });
    output.close();
  }

  const int code = say_findings(in.job, in.traces);
  say_filter(asked);
  if (const std::string clocks = axis.sentence(); !clocks.empty()) {
    text::say("note: {}\n", clocks);
  }
  if (!arrows) {
    text::say("note: no arrows between ranks, to keep it below {}: merge less, or give --force\n",
              text::bytes(most));
  }
  for (const std::string& note : trace_export::notes(others)) text::say("note: {}\n", note);
  text::say("{}: {}{}, {}; open it in https://ui.perfetto.dev\n",
            o.output == "-" ? "standard output" : text::printable(o.output.string()),
            report::how_many(chosen),
            others.empty() ? "" : " and " + check::counted(others.size(), "trace") + " of others",
            text::bytes(output.size()));
  return code;
}

int export_traces(const Options& o) {
  trace_export::remove_unfinished_on_signals();
  const auto writer = writer_of(o);
  Input in(o);
  const trace_export::TimeAxis axis(in.lines, clock_of(o));
  const filter::Selection asked(in.lines, in.only, {.counts = writer != nullptr, .steps = true});
  const run::Lines chosen = asked.lines();
  std::vector<const read::Process*> processes = asked.job().processes;
  trace_export::leave_out_unreadable(chosen, processes, in.traces.skipped);
  const steps::Found found = asked.found() ? *asked.found() : steps::find(in.lines);
  trace_export::Exported of{.job = in.job,
                            .lines = chosen,
                            .found = found,
                            .processes = processes,
                            .base_time_ns = axis.base_ns(processes),
                            .clocks = axis.sentence(),
                            .asked = in.only.words.empty() ? nullptr : &asked,
                            .only = in.only.words.sentence()};
  for (const read::Process* p : processes) {
    const auto number = static_cast<std::int64_t>(of.ranks.size());
    of.ranks[p] = {number, axis.placement(*p, number, of.base_time_ns)};
  }
  if (writer) {
    Progress progress("exporting", processes.size());
    trace_export::write_tables(of, *writer, [&](std::size_t done) { progress(done); });
  } else {
    write_ranks(o, of);
  }
  const int code = say_findings(in.job, in.traces);
  say_filter(asked);
  if (!of.clocks.empty()) text::say("note: {}\n", of.clocks);
  const fs::path* named[] = {&o.output, &o.sqlite, &o.csv, &o.parquet};
  const fs::path& to = **std::ranges::find_if(named, [](const fs::path* p) { return !p->empty(); });
  text::say("{}: {}\n", text::printable(to.string()), report::how_many(of.processes));
  return code;
}

int anonymize(const Options& o) {
  trace_export::remove_unfinished_on_signals();
  read::Traces traces = load(read::trace_files(o.paths));
  const std::vector<read::Trace> nodes = read::node_files_beside(traces, traces.skipped);
  std::uint64_t bytes = 0;
  for (const auto* all : {&std::as_const(traces.traces), &nodes}) {
    for (const read::Trace& t : *all) bytes += fs::file_size(t.source.file);
  }
  trace_export::NewOutput folder(o.output, trace_export::NewOutput::Kind::folder);
  trace_export::Anonymizer anonymizer;
  std::set<std::string> used_names;
  std::uint64_t size = 0;
  std::uint64_t left_out = 0;
  {
    Progress progress("anonymizing", bytes, Of::bytes);
    std::uint64_t done = 0;
    const auto write = [&](const read::Trace& trace, bool of_node) {
      const bool closed = of_node || trace.processes.back().footer.has_value();
      size += write_copy(trace, closed,
                         folder.part() / name_for(trace, of_node, anonymizer, used_names),
                         anonymizer, left_out, [&](std::uint64_t n) { progress(done += n); });
    };
    for (const read::Trace& trace : traces.traces) write(trace, false);
    for (const read::Trace& lanes : nodes) write(lanes, true);
  }
  folder.publish();
  for (const read::Skipped& skipped : traces.skipped) {
    text::say("tprof: {}\n", text::printable(skipped.reason));
  }
  for (const read::Trace& trace : traces.traces) note_running(trace);
  if (left_out != 0) {
    text::say("note: {} lines left out: the format does not define them\n", left_out);
  }
  text::say("{}: {} {}, {}; look at it before you publish it\n", text::printable(o.output.string()),
            used_names.size(), used_names.size() == 1 ? "file" : "files", text::bytes(size));
  return kOk;
}

}  // namespace tprof::cli
