#include "stats/rank_layers.h"

#include <algorithm>
#include <utility>

#include "stats/layer_order.h"
#include "stats/pass_calls.h"

namespace tprof::stats {
namespace {

constexpr std::size_t kFewestSteps = 2;  // in which an order must be seen: one repeats nothing

class Mapper {
 public:
  Mapper(const LayerCalls& rank, CallsOfPasses calls) : rank_(rank), calls_(std::move(calls)) {
    for (const std::uint32_t place : calls_.all) found_.none[place] = NoLayer::data;
  }

  RankLayers map(const std::set<std::int64_t>& carriers) && {
    for (auto& [comm, calls] : calls_.comms) {
      if (carriers.contains(comm)) find_units(comm, calls);
    }
    for (auto& [comm, calls] : calls_.comms) {
      if (carriers.contains(comm)) find_buckets(comm, calls);
    }
    for (const auto& [call, place] : found_.places) {
      RankRow& row = found_.comms[place.comm].rows[place.row];
      row.names.add(rank_, call, place.op == LayerOp::forward);
    }
    return std::move(found_);
  }

 private:
  const CallKind& kind(std::uint32_t place) const { return rank_.kinds[rank_.calls[place].kind]; }
  Sizes sizes(const Places& places) const {
    Sizes all;
    for (const std::uint32_t place : places) all.push_back(kind(place).count);
    return all;
  }

  // Parameters come back in the backward pass: they are gathered again, or as many gradients are
  // scattered. If gradients are all-reduced (DDP), what is gathered is something else. Scatters in
  // the forward pass, too, are activations.
  void find_units(std::int64_t comm, CommCalls& of) {
    if (of.scatters_ahead || of.reduced_bytes > of.other_bytes) return;
    std::set<std::uint64_t> back;
    for (const auto& [number, p] : of.passes) {
      for (const Places* places : {&p.again, &p.scatters}) {
        for (const std::uint32_t place : *places) back.insert(kind(place).count);
      }
    }
    std::map<Sizes, std::size_t> times;
    for (auto& [number, p] : of.passes) {
      std::erase_if(p.gathers, [&](std::uint32_t g) { return !back.contains(kind(g).count); });
      ++times[sizes(p.gathers)];
    }
    const Sizes order = common_order(times);
    Rows rows;
    std::set<std::int64_t> seen;  // steps
    for (const auto& [number, p] : of.passes) {
      const auto places = places_in(sizes(p.gathers), order);
      if (places && !p.gathers.empty()) seen.insert(calls_.steps[number]);
      for (std::size_t i = 0; i < p.gathers.size(); ++i) {
        rows.add(p.gathers[i], places ? std::optional((*places)[i]) : std::nullopt,
                 LayerOp::forward);
      }
      add_backward(rows, order, p.again, LayerOp::again);
      add_backward(rows, order, p.scatters, LayerOp::scattered);
      add_replicas(rows, comm, number, p.scatters);
    }
    if (seen.size() >= kFewestSteps && mostly_told(rows) && !contradicted(rows)) {
      take(comm, rows, order, true);
    } else {
      for (const auto& [place, row] : rows.told) found_.none[place] = NoLayer::order;
    }
  }

  // Maps calls to places in an order.
  struct Rows {
    struct Told {
      std::optional<std::size_t> place{};
      LayerOp op{};
    };
    std::map<std::uint32_t, Told> told{};
    void add(std::uint32_t call, std::optional<std::size_t> place, LayerOp op) {
      told[call] = {place, op};
    }
  };

  void add_backward(Rows& rows, const Sizes& order, const Places& calls, LayerOp op) const {
    const auto places = places_in_reverse(sizes(calls), order);
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const bool known = std::ranges::find(order, kind(calls[i]).count) != order.end();
      if (known) rows.add(calls[i], places[i], op);
    }
  }

  // For hybrid sharding: replicas reduce the shards of gradients in the order in which they were
  // scattered.
  void add_replicas(Rows& rows, std::int64_t comm, std::size_t number, const Places& scatters) {
    if (scatters.empty()) return;
    for (auto& [other, calls] : calls_.comms) {
      const auto pass = calls.passes.find(number);
      if (other == comm || pass == calls.passes.end()) continue;
      Places& reduces = pass->second.reduces;
      if (sizes(reduces) != sizes(scatters)) continue;
      for (std::size_t i = 0; i < reduces.size(); ++i) {
        const auto told = rows.told.find(scatters[i]);
        if (told == rows.told.end() || !told->second.place) return;
      }
      for (std::size_t i = 0; i < reduces.size(); ++i) {
        rows.add(reduces[i], rows.told[scatters[i]].place, LayerOp::reduced);
      }
      reduces.clear();
      return;
    }
  }

  // True if at least half of the calls have a place. Otherwise the order is not the program's: what
  // was taken for steps may be something else.
  static bool mostly_told(const Rows& rows) {
    const auto n = std::ranges::count_if(
        rows.told, [](const auto& entry) { return entry.second.place.has_value(); });
    return 2 * static_cast<std::size_t>(n) >= rows.told.size();
  }

  // True if FSDP2's ranges name two modules at one place. They are right, so the order is wrong.
  bool contradicted(const Rows& rows) const {
    std::map<std::size_t, std::string_view> modules;
    for (const auto& [call, told] : rows.told) {
      const std::string_view module = module_around(rank_, call);
      if (!told.place || module.empty()) continue;
      const auto [known, added] = modules.try_emplace(*told.place, module);
      if (known->second != module) return true;
    }
    return false;
  }

  // Takes the places as rows. For units, only those of which something came back.
  void take(std::int64_t comm, const Rows& rows, const Sizes& order, bool units) {
    std::vector<bool> proved(order.size(), !units);
    std::map<std::size_t, std::uint32_t> first;
    for (const auto& [call, told] : rows.told) {
      if (!told.place) continue;
      first.try_emplace(*told.place, call);
      if (told.op != LayerOp::forward) proved[*told.place] = true;
    }
    std::vector<std::size_t> numbers(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (!proved[i] || !first.contains(i)) continue;
      const auto [known, added] = index_.try_emplace(comm, found_.comms.size());
      if (added) found_.comms.push_back({.comm = comm});
      std::vector<RankRow>& all = found_.comms[known->second].rows;
      numbers[i] = all.size();
      all.push_back({.unit = units, .call = kind(first[i])});
    }
    for (const auto& [call, told] : rows.told) {
      if (told.place && proved[*told.place]) {
        found_.none.erase(call);
        found_.places[call] = {index_[comm], numbers[*told.place], told.op};
      } else {
        found_.none[call] = told.place ? NoLayer::data : NoLayer::order;
      }
    }
  }

  // Finds the buckets among the remaining reductions of backward passes.
  void find_buckets(std::int64_t comm, CommCalls& of) {
    std::map<Sizes, std::size_t> times;
    std::map<std::size_t, std::pair<Places, Sizes>> passes;
    for (const auto& [number, p] : of.passes) {
      auto& [calls, order] = passes[number];
      for (const Places* places : {&p.scatters, &p.reduces}) {
        for (const std::uint32_t place : *places) {
          const std::uint64_t count = kind(place).count;
          const bool scatter = kind(place).bucket == Bucket::RESHARDING;
          if (of.activations.contains(count)) continue;
          if (!scatter && kind(place).bytes < calls_.least_gradient) continue;
          if (scatter && (of.scatters_ahead || of.gathered.contains(count))) continue;
          calls.push_back(place);
        }
      }
      std::ranges::sort(calls, {}, [&](std::uint32_t c) { return rank_.calls[c].ts_ns; });
      order = sizes(calls);
      ++times[order];
    }
    const Sizes order = common_order(times);
    Rows rows;
    std::set<std::int64_t> seen;
    for (const auto& [number, pass] : passes) {
      const auto& [calls, counts] = pass;
      const auto places = places_in(counts, order);
      if (places && !calls.empty()) seen.insert(calls_.steps[number]);
      for (std::size_t i = 0; i < calls.size(); ++i) {
        const bool scatter = kind(calls[i]).bucket == Bucket::RESHARDING;
        rows.add(calls[i], places ? std::optional((*places)[i]) : std::nullopt,
                 scatter ? LayerOp::scattered : LayerOp::reduced);
      }
    }
    if (seen.size() >= kFewestSteps && mostly_told(rows)) {
      take(comm, rows, order, false);
    } else {
      for (const auto& [place, row] : rows.told) found_.none[place] = NoLayer::order;
    }
  }

  const LayerCalls& rank_;
  CallsOfPasses calls_;
  std::map<std::int64_t, std::size_t> index_;  // of communicators in `found_`
  RankLayers found_;
};

}  // namespace

RankLayers layers_of(const LayerCalls& rank, const Passes& passes,
                     const std::set<std::int64_t>& carriers) {
  return Mapper(rank, calls_of_passes(rank, passes)).map(carriers);
}

}  // namespace tprof::stats
