#include <fmt/format.h>

#include <filesystem>
#include <set>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/input.h"
#include "cli/progress.h"
#include "export/anonymizer.h"
#include "export/output.h"
#include "read/error.h"
#include "read/folder.h"
#include "read/json.h"
#include "text/print.h"
#include "text/text.h"

namespace tprof::cli {

namespace {

// The name of a copy. One that the library would give, such as rank-00003.json, is kept. Any other
// is the user's, or has a host's, which gets a pseudonym.
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
  // A file that was not closed, or was cut in a line, is so in the copy too.
  output.put(text + (closed ? "\n]\n" : trace.processes.back().cut ? ",\n{" : ",\n"));
  output.close();
  return output.size();
}

// Notes which processes still run: a reader of the output can't know that any more.
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

int anonymize(const Options& o) {
  trace_export::remove_unfinished_on_signals();
  read::Traces traces = load(read::trace_files(o.paths));
  const std::vector<read::Trace> nodes = read::node_files_beside(traces, traces.skipped);
  std::uint64_t bytes = 0;
  for (const auto* all : {&std::as_const(traces.traces), &nodes}) {
    for (const read::Trace& t : *all) bytes += fs::file_size(t.source.file);
  }
  if (o.output == "-") {
    throw read::BadInput(o.output, "the copies go to a folder, not to standard output");
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
    text::say("note: {} lines left out: they are not the contract's\n", left_out);
  }
  text::say("{}: {} {}, {}; look at it before you publish it\n", text::printable(o.output.string()),
            used_names.size(), used_names.size() == 1 ? "file" : "files", text::bytes(size));
  return kOk;
}

}  // namespace tprof::cli
