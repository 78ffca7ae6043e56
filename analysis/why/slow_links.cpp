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

// Returns all of these links as one: those with a slow link in common may share the reason.
Slow together(const Evidence& e, const std::vector<Slow>& links) {
  Slow all{.ranks = every_rank(e), .of = Of::transfers};
  std::set<std::size_t> ranks;
  for (const Slow& slow : links) {
    all.links.push_back(slow.links.front());
    ranks.insert(slow.ranks.begin(), slow.ranks.end());
    std::erase_if(all.ranks, [&](std::size_t r) { return !slow.has_rank(r); });
  }
  if (all.ranks.empty()) all.ranks.assign(ranks.begin(), ranks.end());
  std::ranges::sort(all.links);
  return all;
}

}  // namespace

std::vector<Slow> slow_links(const Evidence& e) {
  std::vector<Slow> all;
  for (std::size_t k = 0; k < e.replays->links().size(); ++k) {
    const Link& link = e.replays->links()[k];
    if (e.replays->more_ns({k}, Of::transfers) == 0) continue;
    all.push_back(
        {.ranks = {link.ranks.begin(), link.ranks.end()}, .of = Of::transfers, .links = {k}});
  }
  if (all.size() < 2) return all;
  Slow as_one = together(e, all);
  std::ranges::stable_sort(all, std::ranges::greater(), [&](const Slow& slow) {
    return e.replays->more_ns(slow.links, Of::transfers);
  });
  all.resize(std::min(all.size(), kMostRanks));
  all.push_back(std::move(as_one));
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
  set(f.text, {"bucket", std::string(bucket_name(kind.bucket))});
  set(f.text, {"size", check::SizeClass{kind.size_class}});
  set(f.text, {"takes", check::Ns{std::llround(kind.ns)}});
  set(f.text, {"others", check::Ns{std::llround(kind.usual_ns)}});
  set(f.text, {"alike", kind.others});
}

}  // namespace tprof::why
