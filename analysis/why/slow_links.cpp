// Communicators whose transfers take longer than those of other communicators that do the same.
#include <algorithm>
#include <map>
#include <tuple>

#include "check/names.h"
#include "text/text.h"
#include "why/causes.h"
#include "why/changes.h"
#include "why/numbers.h"

namespace tprof::why {
namespace {

using check::Findings;
using check::Ns;
using check::Percent;

constexpr double kTimesTheOthers = 1.25;
constexpr double kTimesTheOther = 2;  // for two, whose places in the network may differ

// Equal for communicators of equal size on equally many hosts with the same calls.
auto alike(const WaitRow& r) {
  return std::tuple(r.bucket, r.size_class, r.ranks.size(), r.hosts, r.calls, r.bytes);
}

check::Processes members(const Evidence& e, const WaitRow& row) {
  return check::select(e.job.processes, [&](const read::Process& p) {
    return p.header.rank && row.ranks.contains(*p.header.rank);
  });
}

// A slow communicator, with the kind of call that shows it most.
struct SlowComm {
  // By bucket and size: the factor that makes its transfers as fast as the others'.
  std::map<std::pair<Bucket, std::int64_t>, double> times{};
  const WaitRow* worst = nullptr;
  double worst_cost = 0;
  double usual = 0;
  std::size_t alike = 0;
};

}  // namespace

void slow_links(const Evidence& e, Findings& found) {
  std::map<decltype(alike(WaitRow())), std::vector<const WaitRow*>> kinds;
  for (const WaitRow& row : e.waits.rows) {
    if (row.meetings >= 4) kinds[alike(row)].push_back(&row);
  }
  std::map<std::string, SlowComm> slow_comms;
  for (const auto& [kind, all] : kinds) {
    if (all.size() < 2) continue;
    std::vector<double> each;
    for (const WaitRow* t : all) each.push_back(static_cast<double>(t->usual_transfer_ns));
    const double usual = median(each);  // of two: the faster one
    const double least = usual * (all.size() == 2 ? kTimesTheOther : kTimesTheOthers);
    for (const WaitRow* t : all) {
      // A slow link slows every transfer. If some are as fast as the others', it is something else.
      if (static_cast<double>(t->usual_transfer_ns) < least ||
          static_cast<double>(t->quick_transfer_ns) < usual)
        continue;
      SlowComm& slow = slow_comms[t->comm];
      const double cost = (static_cast<double>(t->usual_transfer_ns) - usual) *
                          static_cast<double>(t->calls / t->of_ranks.size()) /
                          static_cast<double>(e.times.steps_of_run);
      slow.times[{t->bucket, t->size_class}] = usual / static_cast<double>(t->usual_transfer_ns);
      if (slow.worst != nullptr && cost < slow.worst_cost) continue;
      slow.worst = t;
      slow.worst_cost = cost;
      slow.usual = usual;
      slow.alike = static_cast<std::size_t>(
          std::ranges::count_if(each, [&](double ns) { return ns < least; }));
    }
  }
  // Each of several slow communicators may cost nothing while the others are slow.
  const auto saving_of_all_but = [&](const std::string& but) {
    Changes change(*e.model);
    for (const auto& [id, slow] : slow_comms) {
      if (id == but) continue;
      for (const auto& [kind, times] : slow.times) change.scale(id, kind.first, kind.second, times);
    }
    return change.saving();
  };
  const Saving all = saving_of_all_but("");
  std::map<std::string, double> alone;  // what each adds to the saving of the others
  double sum = 0;
  for (const auto& [id, slow] : slow_comms) {
    alone[id] = slow_comms.size() == 1 ? all.ns : std::max(0.0, all.ns - saving_of_all_but(id).ns);
    sum += alone[id];
  }
  for (const auto& [id, slow] : slow_comms) {
    const auto is_told = [&](const check::Finding& f) {
      return f.kind == check::Kind::slow_link && (f.communicator.empty() || f.communicator == id);
    };
    if (std::ranges::any_of(found, is_told)) continue;
    const double cost = sum == 0 ? 0 : all.ns * alone[id] / sum;
    const double doubt = sum == 0 ? 0 : all.doubt * alone[id] / sum;
    if (cost < kLeastShare * e.step_ns || cost <= doubt) continue;
    const auto role = e.roles.find(id);
    check::Finding& f =
        add(found, check::Kind::slow_link, members(e, *slow.worst),
            {{"share", Percent{100 * cost / e.step_ns}},
             {"saves", Ns{std::llround(cost)}},
             {"bucket", std::string(bucket_name(slow.worst->bucket))},
             {"size", check::SizeClass{slow.worst->size_class}},
             {"role", role == e.roles.end() ? std::optional<std::string>() : role->second},
             {"takes", Ns{slow.worst->usual_transfer_ns}},
             {"others", Ns{std::llround(slow.usual)}},
             {"alike", slow.alike},
             {"communicator", text::printable(id)}});
    f.communicator = id;
    f.cost = cost_of(e, cost, doubt);
  }
}

}  // namespace tprof::why
