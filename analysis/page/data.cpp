#include "page/data.h"

#include <map>
#include <set>
#include <tuple>

#include "check/ends.h"
#include "check/names.h"
#include "check/started.h"
#include "interpose/format/schema.h"
#include "job/hosts.h"
#include "report/findings.h"
#include "report/views.h"
#include "report/words.h"

namespace tprof::page {
namespace {

constexpr std::size_t kMostHosts = 64;

Json findings_of(const Gathered& g) {
  Json all = report::to_json(g.said.findings, report::Detail::full);
  for (std::size_t i = 0; i < all.size(); ++i) all[i]["ranks"] = g.said.findings[i].ranks.str();
  return all;
}

Json verdict_of(const Gathered& g) {
  const report::JobVerdict v = report::verdict_of(g.said, known_of(g));
  return {{"text", v.text}, {"severity", v.severity}, {"finding", or_null(v.finding)}};
}

Section unseen_of(const Gathered& g) {
  using report::Unit;
  const std::vector<Unseen> all = unseen_by(g);
  const std::vector<report::Column<Unseen>> columns = {
      {"what", "what", Unit::text, &Unseen::what},
      {"how many", "n", Unit::count,
       [](const Unseen& u) { return u.n == 0 ? report::Value() : report::Value(u.n); }},
      {"ranks", "ranks", Unit::text, &Unseen::ranks}};
  Section of = {.title = "Not seen", .table = report::sheet(columns, all, For::programs), .at = ""};
  if (all.empty()) of.lead = {"Nothing, according to the files."};
  return of;
}

Json run_of(const Gathered& g) {
  const job::Job& job = *g.summary.job;
  const auto [first, last] = check::span_of(job.processes);
  std::set<std::string> commands;
  std::map<std::string, check::Processes> hosts;
  for (const read::Process* p : job.processes) {
    commands.insert(p->header.command);
    hosts[p->header.host].push_back(p);
  }
  Json of_hosts = Json::array();
  for (const auto& [name, processes] : hosts) {
    if (of_hosts.size() == kMostHosts) break;
    of_hosts.push_back({{"name", name}, {"ranks", check::ranks_of(processes).str()}});
  }
  Json of_settings = Json::object();
  for (const check::Started& s : check::started_with(job.processes)) {
    if (s.about == check::Started::About::config) of_settings[s.name] = s.whose();
  }
  return {{"label", job.label},
          {"run_id", or_null(job.run_id)},
          {"command", commands.empty() ? "" : *commands.begin()},
          {"commands", commands.size()},
          {"from_ns", first},
          {"dur_ns", last - first},
          {"ranks", job.ranks.size()},
          {"processes", job.processes.size()},
          {"world_size", or_null(job.world_size)},
          {"hosts", of_hosts},
          {"host_count", hosts.size()},
          {"settings", of_settings}};
}

using report::BucketRow;
using report::Column;
using report::Figures;
using report::Unit;

constexpr std::size_t kMostOperations = 400;
constexpr std::size_t kMostLateRanks = 30;
constexpr std::size_t kMostLatePlaces = 200;
constexpr std::size_t kMostWaits = 200;
constexpr std::size_t kMostLast = 8;         // ranks that came last, per row
constexpr std::size_t kMostWaitSteps = 200;  // per row; if there are more, every nth
constexpr std::size_t kMostFamilies = 12;
constexpr std::size_t kMostIds = 2000;    // communicator ids of one family
constexpr std::size_t kMostRanks = 2000;  // on the map of communicators

// Whom others waited for, by rank, communicator and step.
struct LatePlace {
  const check::LateArrival* first = nullptr;
  std::uint64_t times = 0;
  std::int64_t ns = 0;
};

// The communicators of one size and role.
struct Family {
  std::string role{};
  std::int64_t nranks = 0;
  std::vector<const tables::CommSummary*> members{};  // sorted by lowest rank
  read::Amounts amounts{};
  std::uint64_t collectives = 0;
};

Json ids_of(const Family& f) {
  Json ids = Json::array();
  for (std::size_t i = 0; i < std::min(f.members.size(), kMostIds); ++i) {
    const tables::CommSummary& c = *f.members[i];
    ids.push_back(c.name.empty() ? c.id : c.id + " " + c.name);
  }
  return ids;
}

// Returns for each bin the index of the member that has its ranks; -1: none.
Json of_bins(const Family& f, const std::vector<std::int64_t>& ranks, const Bins& bins) {
  std::vector<std::int64_t> of_bin(bins.size(), -1);
  for (std::size_t i = 0; i < f.members.size(); ++i) {
    for (const std::int64_t rank : f.members[i]->ranks) {
      const std::size_t at = place_of(ranks, rank);
      // If several of a family have the same rank, shows the first.
      if (at == ranks.size() || of_bin[bins.of(at)] >= 0) continue;
      of_bin[bins.of(at)] = static_cast<std::int64_t>(i);
    }
  }
  return of_bin;
}

std::vector<Family> families_of(const std::vector<tables::CommSummary>& comms) {
  std::map<std::pair<std::int64_t, std::string>, Family> all;
  for (const tables::CommSummary& c : comms) {
    Family& f = all[{-c.nranks, tables::role_text(c)}];
    f.members.push_back(&c);
    f.amounts += c.amounts;
    f.collectives = read::saturated_sum(f.collectives, c.collectives);
  }
  std::vector<Family> families;
  for (auto& [key, f] : all) {
    f.nranks = -key.first;
    f.role = key.second;
    std::ranges::stable_sort(f.members, {}, [](const tables::CommSummary* c) {
      return c->ranks.empty() ? INT64_MAX : c->ranks.front();
    });
    families.push_back(std::move(f));
  }
  return families;
}

filter::Words only_words_of(const Gathered& g) {
  return g.asked ? g.asked->only : filter::Words{.merged = g.summary.job->only};
}

// Null without filters.
Json only_of(const Gathered& g) {
  std::string text = only_text_of(g);
  if (text.empty()) return {};
  Json only =
      report::only_json(only_words_of(g), g.asked ? g.asked->notes : std::vector<std::string>());
  if (g.asked) only["of"] = kOfCalls;
  only["text"] = std::move(text);
  return only;
}

}  // namespace

std::string only_text_of(const Gathered& g) {
  std::string text = only_words_of(g).sentence();
  if (!g.asked) return text.empty() ? "" : text + ": what its lines don't show is not known.";
  text += ": bytes, calls, operations and communicators; everything else is for the whole job.";
  for (const std::string& note : g.asked->notes) text += " " + note + ".";
  return text;
}

Json data_of(const Gathered& g) {
  Json j = {{"schema", "tprof-report/1"},   {"tprof", kVersion},
            {"only", only_of(g)},           {"run", run_of(g)},
            {"verdict", verdict_of(g)},     {"findings", findings_of(g)},
            {"step", step_of(g)},           {"per_rank", per_rank_of(g)},
            {"heat", heat_of(g)},           {"hist", histograms_of(g)},
            {"timelines", timelines_of(g)}, {"tables", Json::array()}};
  const auto add = [&](const char* key, Section section) {
    j["tables"].push_back({{"section", key},
                           {"rows", "/" + std::string(key) + *section.at},
                           {"title", section.title},
                           {"lead", section.lead},
                           {"columns", report::heads_json(section.table)},
                           {"notes", section.notes}});
    report::put(j, key, std::move(section));
  };
  add("buckets", buckets_of(g, For::programs));
  add("ops", operations_of(g, For::programs));
  add("late", late_of(g, For::programs));
  add("late", late_places_of(g));
  add("waits", waits_of(g));
  add("comms", communicators_of(g));
  add("unseen", unseen_of(g));
  return j;
}

bool tells_unseen(check::Kind kind) {
  using enum check::Kind;
  constexpr check::Kind kKinds[] = {
      missing_rank, missing_member,  snapshot, partial,         lost, dropped, dropped_ranges,
      untimed,      missing_windows, missed,   exposure_unknown};
  return std::ranges::find(kKinds, kind) != std::end(kKinds) || (kind >= nvshmem && kind <= nested);
}

std::vector<Unseen> unseen_by(const Gathered& g) {
  std::vector<Unseen> all;
  std::uint64_t untimed = 0;
  for (const check::Finding& f : g.said.findings) {
    if (!tells_unseen(f.kind)) continue;
    Unseen& u = all.emplace_back(Unseen{report::sentence(f.text), 0, f.ranks});
    for (const char* name : {"missing", "lines", "calls"}) {
      if (const auto* n = check::value_of<std::uint64_t>(f.text.values, name)) u.n = *n;
    }
    if (f.kind == check::Kind::untimed) untimed += u.n;
  }
  const read::Amounts calls = tables::sum(g.summary.buckets);
  if (calls.device_timed + untimed < calls.calls) {
    const std::uint64_t n = calls.calls - calls.device_timed - untimed;
    const char* const what = untimed == 0 ? "call" : "other call";
    all.push_back({check::counted(n, what) + " without a time on the device", n});
  }
  return all;
}

Section buckets_of(const Gathered& g, For who) {
  std::vector<BucketRow> rows;
  report::add_rows(rows, "", g.calls().buckets);
  std::ranges::stable_sort(rows, std::ranges::greater(),
                           [](const BucketRow& r) { return r.amounts.bytes; });
  std::vector<Column<BucketRow>> columns = {{"bucket", "bucket", Unit::text, &BucketRow::bucket}};
  append(columns, report::call_figures(report::Show::if_room));
  append(columns, report::time_figures(true));
  Section of = {.title = "Bytes and calls", .table = sheet(columns, rows, who), .at = ""};
  if (rows.empty()) of.lead = {"No counted call."};
  return of;
}

Section operations_of(const Gathered& g, For who) {
  Section of = report::operation_section(g.calls(), "Largest operations",
                                         {.size = true, .dtype = true, .role = true}, who, true);
  if (of.table.rows.empty()) of.lead = {"No counted call."};
  if (of.table.rows.size() > kMostOperations) of.table.rows.resize(kMostOperations);
  return of;
}

Section late_of(const Gathered& g, For who) {
  check::Lateness shown = *g.summary.lateness;
  std::erase_if(shown.ranks, [](const check::LateRank& r) { return r.last == 0; });
  if (shown.ranks.size() > kMostLateRanks) shown.ranks.resize(kMostLateRanks);
  Section of = report::sections_of(shown, g.summary.found, who).front();
  if (shown.compared != 0 && shown.ranks.empty()) {
    of.lead = {"Nobody by more than the clocks' error."};
  }
  return of;
}

Section late_places_of(const Gathered& g) {
  std::map<std::tuple<const read::Process*, text::Kept, std::int64_t>, LatePlace> places;
  for (const check::LateArrival& call : g.summary.lateness->arrivals) {
    LatePlace& p = places[{call.rank, call.communicator, call.step.value_or(INT64_MIN)}];
    if (p.first == nullptr) p.first = &call;
    ++p.times;
    p.ns += call.late_ns;
  }
  std::vector<LatePlace> rows;
  for (const auto& [key, place] : places) rows.push_back(place);
  std::ranges::sort(rows, {}, [](const LatePlace& p) {
    return std::tuple(-p.ns, p.first->rank->header.rank, p.first->step,
                      std::string_view(p.first->communicator.str()));
  });
  if (rows.size() > kMostLatePlaces) rows.resize(kMostLatePlaces);
  const auto roles = tables::role_texts(g.summary.comms);
  const std::vector<Column<LatePlace>> columns = {
      {"rank", "rank", Unit::text,
       [](const LatePlace& p) { return check::name_of_rank(*p.first->rank); }},
      {"host", "host", Unit::text, [](const LatePlace& p) { return p.first->rank->header.host; }},
      {"communicator", "communicator", Unit::text,
       [](const LatePlace& p) { return p.first->communicator; }},
      {"role", "role", Unit::text,
       [&](const LatePlace& p) {
         const auto role = roles.find(p.first->communicator.str());
         return role == roles.end() ? std::string() : role->second;
       }},
      {"step", "step", Unit::number, [](const LatePlace& p) { return p.first->step; }},
      {"times", "times", Unit::count, &LatePlace::times},
      {"behind", "ns", Unit::ns, &LatePlace::ns}};
  Section of = {.title = "By communicator and step",
                .table = sheet(columns, rows, For::programs),
                .at = "/where"};
  if (!rows.empty()) of.notes = {"The step is the one in which the rank came."};
  return of;
}

Section waits_of(const Gathered& g) {
  why::WaitTable shown{.step_stride = g.why.waits.step_stride, .known = g.why.waits.known};
  for (why::WaitRow row : g.why.waits.rows) {
    if (shown.rows.size() == kMostWaits || row.spent.calls == 0) continue;
    std::erase_if(row.of_ranks, [](const why::WaitOfRank& r) { return r.last.times == 0; });
    std::ranges::stable_sort(row.of_ranks, std::ranges::greater(),
                             [](const why::WaitOfRank& r) { return r.last.times; });
    if (row.of_ranks.size() > kMostLast) row.of_ranks.resize(kMostLast);
    const std::size_t every = row.of_steps.size() / kMostWaitSteps + 1;
    std::size_t i = 0;
    std::erase_if(row.of_steps, [&](const auto&) { return i++ % every != 0; });
    shown.rows.push_back(std::move(row));
  }
  Section of = report::section_of(shown, g.summary.comms, For::programs);
  of.facts["left_out"] = g.why.waits.rows.size() - shown.rows.size();
  return of;
}

Section communicators_of(const Gathered& g) {
  const std::vector<std::int64_t>& ranks = g.summary.job->ranks;
  const Bins bins(ranks.size(), kMostRanks);
  std::vector<Family> rows = families_of(g.calls().comms);
  const std::size_t all = rows.size();
  if (all > kMostFamilies) rows.resize(kMostFamilies);
  std::vector<Column<Family>> columns = {
      {"role", "role", Unit::text, &Family::role},
      {"ranks", "nranks", Unit::count, &Family::nranks},
      {"communicators", "n", Unit::count, [](const Family& f) { return f.members.size(); }},
      {"collectives", "collectives", Unit::count, &Family::collectives}};
  append(columns, Figures{{"calls", "calls", Unit::count, &read::Amounts::calls},
                          {"bytes", "bytes", Unit::bytes, &read::Amounts::bytes}});
  columns.push_back({"ids", "ids", Unit::text, ids_of});
  columns.push_back(
      {nullptr, "of_bin", Unit::text, [&](const Family& f) { return of_bins(f, ranks, bins); }});
  Json firsts = Json::array();
  for (std::size_t i = 0; i < bins.size(); ++i) firsts.push_back(ranks[bins.first(i)]);
  Section of = {.title = "Kinds of communicators",
                .table = sheet(columns, rows, For::programs),
                .at = "/families",
                .facts = {{"left_out", all - rows.size()}, {"ranks", std::move(firsts)}}};
  if (rows.empty()) of.lead = {"No communicator was made."};
  return of;
}

}  // namespace tprof::page
