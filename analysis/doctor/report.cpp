#include "doctor/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "check/coverage.h"
#include "interpose/format/settings.h"
#include "report/findings.h"
#include "text/text.h"

namespace tprof::doctor {
namespace {

using Json = nlohmann::ordered_json;
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

// Functions that one library serves share a line, unless their calls were counted.
void functions_text(std::string& out, const Report& r) {
  if (r.functions.empty()) return;
  if (r.counted) {
    using enum text::Table::Align;
    text::Table table({{"function", left}, {"calls", right}, {"ranks", left}, {"served by", left}});
    std::string others;
    for (const Function& f : r.functions) {
      if (f.calls == 0) {
        others += (others.empty() ? "" : ", ") + printable(f.name);
        continue;
      }
      table.row({printable(f.name), text::thousands(f.calls),
                 f.ranks.empty() ? "all" : f.ranks.str(), printable(f.library)});
    }
    out += "\nWrapped functions that were called\n" + table.str();
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
  Json functions = Json::array();
  for (const Function& f : r.functions) {
    functions.push_back({{"name", f.name},
                         {"library", f.library.empty() ? Json() : Json(f.library)},
                         {"calls", r.counted ? Json(f.calls) : Json()},
                         {"ranks", f.ranks.list()}});
  }
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
                  {"functions", functions},
                  {"settings", settings},
                  {"tools", pairs(r.tools, "kind", "path")},
                  {"findings", report::to_json(r.findings, report::Detail::brief)}};
  return j.dump(1, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace tprof::doctor
