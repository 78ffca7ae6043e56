#include "report/lateness.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "diagnose/names.h"
#include "report/json.h"
#include "report/steps.h"
#include "text/text.h"

namespace tprof::report {
namespace {

using diagnose::LateArrival;
using diagnose::Lateness;
using diagnose::LateRank;
using text::Table;
using text::thousands;

using enum Table::Align;

constexpr std::size_t kRanksShown = 20;

std::string time_text(std::int64_t ns) {
  return text::duration(static_cast<std::uint64_t>(std::max<std::int64_t>(ns, 0)));
}

std::string name_of(const read::Process& p) {
  return p.header.rank ? std::to_string(*p.header.rank) : diagnose::name_of(p);
}

std::string share(std::int64_t part, std::int64_t all) {
  return all <= 0
             ? "-"
             : fmt::format("{:.1f}%", 100 * static_cast<double>(part) / static_cast<double>(all));
}

std::string rank_table(const Lateness& l) {
  Table table({{"rank", left},
               {"host", left},
               {"came last", right},
               {"of", right},
               {"median", right},
               {"p99", right},
               {"max", right},
               {"sum", right},
               {"of the time", right}});
  std::size_t shown = 0;
  for (const LateRank& r : l.ranks) {
    if (++shown > kRanksShown) break;
    const bool never = r.last == 0;
    const auto time = [&](std::int64_t ns) { return never ? "-" : time_text(ns); };
    table.row({name_of(*r.rank), text::printable(r.rank->header.host), thousands(r.last),
               thousands(r.collectives), time(r.median_ns), time(r.p99_ns), time(r.max_ns),
               time(r.sum_ns), never ? "-" : share(r.sum_ns, l.span_ns)});
  }
  std::string out = table.str();
  if (l.ranks.size() > kRanksShown) {
    out += fmt::format("  and {} more (all of them: --json)\n", l.ranks.size() - kRanksShown);
  }
  return out;
}

bool any_step(const Lateness& l) {
  return std::ranges::any_of(l.worst, [](const LateArrival& a) { return a.step.has_value(); });
}

std::string worst_table(const Lateness& l) {
  const bool steps = any_step(l);
  std::vector<std::pair<std::string, Table::Align>> columns = {
      {"rank", left}, {"late by", right}, {"first came before", right}};
  if (steps) columns.emplace_back("step", right);
  columns.insert(
      columns.end(),
      {{"collective", right}, {"operation", left}, {"communicator", left}, {"came at", left}});
  Table table(columns);
  for (const LateArrival& a : l.worst) {
    std::vector<std::string> cells = {name_of(*a.rank), time_text(a.late_ns),
                                      time_text(a.spread_ns)};
    if (steps) cells.push_back(a.step ? std::to_string(*a.step) : "-");
    cells.insert(cells.end(), {std::to_string(a.seq), diagnose::collective_name(a.bucket),
                               text::printable(a.communicator), diagnose::utc(a.realtime_ns)});
    table.row(std::move(cells));
  }
  return table.str();
}

// Explains the figures, and what they leave out.
std::string notes(const Lateness& l) {
  std::string out =
      "  Late by: how long nobody else was waited for (since the last but one came, and all had "
      "come to the collective before), in collectives whose ranks all wait for each other.\n";
  out += l.on_device ? "  Arrivals are when the devices came to them.\n"
                     : "  Arrivals are when the hosts called: NCCL calls return when the work is "
                       "enqueued, so a "
                       "device may have come later, and may have had other work meanwhile.\n";
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
  if (l.untimed > 0) {
    out += fmt::format("  {} calls have no device time: they are not among these.\n",
                       thousands(l.untimed));
  }
  if (l.stride > 1) {
    out += fmt::format("  One in {} collectives was looked at.\n", l.stride);
  }
  return out;
}

}  // namespace

std::string to_text(const Lateness& l, const steps::Found& found) {
  if (l.compared == 0) {
    return "  No collective has lines of several ranks whose clocks can be compared.\n" + notes(l);
  }
  std::string out = rank_table(l);
  if (!l.worst.empty()) out += "\nLatest arrivals\n" + worst_table(l);
  return out + notes(l) + (any_step(l) ? how_found(found) : "");
}

nlohmann::ordered_json to_json(const Lateness& l) {
  const auto rank = [](const read::Process& p) {
    return p.header.rank ? Json(*p.header.rank) : Json();
  };
  Json j = {{"from", l.on_device ? "device" : "host"},
            {"across_hosts", l.across_hosts},
            {"collectives", l.collectives},
            {"compared", l.compared},
            {"untimed", l.untimed},
            {"one_in", l.stride},
            {"span_ns", l.span_ns},
            {"clocks_at_most_ns", std::llround(l.at_most_ns)}};
  Json& ranks = j["ranks"] = Json::array();
  for (const LateRank& r : l.ranks) {
    ranks.push_back({{"rank", rank(*r.rank)},
                     {"collectives", r.collectives},
                     {"last", r.last},
                     {"sum_ns", r.sum_ns},
                     {"median_ns", r.median_ns},
                     {"p99_ns", r.p99_ns},
                     {"max_ns", r.max_ns}});
  }
  Json& worst = j["worst"] = Json::array();
  for (const LateArrival& a : l.worst) {
    worst.push_back({{"rank", rank(*a.rank)},
                     {"communicator", a.communicator},
                     {"seq", a.seq},
                     {"function", diagnose::collective_name(a.bucket)},
                     {"late_ns", a.late_ns},
                     {"spread_ns", a.spread_ns},
                     {"realtime_ns", a.realtime_ns},
                     {"step", a.step ? Json(*a.step) : Json()}});
  }
  return j;
}

}  // namespace tprof::report
