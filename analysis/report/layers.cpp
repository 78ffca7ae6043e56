#include "report/views.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "diagnose/names.h"
#include "report/figures.h"
#include "report/steps.h"
#include "text/text.h"

namespace tprof::report {
namespace {

using read::Amounts;
using stats::LayerGroup;
using stats::LayerRow;
using stats::Layers;
using stats::NamedBy;
using stats::NoLayer;
using text::thousands;

constexpr std::size_t kGroupsShown = 8;
constexpr std::size_t kRowsShown = 100;  // per group

Amounts sum(const LayerRow& row) {
  Amounts all;
  for (const Amounts& a : row.ops) all += a;
  return all;
}

// Returns the calls of a rank per step. A whole number is shown as such.
std::string per_step(std::uint64_t calls, std::uint64_t rank_steps) {
  if (calls == 0 || rank_steps == 0) return "-";
  if (calls % rank_steps == 0) return thousands(calls / rank_steps);
  return fmt::format("{:.2f}", static_cast<double>(calls) / static_cast<double>(rank_steps));
}

std::size_t units_of(const LayerGroup& group) {
  return static_cast<std::size_t>(std::ranges::count_if(group.rows, &LayerRow::unit));
}

std::string heading(const LayerGroup& group) {
  const std::size_t units = units_of(group);
  const std::size_t buckets = group.rows.size() - units;
  std::string what;
  if (units != 0) what = diagnose::counted(units, "unit");
  if (buckets != 0) what += (units == 0 ? "" : " and ") + diagnose::counted(buckets, "bucket");
  return fmt::format("  {} {}, on {} of {} ranks: {}\n", group.ranks.size() == 1 ? "rank" : "ranks",
                     text::ranges(group.ranks),
                     static_cast<std::int64_t>(group.ranks.size()) == group.nranks
                         ? "a communicator"
                         : "communicators",
                     group.nranks, what);
}

// A row, and its operations together.
struct SummedRow {
  const LayerRow* row;
  Amounts amounts;
};

std::vector<SummedRow> summed(const LayerGroup& group) {
  std::vector<SummedRow> rows;
  for (const LayerRow& row : group.rows) rows.push_back({&row, sum(row)});
  return rows;
}

template <typename Of>
Column<SummedRow> of_row(const char* title, const char* key, Unit unit, Of of,
                         Show show = Show::always) {
  return {title, key, unit, [of](const SummedRow& r) { return Value(of(*r.row)); }, show};
}

bool timed(const LayerGroup& group) {
  return std::ranges::any_of(group.rows,
                             [](const LayerRow& r) { return sum(r).device_timed != 0; });
}

std::vector<Column<SummedRow>> layer_columns(const LayerGroup& group) {
  using Row = SummedRow;
  const auto kind = [](const LayerRow& r) { return std::string(r.unit ? "unit" : "bucket"); };
  std::vector<Column<Row>> all = {
      of_row("", nullptr, Unit::text,
             [kind](const LayerRow& r) { return fmt::format("{} {}", kind(r), r.place); }),
      of_row(nullptr, "kind", Unit::text, kind),
      of_row(nullptr, "place", Unit::number, [](const LayerRow& r) { return r.place; }),
      {"name", "name", Unit::name, [](const Row& r) { return or_unknown(r.row->name); },
       Show::if_any},
      of_row(nullptr, "named_by", Unit::name,
             [](const LayerRow& r) {
               return or_unknown(
                   std::string(stats::kNamedByNames[static_cast<std::size_t>(r.named)]));
             }),
      of_row(nullptr, "count", Unit::count, [](const LayerRow& r) { return r.count; }),
      of_row(
          "elements", "elements", Unit::count, [](const LayerRow& r) { return r.elements; },
          Show::if_room),
      of_row("size", "bytes", Unit::bytes, [](const LayerRow& r) { return r.bytes; }),
      of_row(nullptr, "dtype", Unit::text, [](const LayerRow& r) { return r.dtype; })};
  for (std::size_t op = 0; op < stats::kLayerOps; ++op) {
    const char* name = stats::kLayerOpNames[op].data();
    all.push_back({name, nullptr, Unit::right_text,
                   [op, steps = group.rank_steps](const Row& r) {
                     const std::uint64_t calls = r.row->ops[op].calls;
                     return calls == 0 ? Value() : Value(per_step(calls, steps));
                   },
                   Show::if_any});
    all.push_back(of_row(nullptr, name, Unit::text, [op](const LayerRow& r) {
      const Amounts& a = r.ops[op];
      return a.calls == 0 ? Value() : Value(call_figures(a));
    }));
  }
  append(all, {figure<Row>("calls", nullptr, Unit::count, &Amounts::calls, Show::if_room),
               figure<Row>("bytes", nullptr, Unit::bytes, &Amounts::bytes, Show::if_room),
               host_time_column<Row>(timed(group) ? Show::if_room : Show::always),
               device_time_column<Row>("device time", nullptr, Show::if_any)});
  return all;
}

std::vector<BucketRow> left_rows(const Layers& layers) {
  std::vector<BucketRow> rows;
  for (const auto& [why, buckets] : layers.left) {
    const std::string name(stats::kNoLayerNames[static_cast<std::size_t>(why)]);
    for (const Bucket bucket : stats::kLayerBuckets) {
      const Amounts& a = buckets[static_cast<std::size_t>(bucket)];
      if (a.calls != 0) rows.push_back({name, std::string(bucket_name(bucket)), a});
    }
  }
  return rows;
}

std::vector<Column<BucketRow>> left_columns() {
  std::vector<Column<BucketRow>> all = bucket_columns("in no layer", "why");
  all.push_back(figure<BucketRow>(nullptr, "host_ns", Unit::ns, &Amounts::host_ns));
  return all;
}

bool any_named(const Layers& layers, NamedBy by) {
  return std::ranges::any_of(layers.groups, [by](const LayerGroup& g) {
    return std::ranges::any_of(g.rows, [by](const LayerRow& r) { return r.named == by; });
  });
}

// Explains the figures, and what they rest on.
std::string notes(const Layers& layers) {
  const auto left = [&](NoLayer why) { return layers.left.contains(why); };
  std::string out;
  if (!layers.groups.empty()) {
    out +=
        "  forward, backward: all-gathers of one step and rank, made by the thread that calls "
        "backward() and by autograd's threads; scattered, reduced: reduce-scatters and all-reduces "
        "of gradients.\n";
  }
  const bool units =
      std::ranges::any_of(layers.groups, [](const LayerGroup& g) { return units_of(g) != 0; });
  if (units) {
    out +=
        "  unit: data that forward passes gather at one place in their order, and backward passes "
        "gather again or reduce-scatter: sharded parameters, as a rule. Units of one size are told "
        "apart by this order, which backward passes reverse; data that a pass gathers twice counts "
        "as two units.\n";
  }
  if (std::ranges::any_of(layers.groups,
                          [](const LayerGroup& g) { return units_of(g) != g.rows.size(); })) {
    out +=
        "  bucket: data that most backward passes reduce at one place in their order, and no "
        "forward pass gathers or reduces: gradients, as a rule.\n";
  }
  if (any_named(layers, NamedBy::module)) out += "  name: the module's, from FSDP's own ranges.\n";
  if (any_named(layers, NamedBy::range)) {
    out +=
        "  name: the innermost NVTX range around all forward gathers of a unit and none of "
        "another; where parameters are fetched ahead, it may be the layer before.\n";
  }
  if (any_named(layers, NamedBy::site)) {
    out +=
        "  name: the innermost line of the program that all forward gathers of a unit come from, "
        "and "
        "none of another.\n";
  }
  if (left(NoLayer::order)) {
    out +=
        "  order: calls in passes that differ from most, and calls that nothing assigns to a "
        "unit.\n";
  }
  if (left(NoLayer::data)) {
    out +=
        "  data: calls that nothing shows to carry parameters or gradients (they may be data, "
        "activations, norms, flags).\n";
  }
  if (left(NoLayer::behind)) {
    out +=
        "  behind: calls in no forward or backward pass: after the last one of a step (optimizer, "
        "evaluation, checkpoint), or on another thread.\n";
  }
  if (left(NoLayer::outside)) {
    out += "  outside: calls outside all steps (setup), without a line, or in CUDA graphs.\n";
  }
  if (!layers.adds_up) {
    out +=
        "  Rows do not add up to the totals: the lines are newer than the last ledger, so what is "
        "outside is not known.\n";
  }
  return out;
}

std::string why_none(const Layers& layers, const steps::Found& found) {
  if (found.how == steps::How::none) {
    return "no steps are known, so no layers: " + found.why;
  }
  if (layers.unnamed.size() == found.ranks.size()) {
    return "no thread is known to be autograd's, so forward and backward passes can't be told "
           "apart";
  }
  return "forward passes share no order of gathers that backward passes gather again or "
         "reduce-scatter, and backward passes share no order of reduced gradients";
}

}  // namespace

std::vector<Section> sections_of(const Layers& layers, const steps::Found& found, For who) {
  const bool people = who == For::people;
  const std::size_t n = layers.groups.size();
  std::vector<Section> all = {{.title = "Layers"}};
  for (std::size_t i = 0; i < (people ? std::min(n, kGroupsShown) : n); ++i) {
    const LayerGroup& group = layers.groups[i];
    all.push_back({.lead = heading(group),
                   .table = sheet(layer_columns(group), summed(group), who),
                   .at = fmt::format("/groups/{}/rows", i),
                   .facts = {{"ranks", group.ranks},
                             {"nranks", group.nranks},
                             {"rank_steps", group.rank_steps}},
                   .room = {.rows = kRowsShown}});
  }
  Section& left = all.emplace_back();
  left.at = "/left";
  left.facts = {{"why", n == 0 ? Json(why_none(layers, found)) : Json()},
                {"adds_up", layers.adds_up}};
  if (n == 0) {
    left.facts["groups"] = Json::array();
    left.lead = "  None: " + why_none(layers, found) + ".\n";
    if (people && found.how == steps::How::none) return all;
  }
  if (n > kGroupsShown) {
    left.lead =
        fmt::format("  and {} more kinds of ranks (all of them: --json)\n", n - kGroupsShown);
  }
  const std::vector<BucketRow> rows = left_rows(layers);
  if (!rows.empty()) left.table = sheet(left_columns(), rows, who);
  left.notes = notes(layers);
  if (!layers.unnamed.empty() && n != 0) {
    left.notes +=
        fmt::format("  {}: no thread is known to be autograd's, so nothing is told of them.\n",
                    diagnose::names_of(layers.unnamed));
  }
  left.notes += how_found(found);
  return all;
}

}  // namespace tprof::report
