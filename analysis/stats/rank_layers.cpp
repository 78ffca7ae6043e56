#include "stats/rank_layers.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "interpose/format/step_mark.h"

namespace tprof::stats {
namespace {

constexpr std::size_t kFewestSteps = 2;  // in which a layer must be seen: one repeats nothing

using Sizes = std::vector<std::uint64_t>;  // of the calls of a pass, in their order
using InTemplate = std::vector<std::optional<std::size_t>>;

// Returns the place of each call of a pass in the template, of which it may be the reverse. The
// calls of a size have one if there are as many as in the template. Where that has several of a
// size, they must come in its order too.
InTemplate places_in(const Sizes& usual, const Sizes& calls, bool reversed) {
  std::map<std::uint64_t, std::pair<Places, Places>> by_size;  // in the template, and of the calls
  for (std::uint32_t i = 0; i < usual.size(); ++i) by_size[usual[i]].first.push_back(i);
  for (std::uint32_t i = 0; i < calls.size(); ++i) by_size[calls[i]].second.push_back(i);
  InTemplate told(calls.size());
  Places several;
  for (auto& [size, of] : by_size) {
    auto& [places, mine] = of;
    if (places.size() != mine.size()) continue;
    if (reversed) std::ranges::reverse(places);
    for (std::size_t i = 0; i < mine.size(); ++i) told[mine[i]] = places[i];
    if (mine.size() > 1) several.insert(several.end(), mine.begin(), mine.end());
  }
  std::ranges::sort(several);
  const auto place = [&](std::uint32_t call) { return told[call]; };
  if (reversed ? !std::ranges::is_sorted(several, std::ranges::greater(), place)
               : !std::ranges::is_sorted(several, {}, place)) {
    for (const std::uint32_t call : several) told[call].reset();
  }
  return told;
}

// Returns the template: of the calls of the sizes that are as many as in most passes, those of the
// pass that has the most. `all` are the calls of all passes.
Sizes template_of(const std::vector<Sizes>& all) {
  const auto calls_of = [](const Sizes& of) {
    std::map<std::uint64_t, std::size_t> calls;
    for (const std::uint64_t size : of) ++calls[size];
    return calls;
  };
  std::map<std::uint64_t, std::map<std::size_t, std::size_t>> times;  // by size and its calls
  for (const Sizes& of : all) {
    for (const auto& [size, calls] : calls_of(of)) ++times[size][calls];
  }
  std::map<std::uint64_t, std::size_t> usual;
  for (const auto& [size, of_size] : times) {
    const auto passes = [](const auto& entry) { return entry.second; };
    usual[size] = std::ranges::max_element(of_size, {}, passes)->first;
  }
  Sizes best;
  for (Sizes of : all) {
    const auto calls = calls_of(of);
    std::erase_if(of, [&](std::uint64_t size) { return calls.at(size) != usual.at(size); });
    if (of.size() > best.size()) best = std::move(of);
  }
  return best;
}

// Tells what passes do with data of one size on a communicator.
struct OfSize {
  std::array<bool, kLayerOps> made{};
  bool activations = false;  // it is reduced or scattered ahead of a backward pass

  bool seen(LayerOp op) const { return made[static_cast<std::size_t>(op)]; }
  // True for parameters: they come back in the backward pass, gathered again or as gradients.
  bool comes_back() const {
    return !activations && seen(LayerOp::forward) &&
           (seen(LayerOp::again) || seen(LayerOp::scattered));
  }
};

struct OfComm {
  std::map<std::uint64_t, OfSize> sizes{};
  std::uint64_t reduced_bytes = 0;  // gradients that are all-reduced
  std::uint64_t other_bytes = 0;    // gathered or scattered in backward passes

  std::set<std::uint64_t> moved_by(LayerOp op) const {
    std::set<std::uint64_t> counts;
    for (const auto& [count, of] : sizes) {
      if (of.seen(op)) counts.insert(count);
    }
    return counts;
  }
  // If gradients are all-reduced (DDP), what is gathered is something else.
  bool unit(std::uint64_t count) const {
    const auto of = sizes.find(count);
    return of != sizes.end() && of->second.comes_back() && reduced_bytes <= other_bytes;
  }
};

class Mapper {
 public:
  Mapper(const RankCalls& rank, const Passes& passes, const std::set<std::int64_t>& carriers)
      : rank_(rank), passes_(passes), carriers_(carriers) {
    found_.told.resize(rank.calls.size());
  }

  RankLayers map() && {
    for (std::size_t n = 0; n < passes_.all.size(); ++n) {
      visit(n, passes_.all[n].ahead, true);
      visit(n, passes_.all[n].backward, false);
      visit(n, passes_.all[n].late, false);
    }
    for (const Made& m : made_) see(m.call, m.op);
    find_replicas();
    std::map<Family, Lists> families;
    for (const auto& [pass, call, op] : made_) {
      const auto family = op ? family_of(rank_.kind(call), *op) : std::nullopt;
      if (!family) continue;
      found_.told[call].op = *op;
      families[*family][{pass, family->second ? LayerOp::forward : *op}].push_back(call);
    }
    for (const auto& [family, lists] : families) place(family, lists);
    return std::move(found_);
  }

 private:
  // Layers whose calls have an order among each other: the units, or the buckets (true), of a
  // communicator.
  using Family = std::pair<std::int64_t, bool>;
  // Its calls in the order of each pass; those of units by their operation.
  using Lists = std::map<std::pair<std::size_t, LayerOp>, Places>;
  // A call of a pass that is no flag or scale.
  struct Made {
    std::size_t pass = 0;
    std::uint32_t call = 0;
    std::optional<LayerOp> op{};  // nullopt: activations
  };

  void visit(std::size_t pass, const Places& calls, bool ahead) {
    for (const std::uint32_t call : calls) {
      const CallKind& k = rank_.kind(call);
      found_.told[call].none = NoLayer::data;
      if (!moves_layers(k) || k.bytes <= kScalarBytes) continue;
      std::optional<LayerOp> op;
      if (k.bucket == Bucket::ALLGATHER) {
        op = ahead ? LayerOp::forward : LayerOp::again;
      } else if (!ahead) {
        op = k.bucket == Bucket::RESHARDING ? LayerOp::scattered : LayerOp::reduced;
      }
      made_.push_back({pass, call, op});
    }
  }

  void see(std::uint32_t call, std::optional<LayerOp> op) {
    const CallKind& k = rank_.kind(call);
    OfComm& comm = comms_[k.comm];
    OfSize& of = comm.sizes[k.count];
    if (!op) {
      of.activations = true;
      return;
    }
    of.made[static_cast<std::size_t>(*op)] = true;
    if (*op == LayerOp::again || *op == LayerOp::scattered) {
      comm.other_bytes = read::saturated_sum(comm.other_bytes, k.bytes);
    } else if (*op == LayerOp::reduced && passes_.gradient(k)) {
      comm.reduced_bytes = read::saturated_sum(comm.reduced_bytes, k.bytes);
    }
  }

  // For hybrid sharding: replicas all-reduce the shards of all gradients that another communicator
  // scatters.
  void find_replicas() {
    for (const auto& [comm, of] : comms_) {
      const std::set<std::uint64_t> reduced = of.moved_by(LayerOp::reduced);
      for (const auto& [other, shards] : comms_) {
        const std::set<std::uint64_t> scattered = shards.moved_by(LayerOp::scattered);
        if (other != comm && !scattered.empty() && std::ranges::includes(reduced, scattered)) {
          shards_of_[comm] = other;
        }
      }
    }
  }

  std::optional<Family> family_of(const CallKind& k, LayerOp op) const {
    const auto shards = shards_of_.find(k.comm);
    const bool replica = op == LayerOp::reduced && shards != shards_of_.end();
    const std::int64_t home = replica ? shards->second : k.comm;
    if (!carriers_.contains(home)) return std::nullopt;
    if ((replica || op != LayerOp::reduced) && comms_.at(home).unit(k.count)) {
      return Family(home, false);
    }
    const OfSize& of = comms_.at(k.comm).sizes.at(k.count);
    const bool gradient = op == LayerOp::reduced
                              ? k.bytes >= passes_.least_gradient
                              : op == LayerOp::scattered && !of.seen(LayerOp::forward);
    if (!gradient || of.activations || !carriers_.contains(k.comm)) return std::nullopt;
    return Family(k.comm, true);
  }

  // A place in the template.
  struct Row {
    std::optional<std::uint32_t> first{};  // call
    std::set<std::int64_t> steps{};
    bool back = false;  // parameters came back
    std::set<std::string_view> modules{};
    std::optional<std::pair<std::size_t, std::size_t>> row{};  // in `found_`
  };

  void place(const Family& family, const Lists& lists) {
    std::vector<Sizes> forward;
    for (const auto& [key, calls] : lists) {
      if (key.second == LayerOp::forward) forward.push_back(sizes(calls));
    }
    const Sizes usual = template_of(forward);
    std::vector<Row> rows(usual.size());
    std::vector<std::pair<std::uint32_t, std::size_t>> placed;  // calls
    for (const auto& [key, calls] : lists) {
      const bool back = key.second != LayerOp::forward;
      const InTemplate told = places_in(usual, sizes(calls), back);
      for (std::size_t i = 0; i < calls.size(); ++i) {
        found_.told[calls[i]].none = NoLayer::order;
        if (!told[i]) continue;
        Row& row = rows[*told[i]];
        if (!row.first) row.first = calls[i];
        row.steps.insert(passes_.all[key.first].step);
        row.back = row.back || back;
        if (const auto m = module_around(rank_, calls[i]); !m.empty()) row.modules.insert(m);
        placed.emplace_back(calls[i], *told[i]);
      }
    }
    take(family, usual, rows);
    for (const auto& [call, at] : placed) {
      found_.told[call].row = rows[at].row;
      if (!family.second && !rows[at].back) found_.told[call].none = NoLayer::data;
    }
  }

  // Takes the rows that are layers. If FSDP2's ranges name two modules at one place they are right,
  // and the order of calls of this size is another.
  void take(const Family& family, const Sizes& usual, std::vector<Row>& rows) {
    std::set<std::uint64_t> contradicted;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].modules.size() > 1) contradicted.insert(usual[i]);
    }
    std::size_t place = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const bool proved = family.second || rows[i].back;
      if (!proved || rows[i].steps.size() < kFewestSteps || contradicted.contains(usual[i])) {
        continue;
      }
      if (found_.comms.empty() || found_.comms.back().first != family.first) {
        found_.comms.emplace_back(family.first, std::vector<LayerRow>());
      }
      std::vector<LayerRow>& all = found_.comms.back().second;
      rows[i].row = {found_.comms.size() - 1, all.size()};
      const CallKind& k = rank_.kind(*rows[i].first);
      all.push_back({.unit = !family.second,
                     .place = ++place,
                     .count = k.count,
                     .elements = k.elements,
                     .bytes = k.bytes,
                     .dtype = k.dtype});
    }
  }

  Sizes sizes(const Places& calls) const {
    Sizes all;
    for (const std::uint32_t call : calls) all.push_back(rank_.kind(call).count);
    return all;
  }

  const RankCalls& rank_;
  const Passes& passes_;
  const std::set<std::int64_t>& carriers_;
  std::vector<Made> made_;
  std::map<std::int64_t, OfComm> comms_;
  std::map<std::int64_t, std::int64_t> shards_of_;  // of communicators of replicas
  RankLayers found_;
};

}  // namespace

RankLayers layers_of(const RankCalls& rank, const Passes& passes,
                     const std::set<std::int64_t>& carriers) {
  return Mapper(rank, passes, carriers).map();
}

}  // namespace tprof::stats
