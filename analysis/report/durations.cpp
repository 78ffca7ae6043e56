#include "report/durations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/json.h"
#include "report/times.h"

namespace tprof::report {
namespace {

using stats::Histogram;
using stats::Samples;
using stats::Spread;
using text::duration;
using text::Table;
using text::thousands;
using enum Table::Align;

constexpr std::size_t kWidestBar = 50;

const char* kind_name(Histogram::Kind kind) {
  constexpr const char* kNames[] = {"bucket", "function", "range"};
  return kNames[static_cast<int>(kind)];
}

const char* place(bool on_device) {
  return on_device ? "device" : "host";
}

std::vector<std::pair<std::string, Table::Align>> with_figures(
    std::vector<std::pair<std::string, Table::Align>> columns) {
  for (const char* name : {"mean", "std", "min", "max"}) columns.emplace_back(name, right);
  return columns;
}

void add_figures(std::vector<std::string>& cells, const Spread& s, bool sums_only = false) {
  if (sums_only) {
    cells.insert(cells.end(), {mean_time(s), "-", "-", duration(s.max_ns)});
    return;
  }
  cells.insert(cells.end(), {mean_time(s), std_time(s), duration(s.min_ns), duration(s.max_ns)});
}

std::string bins(const Histogram& h, const Samples& samples) {
  const std::uint64_t most = std::ranges::max(samples.bins);
  Table table({{"from", right}, {"below", right}, {"n", right}, {"", left}});
  for (std::size_t i = 0; i < samples.bins.size(); ++i) {
    const double part = static_cast<double>(samples.bins[i]) / static_cast<double>(most);
    const auto bar = static_cast<std::size_t>(std::ceil(part * kWidestBar));
    table.row({duration(h.edges_ns[i]), duration(h.edges_ns[i + 1]), thousands(samples.bins[i]),
               std::string(bar, '#')});
  }
  return table.str();
}

std::string notes(const Histogram& h) {
  std::string out;
  if (h.of_counts) {
    return "  More scopes ended than have lines: their number and time are counted for all of "
           "them; std and the shortest are not known.\n";
  }
  if (h.log_scaled) {
    const std::size_t n = h.edges_ns.size();
    out += fmt::format("  Log-scaled: each bin is about {:.2f} times as wide as the one before.\n",
                       static_cast<double>(h.edges_ns[n - 1]) /
                           static_cast<double>(std::max<std::uint64_t>(h.edges_ns[n - 2], 1)));
  }
  if (h.kind != Histogram::Kind::range && h.on_device) {
    out += fmt::format("  {1} of {0} calls with a line have a device time.\n", thousands(h.looked),
                       thousands(h.all.time.count));
  }
  if (h.on_device && h.shared != 0) {
    out += fmt::format("  {} calls of groups have their share of the group's time.\n",
                       thousands(h.shared));
  }
  return out;
}

Json spread_json(const Spread& s, bool sums_only = false) {
  return {{"mean_ns", std::llround(s.mean_ns)},
          {"std_ns", sums_only ? Json() : Json(std::llround(s.std_ns()))},
          {"min_ns", sums_only ? Json() : Json(s.min_ns)},
          {"max_ns", s.max_ns}};
}

Json rank_of(const std::optional<std::int64_t>& rank) {
  return rank ? Json(*rank) : Json();
}

}  // namespace

std::string heading(const Histogram& h) {
  const std::string name = text::printable(h.name);
  if (h.kind == Histogram::Kind::range) return "Durations of the NVTX ranges " + name;
  return fmt::format("Durations of {}, time on the {}", name, place(h.on_device));
}

std::string to_text(const Histogram& h, bool per_rank) {
  Table figures_of(with_figures({{"ranks", right}, {"n", right}}));
  std::vector<std::string> cells = {std::to_string(h.rank_count()), thousands(h.all.time.count)};
  add_figures(cells, h.all.time, h.of_counts);
  figures_of.row(std::move(cells));
  std::string out = figures_of.str() + "\n" + bins(h, h.all) + notes(h);
  if (!per_rank) return out;
  for (const auto& [rank, samples] : h.ranks) {
    Table of_rank(with_figures({{"rank", right}, {"n", right}}));
    cells = {rank ? std::to_string(*rank) : "-", thousands(samples.time.count)};
    add_figures(cells, samples.time, h.of_counts);
    of_rank.row(std::move(cells));
    out += "\n" + of_rank.str() + "\n" + bins(h, samples);
  }
  return out;
}

Json to_json(const Histogram& h) {
  Json j = {{"name", h.name},
            {"kind", kind_name(h.kind)},
            {"from", place(h.on_device)},
            {"looked", h.kind == Histogram::Kind::range ? Json() : Json(h.looked)},
            {"shared", h.on_device ? h.shared : 0},
            {"count", h.all.time.count}};
  j.update(spread_json(h.all.time, h.of_counts));
  j["rank_count"] = h.rank_count();
  j["scale"] = h.log_scaled ? "log" : "linear";
  j["edges_ns"] = h.edges_ns;
  j["bins"] = h.all.bins;
  Json& ranks = j["ranks"] = Json::array();
  for (const auto& [rank, samples] : h.ranks) {
    Json of = {{"rank", rank_of(rank)}, {"count", samples.time.count}};
    of.update(spread_json(samples.time, h.of_counts));
    of["bins"] = samples.bins;
    ranks.push_back(std::move(of));
  }
  return j;
}

std::string to_text(const stats::OpTimes& times, std::uint64_t all) {
  std::map<std::pair<Bucket, std::string>, stats::OpTime> by_name;
  std::uint64_t lines = 0;
  for (const auto& [key, time] : times) {
    stats::OpTime& of = by_name[{key.bucket, key.name}];
    of.host.add(time.host);
    of.device.add(time.device);
    lines += time.host.time.count;
  }
  Table table(with_figures({{"bucket", left},
                            {"operation", left},
                            {"time on", left},
                            {"calls", right},
                            {"ranks", right}}));
  for (const auto& [name, time] : by_name) {
    const stats::RankedSpread& s = time.best();
    std::vector<std::string> cells = {std::string(bucket_name(name.first)),
                                      text::printable(name.second), place(time.on_device()),
                                      thousands(s.time.count), thousands(s.ranks.size())};
    add_figures(cells, s.time);
    table.row(std::move(cells));
  }
  if (by_name.empty()) return "  No call has a line.\n";
  return table.str() + (lines == all ? ""
                                     : fmt::format("  {1} of {0} calls have a line.\n",
                                                   thousands(all), thousands(lines)));
}

Json to_json(const stats::OpTimes& times, const stats::OpKey& key) {
  const auto found = times.find(key);
  if (found == times.end()) return nullptr;
  const stats::RankedSpread& s = found->second.best();
  Json j = {{"from", place(found->second.on_device())}, {"count", s.time.count}};
  j.update(spread_json(s.time));
  j["rank_count"] = s.ranks.size();
  return j;
}

}  // namespace tprof::report
