#include "report/phases.h"

#include <fmt/format.h>

#include <utility>

#include "diagnose/names.h"
#include "report/json.h"
#include "report/steps.h"
#include "report/times.h"
#include "text/text.h"

namespace tprof::report {

using read::Amounts;
using text::bytes;
using text::Table;
using text::thousands;

using enum Table::Align;

std::string phase_table(const stats::Summary& s) {
  Table table({{"phase", left},
               {"bucket", left},
               {"calls", right},
               {"elements", right},
               {"bytes", right},
               {"host time", right},
               {"device time", right}});
  for (std::size_t p = 0; p < stats::kPhaseCount; ++p) {
    std::string name(stats::kPhaseNames[p]);
    for (std::size_t b = 0; b < kBucketCount; ++b) {
      const Amounts& a = s.phases[p][b];
      if (a.calls == 0) continue;
      table.row({std::exchange(name, ""), std::string(kBuckets[b].name), thousands(a.calls),
                 thousands(a.elements), bytes(a.bytes), host_time(a), device_time(a)});
    }
  }
  return table.str() +
         "  backward: calls of PyTorch's autograd threads, so recomputation by activation "
         "checkpointing is in it.\n"
         "  rest: calls of other threads: forward, optimizer, loading, setup, and what a "
         "framework does on them behind the backward pass (DeepSpeed's last gradients).\n"
         "  unknown: calls of processes without an autograd thread, calls in CUDA graphs, and all "
         "calls with --steps.\n";
}

std::string rest_table(const stats::Rest& rest, const steps::Found& found) {
  Table table({{"phase", left},
               {"told by", left},
               {"bucket", left},
               {"calls", right},
               {"elements", right},
               {"bytes", right},
               {"host time", right}});
  bool order = false;
  for (const auto& [key, buckets] : rest.told) {
    const auto& [phase, by] = key;
    order = order || by == stats::ToldBy::order;
    std::string name(stats::kStepPhaseNames[static_cast<std::size_t>(phase)]);
    std::string told(by == stats::ToldBy::none ? "-"
                                               : stats::kToldByNames[static_cast<std::size_t>(by)]);
    for (std::size_t b = 0; b < kBucketCount; ++b) {
      const Amounts& a = buckets[b];
      if (a.calls == 0) continue;
      table.row({std::exchange(name, ""), std::exchange(told, ""), std::string(kBuckets[b].name),
                 thousands(a.calls), thousands(a.elements), bytes(a.bytes), host_time(a)});
    }
  }
  std::string out = table.str();
  out +=
      "  range: the name of an NVTX range around the call tells; thread: PyTorch's threads that "
      "load data made it.\n";
  if (order) {
    out +=
        "  order: by the calls of autograd's threads within a step. forward: collectives before a "
        "backward pass; backward: gradients that are reduced directly behind one; optimizer: what "
        "most steps call behind the last one (norms, a metric too); load: batches before the first "
        "collective.\n";
  }
  out +=
      "  other: none of these tells: setup, evaluation, calls of some steps only, point-to-point, "
      "copies that may be anything.\n";
  if (!rest.unordered.empty()) {
    out += fmt::format(
        "  {}: the order tells nothing, as not every call has a line on a thread with a name.\n",
        diagnose::names_of(rest.unordered));
  }
  return out + how_found(found);
}

nlohmann::ordered_json to_json(const stats::Rest& rest) {
  Json rows = Json::array();
  for (const auto& [key, buckets] : rest.told) {
    for (std::size_t b = 0; b < kBucketCount; ++b) {
      const Amounts& a = buckets[b];
      if (a.calls == 0) continue;
      const auto by = static_cast<std::size_t>(key.second);
      rows.push_back(
          {{"phase", stats::kStepPhaseNames[static_cast<std::size_t>(key.first)]},
           {"told_by", key.second == stats::ToldBy::none ? Json() : Json(stats::kToldByNames[by])},
           {"bucket", kBuckets[b].name},
           {"calls", a.calls},
           {"count", a.count},
           {"elements", a.elements},
           {"bytes", a.bytes},
           {"host_ns", a.host_ns}});
    }
  }
  return rows;
}

}  // namespace tprof::report
