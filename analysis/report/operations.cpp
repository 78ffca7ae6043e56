#include "report/views.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

#include "diagnose/names.h"
#include "report/figures.h"
#include "report/table.h"

namespace tprof::report {
namespace {

using read::Amounts;

struct OpRow {
  stats::OpKey key;
  std::string beside;
  Amounts amounts;
  std::optional<double> busbw;
};

// Returns what stands beside the operation, as a sort key and as text.
std::pair<std::int64_t, std::string> cell(const stats::OpKey& key, Beside beside) {
  switch (beside) {
    case Beside::size:
      return {key.bytes_class, diagnose::size_class(key.bytes_class)};
    case Beside::communicator:
      return {-key.nranks, key.comm_id.empty() ? "-" : text::printable(key.comm_id)};
    case Beside::dtype:
      return {0, text::printable(key.dtype)};
    case Beside::nothing:
      break;
  }
  return {0, ""};
}

const char* title(Beside beside) {
  constexpr const char* kTitles[] = {"size", nullptr, "communicator", "dtype"};
  return kTitles[static_cast<int>(beside)];
}

// A figure of the operations that have a bandwidth.
template <typename Of>
std::function<Value(const OpRow&)> timed_figure(Of of) {
  return [of](const OpRow& r) { return stats::algbw(r.amounts) ? Value(of(r)) : Value(); };
}

// One function makes copies in all directions.
std::string name_with_direction(const OpRow& r) {
  if (!is_copy(r.key.bucket)) return r.key.name.str();
  return fmt::format("{} {}", r.key.name, bucket_name(r.key.bucket));
}

std::vector<Column<OpRow>> op_columns(const stats::Summary& s, Beside beside, bool timed) {
  const auto if_timed = [&](const char* title) { return timed ? title : nullptr; };
  std::vector<Column<OpRow>> all = {
      {"bucket", "bucket", Unit::text,
       [](const OpRow& r) { return std::string(bucket_name(r.key.bucket)); }, Show::if_room},
      {"operation", nullptr, Unit::text, name_with_direction, Show::stand_in},
      {"operation", "name", Unit::text, [](const OpRow& r) { return r.key.name.str(); }},
      {title(beside), nullptr, Unit::text, &OpRow::beside},
      {nullptr, "dtype", Unit::text, [](const OpRow& r) { return r.key.dtype.str(); }},
      {nullptr, "comm_id", Unit::text,
       [](const OpRow& r) { return or_unknown(r.key.comm_id.str()); }},
      {nullptr, "nranks", Unit::number,
       [](const OpRow& r) { return r.key.nranks == 0 ? Value() : Value(r.key.nranks); }},
      {nullptr, "bytes_class", Unit::number, [](const OpRow& r) { return r.key.bytes_class; }}};
  append(all, call_columns<OpRow>(Show::if_room));
  append(all, time_columns<OpRow>());
  append(all, exposure_columns<OpRow>());
  append(
      all,
      {{if_timed("timed"), nullptr, Unit::count,
        [](const OpRow& r) { return r.amounts.device_timed; }, Show::if_room},
       {if_timed("mean device"), nullptr, Unit::ns,
        timed_figure([](const OpRow& r) { return r.amounts.device_ns / r.amounts.device_timed; })},
       {if_timed("max device"), nullptr, Unit::ns_not_0,
        timed_figure([](const OpRow& r) { return r.amounts.device_ns_max; }), Show::if_room},
       {if_timed("exposed"), nullptr, Unit::right_text,
        timed_figure([](const OpRow& r) { return exposed_if_it_tells(r.amounts); }), Show::if_room},
       {if_timed("algbw GB/s"), "algbw_GBps", Unit::rate,
        [](const OpRow& r) { return or_unknown(stats::algbw(r.amounts)); }, Show::if_room},
       {if_timed("busbw GB/s"), "busbw_GBps", Unit::rate,
        [](const OpRow& r) { return or_unknown(r.busbw); },
        beside == Beside::communicator ? Show::if_room : Show::always},
       {"mean host", nullptr, Unit::right_text, [](const OpRow& r) { return mean_host(r.amounts); },
        timed ? Show::if_room : Show::always},
       {timed ? nullptr : "max host", nullptr, Unit::ns_not_0,
        [](const OpRow& r) { return r.amounts.host_ns_max; }, Show::if_room}});
  if (s.op_times) {
    all.push_back({nullptr, "times", Unit::text,
                   [&times = *s.op_times](const OpRow& r) { return times_of(times, r.key); }});
  }
  return all;
}

// One of each operation and what stands beside it.
std::vector<OpRow> added_up(const stats::Summary& s, Beside beside) {
  std::map<std::tuple<Bucket, std::string, std::pair<std::int64_t, std::string>>, stats::Together>
      sums;
  for (const auto& [key, amounts] : s.ops) {
    if (amounts.calls == 0) continue;
    sums[{key.bucket, key.name, cell(key, beside)}].add(key, amounts);
  }
  std::vector<OpRow> rows;
  for (const auto& [key, sum] : sums) {
    const auto& [bucket, name, beside_it] = key;
    rows.push_back({{bucket, name}, beside_it.second, sum.amounts, sum.busbw()});
  }
  return rows;
}

Section section_of_rows(const stats::Summary& s, const char* heading, Beside beside,
                        const std::vector<OpRow>& rows) {
  const bool timed =
      std::ranges::any_of(rows, [](const OpRow& r) { return r.amounts.device_timed != 0; });
  Section of = {.title = heading, .table = sheet(op_columns(s, beside, timed), rows, For::people)};
  if (!timed && !rows.empty()) {
    of.notes =
        "  No algbw and busbw: they need the device time of a call; the host time is only that of "
        "enqueueing it.\n";
  }
  return of;
}

}  // namespace

Section operation_section(const stats::Summary& s, const char* heading, Beside beside) {
  return section_of_rows(s, heading, beside, added_up(s, beside));
}

Section largest_operations(const stats::Summary& s) {
  std::vector<OpRow> rows = added_up(s, Beside::size);
  std::ranges::stable_sort(rows, std::ranges::greater(), [](const OpRow& r) {
    return std::pair(r.amounts.device_ns, r.amounts.bytes);
  });
  return section_of_rows(s, "Largest operations", Beside::size, rows);
}

Section operation_section(const stats::Summary& s) {
  std::vector<OpRow> rows;
  for (const auto& [key, a] : s.ops) rows.push_back({key, "", a, stats::busbw(key, a)});
  return {.table = sheet(op_columns(s, Beside::nothing, false), rows, For::programs), .at = ""};
}

}  // namespace tprof::report
