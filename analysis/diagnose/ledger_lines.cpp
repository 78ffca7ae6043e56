// Checks that what a process wrote agrees with itself: lines match the ledger, sequence numbers
// have no gap, and ledgers only go forward.
#include <fmt/format.h>

#include <compare>
#include <map>
#include <set>

#include "diagnose/diagnosis.h"
#include "diagnose/last_calls.h"
#include "diagnose/who.h"

namespace tprof::diagnose {
namespace {

using read::End;
using read::Process;

// True for a process whose lines are all there, whose ledger was made after the last of them and
// had a row for each kind of call.
bool comparable(const Process& p) {
  if (p.end != End::closed && p.end != End::recovered) return false;
  return p.footer && p.footer->dropped.empty() && p.ledger &&
         std::ranges::none_of(p.footer->unseen, [](const read::Noted& noted) {
           return noted.kind == note_name(Note::ledger_full);
         });
}

std::map<CallKey, CallSums> sums_of_ledger(const Process& p) {
  std::map<CallKey, CallSums> sums;
  for (const read::Row& row : read::rows_of(p)) {
    if (row.mode == Mode::replayed || !read::wants_lines(p, row.bucket)) continue;
    const read::Amounts& a = row.amounts;
    if (a.calls == 0 && a.unfinished == 0) continue;
    CallSums& s = sums[{row.bucket, row.name, row.dtype, row.comm, row.mode}];
    s.calls += a.calls;
    s.bytes += a.bytes;
    s.unfinished += a.unfinished;
  }
  return sums;
}

std::string id_of(const Process& p, std::int64_t comm) {
  const auto found = p.comms.find(comm);
  return found == p.comms.end() ? fmt::format("number {}", comm) : found->second.id.str();
}

// Reports communicators with a missing or repeated sequence number, and returns them. Skips those
// on which a call was refused, since it may have taken its number with it.
std::set<std::int64_t> add_gaps(const Process& p, const Case& c, Findings& found) {
  const auto& lines = *c.lines.of<ReturnedCalls>(&p);
  const auto& refused = c.lines.of<Operations>(&p)->refused;
  std::set<std::int64_t> comms;
  for (const auto& [comm, numbers] : lines.numbers) {
    if (refused.contains(comm) || numbers.left_out()) continue;
    std::uint64_t known = 0;
    for (const auto& [begin, end] : numbers.parts()) known += end - begin;
    const std::uint64_t missing = numbers.end() - known;
    if (missing == 0 && numbers.twice() == 0) continue;
    comms.insert(comm);
    const auto first = missing != 0 ? std::optional(numbers.covered_until(0)) : std::nullopt;
    Finding& f = add(found, Kind::seq_gap, {&p},
                     {{"communicator", id_of(p, comm)},
                      {"collectives", first ? missing : numbers.twice()},
                      {"gap", first.has_value()},
                      {"first", first}});
    f.communicator = id_of(p, comm);
    f.seq = first;
  }
  return comms;
}

Fact told(const CallSums& s) {
  return {Say::sums,
          {{"calls", s.calls},
           {"bytes", s.bytes},
           {"unfinished", s.unfinished == 0 ? std::nullopt : std::optional(s.unfinished)}}};
}

void disagreement(const Process& p, const SumsOfLines& lines,
                  const std::set<std::int64_t>& with_gap, Findings& found) {
  auto both = lines.differ;
  // Disagreements that a gap explains have been reported already.
  std::erase_if(both, [&](const auto& entry) {
    return entry.first.comm && with_gap.contains(*entry.first.comm);
  });
  if (both.empty()) return;
  const CallKey& first = both.begin()->first;
  Finding& f = add(found, Kind::ledger_lines, {&p});
  f.communicator = first.comm ? id_of(p, *first.comm) : "";
  f.function = first.name;
  for (const auto& [key, sums] : both) {
    f.evidence.push_back({Say::sums_differ,
                          {{"captured", key.mode == Mode::captured},
                           {"function", key.name},
                           {"dtype", key.dtype},
                           {"communicator", key.comm ? id_of(p, *key.comm) : ""},
                           {"ledger", told(sums.first)},
                           {"lines", told(sums.second)}}});
  }
  shorten(f.evidence, 6);
}

void lines_against_ledger(const Case& c, Findings& found) {
  for (const Process* p : c.job.processes) {
    const auto* lines = c.lines.of<SumsOfLines>(p);
    if (lines == nullptr || !comparable(*p)) continue;
    if (!c.said(*p)->decreased.empty()) continue;
    disagreement(*p, *lines, add_gaps(*p, c, found), found);
  }
}

void decreased_ledgers(const Case& c, Findings& found) {
  for (const read::Process* p : c.job.processes) {
    if (p->lane != 0) continue;  // counted once per file
    const run::Said* said = c.said(*p);
    if (said == nullptr || said->decreased.empty()) continue;
    Finding& f = add(found, Kind::ledger_decreased, {p}, {{"file", p->file}});
    for (const auto& [offset, what, now, before] : said->decreased) {
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

}  // namespace

void SumsOfLines::call(const read::Event& e) {
  if (e.failed && !e.unfinished) return;
  CallSums& s =
      sums_[{e.bucket, e.name, e.dtype, e.comm, e.captured ? Mode::captured : Mode::direct}];
  if (e.unfinished) {
    ++s.unfinished;
  } else {
    ++s.calls;
    s.bytes += e.bytes;
  }
}

void SumsOfLines::end() {
  const auto of_lines = sums_.take();
  if (!comparable(rank_)) return;
  for (const auto& [key, sums] : sums_of_ledger(rank_)) differ[key].first = sums;
  for (const auto& [key, sums] : of_lines) differ[key].second = sums;
  std::erase_if(differ, [](const auto& d) { return d.second.first == d.second.second; });
}

extern const Diagnosis kLedgerLines{kCheck, lines_against_ledger, true};
extern const Diagnosis kLedgerDecreased{kCheck, decreased_ledgers, true};

}  // namespace tprof::diagnose
