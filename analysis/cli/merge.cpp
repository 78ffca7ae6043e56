#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "cli/commands.h"
#include "cli/input.h"
#include "cli/progress.h"
#include "diagnose/names.h"
#include "export/merge_filter.h"
#include "export/merge_plan.h"
#include "export/timeline.h"
#include "interpose/format/settings.h"
#include "read/error.h"
#include "read/folder.h"
#include "report/report.h"
#include "steps/found.h"
#include "text/print.h"
#include "text/text.h"

namespace tprof::cli {

namespace {

// ui.perfetto.dev opens no more text, as its memory is a browser's; a plain file that is larger is
// no longer easily handed around.
constexpr std::uint64_t kMostText = std::uint64_t{2} << 30;
constexpr std::uint64_t kMostPlain = std::uint64_t{1} << 30;

std::uint64_t most_bytes(const Options& o, bool gzip) {
  if (o.max_size.empty()) return gzip ? kMostText : kMostPlain;
  std::uint64_t most = 0;
  if (parse_bytes(o.max_size, most) && most != 0) return most;
  throw read::BadInput(
      fmt::format("--max-size: expected a size such as 500M or 4G, found '{}'", o.max_size));
}

// How much larger the lines become at most, by names, arrows and lanes: measured with device times.
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
  throw read::BadInput(fmt::format(
      "about {} of lines, by the sizes of the rank files, and {} is the most{}: {}{}--max-size or "
      "--force writes it all the same",
      text::bytes(bytes), text::bytes(most),
      gzip ? " that ui.perfetto.dev opens, compressed or not" : "",
      less.empty() ? "" : "merge less with " + less + "; ",
      gzip ? "" : "-o FILE.gz may be larger; "));
}

std::vector<trace_export::BadPart> written(const trace_export::Merged& merged,
                                           const trace_export::Timeline& timeline, bool gzip,
                                           trace_export::Output& output) {
  std::uint64_t bytes = 0;
  std::error_code ignored;
  for (const trace_export::Part& part : merged.parts) {
    bytes += std::filesystem::file_size(part.trace->source.file, ignored);
  }
  Progress progress("merging", bytes, Of::bytes);
  return trace_export::write_chrome(merged, timeline, gzip, output,
                                    [&](std::uint64_t done) { progress(done); });
}

// Leaves out files that turned out to be damaged when their lines were read.
void leave_out(const std::vector<trace_export::BadPart>& bad,
               std::vector<const read::Process*>& chosen, std::vector<read::Trace>& nodes,
               std::vector<read::Skipped>& skipped) {
  std::set<std::filesystem::path> damaged;
  for (const auto& [part, error] : bad) {
    skipped.push_back({std::string(error.what()) + "; left out", true});
    for (const trace_export::Member& m : part->members) std::erase(chosen, m.process);
    damaged.insert(part->trace->source.file);
  }
  std::erase_if(nodes, [&](const read::Trace& node) { return damaged.contains(node.source.file); });
}

}  // namespace

int merge(const Options& o) {
  const filter::Filter only = filter::parsed(o.only);
  const bool gzip = o.output.extension() == ".gz";
  const std::uint64_t most = most_bytes(o, gzip);
  trace_export::remove_unfinished_on_signals();
  std::vector<read::TraceFile> files = read::trace_files(o.paths);
  std::error_code ignored;
  std::erase_if(files, [&](const read::TraceFile& file) {
    return !file.named && std::filesystem::equivalent(file.path, o.output, ignored);
  });
  if (files.empty()) throw read::BadInput(o.paths[0], "no rank files but the output itself");
  read::Traces traces = load(files);
  const job::Job job = job::one_job(traces, o.choice);
  const run::Lines lines = lines_of(job, traces);
  // The clocks are found by all ranks, whichever are written.
  const trace_export::TimeAxis axis(lines, o.clock);
  // A process that holds several ranks comes as a whole: its header and its ledger are those of all
  // its ranks.
  const filter::Selection asked(lines, only,
                                {.counts = false,
                                 .device_times = true,
                                 .ranks = filter::Comes::with_lanes,
                                 .left_out = true});
  std::vector<const read::Process*> chosen = asked.job().processes;
  const std::vector<trace_export::OtherFile> others =
      trace_export::other_files(o.with, chosen, traces, traces.skipped);
  std::vector<read::Trace> nodes = read::node_files_beside(traces, traces.skipped);
  filter::Words told = only.words;
  if (!told.comms.empty()) told.comms = "some";
  std::uint64_t size = 0;
  bool arrows = true;
  for (;;) {
    const std::uint64_t bytes = trace_export::estimated_bytes(traces, chosen, asked);
    if (!o.force) require_size(bytes, asked, most, gzip);
    arrows = o.force || fits_with_arrows(bytes, most);
    trace_export::Timeline timeline(chosen, asked, arrows);
    auto members = trace_export::placements(job, axis, chosen, others);
    timeline.place(members);
    for (auto& [process, member] : members) {
      if (o.positions) member.positions = &timeline.found();
    }
    trace_export::add_filter(members, asked);
    trace_export::Merged merged{trace_export::parts_of(traces, members),
                                trace_export::placed(others, members), axis.clocks(),
                                told.sentence()};
    const std::size_t of_ranks = merged.parts.size();
    trace_export::add_nodes(nodes, merged.parts);
    trace_export::Output output(o.output, gzip);
    const auto bad = written(merged, timeline, gzip, output);
    if (bad.empty()) {
      output.close();
      size = output.size();
      break;
    }
    const auto of_rank = [](const trace_export::BadPart& b) { return !b.part->of_node; };
    if (static_cast<std::size_t>(std::ranges::count_if(bad, of_rank)) == of_ranks) {
      throw std::ranges::find_if(bad, of_rank)->error;
    }
    leave_out(bad, chosen, nodes, traces.skipped);
  }

  say_findings(job, traces);
  say_filter(asked);
  if (const std::string clocks = axis.sentence(); !clocks.empty()) {
    text::say("note: {}\n", clocks);
  }
  if (!arrows) {
    text::say(
        "note: no arrows between ranks, so that it does not become larger than {}: "
        "merge less, or give --force\n",
        text::bytes(most));
  }
  for (const std::string& note : trace_export::notes(others)) text::say("note: {}\n", note);
  text::say(
      "{}: {}{}, {}; open it in https://ui.perfetto.dev\n",
      o.output == "-" ? "standard output" : text::printable(o.output.string()),
      report::how_many(chosen),
      others.empty() ? "" : " and " + diagnose::counted(others.size(), "trace") + " of others",
      text::bytes(size));
  return std::ranges::any_of(traces.skipped, &read::Skipped::unreadable) ? kFinding : kOk;
}

}  // namespace tprof::cli
