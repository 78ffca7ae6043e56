#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include "check/names.h"
#include "report/views.h"
#include "text/text.h"

namespace tprof::report {

namespace {

using tables::Histogram;
using tables::Samples;
using tables::Spread;
using text::thousands;

constexpr std::size_t kWidestBar = 40;

const char* place(bool on_device) {
  return on_device ? "device" : "host";
}

struct TimeRow : Spread {
  Value ranks{};           // how many, or the only one
  bool sums_only = false;  // the deviation is unknown
  const Samples* samples = nullptr;
  std::string bucket{};
  std::string operation{};
  const char* on = "";  // device or host
};

std::vector<Column<TimeRow>> spread_columns() {
  return {
      {"mean", "mean_ns", Unit::ns, &TimeRow::mean_ns},
      {"std", "std_ns", Unit::ns,
       [](const TimeRow& r) { return r.sums_only ? Value() : Value(r.std_ns()); }, Show::if_room},
      {"min", "min_ns", Unit::ns,
       [](const TimeRow& r) { return r.sums_only ? Value() : Value(r.min_ns); }},
      {"max", "max_ns", Unit::ns, &TimeRow::max_ns}};
}

std::vector<Column<TimeRow>> hist_columns(const char* ranks, const char* key) {
  std::vector<Column<TimeRow>> all = {{ranks, key, Unit::number, &TimeRow::ranks},
                                      {"n", "count", Unit::count, &TimeRow::count}};
  append(all, spread_columns());
  return all;
}

TimeRow row_of(const Histogram& h) {
  return {h.all.time, h.rank_count(), h.of_counts};
}

std::vector<Column<TimeRow>> op_time_columns() {
  std::vector<Column<TimeRow>> all = {
      {"bucket", nullptr, Unit::text, &TimeRow::bucket},
      {"operation", nullptr, Unit::text, &TimeRow::operation},
      {"time on", "from", Unit::text, &TimeRow::on, Show::if_room},
      {"calls", "count", Unit::count, &TimeRow::count},
      {"ranks", "rank_count", Unit::count, &TimeRow::ranks, Show::if_room}};
  append(all, spread_columns());
  return all;
}

TimeRow row_of(const tables::OpTime& time) {
  const tables::RankedSpread& s = time.best();
  return {s, s.ranks.size(), false, nullptr, "", "", place(time.on_device())};
}

Sheet bins(const Histogram& h, const Samples& samples) {
  Sheet all{.heads = {{"from", nullptr, Unit::ns},
                      {"below", nullptr, Unit::ns},
                      {"n", nullptr, Unit::count},
                      {"", nullptr, Unit::text}}};
  const std::uint64_t most = std::ranges::max(samples.bins);
  for (std::size_t i = 0; i < samples.bins.size(); ++i) {
    const double part = static_cast<double>(samples.bins[i]) / static_cast<double>(most);
    const auto bar = static_cast<std::size_t>(std::ceil(part * kWidestBar));
    all.rows.push_back({h.edges_ns[i], h.edges_ns[i + 1], samples.bins[i], std::string(bar, '#')});
  }
  return all;
}

Notes notes(const Histogram& h) {
  const std::size_t n = h.edges_ns.size();
  const double widens =
      n < 2 ? 1
            : static_cast<double>(h.edges_ns[n - 1]) /
                  static_cast<double>(std::max<std::uint64_t>(h.edges_ns[n - 2], 1));
  const bool calls = !h.of_counts && h.kind != Histogram::Kind::range && h.on_device;
  return notes_if(
      {{h.of_counts,
        "Some scopes have no line: number and time are those of all scopes; std and the shortest "
        "are unknown."},
       {!h.of_counts && h.log_scaled,
        fmt::format("Log-scaled: each bin is about {:.2f} times as wide as the one before.",
                    widens)},
       {calls, fmt::format("{} of {} calls with a line have a device time.",
                           thousands(h.all.time.count), thousands(h.looked))},
       {calls && h.shared != 0,
        fmt::format("{} of groups: each counts with its share of the group's time.",
                    check::counted(h.shared, "call"))}});
}

std::vector<TimeRow> rank_rows(const Histogram& h) {
  std::vector<TimeRow> rows;
  for (const auto& [rank, samples] : h.ranks) {
    rows.push_back({samples.time, rank, h.of_counts, &samples});
  }
  return rows;
}

std::string heading(const Histogram& h) {
  const std::string name = text::printable(h.name);
  if (h.kind == Histogram::Kind::range) return "Durations of the NVTX ranges " + name;
  return fmt::format("Durations of {}, time on the {}", name, place(h.on_device));
}

Section for_programs(const Histogram& h) {
  constexpr const char* kKinds[] = {"bucket", "function", "range"};
  Section of = {.at = "/ranks",
                .facts = {{"name", h.name},
                          {"kind", kKinds[static_cast<int>(h.kind)]},
                          {"from", place(h.on_device)},
                          {"looked", h.kind == Histogram::Kind::range ? Json() : Json(h.looked)},
                          {"shared", h.on_device ? h.shared : 0},
                          {"scale", h.log_scaled ? "log" : "linear"},
                          {"edges_ns", h.edges_ns},
                          {"bins", h.all.bins}}};
  of.facts.update(row_json(hist_columns("ranks", "rank_count"), row_of(h)));
  std::vector<Column<TimeRow>> columns = hist_columns("rank", "rank");
  columns.push_back(
      {nullptr, "bins", Unit::text, [](const TimeRow& r) { return Json(r.samples->bins); }});
  of.table = sheet(columns, rank_rows(h), For::programs);
  return of;
}

// Each rank's row comes before its bins.
std::vector<Section> for_people(const Histogram& h, bool per_rank) {
  const auto rows = [](const char* ranks, const TimeRow& row) {
    return sheet(hist_columns(ranks, nullptr), std::vector{row}, For::people);
  };
  std::vector<Section> all = {{.title = heading(h), .table = rows("ranks", row_of(h))},
                              {.lead = {""}, .table = bins(h, h.all), .notes = notes(h)}};
  if (!per_rank) return all;
  for (const TimeRow& row : rank_rows(h)) {
    all.push_back({.lead = {""}, .table = rows("rank", row)});
    all.push_back({.lead = {""}, .table = bins(h, *row.samples)});
  }
  return all;
}

using tables::SlowCall;
using tables::Slowest;

const read::Comm* comm_of(const SlowCall& c) {
  return read::comm_of(*c.rank, c.line.comm);
}

// A bandwidth of the call, if its time is known.
template <typename Of>
Value bandwidth(const SlowCall& c, Of of) {
  if (!c.bytes || c.time_ns <= 0) return {};
  const read::Comm* comm = comm_of(c);
  const tables::OpKey key{.bucket = c.line.bucket, .nranks = comm == nullptr ? 0 : comm->nranks};
  return of(key, read::Amounts{.device_ns = static_cast<std::uint64_t>(c.time_ns),
                               .device_timed = c.calls,
                               .device_bytes = *c.bytes});
}

std::vector<Column<SlowCall>> slow_columns(const Slowest& s) {
  const bool groups = std::ranges::any_of(s.calls, [](const auto& c) { return c.calls > 1; });
  const auto rate = [&s](const char* title, const char* key, auto of) {
    return Column<SlowCall>{
        s.on_device ? title : nullptr, key, Unit::rate,
        [of, known = s.on_device](const SlowCall& c) { return known ? bandwidth(c, of) : Value(); },
        Show::if_room};
  };
  return {{"rank", "rank", Unit::text, &SlowCall::rank},
          {s.on_device ? "device time" : "host time", "ns", Unit::ns, &SlowCall::time_ns},
          {"operation", "function", Unit::text, [](const SlowCall& c) { return c.line.name; }},
          {nullptr, "dtype", Unit::text, [](const SlowCall& c) { return c.line.dtype; }},
          {groups ? "calls" : nullptr, "calls", Unit::count, &SlowCall::calls},
          {"bytes", "bytes", Unit::bytes, &SlowCall::bytes},
          rate("algbw GB/s", "algbw_GBps",
               [](const tables::OpKey&, const read::Amounts& a) { return tables::algbw(a); }),
          rate("busbw GB/s", "busbw_GBps", tables::busbw),
          {"step", "step", Unit::number, &SlowCall::step, Show::if_any},
          {"communicator", "communicator", Unit::text,
           [](const SlowCall& c) {
             const read::Comm* comm = comm_of(c);
             return comm == nullptr ? Value() : Value(comm->id);
           },
           Show::if_room},
          {"collective", "seq", Unit::number,
           [](const SlowCall& c) { return c.line.collective() ? Value(c.line.seq) : Value(); }},
          {"called at", "realtime_ns", Unit::utc,
           [](const SlowCall& c) { return c.rank->header.base_time_ns + c.line.ts_ns; },
           Show::if_room}};
}

Notes notes(const Slowest& s, std::uint64_t all) {
  Notes out = {s.on_device
                   ? "By device time, which includes waits for late ranks (--by rank says who). A "
                     "collective is listed once, for the rank on which it took longest."
                   : "By host time, since no call has a device time (TPROF_TIMING=events): for "
                     "asynchronous calls that is the time to enqueue them, so there is no "
                     "bandwidth. A collective is listed once."};
  if (s.looked < all) {
    out.push_back(fmt::format("{} of {} calls have a line with that time.",
                              text::thousands(s.looked), text::thousands(all)));
  }
  return out;
}

}  // namespace

std::vector<Section> sections_of(const Histogram& h, bool per_rank, For who) {
  if (who == For::people) return for_people(h, per_rank);
  return {for_programs(h)};
}

Section section_of(const tables::OpTimes& times, std::uint64_t all) {
  std::map<std::pair<Bucket, std::string>, tables::OpTime> by_name;
  std::uint64_t lines = 0;
  for (const auto& [key, time] : times) {
    by_name[{key.bucket, key.name}].add(time);
    lines += time.host.count;
  }
  std::vector<TimeRow> rows;
  for (const auto& [name, time] : by_name) {
    TimeRow& row = rows.emplace_back(row_of(time));
    row.bucket = bucket_name(name.first);
    row.operation = name.second;
  }
  Section of = {.title = "Their durations"};
  if (by_name.empty()) {
    of.lead = {"No call has a line."};
    return of;
  }
  of.table = sheet(op_time_columns(), rows, For::people);
  if (lines != all) {
    of.notes = {fmt::format("{} of {} calls have a line.", thousands(lines), thousands(all))};
  }
  return of;
}

Json times_of(const tables::OpTimes& times, const tables::OpKey& key) {
  const auto found = times.find(key);
  if (found == times.end()) return nullptr;
  static const std::vector<Column<TimeRow>> kColumns = op_time_columns();  // built once
  return row_json(kColumns, row_of(found->second));
}

Section section_of(const Slowest& s, const steps::Found& found, std::uint64_t all, For who) {
  Section of = {.title = "Slowest calls",
                .at = "/calls",
                .facts = {{"from", s.on_device ? "device" : "host"}, {"looked", s.looked}}};
  if (s.calls.empty()) {
    of.lead = {"No call has a line."};
    return of;
  }
  const bool steps = std::ranges::any_of(s.calls, [](const auto& c) { return c.step.has_value(); });
  of.table = sheet(slow_columns(s), s.calls, who);
  of.notes = notes(s, all);
  if (steps) append(of.notes, how_found(found));
  return of;
}

}  // namespace tprof::report
