#include <nlohmann/json.hpp>

#include "report/check.h"

namespace tprof::report {
namespace {

using Json = nlohmann::ordered_json;

Json or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

Json ranks_of(const diagnose::Communicator& c) {
  Json ranks = Json::array();
  for (const diagnose::Member& m : c.members) {
    ranks.push_back(m.rank() ? Json(*m.rank()) : Json());
  }
  return ranks;
}

}  // namespace

std::string to_json(const diagnose::Checked& checked) {
  const match::Job& job = *checked.job;
  Json j;
  j["schema"] = "tprof-check/1";
  j["run_id"] = or_null(job.run_id);
  j["ranks"] = job.ranks;
  j["missing_ranks"] = job.missing;
  j["healthy"] = checked.healthy();
  Json& comms = j["communicators"] = Json::array();
  for (std::size_t i = 0; i < checked.communicators.size(); ++i) {
    const diagnose::Communicator& c = checked.communicators[i];
    const diagnose::Agreement& a = checked.agreements[i];
    comms.push_back({{"id", c.id},
                     {"name", or_null(c.name)},
                     {"nranks", c.nranks},
                     {"ranks", ranks_of(c)},
                     {"collectives", a.collectives},
                     {"same", a.cleared()}});
  }
  Json& findings = j["findings"] = Json::array();
  for (const diagnose::Problem& p : checked.findings) {
    findings.push_back({{"kind", p.kind},
                        {"severity", diagnose::kSeverityNames[static_cast<int>(p.severity)]},
                        {"ranks", p.ranks},
                        {"communicator", or_null(p.communicator)},
                        {"seq", p.seq ? Json(*p.seq) : Json()},
                        {"between", p.between ? Json{p.between->first, p.between->second} : Json()},
                        {"function", or_null(p.function)},
                        {"text", p.text},
                        {"evidence", p.evidence},
                        {"next", or_null(p.next)}});
  }
  return j.dump(1, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace tprof::report
