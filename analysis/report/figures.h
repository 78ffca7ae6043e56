// The counts as JSON for programs, the same in all commands.
#pragma once

#include "read/process.h"
#include "report/json.h"

namespace tprof::report {

// The figures of calls, without those of exposed time.
inline nlohmann::ordered_json call_figures(const read::Amounts& a) {
  return {{"calls", a.calls},
          {"count", a.count},
          {"elements", a.elements},
          {"bytes", a.bytes},
          {"host_ns", a.host_ns},
          {"device_ns", a.device_timed == 0 ? Json() : Json(a.device_ns)},
          {"device_timed", a.device_timed}};
}

inline nlohmann::ordered_json figures(const read::Amounts& a) {
  Json j = call_figures(a);
  j["exposure_known"] = a.exposure_known;
  j["exposure_known_ns"] = a.exposure_known == 0 ? Json() : Json(a.exposure_known_ns);
  j["exposed_ns"] = a.exposure_known == 0 ? Json() : Json(a.exposed_ns);
  return j;
}

}  // namespace tprof::report
