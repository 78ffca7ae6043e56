#include "report/findings.h"

#include <fmt/format.h>

#include "report/words.h"
#include "text/text.h"

namespace tprof::report {

using text::printable;

std::string next_of(const check::Finding& f) {
  return f.next ? sentence(*f.next) : advice(f.text);
}

std::string to_text(const check::Finding& f, Detail detail) {
  std::string out = fmt::format("{}: {}\n", f.severity_name(), printable(sentence(f.text)));
  if (detail == Detail::full) {
    for (const auto& e : f.evidence) out += fmt::format("  {}\n", printable(sentence(e)));
  }
  const std::string next = next_of(f);
  if (!next.empty()) out += fmt::format("  -> {}\n", printable(next));
  return out;
}

Json to_json(const check::Findings& findings, Detail detail) {
  const bool full = detail == Detail::full;
  Json all = Json::array();
  for (const check::Finding& f : findings) {
    Json j = {
        {"kind", name_of(f.kind)}, {"severity", f.severity_name()}, {"ranks", f.ranks.list()}};
    if (full) {
      j["communicator"] = or_null(f.communicator);
      j["seq"] = or_null(f.seq);
      j["between"] = f.between ? Json{f.between->first, f.between->second} : Json();
      j["function"] = or_null(f.function);
      j["time"] = f.time ? Json{f.time->from_ns, f.time->to_ns} : Json();
      j["steps"] = f.steps ? Json{f.steps->first, f.steps->last} : Json();
      j["in_steps"] = or_null(f.in_steps.str());
    }
    j["text"] = sentence(f.text);
    if (full) {
      Json& evidence = j["evidence"] = Json::array();
      for (const auto& e : f.evidence) evidence.push_back(sentence(e));
    }
    j["next"] = or_null(next_of(f));
    if (full && f.cost) {
      j["cost"] = {{"ns", f.cost->ns},
                   {"doubt_ns", f.cost->doubt_ns},
                   {"share", f.cost->share},
                   {"ns_per_step", or_null(f.cost->ns_per_step)}};
    }
    all.push_back(std::move(j));
  }
  return all;
}

Json only_json(const filter::Words& only, const std::vector<std::string>& notes) {
  Json j = Json::object();
  for (const auto& [name, value] : only.given()) j[name] = value;
  j["notes"] = notes;
  return j;
}

std::string only_text(const filter::Words& only, const std::vector<std::string>& notes,
                      const std::string& before) {
  if (only.empty()) return "";
  std::string out = before + text::printable(only.sentence()) + "\n";
  for (const std::string& note : notes) out += before + text::printable(note) + "\n";
  return out;
}

}  // namespace tprof::report
