#include "report/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "diagnose/ends.h"
#include "diagnose/names.h"
#include "report/all_well.h"
#include "report/words.h"
#include "text/text.h"

namespace tprof::report {
namespace {

using diagnose::Finding;
using diagnose::Severity;

constexpr double kLeastShare = 0.01;  // of the time: what costs less is not why a job is slow
constexpr double kLateShare = 0.05;
constexpr std::int64_t kTimesTheOthers = 4;  // those of half of the other ranks

std::string with_stop(std::string text) {
  if (!text.empty() && text.back() != '.') text += '.';
  return text;
}

std::string as_sentence(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return with_stop(std::move(text));
}

// A sentence about an unreadable file begins with its path, which keeps its letters.
std::string as_sentence(const Finding& f) {
  std::string text = text::printable(sentence(f.text));
  return f.kind == diagnose::Kind::unreadable ? with_stop(std::move(text))
                                              : as_sentence(std::move(text));
}

double share_of(const Finding& f) {
  return f.cost ? f.cost->share : 0;
}

// True if nobody has made a call for a moment, in a job that runs.
bool stands(const Finding& f) {
  return f.kind == diagnose::Kind::running && diagnose::has_value(f.text.values, "quiet");
}

// How much of the run a job that ended without closing had stood still at its end.
double stood_share(const diagnose::Diagnosed& said) {
  const auto f = std::ranges::find(said.findings, diagnose::Kind::not_closed, &Finding::kind);
  if (f == said.findings.end()) return 0;
  const auto* quiet = diagnose::value_of<diagnose::Ns>(f->text.values, "quiet");
  if (quiet == nullptr) return 0;
  std::int64_t run_ns = 0;
  for (const read::Process* p : said.job->processes) {
    run_ns = std::max(run_ns, diagnose::known_until_ns(*p) - diagnose::began_ns(*p));
  }
  return run_ns <= 0 ? 0 : static_cast<double>(quiet->n) / static_cast<double>(run_ns);
}

// A rank that the others waited for, far longer than for the rest. Short runs have no finding of
// it (diagnose/late.cpp), and a share of the time is as true of them.
struct Waited {
  std::string text{};
  double share = 0;  // of the time
  std::int64_t rank = -1;
};

using diagnose::LateRank;
using OfRank = std::int64_t (*)(const LateRank&);

// Null: none was waited for by so much more than for the others.
const LateRank* longest_of(const Known& known, OfRank sum, OfRank waited) {
  if (known.late == nullptr || known.late->ranks.size() < 2 || known.late->span_ns <= 0) return {};
  std::vector<const LateRank*> all;
  for (const LateRank& r : known.late->ranks) all.push_back(&r);
  std::ranges::stable_sort(all, std::ranges::greater(), [&](const LateRank* r) { return sum(*r); });
  const double share =
      static_cast<double>(waited(*all[0])) / static_cast<double>(known.late->span_ns);
  const bool more =
      share >= kLateShare && sum(*all[0]) / kTimesTheOthers >= sum(*all[all.size() / 2]);
  return more ? all[0] : nullptr;
}

std::string came_last(const LateRank& r) {
  return fmt::format("{} came last to {} of {} collectives", diagnose::name_of_rank(*r.rank),
                     text::thousands(r.last), text::thousands(r.collectives));
}

Waited waited_for(const Known& known) {
  const auto own = [](const LateRank& r) { return r.waited_ns - r.waited_read_ns; };
  const LateRank* r = longest_of(
      known, [](const LateRank& each) { return each.own_ns(); }, own);
  if (r == nullptr || r->own_ns() < r->sum_read_ns) return {};
  return {fmt::format("{}, by {} in all; {}", came_last(*r), diagnose::duration(r->own_ns()),
                      known.timed ? "what that costs is known where steps are known"
                                  : "TPROF_TIMING=events tells what that costs"),
          static_cast<double>(own(*r)) / static_cast<double>(known.late->span_ns),
          r->rank->header.rank.value_or(-1)};
}

// A rank that came last far more than the others, but mostly since its host may have waited for a
// device: that names nobody.
std::string behind_values(const Known& known) {
  const LateRank* r = longest_of(
      known, [](const LateRank& each) { return each.sum_ns; },
      [](const LateRank& each) { return each.waited_ns; });
  if (r == nullptr || r->own_ns() >= r->sum_read_ns) return {};
  return " " + as_sentence(came_last(*r) +
                           ", mostly behind values that it reads (.item()) and most others do not: "
                           "its host waits there for its device, or does something with them. Who "
                           "holds the others up is not known without TPROF_TIMING=events");
}

// Its place among the findings, if it has one.
std::optional<std::size_t> finding_of(const Waited& late, const diagnose::Findings& all) {
  const auto f = std::ranges::find_if(all, [&](const Finding& each) {
    return each.kind == diagnose::Kind::late && each.ranks.contains(late.rank);
  });
  return f == all.end() ? std::nullopt : std::optional(static_cast<std::size_t>(f - all.begin()));
}

}  // namespace

bool notes_the_end(const Finding& f) {
  return f.kind == diagnose::Kind::not_closed && f.severity == Severity::note;
}

JobVerdict verdict_of(const diagnose::Diagnosed& said, const Known& known) {
  const diagnose::Findings& all = said.findings;
  auto about = std::ranges::find_if(all, diagnose::keeps_from_going_on);
  if (about == all.end()) about = std::ranges::find(all, Severity::error, &Finding::severity);
  // That a rank ended at work is more than that the job was slow. Where all ended together,
  // somebody ended them: by Ctrl-C, or when their time was over; unless one may have been first.
  if (about == all.end()) {
    about = std::ranges::find_if(all, [&](const Finding& f) {
      const bool ended = f.kind == diagnose::Kind::stopped || f.kind == diagnose::Kind::not_closed;
      const bool some =
          f.ranks.size() < said.job->ranks.size() || f.text.what == diagnose::Say::killed_together;
      return ended && f.severity == Severity::warning && some;
    });
  }
  if (about == all.end()) about = std::ranges::find(all, diagnose::Kind::exited, &Finding::kind);
  // A job that stands is slower than any cause of slow steps makes it.
  if (about == all.end()) {
    about = std::ranges::find_if(all, [](const Finding& f) {
      const diagnose::Values& values = f.text.values;
      return stands(f) &&
             (diagnose::has_value(values, "behind") || diagnose::has_value(values, "last"));
    });
  }
  if (about == all.end()) {
    about = std::ranges::max_element(all, {}, share_of);
    const double least = std::max(kLeastShare, stood_share(said));
    if (about != all.end() && share_of(*about) < least) about = all.end();
    const bool closed =
        std::ranges::find(all, diagnose::Kind::not_closed, &Finding::kind) == all.end();
    const Waited late = closed ? waited_for(known) : Waited();
    // Without times of the devices no finding tells what a slow rank costs, and others are less.
    if (!late.text.empty() &&
        (about == all.end() || (!known.timed && share_of(*about) < late.share))) {
      return {.text = as_sentence(late.text), .severity = "note", .finding = finding_of(late, all)};
    }
  }
  if (about == all.end()) about = std::ranges::find(all, Severity::warning, &Finding::severity);
  if (about == all.end()) about = std::ranges::find_if(all, stands);
  if (about == all.end()) {
    JobVerdict well = all_well(said, known);
    well.text = as_sentence(std::move(well.text)) + behind_values(known);
    return well;
  }
  return {.text = as_sentence(*about),
          .severity = about->severity_name(),
          .finding = static_cast<std::size_t>(about - all.begin())};
}

}  // namespace tprof::report
