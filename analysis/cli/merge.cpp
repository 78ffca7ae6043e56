#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <set>

#include "cli/beside.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/progress.h"
#include "cli/time_axis.h"
#include "diagnose/names.h"
#include "export/chrome.h"
#include "read/error.h"
#include "report/report.h"
#include "steps/found.h"
#include "text/text.h"

namespace tprof::cli {

namespace {

// Decides where each process goes: its rank is its pid. Further processes of a rank, and those
// without one, get pids after the last rank.
std::map<const read::Process*, trace_export::Member> placements(
    const job::Job& job, const TimeAxis& axis, const std::vector<const read::Process*>& chosen,
    const std::vector<OtherFile>& others) {
  std::int64_t base = axis.base_ns(chosen);
  for (const OtherFile& other : others) {
    base = std::min(base, axis.zero_ns(*other.process) + other.begin_ns);
  }
  std::int64_t next_pid = std::max(job.world_size.value_or(0), std::int64_t{1});
  if (!job.ranks.empty()) next_pid = std::max(next_pid, job.ranks.back() + 1);
  std::set<std::int64_t> used;
  std::map<const read::Process*, trace_export::Member> members;
  for (const read::Process* p : chosen) {
    const read::Header& h = p->header;
    const bool by_rank = h.rank && used.insert(*h.rank).second;
    const std::int64_t pid = by_rank ? *h.rank : next_pid++;
    const std::string title = p->lanes > 1 ? diagnose::name_of(*p)
                              : by_rank    ? fmt::format("rank {}", *h.rank)
                              : h.rank     ? fmt::format("rank {}, pid {}", *h.rank, h.pid)
                                           : fmt::format("pid {}", h.pid);
    members[p] = {p, axis.placement(*p, pid, base),
                  h.host.empty() ? title : title + " on " + h.host,
                  static_cast<std::int64_t>(members.size())};
  }
  return members;
}

// Returns the step that a moment of a rank is in, and the epoch. The epoch is how often the
// program's step numbers had begun again. If they never do, it is how often the counts had been
// reset.
std::string position(const steps::Found& found, const read::Process& p, std::int64_t ts_ns) {
  const steps::Interval* step = steps::interval_of(found, &p, ts_ns);
  std::optional<std::int64_t> epoch;
  if (found.counted_on && step != nullptr) {
    epoch = step->epoch;
  } else if (!found.counted_on && !p.epoch_ends.empty()) {
    epoch = std::ranges::count_if(p.epoch_ends,
                                  [&](const read::Ledger& end) { return end.ts_ns <= ts_ns; });
  }
  std::string out;
  if (step != nullptr) out = fmt::format(R"("step":{})", step->step);
  if (epoch) out += fmt::format(R"({}"epoch":{})", out.empty() ? "" : ",", *epoch);
  return out;
}

void add_positions(std::map<const read::Process*, trace_export::Member>& members,
                   const steps::Found& found) {
  for (auto& [process, member] : members) {
    if (!member.to) continue;
    member.to->position = [&found, p = process](std::int64_t ts_ns) {
      return position(found, *p, ts_ns);
    };
  }
}

std::int64_t first_index(const trace_export::Part& part) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const trace_export::Member& m : part.members) {
    if (m.to) first = std::min(first, m.sort_index);
  }
  return first;
}

std::vector<trace_export::Part> parts_of(
    const read::Traces& traces,
    const std::map<const read::Process*, trace_export::Member>& members) {
  std::vector<trace_export::Part> parts;
  for (const read::Trace& trace : traces.traces) {
    trace_export::Part part{&trace, {}};
    bool any = false;
    for (const read::Process& p : trace.processes) {
      const auto found = members.find(&p);
      any = any || found != members.end();
      part.members.push_back(found == members.end() ? trace_export::Member{&p, {}, {}, 0}
                                                    : found->second);
    }
    if (any) parts.push_back(std::move(part));
  }
  std::ranges::stable_sort(parts, {}, first_index);
  return parts;
}

// Returns the traces of those processes that are left.
std::vector<trace_export::Beside> placed(
    const std::vector<OtherFile>& others,
    const std::map<const read::Process*, trace_export::Member>& members) {
  std::vector<trace_export::Beside> all;
  for (const OtherFile& other : others) {
    const auto member = members.find(other.process);
    if (member == members.end()) continue;
    // Its times are CLOCK_REALTIME of the host, as is ts 0 of the process, except for its shift.
    const std::int64_t shift_ns = other.clock.shift ? other.clock.shift->ns : 0;
    const std::int64_t zero_ns = other.process->header.base_time_ns - shift_ns;
    trace_export::Placement to = *member->second.to;
    to.shift_ns -= zero_ns;
    to.position = nullptr;
    if (to.drift_ns) {
      to.drift_ns = [drift_ns = to.drift_ns, zero_ns](std::int64_t ns) {
        return drift_ns(ns - zero_ns);
      };
    }
    all.push_back({other.file, std::move(to), other.clock});
  }
  return all;
}

std::vector<trace_export::BadPart> written(const std::vector<trace_export::Part>& parts,
                                           const std::vector<trace_export::Beside>& beside,
                                           const TimeAxis& axis, bool gzip,
                                           trace_export::Output& output) {
  std::uint64_t bytes = 0;
  std::error_code ignored;
  for (const trace_export::Part& part : parts) {
    bytes += std::filesystem::file_size(part.trace->source.file, ignored);
  }
  Progress progress("merging", bytes);
  return trace_export::write_chrome(parts, beside, axis.clocks(), gzip, output,
                                    [&](std::uint64_t done) { progress(done); });
}

// Leaves out files that turned out to be damaged when their lines were read.
void leave_out(const std::vector<trace_export::BadPart>& bad,
               std::vector<const read::Process*>& chosen, std::vector<read::Skipped>& skipped) {
  for (const auto& [part, error] : bad) {
    skipped.push_back({std::string(error.what()) + "; left out", true});
    for (const trace_export::Member& m : part->members) std::erase(chosen, m.process);
  }
}

}  // namespace

int merge(const Options& o) {
  trace_export::remove_unfinished_on_signals();
  std::vector<read::TraceFile> files = read::trace_files(o.paths);
  std::error_code ignored;
  std::erase_if(files, [&](const read::TraceFile& file) {
    return !file.named && std::filesystem::equivalent(file.path, o.output, ignored);
  });
  if (files.empty()) throw read::BadInput(o.paths[0], "no rank files but the output itself");
  read::Traces traces = load(files);
  const job::Job job = one_job(traces, o.choice);
  std::vector<const read::Process*> chosen = job.processes;
  if (!o.ranks.empty()) {
    // A process that holds several ranks comes as a whole: its header and its ledger are those of
    // all its ranks.
    std::set<const read::Process*> listed;
    for (const read::Process* p : processes_of(job, o.ranks)) listed.insert(p - p->lane);
    std::erase_if(chosen, [&](const read::Process* p) { return !listed.contains(p - p->lane); });
  }
  const TimeAxis axis(job, traces, o.clock);
  const std::vector<OtherFile> others = other_files(o.with, chosen, traces);
  const bool gzip = o.output.extension() == ".gz";
  steps::Found found;
  if (o.positions) found = steps::find(job, traces);
  std::uint64_t size = 0;
  for (;;) {
    auto members = placements(job, axis, chosen, others);
    if (o.positions) add_positions(members, found);
    const auto parts = parts_of(traces, members);
    trace_export::Output output(o.output, gzip);
    const auto bad = written(parts, placed(others, members), axis, gzip, output);
    if (bad.empty()) {
      output.close();
      size = output.size();
      break;
    }
    if (bad.size() == parts.size()) throw bad[0].error;
    leave_out(bad, chosen, traces.skipped);
  }

  say_findings(job, traces);
  if (const std::string clocks = axis.sentence(); !clocks.empty()) {
    fmt::print(stderr, "tprof: note: {}\n", clocks);
  }
  for (const std::string& note : notes(others)) fmt::print(stderr, "tprof: note: {}\n", note);
  fmt::print(
      stderr, "{}: {}{}, {}; open it in https://ui.perfetto.dev\n",
      o.output == "-" ? "standard output" : text::printable(o.output.string()),
      report::how_many(chosen),
      others.empty() ? "" : " and " + diagnose::counted(others.size(), "trace") + " of others",
      text::bytes(size));
  return std::ranges::any_of(traces.skipped, &read::Skipped::unreadable) ? kFinding : kOk;
}

}  // namespace tprof::cli
