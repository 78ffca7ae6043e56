#include "report/views.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "check/names.h"
#include "text/text.h"

namespace tprof::report {
namespace {

using check::LateArrival;
using check::Lateness;
using check::LateRank;
using text::thousands;

constexpr std::size_t kRanksShown = 20;

std::vector<Column<LateRank>> rank_columns(const Lateness& l) {
  return {{"rank", "rank", Unit::text, &LateRank::rank},
          {"host", "host", Unit::text, [](const LateRank& r) { return r.rank->header.host; }},
          {"came last", "last", Unit::count, &LateRank::last},
          {"of", "collectives", Unit::count, &LateRank::collectives},
          {"median", "median_ns", Unit::ns_not_0, &LateRank::median_ns},
          {"p99", "p99_ns", Unit::ns_not_0, &LateRank::p99_ns, Show::if_room},
          {"max", "max_ns", Unit::ns_not_0, &LateRank::max_ns, Show::if_room},
          {"sum", "sum_ns", Unit::ns_not_0, &LateRank::sum_ns},
          {"of the time", "share", Unit::share,
           [span = l.span_ns](const LateRank& r) {
             const double share = static_cast<double>(r.waited_ns) / static_cast<double>(span);
             return r.last == 0 || span <= 0 ? Value() : Value(share);
           }},
          {nullptr, "waited_ns", Unit::number, &LateRank::waited_ns},
          {"behind values", "sum_read_ns", Unit::ns_not_0, &LateRank::sum_read_ns, Show::if_any},
          {nullptr, "waited_read_ns", Unit::number, &LateRank::waited_read_ns}};
}

std::vector<Column<LateArrival>> worst_columns() {
  return {{"rank", "rank", Unit::text, &LateArrival::rank},
          {"late by", "late_ns", Unit::ns, &LateArrival::late_ns},
          {"first came before", "spread_ns", Unit::ns, &LateArrival::spread_ns, Show::if_room},
          {"step", "step", Unit::number, &LateArrival::step, Show::if_any},
          {"collective", "seq", Unit::number, &LateArrival::seq},
          {"operation", "function", Unit::text,
           [](const LateArrival& a) { return check::collective_name(a.bucket); }},
          {"communicator", "communicator", Unit::text, &LateArrival::communicator, Show::if_room},
          {"came at", "realtime_ns", Unit::utc, &LateArrival::realtime_ns, Show::if_room}};
}

// Explains the figures, and what they leave out.
Notes notes(const Lateness& l) {
  const bool read =
      std::ranges::any_of(l.ranks, [](const LateRank& r) { return r.sum_read_ns != 0; });
  return notes_if(
      {{true,
        "Late by: how long nobody else was waited for (since the last but one came, and all had "
        "come to the collective before), in collectives whose ranks all wait for each other. The "
        "sum runs over communicators; of the time from the first to the last arrival, what several "
        "of them waited counts once."},
       {l.on_device, "Arrivals are when the devices came to them."},
       {!l.on_device,
        "Arrivals are when the hosts called: NCCL calls return when the work is enqueued, so a "
        "device may have come later, and may have had other work meanwhile."},
       {read,
        "Behind values: so much of the sum may be its host's wait for its device, behind values "
        "that it read (.item()) and most others did not: whether it was late is not known."},
       {!l.across_hosts,
        "Only ranks of one host were compared with each other: clocks of different hosts can be "
        "compared if collectives are timed on the device (TPROF_TIMING=events)."},
       {l.at_most_ns >= 1,
        fmt::format("The clocks may be wrong by {}: smaller differences are not counted.",
                    check::duration(std::llround(l.at_most_ns)))},
       {l.compared < l.collectives,
        fmt::format("{} of {} collectives were compared: in the others some ranks have no line.",
                    thousands(l.compared), thousands(l.collectives))},
       {l.rooted != 0,
        fmt::format(
            "{} are not among these: of broadcasts and reduces not all ranks wait for the others.",
            check::counted(l.rooted, "collective"))},
       {l.untimed > 0, fmt::format("Not among these: {} without a device time.",
                                   check::counted(l.untimed, "call"))},
       {l.stride > 1, fmt::format("One in {} collectives was looked at.", l.stride)}});
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
  Section worst = {.at = "/worst"};
  if (l.compared == 0) {
    ranks.lead = {"No collective has lines of several ranks whose clocks can be compared."};
  }
  if (l.compared != 0 || who == For::programs) {
    ranks.table = sheet(rank_columns(l), l.ranks, who);
  }
  ranks.notes = notes(l);
  if (!l.worst.empty()) {
    worst.title = "Latest arrivals";
    worst.table = sheet(worst_columns(), l.worst, who);
  }
  if (std::ranges::any_of(l.worst, [](const LateArrival& a) { return a.step.has_value(); })) {
    worst.notes = how_found(found);
  }
  return {std::move(ranks), std::move(worst)};
}

}  // namespace tprof::report
