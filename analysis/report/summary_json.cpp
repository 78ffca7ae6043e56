#include <array>
#include <iterator>
#include <utility>

#include "diagnose/ends.h"
#include "report/durations.h"
#include "report/figures.h"
#include "report/findings.h"
#include "report/json.h"
#include "report/report.h"
#include "report/steps.h"
#include "report/views.h"

namespace tprof::report {
namespace {

Json all_figures(const read::Amounts& a) {
  Json j = figures(a);
  j["failed"] = a.failed;
  j["unfinished"] = a.unfinished;
  return j;
}

// A bucket, or all together, has an array of each of these figures, with a number for each rank.
constexpr std::pair<const char*, std::uint64_t read::Amounts::*> kOfRanks[] = {
    {"calls", &read::Amounts::calls},
    {"elements", &read::Amounts::elements},
    {"bytes", &read::Amounts::bytes},
    {"host_ns", &read::Amounts::host_ns}};
using OfRanks = std::array<Json, std::size(kOfRanks)>;

void add(OfRanks& to, const read::Amounts& a) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i].push_back(a.*kOfRanks[i].second);
}

Json bucket(const read::Amounts& all, OfRanks& of_ranks) {
  Json j = all_figures(all);
  Json& per_rank = j["per_rank"];
  for (std::size_t i = 0; i < of_ranks.size(); ++i) {
    per_rank[kOfRanks[i].first] = std::move(of_ranks[i]);
  }
  return j;
}

Json buckets(const stats::Summary& s) {
  std::array<OfRanks, kBucketCount + 1> of_ranks;  // the last is of all buckets
  for (OfRanks& of : of_ranks) of.fill(Json::array());
  stats::each_rank(s, [&](std::int64_t, const stats::Buckets& totals) {
    for (std::size_t b = 0; b < kBucketCount; ++b) add(of_ranks[b], totals[b]);
    add(of_ranks[kBucketCount], stats::sum(totals));
  });
  Json j = Json::object();
  for (std::size_t b = 0; b < kBucketCount; ++b) {
    j[std::string(kBuckets[b].name)] = bucket(s.buckets[b], of_ranks[b]);
  }
  j["ALLGATHER_OBJ"] = s.object_gathers ? all_figures(*s.object_gathers) : Json();
  j["ALL"] = bucket(stats::sum(s.buckets), of_ranks[kBucketCount]);
  return j;
}

// Returns until when ranks that did not close are known: CLOCK_REALTIME in nanoseconds, by rank.
Json known_until(const stats::Summary& s) {
  Json j = Json::object();
  for (const read::Process* p : s.job->processes) {
    if (p->end == read::End::closed || !p->header.rank) continue;
    j[std::to_string(*p->header.rank)] = !p->ledger ? Json() : Json(diagnose::known_until_ns(*p));
  }
  return j;
}

Json host_memory(const stats::Summary& s) {
  Json j = Json::object();
  for (std::size_t b = 0; b < kBucketCount; ++b) {
    if (!stats::has_host_side(static_cast<Bucket>(b))) continue;
    Json& bucket = j[std::string(kBuckets[b].name)] = Json::object();
    for (std::size_t m = 0; m < kHostMemoryKinds; ++m) {
      const read::Amounts& a = s.host_memory[m][b];
      if (a.calls != 0) bucket[kHostMemoryNames[m]] = figures(a);
    }
  }
  return j;
}

}  // namespace

std::string to_json(const stats::Summary& s) {
  Json j;
  j["schema"] = "tprof-summary/1";
  j["run_id"] = or_null(s.job->run_id);
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
  j["buckets"] = buckets(s);
  j["ops"] = operations_json(s);
  put(j, "comms", section_of(s.comms, For::programs));
  // Objects by bucket, where the text has a row for each: so they are not of sections.
  Json& phases = j["phases"] = Json::object();
  for (std::size_t p = 0; p < stats::kPhaseCount; ++p) {
    Json& phase = phases[std::string(stats::kPhaseNames[p])] = Json::object();
    for (std::size_t b = 0; b < kBucketCount; ++b) {
      const read::Amounts& a = s.phases[p][b];
      if (a.calls != 0) phase[std::string(kBuckets[b].name)] = figures(a);
    }
  }
  j["host_memory"] = host_memory(s);
  if (s.memory.asked) put(j, "memory", section_of(s.memory, For::programs));
  if (s.steps) add_steps(j, *s.steps, s.found);
  for (const ByRow& row : by_rows()) {
    if (row.json == nullptr) continue;
    for (const Section& x : row.sections(s, For::programs)) put(j, row.json, x);
  }
  if (s.slowest) put(j, "slowest", section_of(*s.slowest, s.found, 0, For::programs));
  if (s.histogram) j["hist"] = to_json(*s.histogram);
  j["findings"] = to_json(s.findings, Detail::brief);
  return j.dump(1, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace tprof::report
