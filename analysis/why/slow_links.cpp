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

// A communicator with the kind of call that shows it most.
struct Slow {
  std::map<Bucket, double>
      longer{};  // ns of a step, by which transfers take longer than the others'
  const Transfer* worst = nullptr;
  double worst_cost = 0;
  double usual = 0;
  std::size_t alike = 0;

  // Returns what of that is not hidden: no more than what its ranks show, less than what those of
  // the others wait.
  double cost(const Evidence& e) const {
    double all = 0;
    for (const auto& [bucket, ns] : longer) {
      all += std::min(ns, exposed_ns(e, worst->ranks, bucket));
    }
    return all;
  }
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
      // A slow link slows each of them. Where some are as quick as the others', something else
      // does.
      if (static_cast<double>(t->usual_ns) < least || static_cast<double>(t->quick_ns) < usual)
        continue;
      Slow& slow = slow_comms[t->comm];
      const double cost = (static_cast<double>(t->usual_ns) - usual) *
                          static_cast<double>(t->calls) / static_cast<double>(e.times.steps_of_run);
      slow.longer[t->bucket] += cost;
      if (slow.worst != nullptr && cost < slow.worst_cost) continue;
      slow.worst = t;
      slow.worst_cost = cost;
      slow.usual = usual;
      slow.alike = static_cast<std::size_t>(
          std::ranges::count_if(each, [&](double ns) { return ns < least; }));
    }
  }
  for (const auto& [id, slow] : slow_comms) {
    const double cost = slow.cost(e);
    if (cost < kLeastShare * e.step_ns) continue;
    const auto role = e.roles.find(id);
    diagnose::Finding& f =
        add(found, diagnose::Kind::slow_link, members(e, *slow.worst),
            {{"share", Percent{100 * cost / e.step_ns}},
             {"saves", Ns{std::llround(cost)}},
             {"bucket", std::string(bucket_name(slow.worst->bucket))},
             {"size", diagnose::SizeClass{slow.worst->size_class}},
             {"role", role == e.roles.end() ? std::optional<std::string>() : role->second},
             {"takes", Ns{slow.worst->usual_ns}},
             {"others", Ns{std::llround(slow.usual)}},
             {"alike", slow.alike},
             {"communicator", text::printable(id)}});
    f.communicator = id;
    f.cost = cost_of(e, cost, cost / 2);
  }
}

}  // namespace tprof::why
