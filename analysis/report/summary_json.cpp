#include <string>
#include <utility>

#include "check/ends.h"
#include "report/findings.h"
#include "report/json.h"
#include "report/only.h"
#include "report/report.h"
#include "report/views.h"

namespace tprof::report {
namespace {

// Returns until when ranks that did not close are known: CLOCK_REALTIME in nanoseconds, by rank.
Json known_until(const stats::Summary& s) {
  Json j = Json::object();
  for (const read::Process* p : s.job->processes) {
    if (p->end == read::End::closed || !p->header.rank) continue;
    j[std::to_string(*p->header.rank)] = !p->ledger ? Json() : Json(diagnose::known_until_ns(*p));
  }
  return j;
}

}  // namespace

std::string to_json(const stats::Summary& s, By by, bool lines) {
  Json j;
  j["schema"] = "tprof-summary/1";
  j["run_id"] = or_null(s.job->run_id);
  if (!s.only.empty()) j["only"] = only_json(s.only, s.notes);
  j["ranks"] = s.job->ranks;
  j["missing_ranks"] = s.job->missing;
  j["complete"] = s.complete;
  j["known_until"] = known_until(s);
  j["dropped"] = s.dropped;
  if (s.compute.window_ns != 0) {
    j["compute"] = {{"busy_ns", s.compute.busy_ns}, {"window_ns", s.compute.window_ns}};
  }
  if (s.self_run_ns != 0) {
    j["self_cost"] = {{"cpu_ns", s.self_cost_ns}, {"run_ns", s.self_run_ns}};
  }
  put(j, "buckets", bucket_section(s, "", For::programs));
  for (std::size_t b = 0; b <= kBucketCount; ++b) {  // one by one: a table of all ranks is large
    put(j, "buckets", rank_section(s, For::programs, b));
  }
  for (auto& [key, part] : split_buckets(s)) put(j, key, std::move(part));
  put(j, "ops",
      operation_section(s, "", {.size = true, .dtype = true, .communicator = true}, For::programs));
  put(j, "comms", section_of(s.comms, For::programs));
  if (s.memory.asked) put(j, "memory", section_of(s.memory, For::programs));
  for (const ByRow& row : by_rows()) {
    const bool asked = row.by == by || (row.by == By::step && (lines || s.only_steps));
    if (row.json == nullptr || !asked) continue;
    for (Section& x : row.sections(s, For::programs)) put(j, row.json, std::move(x));
  }
  if (s.slowest) put(j, "slowest", section_of(*s.slowest, s.found, 0, For::programs));
  if (s.histogram) {
    for (Section& x : sections_of(*s.histogram, true, For::programs)) put(j, "hist", std::move(x));
  }
  j["findings"] = to_json(s.findings, Detail::brief);
  return j.dump(1, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace tprof::report
