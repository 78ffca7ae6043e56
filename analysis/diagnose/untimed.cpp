// Calls that TPROF_TIMING was to time and that have no time of the device, each reason with its
// number: what is printed of device time is without them.
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

struct Meaning {
  TimingLost why;
  const char* text;
  const char* next;
};
constexpr Meaning kMeanings[] = {
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
     "the call before on their communicator was on another stream, and when that ended is not "
     "known",
     ""},
};
static_assert(std::size(kMeanings) == kTimingLostCount, "each reason is told in words");

void untimed(const Case& c, Findings& found) {
  struct Reason {
    std::uint64_t calls = 0;
    Processes processes{};
  };
  std::map<std::string, Reason> reasons;
  for (const Process* p : c.job.processes) {
    if (!p->footer) continue;
    for (const auto& [name, calls] : p->footer->timing_lost) {
      if (calls == 0) continue;
      Reason& reason = reasons[name];
      reason.processes.push_back(p);
      if (p->lane == 0) reason.calls = read::saturated_sum(reason.calls, calls);  // the process's
    }
  }
  for (const auto& [name, reason] : reasons) {
    const auto* meaning = std::ranges::find(kMeanings, name, [](const Meaning& m) {
      return std::string_view(kTimingLostNames[static_cast<std::size_t>(m.why)]);
    });
    const bool known = meaning != std::end(kMeanings);
    add(found, kUntimed, reason.processes,
        fmt::format("{} calls of {} have no device time ({}){}", text::thousands(reason.calls),
                    names_of(reason.processes), name,
                    known ? std::string(": ") + meaning->text : ""),
        known ? meaning->next : "");
  }
}

}  // namespace

extern const Diagnosis kUntimedCalls{kCheck | kSummary | kDoctor, untimed};

}  // namespace tprof::diagnose
