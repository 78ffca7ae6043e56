// Checks that a process's file is consistent: lines match the ledger, sequence numbers have no gap,
// and ledgers and clocks only go forward.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "check/calls.h"
#include "run/known.h"

namespace tprof::check {
namespace {

using read::End;
using read::Process;

// True if all lines of the process are there, and its ledger is later than the last of them and has
// a row for each kind of call.
bool comparable(const Process& p) {
  if (p.end != End::closed && p.end != End::recovered) return false;
  return p.footer && p.footer->dropped.empty() && p.ledger &&
         std::ranges::none_of(p.footer->unseen, [](const read::Noted& noted) {
           return noted.kind == note_name(Note::ledger_full);
         });
}

struct CallSums {
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;
  std::uint64_t unfinished = 0;

  bool operator==(const CallSums&) const = default;
};

// A rank's lines and its ledger disagree in these. Nearly every rank has none.
struct Sums {
  // The key that a ledger row and the lines of its calls share.
  using Key = std::tuple<Bucket, text::Kept, text::Kept, std::int64_t, Mode>;

  const Process& rank;
  run::Known<Key, CallSums> of_lines{};
  std::map<Key, std::pair<CallSums, CallSums>> differ{};  // ledger, lines

  static Key key_of(const auto& call, Mode mode) {
    return {call.bucket, call.name, call.dtype, call.comm.value_or(-1), mode};
  }
  void call(const read::Event& e) {
    if (e.failed && !e.unfinished) return;
    CallSums& s = of_lines[key_of(e, e.captured ? Mode::captured : Mode::direct)];
    s.unfinished += e.unfinished ? 1 : 0;
    s.calls += e.unfinished ? 0 : 1;
    s.bytes += e.unfinished ? 0 : e.bytes;
  }
  void end() {
    for (const read::Row& row : read::rows_of(rank)) {
      if (row.mode == Mode::replayed || !read::wants_lines(rank, row.bucket)) continue;
      CallSums& s = differ[key_of(row, row.mode)].first;
      s.calls += row.amounts.calls;
      s.bytes += row.amounts.bytes;
      s.unfinished += row.amounts.unfinished;
    }
    for (const auto& [key, sums] : of_lines.take()) differ[key].second = sums;
    std::erase_if(differ, [](const auto& d) { return d.second.first == d.second.second; });
  }
};

std::string id_of(const Process& p, std::int64_t comm) {  // empty: of none
  const auto found = p.comms.find(comm);
  if (found != p.comms.end()) return found->second.id;
  return comm < 0 ? "" : fmt::format("number {}", comm);
}

// Returns the first collective of a communicator without a line.
std::uint64_t first_without(const Process& p, const read::Comm& comm, const Case& c) {
  std::set<std::uint64_t> known;
  each_collective({.process = &p, .comm = &comm}, 0, UINT64_MAX, c,
                  [&](const read::Event& e) { known.insert(known.end(), e.seq); });
  std::uint64_t first = 0;
  for (const std::uint64_t seq : known) first += seq == first ? 1 : 0;
  return first;
}

// Reports communicators with a missing or repeated sequence number, and returns them. Skips those
// on which a call was refused, since the refused call may have used a number.
std::set<std::int64_t> add_gaps(const Process& p, const Case& c, Findings& found) {
  std::set<std::int64_t> comms;
  for (const auto& [number, seqs] : c.calls(p).comms) {
    const read::Comm* comm = read::comm_of(p, number);
    if (seqs.refused || comm == nullptr || seqs.lines == seqs.end) continue;
    comms.insert(number);
    const bool gap = seqs.lines < seqs.end;
    Finding& f = add(found, Kind::seq_gap, {&p},
                     {{"communicator", comm->id},
                      {"collectives", gap ? seqs.end - seqs.lines : seqs.lines - seqs.end},
                      {"gap", gap}});
    f.communicator = comm->id;
    if (!gap) continue;
    f.seq = first_without(p, *comm, c);
    set(f.text, {"first", f.seq});
  }
  return comms;
}

Fact told(const CallSums& s) {
  return {Say::sums,
          {{"calls", s.calls},
           {"bytes", s.bytes},
           {"unfinished", s.unfinished == 0 ? std::nullopt : std::optional(s.unfinished)}}};
}

void disagreement(Sums& of, const std::set<std::int64_t>& with_gap, Findings& found) {
  // A gap has already been reported.
  std::erase_if(of.differ,
                [&](const auto& entry) { return with_gap.contains(std::get<3>(entry.first)); });
  if (of.differ.empty()) return;
  Finding& f = add(found, Kind::ledger_lines, {&of.rank});
  for (const auto& [key, sums] : of.differ) {
    const auto& [bucket, name, dtype, comm, mode] = key;
    if (f.evidence.empty()) f.communicator = id_of(of.rank, comm);
    if (f.evidence.empty()) f.function = name;
    f.evidence.push_back({Say::sums_differ,
                          {{"captured", mode == Mode::captured},
                           {"function", name},
                           {"dtype", dtype},
                           {"communicator", id_of(of.rank, comm)},
                           {"ledger", told(sums.first)},
                           {"lines", told(sums.second)}}});
  }
  shorten(f.evidence, 6);
}

void lines_against_ledger(const Case& c, Findings& found) {
  if (c.read == nullptr) return;
  const auto make = [&](const Process& p) {
    const bool compare = comparable(p) && c.has_lines(p) && c.history(p)->decreased.empty();
    return compare ? std::optional(Sums{p}) : std::nullopt;
  };
  const auto sums = c.read->each(make);
  for (const Process* p : c.job.processes) {
    if (Sums* its = sums.of(p)) disagreement(*its, add_gaps(*p, c, found), found);
  }
}

void decreased_ledgers(const Case& c, Findings& found) {
  for (const read::Process* p : c.job.processes) {
    if (p->lane != 0) continue;  // counted once per file
    const run::MetadataHistory* history = c.history(*p);
    if (history == nullptr || history->decreased.empty()) continue;
    Finding& f = add(found, Kind::ledger_decreased, {p}, {{"file", p->file}});
    for (const auto& [offset, what, now, before] : history->decreased) {
      f.evidence.push_back({what.function.empty() ? Say::fewer_collectives : Say::fewer_calls,
                            {{"offset", offset},
                             {"now", now},
                             {"function", what.function},
                             {"dtype", what.dtype},
                             {"comm", what.comm},
                             {"bytes_class", what.bytes_class},
                             {"mode", static_cast<int>(what.mode)},
                             {"before", before}}});
    }
  }
}

// Finds hosts whose wall clock was set while the job ran.
void clock_steps(const Case& c, Findings& found) {
  struct Host {
    Processes processes;
    run::ClockStep step;
  };
  std::map<std::string, Host> hosts;  // by boot and host, since a host has one clock
  for (const read::Process* p : c.job.processes) {
    const run::MetadataHistory* history = c.history(*p);
    if (history == nullptr || history->clock_step.size_ns == 0) continue;
    Host& host = hosts[p->header.boot_id + p->header.host];
    host.processes.push_back(p);
    host.step.keep_larger(history->clock_step);
  }
  for (const auto& [boot, host] : hosts) {
    const auto& [processes, step] = host;
    const bool back = step.size_ns < 0;
    const auto size = static_cast<std::int64_t>(std::min(std::abs(step.size_ns), 9e18));
    Finding& f = add(found, Kind::clock_step, processes,
                     {{"host", processes[0]->header.host},
                      {"back", back},
                      {"by", Ns{size}},
                      {"from", Time{step.after_ns}},
                      {"to", Time{step.before_ns}}});
    f.severity = back ? Severity::warning : Severity::note;
    const auto [from, to] = std::minmax(step.after_ns, step.before_ns);
    f.time = TimeRange{from, to};
  }
}

}  // namespace

extern const Diagnosis kLedgerLines{kCheck, lines_against_ledger};
extern const Diagnosis kLedgerDecreased{kCheck, decreased_ledgers};
extern const Diagnosis kClockStep{kCheck, clock_steps};

}  // namespace tprof::check
