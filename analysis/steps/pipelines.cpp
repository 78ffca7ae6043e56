#include "steps/pipelines.h"

#include <algorithm>
#include <map>
#include <optional>
#include <ranges>
#include <tuple>

namespace tprof::steps {
namespace {

using Places = std::vector<std::size_t>;          // indices into Flow::at_ns
using End = std::pair<std::size_t, std::size_t>;  // a stage and its neighbour
using Stages = std::vector<std::size_t>;

constexpr const char* kDiffer = "steps found in its sends and receives contradict other ranks";
constexpr const char* kOneMicroBatch =
    "only micro-batches repeat in its sends and receives, and no other rank shows how many make a "
    "step";

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
    for (std::size_t s = 0, pipeline = 0; s < stages_.size(); ++s) {
      if (seen[s]) continue;
      Stages all = {s};
      seen[s] = true;
      for (std::size_t i = 0; i < all.size(); ++i) {
        each_neighbour(all[i], [&](const End&, const End& other) {
          if (!seen[other.first]) all.push_back(other.first);
          seen[other.first] = true;
          return true;
        });
      }
      find(all, pipeline++);
    }
  }

 private:
  Flow& flow(std::size_t stage) const { return *stages_[stage]->flow; }

  // Calls f(this stage's end, the other's end) for each known neighbour until it returns false.
  template <typename F>
  bool each_neighbour(std::size_t stage, const F& f) const {
    for (std::size_t k = 0; k < flow(stage).neighbours.size(); ++k) {
      const Neighbour& n = flow(stage).neighbours[k];
      const auto other = ends_.find({n.comm, n.other, n.mine});
      if (other != ends_.end() && !f(End(stage, k), other->second)) return false;
    }
    return true;
  }

  void say(const Stages& all, const std::string& why) const {
    for (const std::size_t s : all) {
      if (stages_[s]->intervals.empty()) stages_[s]->period.why = why;
    }
  }

  void find(const Stages& all, std::size_t pipeline) {
    const auto count = [&](std::size_t s) { return flow(s).count(); };
    Stages told;
    std::ranges::copy_if(all, std::back_inserter(told),
                         [&](std::size_t s) { return flow(s).told && count(s) != 0; });
    const std::size_t most = std::ranges::max(all | std::views::transform(count));
    if (told.empty()) return most < kFewestSteps ? void() : say(all, kOneMicroBatch);
    const std::size_t fewest = std::ranges::min(told, {}, count);
    const std::size_t n = count(fewest);
    if (n < kFewestSteps) return say(all, too_few_repeats(n));
    std::map<std::size_t, Places> bounds;
    if (!spread(fewest, bounds)) return say(all, kDiffer);
    // If other stages run empty more often, a step has several micro-batches.
    const bool whole =
        most >= 2 * n || std::ranges::any_of(all, [&](std::size_t s) { return flow(s).several; });
    for (const std::size_t s : all) take(*stages_[s], bounds.at(s), whole, pipeline);
  }

  // Carries the bounds of one stage's steps over to all others. Returns false if they don't fit
  // there.
  bool spread(std::size_t from, std::map<std::size_t, Places>& bounds) const {
    bounds[from] = flow(from).steps;
    Stages next = {from};
    for (std::size_t i = 0; i < next.size(); ++i) {
      const bool good = each_neighbour(next[i], [&](const End& here, const End& there) {
        // One of them has to send first and the other to answer.
        const auto leads = [&](const End& e) { return flow(e.first).neighbours[e.second].leads; };
        if (leads(here) == leads(there)) return false;
        std::optional<Places> places = carried(bounds.at(here.first), here, there);
        if (!places) return false;
        if (bounds.try_emplace(there.first, std::move(*places)).second) next.push_back(there.first);
        return true;
      });
      if (!good) return false;
    }
    return true;
  }

  std::optional<Places> carried(const Places& bounds, const End& from, const End& to) const {
    const Flow& a = flow(from.first);
    const Flow& b = flow(to.first);
    Places there;
    for (const std::size_t bound : bounds) {
      const std::size_t at = bound * a.neighbours.size() + from.second;
      // Compares the messages until a place with the expected ones. Both only grow.
      const auto more = [&](std::size_t place, bool or_as_many) {
        const std::size_t k = place * b.neighbours.size() + to.second;
        return or_as_many ? b.received[k] >= a.sent[at] && b.sent[k] >= a.received[at]
                          : b.received[k] > a.sent[at] || b.sent[k] > a.received[at];
      };
      // A step begins at the last matching place, and ends at the first.
      const bool end = &bound == &bounds.back();
      const std::size_t least = there.empty() ? 0 : there.back();
      const auto places = std::views::iota(least, b.at_ns.size());
      std::size_t place =
          least + static_cast<std::size_t>(std::ranges::distance(
                      places.begin(), std::ranges::partition_point(
                                          places, [&](std::size_t p) { return !more(p, end); })));
      if (!end && place > least) --place;
      if (place < b.at_ns.size() && more(place, true) && !more(place, false)) {
        there.push_back(place);
        continue;
      }
      // This stage was killed earlier, or was not as far yet.
      if (!more(b.at_ns.size() - 1, true) && there.size() > kFewestSteps) return there;
      return std::nullopt;
    }
    return there;
  }

  static void take(RankSteps& rank, const Places& bounds, bool whole, std::size_t pipeline) {
    const Flow& flow = *rank.flow;
    rank.period.whole_steps = whole;
    if (rank.intervals.size() + 1 == bounds.size()) return;  // its own calls show the same steps
    rank.period = {.whole_steps = whole};
    rank.intervals.clear();
    // These match its steps with those of other stages.
    const bool closed = rank.rank->end == read::End::closed;
    rank.anchors = {{closed ? "pipeline " + std::to_string(pipeline) : ""}};
    for (std::size_t k = 0; k + 1 < bounds.size(); ++k) {
      const auto step = static_cast<std::int64_t>(k) + 1;
      rank.intervals.push_back(
          {.step = step,
           .from_ns = flow.at_ns[bounds[k]],
           .to_ns = flow.at_ns[bounds[k + 1]],
           .end_known = flow.end_known || bounds[k + 1] + 1 < flow.at_ns.size()});
      rank.anchors[0].numbers.push_back(k);
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
