#include "diagnose/consistency.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "diagnose/names.h"
#include "text/text.h"

namespace tprof::diagnose {
namespace {

using read::End;
using read::Process;

constexpr std::size_t kShown = 6;

// a - b, or the nearest of which sums are no overflow.
std::int64_t difference(std::int64_t a, std::int64_t b) {
  constexpr std::int64_t kMost = INT64_MAX / 4;
  std::int64_t d = 0;
  if (__builtin_sub_overflow(a, b, &d)) return a < b ? -kMost : kMost;
  return std::clamp(d, -kMost, kMost);
}

// A process whose lines are all there and whose ledger was made after the last of them.
bool comparable(const Process& p) {
  if (p.end != End::closed && p.end != End::recovered) return false;
  return p.footer && p.footer->dropped.empty() && !p.ledgers.empty();
}

std::map<CallKey, CallSums> ledger_of(const Process& p) {
  std::map<CallKey, CallSums> sums;
  for (const auto& [epoch, ledger] : p.ledgers) {
    for (const read::Row& row : ledger.rows) {
      if (row.mode == Mode::replayed || !wants_lines(p, row.bucket)) continue;
      const read::Amounts& a = row.amounts;
      if (a.calls == 0 && a.unfinished == 0) continue;
      CallSums& s = sums[{row.bucket, row.name, row.dtype, row.comm, row.mode}];
      s.calls += a.calls;
      s.bytes += a.bytes;
      s.unfinished += a.unfinished;
    }
  }
  return sums;
}

std::string id_of(const Process& p, std::int64_t comm) {
  const auto found = p.comms.find(comm);
  return found == p.comms.end() ? fmt::format("number {}", comm) : found->second.id;
}

std::string describe(const Process& p, const CallKey& key) {
  return fmt::format("{}{} of {}{}", key.mode == Mode::captured ? "captured " : "", key.name,
                     key.dtype, key.comm ? " on communicator " + id_of(p, *key.comm) : "");
}

// "5, 17-19": the numbers that no line has although later ones have. Nothing where a refused call
// may have taken its number with it.
std::string gaps_in(const Intervals& seqs, std::uint64_t& first, std::uint64_t& missing) {
  std::string list;
  std::uint64_t from = 0;
  std::size_t shown = 0;
  for (const auto& [begin, end] : seqs.parts()) {
    if (begin > from) {
      if (missing == 0) first = from;
      missing += begin - from;
      if (shown++ < kShown) {
        list += fmt::format("{}{}", list.empty() ? "" : ", ", from);
        if (begin > from + 1) list += fmt::format("-{}", begin - 1);
      }
    }
    from = end;
  }
  return list + (shown > kShown ? ", ..." : "");
}

void gaps(const Process& p, const LineFacts& facts, std::set<std::int64_t>& with_gap,
          std::vector<Problem>& found) {
  for (const auto& [comm, seqs] : facts.collectives) {
    if (facts.failed.contains(comm) || seqs.left_out()) continue;
    std::uint64_t first = 0;
    std::uint64_t missing = 0;
    const std::string list = gaps_in(seqs, first, missing);
    if (missing == 0 && seqs.twice() == 0) continue;
    with_gap.insert(comm);
    found.push_back(
        {.kind = "seq_gap",
         .severity = Severity::warning,
         .ranks = ranks_of({&p}),
         .text = fmt::format(
             "{}: communicator {}: {}", name_of(p), id_of(p, comm),
             missing != 0
                 ? fmt::format("{} of its collectives have no line although none was dropped: {}",
                               report::thousands(missing), list)
                 : fmt::format("{} of its collectives have two lines",
                               report::thousands(seqs.twice()))),
         .next = "was the file edited or cut together? The counts come from the ledger and stand",
         .communicator = id_of(p, comm),
         .seq = missing != 0 ? std::optional(first) : std::nullopt});
  }
}

}  // namespace

void lines_against_ledger(const match::Job& job, const Facts& facts, std::vector<Problem>& found) {
  for (const Process* p : job.processes) {
    const auto of_process = facts.find(p);
    if (of_process == facts.end() || !comparable(*p)) continue;
    const LineFacts& lines = of_process->second;
    if (!lines.decreased.empty()) continue;
    std::set<std::int64_t> with_gap;
    gaps(*p, lines, with_gap, found);
    std::map<CallKey, std::pair<CallSums, CallSums>> both;  // ledger, lines
    for (const auto& [key, sums] : ledger_of(*p)) both[key].first = sums;
    for (const auto& [key, sums] : lines.calls) both[key].second = sums;
    std::vector<std::string> evidence;
    std::string function;
    std::string communicator;
    std::size_t left_out = 0;
    for (const auto& [key, sums] : both) {
      const auto& [ledger, line] = sums;
      if (ledger.calls == line.calls && ledger.bytes == line.bytes &&
          ledger.unfinished == line.unfinished) {
        continue;
      }
      // What a gap explains has been said.
      if (key.comm && with_gap.contains(*key.comm)) continue;
      if (evidence.empty()) {
        function = key.name;
        communicator = key.comm ? id_of(*p, *key.comm) : "";
      }
      if (evidence.size() == kShown) {
        ++left_out;
        continue;
      }
      evidence.push_back(fmt::format(
          "{}: the ledger has {} calls, {} bytes{}; the lines {} calls, {} bytes{}",
          describe(*p, key), report::thousands(ledger.calls), report::thousands(ledger.bytes),
          ledger.unfinished == 0 ? "" : fmt::format(", {} unfinished", ledger.unfinished),
          report::thousands(line.calls), report::thousands(line.bytes),
          line.unfinished == 0 ? "" : fmt::format(", {} unfinished", line.unfinished)));
    }
    if (evidence.empty()) continue;
    if (left_out != 0) evidence.push_back(fmt::format("and {} more kinds of calls", left_out));
    found.push_back(
        {.kind = "ledger_lines",
         .severity = Severity::warning,
         .ranks = ranks_of({p}),
         .text = fmt::format("{}: ledger and event lines disagree although no line was dropped",
                             name_of(*p)),
         .next = "was the file edited or cut together? If not, this is a bug in tprof: please "
                 "report it with this file (tprof anonymize takes names out)",
         .communicator = communicator,
         .function = function,
         .evidence = evidence});
  }
}

void ledgers_that_decrease(const match::Job& job, const Facts& facts, std::vector<Problem>& found) {
  for (const Process* p : job.processes) {
    const auto of_process = facts.find(p);
    if (of_process == facts.end() || of_process->second.decreased.empty()) continue;
    if (p->lane != 0) continue;  // the file's
    found.push_back({.kind = "ledger_decreased",
                     .severity = Severity::error,
                     .ranks = ranks_of({p}),
                     .text = fmt::format("{}: a later ledger says less than an earlier one, in {}",
                                         name_of(*p), p->file),
                     .next = "was the file edited or cut together? Its totals are not to be "
                             "trusted",
                     .evidence = of_process->second.decreased});
  }
}

void clock_steps(const match::Job& job, const Facts& facts, std::vector<Problem>& found) {
  struct Step {
    std::vector<const Process*> processes;
    std::int64_t size_ns = 0;  // the largest, with its sign
    std::int64_t after_ns = 0;
    std::int64_t before_ns = 0;
  };
  std::map<std::string, Step> steps;  // a clock is its host's: by boot
  for (const Process* p : job.processes) {
    const auto of_process = facts.find(p);
    if (of_process == facts.end()) continue;
    const std::vector<read::Anchor>& clock = of_process->second.clock;
    bool stepped = false;
    for (std::size_t i = 1; i < clock.size(); ++i) {
      const read::Anchor& a = clock[i - 1];
      const read::Anchor& b = clock[i];
      const std::int64_t passed = difference(b.ts_ns, a.ts_ns);
      const std::int64_t step = difference(difference(b.realtime_ns, a.realtime_ns), passed);
      // NTP slews by 500 ppm at most; reading two clocks takes the bracket, and now and then a
      // millisecond more.
      const std::int64_t allowed = std::max<std::int64_t>(passed, 0) / 2000 +
                                   std::max<std::int64_t>(a.bracket_ns, 0) / 2 +
                                   std::max<std::int64_t>(b.bracket_ns, 0) / 2 + 1'000'000;
      if (passed >= 0 && std::abs(step) <= allowed) continue;
      Step& s = steps[p->header.boot_id + p->header.host];
      if (!stepped) s.processes.push_back(p);
      stepped = true;
      const std::int64_t size = passed < 0 ? passed : step;
      if (std::abs(size) <= std::abs(s.size_ns)) continue;
      s.size_ns = size;
      s.after_ns = a.realtime_ns;
      s.before_ns = b.realtime_ns;
    }
  }
  for (const auto& [boot, s] : steps) {
    const bool back = s.size_ns < 0;
    found.push_back(
        {.kind = "clock_step",
         .severity = back ? Severity::warning : Severity::note,
         .ranks = ranks_of(s.processes),
         .text = fmt::format("the wall clock of {} ({}) was set {} by {} between {} and {}",
                             s.processes[0]->header.host, names_of(s.processes),
                             back ? "back" : "forward",
                             report::duration(static_cast<std::uint64_t>(std::abs(s.size_ns))),
                             utc(s.after_ns), utc(s.before_ns)),
         .next = "times of this host before and after it do not compare with other hosts' times: "
                 "keep the clocks with chrony or ntpd, and set them before the job starts"});
  }
}

}  // namespace tprof::diagnose
