#include "diagnose/open_mismatch.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "diagnose/first_difference.h"
#include "diagnose/last_calls.h"
#include "diagnose/names.h"

namespace tprof::diagnose {
namespace {

using read::Event;

constexpr std::size_t kMaxFilesRead = 16;
constexpr std::size_t kMaxSidesShown = 4;

// Members that called the same.
struct Side {
  Event call;
  Members open;
  Members returned;

  std::size_t size() const { return open.size() + returned.size(); }
  Members members() const {
    Members all = open;
    all.insert(all.end(), returned.begin(), returned.end());
    return all;
  }
};
using Sides = std::vector<Side>;

void add(const Member& m, const Event& e, Sides& sides) {
  auto side = std::ranges::find_if(sides, [&](const Side& s) { return same_call(s.call, e); });
  if (side == sides.end()) side = sides.insert(side, {e, {}, {}});
  (e.unfinished ? side->open : side->returned).push_back(&m);
}

const LineFacts* lines_of(const Member& m, const Facts& facts) {
  const auto found = facts.find(m.process);
  return found == facts.end() ? nullptr : &found->second;
}

// By the collective that somebody stands in.
std::map<std::uint64_t, Sides> sides_of(const Communicator& c, const Facts& facts) {
  std::map<std::uint64_t, Sides> open;
  for (const Member& m : c.members) {
    const LineFacts* lines = lines_of(m, facts);
    if (lines == nullptr) continue;
    for (const Event& e : lines->open) {
      if (e.collective() && e.comm == m.comm->comm) add(m, e, open[e.seq]);
    }
  }
  return open;
}

// Reads a few files, for calls behind which their ranks have called others.
class Returned {
 public:
  Returned(const Facts& facts, const read::Traces& traces) : facts_(facts), traces_(traces) {}

  // What those called whose call returned: up to here the ledgers know them to have done the same.
  std::optional<Event> call(const Communicator& c, std::uint64_t seq) {
    const Member* written = nullptr;
    for (const Member& m : c.members) {
      const LineFacts* lines = m.done != nullptr && m.count() > seq ? lines_of(m, facts_) : nullptr;
      if (lines == nullptr) continue;
      const auto last = lines->last_collective.find(m.comm->comm);
      if (last != lines->last_collective.end() && last->second.seq == seq) return last->second;
      const auto seqs = lines->collectives.find(m.comm->comm);
      if (seqs != lines->collectives.end() && seqs->second.covered_until(seq) > seq) written = &m;
    }
    if (written == nullptr || read_ == kMaxFilesRead) return std::nullopt;
    ++read_;
    const auto events = collectives_between(*written, seq, seq + 1, traces_);
    return events.empty() ? std::nullopt : std::optional(events[0]);
  }

 private:
  const Facts& facts_;
  const read::Traces& traces_;
  std::size_t read_ = 0;
};

Problem problem_of(const Communicator& c, std::uint64_t seq, const Sides& sides, const Split& s) {
  Members all = s.members();
  if (s.tie) all.insert(all.end(), s.others.begin(), s.others.end());
  Problem p{
      .kind = kMismatch,
      .severity = Severity::error,
      .ranks = ranks_of(processes_of(all)),
      .text = fmt::format("communicator {} ({} ranks): as collective {}, {} did not call what {} "
                          "called",
                          c.id, c.nranks, seq, names_of(processes_of(s.members())),
                          names_of(processes_of(s.others))),
      .next = kNextOfMismatch,
      .communicator = c.id,
      .seq = seq,
      .between = std::pair(seq, seq + 1),
      .function = sides[0].call.name};
  for (std::size_t i = 0; i < std::min(sides.size(), kMaxSidesShown); ++i) {
    const Side& side = sides[i];
    const Member& first = side.open.empty() ? *side.returned[0] : *side.open[0];
    p.evidence.push_back(fmt::format(
        "{}, {}: {}{}", names_of(processes_of(side.members())), seq,
        describe(side.call, *first.process),
        side.open.empty()       ? "; it returned"
        : side.returned.empty() ? "; it did not return"
                                : "; it did not return to " + names_of(processes_of(side.open))));
  }
  if (sides.size() > kMaxSidesShown) {
    p.evidence.push_back(fmt::format("and {} more ways", sides.size() - kMaxSidesShown));
  }
  if (s.tie) p.evidence.emplace_back("no side is the majority: either may be the wrong one");
  return p;
}

}  // namespace

void open_mismatches(const std::vector<Communicator>& communicators, const Facts& facts,
                     const read::Traces& traces, std::vector<Agreement>& agreements,
                     std::vector<Problem>& found) {
  Returned returned(facts, traces);
  for (std::size_t i = 0; i < communicators.size(); ++i) {
    const Communicator& c = communicators[i];
    std::vector<Split>& splits = agreements[i].splits;
    if (std::ranges::any_of(splits, [](const Split& s) { return s.parting != Parting::stopped; })) {
      continue;
    }
    for (auto& [seq, sides] : sides_of(c, facts)) {
      if (const auto call = returned.call(c, seq)) {
        for (const Member& m : c.members) {
          if (m.done != nullptr && m.count() > seq) add(m, *call, sides);
        }
      }
      if (sides.size() < 2) continue;
      std::ranges::stable_sort(sides, std::ranges::greater(), &Side::size);
      Split split{.others = sides[0].members(),
                  .tie = sides[1].size() == sides[0].size(),
                  .same = seq,
                  .end = seq + 1};
      for (std::size_t k = 1; k < sides.size(); ++k) split.groups.push_back(sides[k].members());
      found.push_back(problem_of(c, seq, sides, split));
      splits.push_back(std::move(split));
      break;  // what comes behind it follows from it
    }
  }
}

}  // namespace tprof::diagnose
