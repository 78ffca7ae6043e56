// The figures of calls, the same in all tables and commands. A row that has them holds them as
// `amounts`.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "read/process.h"
#include "report/table.h"
#include "text/text.h"

namespace tprof::report {

inline std::string ratio(std::uint64_t part, std::uint64_t all) {
  return all == 0
             ? "-"
             : fmt::format("{:.1f}%", 100 * static_cast<double>(part) / static_cast<double>(all));
}

// Exposed time that is known of less than half of the timed calls says nothing of the others.
inline bool exposure_tells(const read::Amounts& a) {
  return a.exposure_known != 0 && 2 * a.exposure_known >= a.device_timed;
}

// Returns the exposed time, and its share of the device time of those calls for which it is known.
inline std::string exposed(const read::Amounts& a) {
  return fmt::format("{} ({})", text::duration(a.exposed_ns),
                     ratio(a.exposed_ns, a.exposure_known_ns));
}
inline std::string exposed_if_it_tells(const read::Amounts& a) {
  return exposure_tells(a) ? exposed(a) : "-";
}

inline std::string mean_host(const read::Amounts& a) {
  return a.calls == a.replayed ? "-" : text::duration(a.host_ns / (a.calls - a.replayed));
}

template <typename Row>
Column<Row> figure(const char* title, const char* key, Unit unit, std::uint64_t read::Amounts::*of,
                   Show show = Show::always) {
  return {title, key, unit, [of](const Row& r) { return r.amounts.*of; }, show};
}

template <typename Row>
std::vector<Column<Row>> call_columns(Show elements = Show::always) {
  return {figure<Row>("calls", "calls", Unit::count, &read::Amounts::calls),
          figure<Row>(nullptr, "count", Unit::count, &read::Amounts::count),
          figure<Row>("elements", "elements", Unit::count, &read::Amounts::elements, elements),
          figure<Row>("bytes", "bytes", Unit::bytes, &read::Amounts::bytes)};
}

// Replayed calls were never made by the host: people see "-".
template <typename Row>
Column<Row> host_time_column(Show show = Show::always) {
  return {"host time", nullptr, Unit::ns,
          [](const Row& r) {
            const read::Amounts& a = r.amounts;
            return a.calls != 0 && a.calls == a.replayed ? Value() : Value(a.host_ns);
          },
          show};
}

template <typename Row>
Column<Row> device_time_column(const char* title, const char* key, Show show = Show::always) {
  return {title, key, Unit::ns,
          [](const Row& r) {
            return r.amounts.device_timed == 0 ? Value() : Value(r.amounts.device_ns);
          },
          show};
}

template <typename Row>
Column<Row> exposed_column() {
  return {"exposed", nullptr, Unit::right_text,
          [](const Row& r) { return exposed_if_it_tells(r.amounts); }};
}

// Times, and for how many calls they are known: for programs.
template <typename Row>
std::vector<Column<Row>> time_columns() {
  return {figure<Row>(nullptr, "host_ns", Unit::ns, &read::Amounts::host_ns),
          device_time_column<Row>(nullptr, "device_ns"),
          figure<Row>(nullptr, "device_timed", Unit::count, &read::Amounts::device_timed)};
}

template <typename Row>
std::vector<Column<Row>> exposure_columns() {
  const auto known = [](const char* key, std::uint64_t read::Amounts::*of) {
    return Column<Row>{nullptr, key, Unit::ns, [of](const Row& r) {
                         return r.amounts.exposure_known == 0 ? Value() : Value(r.amounts.*of);
                       }};
  };
  return {figure<Row>(nullptr, "exposure_known", Unit::count, &read::Amounts::exposure_known),
          known("exposure_known_ns", &read::Amounts::exposure_known_ns),
          known("exposed_ns", &read::Amounts::exposed_ns)};
}

// The calls of a bucket, in a table whose other columns say which of them.
struct BucketRow {
  std::string label;
  std::string bucket;
  read::Amounts amounts;
  Value by{};
};

// Adds a row for each bucket that has calls.
template <typename Buckets>
void add_rows(std::vector<BucketRow>& to, std::string_view label, const Buckets& buckets,
              const Value& by = {}) {
  for (std::size_t b = 0; b < kBucketCount; ++b) {
    if (buckets[b].calls == 0) continue;
    to.push_back({std::string(label), std::string(kBuckets[b].name), buckets[b], by});
  }
}

inline std::vector<Column<BucketRow>> bucket_columns(const char* title, const char* key,
                                                     std::optional<Column<BucketRow>> by = {}) {
  std::vector<Column<BucketRow>> all = {{title, key, Unit::text, &BucketRow::label, Show::label}};
  if (by) all.push_back(*by);
  all.push_back({"bucket", "bucket", Unit::text, &BucketRow::bucket});
  append(all, call_columns<BucketRow>());
  return all;
}

// The figures of calls as an object of their own.
Json figures(const read::Amounts& a);
Json call_figures(const read::Amounts& a);  // without those of exposed time

}  // namespace tprof::report
