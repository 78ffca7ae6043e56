#include "report/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "diagnose/names.h"
#include "report/words.h"
#include "text/text.h"

namespace tprof::report {
namespace {

using diagnose::Finding;
using diagnose::Severity;

constexpr double kLeastShare = 0.01;  // of the time: what costs less is not why a job is slow

std::string as_sentence(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  if (!text.empty() && text.back() != '.') text += '.';
  return text;
}

double share_of(const Finding& f) {
  return f.cost ? f.cost->share : 0;
}

std::string cost_of(const Finding& f) {
  if (!f.cost || f.cost->share < kLeastShare) return "";
  const double percent = 100 * f.cost->share;
  return f.cost->ns_per_step ? fmt::format(" It costs {} of a step ({:.1f}% of the time).",
                                           diagnose::duration(*f.cost->ns_per_step), percent)
                             : fmt::format(" It costs {:.1f}% of the time.", percent);
}

std::string all_well(const diagnose::Diagnosed& said, const StepTime& step) {
  std::uint64_t collectives = 0;
  bool all_seen = true;
  for (const diagnose::CommunicatorVerdict& c : said.communicators) {
    collectives = read::saturated_sum(collectives, c.collectives);
    all_seen = all_seen && c.verdict == diagnose::Verdict::same;
  }
  const std::size_t n = said.job->ranks.size();
  const std::string who = n == 0 ? diagnose::counted(said.job->processes.size(), "process")
                                 : diagnose::counted(n, "rank");
  std::string out = collectives == 0 ? fmt::format("Nothing is wrong: {} made no collectives", who)
                                     : fmt::format("Nothing is wrong: {} did the same {}{}", who,
                                                   diagnose::counted(collectives, "collective"),
                                                   all_seen ? "" : ", as far as they were seen");
  if (step.typical_ns) out += "; a step takes " + diagnose::duration(*step.typical_ns);
  if (step.typical_ns && step.exposed_share) {
    out += fmt::format(", of which {:.0f}% is exposed communication", 100 * *step.exposed_share);
  }
  return out + ".";
}

}  // namespace

JobVerdict verdict_of(const diagnose::Diagnosed& said, const StepTime& step) {
  const diagnose::Findings& all = said.findings;
  auto about = std::ranges::find(all, Severity::error, &Finding::severity);
  if (about == all.end()) {
    about = std::ranges::max_element(all, {}, share_of);
    if (about != all.end() && share_of(*about) < kLeastShare) about = all.end();
  }
  if (about == all.end()) about = std::ranges::find(all, Severity::warning, &Finding::severity);
  if (about == all.end()) return {.text = all_well(said, step)};
  return {.text = as_sentence(text::printable(sentence(about->text))) + cost_of(*about),
          .severity = about->severity_name(),
          .finding = static_cast<std::size_t>(about - all.begin())};
}

}  // namespace tprof::report
