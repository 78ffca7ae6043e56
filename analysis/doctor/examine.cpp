#include "doctor/examine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <iterator>
#include <set>

#include "check/diagnose.h"
#include "check/names.h"
#include "check/started.h"
#include "read/error.h"
#include "report/findings.h"
#include "report/table.h"
#include "text/text.h"

namespace tprof::doctor {

namespace {

using report::Column;
using report::Json;
using report::or_unknown;
using report::Unit;
using text::printable;

constexpr std::size_t kWidth = 80;

void fields(std::string& out, const std::vector<Fact>& facts) {
  for (const Fact& f : facts) {
    out += fmt::format("  {:<11} {}\n", printable(f.key), printable(f.text));
  }
}

void settings_text(std::string& out, const Report& r) {
  out += "\nSettings in force\n";
  std::string line;
  for (const SettingInfo& s : kSettings) {
    const bool set =
        r.settings.contains(std::string(s.name)) || r.differ.contains(std::string(s.name));
    const std::string item = fmt::format("{}={}{}", printable(s.name), printable(r.in_force(s)),
                                         set ? "" : " (default)");
    if (line.size() + item.size() > kWidth) {
      out += line + "\n";
      line.clear();
    }
    line += "  " + item;
  }
  out += line + "\n";
}

std::vector<Column<Function>> function_columns(bool counted) {
  using F = Function;
  return {{"function", "name", Unit::text, &F::name},
          {nullptr, "library", Unit::text, [](const F& f) { return or_unknown(f.library); }},
          {"calls", "calls", Unit::count,
           [=](const F& f) { return counted ? report::Value(f.calls) : report::Value(); }},
          {"ranks", nullptr, Unit::text,
           [](const F& f) { return f.ranks.empty() ? "all" : f.ranks.str(); }},
          {nullptr, "ranks", Unit::text, [](const F& f) { return Json(f.ranks.list()); }},
          {"served by", nullptr, Unit::text, &F::library}};
}

// Functions of the same library share a line, unless their calls were counted.
void functions_text(std::string& out, const Report& r) {
  if (r.functions.empty()) return;
  if (r.counted) {
    std::string others;
    std::vector<Function> called;
    for (const Function& f : r.functions) {
      if (f.calls != 0) called.push_back(f);
      if (f.calls == 0) others += (others.empty() ? "" : ", ") + printable(f.name);
    }
    out += "\nWrapped functions that were called\n" +
           report::table_text(function_columns(true), called);
    if (!others.empty()) out += fmt::format("  and, moving no data themselves: {}\n", others);
    return;
  }
  std::map<std::string, std::vector<std::string>> served;
  for (const Function& f : r.functions) served[f.library].push_back(f.name);
  out += fmt::format("\nWrapped functions: {}\n", r.functions.size());
  for (const auto& [library, names] : served) {
    if (library.empty()) continue;
    out += fmt::format("  {} from {}\n", names.size(), printable(library));
  }
  if (served.contains("")) {
    constexpr std::size_t kNamed = 12;
    std::string names;
    for (const std::string& name : served[""]) names += (names.empty() ? ": " : ", ") + name;
    out += fmt::format("  {} from no library that could be found{}\n", served[""].size(),
                       served[""].size() <= kNamed ? names : "");
  }
}

struct WrappedFunction {
  std::string library;  // "nccl", "nccl_ep", "cudart", "cuda" or "cupti"
  std::string name;
  std::string since;                 // version of the library, "12.8"; empty: unknown
  std::vector<std::string> buckets;  // of its calls; empty: wrapped only to count other calls
  std::string elements;              // "count", "count_times_ranks" or "bytes"; empty: none
  std::string needs;                 // the setting without which it is passed through
};

struct LeftOutFunction {
  std::string library;
  std::string name;
  std::string reason;
};

struct FunctionList {
  std::vector<WrappedFunction> wrapped;
  std::vector<LeftOutFunction> left_out;
};

constexpr unsigned kTwinsSince = 7000;  // CUDA 7.0 brought the per-thread default stream

// 12080 is CUDA 12.8, 22800 NCCL 2.28. A per-thread twin (_ptsz, _ptds) has the number of its
// function.
std::string version(const WrappedFunction& f, std::string_view text) {
  unsigned number = text::number<unsigned>(text).value_or(0);
  if (f.name.ends_with("_ptsz") || f.name.ends_with("_ptds"))
    number = std::max(number, kTwinsSince);
  return f.library.starts_with("nccl") ? fmt::format("{}.{}", number / 10000, number % 10000 / 100)
                                       : fmt::format("{}.{}", number / 1000, number % 1000 / 10);
}

std::string_view title(std::string_view library) {
  if (library == "nccl") return "NCCL";
  if (library == "nccl_ep") return "NCCL EP";
  if (library == "cupti") return "CUPTI";
  return library == "cudart" ? "CUDA runtime" : "CUDA driver";
}

std::vector<Column<WrappedFunction>> columns() {
  using F = WrappedFunction;
  return {{nullptr, "library", Unit::text, &F::library},
          {"function", "name", Unit::text, &F::name},
          {"since", "since", Unit::text, [](const F& f) { return or_unknown(f.since); }},
          {"counts as", nullptr, Unit::text,
           [](const F& f) {
             return f.buckets.empty() ? std::string("nothing: it is followed")
                                      : fmt::format("{}", fmt::join(f.buckets, ", "));
           }},
          {nullptr, "buckets", Unit::text, [](const F& f) { return Json(f.buckets); }},
          {"elements", nullptr, Unit::text,
           [](const F& f) {
             return f.elements == "count_times_ranks" ? "count x ranks"
                    : f.elements == "bytes"           ? "bytes / element size"
                                                      : f.elements;
           },
           report::Show::if_room},
          {nullptr, "elements", Unit::text, [](const F& f) { return or_unknown(f.elements); }},
          {nullptr, "needs", Unit::text, [](const F& f) { return or_unknown(f.needs); }}};
}

std::vector<Column<LeftOutFunction>> left_out_columns() {
  using F = LeftOutFunction;
  return {{nullptr, "library", Unit::text, &F::library},
          {"function", "name", Unit::text, &F::name},
          {"why", "reason", Unit::text, &F::reason}};
}

FunctionList functions_of(const Library& library) {
  std::string_view text = library.elf.function_list;
  text = text.substr(0, text.find_last_not_of(std::string_view("\n\0", 2)) + 1);
  FunctionList list;
  for (const std::string_view line : text::split(text, '\n')) {
    const std::vector<std::string_view> f = text::split(line, '\t');
    if (f.size() == 6) {
      WrappedFunction& w = list.wrapped.emplace_back();
      w.library = f[0];
      w.name = f[1];
      for (const std::string_view bucket : text::split(f[2], ',')) {
        if (!bucket.empty()) w.buckets.emplace_back(bucket);
      }
      w.elements = f[3];
      w.needs = f[4];
      w.since = version(w, std::string(f[5]));
    } else if (f.size() == 3) {
      list.left_out.push_back({std::string(f[0]), std::string(f[1]), std::string(f[2])});
    } else {
      throw read::BadInput(library.path, "expected a list of functions of this version in it");
    }
  }
  if (list.wrapped.empty()) {
    throw read::BadInput(library.path,
                         "expected a libtprof.so that lists its functions: it is older");
  }
  return list;
}

std::string to_text(const FunctionList& list, std::size_t width) {
  const report::Room room = {.width = width, .breaks = true, .tells_columns = true};
  std::string out;
  for (const std::string_view library : {"nccl", "nccl_ep", "cudart", "cuda", "cupti"}) {
    std::vector<WrappedFunction> functions;
    std::ranges::copy_if(list.wrapped, std::back_inserter(functions),
                         [&](const WrappedFunction& f) { return f.library == library; });
    const std::string needs = functions.empty() ? "" : functions.back().needs;
    out += fmt::format("{}: {} functions{}\n", title(library), functions.size(),
                       needs.empty() ? "" : ", passed through without " + text::printable(needs)) +
           report::table_text(columns(), functions, room) + "\n";
  }
  return out + "Not covered\n" + report::table_text(left_out_columns(), list.left_out, room);
}

std::string to_json(const FunctionList& list) {
  return report::printed({{"schema", "tprof-coverage/1"},
                          {"functions", report::table_json(columns(), list.wrapped)},
                          {"not_covered", report::table_json(left_out_columns(), list.left_out)}});
}

using read::Process;

// Returns the processes and calls for each function and library.
std::vector<Function> functions(const job::Job& job) {
  struct Use {
    std::uint64_t calls = 0;
    std::vector<const Process*> processes;
  };
  std::map<std::pair<std::string, std::string>, Use> uses;
  for (const Process* p : job.processes) {
    if (!p->footer) continue;
    for (const read::BoundFunction& f : p->footer->functions) {
      Use& use = uses[{f.name, f.library}];
      if (p->lane == 0) use.calls += f.calls;  // the whole process's calls
      use.processes.push_back(p);
    }
  }
  std::vector<Function> all;
  for (const auto& [key, use] : uses) {
    const bool everywhere = use.processes.size() == job.processes.size();
    all.push_back({key.first, key.second, use.calls,
                   everywhere ? text::Ranks() : check::ranks_of(use.processes)});
  }
  // Functions that move data come first. The others have no counts.
  std::stable_partition(all.begin(), all.end(), [](const Function& f) { return f.calls != 0; });
  return all;
}

// Adds a fact for each group of processes with the same text.
template <typename Text>
void fact_of_each(Report& report, const job::Job& job, std::string_view key, const Text& text) {
  std::map<std::string, std::vector<const Process*>> groups;
  for (const Process* p : job.processes) {
    if (std::string t = text(*p); !t.empty()) groups[std::move(t)].push_back(p);
  }
  for (const auto& [t, processes] : groups) {
    const bool all = processes.size() == job.processes.size();
    report.fact(std::string(key), all ? t : t + "  (" + check::names_of(processes) + ")");
  }
}

}  // namespace

void Report::find_meaning(const std::string& kind, std::string_view path,
                          const check::Variables& variables) {
  const auto limit = check::limit_of(kind, {&variables});
  if (!limit) return;
  find(limit->kind, {{"paths", std::string(path)}, {"some", std::nullopt}, {"set", limit->set}});
}

std::string Report::in_force(const SettingInfo& setting) const {
  if (const auto of_ranks = differ.find(std::string(setting.name)); of_ranks != differ.end()) {
    return of_ranks->second;
  }
  const auto set = settings.find(std::string(setting.name));
  const bool accepted =
      set != settings.end() && !set->second.empty() && setting.accepts(set->second);
  return accepted ? set->second : std::string(setting.fallback);
}

std::string to_text(const Report& r) {
  std::string out =
      fmt::format("tprof doctor: {}\n", r.about == "machine"   ? "this machine and environment"
                                        : r.about == "command" ? "what would be traced"
                                                               : "what was traced");
  fields(out, r.facts);
  functions_text(out, r);
  settings_text(out, r);
  if (!r.tools.empty()) out += "\nOther tools\n";
  fields(out, r.tools);
  out += r.findings.empty() ? "\nNo findings.\n" : "\nFindings\n";
  for (const check::Finding& f : r.findings) {
    out += report::to_text(f, report::Detail::brief);
  }
  return out;
}

std::string to_json(const Report& r) {
  Json settings = Json::array();
  for (const SettingInfo& s : kSettings) {
    const auto set = r.settings.find(std::string(s.name));
    settings.push_back({{"name", s.name},
                        {"default", s.fallback},
                        {"values", s.values},
                        {"meaning", s.meaning},
                        {"set", set == r.settings.end() ? Json() : Json(set->second)},
                        {"in_force", r.in_force(s)}});
  }
  const auto pairs = [](const std::vector<Fact>& facts, const char* key, const char* text) {
    Json all = Json::array();
    for (const Fact& f : facts) all.push_back({{key, f.key}, {text, f.text}});
    return all;
  };
  const Json j = {{"schema", "tprof-doctor/1"},
                  {"about", r.about},
                  {"facts", pairs(r.facts, "key", "text")},
                  {"functions", report::table_json(function_columns(r.counted), r.functions)},
                  {"settings", settings},
                  {"tools", pairs(r.tools, "kind", "path")},
                  {"findings", report::to_json(r.findings, report::Detail::brief)}};
  return report::printed(j);
}

std::string coverage(const Library& library, bool json, std::size_t width) {
  const FunctionList list = functions_of(library);
  return json ? to_json(list) : to_text(list, width);
}

Report report_of_traces(const job::Job& job, const read::Traces& traces) {
  Report r{.about = "trace", .counted = true};
  r.fact("run", job.label);
  r.fact("processes", fmt::format("{}{}", job.processes.size(),
                                  job.ranks.empty() ? "" : ", ranks " + text::ranges(job.ranks)));
  if (!job.only.empty()) r.fact("merged", "with " + job.only);
  fact_of_each(r, job, "command", [](const Process& p) { return p.header.command; });
  fact_of_each(r, job, "NCCL", [](const Process& p) { return p.header.nccl_path; });
  fact_of_each(r, job, "CUDA", [](const Process& p) { return p.header.cudart_path; });
  fact_of_each(r, job, "cross-check", [](const Process& p) -> std::string {
    if (!p.footer || !p.footer->missed) return "";
    return p.footer->missed->empty() ? "every call in NCCL's NVTX ranges passed through libtprof.so"
                                     : "NCCL's NVTX ranges show calls that bypassed libtprof.so";
  });
  const auto unknown =
      std::ranges::count_if(job.processes, [](const Process* p) { return !p->footer; });
  if (unknown != 0) {
    r.fact("unknown", fmt::format("{} of {} processes did not say which libraries served them",
                                  unknown, job.processes.size()));
  }
  r.functions = functions(job);
  std::set<std::pair<std::string, std::string>> tools;
  for (const Process* p : job.processes) {
    if (!p->footer) continue;
    for (const read::Noted& n : p->footer->tools) tools.emplace(n.kind, n.path);
  }
  for (const auto& [kind, path] : tools) r.tools.push_back({kind, path});
  for (const check::Started& s : check::started_with(job.processes)) {
    if (s.about == check::Started::About::config)
      (s.differs() ? r.differ : r.settings)[s.name] = s.whose();
  }
  r.findings =
      check::diagnose(job, traces, {.asked = check::kDoctor, .read_lines = false}).findings;
  return r;
}

}  // namespace tprof::doctor
