#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "report/check.h"
#include "text/text.h"

namespace tprof::report {
namespace {

using diagnose::Agreement;
using diagnose::Communicator;
using diagnose::Parting;
using diagnose::Problem;
using diagnose::Split;

constexpr std::size_t kMaxLines = 16;  // of communicators whose ranks did not do the same

std::string_view verdict(const Agreement& a) {
  if (!a.cleared()) {
    const bool only_stopped =
        std::ranges::all_of(a.splits, [](const Split& s) { return s.parting == Parting::stopped; });
    return only_stopped ? "not all ranks got as far" : "the ranks did NOT do the same";
  }
  if (!a.all_there) return "those that were seen did the same";
  return "all ranks did the same";
}

std::string collectives(std::uint64_t n) {
  return n == 0 ? "no collectives"
                : fmt::format("{} {}", thousands(n), n == 1 ? "collective" : "collectives");
}

std::string id_of(const Communicator& c) {
  return printable(c.id) + (c.name.empty() ? "" : fmt::format(" \"{}\"", printable(c.name)));
}

std::string line(const Communicator& c, const Agreement& a) {
  const std::size_t seen = c.members.size();
  return fmt::format(
      "communicator {} ({} {}{}): {}, {}\n", id_of(c), c.nranks, c.nranks == 1 ? "rank" : "ranks",
      seen == static_cast<std::size_t>(c.nranks) ? "" : fmt::format(", {} seen", seen),
      collectives(a.collectives), verdict(a));
}

// One line for all communicators of which the same is to be said; those whose ranks did not do the
// same have one each.
std::string lines(const diagnose::Checked& checked) {
  struct Alike {
    std::size_t communicators = 0;
    std::size_t first = 0;  // the largest
    std::int64_t least_ranks = 0;
    std::uint64_t collectives = 0;
    bool cleared = true;
  };
  std::vector<std::pair<std::string_view, Alike>> verdicts;
  for (std::size_t i = 0; i < checked.communicators.size(); ++i) {
    const Agreement& a = checked.agreements[i];
    const std::string_view what = verdict(a);
    auto at = std::ranges::find(verdicts, what, &std::pair<std::string_view, Alike>::first);
    if (at == verdicts.end()) {
      at = verdicts.insert(at, {what, {.first = i, .cleared = a.cleared()}});
    }
    ++at->second.communicators;
    at->second.least_ranks = checked.communicators[i].nranks;
    at->second.collectives += a.collectives;
  }
  std::string out;
  for (const auto& [what, alike] : verdicts) {
    const Communicator& largest = checked.communicators[alike.first];
    if (alike.cleared && alike.communicators > 1) {
      out += fmt::format("{} communicators ({} ranks; the largest is {}): {}, {}\n",
                         thousands(alike.communicators),
                         alike.least_ranks == largest.nranks
                             ? fmt::format("{}", largest.nranks)
                             : fmt::format("{} to {}", alike.least_ranks, largest.nranks),
                         id_of(largest), collectives(alike.collectives), what);
      continue;
    }
    std::size_t shown = 0;
    for (std::size_t i = 0; i < checked.communicators.size() && shown < kMaxLines; ++i) {
      if (verdict(checked.agreements[i]) != what) continue;
      out += line(checked.communicators[i], checked.agreements[i]);
      ++shown;
    }
    if (shown < alike.communicators) {
      out += fmt::format("and {} more communicators: {}\n", thousands(alike.communicators - shown),
                         what);
    }
  }
  return out;
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
  std::string out = lines(checked);
  const auto& processes = checked.job->processes;
  if (std::ranges::all_of(processes, [](const auto* p) { return p->comms.empty(); })) {
    const std::size_t n = processes.size();
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
