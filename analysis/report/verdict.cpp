#include "report/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <functional>

#include "check/ends.h"
#include "check/names.h"
#include "report/words.h"
#include "text/text.h"

namespace tprof::report {
namespace {

using check::Finding;
using check::Findings;
using check::Kind;
using check::LateRank;
using check::Severity;

// Returns null if there is none.
template <typename Test>
const Finding* first_of(const Findings& all, const Test& test) {
  const auto f = std::ranges::find_if(all, test);
  return f == all.end() ? nullptr : &*f;
}

const Finding* of_kind(const Findings& all, Kind kind) {
  return first_of(all, [&](const Finding& f) { return f.kind == kind; });
}

constexpr double kLeastShare = 0.01;  // share of time; anything less does not make a job slow
constexpr double kLateShare = 0.05;
constexpr std::int64_t kTimesTheOthers = 4;  // the median of the other ranks

std::string with_stop(std::string text) {
  if (!text.empty() && text.back() != '.') text += '.';
  return text;
}

std::string as_sentence(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return with_stop(std::move(text));
}

// A sentence about an unreadable file begins with its path, which is not capitalised.
std::string as_sentence(const Finding& f) {
  std::string text = text::printable(sentence(f.text));
  return f.kind == Kind::unreadable ? with_stop(std::move(text)) : as_sentence(std::move(text));
}

double share_of(const Finding& f) {
  return f.cost ? f.cost->share : 0;
}

double share_of(const LateRank& r, const Known& known, bool own) {
  const std::int64_t ns = r.waited_ns - (own ? r.waited_read_ns : 0);
  return known.late->span_ns <= 0
             ? 0
             : static_cast<double>(ns) / static_cast<double>(known.late->span_ns);
}

// True if a running job has made no call for a moment.
bool stands(const Finding& f) {
  return f.kind == Kind::running && check::has_value(f.text.values, "quiet");
}

template <typename T>
std::optional<T> optional_of(const check::Values& values, std::string_view name) {
  const T* value = check::value_of<T>(values, name);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

// The share of the run that an unclosed job had stood still at its end.
double stood_share(const check::Diagnosed& said) {
  const Finding* f = of_kind(said.findings, Kind::not_closed);
  if (f == nullptr) return 0;
  const auto* quiet = check::value_of<check::Ns>(f->text.values, "quiet");
  if (quiet == nullptr) return 0;
  std::int64_t run_ns = 0;
  for (const read::Process* p : said.job->processes) {
    run_ns = std::max(run_ns, check::known_until_ns(*p) - check::began_ns(*p));
  }
  return run_ns <= 0 ? 0 : static_cast<double>(quiet->n) / static_cast<double>(run_ns);
}

// Returns the rank that others waited for far longer than for any other; null: none. `own`: without
// the time that its host may have waited for its device to read values. Short runs have no such
// finding (check/lateness.cpp), so this goes by the share of time.
const LateRank* waited_for(const Known& known, bool own) {
  if (known.late == nullptr || known.late->ranks.size() < 2) return nullptr;
  const auto sum = [&](const LateRank* r) { return own ? r->own_ns() : r->sum_ns; };
  std::vector<const LateRank*> all;
  for (const LateRank& r : known.late->ranks) all.push_back(&r);
  std::ranges::stable_sort(all, std::ranges::greater(), sum);
  const bool read = all[0]->own_ns() < all[0]->sum_read_ns;  // reads explain most of it
  const bool more = sum(all[0]) / kTimesTheOthers >= sum(all[all.size() / 2]);
  return read != own && more && share_of(*all[0], known, own) >= kLateShare ? all[0] : nullptr;
}

std::string came_last(const LateRank& r) {
  return fmt::format("{} came last to {} of {} collectives", check::name_of_rank(*r.rank),
                     text::thousands(r.last), text::thousands(r.collectives));
}

constexpr const char* kNothing = "Nothing is wrong";
constexpr double kMuchExposed = 0.1;  // of a step; more is not fine

// If all communicators have the same ranks on several hosts, slow transfers can't be recognised.
std::string no_cause(const check::Diagnosed& said) {
  const auto host = [](const read::Process* p) -> std::string_view { return p->header.host; };
  const auto& all = said.job->processes;
  const bool one_host =
      std::ranges::adjacent_find(all, std::ranges::not_equal_to(), host) == all.end();
  const bool differ = std::ranges::any_of(said.communicators, [&](const auto& c) {
    return c.members.size() > 1 && c.members.size() < said.job->ranks.size();
  });
  return one_host || differ ? "and no cause of that was found"
                            : "and no cause of that was found (permanently slow links can't be "
                              "recognised if all communicators have the same ranks)";
}

std::string everybody(const check::Diagnosed& said) {
  const std::size_t n = said.job->ranks.size();
  return n == 0 ? check::counted(said.job->processes.size(), "process") : check::counted(n, "rank");
}

// Says what the ranks did, if none is known to have done anything else.
std::string made(const check::Diagnosed& said, const std::string& who) {
  check::CommunicatorVerdict sum;
  std::uint64_t communicators = 0;
  for (const check::CommunicatorVerdict& c : said.communicators) {
    sum.add(c);
    communicators += c.collectives != 0 ? 1 : 0;
  }
  const std::string all = check::counted(sum.collectives, "collective");
  if (sum.collectives == 0 && sum.sends == 0 && sum.receives == 0) {
    return who + " made no collectives";
  }
  if (sum.collectives == 0) {
    return fmt::format("{} made {} and {}, but no collectives", who,
                       check::counted(sum.sends, "send"), check::counted(sum.receives, "receive"));
  }
  // With several communicators, not every rank is in each.
  const std::string same =
      communicators == 1
          ? "did the same " + all
          : fmt::format("agreed on {} of {}", all, check::counted(communicators, "communicator"));
  const bool all_seen = sum.verdict == check::Verdict::same;
  return fmt::format("{} {}{}", who, same, all_seen ? "" : ", as far as seen");
}

// Unclosed ranks are not known to have been at work, nor that all is well. Children of ranks often
// end like this. Empty: all closed.
std::string not_closed(const Finding* f, const check::Diagnosed& said) {
  if (f == nullptr) return "";
  const check::Processes who = check::select(said.job->processes, [](const read::Process& p) {
    return p.end == read::End::recovered && !p.snapshot && !read::is_child(p);
  });
  if (who.empty()) return "";
  const auto silent = std::ranges::find(f->evidence, check::Say::fell_silent, &check::Fact::what);
  const check::Values none;
  const check::Values& of_silent = silent == f->evidence.end() ? none : silent->values;
  return filled(
      "{who} ended without closing[ ({silent} fell silent first, {longer} before the others)]: "
      "killed by a signal, or ended in a way that tprof does not see; until then {made}[, and made "
      "no call in the last {quiet}]",
      {{"who", who},
       {"silent", optional_of<check::Who>(of_silent, "who")},
       {"longer", optional_of<check::Ns>(of_silent, "longer")},
       {"made", made(said, who.size() == said.job->processes.size() ? "they" : everybody(said))},
       {"quiet", optional_of<check::Ns>(f->text.values, "quiet")}});
}

// Says how far running ranks are. Empty: all are equally far, or none runs.
std::string how_far(const check::Diagnosed& said) {
  if (of_kind(said.findings, Kind::running) == nullptr) return "";
  for (const check::CommunicatorVerdict& c : said.communicators) {
    if (c.fewest == c.most) continue;
    return fmt::format("{} so far: the ranks still run, and some are behind: {} made {} of {}",
                       kNothing, check::names_of(check::processes_of(who_issued(c, c.fewest))),
                       check::counted(c.fewest, "collective"), text::thousands(c.most));
  }
  return "";
}

JobVerdict all_well(const check::Diagnosed& said, const Known& known) {
  const Finding* ended = of_kind(said.findings, Kind::not_closed);
  const std::string not_well = not_closed(ended, said);
  std::string out = not_well.empty() ? how_far(said) : not_well;
  const bool steps = known.step_ns.has_value();
  const bool looked = known.why_not.empty() && known.looked_for;
  const bool well = !steps || known.exposed_share <= kMuchExposed;
  const bool sent_any = std::ranges::any_of(
      said.communicators, [](const auto& c) { return c.collectives + c.sends + c.receives != 0; });
  if (out.empty() && !sent_any) {
    out = filled("{who}, no collectives, {copies:,} {copies?copy|copies}{steps?|; no steps found}",
                 {{"who", everybody(said)}, {"copies", known.copies}, {"steps", steps}});
  } else if (out.empty()) {
    out = filled(
        "{well?" + std::string(kNothing) +
            "|The ranks did nothing wrong}: {made}{speed?|; no steps are known, so their speed is "
            "unknown (TPROF_STEP=call:FUNCTION names the call that ends each step)}",
        {{"well", well && looked},
         {"made", made(said, everybody(said))},
         {"speed", known.why_not.empty() || steps}});
  }
  std::optional<check::Ns> step;
  std::optional<check::Percent> exposed;
  if (steps) step = {*known.step_ns};
  if (steps && known.exposed_share) exposed = {100 * *known.exposed_share};
  out += filled(
      "[; a step{whole?|, or a micro-batch of one,} takes {step} on average][, of which {exposed} "
      "is exposed communication][, {nothing}].[ The causes of slow steps are not known: "
      "{why}.]",
      {{"step", step},
       {"whole", known.whole_steps},
       {"exposed", exposed},
       {"nothing", looked && !well ? std::optional(no_cause(said)) : std::nullopt},
       {"why", steps && not_well.empty() && !known.why_not.empty() ? std::optional(known.why_not)
                                                                   : std::nullopt}});
  JobVerdict verdict{.text = text::printable(out)};
  if (not_well.empty()) return verdict;
  verdict.severity = "note";
  verdict.finding = static_cast<std::size_t>(ended - said.findings.data());
  return verdict;
}

}  // namespace

bool notes_the_end(const Finding& f) {
  return f.kind == Kind::not_closed && f.severity == Severity::note;
}

JobVerdict verdict_of(const check::Diagnosed& said, const Known& known) {
  const Findings& all = said.findings;
  const auto about = [&](const Finding& f) -> JobVerdict {
    return {.text = as_sentence(f),
            .severity = f.severity_name(),
            .finding = static_cast<std::size_t>(&f - all.data())};
  };
  const std::function<bool(const Finding&)> kMoreThanCosts[] = {
      check::keeps_from_going_on, [](const Finding& f) { return f.severity == Severity::error; },
      // A rank that ended at work matters more than a slow job. If all ended together, they were
      // ended by Ctrl-C or a time limit, unless one may have been first.
      [&](const Finding& f) {
        const bool ended = f.kind == Kind::stopped || f.kind == Kind::not_closed;
        return ended && f.severity == Severity::warning &&
               (f.ranks.size() < said.job->ranks.size() ||
                f.text.what == check::Say::killed_together);
      },
      [](const Finding& f) { return f.kind == Kind::exited; },
      // A job that stands still is worse than any cause of slow steps.
      [](const Finding& f) {
        const check::Values& values = f.text.values;
        return stands(f) &&
               (check::has_value(values, "behind") || check::has_value(values, "last"));
      }};
  for (const auto& test : kMoreThanCosts) {
    if (const Finding* f = first_of(all, test)) return about(*f);
  }
  const double least = std::max(kLeastShare, stood_share(said));
  const Finding* f = nullptr;
  const auto most = std::ranges::max_element(all, {}, [](const auto& of) { return share_of(of); });
  if (most != all.end() && share_of(*most) >= least) f = &*most;
  const LateRank* late =
      of_kind(all, Kind::not_closed) == nullptr ? waited_for(known, true) : nullptr;
  // Without device times no finding has the cost of a slow rank, and others cost less.
  if (late != nullptr &&
      (f == nullptr || (!known.timed && share_of(*f) < share_of(*late, known, true)))) {
    f = first_of(all, [&](const Finding& each) {
      return each.kind == Kind::late && each.ranks.contains(late->rank->header.rank.value_or(-1));
    });
    JobVerdict verdict = f == nullptr ? JobVerdict{} : about(*f);
    verdict.text = as_sentence(fmt::format(
        "{}, by {} in all; {}", came_last(*late), check::duration(late->own_ns()),
        known.timed ? "the cost is unknown without steps" : "TPROF_TIMING=events shows the cost"));
    verdict.severity = "note";
    return verdict;
  }
  if (f == nullptr)
    f = first_of(all, [](const auto& w) { return w.severity == Severity::warning; });
  if (f == nullptr) f = first_of(all, stands);
  if (f != nullptr) return about(*f);
  JobVerdict well = all_well(said, known);
  well.text = as_sentence(std::move(well.text));
  // This blames no rank.
  if (const LateRank* r = waited_for(known, false)) {
    well.text +=
        " " + as_sentence(came_last(*r) +
                          ", mostly after it read values (.item()) that most others do not read: "
                          "its host waits there for its device, or uses the values. Only "
                          "TPROF_TIMING=events shows who holds up the others");
  }
  return well;
}

}  // namespace tprof::report
