#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

#include "check/names.h"
#include "report/views.h"

namespace tprof::report {
namespace {

using read::Amounts;

struct OpRow {
  tables::OpKey key;  // what the row's calls have in common; other fields are empty
  std::string role;   // of the communicator
  Amounts amounts;
  std::optional<double> busbw;
};

std::vector<OpRow> rows_of(const tables::Summary& s, Apart apart) {
  const std::map<std::string, std::string> roles = tables::role_texts(s.comms);
  std::map<std::pair<tables::OpKey, std::string>, tables::Together> sums;
  for (const auto& [key, amounts] : s.ops) {
    tables::OpKey of = {.bucket = key.bucket, .name = key.name};
    if (apart.size) of.bytes_class = key.bytes_class;
    if (apart.dtype) of.dtype = key.dtype;
    if (apart.communicator) of.comm_id = key.comm_id;
    if (apart.communicator || apart.role) of.nranks = key.nranks;
    const auto role = roles.find(key.comm_id);
    sums[{of, apart.role && role != roles.end() ? role->second : ""}].add(key, amounts);
  }
  std::vector<OpRow> rows;
  for (const auto& [key, sum] : sums) {
    rows.push_back({key.first, key.second, sum.amounts, sum.busbw()});
  }
  return rows;
}

// A bandwidth column, for operations that have one.
template <typename Of>
Figure timed_figure(const char* title, const char* key, Of of, Show show) {
  return {title, key, Unit::ns,
          [of](const Amounts& a) { return tables::algbw(a) ? Value(of(a)) : Value(); }, show};
}

std::vector<Column<OpRow>> op_columns(const tables::Summary& s, Apart apart, bool timed, For who) {
  const auto title_if = [](bool told, const char* title) { return told ? title : nullptr; };
  std::vector<Column<OpRow>> all = {
      {title_if(who == For::programs, "bucket"), "bucket", Unit::text,
       [](const OpRow& r) { return bucket_name(r.key.bucket); }},
      {"operation", "name", Unit::text,
       // People see no bucket, as the function implies it, except for copies, whose function has
       // several directions.
       [who](const OpRow& r) {
         if (who == For::programs || !is_copy(r.key.bucket)) return r.key.name.str();
         return fmt::format("{} {}", r.key.name, bucket_name(r.key.bucket));
       }},
      {title_if(apart.size, "size"), "bytes_class", Unit::size_class,
       [](const OpRow& r) { return r.key.bytes_class; }},
      {title_if(apart.dtype, "dtype"), "dtype", Unit::text,
       [](const OpRow& r) { return r.key.dtype; }, apart.role ? Show::if_room : Show::always},
      {title_if(apart.communicator, "communicator"), "comm_id", Unit::text,
       [](const OpRow& r) { return or_unknown(r.key.comm_id.str()); }},
      {title_if(apart.role, "ranks"), "nranks", Unit::number,
       [](const OpRow& r) { return r.key.nranks == 0 ? Value() : Value(r.key.nranks); },
       Show::if_room}};
  if (apart.role) {
    append(all,
           {{"role", "role", Unit::text, &OpRow::role, Show::if_room},
            {nullptr, "size", Unit::text,
             [](const OpRow& r) { return check::size_class(r.key.bytes_class); }},
            {nullptr, "algbw", Unit::rate, [](const OpRow& r) { return tables::algbw(r.amounts); }},
            {nullptr, "busbw", Unit::rate, &OpRow::busbw}});
  }
  Figures figures = call_figures(Show::if_room);
  for (Figure& f : time_figures(timed)) {
    f.show = Show::if_room;
    figures.push_back(std::move(f));
  }
  append(all, figures);
  append(
      all,
      Figures{
          {title_if(timed, "timed"), nullptr, Unit::count, &Amounts::device_timed, Show::if_room},
          timed_figure(
              "mean device", "device_ns_mean",
              [](const Amounts& a) { return a.device_ns / a.device_timed; }, Show::if_any),
          timed_figure(
              "max device", "device_ns_max", [](const Amounts& a) { return a.device_ns_max; },
              Show::if_room),
          {title_if(timed, "algbw GB/s"), "algbw_GBps", Unit::rate, tables::algbw, Show::if_room}});
  all.push_back({title_if(timed, "busbw GB/s"), "busbw_GBps", Unit::rate, &OpRow::busbw,
                 apart.communicator ? Show::if_room : Show::always});
  append(all, Figures{mean_host(timed ? Show::if_room : Show::always),
                      {title_if(!timed, "max host"), "host_ns_max", Unit::ns_not_0,
                       &Amounts::host_ns_max, Show::if_room}});
  if (s.op_times && apart.communicator) {
    all.push_back({nullptr, "times", Unit::text,
                   [&times = *s.op_times](const OpRow& r) { return times_of(times, r.key); }});
  }
  return all;
}

}  // namespace

Section operation_section(const tables::Summary& s, const char* title, Apart apart, For who,
                          bool largest_first) {
  std::vector<OpRow> rows = rows_of(s, apart);
  if (who == For::people) std::erase_if(rows, [](const OpRow& r) { return r.amounts.calls == 0; });
  std::ranges::stable_sort(rows, {}, [&](const OpRow& r) {
    // The largest communicators come first.
    return std::tuple(r.key.bucket, r.key.name, -r.key.nranks);
  });
  if (largest_first) {
    std::ranges::stable_sort(rows, std::ranges::greater(), [](const OpRow& r) {
      return std::pair(r.amounts.device_ns, r.amounts.bytes);
    });
  }
  const bool timed =
      std::ranges::any_of(rows, [](const OpRow& r) { return r.amounts.device_timed != 0; });
  Section of = {
      .title = title, .table = sheet(op_columns(s, apart, timed, who), rows, who), .at = ""};
  if (!timed && !rows.empty()) {
    of.notes = {
        "No algbw and busbw: they need device times; a call's host time only covers enqueueing "
        "it."};
  }
  return of;
}

}  // namespace tprof::report
