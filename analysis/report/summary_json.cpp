#include <nlohmann/json.hpp>

#include "stats/bandwidth.h"
#include "stats/summary.h"

namespace tprof::report {
namespace {

using Json = nlohmann::ordered_json;

Json figures(const read::Amounts& a) {
  return {{"calls", a.calls},       {"count", a.count},
          {"elements", a.elements}, {"bytes", a.bytes},
          {"host_ns", a.host_ns},   {"device_ns", a.device_timed == 0 ? Json() : Json(a.device_ns)},
          {"failed", a.failed},     {"unfinished", a.unfinished}};
}

template <typename Pick>
Json bucket(const Summary& s, const Pick& pick) {
  Json j = figures(pick(s.buckets));
  Json calls = Json::array();
  Json elements = Json::array();
  Json bytes = Json::array();
  Json host_ns = Json::array();
  for (const auto& [rank, totals] : s.per_rank) {
    const read::Amounts a = pick(totals);
    calls.push_back(a.calls);
    elements.push_back(a.elements);
    bytes.push_back(a.bytes);
    host_ns.push_back(a.host_ns);
  }
  j["per_rank"] = {
      {"calls", calls}, {"elements", elements}, {"bytes", bytes}, {"host_ns", host_ns}};
  return j;
}

// CLOCK_REALTIME in nanoseconds, by rank, of those that did not close.
Json known_until(const Summary& s) {
  Json j = Json::object();
  for (const read::Process* p : s.job->processes) {
    if (p->end == read::End::closed || !p->header.rank) continue;
    j[std::to_string(*p->header.rank)] =
        p->ledgers.empty() ? Json() : Json(diagnose::known_until_ns(*p));
  }
  return j;
}

Json or_null(const std::optional<double>& v) {
  return v ? Json(*v) : Json();
}

}  // namespace

std::string to_json(const Summary& s) {
  Json j;
  j["schema"] = "tprof-summary/1";
  j["run_id"] = s.job->run_id.empty() ? Json() : Json(s.job->run_id);
  j["ranks"] = s.job->ranks;
  j["missing_ranks"] = s.job->missing;
  j["complete"] = s.complete;
  j["known_until"] = known_until(s);
  j["dropped"] = s.dropped;
  Json& buckets = j["buckets"] = Json::object();
  for (std::size_t b = 0; b < kBucketCount; ++b) {
    buckets[std::string(kBuckets[b].name)] =
        bucket(s, [b](const stats::Buckets& totals) { return totals[b]; });
  }
  buckets["ALLGATHER_OBJ"] = s.object_gathers ? figures(*s.object_gathers) : Json();
  buckets["ALL"] = bucket(s, [](const stats::Buckets& totals) { return stats::sum(totals); });
  Json& ops = j["ops"] = Json::array();
  for (const auto& [key, a] : s.ops) {
    ops.push_back({{"bucket", bucket_name(key.bucket)},
                   {"name", key.name},
                   {"dtype", key.dtype},
                   {"comm_id", key.comm_id.empty() ? Json() : Json(key.comm_id)},
                   {"nranks", key.nranks == 0 ? Json() : Json(key.nranks)},
                   {"bytes_class", key.bytes_class},
                   {"calls", a.calls},
                   {"count", a.count},
                   {"elements", a.elements},
                   {"bytes", a.bytes},
                   {"host_ns", a.host_ns},
                   {"device_ns", a.device_timed == 0 ? Json() : Json(a.device_ns)},
                   {"algbw_GBps", or_null(stats::algbw(a))},
                   {"busbw_GBps", or_null(stats::busbw(key, a))}});
  }
  Json& comms = j["comms"] = Json::array();
  for (const CommSummary& c : s.comms) {
    comms.push_back({{"id", c.id},
                     {"name", c.name.empty() ? Json() : Json(c.name)},
                     {"parent", c.parent.empty() ? Json() : Json(c.parent)},
                     {"nranks", c.nranks},
                     {"ranks", c.ranks},
                     {"collectives", c.collectives},
                     {"calls", c.amounts.calls},
                     {"bytes", c.amounts.bytes}});
  }
  Json& problems = j["problems"] = Json::array();
  for (const diagnose::Problem& p : s.problems) {
    problems.push_back({{"kind", p.kind},
                        {"severity", diagnose::kSeverityNames[static_cast<int>(p.severity)]},
                        {"ranks", p.ranks},
                        {"text", p.text},
                        {"next", p.next.empty() ? Json() : Json(p.next)}});
  }
  return j.dump(1, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace tprof::report
