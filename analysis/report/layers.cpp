#include "report/layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "diagnose/names.h"
#include "report/steps.h"
#include "report/times.h"
#include "text/text.h"

namespace tprof::report {
namespace {

using read::Amounts;
using stats::LayerGroup;
using stats::LayerRow;
using stats::Layers;
using stats::NamedBy;
using stats::NoLayer;
using text::Table;
using text::thousands;

using enum Table::Align;

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

std::string group_table(const LayerGroup& group) {
  const bool names = std::ranges::any_of(group.rows, [](const auto& r) { return !r.name.empty(); });
  const bool timed =
      std::ranges::any_of(group.rows, [](const auto& r) { return sum(r).device_timed != 0; });
  std::vector<std::pair<std::string, Table::Align>> columns = {{"", left}};
  if (names) columns.emplace_back("name", left);
  columns.insert(columns.end(), {{"elements", right}, {"size", right}});
  std::vector<std::size_t> ops;  // the operations that there are
  for (std::size_t op = 0; op < stats::kLayerOps; ++op) {
    const bool any =
        std::ranges::any_of(group.rows, [op](const auto& r) { return r.ops[op].calls != 0; });
    if (!any) continue;
    ops.push_back(op);
    columns.emplace_back(stats::kLayerOpNames[op], right);
  }
  columns.insert(columns.end(), {{"calls", right}, {"bytes", right}, {"host time", right}});
  if (timed) columns.emplace_back("device time", right);
  Table table(columns);
  for (std::size_t i = 0; i < std::min(group.rows.size(), kRowsShown); ++i) {
    const LayerRow& row = group.rows[i];
    const Amounts all = sum(row);
    std::vector<std::string> cells = {
        fmt::format("{} {}", row.unit ? "unit" : "bucket", row.place)};
    if (names) cells.push_back(text::printable(row.name));
    cells.insert(cells.end(), {thousands(row.elements), text::bytes(row.bytes)});
    for (const std::size_t op : ops) {
      cells.push_back(per_step(row.ops[op].calls, group.rank_steps));
    }
    cells.insert(cells.end(), {thousands(all.calls), text::bytes(all.bytes), host_time(all)});
    if (timed) cells.push_back(device_time(all));
    table.row(std::move(cells));
  }
  std::string out = table.str();
  if (group.rows.size() > kRowsShown) {
    out += fmt::format("  and {} more (all of them: --json)\n", group.rows.size() - kRowsShown);
  }
  return out;
}

std::string left_table(const Layers& layers) {
  Table table({{"in no layer", left},
               {"bucket", left},
               {"calls", right},
               {"elements", right},
               {"bytes", right}});
  bool any = false;
  for (const auto& [why, buckets] : layers.left) {
    std::string name(stats::kNoLayerNames[static_cast<std::size_t>(why)]);
    for (const Bucket bucket : stats::kLayerBuckets) {
      const Amounts& a = buckets[static_cast<std::size_t>(bucket)];
      if (a.calls == 0) continue;
      any = true;
      table.row({std::exchange(name, ""), std::string(bucket_name(bucket)), thousands(a.calls),
                 thousands(a.elements), text::bytes(a.bytes)});
    }
  }
  return any ? table.str() : "";
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

}  // namespace

std::string why_none(const Layers& layers) {
  if (layers.found.how == steps::How::none) {
    return "no steps are known, so no layers: " + layers.found.why;
  }
  if (layers.unnamed.size() == layers.found.ranks.size()) {
    return "no thread is known to be autograd's, so forward and backward passes can't be told "
           "apart";
  }
  return "forward passes share no order of gathers that backward passes gather again or "
         "reduce-scatter, and backward passes share no order of reduced gradients";
}

std::string layer_table(const Layers& layers) {
  if (layers.found.how == steps::How::none) return "  None: " + why_none(layers) + ".\n";
  std::string out;
  for (std::size_t i = 0; i < std::min(layers.groups.size(), kGroupsShown); ++i) {
    out += heading(layers.groups[i]) + group_table(layers.groups[i]);
  }
  if (layers.groups.size() > kGroupsShown) {
    out += fmt::format("  and {} more kinds of ranks (all of them: --json)\n",
                       layers.groups.size() - kGroupsShown);
  }
  if (layers.groups.empty()) out += "  None: " + why_none(layers) + ".\n";
  out += left_table(layers) + notes(layers);
  if (!layers.unnamed.empty() && !layers.groups.empty()) {
    out += fmt::format("  {}: no thread is known to be autograd's, so nothing is told of them.\n",
                       diagnose::names_of(layers.unnamed));
  }
  return out + how_found(layers.found);
}

}  // namespace tprof::report
