#include "page/data.h"

#include <algorithm>
#include <set>

#include "diagnose/ends.h"
#include "diagnose/names.h"
#include "diagnose/started.h"
#include "interpose/format/schema.h"
#include "job/hosts.h"
#include "page/grid.h"
#include "report/figures.h"
#include "report/findings.h"
#include "report/only.h"

namespace tprof::page {
namespace {

constexpr std::size_t kMostHosts = 64;
constexpr std::size_t kMostBins = 128;  // of ranks, beside each other

Json findings_of(const Gathered& g) {
  Json all = report::to_json(g.said.findings, report::Detail::full);
  for (std::size_t i = 0; i < all.size(); ++i) all[i]["ranks"] = g.said.findings[i].ranks.str();
  return all;
}

Json verdict_of(const Gathered& g) {
  const report::JobVerdict v = report::verdict_of(g.said, known_of(g));
  return {{"text", v.text},
          {"severity", v.severity},
          {"finding", v.finding ? Json(*v.finding) : Json()}};
}

Json unseen_of(const Gathered& g) {
  Json all = Json::array();
  for (const Unseen& u : unseen_by(g)) {
    const std::string what = (u.noun.empty() ? "" : u.noun + "s ") + u.what;
    all.push_back({{"what", what + (u.why.empty() ? "" : ": " + u.why)},
                   {"n", u.n == 0 ? Json() : Json(u.n)},
                   {"ranks", u.ranks.str()}});
  }
  return all;
}

}  // namespace

Json buckets_of(const Gathered& g) {
  const stats::Summary& s = g.calls();
  Json all = Json::array();
  for (std::size_t b = 0; b < kBucketCount; ++b) {
    if (s.buckets[b].calls == 0) continue;
    Json row = {{"bucket", kBuckets[b].name}};
    row.update(report::figures(s.buckets[b]));
    all.push_back(std::move(row));
  }
  return all;
}

Json run_of(const Gathered& g) {
  const job::Job& job = *g.summary.job;
  const auto [first, last] = diagnose::span_of(job.processes);
  std::set<std::string> commands;
  std::map<std::string, diagnose::Processes> hosts;
  for (const read::Process* p : job.processes) {
    commands.insert(p->header.command);
    hosts[p->header.host].push_back(p);
  }
  Json of_hosts = Json::array();
  for (const auto& [name, processes] : hosts) {
    if (of_hosts.size() == kMostHosts) break;
    of_hosts.push_back({{"name", name}, {"ranks", diagnose::ranks_of(processes).str()}});
  }
  Json of_settings = Json::object();
  for (const diagnose::Started& s : diagnose::started_with(job.processes)) {
    if (s.about == diagnose::Started::About::config) of_settings[s.name] = s.whose();
  }
  return {{"label", job.label},
          {"run_id", report::or_null(job.run_id)},
          {"command", commands.empty() ? "" : *commands.begin()},
          {"commands", commands.size()},
          {"from_ns", first},
          {"dur_ns", last - first},
          {"ranks", job.ranks.size()},
          {"processes", job.processes.size()},
          {"world_size", job.world_size ? Json(*job.world_size) : Json()},
          {"hosts", of_hosts},
          {"host_count", hosts.size()},
          {"settings", of_settings}};
}

Json per_rank_of(const Gathered& g) {
  const std::vector<std::int64_t>& ranks = g.calls().job->ranks;
  const Bins bins(ranks.size(), kMostBins);
  constexpr std::uint64_t read::Amounts::*kMeasures[] = {
      &read::Amounts::bytes, &read::Amounts::calls, &read::Amounts::host_ns,
      &read::Amounts::device_ns};
  constexpr const char* kNames[] = {"bytes", "calls", "host_ns", "device_ns"};
  // Means of the ranks of a bin, by measure and bucket, and the extremes of their totals.
  std::array<std::array<std::vector<double>, kBucketCount>, 4> means;
  for (auto& of_measure : means) of_measure.fill(std::vector<double>(bins.size()));
  std::vector<Grid> totals(4, Grid(bins, Bins(1, 1)));
  std::size_t at = 0;
  stats::each_rank(g.calls(), [&](std::int64_t, const stats::Buckets& buckets) {
    const std::size_t bin = bins.of(at);
    const auto n = static_cast<double>(bins.last(bin) - bins.first(bin) + 1);
    for (std::size_t m = 0; m < 4; ++m) {
      std::uint64_t total = 0;
      for (std::size_t b = 0; b < kBucketCount; ++b) {
        const std::uint64_t x = buckets[b].*kMeasures[m];
        total = read::saturated_sum(total, x);
        means[m][b][bin] += static_cast<double>(x) / n;
      }
      totals[m].add(at, 0, static_cast<std::int64_t>(std::min<std::uint64_t>(total, INT64_MAX)));
    }
    ++at;
  });
  Json of_bins = Json::array();
  for (std::size_t bin = 0; bin < bins.size(); ++bin) {
    of_bins.push_back({ranks[bins.first(bin)], ranks[bins.last(bin)]});
  }
  Json measures = Json::object();
  for (std::size_t m = 0; m < 4; ++m) {
    Json buckets = Json::object();
    for (std::size_t b = 0; b < kBucketCount; ++b) {
      if (g.calls().buckets[b].*kMeasures[m] == 0) continue;
      Json& row = buckets[std::string(kBuckets[b].name)] = Json::array();
      for (const double mean : means[m][b]) row.push_back(std::llround(mean));
    }
    Json least = Json::array();
    Json most = Json::array();
    for (const Cell& cell : totals[m].cells()) {
      least.push_back(cell.least);
      most.push_back(cell.most);
    }
    if (buckets.empty()) continue;
    measures[kNames[m]] = {{"buckets", buckets}, {"least", least}, {"most", most}};
  }
  return {{"bins", of_bins}, {"measures", measures}};
}

std::string only_text_of(const Gathered& g) {
  if (!g.asked) return "";
  std::string text = g.asked->only.sentence() +
                     ": bytes, calls, operations and communicators; all else is of the whole job.";
  for (const std::string& note : g.asked->notes) text += " " + note + ".";
  return text;
}

// Null without filters.
Json only_of(const Gathered& g) {
  if (!g.asked) return {};
  Json only = report::only_json(g.asked->only, g.asked->notes);
  only["of"] = kOfCalls;
  only["text"] = only_text_of(g);
  return only;
}

Json data_of(const Gathered& g) {
  return {{"schema", "tprof-report/1"},   {"tprof", kVersion},
          {"only", only_of(g)},           {"run", run_of(g)},
          {"verdict", verdict_of(g)},     {"findings", findings_of(g)},
          {"step", step_of(g)},           {"buckets", buckets_of(g)},
          {"per_rank", per_rank_of(g)},   {"heat", heat_of(g)},
          {"late", late_of(g)},           {"ops", operations_of(g)},
          {"waits", waits_of(g)},         {"hist", histograms_of(g)},
          {"timelines", timelines_of(g)}, {"comms", communicators_of(g)},
          {"unseen", unseen_of(g)}};
}

}  // namespace tprof::page
