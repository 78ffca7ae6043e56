#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "budget/budget.h"
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

void need(double value, const char* option, std::string_view way) {
  if (value > 0) return;
  throw read::BadInput(fmt::format("{}: --model {} needs it, above 0", option, way));
}

budget::Model model_of(const Options& o) {
  budget::Model m = o.model;
  m.dtype_given = !m.dtype.empty();
  m.reduce_given = !m.reduce_dtype.empty();
  m.dtype = dtype_of(m.dtype_given ? m.dtype : "bf16");
  m.reduce_dtype = m.reduce_given ? dtype_of(m.reduce_dtype) : m.dtype;
  m.micro_batches = std::max(o.micro_batches, 1.0);
  m.tolerance /= 100;
  if (o.accumulate == "every") m.accumulate = budget::Accumulate::every;
  if (o.accumulate == "no_sync") m.accumulate = budget::Accumulate::last;
  for (const std::string_view name : text::split(o.ways, '+')) {
    const auto* row = std::ranges::find(budget::kWays, name, &budget::WayRow::name);
    if (row == std::end(budget::kWays)) {
      throw read::BadInput(
          fmt::format("--model: expected ddp, zero1, zero2, zero3, fsdp, hsdp or tp, or two such "
                      "as fsdp+tp; found '{}'",
                      name));
    }
    m.ways.push_back(row->way);
    if (row->way != Way::tp) {
      need(m.params, "--params", name);
      continue;
    }
    need(m.layers, "--layers", name);
    need(m.tokens, "--tokens", name);
    need(m.hidden, "--hidden", name);
  }
  if (m.root_params > m.params) throw read::BadInput("--root-params: more than --params");
  return m;
}

}  // namespace

int budget(const Options& o) {
  std::optional<budget::Model> model;
  if (!o.ways.empty()) model = model_of(o);
  budget::Budget budget;
  if (!o.budget_file.empty()) budget = budget::read_file(o.budget_file);

  Input in(o);
  const job::Job job = filter::with_ranks(in.job, in.only.words.ranks);
  const run::Lines lines = lines_of(job, in.traces);
  const auto measured_as = [&](std::uint64_t micro_batches) {
    return budget::measure(
        lines, {.steps = static_cast<std::uint64_t>(o.steps),
                .micro_batches = micro_batches,
                .each_is_step = o.micro_batches == 1,
                .copies = o.model.offload || !o.write.empty() || budget::has_copies(budget)});
  };
  const auto micro_batches = static_cast<std::uint64_t>(std::max(o.micro_batches, 1.0));
  if (!o.write.empty()) {
    budget::write_file(budget::of_run(measured_as(micro_batches), o.model.tolerance / 100),
                       o.write);
    return kOk;
  }
  budget::Reading found = model ? budget::against(*model, measured_as)
                                : budget::against(budget, micro_batches, measured_as);
  const budget::Measured& measured = found.measured;
  budget::Compared& compared = found.compared;
  compared.only = in.only.words;
  show(o.json ? budget::to_json(job, measured, compared)
              : budget::to_text(measured, compared, width_of_tables()),
       o.json);
  in.traces.skipped.insert(in.traces.skipped.end(), measured.unreadable.begin(),
                           measured.unreadable.end());
  return std::max(say_findings(job, in.traces), compared.within ? +kOk : +kFinding);
}

}  // namespace tprof::cli
