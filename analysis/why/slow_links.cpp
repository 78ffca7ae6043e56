// Communicators whose transfers take longer than those of the others that do the same.
#include <algorithm>
#include <map>
#include <tuple>

#include "diagnose/who.h"
#include "text/text.h"
#include "why/causes.h"
#include "why/numbers.h"

namespace tprof::why {
namespace {

using diagnose::Findings;
using diagnose::Ns;
using diagnose::Percent;

constexpr double kTimesTheOthers = 1.25;
constexpr double kTimesTheOther = 2;  // of two, which also differ by how they lie in the network

// Communicators of as many ranks on as many hosts, which moved the same in the same way.
auto alike(const Transfer& t) {
  return std::tuple(t.bucket, t.size_class, t.ranks.size(), t.hosts.size(), t.calls, t.bytes);
}

diagnose::Processes members(const Evidence& e, const Transfer& t) {
  return diagnose::select(e.job.processes, [&](const read::Process& p) {
    return p.header.rank && t.ranks.contains(*p.header.rank);
  });
}

// By how much of a step these transfers were longer than the others' without being hidden: no more
// than what its ranks show, less than what those of the others wait.
double cost_ns(const Evidence& e, const Transfer& t, double usual_ns) {
  const double longer = static_cast<double>(t.usual_ns) - usual_ns;
  const double of_a_step =
      longer * static_cast<double>(t.calls) / static_cast<double>(e.times.steps.size());
  double exposed = 0;
  double ranks = 0;
  for (std::size_t r = 0; r < e.times.ranks.size(); ++r) {
    const auto& rank = e.times.ranks[r]->header.rank;
    if (!rank || !t.ranks.contains(*rank)) continue;
    const RankFacts& facts = e.times.facts[r];
    if (facts.steps == 0) continue;
    exposed += static_cast<double>(facts.exposed[static_cast<std::size_t>(t.bucket)].ns) /
               static_cast<double>(facts.steps);
    ++ranks;
  }
  if (ranks == 0) return 0;
  return std::min(of_a_step, exposed / ranks);
}

// A communicator with the kind of call that shows it most.
struct Slow {
  double cost = 0;
  const Transfer* worst = nullptr;
  double worst_cost = 0;
  double usual = 0;
  std::size_t alike = 0;
};

}  // namespace

void slow_links(const Evidence& e, Findings& found) {
  std::map<decltype(alike(Transfer())), std::vector<const Transfer*>> kinds;
  for (const Transfer& t : e.transfers.all) {
    if (t.collectives >= 4 && t.bytes != 0) kinds[alike(t)].push_back(&t);
  }
  std::map<std::string, Slow> slow_comms;
  for (const auto& [kind, all] : kinds) {
    if (all.size() < 2) continue;
    std::vector<double> each;
    for (const Transfer* t : all) each.push_back(static_cast<double>(t->usual_ns));
    const double usual = median(each);  // of two, the faster one
    const double least = usual * (all.size() == 2 ? kTimesTheOther : kTimesTheOthers);
    for (const Transfer* t : all) {
      if (static_cast<double>(t->usual_ns) < least) continue;
      Slow& slow = slow_comms[t->comm];
      const double cost = cost_ns(e, *t, usual);
      slow.cost += cost;
      if (slow.worst != nullptr && cost < slow.worst_cost) continue;
      slow.worst = t;
      slow.worst_cost = cost;
      slow.usual = usual;
      slow.alike = all.size() - 1;
    }
  }
  for (const auto& [id, slow] : slow_comms) {
    if (slow.cost < kLeastShare * e.step_ns) continue;
    diagnose::Finding& f = add(found, diagnose::Kind::slow_link, members(e, *slow.worst),
                               {{"share", Percent{100 * slow.cost / e.step_ns}},
                                {"saves", Ns{std::llround(slow.cost)}},
                                {"bucket", std::string(bucket_name(slow.worst->bucket))},
                                {"takes", Ns{slow.worst->usual_ns}},
                                {"others", Ns{std::llround(slow.usual)}},
                                {"alike", slow.alike},
                                {"communicator", text::printable(id)}});
    f.communicator = id;
    f.cost = cost_of(e, slow.cost, slow.cost / 2);
  }
}

}  // namespace tprof::why
