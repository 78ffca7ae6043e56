// The part of the page that is of waiting for other ranks, and of transfers.
#include <algorithm>
#include <utility>

#include "diagnose/names.h"
#include "page/data.h"
#include "report/views.h"

namespace tprof::page {
namespace {

constexpr std::size_t kMostWaits = 200;
constexpr std::size_t kMostLast = 8;         // ranks that came last, of a row
constexpr std::size_t kMostWaitSteps = 200;  // of a row: of more, every n-th

// Keeps so many of the ranks, those that came last most often, and of the steps.
void cut(Json& row) {
  std::vector<Json> ranks(row["ranks"].begin(), row["ranks"].end());
  row["rank_count"] = ranks.size();
  std::erase_if(ranks, [](const Json& r) { return r["last"] == 0; });
  std::ranges::stable_sort(ranks, std::ranges::greater(),
                           [](const Json& r) { return r["last"].get<std::uint64_t>(); });
  if (ranks.size() > kMostLast) ranks.resize(kMostLast);
  row["ranks"] = std::move(ranks);
  const Json steps = std::exchange(row["steps"], Json::array());
  const std::size_t every = steps.size() / kMostWaitSteps + 1;
  for (std::size_t i = 0; i < steps.size(); i += every) row["steps"].push_back(steps[i]);
}

}  // namespace

Json waits_of(const Gathered& g) {
  const why::WaitTable& waits = g.why.waits;
  why::WaitTable shown{.step_stride = waits.step_stride, .known = waits.known};
  for (const why::WaitRow& row : waits.rows) {
    if (shown.rows.size() < kMostWaits && row.spent.calls != 0) shown.rows.push_back(row);
  }
  Json json = Json::object();
  report::put(json, "waits", report::section_of(shown, g.summary.comms, report::For::programs));
  Json& all = json["waits"];
  for (std::size_t i = 0; i < all["rows"].size(); ++i) {
    Json& row = all["rows"][i];
    row["of"] = shown.rows[i].ranks.str();
    row["size"] = diagnose::size_class(shown.rows[i].size_class);
    cut(row);
  }
  all["left_out"] = waits.rows.size() - shown.rows.size();
  return all;
}

}  // namespace tprof::page
