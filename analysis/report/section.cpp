#include "report/section.h"

#include <utility>

namespace tprof::report {

std::string to_text(Section s) {
  std::string out = s.title.empty() ? "" : "\n" + s.title + "\n";
  out += s.lead;
  if (!s.table.heads.empty()) out += to_text(std::move(s.table), s.room, s.legend);
  return out + s.notes;
}

void put(Json& to, const char* key, Section s) {
  if (!s.at) return;
  const Json::json_pointer at("/" + std::string(key) + *s.at);
  if (!s.facts.is_null()) to[at.parent_pointer()].update(s.facts);
  to[at] = to_json(std::move(s.table), s.shape);
}

}  // namespace tprof::report
