#include "report/views.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "diagnose/names.h"
#include "report/steps.h"
#include "text/text.h"

namespace tprof::report {
namespace {

using diagnose::LateArrival;
using diagnose::Lateness;
using diagnose::LateRank;
using text::thousands;

constexpr std::size_t kRanksShown = 20;

std::string time_text(std::int64_t ns) {
  return text::duration(static_cast<std::uint64_t>(std::max<std::int64_t>(ns, 0)));
}

std::string name_of(const read::Process& p) {
  return p.header.rank ? std::to_string(*p.header.rank) : diagnose::name_of(p);
}

// A rank that has none is named by its process, and programs get null.
template <typename Row>
Value rank_of(const Row& r) {
  const auto& rank = r.rank->header.rank;
  return rank ? Value(*rank) : Unknown();
}

bool any_read(const Lateness& l) {
  return std::ranges::any_of(l.ranks, [](const LateRank& r) { return r.sum_read_ns != 0; });
}

std::vector<Column<LateRank>> rank_columns(const Lateness& l) {
  return {{"rank", nullptr, Unit::text, [](const LateRank& r) { return name_of(*r.rank); }},
          {nullptr, "rank", Unit::number, rank_of<LateRank>},
          {"host", nullptr, Unit::text,
           [](const LateRank& r) { return std::string(r.rank->header.host); }},
          {"came last", "last", Unit::count, &LateRank::last},
          {"of", "collectives", Unit::count, &LateRank::collectives},
          {"median", "median_ns", Unit::ns_not_0, &LateRank::median_ns},
          {"p99", "p99_ns", Unit::ns_not_0, &LateRank::p99_ns, Show::if_room},
          {"max", "max_ns", Unit::ns_not_0, &LateRank::max_ns},
          {"sum", "sum_ns", Unit::ns_not_0, &LateRank::sum_ns},
          {"of the time", nullptr, Unit::share,
           [span = l.span_ns](const LateRank& r) {
             return r.last == 0 ? Value() : Share{r.waited_ns, span};
           }},
          {nullptr, "waited_ns", Unit::number, &LateRank::waited_ns},
          {any_read(l) ? "behind values" : nullptr, "sum_read_ns", Unit::ns_not_0,
           &LateRank::sum_read_ns},
          {nullptr, "waited_read_ns", Unit::number, &LateRank::waited_read_ns}};
}

bool any_step(const Lateness& l) {
  return std::ranges::any_of(l.worst, [](const LateArrival& a) { return a.step.has_value(); });
}

std::vector<Column<LateArrival>> worst_columns(const Lateness& l) {
  return {{"rank", nullptr, Unit::text, [](const LateArrival& a) { return name_of(*a.rank); }},
          {nullptr, "rank", Unit::number, rank_of<LateArrival>},
          {"late by", "late_ns", Unit::ns, &LateArrival::late_ns},
          {"first came before", "spread_ns", Unit::ns, &LateArrival::spread_ns, Show::if_room},
          {any_step(l) ? "step" : nullptr, "step", Unit::number,
           [](const LateArrival& a) { return a.step ? Value(*a.step) : Unknown(); }},
          {"collective", "seq", Unit::number, &LateArrival::seq},
          {"operation", "function", Unit::text,
           [](const LateArrival& a) { return std::string(diagnose::collective_name(a.bucket)); }},
          {"communicator", "communicator", Unit::text, &LateArrival::communicator, Show::if_room},
          {"came at", nullptr, Unit::text,
           [](const LateArrival& a) { return diagnose::utc(a.realtime_ns); }, Show::if_room},
          {nullptr, "realtime_ns", Unit::number, &LateArrival::realtime_ns}};
}

// Explains the figures, and what they leave out.
std::string notes(const Lateness& l) {
  std::string out =
      "  Late by: how long nobody else was waited for (since the last but one came, and all had "
      "come to the collective before), in collectives whose ranks all wait for each other. The sum "
      "runs over communicators; of the time from the first to the last arrival, what several of "
      "them waited counts once.\n";
  out += l.on_device ? "  Arrivals are when the devices came to them.\n"
                     : "  Arrivals are when the hosts called: NCCL calls return when the work is "
                       "enqueued, so a "
                       "device may have come later, and may have had other work meanwhile.\n";
  if (any_read(l)) {
    out +=
        "  Behind values: so much of the sum may be its host's wait for its device, behind values "
        "that it read (.item()) and most others did not: whether it was late is not known.\n";
  }
  if (!l.across_hosts) {
    out +=
        "  Only ranks of one host were compared with each other: clocks of different hosts can be "
        "compared if collectives are timed on the device (TPROF_TIMING=events).\n";
  }
  if (l.at_most_ns >= 1) {
    out += fmt::format("  The clocks may be wrong by {}: smaller differences are not counted.\n",
                       time_text(std::llround(l.at_most_ns)));
  }
  if (l.compared < l.collectives) {
    out += fmt::format(
        "  {} of {} collectives were compared: in the others some ranks have no line.\n",
        thousands(l.compared), thousands(l.collectives));
  }
  if (l.rooted != 0) {
    out += fmt::format(
        "  {} are not among these: of broadcasts and reduces not all ranks wait for the others.\n",
        diagnose::counted(l.rooted, "collective"));
  }
  if (l.untimed > 0) {
    out += fmt::format("  {} no device time: {} not among these.\n",
                       diagnose::counted(l.untimed, "call") + (l.untimed == 1 ? " has" : " have"),
                       l.untimed == 1 ? "it is" : "they are");
  }
  if (l.stride > 1) {
    out += fmt::format("  One in {} collectives was looked at.\n", l.stride);
  }
  return out;
}

}  // namespace

std::vector<Section> sections_of(const Lateness& l, const steps::Found& found, For who) {
  Section ranks = {.title = "Who came last",
                   .at = "/ranks",
                   .facts = {{"from", l.on_device ? "device" : "host"},
                             {"across_hosts", l.across_hosts},
                             {"collectives", l.collectives},
                             {"rooted", l.rooted},
                             {"compared", l.compared},
                             {"untimed", l.untimed},
                             {"one_in", l.stride},
                             {"span_ns", l.span_ns},
                             {"clocks_at_most_ns", std::llround(l.at_most_ns)}},
                   .room = {.rows = kRanksShown}};
  Section worst = {.notes = notes(l), .at = "/worst"};
  if (l.compared == 0 && who == For::people) {
    ranks.lead = "  No collective has lines of several ranks whose clocks can be compared.\n";
    return {ranks, worst};
  }
  ranks.table = sheet(rank_columns(l), l.ranks, who);
  if (!l.worst.empty()) {
    worst.title = "Latest arrivals";
    worst.table = sheet(worst_columns(l), l.worst, who);
  }
  if (any_step(l)) worst.notes += how_found(found);
  return {std::move(ranks), std::move(worst)};
}

}  // namespace tprof::report
