#include "live/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <sstream>

#include "live/compact.h"
#include "text/text.h"

namespace tprof::live {
namespace {

using text::Table;

constexpr std::array<std::string_view, kColumns> kNames = {
    "rank", "state", "step", "calls/s", "bytes/s", "calls", "bytes", "exposed", "drops"};

std::string step_of(const Rank& rank) {
  return rank.step ? fmt::format("{}, {}", rank.step->number, compact_time(rank.step->dur_ns))
                   : "-";
}

// That of all buckets together is of the calls of which it is known, as a note says.
std::string share(const Figures& total, std::size_t bucket) {
  const auto exposed = total.exposed();
  const bool tells = exposed && (bucket == kAllBuckets || total.exposure_tells());
  return tells ? fmt::format("{:.1f}%", *exposed * 100) : "-";
}

// The figures of a rank or of a bucket, from calls/s to exposed.
std::vector<std::string> cells(const std::optional<Rate>& rate, const Figures& total,
                               std::size_t bucket) {
  return {rate ? compact(rate->calls) : "-", rate ? compact_bytes(rate->bytes) : "-",
          compact(total.calls), compact_bytes(static_cast<double>(total.bytes)),
          share(total, bucket)};
}

// Returns what the column sorts by. The largest comes first, except for ranks.
double weight(const Shown& v, const Rank& rank) {
  const auto rate = v.history->rate(rank, v.bucket).value_or(Rate{});
  const Figures total = v.history->total(rank, v.bucket);
  switch (v.sorted_by) {
    case Column::rank:
      return 0;
    case Column::state:
      return rank.runs() ? 1 : 0;
    case Column::step:
      return rank.step ? static_cast<double>(rank.step->dur_ns) : -1;
    case Column::calls_rate:
      return rate.calls;
    case Column::bytes_rate:
      return rate.bytes;
    case Column::calls:
      return static_cast<double>(total.calls);
    case Column::bytes:
      return static_cast<double>(total.bytes);
    case Column::exposed:
      return total.exposed().value_or(-1);
    case Column::dropped:
      return static_cast<double>(rank.dropped().value_or(0));
  }
  return 0;
}

std::vector<std::string> lines_of(const std::string& table) {
  std::vector<std::string> lines;
  std::istringstream in(table);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Leaves out columns that say nothing of any rank.
Table table_of(std::string_view first, bool state, bool steps, bool exposed, bool dropped) {
  using enum Table::Align;
  std::vector<std::pair<std::string, Table::Align>> columns = {{std::string(first), left}};
  if (state) columns.emplace_back("state", left);
  if (steps) columns.emplace_back("step", right);
  for (const char* name : {"calls/s", "bytes/s", "calls", "bytes"})
    columns.emplace_back(name, right);
  if (exposed) columns.emplace_back("exposed", right);
  if (dropped) columns.emplace_back("drops", right);
  return Table(columns);
}

std::vector<std::string> rank_lines(const Shown& v, bool exposed) {
  const bool steps = std::ranges::any_of(v.ranks, [](const Rank& r) { return r.step.has_value(); });
  const bool drops =
      std::ranges::any_of(v.ranks, [](const Rank& r) { return r.dropped().value_or(0) != 0; });
  Table table = table_of("rank", true, steps, exposed, drops);
  for (const Rank& rank : v.ranks) {
    std::vector<std::string> row = {text::printable(rank.name()), std::string(rank.state())};
    if (steps) row.push_back(step_of(rank));
    for (std::string& cell :
         cells(v.history->rate(rank, v.bucket), v.history->total(rank, v.bucket), v.bucket)) {
      row.push_back(std::move(cell));
    }
    if (!exposed) row.pop_back();
    if (drops) row.push_back(rank.dropped() ? compact(*rank.dropped()) : "-");
    table.row(std::move(row));
  }
  return lines_of(table.str());
}

std::vector<std::string> bucket_lines(const Shown& v, bool exposed) {
  Table table = table_of("bucket", false, false, exposed, false);
  Figures all;
  for (std::size_t b = 0; b <= kAllBuckets; ++b) {
    Figures total;
    std::optional<Rate> rate;
    for (const Rank& rank : v.ranks) {
      total += v.history->total(rank, b);
      const auto more = v.history->rate(rank, b);
      if (!more) continue;
      if (!rate) rate = Rate{};
      *rate += *more;
    }
    if (total.calls == 0 && b != kAllBuckets) continue;
    std::vector<std::string> row = {std::string(name_of_bucket(b))};
    for (std::string& cell : cells(rate, total, b)) row.push_back(std::move(cell));
    if (!exposed) row.pop_back();
    table.row(std::move(row));
    all = total;  // that of all buckets comes last
  }
  std::vector<std::string> lines = lines_of(table.str());
  if (exposed && all.exposure_known < all.device_timed) {
    lines.push_back(fmt::format("  exposed: known of {} of {} timed calls",
                                text::thousands(all.exposure_known),
                                text::thousands(all.device_timed)));
  }
  return lines;
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

// Keeps `most` lines, the last of which says how many more there are. With 0 it keeps none.
void shorten(std::vector<std::string>& lines, std::size_t most) {
  if (lines.size() <= most) return;
  const std::size_t left = lines.size() - most + 1;
  lines.resize(most);
  if (most != 0) lines.back() = fmt::format("  and {} more", text::thousands(left));
}

}  // namespace

std::string_view name_of_column(Column column) {
  return kNames[static_cast<std::size_t>(column)];
}

std::string to_text(Shown v, std::size_t most) {
  std::ranges::stable_sort(v.ranks, std::ranges::greater{},
                           [&](const Rank& rank) { return weight(v, rank); });
  const bool exposed = std::ranges::any_of(v.ranks, [&](const Rank& r) {
    return v.history->total(r, kAllBuckets).exposed().has_value();
  });
  std::vector<std::string> ranks = rank_lines(v, exposed);
  std::vector<std::string> buckets = bucket_lines(v, exposed);
  std::vector<std::string> open = open_lines(v);
  if (most != 0) {
    // Four lines are the title and what stands between the tables. If there is little room for all,
    // open calls are cut first, then buckets.
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

}  // namespace tprof::live
