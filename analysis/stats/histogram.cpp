#include "stats/histogram.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

#include "interpose/format/misspelt.h"
#include "interpose/format/ranges.h"
#include "interpose/format/scopes.h"
#include "read/error.h"
#include "stats/durations.h"
#include "stats/scope_totals.h"

namespace tprof::stats {
namespace {

using read::Process;
using Kind = Histogram::Kind;

using RankDurations = run::ByRank<Durations>;

// Throws BadInput if a file can't be read.
RankDurations durations_of(const run::Lines& lines, const Wanted& wanted) {
  RankDurations all = lines.each([&](const Process& rank) { return Durations(rank, wanted); });
  if (!lines.unreadable().empty()) throw read::BadInput(lines.unreadable()[0].reason);
  return all;
}

template <typename F>
void each_rank(const job::Job& job, const RankDurations& durations, const F& f) {
  for (const Process* p : job.processes) {
    if (const auto* rank = durations.of(p)) f(*p, *rank);
  }
}

std::optional<Bucket> bucket_of(const std::string& name) {
  const auto* known = std::ranges::find(kBuckets, name, &BucketInfo::name);
  if (known == std::end(kBuckets)) return std::nullopt;
  return static_cast<Bucket>(known - kBuckets);
}

std::uint64_t counted(const job::Job& job, const Wanted& wanted) {
  std::uint64_t calls = 0;
  for (const Process* p : job.processes) {
    each_row(*p, [&](const read::Row& row) {
      const bool same = wanted.bucket ? row.bucket == *wanted.bucket : row.name == wanted.name;
      if (same) calls = read::saturated_sum(calls, row.amounts.calls);
    });
  }
  return calls;
}

[[noreturn]] void found_none(const job::Job& job, const Wanted& wanted,
                             std::set<std::string> names) {
  if (const std::uint64_t calls = counted(job, wanted); calls != 0) {
    throw read::BadInput(fmt::format("--hist: {} calls of {}, and none {}has a line", calls,
                                     wanted.name, wanted.only ? "in these steps " : ""));
  }
  for (const BucketInfo& b : kBuckets) names.emplace(b.name);
  const std::string_view near = nearest(wanted.name, names);
  throw read::BadInput(fmt::format("--hist: no call and no NVTX range that ended is named '{}'{}",
                                   wanted.name,
                                   near.empty() ? "" : fmt::format("; did you mean {}?", near)));
}

// Returns the scopes of that name by rank, whatever their category.
std::map<std::optional<std::int64_t>, read::ScopeTotal> scopes_named(const run::Lines& lines,
                                                                     const std::string& name) {
  std::map<std::optional<std::int64_t>, read::ScopeTotal> ranks;
  for (const Process* p : lines.job().processes) {
    for (const read::ScopeTotal& scope : scopes_of(lines, *p)) {
      if (scope.name == name) add(ranks[p->header.rank], scope);
    }
  }
  return ranks;
}

void set_times(Samples& to, const read::ScopeTotal& scope,
               const std::vector<std::uint64_t>& edges) {
  to.time.set_sums(scope.count, scope.total_ns, scope.max_ns);
  to.bins.assign(edges.size() - 1, 0);
  for (const auto& [from, n] : scope.bins) {
    const auto behind = std::upper_bound(edges.begin(), edges.end() - 1, from);
    to.bins[static_cast<std::size_t>(behind - edges.begin()) - 1] += n;
  }
}

// Returns nullopt if all scopes have lines, since lines tell more.
std::optional<Histogram> of_counts(const run::Lines& lines, const HistogramOptions& options,
                                   std::uint64_t with_lines) {
  const auto ranks = scopes_named(lines, options.name.substr(0, kMaxRangeName));
  read::ScopeTotal all;
  for (const auto& [rank, scope] : ranks) add(all, scope);
  if (all.count <= with_lines || all.bins.empty()) return std::nullopt;
  Histogram h{.name = options.name,
              .kind = Kind::range,
              .of_counts = true,
              .log_scaled = true,
              .edges_ns = {},
              .all = {},
              .ranks = {}};
  const unsigned first = scope_bin(all.bins.begin()->first);
  const unsigned last = scope_bin(all.bins.rbegin()->first);
  const auto together =
      static_cast<unsigned>((last - first) / std::max<std::size_t>(options.bins, 1) + 1);
  for (unsigned bin = first; bin <= last; bin += together)
    h.edges_ns.push_back(scope_bin_from(bin));
  h.edges_ns.push_back(scope_bin_from(last + 1));
  set_times(h.all, all, h.edges_ns);
  for (const auto& [rank, scope] : ranks) set_times(h.ranks[rank], scope, h.edges_ns);
  return h;
}

}  // namespace

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
  const job::Job& job = lines.job();
  Wanted wanted{options.name.substr(0, kMaxRangeName), bucket_of(options.name), found, only};
  Histogram h{};
  h.name = options.name;
  std::array<Spread, kFroms> all;
  std::set<std::string> names;
  each_rank(job, durations_of(lines, wanted), [&](const Process&, const Durations& rank) {
    for (std::size_t i = 0; i < kFroms; ++i) all[i].add(rank.of[i].time);
    h.shared += rank.shared;
    names.insert(rank.names.begin(), rank.names.end());
  });
  const From from = all[kDevice].count != 0 ? kDevice : all[kHost].count != 0 ? kHost : kRange;
  const Spread& time = all[from];
  if (from == kRange && !only) {
    if (auto counted = of_counts(lines, options, time.count)) return std::move(*counted);
  }
  if (time.count == 0) found_none(job, wanted, std::move(names));
  h.on_device = from == kDevice;
  h.kind = from == kRange ? Kind::range : wanted.bucket ? Kind::bucket : Kind::function;
  h.looked = all[kHost].count;
  h.log_scaled = time.max_ns / Histogram::kLogFrom >= std::max<std::uint64_t>(time.min_ns, 1);
  h.edges_ns = wanted.edges = edges(time.min_ns, time.max_ns, options.bins, h.log_scaled);
  each_rank(job, durations_of(lines, wanted), [&](const Process& p, const Durations& rank) {
    if (rank.of[from].time.count == 0) return;
    h.all.add(rank.of[from]);
    h.ranks[p.header.rank].add(rank.of[from]);
  });
  return h;
}

}  // namespace tprof::stats
