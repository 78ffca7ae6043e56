// Data for the drawings of the page's scripts: lengths of steps, maps and timelines.
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/ranges.h>

#include "check/names.h"
#include "job/hosts.h"
#include "page/data.h"
#include "report/views.h"

namespace tprof::page {
namespace {

constexpr std::size_t kMostBins = 128;     // of ranks, side by side
constexpr std::size_t kMostRows = 160;     // of a heat map
constexpr std::size_t kMostColumns = 120;  // of a heat map
constexpr std::size_t kMostSteps = 400;    // side by side
constexpr std::size_t kMostHistograms = 40;
constexpr double kFloatError = 1e-6;  // cells are floats

Json pairs_of(const Bins& bins, const std::vector<std::int64_t>& numbers) {
  Json all = Json::array();
  for (std::size_t i = 0; i < bins.size(); ++i) {
    all.push_back({numbers[bins.first(i)], numbers[bins.last(i)]});
  }
  return all;
}

// The ranks with known steps; empty if that is all.
std::string ranks_with_steps(const Gathered& g) {
  std::vector<std::int64_t> ranks;
  for (const auto& [rank, intervals] : g.summary.found.ranks) {
    if (rank->header.rank) ranks.push_back(*rank->header.rank);
  }
  const text::Ranks known(std::move(ranks));
  return known.size() == g.summary.job->ranks.size() ? "" : known.str();
}

// The means over all ranks and counted steps, as parts of the mean step of the job: the time of a
// rank includes pauses of others.
Json mean_parts(const Gathered& g) {
  const why::Cell& c = g.why.mean;
  const auto step_ns = static_cast<double>(*known_of(g).step_ns);
  const auto part = [&](double ns) { return std::llround(ns / c.length * step_ns); };
  const double waiting = c.wait - g.why.unmet_ns;
  const bool rounded = waiting < kFloatError * c.length;
  return {{"length_ns", part(c.length)},
          {"compute_ns", part(c.compute + c.unsure / 2)},
          {"unsure_ns", part(c.unsure)},
          {"hidden_ns", part(c.hidden)},
          {"exposed_ns", part(c.exposed)},
          {"waiting_ns", rounded ? 0 : part(waiting)},
          {"unmet_ns", part(rounded ? c.wait : g.why.unmet_ns)},
          {"idle_ns", part(c.idle() + c.unsure / 2)}};
}

Json extremes_of(const Grid& grid) {
  Json j = {{"least", Json::array()}, {"most", Json::array()}};
  for (const Cell& c : grid.cells()) {
    j["least"].push_back(c.known ? Json(c.least) : Json());
    j["most"].push_back(c.known ? Json(c.most) : Json());
  }
  return j;
}

// The part of a bar within the rank's step, then its full length if that is more.
template <typename InStep>
Json bar_of(const TimelineRank& r, const Bar& b, std::size_t name, InStep in_step) {
  const std::int64_t whole = std::max<std::int64_t>(b.dur_ns, 0);
  const std::int64_t from = std::max(b.ts_ns, r.from_ns);
  const std::int64_t part = std::max<std::int64_t>(std::min(b.ts_ns + whole, r.to_ns) - from, 0);
  Json bar = {name, in_step(*r.rank, from), part, b.bytes};
  if (whole - part > unseen_ns(r)) bar.push_back(whole);
  return bar;
}

}  // namespace

std::vector<PartOfStep> parts_of(const Gathered& g) {
  if (!g.why.known()) return {};
  const Json p = mean_parts(g);
  const auto ns = [&](const char* key) { return p[key].get<std::int64_t>(); };
  std::vector<PartOfStep> all = {
      {"compute", "computation alone", ns("compute_ns") - ns("hidden_ns")},
      {"hidden", "hidden communication", ns("hidden_ns")},
      {"exposed", "exposed transfers", ns("exposed_ns") - ns("waiting_ns") - ns("unmet_ns")},
      {"waiting", "waiting for other ranks", ns("waiting_ns")},
      {"unmet", "transfers or waiting", ns("unmet_ns")},
      {"idle", "idle", ns("idle_ns")}};
  // For some calls it is unknown when the last rank came.
  constexpr double kLeastUnmet = 0.0005;
  std::erase_if(all, [&](PartOfStep& part) {
    part.ns = std::max<std::int64_t>(part.ns, 0);
    return part.key == std::string_view("unmet") &&
           static_cast<double>(part.ns) < kLeastUnmet * p["length_ns"].get<double>();
  });
  return all;
}

Json step_of(const Gathered& g) {
  const steps::Found& found = g.summary.found;
  const report::Known time = known_of(g);
  const std::vector<std::size_t> warm = warm_steps(g);
  const Bins bins(g.lengths.size(), kMostSteps);
  Json longest = Json::array();
  for (std::size_t bin = 0; bin < bins.size(); ++bin) {
    std::optional<std::int64_t> most;
    for (std::size_t i = bins.first(bin); i <= bins.last(bin); ++i) {
      most = std::max(most, g.lengths[i]);
    }
    longest.push_back(or_null(most));
  }
  const auto of_warm = [&](std::size_t at) {
    return warm.empty() ? Json() : Json(*g.lengths[warm[at]]);
  };
  const std::size_t last = warm.empty() ? 0 : warm.size() - 1;
  Json shares = Json::array();
  for (const PartOfStep& p : parts_of(g)) shares.push_back({p.key, p.name, p.ns});
  const bool known = g.why.known();
  const bool none = found.steps.empty();
  return {{"steps", g.lengths.size()},
          {"found", none ? "" : fmt::format("{}", fmt::join(report::how_found(found), " "))},
          {"why", none ? Json(found.why) : Json()},
          {"whole", found.whole_steps},
          {"counted", warm.size()},
          {"first_counts", !leaves_first_out(g)},
          {"of_ranks", ranks_with_steps(g)},
          {"without", found.without},
          {"mean_ns", or_null(time.step_ns)},
          {"median_ns", of_warm(last / 2)},
          {"least_ns", of_warm(0)},
          {"most_ns", of_warm(last)},
          {"exposed_share", or_null(time.exposed_share)},
          {"parts_why", known ? Json() : Json("not known: " + g.why.why_not() + ".")},
          {"causes_why", g.why.no_causes.empty() ? Json() : Json(g.why.no_causes + ".")},
          {"parts", known ? mean_parts(g) : Json()},
          {"shares", std::move(shares)},
          {"bins", pairs_of(bins, found.steps)},
          {"longest_ns", longest}};
}

Json per_rank_of(const Gathered& g) {
  constexpr std::pair<const char*, std::uint64_t read::Amounts::*> kMeasures[] = {
      {"bytes", &read::Amounts::bytes},
      {"calls", &read::Amounts::calls},
      {"host_ns", &read::Amounts::host_ns},
      {"device_ns", &read::Amounts::device_ns}};
  const std::vector<std::int64_t>& ranks = g.calls().job->ranks;
  const Bins bins(ranks.size(), kMostBins);
  // Means over the ranks of a bin, by measure and bucket, and the extremes of their totals.
  std::array<std::array<std::vector<double>, kBucketCount>, std::size(kMeasures)> means;
  for (auto& of_measure : means) of_measure.fill(std::vector<double>(bins.size()));
  std::vector<Grid> totals(std::size(kMeasures), Grid(bins, Bins(1, 1)));
  std::size_t at = 0;
  tables::each_rank(g.calls(), [&](std::int64_t, const tables::Buckets& buckets) {
    const std::size_t bin = bins.of(at);
    const auto n = static_cast<double>(bins.last(bin) - bins.first(bin) + 1);
    for (std::size_t m = 0; m < std::size(kMeasures); ++m) {
      std::uint64_t total = 0;
      for (std::size_t b = 0; b < kBucketCount; ++b) {
        const std::uint64_t x = buckets[b].*kMeasures[m].second;
        total = read::saturated_sum(total, x);
        means[m][b][bin] += static_cast<double>(x) / n;
      }
      totals[m].add(at, 0, static_cast<std::int64_t>(std::min<std::uint64_t>(total, INT64_MAX)));
    }
    ++at;
  });
  Json measures = Json::object();
  for (std::size_t m = 0; m < std::size(kMeasures); ++m) {
    const auto& [key, of] = kMeasures[m];
    Json buckets = Json::object();
    for (std::size_t b = 0; b < kBucketCount; ++b) {
      if (g.calls().buckets[b].*of == 0) continue;
      Json& row = buckets[std::string(kBuckets[b].name)] = Json::array();
      for (const double mean : means[m][b]) row.push_back(std::llround(mean));
    }
    if (!buckets.empty()) measures[key] = extremes_of(totals[m]);
    if (!buckets.empty()) measures[key]["buckets"] = std::move(buckets);
  }
  return {{"bins", pairs_of(bins, ranks)}, {"measures", measures}};
}

Json heat_of(const Gathered& g) {
  const steps::Found& found = g.summary.found;
  const std::vector<std::int64_t>& ranks = g.summary.job->ranks;
  const Bins rows(ranks.size(), kMostRows);
  const Bins columns(found.steps.size(), kMostColumns);
  const bool none = found.steps.empty() || ranks.empty();
  Json j = {{"rows", none ? Json::array() : pairs_of(rows, ranks)},
            {"columns", none ? Json::array() : pairs_of(columns, found.steps)},
            {"metrics", Json::array()},
            {"why", none ? Json("No steps are known: " + found.why + ".") : Json()}};
  if (none) return j;
  const Grid empty(rows, columns);
  struct Metric {
    const char* key;
    const char* title;
    bool known;
    Grid grid;
  } metrics[] = {{"own_ns", "time without waits for others", g.why.known(), empty},
                 {"exposed_ns", "exposed communication", g.why.known(), empty},
                 {"idle_ns", "neither computed nor communicated", g.why.known(), empty},
                 {"late_ns", "after the last but one",
                  g.summary.lateness && g.summary.lateness->compared != 0, empty},
                 {"length_ns", "length of the step", true, empty}};
  auto& [own, exposed, idle, late, length] = metrics;
  const auto add = [&](Metric& to, const read::Process* p, std::int64_t step, double ns) {
    const std::size_t row = p->header.rank ? place_of(ranks, *p->header.rank) : ranks.size();
    const std::size_t column = place_of(found.steps, step);
    if (row != ranks.size() && column != found.steps.size()) {
      to.grid.add(row, column, std::llround(ns));
    }
  };
  // A rank may be late to several collectives of a step.
  std::map<std::pair<const read::Process*, std::int64_t>, std::int64_t> sums;
  for (const check::LateArrival& call : g.summary.lateness->arrivals) {
    if (call.step) sums[{call.rank, *call.step}] += call.late_ns;
  }
  for (const auto& [rank, intervals] : found.ranks) {
    for (const steps::Interval& in : intervals) {
      const auto ns = static_cast<double>(between(in.from_ns, in.to_ns));
      if (!g.why.known() && ns >= 0) add(length, rank, in.step, ns);
      const auto sum = sums.find({rank, in.step});
      add(late, rank, in.step, sum == sums.end() ? 0 : static_cast<double>(sum->second));
    }
  }
  for (std::size_t r = 0; g.why.known() && r < g.why.times->ranks.size(); ++r) {
    const why::Times& times = *g.why.times;
    for (std::size_t s = 0; s < times.steps.size(); ++s) {
      const why::Cell& cell = times.of(r)[s];
      if (!cell.known()) continue;
      for (const auto& [to, ns] : {std::pair(&length, cell.length),
                                   {&own, times.own(r, s)},
                                   {&exposed, cell.exposed},
                                   {&idle, cell.idle()}}) {
        add(*to, times.ranks[r], times.steps[s], ns);
      }
    }
  }
  for (const Metric& m : metrics) {
    if (!m.known) continue;
    Json metric = extremes_of(m.grid);
    Json& worst = metric["worst"] = Json::array();
    for (const Cell& c : m.grid.cells()) worst.push_back(c.known ? Json(ranks[c.worst]) : Json());
    metric.update({{"key", m.key}, {"title", m.title}});
    j["metrics"].push_back(std::move(metric));
  }
  return j;
}

Json histograms_of(const Gathered& g) {
  struct Row {
    const tables::OpKey* key;
    const tables::Spectrum* of;
    bool on_device;
  };
  std::vector<Row> rows;
  for (const auto& [key, spectra] : g.spectra) {
    const bool on_device = spectra.device.calls != 0;
    rows.push_back({&key, on_device ? &spectra.device : &spectra.host, on_device});
  }
  std::ranges::stable_sort(rows, std::ranges::greater(),
                           [](const Row& r) { return std::pair(r.on_device, r.of->total_ns); });
  if (rows.size() > kMostHistograms) rows.resize(kMostHistograms);
  Json all = Json::array();
  for (const Row& r : rows) {
    const auto& counts = r.of->counts;
    const auto any = [](std::uint64_t n) { return n != 0; };
    const auto first = static_cast<std::size_t>(std::ranges::find_if(counts, any) - counts.begin());
    std::size_t last = tables::Spectrum::kBins;
    while (last > first && counts[last - 1] == 0) --last;
    Json edges = Json::array();
    for (std::size_t bin = first; bin <= last; ++bin)
      edges.push_back(tables::Spectrum::edge_ns(bin));
    all.push_back({{"bucket", bucket_name(r.key->bucket)},
                   {"name", r.key->name},
                   {"size", check::size_class(r.key->bytes_class)},
                   {"on", r.on_device ? "device" : "host"},
                   {"calls", r.of->calls},
                   {"mean_ns", r.of->calls == 0 ? 0 : r.of->total_ns / r.of->calls},
                   {"edges_ns", edges},
                   {"counts", std::vector<std::uint64_t>(counts.begin() + std::ptrdiff_t(first),
                                                         counts.begin() + std::ptrdiff_t(last))}});
  }
  return all;
}

Json timelines_of(const Gathered& g) {
  const job::Hosts hosts(*g.summary.job);
  const auto on_axis = [&](const read::Process& p, std::int64_t ts_ns) {
    const std::int64_t t = hosts.on_axis(p, ts_ns);
    return g.clocks ? g.clocks->aligned(hosts.of(p), t) : t;
  };
  const auto group_of = [&](const read::Process& p) {
    const std::size_t host = hosts.of(p);
    return g.clocks ? g.clocks->hosts()[host].group : host;
  };
  Json all = Json::array();
  for (const Timeline& t : g.timelines) {
    // If clocks can't be compared, each host's step begins at 0.
    std::map<std::size_t, std::int64_t> zeros;
    for (const TimelineRank& r : t.ranks) {
      const std::int64_t from = on_axis(*r.rank, r.from_ns);
      const auto [zero, is_new] = zeros.try_emplace(group_of(*r.rank), from);
      zero->second = std::min(zero->second, from);
    }
    std::int64_t span = 0;
    const auto in_step = [&](const read::Process& p, std::int64_t ts_ns) {
      return std::max<std::int64_t>(between(zeros.at(group_of(p)), on_axis(p, ts_ns)), 0);
    };
    Json names = Json::array();
    std::map<std::tuple<Bucket, std::string, std::string>, std::size_t> numbers;
    Json ranks = Json::array();
    std::uint64_t left_out = 0;
    for (const TimelineRank& r : t.ranks) {
      Json bars = Json::array();
      for (const Bar& b : r.bars) {
        const auto [number, is_new] =
            numbers.try_emplace({b.bucket, b.name, b.communicator}, numbers.size());
        if (is_new) {
          names.push_back({{"bucket", bucket_name(b.bucket)},
                           {"name", b.name},
                           {"communicator", b.communicator}});
        }
        bars.push_back(bar_of(r, b, number->second, in_step));
      }
      left_out += r.left_out;
      span = std::max(span, in_step(*r.rank, r.to_ns));
      ranks.push_back({{"rank", check::name_of_rank(*r.rank)},
                       {"from", in_step(*r.rank, r.from_ns)},
                       {"to", in_step(*r.rank, r.to_ns)},
                       {"bars", bars}});
    }
    all.push_back({{"which", t.which},
                   {"step", t.step},
                   {"on", t.on_device ? "device" : "host"},
                   {"length_ns", t.length_ns},
                   {"span_ns", span},
                   {"one_axis", zeros.size() <= 1},
                   {"left_out", left_out},
                   {"names", names},
                   {"ranks", ranks}});
  }
  return all;
}

}  // namespace tprof::page
