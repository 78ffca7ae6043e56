#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "budget/file.h"
#include "budget/readings.h"
#include "budget/report.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/screen.h"
#include "read/error.h"
#include "text/text.h"

namespace tprof::cli {
namespace {

using budget::Way;

std::string dtype_of(const std::string& name) {
  static const std::map<std::string, std::string> kShort = {
      {"bf16", "bfloat16"}, {"fp16", "float16"}, {"fp32", "float32"}, {"fp64", "float64"}};
  const auto known = kShort.find(name);
  const std::string& dtype = known == kShort.end() ? name : known->second;
  if (budget::size_of(dtype) != 0) return dtype;
  throw read::BadInput(
      fmt::format("--dtype: expected a type such as bf16 or float32, found '{}'", name));
}

double needed(const char* option, double value, const char* of) {
  if (value > 0) return value;
  throw read::BadInput(fmt::format("{}: --model {} needs it, above 0", option, of));
}

budget::Model model_of(const BudgetOptions& o) {
  const std::string dtype = dtype_of(o.dtype.empty() ? "bf16" : o.dtype);
  budget::Model m{.params = o.params,
                  .root_params = o.root_params,
                  .layers = static_cast<double>(o.layers),
                  .dtype = dtype,
                  .reduce_dtype = o.reduce_dtype.empty() ? dtype : dtype_of(o.reduce_dtype),
                  .dtype_given = !o.dtype.empty(),
                  .reduce_given = !o.reduce_dtype.empty(),
                  .shards = static_cast<double>(o.shards),
                  .micro_batches = static_cast<double>(std::max<std::int64_t>(o.micro_batches, 1)),
                  .reshard = !o.no_reshard,
                  .offload = o.offload,
                  .tokens = static_cast<double>(o.tokens),
                  .hidden = static_cast<double>(o.hidden),
                  .reduced_in_layer = static_cast<double>(o.tp_reductions),
                  .tolerance = o.tolerance / 100};
  for (std::size_t at = 0; at <= o.model.size();) {
    const std::size_t end = std::min(o.model.find('+', at), o.model.size());
    const std::string name = o.model.substr(at, end - at);
    const auto* row = std::ranges::find(budget::kWays, name, &budget::WayRow::name);
    if (row == std::end(budget::kWays)) {
      throw read::BadInput(
          fmt::format("--model: expected ddp, zero1, zero2, zero3, fsdp, hsdp or tp, or two such "
                      "as fsdp+tp; found '{}'",
                      name));
    }
    m.ways.push_back(row->way);
    at = end + 1;
  }
  for (const Way way : m.ways) {
    const auto* name = std::ranges::find(budget::kWays, way, &budget::WayRow::way)->name.data();
    if (way != Way::tp) needed("--params", m.params, name);
    if (way != Way::tp) continue;
    needed("--layers", m.layers, name);
    needed("--tokens", m.tokens, name);
    needed("--hidden", m.hidden, name);
  }
  if (o.root_params > o.params) throw read::BadInput("--root-params: more than --params");
  if (!o.accumulate.empty()) {
    m.accumulate = o.accumulate == "every" ? budget::Accumulate::every : budget::Accumulate::last;
  }
  return m;
}

}  // namespace

int budget(const Options& o) {
  const BudgetOptions& b = o.budget;
  const bool given[] = {!b.model.empty(), !b.file.empty(), !b.write.empty()};
  if (std::ranges::count(given, true) != 1) {
    throw read::BadInput("expected one of --model, --budget FILE and --write FILE");
  }
  std::optional<budget::Model> model;
  if (!b.model.empty()) model = model_of(b);
  budget::Budget budget;
  if (!b.file.empty()) budget = budget::read_file(b.file);

  read::Traces traces = load(read::trace_files(o.paths));
  const filter::Filter only = filter::parsed(o.only);
  const job::Job job = filter::with_ranks(job::one_job(traces, o.choice), only.words.ranks);
  const run::Lines lines = lines_of(job, traces);
  const auto measured_as = [&](std::uint64_t micro_batches) {
    return budget::measure(lines,
                           {.steps = static_cast<std::uint64_t>(b.steps),
                            .micro_batches = micro_batches,
                            .each_is_step = b.micro_batches == 1,
                            .copies = b.offload || !b.write.empty() || budget::has_copies(budget)});
  };
  budget::Reading found;
  if (model) {
    found = budget::against(*model, measured_as);
  } else {
    const auto micro_batches =
        static_cast<std::uint64_t>(std::max<std::int64_t>(b.micro_batches, 1));
    if (!b.write.empty()) {
      const budget::Measured good = measured_as(micro_batches);
      budget::write_file(budget::of_run(good, b.tolerance / 100), b.write);
      return kOk;
    }
    found = budget::against(budget, micro_batches, measured_as);
  }
  const budget::Measured& measured = found.measured;
  budget::Compared& compared = found.compared;
  compared.only = only.words;
  compared.notes.insert(compared.notes.begin(), measured.notes.begin(), measured.notes.end());
  if (found.budget.nranks != 0 && found.budget.nranks != measured.nranks) {
    compared.notes.push_back(fmt::format(
        "the budget is of a job of {} ranks and this one has {}: what a rank moves in a step may "
        "differ for that alone",
        text::thousands(static_cast<std::uint64_t>(found.budget.nranks)),
        text::thousands(static_cast<std::uint64_t>(measured.nranks))));
  }
  show(o.json ? budget::to_json(job, measured, compared)
              : budget::to_text(measured, compared, columns_of_terminal().value_or(SIZE_MAX)),
       o.json);
  traces.skipped.insert(traces.skipped.end(), measured.unreadable.begin(),
                        measured.unreadable.end());
  say_findings(job, traces);
  const bool all_read = std::ranges::none_of(traces.skipped, &read::Skipped::unreadable);
  return compared.within && all_read ? kOk : kFinding;
}

}  // namespace tprof::cli
