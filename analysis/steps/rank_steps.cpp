#include "steps/rank_steps.h"

#include <fmt/format.h>

#include <algorithm>

#include "interpose/format/step_mark.h"
#include "steps/pipelines.h"
#include "text/text.h"

namespace tprof::steps {
namespace {

using read::Process;

// By communicator id and operation number: the step that the operation ends.
using Numbers = std::map<std::string, std::map<std::uint64_t, std::int64_t>>;

// Numbers the steps of a rank as another rank of its communicator did, since ranks may differ at
// the beginning or the end. Returns false if there is no such rank.
bool number(RankSteps& rank, const Numbers& numbers) {
  for (const Anchors& anchors : rank.anchors) {
    const auto known = numbers.find(anchors.comm);
    if (known == numbers.end()) continue;
    std::vector<Interval> numbered;
    for (const std::uint64_t anchor : anchors.numbers) {
      const auto step = known->second.find(anchor);
      if (step == known->second.end()) break;
      numbered.push_back(rank.intervals[numbered.size()]);
      numbered.back().step = step->second;
    }
    if (numbered.size() != rank.intervals.size()) continue;
    rank.intervals = std::move(numbered);
    return true;
  }
  return false;
}

bool known(const RankSteps& rank, const Numbers& numbers) {
  return std::ranges::any_of(rank.anchors,
                             [&](const Anchors& a) { return numbers.contains(a.comm); });
}

void add(const RankSteps& rank, Numbers& numbers) {
  for (const Anchors& anchors : rank.anchors) {
    std::map<std::uint64_t, std::int64_t>& of_comm = numbers[anchors.comm];
    if (of_comm.size() >= anchors.numbers.size()) continue;
    for (std::size_t k = 0; k < anchors.numbers.size(); ++k) {
      of_comm[anchors.numbers[k]] = rank.intervals[k].step;
    }
  }
}

}  // namespace

bool lines_are_whole(const Process& p) {
  return p.footer && p.footer->dropped.empty();
}

RankSteps steps_of(const Process& rank, const Sequence& sequence, std::int64_t end_ns) {
  const bool ended = rank.end == read::End::closed && sequence.whole && lines_are_whole(rank);
  RankSteps found{.rank = &rank, .period = find_period(sequence, ended)};
  Period& p = found.period;
  // A step of one stage may be a micro-batch of the pipeline.
  if (!p.whole_steps && !p.few) found.flow = find_flow(sequence, rank, ended, end_ns);
  const auto time = [&](std::size_t i) {
    return i < sequence.operations.size() ? sequence.operations[i].ts_ns : end_ns;
  };
  for (std::size_t k = 0; k + 1 < p.starts.size(); ++k) {
    found.intervals.push_back({.step = static_cast<std::int64_t>(k) + 1,
                               .from_ns = time(p.starts[k]),
                               .to_ns = time(p.starts[k + 1]),
                               .end_known = p.starts[k + 1] < sequence.operations.size()});
  }
  for (const std::vector<std::size_t>& on_comm : p.anchors) {
    const auto operation = [&](std::size_t i) { return sequence.operations[i]; };
    const auto comm = rank.comms.find(sequence.symbols[operation(on_comm[0]).symbol].comm);
    if (comm == rank.comms.end()) continue;
    Anchors& anchors = found.anchors.emplace_back(comm->second.id);
    for (const std::size_t i : on_comm) anchors.numbers.push_back(operation(i).seq);
  }
  p.starts = {};
  p.anchors = {};
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

Found one_answer(std::vector<RankSteps> ranks, RanksByWhy& none) {
  find_in_pipelines(ranks);
  Found found;
  std::uint64_t batch_bytes = 0;
  for (const RankSteps& r : ranks) batch_bytes = std::max(batch_bytes, r.period.batch_bytes);
  // It takes far less data than others: its batches may be something that each layer copies.
  const auto doubtful = [&](const RankSteps& r) {
    return r.period.batch_bytes < batch_bytes / kSmallCopy;
  };
  const RankSteps* most = nullptr;
  for (const RankSteps& r : ranks) {
    if (r.intervals.empty()) {
      none[r.period.why].push_back(r.rank);
      if (found.why.empty()) found.why = names({r.rank}) + ": " + r.period.why;
    } else if (most == nullptr || std::pair(!doubtful(r), r.intervals.size()) >
                                      std::pair(!doubtful(*most), most->intervals.size())) {
      most = &r;
    }
  }
  if (most == nullptr) return found;
  const RankSteps first = *most;
  for (const Interval& i : first.intervals) found.steps.push_back(i.step);
  Numbers numbers;
  add(first, numbers);
  std::vector<RankSteps*> left;
  for (RankSteps& r : ranks) {
    if (!r.intervals.empty()) left.push_back(&r);
  }
  while (!left.empty()) {
    const std::size_t before = left.size();
    std::erase_if(left, [&](RankSteps* r) {
      if (!number(*r, numbers)) return false;
      add(*r, numbers);
      return true;
    });
    if (left.size() != before) continue;
    const auto contradicts = [&](RankSteps* r) {
      if (!doubtful(*r) || !known(*r, numbers)) return false;
      none["others of its communicators load the batches"].push_back(r->rank);
      r->intervals.clear();
      return true;
    };
    if (std::erase_if(left, contradicts) != 0) continue;
    RankSteps& apart = *left.front();  // it shares no communicator with the others
    if (known(apart, numbers) || apart.intervals.size() != first.intervals.size()) {
      return {.why = fmt::format("{} made {} and {} {}, and their collectives differ, so the steps "
                                 "can't be matched (see tprof check)",
                                 names({first.rank}), first.intervals.size(), names({apart.rank}),
                                 apart.intervals.size())};
    }
    add(apart, numbers);
  }
  found.whole_steps = true;
  std::vector<const Process*> uneven;
  std::vector<const Process*> beginning;
  std::vector<const Process*> end;
  for (RankSteps& r : ranks) {
    if (r.intervals.empty()) continue;
    found.whole_steps = found.whole_steps && r.period.whole_steps;
    if (r.period.uneven) uneven.push_back(r.rank);
    if (r.period.unclear_beginning) beginning.push_back(r.rank);
    if (r.period.unclear_end) end.push_back(r.rank);
    found.ranks[r.rank] = std::move(r.intervals);
  }
  found.how = How::period;
  found.why.clear();
  if (!uneven.empty()) {
    found.unknown.push_back(names(uneven) +
                            ": some steps take more batches than others, which may be "
                            "micro-batches of the step or belong to an evaluation before it");
  }
  for (const auto& [which, where] :
       {std::pair(&beginning, "before the first"), std::pair(&end, "after the last")}) {
    if (which->empty()) continue;
    found.unknown.push_back(
        fmt::format("{} reduced gradients {} step in another order: some steps may not be counted",
                    names(*which), where));
  }
  return found;
}

}  // namespace tprof::steps
