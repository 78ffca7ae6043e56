#include "report/findings.h"

#include <fmt/format.h>

#include "report/json.h"
#include "text/text.h"

namespace tprof::report {

using text::printable;

std::string to_text(const diagnose::Finding& f, Detail detail) {
  const std::string_view indent = detail == Detail::brief ? "  " : "";
  std::string out = fmt::format("{}{}: {}\n", indent, f.severity_name(), printable(f.text));
  if (detail == Detail::full) {
    for (const std::string& e : f.evidence) out += fmt::format("  {}\n", printable(e));
  }
  if (!f.next.empty()) out += fmt::format("{}  -> {}\n", indent, printable(f.next));
  return out;
}

Json to_json(const diagnose::Findings& findings, Detail detail) {
  const bool full = detail == Detail::full;
  Json all = Json::array();
  for (const diagnose::Finding& f : findings) {
    Json j = {{"kind", f.kind}, {"severity", f.severity_name()}, {"ranks", f.ranks}};
    if (full) {
      j["communicator"] = or_null(f.communicator);
      j["seq"] = f.seq ? Json(*f.seq) : Json();
      j["between"] = f.between ? Json{f.between->first, f.between->second} : Json();
      j["function"] = or_null(f.function);
    }
    j["text"] = f.text;
    if (full) j["evidence"] = f.evidence;
    j["next"] = or_null(f.next);
    all.push_back(std::move(j));
  }
  return all;
}

Json or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

}  // namespace tprof::report
