#include "diagnose/first_end.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "diagnose/completeness.h"
#include "diagnose/last_calls.h"
#include "diagnose/names.h"
#include "diagnose/waits.h"
#include "text/text.h"

namespace tprof::diagnose {
namespace {

using read::End;
using read::Process;
using Processes = std::vector<const Process*>;

// A process that closed ended then. One that was killed lived on for a moment after its last sign
// of life: its writer gives one five times a second, and now and then has to wait for a processor.
constexpr std::int64_t kBetweenSignsNs = 500'000'000;
constexpr std::int64_t kSilentNs = 50'000'000;
// Ranks that close within this time of each other closed for reasons of their own.
constexpr std::int64_t kTogetherNs = 1'000'000'000;
constexpr std::size_t kMaxCompared = 64;  // of those that ended earliest, with everybody

std::int64_t latest_ns(const Process& p) {
  return end_ns(p) + (p.end == End::closed ? 0 : kBetweenSignsNs);
}

bool ended_before(const Process& a, const Process& b, const Facts& facts) {
  const auto doubt = clock_doubt_ns(a, b, facts);
  const bool both_closed = a.end == End::closed && b.end == End::closed;
  return doubt && latest_ns(a) + *doubt + (both_closed ? kTogetherNs : 0) < end_ns(b);
}

// Those that nobody is known to have ended before.
Processes first_to_end(const Processes& ended, const Facts& facts) {
  std::map<std::pair<std::string, bool>, const Process*> of_host;  // the first that closed, or not
  for (const Process* p : ended) {
    const std::pair key(p->header.boot_id, p->end == End::closed);
    const Process*& first = of_host.try_emplace(key, p).first->second;
    if (latest_ns(*p) < latest_ns(*first)) first = p;
  }
  Processes earliest;
  for (const auto& [key, p] : of_host) earliest.push_back(p);
  std::ranges::stable_sort(earliest, {}, [](const Process* p) { return latest_ns(*p); });
  Processes first;
  std::ranges::copy_if(ended, std::back_inserter(first), [&](const Process* p) {
    const auto begin = earliest.begin();
    const auto end = begin + static_cast<std::ptrdiff_t>(std::min(earliest.size(), kMaxCompared));
    return std::none_of(begin, end, [&](const Process* e) { return ended_before(*e, *p, facts); });
  });
  // A host all of whose ranks are among them tells nothing, where another one tells something.
  std::map<std::string, std::size_t> left;
  for (const Process* p : ended) ++left[p->header.boot_id];
  for (const Process* p : first) --left[p->header.boot_id];
  if (std::ranges::any_of(left, [](const auto& host) { return host.second != 0; })) {
    std::erase_if(first, [&](const Process* p) { return left[p->header.boot_id] == 0; });
  }
  return first;
}

// How much longer than these the others of their host lived at the least; nothing: it has none.
std::optional<std::int64_t> longer_ns(const Processes& first, const Processes& others) {
  std::optional<std::int64_t> least;
  for (const Process* p : others) {
    if (p->header.boot_id != first[0]->header.boot_id) continue;
    const std::int64_t longer = end_ns(*p) - end_ns(*first[0]);
    if (!least || longer < *least) least = longer;
  }
  return least;
}

std::string sentence(const Processes& closed, const Processes& killed, const Processes& others,
                     const Processes& unknown) {
  const Processes& who = closed.empty() ? killed : closed;
  const std::string when = utc(end_ns(*who[0]));
  if (!closed.empty() && !killed.empty()) {
    return fmt::format(
        "{} closed in order at {} (an exception, or an early exit?), about when {} {} killed or "
        "crashed: who was first, the traces do not tell",
        names_of(closed), when, names_of(killed), killed.size() == 1 ? "was" : "were");
  }
  const auto longer = longer_ns(who, others);
  return fmt::format("{} ended first{}: {} {}{}", names_of(who),
                     unknown.empty() ? "" : " of those whose end is known",
                     closed.empty() ? "killed or crashed, last heard of at" : "closed in order at",
                     when + (closed.empty() ? "" : " (an exception, or an early exit?)"),
                     !longer || *longer < 0
                         ? ""
                         : fmt::format("; the others lived for {} more",
                                       report::duration(static_cast<std::uint64_t>(*longer))));
}

// Of ranks of one host that were all killed within a moment: no more than what was seen.
void add_who_fell_silent(Processes killed, Problem& about) {
  if (killed.size() < 2) return;
  std::ranges::stable_sort(killed, {}, [](const Process* p) { return end_ns(*p); });
  const Process& first = *killed[0];
  const std::int64_t longer = end_ns(*killed[1]) - end_ns(first);
  const bool one_host = std::ranges::all_of(
      killed, [&](const Process* p) { return p->header.boot_id == first.header.boot_id; });
  if (!one_host || longer < kSilentNs) return;
  about.evidence.insert(
      about.evidence.begin(),
      fmt::format("{} was last heard of at {}, the others for {} more (at every call, and five "
                  "times a second)",
                  name_of(first), utc(end_ns(first)),
                  report::duration(static_cast<std::uint64_t>(longer))));
  about.next = LastCalls::where_to_look(first);
}

}  // namespace

void name_who_ended_first(const match::Job& job, const Facts& facts, std::vector<Problem>& found) {
  // A note stays one: that ranks which nobody waited for were ended one by one proves no more.
  auto about = found.end();
  for (const Severity severity : {Severity::warning, Severity::note}) {
    if (about != found.end()) break;
    about = std::ranges::find_if(found, [&](const Problem& p) {
      return p.severity == severity && (p.kind == "stopped" || p.kind == "not_closed");
    });
  }
  if (about == found.end()) return;
  Processes ended;
  Processes others;
  Processes snapshots;
  for (const Process* p : job.processes) {
    if (p->end == End::lost || p->comms.empty()) continue;
    (p->snapshot ? snapshots : p->end == End::running ? others : ended).push_back(p);
  }
  Processes closed;
  Processes killed;
  std::set<const Process*> first;
  for (const Process* p : first_to_end(ended, facts)) {
    (p->end == End::closed ? closed : killed).push_back(p);
    first.insert(p);
  }
  std::ranges::copy_if(ended, std::back_inserter(others),
                       [&](const Process* p) { return !first.contains(p); });
  // One that is known by a snapshot may have ended right behind it.
  Processes unknown;
  for (const Process* p : snapshots) {
    const bool lived =
        std::ranges::all_of(first, [&](const Process* e) { return ended_before(*e, *p, facts); });
    (lived ? others : unknown).push_back(p);
  }
  if (first.empty() || (others.empty() && closed.empty())) {
    if (others.empty()) add_who_fell_silent(std::move(killed), *about);
    return;
  }
  if (others.empty() && killed.empty()) return;
  const Processes& who = closed.empty() ? killed : closed;
  const std::string text = sentence(closed, killed, others, unknown);
  const std::vector<std::int64_t> ranks = ranks_of({first.begin(), first.end()});
  const bool named = std::ranges::any_of(who, [&](const Process* p) {
    return p->header.rank && std::ranges::binary_search(about->ranks, *p->header.rank);
  });
  if ((about->kind == "stopped" && named) || about->severity == Severity::note) {
    about->evidence.insert(about->evidence.begin(), text);
    return;
  }
  about->kind = "stopped";
  about->ranks = ranks;
  about->evidence.insert(about->evidence.begin(), about->text);
  if (!unknown.empty()) about->evidence.push_back(unknown_since(unknown));
  about->text = text;
  about->next = LastCalls::where_to_look(*who[0]);
  std::rotate(found.begin(), about, about + 1);
}

}  // namespace tprof::diagnose
