#include "why/slow_links.h"

#include <algorithm>
#include <functional>

#include "check/names.h"
#include "text/text.h"
#include "why/numbers.h"
#include "why/replays.h"

namespace tprof::why {
namespace {

using check::Fact;
using check::Say;

Slow of_link(const Evidence& e, std::size_t link) {
  const std::set<std::size_t>& ranks = e.replays->links()[link].ranks;
  return {.ranks = {ranks.begin(), ranks.end()}, .of = Of::transfers, .links = {link}};
}

// Returns all of these links, and the ranks that they share: one of them may be the reason. If they
// share none, all of their ranks.
Slow together(const std::vector<Slow>& links) {
  Slow all{.ranks = links.front().ranks, .of = Of::transfers};
  std::set<std::size_t> ranks;
  std::set<std::size_t> steps;
  for (const Slow& link : links) {
    std::erase_if(all.ranks, [&](std::size_t r) { return !link.has_rank(r); });
    all.links.insert(all.links.end(), link.links.begin(), link.links.end());
    ranks.insert(link.ranks.begin(), link.ranks.end());
    steps.insert(link.steps.begin(), link.steps.end());
  }
  if (all.ranks.empty()) all.ranks.assign(ranks.begin(), ranks.end());
  all.steps.assign(steps.begin(), steps.end());
  return all;
}

}  // namespace

std::vector<Slow> slow_links(const Evidence& e) {
  std::vector<Slow> all;
  const auto more = [&](const Slow& slow) { return e.replays->more_ns(slow.links, Of::transfers); };
  for (std::size_t k = 0; k < e.replays->links().size(); ++k) {
    all.push_back(of_link(e, k));
    if (more(all.back()) == 0) all.pop_back();
  }
  if (all.size() < 2) return all;
  Slow these = together(all);
  std::ranges::stable_sort(all, std::ranges::greater(), more);
  all.resize(std::min(all.size(), kMostRanks));
  all.push_back(std::move(these));
  return all;
}

std::vector<Slow> links_slow_at_times(const Evidence& e) {
  std::vector<Slow> all;
  for (std::size_t k = 0; k < e.replays->links().size(); ++k) {
    const std::vector<double> more = e.replays->more_in_steps(k, Of::transfers, false);
    Slow its = of_link(e, k);
    its.steps = every_step(e);
    std::erase_if(its.steps, [&](std::size_t i) { return more[i] < kSomeStepsShare * e.step_ns; });
    if (!its.steps.empty()) all.push_back(std::move(its));
  }
  if (all.size() > 1) all.push_back(together(all));
  return all;
}

void tell_link(const Evidence& e, const Slow& slow, check::Finding& f) {
  const std::vector<Link>& links = e.replays->links();
  const bool several = slow.links.size() > 1;
  const auto more = [](const Link::Slow& kind) { return kind.ns - kind.usual_ns; };
  const Link* worst = &links[slow.links.front()];
  for (const std::size_t k : slow.links) {
    const auto most = [&](const Link& of) { return more(std::ranges::max(of.slow, {}, more)); };
    if (slow.steps.empty() && most(links[k]) > most(*worst)) worst = &links[k];
  }
  if (!several) f.communicator = worst->comm;
  const bool between = worst->messages && worst->ranks.size() == 2 && slow.ranks.size() > 1;
  const auto role = e.roles.find(worst->comm);
  Fact link{between           ? Say::between_ranks
            : worst->messages ? Say::of_ranks
                              : Say::on_comm,
            {{"who", processes_of(e, slow.ranks)}, {"several", several}}};
  if (!several && role != e.roles.end()) set(link, {"role", role->second});
  set(f.text, {"link", link});
  if (!slow.steps.empty()) {
    f.text.what = Say::slow_link_at_times;
    return;
  }
  const Link::Slow& kind = std::ranges::max(worst->slow, {}, more);
  set(f.text, {"between", between});
  set(f.text, {"messages", worst->messages});
  set(f.text, {"bucket", std::string(bucket_name(kind.what.bucket))});
  set(f.text, {"size", check::SizeClass{kind.what.size_class}});
  set(f.text, {"takes", check::Ns{std::llround(kind.ns)}});
  set(f.text, {"others", check::Ns{std::llround(kind.usual_ns)}});
  set(f.text, {"alike", kind.others});
}

}  // namespace tprof::why
