#include "report/all_well.h"

#include <fmt/format.h>

#include <algorithm>

#include "diagnose/names.h"
#include "text/text.h"

namespace tprof::report {
namespace {

using diagnose::Finding;

constexpr const char* kNothing = "Nothing is wrong";
constexpr const char* kNothingKnown = "Nothing is wrong with what the ranks did";
constexpr double kMuchExposed = 0.5;  // of a step: then nobody would call it well

std::string everybody(const diagnose::Diagnosed& said) {
  const std::size_t n = said.job->ranks.size();
  return n == 0 ? diagnose::counted(said.job->processes.size(), "process")
                : diagnose::counted(n, "rank");
}

// Says what the ranks made, where none is known to have done anything else.
std::string made(const diagnose::Diagnosed& said, const std::string& who) {
  std::uint64_t collectives = 0;
  std::uint64_t sends = 0;
  std::uint64_t receives = 0;
  std::uint64_t communicators = 0;
  bool all_seen = true;
  for (const diagnose::CommunicatorVerdict& c : said.communicators) {
    collectives = read::saturated_sum(collectives, c.collectives);
    communicators += c.collectives != 0 ? 1 : 0;
    sends = read::saturated_sum(sends, c.sends);
    receives = read::saturated_sum(receives, c.receives);
    all_seen = all_seen && c.verdict == diagnose::Verdict::same;
  }
  if (collectives != 0) {
    const std::string all = diagnose::counted(collectives, "collective");
    // Not every rank is in each of several communicators.
    const std::string same = communicators == 1
                                 ? "did the same " + all
                                 : fmt::format("agreed on {} of {}", all,
                                               diagnose::counted(communicators, "communicator"));
    return fmt::format("{} {}{}", who, same, all_seen ? "" : ", as far as they were seen");
  }
  if (sends == 0 && receives == 0) return who + " made no collectives";
  return fmt::format("{} made {} and {}, and no collectives", who, diagnose::counted(sends, "send"),
                     diagnose::counted(receives, "receive"));
}

// " (rank 1 fell silent first, 113 ms before the others)"; empty if that is not known.
std::string who_fell_silent(const Finding& f) {
  const auto fact =
      std::ranges::find(f.evidence, diagnose::Say::fell_silent, &diagnose::Fact::what);
  if (fact == f.evidence.end()) return "";
  return fmt::format(
      " ({} fell silent first, {} before the others)",
      diagnose::names_of(*diagnose::value_of<diagnose::Who>(fact->values, "who")),
      diagnose::duration(diagnose::value_of<diagnose::Ns>(fact->values, "longer")->n));
}

// ", and made no call in the last 57.2 s"; empty: they did, or it is not known.
std::string quiet_of(const Finding& f) {
  const auto* ns = diagnose::value_of<diagnose::Ns>(f.text.values, "quiet");
  return ns == nullptr
             ? ""
             : fmt::format(", and made no call in the last {}", diagnose::duration(ns->n));
}

// Nothing shows that ranks which did not close were at work; but that all is well, nothing shows
// either. Children of ranks are often ended like this. Empty: all closed.
std::string not_closed(const Finding* f, const diagnose::Diagnosed& said) {
  if (f == nullptr) return "";
  const diagnose::Processes who = diagnose::select(said.job->processes, [](const read::Process& p) {
    return p.end == read::End::recovered && !p.snapshot && !read::is_child(p);
  });
  if (who.empty()) return "";
  return fmt::format(
      "{} ended without closing{}: killed by a signal, or a way of ending that tprof does not see; "
      "until then {}{}",
      diagnose::names_of(who), who_fell_silent(*f),
      made(said, who.size() == said.job->processes.size() ? "they" : everybody(said)),
      quiet_of(*f));
}

// Tells how far ranks that run are: they get as far as each other only in the end. Empty: they are
// as far, or none runs.
std::string how_far(const diagnose::Diagnosed& said) {
  const bool running = std::ranges::any_of(
      said.findings, [](const Finding& f) { return f.kind == diagnose::Kind::running; });
  if (!running) return "";
  for (const diagnose::CommunicatorVerdict& c : said.communicators) {
    if (c.fewest == c.most) continue;
    return fmt::format("{} so far: the ranks still run and are not equally far, {} made {} of {}",
                       kNothing, diagnose::names_of(diagnose::who_of(who_issued(c, c.fewest))),
                       diagnose::counted(c.fewest, "collective"), text::thousands(c.most));
  }
  return "";
}

const Finding* find(const diagnose::Findings& all, diagnose::Kind kind) {
  const auto f = std::ranges::find(all, kind, &Finding::kind);
  return f == all.end() ? nullptr : &*f;
}

}  // namespace

JobVerdict all_well(const diagnose::Diagnosed& said, const Known& known) {
  const Finding* ended = find(said.findings, diagnose::Kind::not_closed);
  const std::string not_well = not_closed(ended, said);
  std::string out = not_well.empty() ? how_far(said) : not_well;
  if (out.empty()) {
    const bool well = known.causes && !(known.step_ns && known.exposed_share > kMuchExposed);
    out = fmt::format("{}: {}", well ? kNothing : kNothingKnown, made(said, everybody(said)));
    if (!known.causes && !known.step_ns) {
      out +=
          "; no steps are known, so nothing is known of their speed (TPROF_STEP=call:FUNCTION "
          "marks "
          "them: the call that ends each)";
    }
  }
  if (known.step_ns) {
    out += fmt::format("; a step{} takes {} on average",
                       known.whole_steps ? "" : ", or a micro-batch of one,",
                       diagnose::duration(*known.step_ns));
  }
  if (known.step_ns && known.exposed_share) {
    out += fmt::format(", of which {:.1f}% is exposed communication", 100 * *known.exposed_share);
  }
  out += ".";
  if (known.step_ns && !known.causes && not_well.empty()) {
    out += " The causes of slow steps are known where devices are followed";
    out += known.timed ? "." : " (TPROF_TIMING=events).";
  }
  JobVerdict verdict{.text = text::printable(out)};
  if (not_well.empty()) return verdict;
  verdict.severity = "note";
  verdict.finding = static_cast<std::size_t>(ended - said.findings.data());
  return verdict;
}

}  // namespace tprof::report
