// How long calls waited for other ranks and how long they transferred.
#include <fmt/format.h>

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

// Per rank and step; nothing where no step is known.
Value of_a_step(const WaitRow& r, std::int64_t Spent::*part) {
  if (r.rank_steps == 0 || r.in_steps.calls == 0) return {};
  return r.in_steps.*part / static_cast<std::int64_t>(r.rank_steps);
}

Value known(const WaitRow& r, std::int64_t Spent::*part) {
  return r.spent.calls == 0 ? Value() : Value(r.spent.*part);
}

// "rank 3: 12 of 30": how often it was the last to come.
Value last_text(const WaitRow& r) {
  const why::WaitOfRank* last = r.most_often_last();
  if (last == nullptr) return {};
  return fmt::format("{}: {} of {}", check::name_of_rank(*last->rank),
                     text::thousands(last->last.times), text::thousands(r.meetings));
}

// By how much then: the mean.
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
      "end. Both are sums over the ranks, of the calls of which both are known. /step: of one rank "
      "in one step. busbw is that of the median transfer.",
      "Known: how many these are; calls of a group that have one time together are not."};
  return s;
}

}  // namespace tprof::report
