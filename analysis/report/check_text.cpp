#include <fmt/format.h>

#include <algorithm>

#include "report/check.h"
#include "report/text.h"

namespace tprof::report {
namespace {

using diagnose::Agreement;
using diagnose::Communicator;
using diagnose::Parting;
using diagnose::Problem;
using diagnose::Split;

std::string verdict(const Agreement& a) {
  if (!a.cleared()) {
    const bool only_stopped =
        std::ranges::all_of(a.splits, [](const Split& s) { return s.parting == Parting::stopped; });
    return only_stopped ? "not all ranks got as far" : "the ranks did NOT do the same";
  }
  if (!a.all_there) return "those that were seen did the same";
  return "all ranks did the same";
}

std::string line(const Communicator& c, const Agreement& a) {
  const std::size_t seen = c.members.size();
  return fmt::format(
      "communicator {}{} ({} {}{}): {}, {}\n", printable(c.id),
      c.name.empty() ? "" : fmt::format(" \"{}\"", printable(c.name)), c.nranks,
      c.nranks == 1 ? "rank" : "ranks",
      seen == static_cast<std::size_t>(c.nranks) ? "" : fmt::format(", {} seen", seen),
      a.collectives == 0 ? "no collectives"
                         : fmt::format("{} {}", thousands(a.collectives),
                                       a.collectives == 1 ? "collective" : "collectives"),
      verdict(a));
}

std::string finding(const Problem& p) {
  std::string out = fmt::format("{}: {}\n", diagnose::kSeverityNames[static_cast<int>(p.severity)],
                                printable(p.text));
  for (const std::string& e : p.evidence) out += fmt::format("  {}\n", printable(e));
  if (!p.next.empty()) out += fmt::format("  -> {}\n", printable(p.next));
  return out;
}

}  // namespace

std::string to_text(const diagnose::Checked& checked) {
  std::string out;
  for (std::size_t i = 0; i < checked.communicators.size(); ++i) {
    out += line(checked.communicators[i], checked.agreements[i]);
  }
  if (checked.communicators.empty()) {
    const std::size_t n = checked.job->processes.size();
    out += fmt::format("no communicator: {} {} made copies only\n", n,
                       n == 1 ? "process" : "processes");
  }
  for (const Problem& p : checked.findings) out += finding(p);
  if (std::ranges::any_of(checked.findings, [](const Problem& p) { return p.seq || p.between; })) {
    out += "Collectives are counted from 0 on each communicator, as seq in the lines.\n";
  }
  return out;
}

}  // namespace tprof::report
