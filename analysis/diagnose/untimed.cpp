// Reports calls that TPROF_TIMING was to time and that have no device time, and timed calls whose
// exposed part is not known. Gives a number for each reason. The device and exposed times that are
// printed leave these calls out.
#include <algorithm>
#include <iterator>
#include <map>

#include "diagnose/diagnosis.h"
#include "diagnose/who.h"
#include "interpose/format/ring_file.h"

namespace tprof::diagnose {
namespace {

using read::Process;

using Reasons = std::map<std::string, std::uint64_t>;

// `first` is the sentence of the first of the reasons, which follow each other in their order.
template <std::size_t n>
void tell(const Case& c, Findings& found, Kind kind, Reasons read::Footer::*member,
          const char* const (&names)[n], Say first) {
  struct Untimed {
    std::uint64_t calls = 0;
    Processes processes{};
  };
  std::map<std::string, Untimed> reasons;
  for (const Process* p : c.job.processes) {
    if (!p->footer) continue;
    for (const auto& [name, calls] : (*p->footer).*member) {
      if (calls == 0) continue;
      Untimed& reason = reasons[name];
      reason.processes.push_back(p);
      if (p->lane == 0) reason.calls = read::saturated_sum(reason.calls, calls);  // counted once
    }
  }
  for (const auto& [name, reason] : reasons) {
    const auto why = std::ranges::find(names, std::string_view(name));
    Finding& f = add(found, kind, reason.processes, {{"calls", reason.calls}, {"why", name}});
    if (why == std::end(names)) continue;
    f.text.what = static_cast<Say>(static_cast<std::ptrdiff_t>(first) + (why - std::begin(names)));
  }
}

void untimed(const Case& c, Findings& found) {
  tell(c, found, Kind::untimed, &read::Footer::timing_lost, kTimingLostNames,
       Say::untimed_no_context);
  tell(c, found, Kind::exposure_unknown, &read::Footer::exposure_lost, kExposureLostNames,
       Say::exposure_no_launch);
}

}  // namespace

extern const Diagnosis kUntimedCalls{kCheck | kSummary | kDoctor, untimed};

}  // namespace tprof::diagnose
