#include <nlohmann/json.hpp>

#include "live/table.h"
#include "report/views.h"

namespace tprof::live {
namespace {

using Json = nlohmann::ordered_json;

Json bucket(const Shown& v, const Rank& rank, std::size_t b) {
  const read::Amounts& a = b == kAllBuckets ? rank.all : rank.buckets[b];
  const std::optional<Rate> rate = v.history->rate(rank, b);
  Json j = report::figures(a);
  j["calls_per_s"] = rate ? Json(rate->calls) : Json();
  j["bytes_per_s"] = rate ? Json(rate->bytes) : Json();
  return j;
}

Json open_call(const OpenCall& call) {
  return {{"function", call.function},
          {"bucket", call.bucket ? Json(bucket_name(*call.bucket)) : Json()},
          {"communicator", call.communicator.empty() ? Json() : Json(call.communicator)},
          {"seq", call.seq ? Json(*call.seq) : Json()},
          {"age_ns", call.age_ns}};
}

Json rank_of(const Shown& v, const Rank& rank) {
  const read::Header& h = rank.process->header;
  Json j = {{"rank", h.rank ? Json(*h.rank) : Json()},
            {"host", h.host},
            {"pid", h.pid},
            {"state", rank.state()},
            {"realtime_ns", h.base_time_ns + rank.as_of_ns},
            {"step", rank.step ? Json(rank.step->number) : Json()},
            {"step_ns", rank.step ? Json(rank.step->dur_ns) : Json()}};
  const auto* dropped = rank.why_dropped();
  j["dropped"] = dropped != nullptr ? Json(*dropped) : Json();
  Json& buckets = j["buckets"] = Json::object();
  for (std::size_t b = 0; b <= kAllBuckets; ++b) {
    buckets[std::string(name_of_bucket(b))] = bucket(v, rank, b);
  }
  Json& open = j["open"] = Json::array();
  for (const OpenCall& call : rank.open) open.push_back(open_call(call));
  return j;
}

}  // namespace

std::string to_json(const Shown& v) {
  Json j = {{"schema", "tprof-top/1"}, {"ranks", Json::array()}};
  for (const Rank& rank : v.ranks) j["ranks"].push_back(rank_of(v, rank));
  return j.dump(1, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace tprof::live
