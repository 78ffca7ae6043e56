#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "check/names.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/progress.h"
#include "export/formats.h"
#include "export/merged.h"
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

void require_replaceable(const fs::path& file) {
  if (read::beginning_of(file).merged) return;
  throw read::BadInput(file, "is no merged trace, so it is not replaced: give another name");
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
  if (files.empty()) throw read::BadInput(o.paths[0], "no rank files but the output itself");
  Input in(o, files);
  // The clocks are found by all ranks, whichever are written.
  const trace_export::TimeAxis axis(in.lines, clock_of(o));
  // A process that holds several ranks comes as a whole: its header and its ledger are those of all
  // its ranks.
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
                                    members, axis.clocks(), told.sentence()};
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
    text::say(
        "note: no arrows between ranks, so that it does not become larger than {}: "
        "merge less, or give --force\n",
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

}  // namespace tprof::cli
