#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "diagnose/names.h"
#include "report/views.h"
#include "text/text.h"

namespace tprof::report {
namespace {

using stats::Histogram;
using stats::Samples;
using stats::Spread;
using text::thousands;

constexpr std::size_t kWidestBar = 40;

const char* kind_name(Histogram::Kind kind) {
  constexpr const char* kNames[] = {"bucket", "function", "range"};
  return kNames[static_cast<int>(kind)];
}

const char* place(bool on_device) {
  return on_device ? "device" : "host";
}

struct TimeRow {
  Spread time;
  Value ranks;             // how many, or which one
  bool sums_only = false;  // the spread is not known
  const Samples* samples = nullptr;
  std::string bucket{};
  std::string operation{};
  bool on_device = false;
};

template <typename Of>
Column<TimeRow> whole(const char* title, const char* key, Of of, Show show = Show::always) {
  return {title, key, Unit::ns,
          [of](const TimeRow& r) { return r.sums_only ? Value() : Value(of(r.time)); }, show};
}

std::vector<Column<TimeRow>> spread_columns() {
  return {{"mean", "mean_ns", Unit::ns, [](const TimeRow& r) { return r.time.mean_ns; }},
          whole(
              "std", "std_ns", [](const Spread& s) { return s.std_ns(); }, Show::if_room),
          whole("min", "min_ns", [](const Spread& s) { return s.min_ns; }),
          {"max", "max_ns", Unit::ns, [](const TimeRow& r) { return r.time.max_ns; }}};
}

Column<TimeRow> count_column(const char* title) {
  return {title, "count", Unit::count, [](const TimeRow& r) { return r.time.count; }};
}

std::vector<Column<TimeRow>> hist_columns(const char* ranks, const char* key) {
  std::vector<Column<TimeRow>> all = {{ranks, key, Unit::number, &TimeRow::ranks},
                                      count_column("n")};
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
      {"time on", "from", Unit::text,
       [](const TimeRow& r) { return std::string(place(r.on_device)); }, Show::if_room},
      count_column("calls"),
      {"ranks", "rank_count", Unit::count, &TimeRow::ranks, Show::if_room}};
  append(all, spread_columns());
  return all;
}

TimeRow row_of(const stats::OpTime& time) {
  const stats::RankedSpread& s = time.best();
  return {.time = s.time, .ranks = s.ranks.size(), .on_device = time.on_device()};
}

struct Bin {
  std::uint64_t from_ns = 0;
  std::uint64_t below_ns = 0;
  std::uint64_t n = 0;
  std::string bar{};
};

Sheet bins(const Histogram& h, const Samples& samples) {
  const std::vector<Column<Bin>> columns = {{"from", nullptr, Unit::ns, &Bin::from_ns},
                                            {"below", nullptr, Unit::ns, &Bin::below_ns},
                                            {"n", nullptr, Unit::count, &Bin::n},
                                            {"", nullptr, Unit::text, &Bin::bar}};
  const std::uint64_t most = std::ranges::max(samples.bins);
  std::vector<Bin> all;
  for (std::size_t i = 0; i < samples.bins.size(); ++i) {
    const double part = static_cast<double>(samples.bins[i]) / static_cast<double>(most);
    const auto bar = static_cast<std::size_t>(std::ceil(part * kWidestBar));
    all.push_back({h.edges_ns[i], h.edges_ns[i + 1], samples.bins[i], std::string(bar, '#')});
  }
  return sheet(columns, all, For::people);
}

std::string notes(const Histogram& h) {
  std::string out;
  if (h.of_counts) {
    return "  More scopes ended than have lines: their number and time are counted for all of "
           "them; std and the shortest are not known.\n";
  }
  if (h.log_scaled) {
    const std::size_t n = h.edges_ns.size();
    out += fmt::format("  Log-scaled: each bin is about {:.2f} times as wide as the one before.\n",
                       static_cast<double>(h.edges_ns[n - 1]) /
                           static_cast<double>(std::max<std::uint64_t>(h.edges_ns[n - 2], 1)));
  }
  if (h.kind != Histogram::Kind::range && h.on_device) {
    out += fmt::format("  {1} of {0} calls with a line have a device time.\n", thousands(h.looked),
                       thousands(h.all.time.count));
  }
  if (h.on_device && h.shared != 0) {
    out +=
        fmt::format("  {} of groups {} share of the group's time.\n",
                    diagnose::counted(h.shared, "call"), h.shared == 1 ? "has its" : "have their");
  }
  return out;
}

std::vector<TimeRow> rank_rows(const Histogram& h) {
  std::vector<TimeRow> rows;
  for (const auto& [rank, samples] : h.ranks) {
    rows.push_back({samples.time, or_unknown(rank), h.of_counts, &samples});
  }
  return rows;
}

std::string heading(const Histogram& h) {
  const std::string name = text::printable(h.name);
  if (h.kind == Histogram::Kind::range) return "Durations of the NVTX ranges " + name;
  return fmt::format("Durations of {}, time on the {}", name, place(h.on_device));
}

Section for_programs(const Histogram& h) {
  Section of = {.at = "/ranks",
                .facts = {{"name", h.name},
                          {"kind", kind_name(h.kind)},
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

// Each rank's row stands above its bins.
std::vector<Section> for_people(const Histogram& h, bool per_rank) {
  const auto rows = [](const char* ranks, const TimeRow& row) {
    return sheet(hist_columns(ranks, nullptr), std::vector{row}, For::people);
  };
  std::vector<Section> all = {{.title = heading(h), .table = rows("ranks", row_of(h))},
                              {.lead = "\n", .table = bins(h, h.all), .notes = notes(h)}};
  if (!per_rank) return all;
  for (const TimeRow& row : rank_rows(h)) {
    all.push_back({.lead = "\n", .table = rows("rank", row)});
    all.push_back({.lead = "\n", .table = bins(h, *row.samples)});
  }
  return all;
}

}  // namespace

std::vector<Section> sections_of(const Histogram& h, bool per_rank, For who) {
  if (who == For::people) return for_people(h, per_rank);
  return {for_programs(h)};
}

Section section_of(const stats::OpTimes& times, std::uint64_t all) {
  std::map<std::pair<Bucket, std::string>, stats::OpTime> by_name;
  std::uint64_t lines = 0;
  for (const auto& [key, time] : times) {
    stats::OpTime& of = by_name[{key.bucket, key.name}];
    of.host.add(time.host);
    of.device.add(time.device);
    lines += time.host.time.count;
  }
  std::vector<TimeRow> rows;
  for (const auto& [name, time] : by_name) {
    TimeRow& row = rows.emplace_back(row_of(time));
    row.bucket = bucket_name(name.first);
    row.operation = name.second;
  }
  Section of = {.title = "Their durations"};
  if (by_name.empty()) {
    of.lead = "  No call has a line.\n";
    return of;
  }
  of.table = sheet(op_time_columns(), rows, For::people);
  if (lines != all) {
    of.notes = fmt::format("  {1} of {0} calls have a line.\n", thousands(all), thousands(lines));
  }
  return of;
}

Json times_of(const stats::OpTimes& times, const stats::OpKey& key) {
  const auto found = times.find(key);
  if (found == times.end()) return nullptr;
  static const std::vector<Column<TimeRow>> kColumns = op_time_columns();  // a call per operation
  return row_json(kColumns, row_of(found->second));
}

}  // namespace tprof::report
