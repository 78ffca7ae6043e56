#include "steps/rank_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "steps/pipelines.h"
#include "text/ranks.h"
#include "text/text.h"

namespace tprof::steps {
namespace {

using read::Process;

using Numbers = std::map<Shared, std::int64_t>;

Numbers numbers_of(const RankSteps& rank) {
  Numbers numbers;
  for (std::size_t k = 0; k < rank.anchors.size(); ++k) {
    numbers[rank.anchors[k]] = rank.intervals[k].step;
  }
  return numbers;
}

// Gives the steps of a rank the numbers of `first`, the first rank that has the most. Returns false
// if they can't be compared.
bool number(RankSteps& rank, const RankSteps& first, const Numbers& numbers) {
  // Goes by the last anchor, since ranks may differ at the beginning or the end.
  const bool same_comm = rank.anchors.back().first == first.anchors.back().first;
  if (!same_comm) return rank.intervals.size() == first.intervals.size();
  std::vector<Interval> numbered;
  for (std::size_t k = 0; k < rank.anchors.size(); ++k) {
    const auto found = numbers.find(rank.anchors[k]);
    if (found == numbers.end()) return false;
    numbered.push_back(rank.intervals[k]);
    numbered.back().step = found->second;
  }
  rank.intervals = std::move(numbered);
  return true;
}

}  // namespace

bool lines_are_whole(const Process& p) {
  return p.footer && p.footer->dropped.empty();
}

RankSteps steps_of(const Process& rank, const Sequence& sequence, std::int64_t end_ns) {
  const bool ended = rank.end == read::End::closed && sequence.whole && lines_are_whole(rank);
  RankSteps found{.rank = &rank, .period = find_period(sequence, ended)};
  Period& p = found.period;
  // A stage may see micro-batches where the pipeline has steps.
  if (!p.whole_steps && !p.few) found.flow = find_flow(sequence, rank, ended, end_ns);
  const auto time = [&](std::size_t i) {
    return i < sequence.operations.size() ? sequence.operations[i].ts_ns : end_ns;
  };
  for (std::size_t k = 0; k + 1 < p.starts.size(); ++k) {
    found.intervals.push_back({.step = static_cast<std::int64_t>(k) + 1,
                               .from_ns = time(p.starts[k]),
                               .to_ns = time(p.starts[k + 1]),
                               .end_known = p.starts[k + 1] < sequence.operations.size()});
    const Operation& anchor = sequence.operations[p.anchors[k]];
    const auto comm = rank.comms.find(sequence.symbols[anchor.symbol].comm);
    found.anchors.emplace_back(comm == rank.comms.end() ? "" : comm->second.id, anchor.seq);
  }
  p.starts = std::vector<std::size_t>();
  p.anchors = std::vector<std::size_t>();
  return found;
}

std::string names(const std::vector<const Process*>& ranks) {
  std::vector<std::int64_t> numbers;
  for (const Process* p : ranks) {
    if (p->header.rank) numbers.push_back(*p->header.rank);
  }
  const std::uint64_t no_ranks = ranks.size() - numbers.size();
  return text::names_of(text::Ranks(std::move(numbers)), no_ranks);
}

Found one_answer(std::vector<RankSteps> ranks) {
  find_in_pipelines(ranks);
  Found found;
  std::map<std::string, std::vector<const Process*>> none;  // by why
  const RankSteps* most = nullptr;
  for (const RankSteps& r : ranks) {
    if (r.intervals.empty()) {
      none[r.period.why].push_back(r.rank);
      if (found.why.empty()) found.why = names({r.rank}) + ": " + r.period.why;
    } else if (most == nullptr || r.intervals.size() > most->intervals.size()) {
      most = &r;
    }
  }
  if (most == nullptr) return found;
  const RankSteps first = *most;
  const Numbers numbers = numbers_of(first);
  found.whole_steps = true;
  std::vector<const Process*> uneven;
  std::vector<const Process*> beginning;
  std::vector<const Process*> end;
  for (RankSteps& r : ranks) {
    if (r.intervals.empty()) continue;
    if (!number(r, first, numbers)) {
      return {.why = fmt::format("{} made {} and {} {}, and their collectives differ, so nothing "
                                 "tells which of them are the same (tprof check tells more)",
                                 names({first.rank}), first.intervals.size(), names({r.rank}),
                                 r.intervals.size())};
    }
    found.whole_steps = found.whole_steps && r.period.whole_steps;
    if (r.period.uneven) uneven.push_back(r.rank);
    if (r.period.unclear_beginning) beginning.push_back(r.rank);
    if (r.period.unclear_end) end.push_back(r.rank);
    found.ranks[r.rank] = std::move(r.intervals);
  }
  found.how = How::period;
  found.why.clear();
  for (const Interval& i : first.intervals) found.steps.push_back(i.step);
  for (const auto& [why, which] : none) {
    found.unknown.push_back(names(which) + ": no steps were found: " + why);
    found.without += (found.without.empty() ? "" : "; ") + found.unknown.back();
  }
  if (!uneven.empty()) {
    found.unknown.push_back(names(uneven) +
                            ": more batches come in for some steps than for others, and nothing "
                            "tells whether these are "
                            "micro-batches of the step or of an evaluation before it");
  }
  for (const auto& [which, where] :
       {std::pair(&beginning, "before the first"), std::pair(&end, "behind the last")}) {
    if (which->empty()) continue;
    found.unknown.push_back(fmt::format(
        "{} reduced gradients {} in another order: there may be steps that are not counted",
        names(*which), where));
  }
  return found;
}

}  // namespace tprof::steps
