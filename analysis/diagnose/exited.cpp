// Tells which ranks ended by themselves as a program ends that failed.
#include "diagnose/exited.h"

#include <map>
#include <set>

#include "diagnose/diagnosis.h"

namespace tprof::diagnose {
namespace {

// Children of ranks, as a loader's workers, are looked after by those that started them.
void exited(const Case& c, Findings& found) {
  std::map<std::uint64_t, Processes> by_status;
  for (const read::Process* p : c.job.processes) {
    if (!p->footer || read::is_child(*p)) continue;
    if (const auto status = p->footer->exit_status; status && *status != 0) {
      by_status[*status].push_back(p);
    }
  }
  for (const auto& [status, who] : by_status) {
    add(found, Kind::exited, who, {{"status", status}});
  }
}

}  // namespace

std::optional<std::string> exit_status_of(const Processes& closed) {
  std::set<std::optional<std::uint64_t>> all;
  for (const read::Process* p : closed) {
    all.insert(p->footer ? p->footer->exit_status : std::nullopt);
  }
  if (all.size() != 1 || !*all.begin()) return std::nullopt;
  return std::to_string(**all.begin());
}

extern const Diagnosis kExited{kCheck | kSummary | kWhole, exited};

}  // namespace tprof::diagnose
