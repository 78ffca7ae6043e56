#include "live/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <sstream>
#include <tuple>

#include "report/views.h"
#include "text/text.h"

namespace tprof::live {

namespace {

using report::Unit;
using report::Value;

// Short figures for a table of 80 columns, at most six characters: "9,999", "123.4k", "12.3M".
std::string compact(double n) {
  if (n < 10'000) return text::thousands(static_cast<std::uint64_t>(std::llround(n)));
  constexpr std::array kUnits = {"k", "M", "G", "T", "P", "E"};
  std::size_t unit = 0;
  for (n /= 1e3; n >= 999.95 && unit + 1 < kUnits.size(); ++unit) n /= 1e3;
  return fmt::format("{:.1f}{}", n, kUnits[unit]);
}

// At most eight characters: "1.02 GiB".
std::string compact_bytes(double n) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t unit = 0;
  for (; n >= 999.5 && unit + 1 < kUnits.size(); ++unit) n /= 1024;
  return fmt::format("{:.{}f} {}", n,
                     unit == 0 || n >= 99.95 ? 0
                     : n >= 9.995            ? 1
                                             : 2,
                     kUnits[unit]);
}

std::string compact_time(std::int64_t ns) {
  const double s = static_cast<double>(ns) / 1e9;
  return s >= 99.5   ? fmt::format("{:.0f} s", s)
         : s >= 0.99 ? fmt::format("{:.2f} s", s)
         : s >= 1e-3 ? fmt::format("{:.0f} ms", s * 1e3)
                     : fmt::format("{:.0f} us", s * 1e6);
}

// A line of a table: a rank, or a bucket of all ranks.
struct Row {
  std::string name;
  const Rank* rank = nullptr;  // null: a bucket
  std::size_t bucket = kAllBuckets;
  std::optional<Rate> rate{};
  read::Amounts total{};
};

// A column of both tables. Value(): it says nothing of the row.
struct Info {
  const char* name;
  Unit unit;
  Value (*cell)(const Row&);
  double (*weight)(const Row&);  // of a rank; ranks are sorted by it, the largest first
};

// For all buckets together it covers the calls for which it is known, as a note says.
bool tells_exposed(const Row& r) {
  const bool all = r.bucket == kAllBuckets;
  return r.total.exposure_known_ns != 0 && (all || report::exposure_tells(r.total));
}

double exposed(const Row& r) {
  if (r.total.exposure_known_ns == 0) return -1;
  return static_cast<double>(r.total.exposed_ns) / static_cast<double>(r.total.exposure_known_ns);
}

constexpr std::array<Info, kColumns> kInfos = {
    Info{"rank", Unit::text, [](const Row& r) { return Value(r.name); },
         [](const Row&) { return 0.0; }},
    Info{"state", Unit::text,
         [](const Row& r) { return r.rank == nullptr ? Value() : Value(r.rank->state()); },
         [](const Row& r) { return r.rank->runs() ? 1.0 : 0.0; }},
    Info{
        "step", Unit::right_text,
        [](const Row& r) {
          if (r.rank == nullptr || !r.rank->step) return Value();
          const Step& step = *r.rank->step;
          return Value(fmt::format("{}, {}", step.number, compact_time(step.dur_ns)));
        },
        [](const Row& r) { return r.rank->step ? static_cast<double>(r.rank->step->dur_ns) : -1; }},
    Info{"calls/s", Unit::right_text,
         [](const Row& r) { return Value(r.rate ? compact(r.rate->calls) : "-"); },
         [](const Row& r) { return r.rate.value_or(Rate{}).calls; }},
    Info{"bytes/s", Unit::right_text,
         [](const Row& r) { return Value(r.rate ? compact_bytes(r.rate->bytes) : "-"); },
         [](const Row& r) { return r.rate.value_or(Rate{}).bytes; }},
    Info{"calls", Unit::right_text, [](const Row& r) { return Value(compact(r.total.calls)); },
         [](const Row& r) { return static_cast<double>(r.total.calls); }},
    Info{"bytes", Unit::right_text,
         [](const Row& r) { return Value(compact_bytes(static_cast<double>(r.total.bytes))); },
         [](const Row& r) { return static_cast<double>(r.total.bytes); }},
    Info{"exposed", Unit::share,
         [](const Row& r) { return tells_exposed(r) ? Value(exposed(r)) : Value(); }, exposed},
    Info{"drops", Unit::right_text,
         [](const Row& r) {
           const auto n = r.rank == nullptr ? std::nullopt : r.rank->dropped();
           return n ? Value(compact(static_cast<double>(*n))) : Value();
         },
         [](const Row& r) { return static_cast<double>(r.rank->dropped().value_or(0)); }},
};

std::vector<std::string> lines_of(const char* first, const std::vector<Row>& rows, bool drops) {
  std::vector<report::Column<Row>> columns = {{first, nullptr, Unit::text, &Row::name}};
  for (std::size_t c = 1; c < kColumns - (drops ? 0 : 1); ++c) {
    columns.push_back(
        {kInfos[c].name, nullptr, kInfos[c].unit, kInfos[c].cell, report::Show::if_any});
  }
  std::vector<std::string> lines;
  std::istringstream in(report::table_text(columns, rows));
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<Row> ranks_of(const Shown& v) {
  std::vector<Row> rows;
  for (const Rank& r : v.ranks) {
    rows.push_back({text::printable(r.name()), &r, v.bucket, v.history->rate(r, v.bucket),
                    v.history->total(r, v.bucket)});
  }
  std::ranges::stable_sort(rows, std::ranges::greater{},
                           kInfos[static_cast<std::size_t>(v.sorted_by)].weight);
  return rows;
}

// Returns the buckets with calls, and their sum.
std::vector<Row> buckets_of(const Shown& v) {
  std::vector<Row> rows;
  for (std::size_t b = 0; b <= kAllBuckets; ++b) {
    Row row{.name = std::string(name_of_bucket(b)), .bucket = b};
    for (const Rank& rank : v.ranks) {
      row.total += v.history->total(rank, b);
      const auto more = v.history->rate(rank, b);
      if (!more) continue;
      const Rate rate = row.rate.value_or(Rate{});
      row.rate = Rate{rate.calls + more->calls, rate.bytes + more->bytes};
    }
    if (row.total.calls != 0 || b == kAllBuckets) rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<std::string> open_lines(const Shown& v) {
  std::vector<std::pair<std::int64_t, std::string>> calls;
  for (const Rank& rank : v.ranks) {
    for (const OpenCall& call : rank.open) {
      std::string line = fmt::format("  rank {}: {}", rank.name(), call.function);
      if (call.seq) line += fmt::format(", collective {}", *call.seq);
      if (!call.communicator.empty()) line += " of " + call.communicator;
      const auto age_ns = static_cast<std::uint64_t>(std::max<std::int64_t>(call.age_ns, 0));
      line += ", for " + text::duration(age_ns);
      calls.emplace_back(call.age_ns, text::printable(line));
    }
  }
  std::ranges::stable_sort(calls, std::ranges::greater{}, [](const auto& c) { return c.first; });
  std::vector<std::string> lines;
  if (!calls.empty()) lines.emplace_back("Calls that have not returned");
  for (auto& [age, line] : calls) lines.push_back(std::move(line));
  return lines;
}

// Keeps `most` lines, the last of which says how many more there are.
void shorten(std::vector<std::string>& lines, std::size_t most) {
  if (lines.size() <= most) return;
  const std::size_t left = lines.size() - most + 1;
  lines.resize(most);
  if (most != 0) lines.back() = fmt::format("  and {} more", text::thousands(left));
}

using report::Json;
using report::or_null;

Json bucket(const Shown& v, const Rank& rank, std::size_t b) {
  const read::Amounts& a = b == kAllBuckets ? rank.all : rank.buckets[b];
  const std::optional<Rate> rate = v.history->rate(rank, b);
  Json j = report::figures(a);
  j["calls_per_s"] = rate ? Json(rate->calls) : Json();
  j["bytes_per_s"] = rate ? Json(rate->bytes) : Json();
  return j;
}

Json open_call(const OpenCall& call) {
  return {{"function", call.function},
          {"bucket", call.bucket ? Json(bucket_name(*call.bucket)) : Json()},
          {"communicator", or_null(call.communicator)},
          {"seq", or_null(call.seq)},
          {"age_ns", call.age_ns}};
}

Json rank_of(const Shown& v, const Rank& rank) {
  const read::Header& h = rank.process->header;
  Json j = {{"rank", or_null(h.rank)},
            {"host", h.host},
            {"pid", h.pid},
            {"state", rank.state()},
            {"realtime_ns", h.base_time_ns + rank.as_of_ns},
            {"step", rank.step ? Json(rank.step->number) : Json()},
            {"step_ns", rank.step ? Json(rank.step->dur_ns) : Json()}};
  const auto* dropped = rank.why_dropped();
  j["dropped"] = dropped != nullptr ? Json(*dropped) : Json();
  Json& buckets = j["buckets"] = Json::object();
  for (std::size_t b = 0; b <= kAllBuckets; ++b) {
    buckets[std::string(name_of_bucket(b))] = bucket(v, rank, b);
  }
  Json& open = j["open"] = Json::array();
  for (const OpenCall& call : rank.open) open.push_back(open_call(call));
  return j;
}

}  // namespace

std::string_view name_of_column(Column column) {
  return kInfos[static_cast<std::size_t>(column)].name;
}

std::string to_text(const Shown& v, std::size_t most) {
  const std::vector<Row> of_ranks = ranks_of(v);
  const std::vector<Row> of_buckets = buckets_of(v);
  const bool drops =
      std::ranges::any_of(v.ranks, [](const Rank& r) { return r.dropped().value_or(0) != 0; });
  std::vector<std::string> buckets = lines_of("bucket", of_buckets, false);
  std::vector<std::string> ranks = lines_of("rank", of_ranks, drops);
  const read::Amounts& all = of_buckets.back().total;
  if (all.exposure_known_ns != 0 && all.exposure_known < all.device_timed) {
    buckets.push_back(fmt::format("  exposed: known of {} of {} timed calls",
                                  text::thousands(all.exposure_known),
                                  text::thousands(all.device_timed)));
  }
  std::vector<std::string> open = open_lines(v);
  if (most != 0) {
    // Four lines are the title and separators. If lines are scarce, open calls are cut first, then
    // buckets.
    constexpr std::size_t kApart = 4;
    constexpr std::size_t kFewest = 4;
    const std::size_t room = std::max(most, kApart + 3 * kFewest) - kApart;
    shorten(open, std::max(kFewest, room / 4));
    shorten(buckets, std::max(kFewest, room - open.size() - std::min(ranks.size(), room / 2)));
    shorten(ranks, room - open.size() - buckets.size());
  }
  std::string out = v.title + '\n';
  for (const auto* part : {&ranks, &buckets, &open}) {
    if (part->empty()) continue;
    out += '\n';
    for (const std::string& line : *part) out += line + '\n';
  }
  return out;
}

std::string_view name_of_bucket(std::size_t bucket) {
  return bucket == kAllBuckets ? "ALL" : kBuckets[bucket].name;
}

void History::look(const std::vector<Rank>& ranks) {
  before_ = std::move(now_);
  now_.clear();
  for (const Rank& rank : ranks) {
    Seen& seen = now_[key_of(rank)];
    seen.as_of_ns = rank.as_of_ns;
    std::ranges::copy(rank.buckets, seen.figures.begin());
    seen.figures[kAllBuckets] = rank.all;
  }
}

read::Amounts History::total(const Rank& rank, std::size_t bucket) const {
  read::Amounts since = now_.at(key_of(rank)).figures[bucket];
  const auto base = base_.find(key_of(rank));
  if (base != base_.end()) since -= base->second.figures[bucket];
  return since;
}

std::optional<Rate> History::rate(const Rank& rank, std::size_t bucket) const {
  const Seen& now = now_.at(key_of(rank));
  const auto before = before_.find(key_of(rank));
  if (!rank.runs() || before == before_.end()) return std::nullopt;
  const std::int64_t ns = now.as_of_ns - before->second.as_of_ns;
  if (ns <= 0) return std::nullopt;
  read::Amounts more = now.figures[bucket];
  more -= before->second.figures[bucket];
  const double seconds = static_cast<double>(ns) / 1e9;
  return Rate{static_cast<double>(more.calls) / seconds, static_cast<double>(more.bytes) / seconds};
}

std::string to_json(const Shown& v) {
  Json j = {{"schema", "tprof-top/1"}, {"ranks", Json::array()}};
  for (const Rank& rank : v.ranks) j["ranks"].push_back(rank_of(v, rank));
  return report::printed(j);
}

namespace {

// Returns a label's value, quoted.
std::string label(std::string_view value) {
  return '"' + text::replaced(text::printable(value), {{"\"", "\\\""}, {"\\", "\\\\"}}) + '"';
}

std::string seconds(std::uint64_t ns) {
  return fmt::format("{}.{:09}", ns / 1'000'000'000, ns % 1'000'000'000);
}

void begin(std::string& out, std::string_view name, std::string_view type, std::string_view help) {
  out += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
}

// Forked children have their parent's rank, so figures of equal keys are added up.
using Key = std::tuple<std::string, Bucket, std::string>;  // rank, bucket, operation
using Operations = std::map<Key, read::Amounts>;

Operations operations_of(const std::vector<Rank>& ranks) {
  Operations all;
  for (const Rank& rank : ranks) {
    tables::each_row(*rank.process, [&](const read::Row& row) {
      all[{rank.name(), row.bucket, row.name}] += row.amounts;
    });
  }
  return all;
}

struct Counter {
  const char* name;
  const char* help;
  std::uint64_t read::Amounts::*amount;
  bool seconds = false;
  bool timed = false;  // for operations timed on the device only
};
constexpr std::array kCounters = {
    Counter{"tprof_calls_total", "Calls that the library accepted.", &read::Amounts::calls},
    Counter{"tprof_elements_total", "Elements, as nccl-tests counts them.",
            &read::Amounts::elements},
    Counter{"tprof_bytes_total", "Bytes of these elements.", &read::Amounts::bytes},
    Counter{"tprof_host_seconds_total", "Time in the calls on the host, which enqueue the work.",
            &read::Amounts::host_ns, true},
    Counter{"tprof_device_timed_calls_total", "Calls that were timed on the device.",
            &read::Amounts::device_timed, false, true},
    Counter{"tprof_device_seconds_total", "Device time of the calls that were timed on the device.",
            &read::Amounts::device_ns, true, true},
};

void add_counters(const Operations& operations, std::string& out) {
  for (const Counter& counter : kCounters) {
    begin(out, counter.name, "counter", counter.help);
    for (const auto& [key, amounts] : operations) {
      if (counter.timed && amounts.device_timed == 0) continue;
      const auto& [rank, bucket, operation] = key;
      const std::uint64_t n = amounts.*counter.amount;
      out += fmt::format("{}{{bucket={},operation={},rank={}}} {}\n", counter.name,
                         label(bucket_name(bucket)), label(operation), label(rank),
                         counter.seconds ? seconds(n) : std::to_string(n));
    }
  }
}

void add_dropped(const std::vector<Rank>& ranks, std::string& out) {
  std::map<std::pair<std::string, std::string>, std::uint64_t> dropped;
  for (const Rank& rank : ranks) {
    const auto* why = rank.why_dropped();
    if (why == nullptr) continue;
    for (const auto& [reason, lines] : *why) dropped[{rank.name(), reason}] += lines;
  }
  begin(out, "tprof_dropped_lines_total", "counter",
        "Calls without an event line; they are counted.");
  for (const auto& [key, lines] : dropped) {
    out += fmt::format("tprof_dropped_lines_total{{rank={},reason={}}} {}\n", label(key.first),
                       label(key.second), lines);
  }
}

void add_states(const std::vector<Rank>& ranks, std::string& out) {
  std::map<std::string_view, std::size_t> states;
  for (const std::string_view state : kStates) states[state] = 0;
  for (const Rank& rank : ranks) ++states[rank.state()];
  begin(out, "tprof_ranks", "gauge", "Ranks by the state of their process.");
  for (const auto& [state, n] : states) {
    out += fmt::format("tprof_ranks{{state={}}} {}\n", label(state), n);
  }
}

}  // namespace

std::string exposition(const std::vector<Rank>& ranks) {
  std::string out;
  add_counters(operations_of(ranks), out);
  add_dropped(ranks, out);
  add_states(ranks, out);
  return out;
}

}  // namespace tprof::live
