// The parts of the page that are of calls and communicators.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <tuple>

#include "diagnose/names.h"
#include "interpose/format/ring_file.h"
#include "job/hosts.h"
#include "page/data.h"
#include "page/grid.h"
#include "report/figures.h"
#include "report/words.h"

namespace tprof::page {
namespace {

using diagnose::Say;

constexpr std::size_t kMostOperations = 400;
constexpr std::size_t kMostHistograms = 40;
constexpr std::size_t kMostFamilies = 12;
constexpr std::size_t kMostIds = 2000;    // of communicators of one family
constexpr std::size_t kMostRanks = 2000;  // on the map of communicators: more share a place

// The operations of one size on communicators of one kind, added up.
struct Operation {
  read::Amounts amounts{};
  double bus_bytes = 0;  // bytes x bus factor
  bool bus = true;
};

// Returns a reason as findings tell it, or by its name where they have no words for it. `first` is
// what they say of the first of the names, and the others follow it.
template <std::size_t n>
std::string in_words(const std::string& why, const char* const (&names)[n], Say first) {
  constexpr std::string_view kBefore = "({why}): ";
  const auto at = std::ranges::find(names, std::string_view(why)) - std::begin(names);
  if (at == n) return why;
  const std::string_view text =
      report::words_of(static_cast<Say>(static_cast<std::ptrdiff_t>(first) + at)).text;
  const std::size_t found = text.find(kBefore);
  return found == std::string_view::npos ? why : std::string(text.substr(found + kBefore.size()));
}

}  // namespace

Json operations_of(const Gathered& g) {
  const std::map<std::string, std::string> roles = stats::role_texts(g.calls().comms);
  using Key = std::tuple<Bucket, std::string, std::int64_t, std::string, std::string, std::int64_t>;
  std::map<Key, Operation> sums;
  for (const auto& [key, a] : g.calls().ops) {
    if (a.calls == 0) continue;
    const auto role = roles.find(key.comm_id);
    Operation& sum = sums[{key.bucket, key.name, key.bytes_class, key.dtype,
                           role == roles.end() ? "" : role->second, key.nranks}];
    sum.amounts += a;
    const auto busbw = stats::busbw(key, a);
    sum.bus = sum.bus && (busbw || a.device_timed == 0);
    sum.bus_bytes += busbw.value_or(0) * static_cast<double>(a.device_ns);
  }
  Json all = Json::array();
  for (const auto& [key, sum] : sums) {
    const auto& [bucket, name, bytes_class, dtype, role, nranks] = key;
    const read::Amounts& a = sum.amounts;
    const auto algbw = stats::algbw(a);
    const bool bus = sum.bus && algbw;
    all.push_back(
        {{"bucket", bucket_name(bucket)},
         {"name", name},
         {"size", diagnose::size_class(bytes_class)},
         {"bytes_class", bytes_class},
         {"dtype", dtype},
         {"role", role},
         {"nranks", nranks == 0 ? Json() : Json(nranks)},
         {"calls", a.calls},
         {"bytes", a.bytes},
         {"host_ns", a.host_ns},
         {"host_ns_max", a.host_ns_max},
         {"device_ns", a.device_timed == 0 ? Json() : Json(a.device_ns)},
         {"device_timed", a.device_timed},
         {"device_ns_max", a.device_timed == 0 ? Json() : Json(a.device_ns_max)},
         {"exposed_ns", a.exposure_known == 0 ? Json() : Json(a.exposed_ns)},
         {"algbw", algbw ? Json(*algbw) : Json()},
         {"busbw", bus ? Json(sum.bus_bytes / static_cast<double>(a.device_ns)) : Json()}});
  }
  const auto time = [](const Json& row) {
    const bool timed = !row["device_ns"].is_null();
    return std::pair(timed, (timed ? row["device_ns"] : row["host_ns"]).get<std::uint64_t>());
  };
  std::vector<Json> rows(all.begin(), all.end());
  std::ranges::stable_sort(rows, std::ranges::greater(), time);
  if (rows.size() > kMostOperations) rows.resize(kMostOperations);
  return rows;
}

Json histograms_of(const Gathered& g) {
  struct Row {
    const stats::OpKey* key;
    const stats::Spectrum* of;
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
    std::size_t last = stats::Spectrum::kBins;
    while (last > first && counts[last - 1] == 0) --last;
    Json edges = Json::array();
    for (std::size_t bin = first; bin <= last; ++bin)
      edges.push_back(stats::Spectrum::edge_ns(bin));
    all.push_back({{"bucket", bucket_name(r.key->bucket)},
                   {"name", r.key->name},
                   {"size", diagnose::size_class(r.key->bytes_class)},
                   {"on", r.on_device ? "device" : "host"},
                   {"calls", r.of->calls},
                   {"mean_ns", r.of->calls == 0 ? 0 : r.of->total_ns / r.of->calls},
                   {"edges_ns", edges},
                   {"counts", std::vector<std::uint64_t>(counts.begin() + std::ptrdiff_t(first),
                                                         counts.begin() + std::ptrdiff_t(last))}});
  }
  return all;
}

// The part of a bar that ran in the rank's step; behind it the length of the whole, if that is
// more.
template <typename InStep>
Json bar_of(const stats::TimelineRank& r, const stats::Bar& b, std::size_t name, InStep in_step) {
  const std::int64_t whole = std::max<std::int64_t>(b.dur_ns, 0);
  const std::int64_t from = std::max(b.ts_ns, r.from_ns);
  const std::int64_t part = std::max<std::int64_t>(std::min(b.ts_ns + whole, r.to_ns) - from, 0);
  Json bar = {name, in_step(*r.rank, from), part, b.bytes};
  if (whole - part > stats::unseen_ns(r)) bar.push_back(whole);
  return bar;
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
  for (const stats::Timeline& t : g.timelines) {
    // Where clocks can't be compared, each host's step begins at 0.
    std::map<std::size_t, std::int64_t> zeros;
    for (const stats::TimelineRank& r : t.ranks) {
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
    for (const stats::TimelineRank& r : t.ranks) {
      Json bars = Json::array();
      for (const stats::Bar& b : r.bars) {
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
      ranks.push_back({{"rank", diagnose::name_of_rank(*r.rank)},
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

Json communicators_of(const Gathered& g) {
  const std::vector<std::int64_t>& ranks = g.summary.job->ranks;
  const Bins bins(ranks.size(), kMostRanks);
  std::map<std::pair<std::int64_t, std::string>, std::vector<const stats::CommSummary*>> families;
  for (const stats::CommSummary& c : g.calls().comms)
    families[{-c.nranks, stats::role_text(c)}].push_back(&c);
  Json all = Json::array();
  for (const auto& [key, members] : families) {
    if (all.size() == kMostFamilies) break;
    read::Amounts sum;
    std::uint64_t collectives = 0;
    std::vector<std::int64_t> of_bin(bins.size(), -1);  // the communicator, in the family's order
    Json ids = Json::array();
    std::vector<const stats::CommSummary*> sorted = members;
    std::ranges::stable_sort(sorted, {}, [](const stats::CommSummary* c) {
      return c->ranks.empty() ? INT64_MAX : c->ranks.front();
    });
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      sum += sorted[i]->amounts;
      collectives = read::saturated_sum(collectives, sorted[i]->collectives);
      for (const std::int64_t rank : sorted[i]->ranks) {
        const std::size_t at = place_of(ranks, rank);
        // Several of one family may hold the same rank: it shows the first.
        if (at == ranks.size() || of_bin[bins.of(at)] >= 0) continue;
        of_bin[bins.of(at)] = static_cast<std::int64_t>(i);
      }
      if (i < kMostIds) {
        ids.push_back(sorted[i]->name.empty() ? sorted[i]->id
                                              : sorted[i]->id + " " + sorted[i]->name);
      }
    }
    all.push_back({{"role", key.second},
                   {"nranks", -key.first},
                   {"n", members.size()},
                   {"collectives", collectives},
                   {"calls", sum.calls},
                   {"bytes", sum.bytes},
                   {"ids", ids},
                   {"of_bin", of_bin}});
  }
  Json of_bins = Json::array();
  for (std::size_t i = 0; i < bins.size(); ++i) of_bins.push_back(ranks[bins.first(i)]);
  return {{"families", all}, {"left_out", families.size() - all.size()}, {"ranks", of_bins}};
}

std::vector<Unseen> unseen_by(const Gathered& g) {
  const job::Job& job = *g.summary.job;
  struct Sum {
    std::uint64_t n = 0;
    diagnose::Processes processes{};
  };
  std::map<std::array<std::string, 3>, Sum> sums;  // by noun, what and why
  const auto count = [&](const read::Process* p, const char* noun, const char* what,
                         const std::string& why, std::uint64_t n) {
    if (n == 0) return;
    Sum& sum = sums[{noun, what, why}];
    sum.processes.push_back(p);
    if (p->lane == 0) sum.n = read::saturated_sum(sum.n, n);
  };
  for (const read::Process* p : job.processes) {
    if (p->end != read::End::closed) {
      sums[{"", "its process did not close its file", ""}].processes.push_back(p);
    }
    if (!p->footer) continue;
    const read::Footer& f = *p->footer;
    for (const auto& [why, n] : f.dropped) count(p, "call", "without an event line", why, n);
    for (const auto& [why, n] : f.ranges_dropped) {
      count(p, "NVTX range", "without a line", why, n);
    }
    for (const auto& [why, n] : f.timing_lost) {
      count(p, "call", "without a device time",
            in_words(why, kTimingLostNames, Say::untimed_no_context), n);
    }
    for (const auto& [why, n] : f.exposure_lost) {
      count(p, "call", "without an exposed time",
            in_words(why, kExposureLostNames, Say::exposure_no_launch), n);
    }
    count(p, "step", "without a line", "", f.steps_dropped);
    if (f.missed) {
      for (const auto& [name, n] : *f.missed) count(p, "call", "past the wrappers", name, n);
    }
    for (const read::Noted& n : f.unseen) {
      const auto kind = diagnose::kind_of_note(n.kind.str());
      if (kind && diagnose::is_only_loaded(*kind)) continue;
      sums[{"", "may move data unseen", n.kind.str()}].processes.push_back(p);
    }
  }
  std::vector<Unseen> all;
  if (!job.missing.empty()) {
    all.push_back({"rank", "without a trace", "", job.missing.size(), text::Ranks(job.missing)});
  }
  std::uint64_t calls = 0;
  std::uint64_t timed = 0;
  for (const read::Amounts& a : g.summary.buckets) {
    calls = read::saturated_sum(calls, a.calls);
    timed = read::saturated_sum(timed, a.device_timed);
  }
  if (timed < calls) all.push_back({"call", "not timed on the device", "", calls - timed, {}});
  for (const auto& [is, sum] : sums) {
    all.push_back({is[0], is[1], is[2], sum.n, diagnose::ranks_of(sum.processes)});
  }
  return all;
}

}  // namespace tprof::page
