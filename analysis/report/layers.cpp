#include "report/views.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "check/names.h"
#include "tables/layers.h"
#include "text/text.h"

namespace tprof::report {
namespace {

using read::Amounts;
using tables::LayerGroup;
using tables::LayerRow;
using tables::Layers;
using tables::NamedBy;
using tables::NoLayer;
using text::thousands;

constexpr std::size_t kGroupsShown = 8;
constexpr std::size_t kRowsShown = 100;  // per group

// Returns the calls of a rank per step, whole numbers without decimals.
std::string per_step(std::uint64_t calls, std::uint64_t rank_steps) {
  if (calls == 0 || rank_steps == 0) return "-";
  if (calls % rank_steps == 0) return thousands(calls / rank_steps);
  return fmt::format("{:.2f}", static_cast<double>(calls) / static_cast<double>(rank_steps));
}

std::string heading(const LayerGroup& group) {
  const auto units = static_cast<std::size_t>(std::ranges::count_if(group.rows, &LayerRow::unit));
  const std::size_t buckets = group.rows.size() - units;
  std::string what;
  if (units != 0) what = check::counted(units, "unit");
  if (buckets != 0) what += (units == 0 ? "" : " and ") + check::counted(buckets, "bucket");
  std::string who = text::names_of(text::Ranks(group.ranks));
  if (group.no_ranks) who += fmt::format("{}processes without a rank", who.empty() ? "" : " and ");
  return fmt::format("{}, on {} of {} ranks: {}", who,
                     static_cast<std::int64_t>(group.ranks.size()) == group.nranks
                         ? "a communicator"
                         : "communicators",
                     group.nranks, what);
}

std::string kind(const LayerRow& r) {
  return r.unit ? "unit" : "bucket";
}

std::vector<Column<LayerRow>> layer_columns(const LayerGroup& group) {
  using Row = LayerRow;
  const bool timed =
      std::ranges::any_of(group.rows, [](const Row& r) { return r.amounts.device_timed != 0; });
  std::vector<Column<Row>> all = {
      {"", nullptr, Unit::text,
       [](const Row& r) { return fmt::format("{} {}", kind(r), r.place); }},
      {nullptr, "kind", Unit::text, kind},
      {nullptr, "place", Unit::number, &Row::place},
      {"name", "name", Unit::name, &Row::name, Show::if_any},
      {nullptr, "named_by", Unit::name,
       [](const Row& r) { return tables::kNamedByNames[static_cast<std::size_t>(r.named)]; }},
      {nullptr, "count", Unit::count, &Row::count},
      {"elements", "elements", Unit::count, &Row::elements, Show::if_room},
      {"size", "bytes", Unit::bytes, &Row::bytes},
      {nullptr, "dtype", Unit::text, [](const Row& r) { return r.dtype.str(); }}};
  for (std::size_t op = 0; op < tables::kLayerOps; ++op) {
    const char* name = tables::kLayerOpNames[op].data();
    const auto shown = [op, steps = group.rank_steps](const Row& r) {
      return r.ops[op].calls == 0 ? Value() : Value(per_step(r.ops[op].calls, steps));
    };
    all.push_back({name, nullptr, Unit::right_text, shown, Show::if_any});
    all.push_back({nullptr, name, Unit::text, [op](const Row& r) {
                     return r.ops[op].calls == 0 ? Value() : Value(figures(r.ops[op]));
                   }});
  }
  append(all, Figures{{"calls", nullptr, Unit::count, &Amounts::calls, Show::if_room},
                      {"bytes", nullptr, Unit::bytes, &Amounts::bytes, Show::if_room}});
  append(all, people_only(time_figures(timed)));
  return all;
}

std::vector<BucketRow> left_rows(const Layers& layers) {
  std::vector<BucketRow> rows;
  for (const auto& [why, buckets] : layers.left) {
    const std::string name(tables::kNoLayerNames[static_cast<std::size_t>(why)]);
    for (const Bucket bucket : tables::kLayerBuckets) {
      const Amounts& a = buckets[static_cast<std::size_t>(bucket)];
      if (a.calls != 0) rows.push_back({name, std::string(bucket_name(bucket)), a});
    }
  }
  return rows;
}

std::vector<Column<BucketRow>> left_columns() {
  std::vector<Column<BucketRow>> all = bucket_columns("in no layer", "why");
  append(all, Figures{{nullptr, "host_ns", Unit::ns, &Amounts::host_ns}});
  return all;
}

// Explains the figures and their evidence.
Notes notes(const Layers& layers) {
  bool units = false;
  bool buckets = false;
  std::set<NamedBy> named;
  for (const LayerGroup& group : layers.groups) {
    for (const LayerRow& row : group.rows) {
      (row.unit ? units : buckets) = true;
      named.insert(row.named);
    }
  }
  const auto left = [&](NoLayer why) { return layers.left.contains(why); };
  return notes_if(
      {{units || buckets,
        "forward, backward: all-gathers of one step and rank, made by the thread that calls "
        "backward() and by autograd's threads; scattered, reduced: reduce-scatters and all-reduces "
        "of gradients."},
       {units,
        "unit: data that forward passes gather at one place in their order, and backward passes "
        "gather again or reduce-scatter: usually sharded parameters. This order, which backward "
        "passes reverse, separates units of equal size; data that a pass gathers twice counts as "
        "two units."},
       {buckets,
        "bucket: data that most backward passes reduce at one place in their order, and no forward "
        "pass gathers or reduces: usually gradients."},
       {named.contains(NamedBy::module), "name: the module's, from FSDP's own ranges."},
       {named.contains(NamedBy::range),
        "name: the innermost NVTX range around all forward gathers of a unit and no others; with "
        "prefetching it may be the previous layer."},
       {named.contains(NamedBy::site),
        "name: the innermost program line that all forward gathers of a unit come from, and no "
        "others."},
       {left(NoLayer::order),
        "order: calls in passes that differ from most, and calls that nothing assigns to a unit."},
       {left(NoLayer::data),
        "data: calls not known to carry parameters or gradients (they may be data, activations, "
        "norms, flags)."},
       {left(NoLayer::behind),
        "behind: calls in no forward or backward pass: after the last one of a step (optimizer, "
        "evaluation, checkpoint), or on another thread."},
       {left(NoLayer::outside),
        "outside: calls outside all steps (setup), without a line, or in CUDA graphs."},
       {!layers.adds_up,
        "Rows do not add up to the totals: the lines are newer than the last ledger, so calls "
        "outside are unknown."}});
}

std::string why_none(const Layers& layers, const tables::Summary& s) {
  const steps::Found& found = s.found;
  if (found.how == steps::How::none) {
    return "no steps are known, so no layers: " + found.why;
  }
  if (const std::string_view by = job::no_lines_by(*s.job); !by.empty()) {
    return fmt::format("no call has a line ({})", by);
  }
  if (layers.unnamed.size() == found.ranks.size()) {
    return "no thread is known to be autograd's, so forward and backward passes can't be told "
           "apart";
  }
  return "neither forward passes nor backward passes make their calls in a common order";
}

}  // namespace

std::vector<Section> layer_sections(const tables::Summary& s, For who) {
  const steps::Found& found = s.found;
  const Layers layers = tables::layers_of(
      *s.lines, found, s.only_steps.value_or(tables::StepList{}), s.buckets, s.comms);
  const bool people = who == For::people;
  const std::size_t n = layers.groups.size();
  std::vector<Section> all = {{.title = "Layers"}};
  for (std::size_t i = 0; i < (people ? std::min(n, kGroupsShown) : n); ++i) {
    const LayerGroup& group = layers.groups[i];
    all.push_back({.lead = {heading(group)},
                   .table = sheet(layer_columns(group), group.rows, who),
                   .at = fmt::format("/groups/{}/rows", i),
                   .facts = {{"ranks", group.ranks},
                             {"nranks", group.nranks},
                             {"rank_steps", group.rank_steps}},
                   .room = {.rows = kRowsShown}});
  }
  Section& left = all.emplace_back();
  left.at = "/left";
  left.facts = {{"why", n == 0 ? Json(why_none(layers, s)) : Json()}, {"adds_up", layers.adds_up}};
  if (n == 0) {
    left.facts["groups"] = Json::array();
    left.lead = {"None: " + why_none(layers, s) + "."};
    if (people && found.how == steps::How::none) return all;
  }
  if (n > kGroupsShown) {
    left.lead = {fmt::format("and {} more kinds of ranks (all of them: --json)", n - kGroupsShown)};
  }
  const std::vector<BucketRow> rows = left_rows(layers);
  if (!rows.empty()) left.table = sheet(left_columns(), rows, who);
  left.notes = notes(layers);
  if (!layers.unnamed.empty() && n != 0) {
    left.notes.push_back(
        fmt::format("{}: no thread is known to be autograd's, so their layers are unknown.",
                    check::names_of(layers.unnamed)));
  }
  append(left.notes, how_found(found));
  return all;
}

}  // namespace tprof::report
