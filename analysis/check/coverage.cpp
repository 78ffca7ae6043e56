// Reports what the traced processes could not see, and which tools were loaded beside tprof.
#include "check/coverage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "check/diagnosis.h"
#include "interpose/format/coverage.h"
#include "text/misspelt.h"

namespace tprof::check {
namespace {

using read::Process;

// The opt-ins with which calls of a kind of library are seen.
struct SeenWith {
  Kind kind;
  bool dlsym = false;
  bool driver = false;
  bool fully = false;  // with them nothing is missed
};
constexpr SeenWith kSeenWith[] = {{.kind = Kind::dali, .driver = true, .fully = true},
                                  {.kind = Kind::jax, .dlsym = true, .driver = true, .fully = true},
                                  {.kind = Kind::cupy, .driver = true, .fully = true},
                                  {.kind = Kind::second_nccl, .dlsym = true},
                                  {.kind = Kind::second_cudart, .dlsym = true},
                                  {.kind = Kind::uncalled_cudart, .dlsym = true},
                                  {.kind = Kind::static_cudart, .driver = true},
                                  {.kind = Kind::dlsym, .dlsym = true, .fully = true},
                                  {.kind = Kind::comm_unknown, .dlsym = true}};

// Returns nullopt if these are all.
std::optional<Processes> some(const Processes& of, const job::Job& job) {
  return of.size() == job.processes.size() ? std::nullopt : std::optional(of);
}

// True if NCCL's own NVTX ranges prove that no call bypassed the wrappers through a dlsym pointer.
bool proved_seen(const Process& p, const read::Noted& n) {
  return n.kind == note_name(Note::dlsym) && file_name(n.path).starts_with("libnccl.so") &&
         p.footer->missed && p.footer->missed->empty();
}

// Adds one finding per kind of library or tool. `only` restricts the kinds; empty: all kinds.
void noted(const Case& c, const std::set<std::string_view>& only, Findings& found) {
  struct Holders {
    std::set<std::string> paths;
    Processes processes;
    std::uint64_t calls = 0;
  };
  std::map<std::string, Holders> kinds;
  for (const Process* p : c.job.processes) {
    if (!p->footer) continue;
    for (const auto* entries : {&p->footer->unseen, &p->footer->tools}) {
      for (const read::Noted& n : *entries) {
        if ((!only.empty() && !only.contains(n.kind)) || proved_seen(*p, n)) continue;
        auto& [paths, processes, calls] = kinds[n.kind];
        paths.insert(n.path);
        if (p->lane == 0) calls += n.calls;  // counted once per process
        if (processes.empty() || processes.back() != p) processes.push_back(p);
      }
    }
  }
  for (const auto& [kind, holders] : kinds) {
    const auto& [paths, processes, calls] = holders;
    std::vector<const Variables*> set;
    for (const Process* p : processes) set.push_back(&*p->header.config);
    const auto limit = limit_of(kind, set);
    if (!limit) continue;
    if (c.options.asked != kDoctor && is_only_loaded(limit->kind)) continue;
    add(found, limit->kind, processes,
        {{"paths", fmt::format("{}", fmt::join(paths, ", "))},
         {"some", some(processes, c.job)},
         {"set", limit->set},
         {"calls", calls == 0 ? std::nullopt : std::optional(calls)}});
  }
}

// Reports calls that NCCL's NVTX ranges show and that no wrapper saw.
void missed(const Case& c, Findings& found) {
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> calls;  // missed, counted calls
  Processes holders;
  for (const Process* p : c.job.processes) {
    if (!p->footer || !p->footer->missed || p->footer->missed->empty()) continue;
    holders.push_back(p);
    if (p->lane != 0) continue;  // counted once per process
    for (const auto& [name, n] : *p->footer->missed) calls[name].first += n;
    for (const read::BoundFunction& f : p->footer->functions) {
      if (p->footer->missed->contains(f.name)) calls[f.name].second += f.calls;
    }
  }
  if (holders.empty()) return;
  Facts list;
  for (const auto& [name, n] : calls) {
    list.push_back({Say::missed_of, {{"missed", n.first}, {"name", name}, {"counted", n.second}}});
  }
  const bool dlsym = std::ranges::all_of(
      holders, [](const Process* p) { return in_force(p->header.config, Setting::dlsym); });
  add(found, Kind::missed, holders,
      {{"some", some(holders, c.job)}, {"calls", list}, {"dlsym", dlsym}});
}

// Reports each name once, for the first group of ranks with equal variables that has it.
void misspelt(const Case& c, Findings& found) {
  std::map<Variables, Processes> alike;
  for (const Process* p : c.job.processes) alike[p->header.config].push_back(p);
  Facts said;
  for (const auto& [config, processes] : alike) {
    Findings here;
    settings(config, processes, here);
    for (Finding& f : here) {
      Fact text = f.text;
      std::erase_if(text.values, [](const Named& v) { return v.name == std::string_view("who"); });
      if (std::ranges::find(said, text) != said.end()) continue;
      said.push_back(std::move(text));
      found.push_back(std::move(f));
    }
  }
}

// Reports a job that loaded NCCL without any call seen: its calls may bypass the wrappers.
void no_collectives(const Case& c, Findings& found) {
  if (c.job.world_size.value_or(1) < 2) return;
  const auto& processes = c.job.processes;
  const auto any = [&](auto has) { return !select(processes, has).empty(); };
  const bool loaded = any([](const Process& p) { return !p.header.nccl_path.empty(); });
  const bool seen = any([](const Process& p) { return !p.comms.empty(); });
  const bool unknown = any([](const Process& p) { return !p.footer; });
  if (!loaded || seen || unknown) return;
  add(found, Kind::no_nccl, processes, {{"world_size", c.job.world_size}});
}

// Reports a finished job without any counted call.
void nothing_counted(const Case& c, Findings& found) {
  const auto is_empty = [](const Process* p) {
    const bool ended = p->end == read::End::closed || p->end == read::End::recovered;
    return ended && p->ledger && p->ledger->rows.empty();
  };
  if (!std::ranges::all_of(c.job.processes, is_empty)) return;
  add(found, Kind::nothing_counted, c.job.processes, {});
}

void coverage(const Case& c, Findings& found) {
  noted(c, {}, found);
  missed(c, found);
  misspelt(c, found);
  no_collectives(c, found);
}

// The part of coverage() for `tprof check`: calls that can't be compared with those of other ranks.
void not_compared(const Case& c, Findings& found) {
  noted(c,
        {note_name(Note::comm_unknown), note_name(Note::comm_shared), note_name(Note::ledger_full)},
        found);
}

}  // namespace

bool in_force(const Variables& set, Setting opt_in) {
  const auto found = set.find(std::string(info(opt_in).name));
  return found != set.end() && is_on(found->second);
}

std::optional<Limit> limit_of(std::string_view note, const std::vector<const Variables*>& all_set) {
  const auto kind = kind_of_note(note);
  if (!kind) return std::nullopt;
  Limit limit{*kind, ""};
  const auto* seen = std::ranges::find(kSeenWith, *kind, &SeenWith::kind);
  if (seen == std::end(kSeenWith)) return limit;
  for (const Setting setting : {Setting::dlsym, Setting::driver}) {
    const auto set_in = [&](const Variables* set) { return in_force(*set, setting); };
    const bool wanted = setting == Setting::dlsym ? seen->dlsym : seen->driver;
    if (!wanted || std::ranges::all_of(all_set, set_in)) continue;
    limit.set += fmt::format("{}{}=1", limit.set.empty() ? "" : " and ", info(setting).name);
  }
  return seen->fully && limit.set.empty() ? std::nullopt : std::optional(limit);
}

void settings(const Variables& variables, const Processes& where, Findings& found) {
  for (const auto& [name, value] : variables) {
    if (is_unknown_setting(name)) {
      const std::string_view nearest = nearest_setting(name);
      add(found, Kind::misspelt_setting, where,
          {{"name", name}, {"nearest", std::string(nearest)}});
      continue;
    }
    const auto* setting = std::ranges::find(kSettings, std::string_view(name), &SettingInfo::name);
    if (setting == std::end(kSettings) || value.empty() || setting->accepts(value)) continue;
    add(found, Kind::bad_setting, where,
        {{"name", name},
         {"value", value},
         {"fallback", std::string(setting->fallback)},
         {"values", std::string(setting->values)}});
  }
}

extern const Diagnosis kCoverage{kSummary | kWhole | kDoctor, coverage};
extern const Diagnosis kNotCompared{kCheck, not_compared};
extern const Diagnosis kNothingCounted{kCheck | kSummary, nothing_counted};

}  // namespace tprof::check
