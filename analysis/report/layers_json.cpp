#include <cstddef>

#include "report/figures.h"
#include "report/json.h"
#include "report/layers.h"

namespace tprof::report {

using read::Amounts;
using stats::LayerGroup;
using stats::LayerRow;
using stats::Layers;
Json to_json(const Layers& layers) {
  Json j;
  j["why"] = layers.groups.empty() ? Json(why_none(layers)) : Json();
  Json& groups = j["groups"] = Json::array();
  for (const LayerGroup& group : layers.groups) {
    Json rows = Json::array();
    for (const LayerRow& row : group.rows) {
      Json r = {{"kind", row.unit ? "unit" : "bucket"},
                {"place", row.place},
                {"name", or_null(row.name)},
                {"named_by",
                 or_null(std::string(stats::kNamedByNames[static_cast<std::size_t>(row.named)]))},
                {"count", row.count},
                {"elements", row.elements},
                {"bytes", row.bytes},
                {"dtype", row.dtype}};
      for (std::size_t op = 0; op < stats::kLayerOps; ++op) {
        r[std::string(stats::kLayerOpNames[op])] =
            row.ops[op].calls == 0 ? Json() : call_figures(row.ops[op]);
      }
      rows.push_back(std::move(r));
    }
    groups.push_back({{"ranks", group.ranks},
                      {"nranks", group.nranks},
                      {"rank_steps", group.rank_steps},
                      {"rows", std::move(rows)}});
  }
  Json& left = j["left"] = Json::array();
  for (const auto& [why, buckets] : layers.left) {
    for (const Bucket bucket : stats::kLayerBuckets) {
      const Amounts& a = buckets[static_cast<std::size_t>(bucket)];
      if (a.calls == 0) continue;
      left.push_back({{"why", stats::kNoLayerNames[static_cast<std::size_t>(why)]},
                      {"bucket", bucket_name(bucket)},
                      {"calls", a.calls},
                      {"count", a.count},
                      {"elements", a.elements},
                      {"bytes", a.bytes},
                      {"host_ns", a.host_ns}});
    }
  }
  j["adds_up"] = layers.adds_up;
  return j;
}

}  // namespace tprof::report
