// Tells of calls that make or end communicators and that NCCL refused.
#include <map>
#include <tuple>

#include "diagnose/last_calls.h"
#include "diagnose/names.h"
#include "diagnose/waits.h"

namespace tprof::diagnose {
namespace {

void refused_life(const Case& c, Findings& found) {
  struct Refused {
    Processes who{};
    const read::LifeCall* call = nullptr;
  };
  std::map<std::tuple<std::string, std::string, std::uint64_t>, Refused> all;
  for (const read::Process* p : c.job.processes) {
    const auto* calls = c.lines.of<LastCalls>(p);
    if (calls == nullptr) continue;
    for (const read::LifeCall& call : calls->failed_life) {
      Refused& of = all[{call.name, communicator_of(*p, call), call.result}];
      if (of.who.empty() || of.who.back() != p) of.who.push_back(p);
      of.call = &call;
    }
  }
  for (const auto& [key, refused] : all) {
    const auto& [function, communicator, result] = key;
    const auto& [who, call] = refused;
    Finding& f =
        add(found, Kind::refused, who,
            {{"function", function},
             {"communicator", communicator.empty() ? std::nullopt : std::optional(communicator)},
             {"error", nccl_error(result)},
             {"at", Time{who.back()->header.base_time_ns + call->ts_ns + call->dur_ns}}});
    f.communicator = communicator;
    f.function = function;
  }
}

}  // namespace

extern const Diagnosis kRefusedLife{kCheck, refused_life, true};

}  // namespace tprof::diagnose
