#include "tables/histogram.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "interpose/format/misspelt.h"
#include "interpose/format/ranges.h"
#include "interpose/format/scopes.h"
#include "read/error.h"
#include "tables/ranges.h"

namespace tprof::tables {
namespace {

using read::Process;
using Kind = Histogram::Kind;

enum From { kHost, kDevice, kRange, kFroms };

struct Wanted {
  std::string name;
  std::optional<Bucket> bucket;  // set if `name` is a bucket's
  const steps::Found& found;
  std::optional<StepList> only;
  std::vector<std::uint64_t> edges{};  // empty: not known yet

  bool is(Bucket of, std::string_view function) const {
    return bucket ? of == *bucket : function == name;
  }
};

// Collects how long calls and NVTX ranges of one name took, from the lines of a rank.
struct Durations {
  static constexpr std::size_t kMostNames = 1000;

  Durations(const Process& process, const Wanted& what) : rank(process), wanted(what) {}

  void timed(const read::Event& e, const read::DeviceTime* t) {
    if (!wanted.is(e.bucket, e.name) || !e.executed() || !e.chosen) return;
    if (!in_steps(wanted.only, wanted.found, rank, e.ts_ns)) return;
    of[kHost].add(read::not_below_0(e.dur_ns), 1, wanted.edges);
    if (t == nullptr) return;
    of[kDevice].add(read::not_below_0(t->dur_ns), t->calls, wanted.edges);
    if (t->calls > 1) shared += t->calls;
  }

  void range(const read::Range& r) {
    using Phase = read::Range::Phase;
    if (wanted.bucket || r.phase == Phase::mark || r.phase == Phase::open) return;
    if (names.size() < kMostNames) names.insert(r.name);
    if (r.name != wanted.name) return;
    if (r.phase == Phase::started) return started.start(r);
    const auto began = r.phase == Phase::closed ? r.ts_ns : started.end(r);
    const std::int64_t ended = r.phase == Phase::closed ? r.ts_ns + r.dur_ns : r.ts_ns;
    if (!began || !in_steps(wanted.only, wanted.found, rank, *began)) return;
    of[kRange].add(read::not_below_0(ended - *began), 1, wanted.edges);
  }

  const Process& rank;
  const Wanted& wanted;
  std::array<Samples, kFroms> of{};
  std::uint64_t shared = 0;
  std::set<std::string> names{};  // candidates for a misspelt name
  StartedRanges started{};
};

[[noreturn]] void found_none(const job::Job& job, const Wanted& wanted,
                             std::set<std::string> names) {
  std::uint64_t calls = 0;
  for (const Process* p : job.processes) {
    each_row(*p, [&](const read::Row& row) {
      names.insert(row.name);
      if (wanted.is(row.bucket, row.name)) calls = read::saturated_sum(calls, row.amounts.calls);
    });
  }
  if (calls != 0) {
    throw read::BadInput(fmt::format("--hist: {} calls of {}, and none {}has a line", calls,
                                     wanted.name, wanted.only ? "in these steps " : ""));
  }
  for (const BucketInfo& b : kBuckets) names.emplace(b.name);
  const std::string_view near = nearest(wanted.name, names);
  throw read::BadInput(fmt::format("--hist: no call and no NVTX range that ended is named '{}'{}",
                                   wanted.name,
                                   near.empty() ? "" : fmt::format("; did you mean {}?", near)));
}

// Returns the scopes of that name, whatever their category, as the ledgers count them. Nullopt if
// all of them have lines, since lines tell more.
std::optional<Histogram> of_counts(const run::Lines& lines, const Wanted& wanted,
                                   std::size_t most_bins, std::uint64_t with_lines) {
  std::map<std::optional<std::int64_t>, read::ScopeTotal> ranks;
  read::ScopeTotal all;
  for (const Process* p : lines.job().processes) {
    for (const read::ScopeTotal& scope : scopes_of(lines, *p)) {
      if (scope.name != wanted.name) continue;
      add(ranks[p->header.rank], scope);
      add(all, scope);
    }
  }
  if (all.count <= with_lines || all.bins.empty()) return std::nullopt;
  Histogram h{.kind = Kind::range, .of_counts = true, .log_scaled = true};
  const unsigned first = scope_bin(all.bins.begin()->first);
  const unsigned end = scope_bin(all.bins.rbegin()->first) + 1U;
  const auto together =
      static_cast<unsigned>((end - 1 - first) / std::max<std::size_t>(most_bins, 1) + 1);
  for (unsigned bin = first; bin < end; bin += together) h.edges_ns.push_back(scope_bin_from(bin));
  h.edges_ns.push_back(scope_bin_from(end));
  const auto samples = [&](const read::ScopeTotal& scope) {
    Samples to;
    to.bins.resize(h.edges_ns.size() - 1);
    for (const auto& [from, n] : scope.bins) to.add(from * n, n, h.edges_ns);
    to.time.set_sums(scope.count, scope.total_ns, scope.max_ns);
    return to;
  };
  h.all = samples(all);
  for (const auto& [rank, scope] : ranks) h.ranks[rank] = samples(scope);
  return h;
}

}  // namespace

void Samples::add(std::uint64_t ns, std::uint64_t calls,
                  const std::vector<std::uint64_t>& edges_ns) {
  time.add_shares(ns, calls);
  if (edges_ns.empty() || calls == 0) return;
  bins.resize(edges_ns.size() - 1);
  const auto next = std::upper_bound(edges_ns.begin() + 1, edges_ns.end() - 1, ns / calls);
  bins[static_cast<std::size_t>(next - edges_ns.begin()) - 1] += calls;
}

void Samples::add(const Samples& more) {
  time.add(more.time);
  bins.resize(std::max(bins.size(), more.bins.size()));
  for (std::size_t i = 0; i < more.bins.size(); ++i) bins[i] += more.bins[i];
}

std::vector<std::uint64_t> edges(std::uint64_t min_ns, std::uint64_t max_ns, std::size_t bins,
                                 bool log_scaled) {
  const auto low = static_cast<double>(min_ns);
  const auto high = static_cast<double>(max_ns);
  std::vector<std::uint64_t> all = {min_ns};
  for (std::size_t i = 1; i < bins; ++i) {
    const double part = static_cast<double>(i) / static_cast<double>(bins);
    const double first = std::max(low, 1.0);
    const double at = log_scaled ? first * std::pow(high / first, part) : low + (high - low) * part;
    const auto edge = static_cast<std::uint64_t>(std::round(at));
    if (edge > all.back() && edge < max_ns) all.push_back(edge);
  }
  all.push_back(max_ns);
  return all;
}

Histogram histogram_of(const run::Lines& lines, const HistogramOptions& options,
                       const steps::Found& found, const std::optional<StepList>& only) {
  Wanted wanted{options.name.substr(0, kMaxRangeName), {}, found, only};
  const auto* bucket = std::ranges::find(kBuckets, options.name, &BucketInfo::name);
  if (bucket != std::end(kBuckets)) wanted.bucket = static_cast<Bucket>(bucket - kBuckets);
  const auto each_rank = [&](const auto& see) {
    lines.each([&](const Process& rank) { return Durations(rank, wanted); }, see);
    if (!lines.unreadable().empty()) throw read::BadInput(lines.unreadable()[0].reason);
  };
  Histogram h;
  std::array<Spread, kFroms> all;
  std::set<std::string> names;
  each_rank([&](const Durations& rank) {
    for (std::size_t i = 0; i < kFroms; ++i) all[i].add(rank.of[i].time);
    h.shared += rank.shared;
    names.insert(rank.names.begin(), rank.names.end());
  });
  const From from = all[kDevice].count != 0 ? kDevice : all[kHost].count != 0 ? kHost : kRange;
  const Spread& time = all[from];
  const auto counted =
      from == kRange && !only ? of_counts(lines, wanted, options.bins, time.count) : std::nullopt;
  if (!counted && time.count == 0) found_none(lines.job(), wanted, std::move(names));
  if (counted) h = *counted;
  h.name = options.name;
  if (counted) return h;
  h.on_device = from == kDevice;
  h.kind = from == kRange ? Kind::range : wanted.bucket ? Kind::bucket : Kind::function;
  h.looked = all[kHost].count;
  h.log_scaled = time.max_ns / Histogram::kLogFrom >= std::max<std::uint64_t>(time.min_ns, 1);
  h.edges_ns = wanted.edges = edges(time.min_ns, time.max_ns, options.bins, h.log_scaled);
  each_rank([&](const Durations& rank) {
    if (rank.of[from].time.count == 0) return;
    h.all.add(rank.of[from]);
    h.ranks[rank.rank.header.rank].add(rank.of[from]);
  });
  return h;
}

}  // namespace tprof::tables
