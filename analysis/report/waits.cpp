// How long calls waited for other ranks and how long they transferred.
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "check/names.h"
#include "report/views.h"
#include "text/text.h"

namespace tprof::report {

namespace {

using why::Spent;
using why::WaitRow;
using why::WaitTable;

constexpr std::size_t kWaitsShown = 40;

Json spent_of(const Spent& s) {
  return {{"calls", s.calls}, {"wait_ns", s.wait_ns}, {"transfer_ns", s.transfer_ns}};
}

Json all_ranks(const WaitRow& r) {
  Json all = Json::array();
  for (const why::WaitOfRank& w : r.of_ranks) {
    Json one = {{"rank", w.rank->header.rank ? Json(*w.rank->header.rank) : Json()}};
    one.update(spent_of(w.spent));
    one.update(
        {{"last", w.last.times}, {"late_ns", w.last.sum_ns}, {"late_ns_max", w.last.most_ns}});
    all.push_back(std::move(one));
  }
  return all;
}

Json all_steps(const WaitRow& r) {
  Json all = Json::array();
  for (const auto& [step, spent] : r.of_steps) {
    Json one = {{"step", step}};
    one.update(spent_of(spent));
    all.push_back(std::move(one));
  }
  return all;
}

// Per rank and step; nothing without steps.
Value of_a_step(const WaitRow& r, std::int64_t Spent::*part) {
  if (r.rank_steps == 0 || r.in_steps.calls == 0) return {};
  return r.in_steps.*part / static_cast<std::int64_t>(r.rank_steps);
}

Value known(const WaitRow& r, std::int64_t Spent::*part) {
  return r.spent.calls == 0 ? Value() : Value(r.spent.*part);
}

// "rank 3: 12 of 30": how often it came last.
Value last_text(const WaitRow& r) {
  const why::WaitOfRank* last = r.most_often_last();
  if (last == nullptr) return {};
  return fmt::format("{}: {} of {}", check::name_of_rank(*last->rank),
                     text::thousands(last->last.times), text::thousands(r.meetings));
}

// By how much on average.
Value last_by(const WaitRow& r) {
  const why::WaitOfRank* last = r.most_often_last();
  if (last == nullptr) return {};
  return last->last.sum_ns / static_cast<std::int64_t>(last->last.times);
}

std::vector<Column<WaitRow>> columns(const std::map<std::string, std::string>& roles) {
  const auto role = [roles](const WaitRow& r) {
    const auto of = roles.find(r.comm);
    return of == roles.end() ? std::string() : of->second;
  };
  const auto ns = [](const char* title, const char* key, auto of, std::int64_t Spent::*part,
                     Show show) {
    return Column<WaitRow>{title, key, Unit::ns, [=](const WaitRow& r) { return of(r, part); },
                           show};
  };
  return {
      {"bucket", "bucket", Unit::text, [](const WaitRow& r) { return bucket_name(r.bucket); }},
      {"size", "bytes_class", Unit::size_class, &WaitRow::size_class},
      {nullptr, "size", Unit::text,
       [](const WaitRow& r) { return check::size_class(r.size_class); }},
      {"role", "role", Unit::name, role, Show::if_room},
      {"ranks", "of", Unit::text, &WaitRow::ranks},
      {nullptr, "communicator", Unit::text, &WaitRow::comm},
      {nullptr, "nranks", Unit::number, &WaitRow::nranks},
      {"calls", "calls", Unit::count, &WaitRow::calls, Show::if_room},
      {nullptr, "bytes", Unit::bytes, &WaitRow::bytes},
      {"known", "known", Unit::count, [](const WaitRow& r) { return r.spent.calls; },
       Show::if_room},
      ns("wait", "wait_ns", known, &Spent::wait_ns, Show::always),
      ns("transfer", "transfer_ns", known, &Spent::transfer_ns, Show::always),
      ns("wait/step", "wait_ns_per_step", of_a_step, &Spent::wait_ns, Show::if_room),
      ns("transfer/step", "transfer_ns_per_step", of_a_step, &Spent::transfer_ns, Show::if_room),
      {"busbw GB/s", "busbw_GBps", Unit::rate, &WaitRow::busbw_GBps, Show::if_room},
      {"of peak", "peak_share", Unit::share, &WaitRow::peak_share, Show::if_any},
      {"last most often", "last_most_often", Unit::text, last_text},
      {"by", "last_by_ns", Unit::ns, last_by, Show::if_room},
      {nullptr, "meetings", Unit::count, &WaitRow::meetings},
      {nullptr, "usual_transfer_ns", Unit::ns,
       [](const WaitRow& r) { return r.meetings == 0 ? Value() : Value(r.usual_transfer_ns); }},
      {nullptr, "rank_count", Unit::count, [](const WaitRow& r) { return r.ranks.size(); }},
      {nullptr, "ranks", Unit::text, all_ranks},
      {nullptr, "steps", Unit::text, all_steps}};
}

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

// Explains the figures and their limits.
Notes notes(const Lateness& l) {
  const bool read =
      std::ranges::any_of(l.ranks, [](const LateRank& r) { return r.sum_read_ns != 0; });
  return notes_if(
      {{true,
        "Late by: how long only this rank was waited for (since the last but one came, and all had "
        "come to the previous collective), in collectives in which all ranks wait for each other. "
        "The sum runs over communicators; in the share of the time from first to last arrival, "
        "simultaneous waits count once."},
       {l.on_device,
        "Arrivals are when the devices reached them. A rank that came last may itself have waited "
        "for another one before."},
       {!l.on_device,
        "Arrivals are when the hosts called: NCCL calls return when the work is enqueued, so a "
        "device may have arrived later, and may have had other work meanwhile."},
       {read,
        "Behind values: the part of the sum in which its host may have waited for its device, "
        "after it read values (.item()) that most others did not read: it is unknown whether the "
        "rank was late then."},
       {!l.across_hosts,
        "Only ranks of one host were compared with each other: clocks of different hosts can be "
        "compared if collectives are timed on the device (TPROF_TIMING=events)."},
       {l.at_most_ns >= 1,
        fmt::format("The clocks may be off by {}: smaller differences are not counted.",
                    check::duration(std::llround(l.at_most_ns)))},
       {l.compared < l.collectives,
        fmt::format("{} of {} collectives were compared: in the others some ranks have no line.",
                    thousands(l.compared), thousands(l.collectives))},
       {l.rooted != 0,
        fmt::format(
            "{} are not among these: in broadcasts and reduces not all ranks wait for the others.",
            check::counted(l.rooted, "collective"))},
       {l.untimed > 0, fmt::format("Not among these: {} without a device time.",
                                   check::counted(l.untimed, "call"))},
       {l.stride > 1, fmt::format("One in {} collectives was compared.", l.stride)}});
}

}  // namespace

Section section_of(const WaitTable& waits, const std::vector<tables::CommSummary>& comms, For who) {
  Section s = {.title = "Waiting for other ranks, and transfer",
               .at = "/rows",
               .facts = {{"known", waits.known}, {"step_stride", waits.step_stride}},
               .room = {.rows = kWaitsShown}};
  if (!waits.known) {
    s.lead = {
        "Not known: no collective was timed on the devices of several ranks "
        "(TPROF_TIMING=events)."};
    if (who == For::people) return s;
  }
  s.table = sheet(columns(tables::role_texts(comms)), waits.rows, who);
  s.notes = {
      "Wait: until the last rank came, or the other end of a message. Transfer: from then to the "
      "end. Both are sums over the ranks, for calls with both known. /step: per rank and step. "
      "busbw is that of the median transfer.",
      "Known: how many these are, without calls of a group that share one time."};
  return s;
}

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
