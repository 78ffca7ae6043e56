#include "diagnose/check.h"

#include <algorithm>

#include "diagnose/completeness.h"
#include "diagnose/consistency.h"
#include "diagnose/first_difference.h"
#include "diagnose/hang.h"
#include "diagnose/point_to_point.h"
#include "diagnose/problems.h"

namespace tprof::diagnose {
namespace {

// Members that stopped are compared behind the last mark that they share with the others: this many
// groups of them, each of which means reading a file.
constexpr std::size_t kMaxStoppedCompared = 16;

class Disagreements {
 public:
  Disagreements(const Facts& facts, const read::Traces& traces, bool read_lines)
      : facts_(facts), traces_(traces), read_lines_(read_lines) {}

  void of(const Communicator& c, Agreement& agreement, std::vector<Problem>& found) {
    for (Split& split : agreement.splits) {
      if (split.parting == Parting::stopped) {
        stopped(c, split, found);
        continue;
      }
      Problem p = mismatch_of(c, split);
      if (read_lines_) {
        name_operation(p, split, first_difference(split, facts_, traces_));
      } else {
        p.text += "; " + where(split);
      }
      found.push_back(std::move(p));
    }
  }

 private:
  void stopped(const Communicator& c, Split& split, std::vector<Problem>& found) {
    const std::uint64_t both = split.end - 1;  // collectives that both did
    if (!read_lines_ || split.same == both || compared_++ >= kMaxStoppedCompared) return;
    Split common = split;
    common.end = both;
    const FirstDifference d = first_difference(common, facts_, traces_);
    if (!d.found) return;
    split.parting = Parting::differs;
    Problem p = mismatch_of(c, split);
    name_operation(p, common, d);
    found.push_back(std::move(p));
  }

  const Facts& facts_;
  const read::Traces& traces_;
  bool read_lines_;
  std::size_t compared_ = 0;
};

// Where the job was held up is the cause of what ended with it; where ranks did different things,
// that is the cause.
void add_hangs(std::vector<Problem> hangs, std::vector<Problem>& found) {
  if (hangs.empty()) return;
  std::erase_if(found,
                [](const Problem& p) { return p.kind == "not_closed" || p.kind == "unfinished"; });
  for (Problem& hang : hangs) {
    const auto cause = std::ranges::find_if(found, [&](const Problem& p) {
      return p.kind == kMismatch && p.communicator == hang.communicator;
    });
    if (cause == found.end()) {
      found.push_back(std::move(hang));
      continue;
    }
    cause->evidence.push_back("then " + hang.text);
    cause->evidence.insert(cause->evidence.end(), hang.evidence.begin(), hang.evidence.end());
  }
}

// What a file says that contradicts itself is said of nobody else.
void leave_out_untrusted(const Facts& facts, std::vector<Communicator>& communicators) {
  for (Communicator& c : communicators) {
    for (Member& m : c.members) {
      const auto lines = facts.find(m.process);
      if (lines != facts.end() && !lines->second.decreased.empty()) m.done = nullptr;
    }
  }
}

}  // namespace

bool Checked::healthy() const {
  return std::ranges::all_of(findings,
                             [](const Problem& p) { return p.severity == Severity::note; });
}

Checked check(const match::Job& job, const read::Traces& traces, const CheckOptions& options) {
  Checked c{.job = &job, .communicators = communicators(job), .agreements = {}, .findings = {}};
  Facts facts;
  if (options.read_lines) facts = line_facts(job, traces, options.progress);
  leave_out_untrusted(facts, c.communicators);
  for (const Communicator& comm : c.communicators) c.agreements.push_back(agreement_of(comm));

  std::vector<Problem>& found = c.findings;
  missing_ranks(job, found);
  missing_members(job, found);
  contested_ranks(job, found);
  not_closed(job, found);
  failed_calls(job, found);
  unfinished_calls(job, found);
  Disagreements disagreements(facts, traces, options.read_lines);
  for (std::size_t i = 0; i < c.communicators.size(); ++i) {
    disagreements.of(c.communicators[i], c.agreements[i], found);
  }
  add_hangs(hangs(job, c.communicators, facts, traces, {options.stuck_after_ns}), found);
  unmatched_point_to_point(c.communicators, facts, found);
  lines_against_ledger(job, facts, found);
  ledgers_that_decrease(job, facts, found);
  clock_steps(job, facts, found);
  dropped(job, found);
  assumed_job(job, found);
  skipped_files(traces.skipped, found);
  sort_by_severity(found);
  return c;
}

}  // namespace tprof::diagnose
