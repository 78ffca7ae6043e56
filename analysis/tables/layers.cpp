#include "tables/layers.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "interpose/format/step_mark.h"
#include "tables/comms.h"
#include "tables/durations.h"
#include "tables/rank_calls.h"
#include "tables/sites.h"

namespace tprof::tables {
namespace {

using read::Amounts;
using read::Process;
using CommId = std::pair<std::string, std::int64_t>;  // id and size of a communicator

constexpr std::size_t kFewestSteps = 2;  // in which a layer must be seen

using Sizes = std::vector<std::uint64_t>;  // of the calls of a pass, in order

bool moves_layers(Bucket bucket) {
  return std::ranges::find(kLayerBuckets, bucket) != std::end(kLayerBuckets);
}

std::map<std::uint64_t, Places> by_size(const Sizes& calls) {
  std::map<std::uint64_t, Places> places;
  for (std::uint32_t i = 0; i < calls.size(); ++i) places[calls[i]].push_back(i);
  return places;
}

// Returns the index of each call of a pass in the template, or in the reversed one. Calls of a size
// have an index if there are as many as in the template, and in the same order.
std::vector<std::optional<std::size_t>> places_in(const Sizes& usual, const Sizes& calls,
                                                  bool reversed) {
  std::vector<std::optional<std::size_t>> told(calls.size());
  auto in_template = by_size(usual);
  Places several;
  for (const auto& [size, mine] : by_size(calls)) {
    Places& places = in_template[size];
    if (places.size() != mine.size()) continue;
    if (reversed) std::ranges::reverse(places);
    for (std::size_t i = 0; i < mine.size(); ++i) told[mine[i]] = places[i];
    if (mine.size() > 1) several.insert(several.end(), mine.begin(), mine.end());
  }
  std::ranges::sort(several);
  if (reversed) std::ranges::reverse(several);
  if (!std::ranges::is_sorted(several, {}, [&](std::uint32_t call) { return told[call]; })) {
    for (const std::uint32_t call : several) told[call].reset();
  }
  return told;
}

// Returns the template: the longest sequence of a pass, restricted to sizes that occur as often as
// in most passes. `all`: the calls of all passes.
Sizes template_of(const std::vector<Sizes>& all) {
  std::map<std::uint64_t, std::map<std::size_t, std::size_t>> times;  // by size and number of calls
  for (const Sizes& of : all) {
    for (const auto& [size, calls] : by_size(of)) ++times[size][calls.size()];
  }
  Sizes best;
  for (Sizes of : all) {
    const auto calls = by_size(of);
    std::erase_if(of, [&](std::uint64_t size) {
      const auto passes = [](const auto& entry) { return entry.second; };
      return calls.at(size).size() != std::ranges::max_element(times[size], {}, passes)->first;
    });
    if (of.size() > best.size()) best = std::move(of);
  }
  return best;
}

std::string_view module_of(std::string_view range) {
  for (const std::string_view label : {"FSDP::all_gather", "FSDP::post_backward_reduce"}) {
    if (range == label) return "(root)";  // a module without a name
    if (!range.starts_with(label) || !range.ends_with(')')) continue;
    range.remove_prefix(label.size());
    if (range.starts_with(" (")) return range.substr(2, range.size() - 3);
  }
  return {};
}

// Removes what emit_nvtx adds, since those numbers change with each call.
std::string_view without_numbers(std::string_view name) {
  return name.substr(0, std::min(name.find(", seq = "), name.find(", op_id = ")));
}

// Finds the layers of a rank after its last line, and frees its calls.
struct LayersOfRank : RankCalls {
  LayersOfRank(const Process& of, const std::vector<steps::Interval>& of_rank,
               const StepList& which, const std::set<CommId>& by_name)
      : RankCalls(of), steps(of_rank), asked(which), activations(by_name), sites(of) {}
  static constexpr std::size_t kMostNames = 10'000;
  static constexpr std::size_t kMostAround = 16;         // per call
  static constexpr std::size_t kMostWithin = kMost / 4;  // calls

  void range(const read::Range& r) {
    RankCalls::range(r);
    const std::string name(without_numbers(r.name));
    if (names.size() == kMostNames && !names.contains(name)) return;
    for (const std::uint32_t i : within(r)) {
      if (!moves_layers(kind(i).bucket) || around.size() == kMostWithin) continue;
      std::vector<const std::string*>& of = around[i];
      const std::string* known = &*names.insert(name).first;
      if (of.size() < kMostAround && std::ranges::count(of, known) == 0) of.push_back(known);
    }
  }
  void device_time(const read::DeviceTime& t) {
    if (t.calls != 1 || !t.comm || !t.seq || device_ns.size() == kMost) return;
    device_ns[{*t.comm, *t.seq}] = read::not_below_0(t.dur_ns);
  }
  void metadata(const read::Line& line) { sites.metadata(line); }

  Amounts timed(std::uint32_t i) const {
    Amounts a = amounts(i);
    const auto known = device_ns.find({kind(i).comm, calls[i].seq});
    if (known == device_ns.end()) return a;
    a.device_ns = known->second;
    a.device_timed = 1;
    return a;
  }
  // Calls see(by, name) for everything around a call, the innermost of each kind first; only
  // modules, unless it is a forward gather.
  template <typename See>
  void each_around(std::uint32_t i, bool forward, const See& see) const {
    if (const auto ranges = around.find(i); ranges != around.end()) {
      for (const std::string* name : ranges->second) {
        if (const auto module = module_of(*name); !module.empty()) see(NamedBy::module, module);
        if (forward) see(NamedBy::range, *name);
      }
    }
    const SiteKey* site = forward ? sites.find(calls[i].site) : nullptr;
    if (site == nullptr) return;
    std::set<std::string> seen;  // a recursive function counts once
    for (const SiteFrame& f : site->frames) {
      const std::string text = text_of(f);
      if (of_program(f) && seen.insert(text).second) see(NamedBy::site, text);
    }
  }

  void end();

  const std::vector<steps::Interval>& steps;
  const StepList& asked;
  const std::set<CommId>& activations;  // communicators of activations, by name
  std::set<std::string> names{};
  // By call index: the ranges around a call that moves layers, innermost first, each once.
  std::map<std::uint32_t, std::vector<const std::string*>> around{};
  std::map<std::pair<std::int64_t, std::uint64_t>, std::uint64_t>
      device_ns{};  // by communicator and number
  SiteLines sites;
  // Valid after end(): its layers, and the calls that are in none.
  std::map<CommId, LayerGroup> comms{};
  std::map<NoLayer, Buckets> left{};
  bool autograd = false;
};

// Finds the layers of a rank.
class Mapper {
 public:
  explicit Mapper(LayersOfRank& rank)
      : rank_(rank), passes_(passes_of(rank, rank.steps)), told_(rank.calls.size()) {
    for (const auto& [number, comm] : rank.rank->comms) {
      const bool several = comm.known() && comm.nranks > 1;
      if (several && !rank.activations.contains({comm.id, comm.nranks})) carriers_.insert(number);
    }
  }

  void map() {
    for (std::size_t n = 0; n < passes_.all.size(); ++n) {
      visit(n, passes_.all[n].ahead, true);
      visit(n, passes_.all[n].backward, false);
      visit(n, passes_.all[n].late, false);
    }
    find_replicas();
    std::map<Family, Lists> families;
    for (const auto& [pass, call, op] : made_) {
      const auto family = op ? family_of(rank_.kind(call), *op) : std::nullopt;
      if (!family) continue;
      told_[call].op = *op;
      families[*family][{pass, family->second ? LayerOp::forward : *op}].push_back(call);
    }
    for (const auto& [family, lists] : families) place(family, lists);
    add_up();
  }

 private:
  // Layers whose calls are ordered: the units, or the buckets (true), of a communicator.
  using Family = std::pair<std::int64_t, bool>;
  // The calls of a family by pass and operation, in order.
  using Lists = std::map<std::pair<std::size_t, LayerOp>, Places>;
  // A call of a pass, except flags and scales.
  struct Made {
    std::size_t pass = 0;
    std::uint32_t call = 0;
    std::optional<LayerOp> op{};  // nullopt: activations
  };
  struct Told {
    NoLayer none = NoLayer::behind;
    LayerOp op = LayerOp::forward;
    LayerGroup* group = nullptr;  // the group with its row
    std::size_t row = 0;
  };
  // An entry of the template.
  struct Place {
    Places calls{};
    std::set<std::int64_t> steps{};
    bool back = false;  // parameters came back in the backward pass
    LayerRow row{};
  };
  // The use that passes make of data of one size on a communicator: a bit for each operation, and
  // one for reducing or scattering it before a backward pass.
  static constexpr unsigned bit(LayerOp op) { return 1U << static_cast<unsigned>(op); }
  static constexpr unsigned kActivations = 1U << kLayerOps;
  using MadeWith = std::map<std::uint64_t, unsigned>;

  void visit(std::size_t pass, const Places& calls, bool ahead) {
    for (const std::uint32_t call : calls) {
      const CallKind& k = rank_.kind(call);
      told_[call].none = NoLayer::data;
      if (!moves_layers(k.bucket) || k.bytes <= kScalarBytes) continue;
      std::optional<LayerOp> op;
      if (k.bucket == Bucket::ALLGATHER) {
        op = ahead ? LayerOp::forward : LayerOp::again;
      } else if (!ahead) {
        op = k.bucket == Bucket::RESHARDING ? LayerOp::scattered : LayerOp::reduced;
      }
      made_.push_back({pass, call, op});
      made_with_[k.comm][k.count] |= op ? bit(*op) : kActivations;
      const auto bytes = static_cast<double>(k.bytes);
      if (op == LayerOp::again || op == LayerOp::scattered) sharded_bytes_[k.comm] += bytes;
      if (op == LayerOp::reduced && passes_.gradient(k)) sharded_bytes_[k.comm] -= bytes;
    }
  }

  static std::set<std::uint64_t> made_by(LayerOp op, const MadeWith& sizes) {
    std::set<std::uint64_t> counts;
    for (const auto& [count, made] : sizes) {
      if ((made & bit(op)) != 0) counts.insert(count);
    }
    return counts;
  }

  // For hybrid sharding: replicas all-reduce the shards of gradients that another communicator
  // scatters.
  void find_replicas() {
    for (const auto& [comm, sizes] : made_with_) {
      const std::set<std::uint64_t> reduced = made_by(LayerOp::reduced, sizes);
      for (const auto& [other, theirs] : made_with_) {
        const std::set<std::uint64_t> scattered = made_by(LayerOp::scattered, theirs);
        if (other != comm && !scattered.empty() && std::ranges::includes(reduced, scattered)) {
          shards_of_[comm] = other;
        }
      }
    }
  }

  // True for parameters, which come back in the backward pass: gathered again, or as gradients. If
  // gradients are all-reduced (DDP), gathered data is something else.
  bool unit(std::int64_t comm, std::uint64_t count) const {
    const auto made = made_with_.at(comm).find(count);
    const unsigned mask = made == made_with_.at(comm).end() ? kActivations : made->second;
    return (mask & (bit(LayerOp::forward) | kActivations)) == bit(LayerOp::forward) &&
           (mask & (bit(LayerOp::again) | bit(LayerOp::scattered))) != 0 &&
           sharded_bytes_.at(comm) >= 0;
  }

  std::optional<Family> family_of(const CallKind& k, LayerOp op) const {
    const auto shards = shards_of_.find(k.comm);
    const bool replica = op == LayerOp::reduced && shards != shards_of_.end();
    const std::int64_t home = replica ? shards->second : k.comm;
    if (!carriers_.contains(home)) return std::nullopt;
    if ((replica || op != LayerOp::reduced) && unit(home, k.count)) return Family(home, false);
    const unsigned made = made_with_.at(k.comm).at(k.count);
    const bool gradient = op == LayerOp::reduced
                              ? k.bytes >= passes_.least_gradient
                              : op == LayerOp::scattered && (made & bit(LayerOp::forward)) == 0;
    if (!gradient || (made & kActivations) != 0 || !carriers_.contains(k.comm)) return std::nullopt;
    return Family(k.comm, true);
  }

  void place(const Family& family, const Lists& lists) {
    const auto sizes = [&](const Places& calls) {
      Sizes all;
      for (const std::uint32_t call : calls) all.push_back(rank_.kind(call).count);
      return all;
    };
    std::vector<Sizes> forward;
    for (const auto& [key, calls] : lists) {
      if (key.second == LayerOp::forward) forward.push_back(sizes(calls));
    }
    const Sizes usual = template_of(forward);
    std::vector<Place> places(usual.size());
    for (const auto& [key, calls] : lists) {
      const bool back = key.second != LayerOp::forward;
      const auto told = places_in(usual, sizes(calls), back);
      for (std::size_t i = 0; i < calls.size(); ++i) {
        told_[calls[i]].none = NoLayer::order;
        if (!told[i]) continue;
        Place& at = places[*told[i]];
        at.calls.push_back(calls[i]);
        at.steps.insert(passes_.all[key.first].step);
        at.back = at.back || back;
        see_names(calls[i], !back, at.row);
      }
    }
    take(family, usual, places);
  }

  void see_names(std::uint32_t call, bool forward, LayerRow& row) const {
    std::array<std::uint64_t, std::size(kNamedByNames)> within{};
    row.gathers += forward ? 1 : 0;
    rank_.each_around(call, forward, [&](NamedBy by, std::string_view name) {
      auto& [gathers, depth] = row.around[{by, std::string(name)}];
      gathers += forward ? 1 : 0;
      depth += within[static_cast<std::size_t>(by)]++;
    });
  }

  // Takes the entries that are layers. If FSDP2's ranges name two modules at one entry, calls of
  // this size have no fixed order.
  void take(const Family& family, const Sizes& usual, std::vector<Place>& places) {
    std::set<std::uint64_t> contradicted;
    for (std::size_t i = 0; i < places.size(); ++i) {
      const auto by_module = [](const auto& a) { return a.first.first == NamedBy::module; };
      if (std::ranges::count_if(places[i].row.around, by_module) > 1) contradicted.insert(usual[i]);
    }
    const read::Comm& comm = rank_.rank->comms.at(family.first);
    std::size_t number = 0;
    for (std::size_t i = 0; i < places.size(); ++i) {
      Place& at = places[i];
      const bool proved = family.second || at.back;
      if (!proved) {
        for (const std::uint32_t call : at.calls) told_[call].none = NoLayer::data;
      }
      if (!proved || at.steps.size() < kFewestSteps || contradicted.contains(usual[i])) continue;
      LayerGroup& group = rank_.comms[{comm.id, comm.nranks}];
      for (const std::uint32_t call : at.calls) {
        told_[call].group = &group;
        told_[call].row = group.rows.size();
      }
      const CallKind& k = rank_.kind(at.calls[0]);
      static_cast<LayerKey&>(at.row) = {!family.second, ++number, k.count,
                                        k.elements,     k.bytes,  k.dtype};
      group.rows.push_back(std::move(at.row));
    }
  }

  void add_up() {
    for (std::uint32_t i = 0; i < rank_.calls.size(); ++i) {
      const steps::Interval* step = steps::interval_at(rank_.steps, rank_.calls[i].ts_ns);
      const auto bucket = rank_.kind(i).bucket;
      if (!moves_layers(bucket) || step == nullptr || !rank_.asked.holds(step->step)) continue;
      const Told& told = told_[i];
      Amounts& to = told.group == nullptr
                        ? rank_.left[told.none][static_cast<std::size_t>(bucket)]
                        : told.group->rows[told.row].ops[static_cast<std::size_t>(told.op)];
      to += rank_.timed(i);
    }
    const auto steps = static_cast<std::uint64_t>(std::ranges::count_if(
        passes_.all, [&](const Pass& p) { return p.last && rank_.asked.holds(p.step); }));
    for (auto& [id, group] : rank_.comms) {
      const std::optional<std::int64_t> rank = rank_.rank->header.rank;
      if (rank) group.ranks = {*rank};
      group.no_ranks = !rank;
      group.nranks = id.second;
      group.rank_steps = steps;
    }
  }

  LayersOfRank& rank_;
  Passes passes_;
  std::set<std::int64_t> carriers_{};  // communicators that may carry parameters
  std::vector<Made> made_{};
  std::map<std::int64_t, MadeWith> made_with_{};      // by communicator
  std::map<std::int64_t, double> sharded_bytes_{};    // without all-reduced gradients
  std::map<std::int64_t, std::int64_t> shards_of_{};  // of replicas' communicators
  std::vector<Told> told_;                            // of each call
};

void LayersOfRank::end() {
  Mapper(*this).map();
  autograd = std::ranges::any_of(threads, [](const auto& t) { return t.second.autograd; });
  let_go();
  around.clear();
  names.clear();
  device_ns.clear();
  sites = SiteLines(*rank);
}

// The rows that the ranks of a group share.
using Shape = std::pair<std::int64_t, std::vector<LayerKey>>;

void merge(LayerGroup& to, const LayerGroup& more) {
  if (to.rows.empty()) {
    to = more;
    return;
  }
  to.ranks.insert(to.ranks.end(), more.ranks.begin(), more.ranks.end());
  to.no_ranks = to.no_ranks || more.no_ranks;
  to.rank_steps += more.rank_steps;
  for (std::size_t i = 0; i < to.rows.size(); ++i) {
    to.rows[i].gathers += more.rows[i].gathers;
    for (const auto& [name, seen] : more.rows[i].around) {
      to.rows[i].around[name].first += seen.first;
      to.rows[i].around[name].second += seen.second;
    }
    for (std::size_t op = 0; op < kLayerOps; ++op) to.rows[i].ops[op] += more.rows[i].ops[op];
  }
}

// Names rows by what is around all forward gathers of one row and no others.
void find_names(std::vector<LayerRow>& rows) {
  std::map<std::pair<NamedBy, std::string>, std::size_t> rows_with;
  for (const LayerRow& row : rows) {
    for (const auto& [name, around] : row.around) ++rows_with[name];
  }
  for (LayerRow& row : rows) {
    std::pair innermost(NamedBy::site, UINT64_MAX);
    for (const auto& [name, around] : row.around) {
      const bool all = around.first == row.gathers || name.first == NamedBy::module;
      const std::pair depth(name.first, around.second);
      if (!all || rows_with.at(name) != 1 || depth >= innermost) continue;
      innermost = depth;
      std::tie(row.named, row.name) = name;
    }
  }
}

template <typename Group, typename See>
void each_op(Group& group, const See& see) {
  constexpr Bucket kOf[] = {Bucket::ALLGATHER, Bucket::ALLGATHER, Bucket::RESHARDING,
                            Bucket::ALLREDUCE};
  for (auto& row : group.rows) {
    for (std::size_t op = 0; op < kLayerOps; ++op) {
      see(static_cast<std::size_t>(kOf[op]), row.ops[op]);
    }
  }
}

// All ranks of a communicator gather the same. If they seem not to, the majority is right, or else
// those with more rows.
void agree(const std::map<CommId, std::map<Shape, LayerGroup>>& comms, Layers& layers) {
  std::map<Shape, LayerGroup> groups;
  for (const auto& [id, seen] : comms) {
    const auto agreed = std::ranges::max_element(seen, {}, [](const auto& entry) {
      return std::pair(entry.second.ranks.size(), entry.second.rows.size());
    });
    for (const auto& entry : seen) {
      if (&entry == &*agreed) {
        merge(groups[entry.first], entry.second);
        continue;
      }
      each_op(entry.second, [&](std::size_t bucket, const Amounts& a) {
        if (a.calls != 0) layers.left[NoLayer::order][bucket] += a;
      });
    }
  }
  for (auto& [shape, group] : groups) {
    find_names(group.rows);
    for (LayerRow& row : group.rows) {
      for (const Amounts& a : row.ops) row.amounts += a;
    }
    std::ranges::sort(group.ranks);
    const auto again = std::ranges::unique(group.ranks);
    group.ranks.erase(again.begin(), again.end());
    layers.groups.push_back(std::move(group));
  }
  std::ranges::stable_sort(layers.groups, {}, &LayerGroup::ranks);
}

// Adds the rest of the totals: calls outside of steps, or without a line.
void add_outside(Layers& layers, const Buckets& totals) {
  Buckets told{};
  for (const auto& [why, buckets] : layers.left) tables::add(told, buckets);
  for (const LayerGroup& group : layers.groups) {
    each_op(group, [&](std::size_t bucket, const Amounts& a) { told[bucket] += a; });
  }
  for (const Bucket bucket : kLayerBuckets) {
    const auto b = static_cast<std::size_t>(bucket);
    const std::optional<Amounts> outside = without(totals[b], told[b]);
    layers.adds_up = layers.adds_up && outside;
    if (outside && outside->calls != 0) layers.left[NoLayer::outside][b] += *outside;
  }
}

}  // namespace

Layers layers_of(const run::Lines& lines, const steps::Found& found, const StepList& asked,
                 const Buckets& totals, const std::vector<CommSummary>& comms) {
  std::set<CommId> activations;
  for (const CommSummary& c : comms) {
    const bool named =
        c.role == "tensor" || c.role == "sequence" || c.role == "context" || c.role == "pipeline";
    if (named && !c.role_guessed) activations.emplace(c.id, c.nranks);
  }
  Layers layers;
  std::map<CommId, std::map<Shape, LayerGroup>> all;
  lines.each(
      [&](const Process& rank) {
        const auto steps = found.ranks.find(&rank);
        return steps == found.ranks.end()
                   ? std::nullopt
                   : std::optional<LayersOfRank>(std::in_place, rank, steps->second, asked,
                                                 activations);
      },
      [&](const LayersOfRank& rank) {
        for (const auto& [id, group] : rank.comms) {
          merge(all[id][{group.nranks, {group.rows.begin(), group.rows.end()}}], group);
        }
        for (const auto& [why, buckets] : rank.left) tables::add(layers.left[why], buckets);
        if (!rank.autograd) layers.unnamed.push_back(rank.rank);
      });
  agree(all, layers);
  add_outside(layers, totals);
  return layers;
}

}  // namespace tprof::tables
