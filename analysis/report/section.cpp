#include "report/section.h"

#include <utility>

namespace tprof::report {
namespace {

std::string lines_of(const Notes& notes) {
  std::string out;
  for (const std::string& note : notes) out += note.empty() ? "\n" : "  " + note + "\n";
  return out;
}

}  // namespace

void append(Notes& to, const Notes& more) {
  to.insert(to.end(), more.begin(), more.end());
}

Notes notes_if(std::initializer_list<std::pair<bool, std::string>> all) {
  Notes out;
  for (const auto& [told, note] : all) {
    if (told) out.push_back(note);
  }
  return out;
}

std::string to_text(Section s) {
  std::string out = s.title.empty() ? "" : "\n" + s.title + "\n";
  out += lines_of(s.lead);
  if (!s.table.heads.empty()) out += to_text(std::move(s.table), s.room);
  return out + lines_of(s.notes);
}

void put(Json& to, const char* key, Section s) {
  if (!s.at) return;
  const Json::json_pointer at("/" + std::string(key) + *s.at);
  if (!s.facts.is_null()) to[at.parent_pointer()].update(s.facts);
  to[at] = to_json(std::move(s.table), s.shape);
}

}  // namespace tprof::report
