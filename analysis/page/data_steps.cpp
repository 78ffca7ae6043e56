// The parts of the page that are of steps.
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "diagnose/names.h"
#include "job/hosts.h"
#include "page/data.h"
#include "page/grid.h"
#include "report/steps.h"

namespace tprof::page {
namespace {

constexpr std::size_t kMostRows = 160;     // of a heat map
constexpr std::size_t kMostColumns = 120;  // of it
constexpr std::size_t kMostSteps = 400;    // beside each other
constexpr std::size_t kMostLate = 200;     // rows of a table

constexpr double kFloatError = 1e-6;  // of cells, which are floats

// The means over all ranks and the steps that count.
Json parts_of(const why::Why& why) {
  const why::Cell& c = why.mean;
  const double waiting = c.wait - why.unmet_ns;
  const bool rounded = waiting < kFloatError * c.length;
  return {{"length_ns", std::llround(c.length)},
          {"compute_ns", std::llround(c.compute + c.unsure / 2)},
          {"unsure_ns", std::llround(c.unsure)},
          {"hidden_ns", std::llround(c.hidden)},
          {"exposed_ns", std::llround(c.exposed)},
          {"waiting_ns", rounded ? 0 : std::llround(waiting)},
          {"unmet_ns", std::llround(rounded ? c.wait : why.unmet_ns)},
          {"idle_ns", std::llround(c.idle() + c.unsure / 2)}};
}

// Sentences without the indentation and the line ends that they have on a screen.
std::string in_one_line(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\n';
    if (!blank) {
      out += c;
    } else if (!out.empty() && out.back() != ' ') {
      out += ' ';
    }
  }
  if (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

Json metric(const char* key, const char* title, const Grid& grid,
            const std::vector<std::int64_t>& ranks) {
  Json least = Json::array();
  Json most = Json::array();
  Json worst = Json::array();
  for (const Cell& c : grid.cells()) {
    least.push_back(c.known ? Json(c.least) : Json());
    most.push_back(c.known ? Json(c.most) : Json());
    worst.push_back(c.known ? Json(ranks[c.worst]) : Json());
  }
  return {{"key", key}, {"title", title}, {"least", least}, {"most", most}, {"worst", worst}};
}

// Who was waited for: by rank, communicator and step, the longest first.
Json late_places(const Gathered& g) {
  struct Place {
    const LateCall* first = nullptr;
    std::uint64_t times = 0;
    std::int64_t ns = 0;
  };
  std::map<std::tuple<const read::Process*, text::Kept, std::int64_t>, Place> places;
  for (const LateCall& call : g.late) {
    Place& p = places[{call.rank, call.communicator, call.step.value_or(INT64_MIN)}];
    if (p.first == nullptr) p.first = &call;
    ++p.times;
    p.ns += call.late_ns;
  }
  std::vector<Place> all;
  all.reserve(places.size());
  for (const auto& [key, place] : places) all.push_back(place);
  std::ranges::sort(all, {}, [](const Place& p) {
    return std::tuple(-p.ns, p.first->rank->header.rank, p.first->step);
  });
  if (all.size() > kMostLate) all.resize(kMostLate);
  std::map<std::string, std::string> roles = stats::role_texts(g.summary.comms);
  Json rows = Json::array();
  for (const Place& p : all) {
    rows.push_back({{"rank", diagnose::name_of_rank(*p.first->rank)},
                    {"host", std::string(p.first->rank->header.host)},
                    {"communicator", p.first->communicator.str()},
                    {"role", roles[p.first->communicator.str()]},
                    {"step", p.first->step ? Json(*p.first->step) : Json()},
                    {"times", p.times},
                    {"ns", p.ns}});
  }
  return rows;
}

}  // namespace

namespace {

// The ranks whose steps are known; empty if they are those of all.
std::string ranks_with_steps(const Gathered& g) {
  std::vector<std::int64_t> ranks;
  for (const auto& [rank, intervals] : g.summary.found.ranks) {
    if (rank->header.rank) ranks.push_back(*rank->header.rank);
  }
  const text::Ranks known(std::move(ranks));
  return known.size() == g.summary.job->ranks.size() ? "" : known.str();
}

}  // namespace

Json step_of(const Gathered& g) {
  const steps::Found& found = g.summary.found;
  const report::Known time = known_of(g);
  const std::vector<std::size_t> warm = warm_steps(g);
  const Bins bins(g.lengths.size(), kMostSteps);
  Json steps = Json::array();
  Json longest = Json::array();
  for (std::size_t bin = 0; bin < bins.size(); ++bin) {
    Json most;  // null: not known
    for (std::size_t i = bins.first(bin); i <= bins.last(bin); ++i) {
      const StepLength& length = g.lengths[i];
      if (length.ranks == 0) continue;
      most = std::max(most.is_null() ? 0 : most.get<std::int64_t>(), length.ns());
    }
    steps.push_back({found.steps[bins.first(bin)], found.steps[bins.last(bin)]});
    longest.push_back(most);
  }
  const auto of_warm = [&](std::size_t at) {
    return warm.empty() ? Json() : Json(g.lengths[warm[at]].ns());
  };
  Json parts = g.why.known() ? parts_of(g.why) : Json();
  return {{"steps", g.lengths.size()},
          {"found", found.steps.empty() ? "" : in_one_line(report::how_found(found))},
          {"why", found.steps.empty() ? Json(found.why) : Json()},
          {"whole", found.whole_steps},
          {"counted", warm.size()},
          {"of_ranks", ranks_with_steps(g)},
          {"without", found.without},
          {"mean_ns", time.step_ns ? Json(*time.step_ns) : Json()},
          {"median_ns", of_warm(warm.empty() ? 0 : (warm.size() - 1) / 2)},
          {"least_ns", of_warm(0)},
          {"most_ns", of_warm(warm.empty() ? 0 : warm.size() - 1)},
          {"exposed_share", time.exposed_share ? Json(*time.exposed_share) : Json()},
          {"parts_why", parts.is_null() ? Json("not known: " + g.why.why_not() + ".") : Json()},
          {"parts", std::move(parts)},
          {"bins", steps},
          {"longest_ns", longest}};
}

Json heat_of(const Gathered& g) {
  const steps::Found& found = g.summary.found;
  const std::vector<std::int64_t>& ranks = g.summary.job->ranks;
  const Bins rows(ranks.size(), kMostRows);
  const Bins columns(found.steps.size(), kMostColumns);
  Json j = {{"rows", Json::array()}, {"columns", Json::array()}, {"metrics", Json::array()}};
  j["why"] = Json();
  if (found.steps.empty() || ranks.empty()) {
    j["why"] = "No steps are known: " + found.why + ".";
    return j;
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    j["rows"].push_back({ranks[rows.first(i)], ranks[rows.last(i)]});
  }
  for (std::size_t i = 0; i < columns.size(); ++i) {
    j["columns"].push_back({found.steps[columns.first(i)], found.steps[columns.last(i)]});
  }
  const auto row_of = [&](const read::Process* p) {
    return p->header.rank ? place_of(ranks, *p->header.rank) : ranks.size();
  };
  Grid length(rows, columns);
  Grid late(rows, columns);
  Grid own(rows, columns);
  Grid exposed(rows, columns);
  Grid idle(rows, columns);
  // A rank is late to several collectives of a step.
  std::map<std::pair<const read::Process*, std::int64_t>, std::int64_t> sums;
  for (const LateCall& call : g.late) {
    if (call.step) sums[{call.rank, *call.step}] += call.late_ns;
  }
  const bool compared = g.summary.lateness && g.summary.lateness->compared != 0;
  for (const auto& [rank, intervals] : found.ranks) {
    const std::size_t row = row_of(rank);
    if (row == ranks.size()) continue;
    for (const steps::Interval& in : intervals) {
      const std::size_t column = place_of(found.steps, in.step);
      if (column == found.steps.size()) continue;
      const std::int64_t ns = between(in.from_ns, in.to_ns);
      if (!g.why.known() && ns >= 0) length.add(row, column, ns);
      const auto sum = sums.find({rank, in.step});
      if (compared) late.add(row, column, sum == sums.end() ? 0 : sum->second);
    }
  }
  if (g.why.known()) {
    const why::Times& times = *g.why.times;
    for (std::size_t r = 0; r < times.ranks.size(); ++r) {
      const std::size_t row = row_of(times.ranks[r]);
      for (std::size_t s = 0; s < times.steps.size() && row != ranks.size(); ++s) {
        const why::Cell& cell = times.of(r)[s];
        const std::size_t column = place_of(found.steps, times.steps[s]);
        if (!cell.known() || column == found.steps.size()) continue;
        length.add(row, column, std::llround(cell.length));
        own.add(row, column, std::llround(times.own(r, s)));
        exposed.add(row, column, std::llround(cell.exposed));
        idle.add(row, column, std::llround(cell.idle()));
      }
    }
    j["metrics"].push_back(metric("own_ns", "time in which it waited for nobody", own, ranks));
    j["metrics"].push_back(metric("exposed_ns", "exposed communication", exposed, ranks));
    j["metrics"].push_back(metric("idle_ns", "neither computed nor communicated", idle, ranks));
  }
  if (compared) j["metrics"].push_back(metric("late_ns", "behind the last but one", late, ranks));
  j["metrics"].push_back(metric("length_ns", "length of the step", length, ranks));
  return j;
}

Json late_of(const Gathered& g) {
  const diagnose::Lateness& l = *g.summary.lateness;
  constexpr std::size_t kMostListed = 30;
  Json ranks = Json::array();
  for (const diagnose::LateRank& r : l.ranks) {
    if (ranks.size() == kMostListed || r.last == 0) break;
    ranks.push_back({{"rank", diagnose::name_of_rank(*r.rank)},
                     {"host", std::string(r.rank->header.host)},
                     {"last", r.last},
                     {"of", r.collectives},
                     {"median_ns", r.median_ns},
                     {"max_ns", r.max_ns},
                     {"sum_ns", r.sum_ns},
                     {"sum_read_ns", r.sum_read_ns},
                     {"share", l.span_ns == 0 ? Json()
                                              : Json(static_cast<double>(r.waited_ns) /
                                                     static_cast<double>(l.span_ns))}});
  }
  Json j = {{"from", l.on_device ? "device" : "host"},
            {"across_hosts", l.across_hosts},
            {"collectives", l.collectives},
            {"rooted", l.rooted},
            {"compared", l.compared},
            {"one_in", l.stride},
            {"span_ns", l.span_ns},
            {"clocks_at_most_ns", std::llround(l.at_most_ns)},
            {"ranks", ranks}};
  j["where"] = late_places(g);
  return j;
}

}  // namespace tprof::page
