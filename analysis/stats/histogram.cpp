#include "stats/histogram.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
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

// Takes part in the next pass, with an error if a file could not be read.
void want_durations(collect::Passes& passes, const Wanted& wanted,
                    std::function<void(const collect::Lines&)> take) {
  passes.want(
      [&wanted](const Process& rank, collect::Collectors& all) {
        collect::want<ScopeLedger>(rank, all);
        collect::want<Durations>(rank, all, wanted);
      },
      [take = std::move(take)](const collect::Lines& lines) {
        if (!lines.unreadable().empty()) throw read::BadInput(lines.unreadable()[0].reason);
        take(lines);
      });
}

template <typename F>
void each_rank(const job::Job& job, const collect::Lines& lines, const F& f) {
  for (const Process* p : job.processes) {
    if (const auto* rank = lines.of<Durations>(p)) f(*p, *rank);
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
std::map<std::optional<std::int64_t>, read::ScopeTotal> scopes_of(const job::Job& job,
                                                                  const collect::Lines& lines,
                                                                  const std::string& name) {
  std::map<std::optional<std::int64_t>, read::ScopeTotal> ranks;
  for (const Process* p : job.processes) {
    const auto* ledger = lines.of<ScopeLedger>(p);
    if (ledger == nullptr) continue;
    for (const read::ScopeTotal& scope : ledger->scopes) {
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
std::optional<Histogram> of_counts(const job::Job& job, const collect::Lines& lines,
                                   const HistogramOptions& options, std::uint64_t with_lines) {
  const auto ranks = scopes_of(job, lines, options.name.substr(0, kMaxRangeName));
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

namespace {

// Both passes share it: the first finds the bins.
struct Making {
  Wanted wanted;
  From from = kHost;
};

// Returns false if the histogram is whole without a second pass.
bool set_edges(const job::Job& job, const HistogramOptions& options, const collect::Lines& lines,
               Making& making, Histogram& h) {
  Wanted& wanted = making.wanted;
  std::array<Spread, kFroms> all;
  std::set<std::string> names;
  each_rank(job, lines, [&](const Process&, const Durations& rank) {
    for (std::size_t i = 0; i < kFroms; ++i) all[i].add(rank.of[i].time);
    h.shared += rank.shared;
    names.insert(rank.names.begin(), rank.names.end());
  });
  making.from = all[kDevice].count != 0 ? kDevice : all[kHost].count != 0 ? kHost : kRange;
  const Spread& time = all[making.from];
  if (making.from == kRange && !wanted.only) {
    if (auto counted = of_counts(job, lines, options, time.count)) {
      h = std::move(*counted);
      return false;
    }
  }
  if (time.count == 0) found_none(job, wanted, std::move(names));
  h.on_device = making.from == kDevice;
  h.kind = making.from == kRange ? Kind::range : wanted.bucket ? Kind::bucket : Kind::function;
  h.looked = all[kHost].count;
  h.log_scaled = time.max_ns / Histogram::kLogFrom >= std::max<std::uint64_t>(time.min_ns, 1);
  h.edges_ns = wanted.edges = edges(time.min_ns, time.max_ns, options.bins, h.log_scaled);
  return true;
}

}  // namespace

void want_histogram(collect::Passes& passes, const HistogramOptions& options,
                    const steps::Found& found, const std::optional<StepList>& only,
                    std::optional<Histogram>& to) {
  const std::string name = options.name.substr(0, kMaxRangeName);
  const auto making =
      std::make_shared<Making>(Making{{name, bucket_of(options.name), found, only}});
  want_durations(passes, making->wanted, [=, &passes, &to](const collect::Lines& first) {
    to = Histogram{};
    to->name = options.name;
    if (!set_edges(passes.job(), options, first, *making, *to)) return;
    want_durations(passes, making->wanted, [=, &passes, &to](const collect::Lines& second) {
      each_rank(passes.job(), second, [&](const Process& p, const Durations& rank) {
        if (rank.of[making->from].time.count == 0) return;
        to->all.add(rank.of[making->from]);
        to->ranks[p.header.rank].add(rank.of[making->from]);
      });
    });
  });
}

}  // namespace tprof::stats
