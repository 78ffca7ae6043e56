// Reports calls that TPROF_TIMING was to time and that have no device time, and timed calls whose
// exposed part is not known. Gives a number for each reason. The device and exposed times that are
// printed leave these calls out.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "diagnose/diagnosis.h"
#include "diagnose/names.h"
#include "interpose/format/ring_file.h"
#include "text/text.h"

namespace tprof::diagnose {
namespace {

using read::Process;

constexpr Kind kUntimed{"untimed", Severity::note};
constexpr Kind kExposureUnknown{"exposure_unknown", Severity::note};

template <typename Why>
struct Meaning {
  Why why;
  const char* text;
  const char* next;
};
constexpr Meaning<TimingLost> kUntimedMeanings[] = {
    {TimingLost::no_context, "no CUDA context could be asked, or the stream was capturing", ""},
    {TimingLost::no_pair, "all pairs of events (places for calls, by CUPTI) were in use",
     "time fewer of them: TPROF_TIMING=events:16 takes one of 16"},
    {TimingLost::mixed, "with calls of other kinds in one group or batch they have one time", ""},
    {TimingLost::in_progress, "NCCL was still enqueueing them when they returned", ""},
    {TimingLost::sync, "the host waits for a synchronous copy, so its time is the host's", ""},
    {TimingLost::unread, "they were not through when the process ended, or the device's times over",
     ""},
    {TimingLost::device, "the driver refused to time them", ""},
    {TimingLost::no_record, "CUPTI has no record of them", "try TPROF_TIMING=events"},
    {TimingLost::impossible, "CUPTI told times that can't be", "try TPROF_TIMING=events"},
    {TimingLost::tool, "the program wanted CUPTI for itself before they were read",
     "time without that tool, or with TPROF_TIMING=events"},
    {TimingLost::order,
     "the call before each on its communicator was on another stream, and its end is not known",
     ""},
};
static_assert(std::size(kUntimedMeanings) == kTimingLostCount, "each reason is told in words");

constexpr Meaning<ExposureLost> kExposureMeanings[] = {
    {ExposureLost::no_launch, "no kernel of the program was seen on their device", ""},
    {ExposureLost::host_late,
     "a stream ran dry at an unknown moment, since the host came late with its next launch",
     "TPROF_TIMING=cupti tells how long the device was busy with kernels"},
    {ExposureLost::no_pair, "all pairs of events were in use, so that computation was not marked",
     ""},
    {ExposureLost::unread, "the end of the computation beside them was not read", ""},
    {ExposureLost::no_room, "there were too many streams or calls at a time", ""},
    {ExposureLost::no_clock, "the device's clock was not known", ""},
};
static_assert(std::size(kExposureMeanings) == kExposureLostCount, "each reason is told in words");

using Reasons = std::map<std::string, std::uint64_t>;

template <typename Meanings, typename Names>
void tell(const Case& c, Findings& found, const Kind& kind, Reasons read::Footer::*member,
          const Meanings& meanings, const Names& names, const char* lack) {
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
    const auto* meaning = std::ranges::find(meanings, name, [&](const auto& m) {
      return std::string_view(names[static_cast<std::size_t>(m.why)]);
    });
    const bool known = meaning != std::end(meanings);
    add(found, kind, reason.processes,
        fmt::format("{} calls of {} have no {} ({}){}", text::thousands(reason.calls),
                    names_of(reason.processes), lack, name,
                    known ? std::string(": ") + meaning->text : ""),
        known ? meaning->next : "");
  }
}

void untimed(const Case& c, Findings& found) {
  tell(c, found, kUntimed, &read::Footer::timing_lost, kUntimedMeanings, kTimingLostNames,
       "device time");
  tell(c, found, kExposureUnknown, &read::Footer::exposure_lost, kExposureMeanings,
       kExposureLostNames, "exposed time");
}

}  // namespace

extern const Diagnosis kUntimedCalls{kCheck | kSummary | kDoctor, untimed};

}  // namespace tprof::diagnose
