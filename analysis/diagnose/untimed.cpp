// Reports calls that TPROF_TIMING was to time and that have no device time, and timed calls whose
// exposed part is not known. Gives a number for each reason. The device and exposed times that are
// printed leave these calls out.
#include <algorithm>
#include <iterator>
#include <map>

#include "diagnose/diagnosis.h"
#include "diagnose/who.h"
#include "interpose/format/ring_file.h"
#include "interpose/format/settings.h"

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

// Reports processes whose streams share one queue of the device, and what that costs them.
void one_queue(const Case& c, Findings& found) {
  Processes alike;
  bool events = false;
  bool gathers = false;
  for (const Process* p : c.job.processes) {
    const auto queues = p->header.env->find("CUDA_DEVICE_MAX_CONNECTIONS");
    if (queues == p->header.env->end() || queues->second != "1") continue;
    alike.push_back(p);
    const auto timing = p->header.config->find(std::string(info(Setting::timing).name));
    events = events || (timing != p->header.config->end() && timing->second.starts_with("events"));
    const auto called = [&](std::string_view name) {
      return p->footer && std::ranges::any_of(p->footer->functions, [&](const auto& f) {
               return f.name == name && f.calls != 0;
             });
    };
    gathers = gathers || (called("ncclAllGather") && called("ncclReduceScatter"));
  }
  if (events || gathers) {
    add(found, Kind::one_queue, alike, {{"events", events}, {"gathers", gathers}});
  }
}

void without_times(const Case& c, Findings& found) {
  untimed(c, found);
  one_queue(c, found);
}

}  // namespace

extern const Diagnosis kUntimedCalls{kCheck | kSummary | kDoctor, without_times};

}  // namespace tprof::diagnose
