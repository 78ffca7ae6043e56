#include "tables/durations.h"

#include <fmt/format.h>
#include <cmath>
#include <tuple>
#include <utility>

#include "interpose/format/ranges.h"
#include "read/error.h"
#include "read/process.h"
#include "tables/groups.h"
#include "tables/ranges.h"
#include "text/misspelt.h"

namespace tprof::tables {

void Spread::add_shares(std::uint64_t ns, std::uint64_t calls) {
  if (calls == 0) return;
  Spread equal;
  equal.count = calls;
  equal.total_ns = ns;
  equal.min_ns = equal.max_ns = ns / calls;
  equal.mean_ns = static_cast<double>(ns) / static_cast<double>(calls);
  add(equal);
}

void Spread::add(const Spread& other) {
  if (other.count == 0) return;
  min_ns = count == 0 ? other.min_ns : std::min(min_ns, other.min_ns);
  max_ns = std::max(max_ns, other.max_ns);
  total_ns = read::saturated_sum(total_ns, other.total_ns);
  const auto n = static_cast<double>(count);
  const auto m = static_cast<double>(other.count);
  const double distance = other.mean_ns - mean_ns;
  mean_ns += distance * m / (n + m);
  squares_ += other.squares_ + distance * distance * n * m / (n + m);
  count += other.count;
}

void Spread::set_sums(std::uint64_t n, std::uint64_t sum_ns, std::uint64_t longest_ns) {
  *this = {};
  count = n;
  total_ns = sum_ns;
  max_ns = longest_ns;
  if (n != 0) mean_ns = static_cast<double>(sum_ns) / static_cast<double>(n);
}

double Spread::std_ns() const {
  return count == 0 ? 0 : std::sqrt(squares_ / static_cast<double>(count));
}

template <typename T>
static void add(Timed<T>& to, const read::Event& e, const read::DeviceTime* t) {
  to.host.add_shares(read::not_below_0(e.dur_ns), 1);
  if (t != nullptr) to.device.add_shares(read::not_below_0(t->dur_ns), t->calls);
}

OpTimes op_times(const run::Lines& lines) {
  OpTimes all;
  const auto operation = [](const read::Process& rank) {
    return [&rank](const read::Event& e) { return std::optional(op_of(e, rank)); };
  };
  each_group<OpTime>(lines, operation, [&](const auto& rank, const OpKey& key, OpTime& times) {
    for (RankedSpread* spread : {&times.host, &times.device}) {
      if (rank.header.rank && spread->count != 0) spread->ranks.insert(*rank.header.rank);
    }
    all[key].add(times);
  });
  return all;
}

void Spectrum::add_shares(std::uint64_t ns, std::uint64_t n) {
  if (n == 0) return;
  counts[bin_of(ns / n)] += n;
  calls += n;
  total_ns = read::saturated_sum(total_ns, ns);
}

void Spectrum::add(const Spectrum& more) {
  for (std::size_t i = 0; i < kBins && more.calls != 0; ++i) counts[i] += more.counts[i];
  calls += more.calls;
  total_ns = read::saturated_sum(total_ns, more.total_ns);
}

Spectra spectra_of(const run::Lines& lines) {
  Spectra all;
  const auto operation = [](const read::Process& /*equal for all*/) {
    return [](const read::Event& e) {
      return std::optional<OpKey>({e.bucket, e.name, {}, {}, 0, tprof::bytes_class(e.bytes)});
    };
  };
  each_group<CallSpectra>(lines, operation, [&](auto&, const auto& key, const CallSpectra& more) {
    all[key].add(more);
  });
  return all;
}

namespace {

using read::Process;
using Kind = Histogram::Kind;

enum From { kHost, kDevice, kRange, kFroms };

struct Wanted {
  std::string name;
  std::optional<Bucket> bucket;  // set if `name` is a bucket
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
    throw read::BadInput(fmt::format("--hist: {} calls of {}, but none {}has a line", calls,
                                     wanted.name, wanted.only ? "in these steps " : ""));
  }
  for (const BucketInfo& b : kBuckets) names.emplace(b.name);
  const std::string_view near = nearest(wanted.name, names);
  throw read::BadInput(fmt::format("--hist: no call and no ended NVTX range is named '{}'{}",
                                   wanted.name,
                                   near.empty() ? "" : fmt::format("; did you mean {}?", near)));
}

// Returns the ledgers' counts of scopes with that name in any category. Nullopt if all have lines,
// since lines tell more.
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

using read::Event;

bool longer(const SlowCall& a, const SlowCall& b) {
  const auto key = [](const SlowCall& c) {
    return std::tuple(-c.time_ns, c.rank->header.rank, c.line.ts_ns);
  };
  return key(a) < key(b);
}

// Keeps the longest few of many calls.
struct Longest {
  void see(SlowCall call, std::size_t most) {
    looked += call.calls;
    if (calls.size() == most && call.time_ns <= calls.back().time_ns) return;
    calls.insert(std::ranges::upper_bound(calls, call, longer), std::move(call));
    if (calls.size() > most) calls.pop_back();
  }
  void add(const Longest& more) {
    looked += more.looked;
    calls.insert(calls.end(), more.calls.begin(), more.calls.end());
  }

  std::vector<SlowCall> calls;  // the longest first
  std::uint64_t looked = 0;
};

// Keeps both times, since only the last line shows whether there are device times.
struct Candidates {
  void timed(const Event& e, const read::DeviceTime* t) {
    if (!e.executed() || !e.chosen) return;
    longest.host.see({.rank = &rank, .time_ns = e.dur_ns, .line = e, .bytes = e.bytes}, most);
    if (t == nullptr) return;
    const auto bytes = t->calls == 1 ? std::optional(e.bytes) : std::nullopt;
    longest.device.see(
        {.rank = &rank, .time_ns = t->dur_ns, .line = e, .calls = t->calls, .bytes = bytes}, most);
  }

  const Process& rank;
  std::size_t most;
  Timed<Longest> longest{};
};

// Keeps each collective once, for its slowest rank. Expects the order of `longer`.
void each_collective_once(std::vector<SlowCall>& calls) {
  std::set<std::tuple<std::string, std::int64_t, std::uint64_t>> seen;
  std::erase_if(calls, [&](const SlowCall& c) {
    const read::Comm* comm = c.line.collective() ? read::comm_of(*c.rank, c.line.comm) : nullptr;
    if (comm == nullptr || !comm->known()) return false;
    return !seen.emplace(comm->id, comm->nranks, c.line.seq).second;
  });
}

// Adds up the bytes of a rank's groups of collectives; other grouped calls are not numbered
// consecutively.
struct GroupBytes {
  void call(const Event& e) {
    if (!e.executed() || !e.collective()) return;
    for (auto& [group, seen, bytes] : groups) {
      const Event& first = group->line;
      const bool inside = first.comm == e.comm && first.name == e.name && e.seq >= first.seq &&
                          e.seq - first.seq < group->calls;
      if (!inside) continue;
      bytes = read::saturated_sum(bytes, e.bytes);
      if (++seen == group->calls) group->bytes = bytes;
    }
  }

  std::vector<std::tuple<SlowCall*, std::uint64_t, std::uint64_t>> groups;
};

void find_bytes(const run::Lines& lines, std::vector<SlowCall>& calls) {
  std::map<const Process*, GroupBytes> of_ranks;
  for (SlowCall& c : calls) {
    if (!c.bytes && c.line.collective()) of_ranks[c.rank].groups.emplace_back(&c, 0, 0);
  }
  if (of_ranks.empty()) return;
  lines.each(
      [&](const Process& rank) {
        const auto of = of_ranks.find(&rank);
        return of == of_ranks.end() ? std::nullopt : std::optional(of->second);
      },
      [](const GroupBytes& /*already in place*/) {});
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

Slowest slowest_of(const run::Lines& lines, std::size_t most, const steps::Found& found) {
  Timed<Longest> all;
  lines.each(
      [&](const Process& rank) {
        return Candidates{rank, most};
      },
      [&](const Candidates& rank) { all.add(rank.longest); });
  const bool on_device = !all.device.calls.empty();
  Longest& longest = on_device ? all.device : all.host;
  Slowest slowest = {on_device, longest.looked, std::move(longest.calls)};
  std::ranges::sort(slowest.calls, longer);
  each_collective_once(slowest.calls);
  if (slowest.calls.size() > most) slowest.calls.resize(most);
  for (SlowCall& c : slowest.calls) c.step = steps::step_at(found, c.rank, c.line.ts_ns);
  find_bytes(lines, slowest.calls);
  return slowest;
}

}  // namespace tprof::tables
