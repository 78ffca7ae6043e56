#include "page/data.h"

#include <algorithm>
#include <map>
#include <set>

#include "check/ends.h"
#include "check/names.h"
#include "check/started.h"
#include "interpose/format/schema.h"
#include "job/hosts.h"
#include "report/figures.h"
#include "report/findings.h"
#include "report/only.h"
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
  return {{"text", v.text},
          {"severity", v.severity},
          {"finding", v.finding ? Json(*v.finding) : Json()}};
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
  if (all.empty()) of.lead = {"Nothing, as far as the files tell."};
  return of;
}

bool of_unseen(diagnose::Kind kind) {
  using enum diagnose::Kind;
  constexpr diagnose::Kind kKinds[] = {
      missing_rank, missing_member,  snapshot, partial,         lost, dropped, dropped_ranges,
      untimed,      missing_windows, missed,   exposure_unknown};
  return std::ranges::find(kKinds, kind) != std::end(kKinds) || (kind >= nvshmem && kind <= nested);
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

}  // namespace

std::string only_text_of(const Gathered& g) {
  if (!g.asked) return "";
  std::string text = g.asked->only.sentence() +
                     ": bytes, calls, operations and communicators; all else is of the whole job.";
  for (const std::string& note : g.asked->notes) text += " " + note + ".";
  return text;
}

namespace {

// Null without filters.
Json only_of(const Gathered& g) {
  if (!g.asked) return {};
  Json only = report::only_json(g.asked->only, g.asked->notes);
  only["of"] = kOfCalls;
  only["text"] = only_text_of(g);
  return only;
}

}  // namespace

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

std::vector<Unseen> unseen_by(const Gathered& g) {
  std::vector<Unseen> all;
  for (const diagnose::Finding& f : g.said.findings) {
    if (!of_unseen(f.kind)) continue;
    Unseen& u = all.emplace_back(Unseen{report::sentence(f.text), 0, f.ranks});
    for (const char* name : {"missing", "lines", "calls"}) {
      if (const auto* n = diagnose::value_of<std::uint64_t>(f.text.values, name)) u.n = *n;
    }
  }
  const read::Amounts calls = stats::sum(g.summary.buckets);
  if (calls.device_timed < calls.calls) {
    const std::uint64_t n = calls.calls - calls.device_timed;
    all.push_back({diagnose::counted(n, "call") + " without a time on the device", n});
  }
  return all;
}

}  // namespace tprof::page
