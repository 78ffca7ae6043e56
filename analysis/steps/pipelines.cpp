#include "steps/pipelines.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "steps/order.h"

namespace tprof::steps {
namespace {

using Places = std::vector<std::size_t>;          // of a flow
using End = std::pair<std::size_t, std::size_t>;  // a stage and its neighbour

constexpr const char* kDiffer =
    "what its sends and receives tell of steps is not so at other ranks";
constexpr const char* kOneMicroBatch =
    "a micro-batch is all that repeats in its sends and receives, and no other rank tells how many "
    "of them are a step";

class Pipelines {
 public:
  explicit Pipelines(std::vector<RankSteps>& ranks) {
    for (RankSteps& r : ranks) {
      if (!r.flow) continue;
      for (std::size_t k = 0; k < r.flow->neighbours.size(); ++k) {
        const Neighbour& n = r.flow->neighbours[k];
        ends_.try_emplace({n.comm, n.mine, n.other}, stages_.size(), k);
      }
      stages_.push_back(&r);
    }
  }

  void find() {
    std::vector<bool> seen(stages_.size());
    std::size_t pipeline = 0;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      if (seen[s]) continue;
      std::vector<std::size_t> all = {s};
      seen[s] = true;
      for (std::size_t i = 0; i < all.size(); ++i) {
        for (std::size_t k = 0; k < flow(all[i]).neighbours.size(); ++k) {
          const auto other = end_of(all[i], k);
          if (!other || seen[other->first]) continue;
          seen[other->first] = true;
          all.push_back(other->first);
        }
      }
      find(all, pipeline++);
    }
  }

 private:
  Flow& flow(std::size_t stage) const { return *stages_[stage]->flow; }

  std::optional<End> end_of(std::size_t stage, std::size_t neighbour) const {
    const Neighbour& n = flow(stage).neighbours[neighbour];
    const auto end = ends_.find({n.comm, n.other, n.mine});
    return end == ends_.end() ? std::nullopt : std::optional(end->second);
  }

  void say(const std::vector<std::size_t>& all, const std::string& why) const {
    for (const std::size_t s : all) {
      if (stages_[s]->intervals.empty()) stages_[s]->period.why = why;
    }
  }

  void find(const std::vector<std::size_t>& all, std::size_t pipeline) {
    std::optional<std::size_t> fewest;
    std::size_t most = 0;
    for (const std::size_t s : all) {
      most = std::max(most, flow(s).count());
      if (!flow(s).told || flow(s).count() == 0) continue;
      if (!fewest || flow(s).count() < flow(*fewest).count()) fewest = s;
    }
    if (!fewest) return most < kFewestSteps ? void() : say(all, kOneMicroBatch);
    const std::size_t n = flow(*fewest).count();
    if (n < kFewestSteps) return say(all, too_few_repeats(n));
    std::map<std::size_t, Places> bounds;
    if (!spread(*fewest, bounds)) return say(all, kDiffer);
    // If others run empty more often, there are several micro-batches in a step.
    const bool whole = std::ranges::any_of(
        all, [&](std::size_t s) { return flow(s).several || flow(s).count() >= 2 * n; });
    for (const std::size_t s : all) take(*stages_[s], bounds.at(s), whole, pipeline);
  }

  // Carries the bounds of one stage's steps to all others. Returns false if they are none there.
  bool spread(std::size_t from, std::map<std::size_t, Places>& bounds) const {
    bounds[from] = flow(from).steps;
    std::vector<std::size_t> next = {from};
    for (std::size_t i = 0; i < next.size(); ++i) {
      const std::size_t s = next[i];
      for (std::size_t k = 0; k < flow(s).neighbours.size(); ++k) {
        const auto other = end_of(s, k);
        if (!other) continue;
        // One of them sends first, the other answers; else they only exchange something.
        if (flow(s).neighbours[k].leads == flow(other->first).neighbours[other->second].leads) {
          return false;
        }
        std::optional<Places> there = carried(bounds.at(s), {s, k}, *other);
        if (!there) return false;
        const auto [known, fresh] = bounds.try_emplace(other->first, std::move(*there));
        if (fresh) next.push_back(other->first);
      }
    }
    return true;
  }

  std::optional<Places> carried(const Places& bounds, const End& from, const End& to) const {
    const Flow& a = flow(from.first);
    const Flow& b = flow(to.first);
    const std::size_t width = b.neighbours.size();
    Places there;
    for (std::size_t i = 0; i < bounds.size(); ++i) {
      const std::size_t at = bounds[i] * a.neighbours.size() + from.second;
      const auto has = [&](std::size_t place) {  // messages until then, none of which may be more
        const std::size_t k = place * width + to.second;
        return std::pair(b.received[k], b.sent[k]);
      };
      const std::pair needed(a.sent[at], a.received[at]);
      // Binary search: both counts only grow.
      std::size_t low = there.empty() ? 0 : there.back();
      std::size_t high = b.at_ns.size();
      const std::size_t least = low;
      const bool end = i + 1 == bounds.size();
      while (low < high) {
        const std::size_t middle = (low + high) / 2;
        const auto [received, sent] = has(middle);
        const bool below = end ? received < needed.first || sent < needed.second
                               : received <= needed.first && sent <= needed.second;
        if (below) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      if (!end && low > least) --low;
      if (low < b.at_ns.size() && has(low) == needed) {
        there.push_back(low);
        continue;
      }
      // It was killed before, or has not been as far.
      const auto [received, sent] = has(b.at_ns.size() - 1);
      const bool ended = received < needed.first || sent < needed.second;
      if (ended && there.size() > kFewestSteps) return there;
      return std::nullopt;
    }
    return there;
  }

  static void take(RankSteps& rank, const Places& bounds, bool whole, std::size_t pipeline) {
    const Flow& flow = *rank.flow;
    if (rank.intervals.size() + 1 == bounds.size()) {  // its own calls tell the same
      rank.period.whole_steps = whole;
      return;
    }
    rank.period = Period();
    rank.period.whole_steps = whole;
    rank.intervals.clear();
    rank.anchors.clear();
    const bool closed = rank.rank->end == read::End::closed;
    for (std::size_t k = 0; k + 1 < bounds.size(); ++k) {
      const auto step = static_cast<std::int64_t>(k) + 1;
      rank.intervals.push_back(
          {.step = step,
           .from_ns = flow.at_ns[bounds[k]],
           .to_ns = flow.at_ns[bounds[k + 1]],
           .end_known = flow.end_known || bounds[k + 1] + 1 < flow.at_ns.size()});
      // By these its steps are compared with those of others.
      rank.anchors.emplace_back(closed ? "pipeline " + std::to_string(pipeline) : "", step);
    }
  }

  std::vector<RankSteps*> stages_;
  std::map<std::tuple<std::string, std::int64_t, std::int64_t>, End> ends_;
};

}  // namespace

void find_in_pipelines(std::vector<RankSteps>& ranks) {
  Pipelines(ranks).find();
  for (RankSteps& r : ranks) r.flow.reset();
}

}  // namespace tprof::steps
