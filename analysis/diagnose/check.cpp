#include "diagnose/check.h"

#include <algorithm>

#include "diagnose/completeness.h"
#include "diagnose/consistency.h"
#include "diagnose/coverage.h"
#include "diagnose/first_difference.h"
#include "diagnose/first_end.h"
#include "diagnose/hang.h"
#include "diagnose/open_mismatch.h"
#include "diagnose/point_to_point.h"
#include "diagnose/problems.h"

namespace tprof::diagnose {
namespace {

// Groups that are compared with the others line by line, each of which means reading two files a
// few times: of one split, and of a job.
constexpr std::size_t kMaxComparedOfSplit = 4;
constexpr std::size_t kMaxCompared = 16;

class Disagreements {
 public:
  Disagreements(const Facts& facts, const read::Traces& traces, bool read_lines)
      : facts_(facts), traces_(traces), left_(read_lines ? kMaxCompared : 0) {}

  void of(const Communicator& c, Agreement& agreement, std::vector<Problem>& found) {
    std::vector<Split> differ;
    for (const Split& split : agreement.splits) {
      if (split.parting == Parting::stopped) {
        stopped(c, split, differ, found);
      } else {
        mismatches(c, split, found);
      }
    }
    std::ranges::move(differ, std::back_inserter(agreement.splits));
  }

 private:
  // A finding for each place at which groups part; those that were not looked at are with the
  // first.
  void mismatches(const Communicator& c, const Split& split, std::vector<Problem>& found) {
    struct Place {
      Split split;
      FirstDifference difference;
    };
    std::vector<Place> places;
    const std::size_t compared = std::min({split.groups.size(), kMaxComparedOfSplit, left_});
    left_ -= compared;
    for (std::size_t i = 0; i < compared; ++i) {
      Split one = split.of(i);
      FirstDifference d = first_difference(one, facts_, traces_);
      const auto same = std::ranges::find_if(places, [&](const Place& p) {
        return p.difference.found == d.found && (!d.found || p.difference.seq == d.seq);
      });
      if (same == places.end()) {
        places.push_back({std::move(one), std::move(d)});
      } else {
        same->split.groups.push_back(split.groups[i]);
      }
    }
    if (places.empty()) {
      found.push_back(mismatch_of(c, split));
      found.back().text += "; " + where(split);
      return;
    }
    Split& first = places[0].split;
    first.groups.insert(first.groups.end(),
                        split.groups.begin() + static_cast<std::ptrdiff_t>(compared),
                        split.groups.end());
    for (const auto& [one, difference] : places) {
      found.push_back(mismatch_of(c, one));
      name_operation(found.back(), one, difference);
    }
  }

  // Members that stopped are compared behind the last mark that they share with the others.
  void stopped(const Communicator& c, const Split& split, std::vector<Split>& differ,
               std::vector<Problem>& found) {
    std::size_t compared = 0;
    for (std::size_t i = 0; i < split.groups.size() && compared < kMaxComparedOfSplit; ++i) {
      Split one = split.of(i);
      Split common = one;
      --common.end;  // collectives that both did
      if (common.same >= common.end || left_ == 0) continue;
      ++compared;
      --left_;
      const FirstDifference d = first_difference(common, facts_, traces_);
      if (!d.found) continue;
      one.parting = Parting::differs;
      found.push_back(mismatch_of(c, one));
      name_operation(found.back(), common, d);
      differ.push_back(std::move(one));
    }
  }

  const Facts& facts_;
  const read::Traces& traces_;
  std::size_t left_;
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
    std::erase_if(hang.evidence,
                  [](const std::string& e) { return e.starts_with(kEveryRankCame); });
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
  std::vector<read::Skipped> unreadable;
  if (options.read_lines) facts = line_facts(job, traces, options.progress, unreadable);
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
  open_mismatches(c.communicators, facts, traces, c.agreements, found);
  add_hangs(hangs(job, c.communicators, facts, traces, {options.stuck_after_ns}), found);
  name_who_ended_first(job, facts, found);
  unmatched_point_to_point(c.communicators, facts, found);
  lines_against_ledger(job, facts, found);
  ledgers_that_decrease(job, facts, found);
  clock_steps(job, facts, found);
  dropped(job, found);
  other_jobs(job, found);
  assumed_job(job, found);
  not_compared(job, found);
  skipped_files(traces.skipped, found);
  skipped_files(unreadable, found);
  tidy(found);
  return c;
}

}  // namespace tprof::diagnose
