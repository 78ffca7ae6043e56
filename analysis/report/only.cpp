#include "report/only.h"

#include "text/text.h"

namespace tprof::report {

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
